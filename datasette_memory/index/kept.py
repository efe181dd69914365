"""An index that stays open between changes, or between readers.

Whoever closes a database last writes its log into it and waits for the disk, which takes longer
than a change. A process that makes one change after the other keeps it open meanwhile. One that
reads again and again does too: opening, and reading the schema, takes a third of a search.
"""

import contextlib
import os
import weakref
from collections.abc import Iterator
from pathlib import Path

from .connection import connect_read, connect_write, sqlite3

# What a process had open when it was forked is not the child's to close.
_of_others: list["sqlite3.Connection"] = []


class KeptOpen:
    """Holds one connection for writing, until it is thrown away or the process ends.

    One thread at a time may use it.
    """

    def __init__(self) -> None:
        self._connection: sqlite3.Connection | None = None
        self._key: tuple[int, int, int] | None = None
        self._close = None

    def connection(self, path: Path) -> "sqlite3.Connection":
        """The open database at `path`; another one, or one whose place it has taken, is closed.

        Raises as `connect_write`.
        """
        key = _key(path)
        if key is None or key != self._key or self._connection is None:
            self.release()
            connection = connect_write(path, any_thread=True)
            self._close = weakref.finalize(self, _closed, connection, os.getpid())
            self._connection, self._key = connection, _key(path)
        return self._connection

    def release(self) -> None:
        """Close what is open."""
        if self._close is not None:
            self._close()
        self._connection = self._key = self._close = None


class KeptReaders:
    """Connections for reading, as many as there are readers at a time. For any thread."""

    def __init__(self) -> None:
        # Taking the last of a list and adding one are each a single step in Python.
        self._idle: list[tuple[object, sqlite3.Connection]] = []

    @contextlib.contextmanager
    def connection(self, path: Path) -> Iterator["sqlite3.Connection"]:
        """A connection to the index at `path`, outside of any transaction, for this block alone.
        Raises as `connect_read`."""
        key = path, _key(path)
        connection = self._taken(key) or connect_read(path, any_thread=True)
        try:
            yield connection
            if connection.in_transaction:
                connection.execute("rollback")
        except BaseException:
            connection.close()
            raise
        # Where nobody may write, it was opened as a file that never changes.
        if os.access(path.parent, os.W_OK):
            self._idle.append((key, connection))
        else:
            connection.close()

    def _taken(self, key: object) -> "sqlite3.Connection | None":
        """One that is open; those to a file that is gone, or whose place another took, are closed."""
        while True:
            try:
                kept, connection = self._idle.pop()
            except IndexError:
                return None
            if kept == key:
                return connection
            connection.close()


def _key(path: Path) -> tuple[int, int, int] | None:
    """What tells the file at `path` from every other, and this process from one forked of it."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return os.getpid(), status.st_dev, status.st_ino


def _closed(connection: "sqlite3.Connection", pid: int) -> None:
    if os.getpid() != pid:
        _of_others.append(connection)
        return
    with contextlib.suppress(sqlite3.Error):
        connection.close()
