"""What tests of writing need: a home, what is in it, and a command that runs in a process."""

import contextlib
import hashlib
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MEMORY = [sys.executable, "-m", "memory_cli"]
NOBODY = 65534


@contextlib.contextmanager
def place():
    """A folder in memory where there is such a place: no test pulls the plug."""
    memory = Path("/dev/shm")
    folder = str(memory) if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=folder, prefix="memory-") as name:
        yield Path(name)


def environment(home: Path) -> dict[str, str]:
    """That of a user who has set nothing but the home."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MEMORY_", "PYTHON", "LC_", "LANG", "NO_COLOR"))
    }
    return kept | {
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "LC_ALL": "C.UTF-8",
        "MEMORY_AGENT_HOME": str(home),
    }


def command(
    home: Path, *arguments: str, stdin: bytes | str = b"", prefix: tuple[str, ...] = ()
) -> subprocess.CompletedProcess:
    """Run `memory` in a process of its own; output as text."""
    data = stdin.encode() if isinstance(stdin, str) else stdin
    done = subprocess.run(
        [*prefix, *MEMORY, *map(str, arguments)],
        input=data,
        capture_output=True,
        env=environment(home),
        timeout=120,
    )
    done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
    return done


def cards(home: Path) -> dict[str, bytes]:
    """The cards of the vault and their bytes, by path; the trash is no part of it."""
    vault = home / "vault"
    return {
        path.relative_to(vault).as_posix(): path.read_bytes()
        for path in sorted(vault.rglob("*.md"))
        if not path.relative_to(vault).as_posix().startswith(".")
    }


def trash(home: Path) -> dict[str, bytes]:
    """What is in the trash, by the path that it had."""
    root = home / "vault" / ".trash"
    return {
        "/".join(path.relative_to(root).parts[1:]): path.read_bytes()
        for path in sorted(root.rglob("*.md"))
    }


def field(data: bytes, name: str) -> str | None:
    """A field of one line in the frontmatter, as it is written."""
    found = re.search(rf"^{name}: (.*)$", data.decode(), re.M)
    return found and found[1]


def ids(home: Path) -> list[str]:
    """The references of all cards that have one, those in the trash too."""
    found = [field(data, "id") for data in (*cards(home).values(), *trash(home).values())]
    return [ref for ref in found if ref]


def events(home: Path, *kinds: str) -> list[dict]:
    """The events of the ledger, of one host in the order of its lines."""
    found = [
        json.loads(line)
        for path in sorted((home / "ledger").glob("*.jsonl"))
        for line in path.read_text("utf-8").splitlines()
    ]
    return [event for event in found if not kinds or event["kind"] in kinds]


def temporaries(home: Path) -> list[str]:
    """What a write that was cut short has left."""
    return [path.relative_to(home).as_posix() for path in home.rglob(".tmp-*")]


def pending(home: Path) -> list[dict]:
    """The changes that wait, the oldest first."""
    return [json.loads(path.read_bytes()) for path in sorted((home / "pending").glob("*.json"))]


def digest(folder: Path) -> str:
    """One hash of every name, every byte and every date of change below a folder."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        found.update(
            f"{path.relative_to(folder)}\0{status.st_mtime_ns}\0{status.st_mode}\0".encode()
        )
        if path.is_file():
            found.update(path.read_bytes())
    return found.hexdigest()


_PLACE = "(select source || '/' || path from cards where cards.id = {})"
_TABLES = {
    "tags": f"select {_PLACE.format('card_id')}, tag from tags",
    "links": f"select {_PLACE.format('card_id')}, type, target, origin, "
    f"{_PLACE.format('target_id')} from links",
    "card_stats": f"select {_PLACE.format('card_id')}, reads, last_read, support, contradict, gain, "
    "adopted, rejected from card_stats",
    "events": "select id, t, kind, ref, source, path, data from events",
}


def contents(db: Path, *names: str) -> dict[str, list]:
    """What an index holds, with places for row ids, to be compared with another."""
    with contextlib.closing(sqlite3.connect(db)) as connection:
        columns = [
            name
            for _, name, *_ in connection.execute("pragma table_info(cards)")
            if name not in ("id", "embedding")
        ]
        tables = {"cards": f"select {', '.join(columns)} from cards"} | _TABLES
        return {
            name: sorted(connection.execute(sql).fetchall(), key=repr)
            for name, sql in tables.items()
            if not names or name in names
        }


def tell(request, lines: list[str]) -> None:
    """Write lines for whoever runs the tests, past what pytest keeps back."""
    plugins = request.config.pluginmanager
    reporter, capture = plugins.getplugin("terminalreporter"), plugins.getplugin("capturemanager")
    if reporter and capture:
        with capture.global_and_fixture_disabled():
            for line in ("", *lines):
                reporter.write_line(line)


def query(db: Path, sql: str, *parameters) -> list[tuple]:
    with contextlib.closing(sqlite3.connect(db)) as connection:
        return connection.execute(sql, parameters).fetchall()


def remove_index(home: Path) -> None:
    """Delete the index, as its owner may at any time."""
    for path in home.glob("memory.db*"):
        path.unlink()
