"""Which hooks Codex sees, and the hash by which each is approved: asked of Codex itself."""

import json
import subprocess
import threading

from ..errors import MemoryFault
from .targets import is_hook

_PATIENCE = 30.0


def codex_hooks(program: str, folder: str) -> dict[str, str]:
    """The hash of each of our hooks, by the key that Codex gives it.

    `program` is the path of `codex`, which is started in `folder`. Raises MemoryFault
    when it does not answer.
    """
    asked = [
        {"id": 1, "method": "initialize", "params": {
            "clientInfo": {"name": "memory", "title": "memory", "version": "1"}}},
        {"method": "initialized"},
        {"id": 2, "method": "hooks/list", "params": {"cwds": [folder]}},
    ]  # fmt: skip
    fault = MemoryFault(
        f"{program} does not say which hooks it sees",
        "approve them in codex itself, with /hooks",
    )
    try:
        process = subprocess.Popen(
            [program, "app-server"], cwd=folder, text=True, encoding="utf-8",
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    except OSError:
        raise fault from None
    timer = threading.Timer(_PATIENCE, process.kill)
    timer.start()
    try:
        process.stdin.write("".join(json.dumps(one) + "\n" for one in asked))
        process.stdin.flush()
        answer = next(
            (one for line in process.stdout if (one := json.loads(line)).get("id") == 2), None
        )
        return {
            hook["key"]: hook["currentHash"]
            for one in answer["result"]["data"]
            for hook in one["hooks"]
            if is_hook(hook.get("command") or "")
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise fault from None
    finally:
        timer.cancel()
        process.kill()
        process.communicate()
