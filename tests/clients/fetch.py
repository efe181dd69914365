"""Install real agent clients from npm, each into a folder of its own: `fetch.py FOLDER [NAME ...]`.

One that is there stays as it is. Why one cannot be installed is said, and kept in FOLDER/NAME/why.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from datasette_memory.clients.records import BY_NAME
from datasette_memory.clients.runs import RUNS

#: The clients need Node 22, the newest of them 24.16; under an older one npm takes old clients,
#: and says nothing.
NODE = (24, 16)


def programs(folder: Path, name: str) -> Path:
    """Where the programs of what was installed lie."""
    return folder / name / "node_modules" / ".bin"


def program(folder: Path, name: str) -> Path:
    """The program of a client."""
    return programs(folder, name) / BY_NAME[name].programs[0]


def why(folder: Path, name: str) -> str:
    """Why a client is not there; empty when it is."""
    if program(folder, name).exists():
        return ""
    try:
        return (folder / name / "why").read_text().strip()
    except OSError:
        return "it was not installed; `make test-clients` does that"


def node(folder: Path) -> str:
    """A folder with a `node` that is new enough; empty when that on the PATH is."""
    if shutil.which("node"):
        told = subprocess.run(["node", "--version"], capture_output=True, text=True, check=False)
        version = tuple(map(int, re.findall(r"\d+", told.stdout)[:2]))
        if version >= NODE:
            return ""
    return str(programs(folder, "node"))


def main() -> None:
    folder, names = Path(sys.argv[1]), sys.argv[2:] or list(RUNS)
    if unknown := [one for one in names if one not in RUNS]:
        sys.exit(f"no such client: {', '.join(unknown)}; one of: {', '.join(RUNS)}")
    if found := node(folder):
        if not (Path(found) / "node").exists():
            install(folder, "node", "node@24")
        os.environ["PATH"] = os.pathsep.join([found, os.environ["PATH"]])
    for name in names:
        if not program(folder, name).exists():
            install(folder, name, RUNS[name].install.split()[-1])
    missing = [one for one in names if why(folder, one)]
    for name in missing:
        print(f"{name} cannot be installed: {why(folder, name)}")
    if missing == names:
        sys.exit("none of the clients can be installed, so nothing can be tested")


def install(folder: Path, name: str, package: str) -> None:
    """Install a package; what npm says when it cannot goes into the file `why`."""
    print(f"{name}: npm install {package}", flush=True)
    place = folder / name
    place.mkdir(parents=True, exist_ok=True)
    (place / "why").unlink(missing_ok=True)
    words = [shutil.which("npm") or "npm", "install", "--no-audit", "--no-fund",
             "--loglevel=error", package]  # fmt: skip
    try:
        done = subprocess.run(words, cwd=place, capture_output=True, text=True, timeout=900)
        said = done.stderr.strip() if done.returncode else ""
    except (OSError, subprocess.SubprocessError) as error:
        said = str(error)
    if said:
        lines = [one.removeprefix("npm error").strip() for one in said.split("\n")]
        told = " ".join(one for one in lines if not one.startswith("at "))
        (place / "why").write_text(told[:300] + "\n")


if __name__ == "__main__":
    main()
