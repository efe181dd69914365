"""Run a program of somebody else's, see what it starts, and leave nothing of it running."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

_STEP = 0.1
#: A hook that a client left behind when it ended has so long, in seconds, to end by itself.
_GRACE = 3.0


@dataclass(slots=True)
class Seen:
    """What a run was: its exit code (None when it was stopped for time), seconds, all that it printed,
    and the command line of every process that was seen in it."""

    code: int | None
    seconds: float
    output: str
    commands: list[list[str]] = field(default_factory=list)


def run(
    words: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    output: Path,
    patience: float,
) -> Seen:
    """Run `words` for `patience` seconds at the most; its output goes to the file `output`.

    Every process that it started is stopped afterwards, also one that has made itself independent:
    it is known by the home folder in its environment. Raises OSError when it cannot be started.
    """
    begun = time.monotonic()
    known: dict[psutil.Process, list[str]] = {}
    apart = {"start_new_session": True} if os.name != "nt" else {}
    with open(output, "ab") as file:
        process = subprocess.Popen(
            list(words), cwd=folder, env=dict(environment), stdin=subprocess.DEVNULL, stdout=file,
            stderr=subprocess.STDOUT, **apart,
        )  # fmt: skip
    try:
        root = psutil.Process(process.pid)
        code = None
        while time.monotonic() - begun < patience:
            _look(root, known)
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = process.wait(_STEP)
                break
        spent = time.monotonic() - begun
        if code is not None:
            _wait_for_hooks(known)
    finally:
        _stop(process, known, environment)
    text = output.read_bytes().decode("utf-8", "replace")
    return Seen(code, spent, text, [one for one in known.values() if one])


def _look(root: psutil.Process, known: dict[psutil.Process, list[str]]) -> None:
    with contextlib.suppress(psutil.Error):
        for one in root.children(recursive=True):
            # A process that was just forked still has the command line of its parent.
            with contextlib.suppress(psutil.Error):
                known[one] = one.cmdline() or known.get(one, [])


def _wait_for_hooks(known: Mapping[psutil.Process, list[str]]) -> None:
    hooks = [one for one, words in known.items() if "hook" in words]
    psutil.wait_procs(hooks, timeout=_GRACE)


def _stop(
    process: subprocess.Popen, known: dict[psutil.Process, list[str]], environment: Mapping
) -> None:
    with contextlib.suppress(psutil.Error):
        _look(psutil.Process(process.pid), known)
    left = {*known, *_at_home(environment["HOME"])}
    if process.poll() is None:
        with contextlib.suppress(OSError):
            if os.name == "nt":
                process.kill()
            else:
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for one in left:
        with contextlib.suppress(psutil.Error):
            one.kill()
    psutil.wait_procs(left, timeout=_GRACE)


def _at_home(home: str) -> list[psutil.Process]:
    """The processes whose home is that folder of ours, which no other program has."""
    found = []
    for one in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if one.environ().get("HOME") == home:
                found.append(one)
    return found
