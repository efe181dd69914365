"""The programs of clients: where they are, and what they say of their version."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence

_PATIENCE = 5.0


def find(names: Sequence[str]) -> str | None:
    """The path of the first of these programs that is on the PATH."""
    return next((path for one in names if (path := shutil.which(one))), None)


def beside(program: str, environment: Mapping[str, str]) -> dict[str, str]:
    """An environment in which a program finds first what stands beside it: those from npm look for
    their `node`."""
    folder = os.path.dirname(os.path.abspath(program))
    path = environment.get("PATH") or os.defpath
    return {**environment, "PATH": os.pathsep.join([folder, path])}


def version_of(
    program: str, environment: Mapping[str, str] = os.environ, patience: float = _PATIENCE
) -> str:
    """What a program says of its version; empty when it says nothing within `patience` seconds."""
    try:
        done = subprocess.run(
            [program, "--version"], capture_output=True, timeout=patience, check=False,
            stdin=subprocess.DEVNULL, env=beside(program, environment),
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return ""
    lines = done.stdout.decode("utf-8", "replace").split("\n")
    return next((one.strip()[:60] for one in lines if any(map(str.isdigit, one))), "")
