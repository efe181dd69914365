"""What tests of MCP need: a memory, and clients that speak with it, the SDK's own and a bare one."""

import contextlib
import json
import os
import queue
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import httpx2
from datasette.app import Datasette
from mcp import Client, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from datasette_memory.memory import Memory

ROOT = Path(__file__).resolve().parent.parent
MCP = [sys.executable, "-m", "memory_cli", "mcp"]
HANDSHAKES = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
NEWEST = "2026-07-28"
READING = [
    "memory_search", "memory_context", "memory_get", "memory_related", "memory_raw", "memory_brief",
    "memory_stats",
]  # fmt: skip
WRITING = [
    "memory_capture", "memory_update", "memory_supersede", "memory_link", "memory_feedback",
    "memory_reindex",
]  # fmt: skip
ROUTER = ["search_memory", "read_raw_data", "save_memory", "link_memory"]
ME = {"name": "test-client", "version": "1"}


def make_home(folder: Path, vault: Path) -> Path:
    """A home with a copy of `vault`, indexed."""
    shutil.copytree(vault, folder / "vault")
    Memory(str(folder)).index()
    return folder


def environment(home: Path, **more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "MEMORY_AGENT_HOME": str(home), **more}


@contextlib.asynccontextmanager
async def over_stdio(home: Path, *arguments: str, command=None, **options):
    """The SDK's client with `memory mcp` in a process of its own."""
    command = [*(command or MCP), *arguments]
    server = StdioServerParameters(command=command[0], args=command[1:], env=environment(home))
    # pytest has put something without a descriptor in the place of stderr.
    with open(os.devnull, "w") as nowhere:
        me = types.Implementation(**ME)
        async with Client(stdio_client(server, nowhere), client_info=me, **options) as client:
            yield client


#: Who calls is what a header says; on 0.65 a plugin is also what lets a writer write.
_ACTORS = """
from datasette import hookimpl

@hookimpl
def actor_from_request(request):
    name = request.headers.get("x-actor")
    return {"id": name} if name else None

@hookimpl
def permission_allowed(actor, action):
    if action in ("insert-row", "update-row") and (actor or {}).get("id") == "writer":
        return True
"""


def datasette(home: Path, port: int, *more: str, closed: bool = False) -> list[str]:
    """The command line of a Datasette on the memory of `home`. `closed`: nobody reads who has no
    name."""
    plugins = home.parent / "plugins"
    plugins.mkdir(exist_ok=True)
    (plugins / "actors.py").write_text(_ACTORS)
    known = {"id": ["reader", "writer", "root"]}
    # On 1.0 what is written here counts for root too.
    writing = {action: {"id": ["writer", "root"]} for action in ("insert-row", "update-row")}
    database = {"tables": {"cards": {"permissions": writing}}} | (
        {"allow": known} if closed else {}
    )
    configuration = home.parent / "configuration.json"
    configuration.write_text(json.dumps({"databases": {"memory": database}}))
    flag = "--config" if hasattr(Datasette, "table_config") else "--metadata"
    return [
        sys.executable, "-m", "datasette", "serve", str(home / "memory.db"),
        "--host", "127.0.0.1", "--port", str(port), "--root", "--plugins-dir", str(plugins),
        flag, str(configuration), *more,
    ]  # fmt: skip


@contextlib.asynccontextmanager
async def over_http(url: str, actor: str | None = None, path: str = "/-/mcp", **options):
    """The SDK's client with a server that is running."""
    headers = {"x-actor": actor} if actor else {}
    me = types.Implementation(**ME)
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        transport = streamable_http_client(url + path, http_client=http)
        async with Client(transport, client_info=me, **options) as client:
            yield client


class Bare:
    """A client of a few lines, which sends what it is told and keeps every byte it gets."""

    def __init__(self, home: Path, *arguments: str, command=None, **variables: str) -> None:
        self.process = subprocess.Popen(
            [*(command or MCP), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(home, **variables),
            start_new_session=True,
        )
        self.lines: list[bytes] = []
        self._arrived: queue.Queue[bytes | None] = queue.Queue()
        self.errors = b""
        self._threads = [threading.Thread(target=self._read), threading.Thread(target=self._drain)]
        for thread in self._threads:
            thread.start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self.lines.append(line)
            self._arrived.put(line)
        self._arrived.put(None)

    def _drain(self) -> None:
        self.errors = self.process.stderr.read()

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        self.end()

    def end(self) -> int:
        """Wait for the end of the process; its exit code."""
        try:
            return self.process.wait(60)
        finally:
            self.process.kill()
            for thread in self._threads:
                thread.join()

    def send(self, *messages) -> None:
        """Send messages, or bytes as they stand."""
        for message in messages:
            line = message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
            self.process.stdin.write(line)
        self.process.stdin.flush()

    def next(self) -> dict:
        """The next message that arrives."""
        line = self._arrived.get(timeout=60)
        assert line is not None, self.errors.decode()
        return json.loads(line)

    def ask(self, id, method: str, **params) -> dict:
        """Send a request, and wait for the answer to it."""
        self.send(request(id, method, **params))
        while True:
            answer = self.next()
            if answer.get("id") == id:
                return answer

    def open(self, version: str = HANDSHAKES[-1]) -> dict:
        """Shake hands; what the server says of itself."""
        answer = self.ask("open", "initialize", **greeting(version))
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer["result"]


def greeting(version: str) -> dict:
    return {"protocolVersion": version, "capabilities": {}, "clientInfo": ME}


def request(id, method: str, **params) -> dict:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def call(id, tool: str, **arguments) -> dict:
    return request(id, "tools/call", name=tool, arguments=arguments)


def modern(message: dict) -> dict:
    """A request as 2026-07-28 has it: without a handshake, all in its own envelope."""
    envelope = {
        "io.modelcontextprotocol/protocolVersion": NEWEST,
        "io.modelcontextprotocol/clientInfo": ME,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    return message | {"params": message["params"] | {"_meta": envelope}}


def said(result) -> str:
    """The text of a result of the SDK's client."""
    (block,) = result.content
    return block.text
