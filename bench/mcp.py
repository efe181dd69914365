"""`memory mcp` beside what it cannot do without: an empty server on the same SDK, `Memory.search`."""

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from datasette_memory.memory import Memory

from .row import Row

_SERVE = "import sys; from memory_cli.main import main; sys.argv[1:] = ['mcp']; main()"
_EMPTY = "from mcp.server.mcpserver import MCPServer; MCPServer('empty').run('stdio')"


class Client:
    """A server in a process of its own, and the few lines that a client needs."""

    def __init__(self, code: str, home: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "MEMORY_AGENT_HOME": str(home)},
        )
        self._id = 0

    def ask(self, method: str, **params: object) -> dict:
        """Send a request and wait for its answer."""
        self._id += 1
        self._send({"id": self._id, "method": method, "params": params})
        while (answer := json.loads(self.process.stdout.readline())).get("id") != self._id:
            pass
        return answer["result"]

    def open(self) -> list:
        """Shake hands, and ask for the tools."""
        client = {"name": "bench", "version": "1"}
        self.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
        self._send({"method": "notifications/initialized"})
        return self.ask("tools/list")["tools"]

    def close(self) -> None:
        """End the server."""
        self.process.stdin.close()
        self.process.wait()

    def _send(self, message: dict) -> None:
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0"} | message).encode() + b"\n")
        self.process.stdin.flush()


def first_answer(home: Path, times: int = 21) -> Row:
    """From the start of the process to the answer to `tools/list`, by turns with an empty server."""
    seconds: dict[str, list[float]] = {_SERVE: [], _EMPTY: []}
    for _ in range(times + 1):
        for code, taken in seconds.items():
            begun = time.perf_counter()
            client = Client(code, home)
            tools = client.open()
            taken.append(time.perf_counter() - begun)
            assert len(tools) == (10 if code == _SERVE else 0)
            client.close()
    pairs = list(zip(seconds[_SERVE], seconds[_EMPTY]))[1:]
    ratio = statistics.median(ours / empty for ours, empty in pairs)
    ours, empty = (statistics.median(column) * 1000 for column in zip(*pairs))
    return Row(
        "memory mcp to its first tools/list",
        f"{ours:.0f} ms",
        f"an empty server on the same SDK {empty:.0f} ms: {ratio:.2f} times",
        "1.3 times",
        ratio <= 1.3,
    )


def search(home: Path, queries: list[str]) -> Row:
    """A search over stdio, by turns with the same search in this process."""
    memory = Memory(str(home))
    client = Client(_SERVE, home)
    client.open()
    near: list[float] = []
    far: list[float] = []
    for query in queries:
        begun = time.perf_counter()
        found = memory.search(query)
        near.append(time.perf_counter() - begun)
        begun = time.perf_counter()
        answer = client.ask("tools/call", name="memory_search", arguments={"query": query})
        far.append(time.perf_counter() - begun)
        refs = [hit["ref"] for hit in answer["structuredContent"]["hits"]]
        assert refs == [hit.ref for hit in found.hits], query
    client.close()
    ours, bare = (statistics.median(times[5:]) * 1000 for times in (far, near))
    return Row(
        f"memory_search over stdio, {memory.count():,} cards",
        f"p50 {ours:.1f} ms",
        f"Memory.search p50 {bare:.1f} ms: {ours - bare:.1f} ms more",
        "3 ms more",
        ours - bare <= 3,
    )
