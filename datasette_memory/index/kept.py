"""An index that stays open between changes.

Whoever closes a database last writes its log into it and waits for the disk, which takes longer
than a change. A process that makes one change after the other keeps it open meanwhile.
"""

import contextlib
import os
import weakref
from pathlib import Path

from .connection import sqlite3

# What a process had open when it was forked is not the child's to close.
_of_others: list["sqlite3.Connection"] = []


class KeptOpen:
    """Holds one idle connection, until it is thrown away or the process ends."""

    def __init__(self) -> None:
        self._key: tuple[int, int, int] | None = None
        self._close = None

    def keep(self, path: Path) -> None:
        """Keep the database at `path` open; another one, or one that has taken its place, no more.

        Never raises: nothing but speed depends on it.
        """
        with contextlib.suppress(OSError, sqlite3.Error):
            status = os.stat(path)
            key = os.getpid(), status.st_dev, status.st_ino
            if key == self._key:
                return
            self.release()
            uri = path.absolute().as_uri() + "?mode=rw"
            connection = sqlite3.connect(uri, uri=True, timeout=0, check_same_thread=False)
            self._close = weakref.finalize(self, _closed, connection, os.getpid())
            # A connection is open, for the other ones, once it has read.
            connection.execute("select count(*) from sqlite_master").fetchone()
            self._key = key

    def release(self) -> None:
        """Close what is open."""
        if self._close is not None:
            self._close()
        self._key = self._close = None


def _closed(connection: "sqlite3.Connection", pid: int) -> None:
    if os.getpid() != pid:
        _of_others.append(connection)
        return
    with contextlib.suppress(sqlite3.Error):
        connection.close()
