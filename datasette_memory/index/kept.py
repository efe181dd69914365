"""An index that stays open between changes.

Whoever closes a database last writes its log into it and waits for the disk, which takes longer
than a change. A process that makes one change after the other keeps it open meanwhile.
"""

import contextlib
import os
import weakref
from pathlib import Path

from .connection import connect_write, sqlite3

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
