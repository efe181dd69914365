"""Opening the index: for reading with the standard library alone, for writing with care."""

import contextlib
import errno
import importlib
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from ..errors import MemoryFault

try:
    # sqlite-utils and Datasette take pysqlite3 when it is there. Two SQLite libraries in one
    # process must not share a file, and their exceptions are not each other's.
    sqlite3 = importlib.import_module("pysqlite3")
except ImportError:
    import sqlite3

#: How long a statement waits for another program, in seconds. A reader waits for little: WAL lets
#: it read while others write. A writer may have to wait until a long import has merged.
READ_TIMEOUT = 5.0
WRITE_TIMEOUT = 15.0

#: Cards of one to three kilobytes leave a third of each page of SQLite's own size empty.
PAGE_SIZE = 16384

_SQLITE_CORRUPT = 11
# What `sqlite3_backup_step` gives while another program holds the database.
_BUSY_OR_LOCKED = (5, 6)


class NoIndex(MemoryFault):
    """There is no database, or one without an index in it."""


class Damaged(MemoryFault):
    """The database is broken and has to be built again."""


class NoDatabase(MemoryFault):
    """The file is something else, and may be dear to somebody."""


def connect_read(path: Path, *, any_thread: bool = False) -> "sqlite3.Connection":
    """A read-only connection to the index at `path`; `any_thread` as for `connect_write`.

    Works in a read-only folder too, where SQLite cannot keep the files that WAL needs beside the
    database. Raises NoIndex when there is none, and MemoryFault when it cannot be read.
    """
    connection = connect_any(path, any_thread)
    with _closed_on_error(connection), translated(path):
        names = connection.execute(
            "select count(*) from sqlite_master where name in ('cards', 'cards_fts', 'meta')"
        )
        if names.fetchone()[0] < 3:
            raise NoIndex(
                f"{path} is a database, but not a memory index",
                "name another file with --db, or add an index to it with `memory-import`",
            )
    return connection


def connect_any(path: Path, any_thread: bool = False) -> "sqlite3.Connection":
    """The same for a database that need not hold an index."""
    check_place(path)
    if not path.exists() or path.stat().st_size == 0:
        raise NoIndex(
            f"there is no index at {path}",
            "build it with `memory index`, or import a folder with `memory-import FOLDER`",
        )
    with translated(path):
        connection = _open(path, "mode=ro", any_thread)
        try:
            with _closed_on_error(connection):
                connection.execute("select count(*) from sqlite_master").fetchone()
        except sqlite3.OperationalError:
            # Nobody can be writing where nobody may write: immutable is then the truth.
            if os.access(path.parent, os.W_OK) or _wal(path):
                raise
            connection = _open(path, "immutable=1", any_thread)
    return connection


def connect_write(
    path: Path, page_size: int = PAGE_SIZE, *, any_thread: bool = False
) -> "sqlite3.Connection":
    """A connection for writing; creates the file and its folder. Transactions are explicit.

    `page_size` counts bytes and is that of a new file. `any_thread` is for a caller who sees to it
    that one thread uses it at a time. Raises MemoryFault when the file is something else, or
    cannot be written.
    """
    check_place(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MemoryFault(
            f"the folder {path.parent} cannot be made: {error.strerror}",
            "name another place with --db or --home",
        ) from error
    with translated(path):
        connection = sqlite3.connect(
            path,
            timeout=WRITE_TIMEOUT,
            isolation_level=None,
            check_same_thread=not any_thread,
        )
        with _closed_on_error(connection):
            connection.execute(f"pragma page_size = {page_size}")
            # WAL lets readers go on while an import writes.
            if _journal_mode(connection, "wal") == "wal":
                connection.execute("pragma synchronous = normal")
            connection.execute("pragma foreign_keys = on")
            # What a card held before it was changed, or became secret, must not be read out of
            # free pages. Many builds of SQLite have this on; it costs an import nothing.
            connection.execute("pragma secure_delete = on")
    return connection


@contextlib.contextmanager
def transaction(connection: "sqlite3.Connection") -> Iterator[None]:
    """One immediate transaction: all of it, or nothing."""
    connection.execute("begin immediate")
    try:
        yield
        connection.execute("commit")
    except BaseException:
        # A full disk may have ended the transaction already.
        if connection.in_transaction:
            connection.execute("rollback")
        raise


def copy_into(source: "sqlite3.Connection", target: "sqlite3.Connection") -> None:
    """Copy a whole database in one transaction of SQLite's backup. Raises sqlite3.Error."""
    deadline = time.monotonic() + WRITE_TIMEOUT

    def give_up(status: int, remaining: int, total: int) -> None:
        # Left alone, the backup tries again for ever.
        if status in _BUSY_OR_LOCKED and time.monotonic() > deadline:
            raise sqlite3.OperationalError("database is locked")

    source.backup(target, progress=give_up)


@contextlib.contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn the errors of SQLite and of the system about the file `path`, and those beside it,
    into a MemoryFault that says what to do.
    """
    try:
        yield
    except (sqlite3.Error, UnicodeError) as error:
        raise fault(error, path) from error
    except OSError as error:
        raise MemoryFault(
            f"{error.filename or path}: {error.strerror or error}",
            "check the permissions and the free space there",
        ) from error


def fault(error: Exception, path: Path) -> MemoryFault:
    """The MemoryFault that explains an SQLite error on the index at `path`."""
    # Of a text that does not decode, the whole text would be told.
    text = " ".join(str(error).partition(" with text ")[0].split())
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if "locked" in text or "busy" in text:
        return MemoryFault(f"{path} is locked by another program", "wait for it, and try again")
    if "not a database" in text and b"\0" not in _head(path):
        # A text; all else may have been an index once.
        return NoDatabase(
            f"{path} is not a database",
            "name another file with --db, or move this one away; in the place of the home's own "
            "index `memory index` does that",
        )
    # A damaged schema may make SQLite say things that are no text.
    if (
        isinstance(error, UnicodeError)
        or code == _SQLITE_CORRUPT
        or any(
            word in text
            for word in (
                "malformed",
                "corrupt",
                "unsupported file",
                "not a database",
                "decode to UTF-8",
            )
        )
    ):
        return Damaged(
            f"the index {path} is damaged ({text})",
            "build it again from the files with `memory index --rebuild`; no card is lost, cards are files",
        )
    if "readonly" in text or "unable to open" in text:
        return MemoryFault(
            f"{path} cannot be opened for this ({text})",
            "check the permissions of the file and its folder, or name another with --db",
        )
    if "full" in text:
        return MemoryFault(f"no space left for {path}", "free some, and run the command again")
    if "disk I/O error" in text:
        return MemoryFault(
            f"the disk failed while {path} was used ({text})",
            "check its free space, its quota and its health, and run the command again",
        )
    if "already exists" in text:
        return MemoryFault(
            f"{path} holds something else under a name that the index needs ({text})",
            "nothing was changed; name another file with --db",
        )
    if "no such table" in text or "no such column" in text or "no such function" in text:
        return MemoryFault(
            f"{path} was built by another version ({text})",
            "build it again with `memory index --rebuild`",
        )
    return MemoryFault(f"{path}: {text}")


def check_place(path: Path) -> None:
    """Raise MemoryFault if what is at `path` can be no database, by its kind and permissions.

    The file itself is not opened: closing it would take away the locks that SQLite has on it for
    other connections of this process, and that is how indexes get damaged.
    """
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise _unreadable(path, getattr(error, "strerror", None) or str(error)) from error
    if stat.S_ISDIR(mode):
        raise MemoryFault(f"{path} is a folder, not a database", "name a file, as in memory.db")
    if not stat.S_ISREG(mode):
        raise MemoryFault(f"{path} is not a file", "name a file, as in memory.db")
    if not os.access(path, os.R_OK):
        raise _unreadable(path, os.strerror(errno.EACCES))


def _unreadable(path: Path, why: str) -> MemoryFault:
    return MemoryFault(
        f"{path} cannot be read: {why}",
        "check the permissions of the file and its folder, or name another with --db",
    )


def _head(path: Path) -> bytes:
    """How a file begins that SQLite has refused: of no other may a descriptor be closed here, see
    `check_place`."""
    try:
        with path.open("rb") as file:
            return file.read(4096)
    except OSError:
        return b""


def _journal_mode(connection: "sqlite3.Connection", mode: str) -> str:
    """Change the journal's mode; gives the one that there is then.

    Where two programs do it at once, SQLite tells one of them without waiting that the database
    is locked.
    """
    deadline = time.monotonic() + WRITE_TIMEOUT
    while True:
        try:
            return connection.execute(f"pragma journal_mode = {mode}").fetchone()[0]
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


@contextlib.contextmanager
def _closed_on_error(connection: "sqlite3.Connection") -> Iterator[None]:
    try:
        yield
    except BaseException:
        connection.close()
        raise


def _open(path: Path, options: str, any_thread: bool) -> "sqlite3.Connection":
    uri = path.absolute().as_uri() + "?" + options
    return sqlite3.connect(
        uri,
        uri=True,
        timeout=READ_TIMEOUT,
        isolation_level=None,
        check_same_thread=not any_thread,
    )


def _wal(path: Path) -> bool:
    """Whether the write-ahead log holds what the database file lacks."""
    try:
        return os.stat(f"{path}-wal").st_size > 0
    except OSError:
        return False
