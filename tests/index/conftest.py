"""A folder of Markdown, an index of it, and what an index holds in a form that can be compared."""

import contextlib
import itertools
import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from datasette_memory.index.connection import connect_write, sqlite3
from datasette_memory.index.functions import register
from datasette_memory.index.migrations import migrate
from datasette_memory.index.sync import SyncResult, sync
from datasette_memory.vault.sources import Source

# Each file gets a second of its own, long before any sync.
_seconds = itertools.count(1_750_000_000)


class Folder:
    """A source whose files carry the times they are told to carry."""

    def __init__(self, root: Path, name: str = "notes") -> None:
        self.root = root
        self.name = name
        root.mkdir(parents=True, exist_ok=True)

    def source(self, **options) -> Source:
        return Source(self.name, str(self.root), **options)

    def write(self, path: str, text: str | bytes, mtime: float | None = None) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode("utf-8") if isinstance(text, str) else text)
        self.touch(path, mtime)
        return file

    def touch(self, path: str, mtime: float | None = None) -> None:
        mtime = next(_seconds) if mtime is None else mtime
        os.utime(self.root / path, (mtime, mtime))

    def rename(self, old: str, new: str) -> None:
        (self.root / new).parent.mkdir(parents=True, exist_ok=True)
        os.rename(self.root / old, self.root / new)

    def delete(self, path: str) -> None:
        (self.root / path).unlink()


class Index:
    """An index, synced with what it is given, and read by the standard library's sqlite3."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def sync(self, *sources: Folder | Source, **options) -> SyncResult:
        found = [one.source() if isinstance(one, Folder) else one for one in sources]
        with contextlib.closing(connect_write(self.path)) as connection:
            connection.execute("pragma synchronous = off")  # No test pulls the plug.
            migrate(connection)
            return sync(connection, found, **options)

    def query(self, sql: str, *parameters) -> list[tuple]:
        with contextlib.closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            register(connection)
            return connection.execute(sql, parameters).fetchall()

    def paths(self) -> list[str]:
        return [path for (path,) in self.query("select path from cards order by source, path")]

    def titles(self, match: str) -> list[str]:
        """The titles of the cards whose tokens match an expression."""
        return [
            title
            for (title,) in self.query(
                "select title from cards join cards_fts on cards.id = cards_fts.rowid "
                "where cards_fts match ? order by title",
                match,
            )
        ]

    def counts(self, result: SyncResult) -> dict[str, int]:
        """What is not zero among the counts of a sync."""
        names = ("added", "updated", "moved", "removed", "unchanged", "secret")
        return {name: count for name in names if (count := getattr(result, name))}

    def check(self) -> None:
        """Assert that the database is sound and the full-text part in step with the cards."""
        assert self.query("pragma integrity_check") == [("ok",)]
        assert self.query("pragma foreign_key_check") == []
        self.query("insert into cards_fts (cards_fts, rank) values ('integrity-check', 1)")

    def contents(self) -> dict[str, list]:
        """All that depends on the files, with `(source, path)` in place of row ids."""
        columns = [
            name
            for _, name, *_ in self.query("pragma table_info(cards)")
            if name not in ("id", "embedding")
        ]
        place = "{0}.source || '/' || {0}.path"
        card = f"(select {place.format('cards')} from cards where cards.id = {{}})"
        tables = {
            "cards": f"select {', '.join(columns)} from cards",
            "tags": f"select {card.format('card_id')}, tag from tags",
            "links": f"select {card.format('card_id')}, type, target, origin, key, other_key, "
            f"{card.format('target_id')} from links",
            "names": f"select key, rank, {card.format('card_id')} from names",
            "files": f"select source, path, sha256, fault, {card.format('card_id')} from files",
            "sources": "select name, root, exclude, max_bytes, note from sources",
        }
        found = {name: sorted(self.query(sql), key=repr) for name, sql in tables.items()}
        with contextlib.closing(sqlite3.connect(self.path)) as connection:
            connection.execute(
                "create virtual table temp.words using fts5vocab(main, cards_fts, instance)"
            )
            found["words"] = connection.execute(
                f"select {card.format('doc')} as place, col, offset, term from temp.words "
                "order by 1, 2, 3, 4"
            ).fetchall()
        return found


@pytest.fixture
def place(tmp_path):
    """A folder for files and indexes, in memory where there is such a place: none has to last."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory, prefix="memory-") as place:
        yield Path(place)


@pytest.fixture
def folder(place) -> Folder:
    return Folder(place / "notes")


@pytest.fixture
def index(place) -> Index:
    return Index(place / "index" / "memory.db")


@pytest.fixture
def make_folder(place):
    """Makes another source of that name, in a place of its own if one is given."""
    return lambda name, place=place: Folder(place / name, name)


@pytest.fixture
def make_index(place):
    """The same for an index."""
    return lambda name, place=place: Index(place / name)


@pytest.fixture
def public_place():
    """A folder that every user may enter and write to."""
    place = Path(tempfile.mkdtemp(prefix="memory-"))
    os.chmod(place, 0o777)
    yield place
    for folder, _, _ in os.walk(place):
        os.chmod(folder, 0o755)
    shutil.rmtree(place)


@pytest.fixture
def as_nobody():
    """`as_nobody(function)` calls it as a user who may not do everything; what it returns or raises."""

    def run(function: Callable):
        if os.geteuid() != 0:
            return function()
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.setgroups([])
                os.setresgid(65534, 65534, 65534)
                os.setresuid(65534, 65534, 65534)
                outcome = (True, function())
            except BaseException as error:
                outcome = (False, error)
            with open(writing, "wb") as pipe:
                pickle.dump(outcome, pipe)
            os._exit(0)
        os.close(writing)
        with open(reading, "rb") as pipe:
            succeeded, value = pickle.load(pipe)
        os.waitpid(child, 0)
        if not succeeded:
            raise value
        return value

    return run


_IMPORTER = """
import json, os, sys, traceback
import datasette_memory.index.lock, datasette_memory.index.rebuild, datasette_memory.sources
from datasette_memory.index import sync as syncing
from datasette_memory.memory import Memory

for line in sys.stdin:
    job = json.loads(line)
    child = os.fork()
    if child == 0:
        try:
            syncing.BATCH_FILES = syncing.MANY_FILES = job["batch"]
            memory = Memory(job["home"], db=job["db"])
            memory.import_paths(job["paths"], rebuild=job["rebuild"])
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Importer:
    """A process that forks one for each import: no import waits for Python to start."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.process = subprocess.Popen(
            [sys.executable, "-c", _IMPORTER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(self, index: Index, *folders: Folder, rebuild: bool = False, batch: int = 10) -> int:
        """Begin an import; gives the id of the process that does it."""
        job = {
            "home": str(self.home),
            "db": str(index.path),
            "paths": [str(folder.root) for folder in folders],
            "rebuild": rebuild,
            "batch": batch,
        }
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def wait(self) -> int:
        """The exit code of the import, negative for a signal."""
        return int(self.process.stdout.readline())

    def run(self, index: Index, *folders: Folder, **options) -> int:
        self.start(index, *folders, **options)
        return self.wait()

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(timeout=60)
        self.process.stdout.close()


@pytest.fixture
def make_importer(place):
    """Makes an Importer with the home of that name."""
    with contextlib.ExitStack() as stack:

        def make(home: str = "home") -> Importer:
            return stack.enter_context(contextlib.closing(Importer(place / home)))

        yield make
