"""Opening an index where it is, and one clear line where it is not."""

import contextlib
import os
import shutil
import threading

import pytest

from datasette_memory.errors import MemoryFault
from datasette_memory.index import connection as opening
from datasette_memory.index.connection import (
    Damaged,
    NoIndex,
    check_place,
    connect_any,
    connect_read,
    connect_write,
    fault,
    sqlite3,
    transaction,
    translated,
)
from datasette_memory.index.lock import write_lock

posix = pytest.mark.skipif(os.name == "nt", reason="needs POSIX files")


@pytest.fixture
def built(folder, index):
    folder.write("a.md", "# A\n\nwillow")
    index.sync(folder)
    return index.path


def says(caught, *parts: str) -> None:
    """The fault is one line that holds the parts, and says what to do."""
    assert "\n" not in caught.value.error and caught.value.hint
    for part in parts:
        assert part in caught.value.error


def test_reading_and_writing(built):
    with contextlib.closing(connect_read(built)) as reader:
        assert reader.execute("select title from cards").fetchall() == [("A",)]
        with pytest.raises(opening.sqlite3.OperationalError, match="readonly"):
            reader.execute("update cards set priority = 1")
    with contextlib.closing(connect_write(built)) as writer:
        for pragma, value in {
            "journal_mode": "wal",
            "foreign_keys": 1,
            "synchronous": 1,
            "secure_delete": 1,
            "page_size": 16384,
        }.items():
            assert writer.execute(f"pragma {pragma}").fetchone() == (value,)


def test_names_that_mean_something_in_a_uri_are_names(built, place):
    strange = place / "a?mode=memory#b%20 c'd.db"
    shutil.copy(built, strange)
    with contextlib.closing(connect_read(strange)) as reader:
        assert reader.execute("select count(*) from cards").fetchone() == (1,)


def test_no_file(place):
    for path in (place / "none.db", place / "none" / "none.db"):
        with pytest.raises(NoIndex) as caught:
            connect_read(path)
        says(caught, "there is no index at", str(path))
    assert list(place.iterdir()) == []


def test_a_folder(place):
    for connect in (connect_read, connect_write, check_place):
        with pytest.raises(MemoryFault) as caught:
            connect(place)
        says(caught, "is a folder")


@posix
def test_what_is_no_file(place):
    os.mkfifo(place / "pipe")
    for path in (place / "pipe", "/dev/null"):
        for connect in (connect_read, connect_write):
            with pytest.raises(MemoryFault) as caught:
                connect(type(place)(path))
            says(caught, "is not a file")


def test_a_folder_on_the_way_that_is_a_file(built):
    for connect in (connect_read, connect_write):
        with pytest.raises(MemoryFault) as caught:
            connect(built / "memory.db")
        says(caught, "cannot be read: Not a directory")


def test_names_that_no_system_takes(place):
    for name in ("a\0b", "x" * 5000):
        for connect in (connect_read, connect_write):
            with pytest.raises(MemoryFault) as caught:
                connect(place / name)
            says(caught, "cannot be read")


def test_a_file_that_is_no_database(place):
    text = place / "notes.md"
    for content in (b"# Notes\n", b"Sq", b"SQLite format 4\0" + bytes(4096)):
        text.write_bytes(content)
        for connect in (connect_read, connect_write):
            with pytest.raises(MemoryFault) as caught:
                connect(text)
            says(caught, "is not a database")
        assert text.read_bytes() == content


def test_an_empty_file_holds_no_index_and_may_become_one(place):
    path = place / "memory.db"
    path.touch()
    with pytest.raises(NoIndex):
        connect_read(path)
    connect_write(path).close()


def test_a_database_of_somebody_else(place):
    path = place / "other.db"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("create table cards (a)")
    with pytest.raises(NoIndex) as caught:
        connect_read(path)
    says(caught, "is a database, but not a memory index")
    with contextlib.closing(connect_any(path)) as connection:
        assert connection.execute("select count(*) from cards").fetchone() == (0,)


@pytest.mark.parametrize("size", [16, 99, 1000, 20_000])
def test_a_truncated_index_is_damaged(size, built):
    os.truncate(built, size)
    with pytest.raises(Damaged) as caught:
        with translated(built), contextlib.closing(connect_read(built)) as connection:
            connection.execute("select * from cards").fetchall()
    says(caught, "is damaged")
    assert "--rebuild" in caught.value.hint
    assert built.stat().st_size == size


@posix
def test_a_read_only_folder(public_place, make_folder, make_index, as_nobody):
    folder = make_folder("notes", public_place)
    folder.write("a.md", "# A\n\nwillow")
    index = make_index("memory.db", public_place / "index")
    index.sync(folder)
    os.chmod(index.path.parent, 0o555)
    os.chmod(index.path, 0o444)

    def read():
        with contextlib.closing(connect_read(index.path)) as connection:
            return connection.execute("select title from cards").fetchall()

    assert as_nobody(read) == [("A",)]

    def write():
        with translated(index.path), contextlib.closing(connect_write(index.path)) as connection:
            with transaction(connection):
                connection.execute("insert into meta values ('a', 'b')")

    with pytest.raises(MemoryFault) as caught:
        as_nobody(write)
    says(caught, "cannot be opened for this")
    with pytest.raises(MemoryFault) as caught:
        as_nobody(lambda: connect_write(index.path.with_name("new.db")))
    says(caught, "cannot be opened for this")
    with pytest.raises(MemoryFault) as caught:
        as_nobody(lambda: connect_write(index.path.parent / "deeper" / "new.db"))
    says(caught, "cannot be made: Permission denied")
    os.chmod(index.path, 0)
    for connect in (connect_read, connect_write):
        with pytest.raises(MemoryFault) as caught:
            as_nobody(lambda connect=connect: connect(index.path))
        says(caught, "cannot be read: Permission denied")
    os.chmod(index.path.parent, 0)
    for connect in (connect_read, connect_write):
        with pytest.raises(MemoryFault) as caught:
            as_nobody(lambda connect=connect: connect(index.path))
        says(caught, "cannot be read: Permission denied")


@posix
def test_a_read_only_folder_with_a_log_that_is_not_yet_in_the_index(
    public_place, make_folder, make_index, as_nobody
):
    folder = make_folder("notes", public_place)
    folder.write("a.md", "# A")
    index = make_index("memory.db", public_place / "index")
    index.sync(folder)
    with contextlib.closing(connect_write(index.path)) as connection:
        connection.execute("update cards set priority = 7")
        # As a killed writer leaves it: a log without the file that orders it.
        copy = public_place / "copy"
        copy.mkdir()
        for suffix in ("", "-wal"):
            shutil.copy(f"{index.path}{suffix}", copy / f"memory.db{suffix}")
    os.chmod(copy, 0o555)

    def read():
        with translated(copy), contextlib.closing(connect_read(copy / "memory.db")) as reader:
            return reader.execute("select priority from cards").fetchall()

    # What the log says, or a fault: never the state before it without a word.
    try:
        assert as_nobody(read) == [(7,)]
    except MemoryFault as error:
        assert "cannot be opened for this" in error.error


def test_a_locked_index_is_read_all_the_same_and_not_written(built, monkeypatch):
    monkeypatch.setattr(opening, "WRITE_TIMEOUT", 0.05)
    with contextlib.closing(sqlite3.connect(built, isolation_level=None)) as other:
        other.execute("begin exclusive")
        with contextlib.closing(connect_read(built)) as reader:
            assert reader.execute("select title from cards").fetchall() == [("A",)]
        with pytest.raises(MemoryFault) as caught:
            with translated(built), contextlib.closing(connect_write(built)) as writer:
                with transaction(writer):
                    raise AssertionError("it is locked")
        says(caught, "is locked by another program")


def test_a_locked_database_without_a_log_is_told(place, monkeypatch):
    monkeypatch.setattr(opening, "READ_TIMEOUT", 0.05)
    monkeypatch.setattr(opening, "WRITE_TIMEOUT", 0.05)
    path = place / "plain.db"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("create table t (a)")
        other.execute("begin exclusive")
        for connect in (connect_read, connect_write):
            with pytest.raises(MemoryFault) as caught:
                connect(path)
            says(caught, "is locked by another program")


def test_a_transaction_is_all_or_nothing(built):
    with contextlib.closing(connect_write(built)) as connection:
        with transaction(connection):
            connection.execute("insert into meta values ('kept', '1')")
        with pytest.raises(KeyboardInterrupt):
            with transaction(connection):
                connection.execute("insert into meta values ('lost', '1')")
                raise KeyboardInterrupt
        assert not connection.in_transaction
        # One that SQLite itself has ended.
        with pytest.raises(ZeroDivisionError):
            with transaction(connection):
                connection.execute("rollback")
                raise ZeroDivisionError
        found = connection.execute("select key from meta where key in ('kept', 'lost')")
        assert found.fetchall() == [("kept",)]


@pytest.mark.parametrize(
    "text, part, kind",
    [
        ("database is locked", "is locked by another program", MemoryFault),
        ("database table is locked", "is locked by another program", MemoryFault),
        ("database disk image is malformed", "is damaged", Damaged),
        ("fts5: corruption found reading blob 1", "is damaged", Damaged),
        ("file is not a database", "is damaged", Damaged),
        ("attempt to write a readonly database", "cannot be opened for this", MemoryFault),
        ("unable to open database file", "cannot be opened for this", MemoryFault),
        ("database or disk is full", "no space left", MemoryFault),
        ("disk I/O error", "the disk failed", MemoryFault),
        ("table tags already exists", "holds something else", MemoryFault),
        ("no such column: x", "was built by another version", MemoryFault),
        ("Could not decode to UTF-8 column 'body' with text 'a\nb", "column 'body')", Damaged),
        ("something\nnew", "something new", MemoryFault),
    ],
)
def test_every_error_of_sqlite_has_its_line(text, part, kind, place):
    (place / "memory.db").write_bytes(b"SQLite format 3\0")
    found = fault(sqlite3.OperationalError(text), place / "memory.db")
    assert type(found) is kind
    assert part in found.error and str(place / "memory.db") in found.error
    assert "\n" not in found.error


def test_errors_of_the_system_have_their_line_too(place):
    with pytest.raises(MemoryFault) as caught:
        with translated(place):
            raise PermissionError(13, "Permission denied", "/some/file")
    says(caught, "/some/file: Permission denied")
    fine = MemoryFault("as it is")
    with pytest.raises(MemoryFault) as caught:
        with translated(place):
            raise fine
    assert caught.value is fine


def test_the_lock_lets_one_in_and_tells_who_waits(place, monkeypatch):
    monkeypatch.setattr("datasette_memory.index.lock.IMPORT_PATIENCE", 0.1)
    path = place / "memory.db"
    waited = []
    with write_lock(path, lambda: waited.append(1)):
        assert waited == []
        with pytest.raises(MemoryFault) as caught:
            with write_lock(path, lambda: waited.append(2)):
                raise AssertionError("there is one already")
        says(caught, "another import has held")
    assert waited == [2]
    with write_lock(path):
        pass
    with pytest.raises(ZeroDivisionError):
        with write_lock(path):
            raise ZeroDivisionError
    with write_lock(path):
        pass


@posix
def test_a_lock_that_cannot_be_made(public_place, as_nobody):
    os.chmod(public_place, 0o555)

    def lock():
        with write_lock(public_place / "memory.db"):
            pass

    with pytest.raises(MemoryFault) as caught:
        as_nobody(lock)
    says(caught, "cannot be written: Permission denied")


def test_many_may_make_the_same_index_at_once(place):
    """SQLite refuses some of those who change a new file to WAL at the same moment."""
    for number in range(40):
        path, faults = place / f"{number}.db", []
        start = threading.Barrier(8)

        def make(path=path, faults=faults, start=start):
            start.wait()
            try:
                connect_write(path).close()
            except MemoryFault as error:
                faults.append(error)

        threads = [threading.Thread(target=make) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert faults == []
