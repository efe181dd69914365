"""Whether the index has ever seen a source."""

import contextlib
from pathlib import Path

from ..errors import MemoryFault
from .connection import connect_read, sqlite3


def has_seen(db: Path, source: str) -> bool:
    """Whether the index at `db` is there and was brought in step with `source` before."""
    try:
        with contextlib.closing(connect_read(db)) as connection:
            row = connection.execute("select 1 from sources where name = ?", (source,)).fetchone()
            return row is not None
    except (MemoryFault, sqlite3.Error):
        return False
