"""A client of a hundred lines in the place of Claude Code: it reads the same files, starts the server,
calls the hooks, and asks the model. `TWEAK` makes one of its parts fail."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

VERSION = "1.2.3"
TWEAK = ""


def main() -> None:
    if "--version" in sys.argv:
        print(f"{VERSION} (Small Client)")
        return
    home = Path(os.environ["HOME"])
    if TWEAK == "hangs":
        # A daemon that has left the group of its parent, as one of them leaves behind.
        words = [sys.executable, "-c", "import time; time.sleep(300)"]
        child = subprocess.Popen(words, start_new_session=True)
        (Path(os.environ["SMALL_CLIENT_NOTES"]) / "daemon").write_text(str(child.pid))
        time.sleep(300)
    servers = json.loads((home / ".claude.json").read_text())["mcpServers"]
    hooks = json.loads((home / ".claude/settings.json").read_text())["hooks"]
    prompt = sys.argv[sys.argv.index("-p") + 1]
    added = [
        fire(hooks, "SessionStart", source="startup"),
        fire(hooks, "UserPromptSubmit", prompt=prompt),
    ]
    said = [{"role": "system", "content": one} for one in added if one and TWEAK != "deaf"]
    with Server(servers["memory"]) as server:
        tools = [
            {"name": f"mcp__memory__{one['name']}", "input_schema": one["inputSchema"]}
            for one in server.ask("tools/list", {})["tools"]
        ]
        said.append({"role": "user", "content": prompt})
        for _ in range(3):
            told = ask_model({"messages": said, "tools": [] if TWEAK == "toolless" else tools})
            block = told["content"][0]
            if block["type"] == "text":
                print(block["text"])
                break
            arguments = {"name": block["name"].removeprefix("mcp__memory__"),
                         "arguments": block["input"]}  # fmt: skip
            content = server.ask("tools/call", arguments)["content"]
            result = {"type": "tool_result", "tool_use_id": block["id"], "content": content}
            said += [
                {"role": "assistant", "content": [block]},
                {"role": "user", "content": [result]},
            ]
    fire(hooks, "Stop")


def fire(hooks: dict, event: str, **more: str) -> str:
    if TWEAK == "hookless":
        return ""
    payload = {"session_id": "s", "hook_event_name": event, "cwd": os.getcwd(), **more}
    line = hooks[event][0]["hooks"][0]["command"]
    done = subprocess.run(
        line, shell=True, input=json.dumps(payload), capture_output=True, text=True
    )
    told = json.loads(done.stdout or "{}").get("hookSpecificOutput", {})
    return told.get("additionalContext", "")


class Server:
    def __init__(self, entry: dict) -> None:
        self.process = subprocess.Popen([entry["command"], *entry["args"]], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # fmt: skip
        self.number = 0

    def __enter__(self) -> "Server":
        me = {"name": "small-client", "version": VERSION}
        self.ask(
            "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": me}
        )
        self.send({"method": "notifications/initialized"})
        return self

    def __exit__(self, *_: object) -> None:
        self.process.stdin.close()
        self.process.wait()

    def send(self, message: dict) -> None:
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def ask(self, method: str, parameters: dict) -> dict:
        self.number += 1
        self.send({"id": self.number, "method": method, "params": parameters})
        for line in self.process.stdout:
            if (told := json.loads(line)).get("id") == self.number:
                return told["result"]
        raise EOFError(method)


def ask_model(body: dict) -> dict:
    url = f"{os.environ['ANTHROPIC_BASE_URL']}/v1/messages"
    head = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), head)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


main()
