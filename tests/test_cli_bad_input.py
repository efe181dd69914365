"""What is wrong with the environment gives one line that says what to do, and loses nothing.

Every command is a process of its own, without the rights of root, who may write anywhere.
"""

import json
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SAMPLE = ROOT / "examples" / "vault"

# Everything is loaded before the rights go: Python itself may stand where only root can read.
PROGRAM = """
import os, sys
import importlib, pkgutil, shlex, signal, subprocess, traceback
import datasette.cli, filelock, pathspec, sqlite_utils, yaml
import datasette_memory, datasette_memory.index, datasette_memory.search, memory_cli
import datasette_memory.memory, datasette_memory.sources
for package in datasette_memory.index, datasette_memory.search, memory_cli:
    for module in pkgutil.iter_modules(package.__path__):
        if module.name != "__main__":
            importlib.import_module(f"{package.__name__}.{module.name}")
for encoding in "utf-8-sig", "utf-16", "utf-32-le", "ascii", "latin-1", "idna":
    "".encode(encoding)
datasette_memory.index.connection.READ_TIMEOUT = 0.1
datasette_memory.index.connection.WRITE_TIMEOUT = 0.1
if os.name == "posix" and os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
from memory_cli import main
program = sys.argv.pop(1)
main.import_main() if program == "memory-import" else main.main()
"""

READ = {
    "search": ["memory", "search", "备份"],
    "show": ["memory", "show", "R_0001"],
    "stats": ["memory", "stats"],
    "serve": ["memory", "serve", "--port", "0"],
}
WRITE = {
    "index": ["memory", "index"],
    "rebuild": ["memory", "index", "--rebuild"],
    "import": ["memory-import", "SOURCE"],
}
ALL = {**READ, **WRITE}


def run(words: list[str], **more: str) -> subprocess.CompletedProcess:
    env = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_")}
    env |= {"PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", **more}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *words], capture_output=True, env=env, timeout=120,
        encoding="utf-8", stdin=subprocess.DEVNULL,
    )  # fmt: skip


def fails(words: list[str], *expected: str, code: int = 2) -> None:
    """The command ends with `code` and one line on stderr that holds what is expected."""
    result = run([*words, "--json"])
    assert (result.returncode, result.stderr.count("\n")) == (code, 1), result
    assert result.stderr.startswith("Error: ")
    for text in expected:
        assert text in result.stderr, result.stderr
    assert "Traceback" not in result.stderr and "unexpected" not in result.stderr
    answer = json.loads(result.stdout)
    assert answer["ok"] is False
    assert answer["error"] in result.stderr


@pytest.fixture
def place():
    """A folder that everybody may look into."""
    folder = Path(tempfile.mkdtemp(prefix="memory-test-"))
    folder.chmod(0o755)
    yield folder
    for path in [folder, *folder.rglob("*")]:
        if path.is_dir():
            path.chmod(0o755)
    shutil.rmtree(folder)


@pytest.fixture
def source(place) -> Path:
    folder = place / "notes"
    folder.mkdir()
    (folder / "备份.md").write_text("---\nid: R_0001\n---\n# 备份\n\n每天两点备份。\n", "utf-8")
    return folder


@pytest.fixture(scope="session")
def built(tmp_path_factory) -> Path:
    """A home with a vault, and an index of it."""
    from datasette_memory.memory import Memory

    home = tmp_path_factory.mktemp("built")
    shutil.copytree(SAMPLE, home / "vault")
    Memory(str(home)).index()
    return home


@pytest.fixture
def home(built, place) -> Path:
    """Such a home, whose owner is the user of the commands."""
    copy = place / "home"
    shutil.copytree(built, copy)
    for suffix in ("-wal", "-shm"):
        (copy / f"memory.db{suffix}").unlink(missing_ok=True)
    own(copy)
    return copy


def own(folder: Path) -> None:
    if os.name == "posix" and os.getuid() == 0:
        for path in [folder, *folder.rglob("*")]:
            os.chown(path, 65534, 65534)


def words(command: list[str], home: Path, source: Path | None = None) -> list[str]:
    filled = [str(source) if word == "SOURCE" else word for word in command]
    return [*filled, "--home", str(home)]


def contents(folder: Path) -> dict[str, bytes]:
    """Every file but the lock, and what SQLite keeps beside a database."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith((".lock", "-shm", "-wal"))
    }


each = pytest.mark.parametrize("command", ALL.values(), ids=ALL)
each_read = pytest.mark.parametrize("command", READ.values(), ids=READ)
each_write = pytest.mark.parametrize("command", WRITE.values(), ids=WRITE)


def test_the_good_home_is_good(home, source):
    for command in (READ["search"], READ["show"], READ["stats"], *WRITE.values()):
        result = run(words(command, home, source))
        assert (result.returncode, result.stderr) == (0, ""), command


@each
def test_a_folder_as_the_database(home, source, command):
    (home / "memory.db").unlink()
    (home / "memory.db").mkdir()
    own(home)
    fails(words(command, home, source), "memory.db is a folder", "name a file")


@each
def test_a_file_that_is_no_database(home, source, command):
    (home / "memory.db").write_text("A letter to nobody, which is no database at all.\n" * 100)
    before = contents(home)
    if command in (WRITE["rebuild"], WRITE["index"]):
        result = run(words(command, home))
        assert result.returncode == 0 and "63 added" in result.stdout
        assert "memory.db was not a database: it was kept as memory.db.damaged" in result.stdout
        assert contents(home)["memory.db.damaged"] == before["memory.db"]
        return
    fails(words(command, home, source), "memory.db is not a database", "--db")
    assert contents(home)["memory.db"] == before["memory.db"]


@each
@pytest.mark.parametrize("size", [7, 5_000, 200_000])
def test_a_truncated_database(home, source, command, size):
    os.truncate(home / "memory.db", size)
    before = contents(home)
    if command in (WRITE["rebuild"], WRITE["index"]):
        result = run(words(command, home))
        assert result.returncode == 0
        assert "63 added" in result.stdout
        assert "memory.db.damaged" in result.stdout
        assert (home / "memory.db.damaged").stat().st_size == size
        assert run(words(READ["search"], home)).returncode == 0
        return
    expected = "is not a database" if size < 100 else "is damaged"
    fails(words(command, home, source), expected)
    assert contents(home)["memory.db"] == before["memory.db"]


@each_read
def test_a_database_of_somebody_else(home, command):
    (home / "memory.db").unlink()
    connection = sqlite3.connect(home / "memory.db")
    connection.execute("create table letters (text)")
    connection.commit()
    connection.close()
    own(home)
    fails(words(command, home), "not a memory index", "memory-import")


@each
def test_a_database_that_may_not_be_read(home, source, command):
    (home / "memory.db").chmod(0)
    fails(words(command, home, source), "memory.db", "Permission denied", "--db")


def read_only(folder: Path) -> None:
    for path in [*folder.rglob("*"), folder]:
        path.chmod(0o555 if path.is_dir() else 0o444)


@pytest.mark.parametrize("name", ["search", "show", "stats"])
def test_a_read_only_home_can_be_read(home, name):
    read_only(home)
    result = run(words(READ[name], home))
    assert (result.returncode, result.stderr) == (0, "")


@each_write
def test_a_read_only_home_cannot_be_written(home, source, command):
    before = contents(home)
    read_only(home)
    fails(words(command, home, source), str(home))
    assert contents(home) == before


def test_a_home_that_cannot_be_made(place, source):
    folder = place / "locked"
    folder.mkdir()
    folder.chmod(0o555)
    fails(words(WRITE["import"], folder / "home", source), str(folder), "Permission denied")
    assert list(folder.iterdir()) == []


def test_a_home_that_is_a_file(place, source):
    (place / "file").write_text("x")
    fails(words(WRITE["import"], place / "file", source), str(place / "file"))
    assert (place / "file").read_text() == "x"


def test_no_home_at_all(place):
    for name in ("index", "rebuild"):
        fails(words(WRITE[name], place / "none"), "there is no vault at", "memory-import")
    result = run(words(["memory", "paths"], place / "none"))
    assert (result.returncode, result.stderr) == (0, "")
    assert not (place / "none").exists()


@each
def test_a_locked_database(home, source, command):
    before = contents(home)
    holder = sqlite3.connect(home / "memory.db", isolation_level=None)
    try:
        holder.execute("pragma locking_mode = exclusive")
        holder.execute("begin exclusive")
        holder.execute("create table held (x)")
        fails(words(command, home, source), "memory.db is locked by another program", "try again")
    finally:
        holder.execute("rollback")
        holder.close()
    assert contents(home)["memory.db"] == before["memory.db"]


@pytest.mark.parametrize(
    "text",
    [
        b'{"db": ',
        b"[1, 2]",
        b'{"db": 3}',
        b'{"sources": {}}',
        b'{"sources": [{}]}',
        b"\xff\xfe\x00",
    ],
)
def test_a_broken_config(home, source, text):
    (home / "config.json").write_bytes(text)
    for command in (["memory", "paths"], READ["search"], WRITE["index"], WRITE["import"]):
        fails(words(command, home, source), "config.json")
    assert (home / "config.json").read_bytes() == text


@each
def test_a_broken_config_stops_every_command(home, source, command):
    (home / "config.json").write_text('{"vault": "~/笔记",}', encoding="utf-8")
    before = contents(home)
    fails(words(command, home, source), "config.json is not valid JSON", "by hand")
    assert contents(home) == before


def test_what_cannot_be_imported(home, place):
    before = contents(home)
    (place / "text.txt").write_text("x")
    (place / "closed").mkdir()
    (place / "closed").chmod(0)
    db = str(place / "other.db")
    for path, expected in (
        (place / "missing", "there is no folder or file"),
        (place / "text.txt", "neither a folder nor a Markdown file"),
        (place / "closed", "closed"),
        (home / "vault" / "17-Notes", "is part of the source"),
    ):
        fails(words(["memory-import", str(path)], home), expected)
    assert contents(home) == before
    fails(words(["memory-import", db, str(place / "missing")], home), "there is no folder or file")
    assert not os.path.exists(db)


def test_a_vault_that_is_gone_keeps_its_cards(home):
    shutil.move(home / "vault", home / "elsewhere")
    result = run(words(WRITE["index"], home))
    assert result.returncode == 0
    assert "note: " in result.stdout and "stay indexed" in result.stdout
    quiet = run([*words(WRITE["index"], home), "--quiet"])
    assert (quiet.returncode, quiet.stdout) == (0, "")
    assert "stay indexed" in quiet.stderr
    assert run(words(READ["search"], home)).returncode == 0


def test_one_file_that_cannot_be_read_holds_back_no_other(home):
    closed = home / "vault" / "17-Notes" / "closed.md"
    closed.write_text("# 锁上的\n", encoding="utf-8")
    (home / "vault" / "17-Notes" / "open.md").write_text("# 开着的\n", encoding="utf-8")
    own(home)
    closed.chmod(0)
    result = run([*words(WRITE["index"], home), "--json"])
    assert result.returncode == 0
    answer = json.loads(result.stdout)
    assert answer["added"] == 1
    assert [report["path"] for report in answer["skipped"]] == ["17-Notes/closed.md"]
    assert "ermission" in answer["skipped"][0]["reason"]
    assert stat.S_IMODE(closed.stat().st_mode) == 0


def test_a_name_that_no_system_takes(home):
    fails([*words(READ["search"], home), "--db", str(home / ("x" * 300 + ".db"))], "too long")


def test_a_port_that_is_taken(home):
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        fails(words(["memory", "serve", "--port", str(port)], home), str(port), "--port")
