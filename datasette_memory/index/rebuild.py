"""Building the index anew beside the old one, and putting it in the old one's place at once."""

import contextlib
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..errors import MemoryFault
from ..vault.sources import Source
from . import connection as opening
from .connection import Damaged, NoIndex, connect_any, connect_write, sqlite3
from .connection import transaction, translated
from .migrations import migrate
from .sync import Progress, SyncResult, sync

# What `sqlite3_backup_step` gives when another program holds the database.
_BUSY, _LOCKED = 5, 6


def rebuild(path: Path, sources: Iterable[Source], progress: Progress | None = None) -> SyncResult:
    """Build the index at `path` from `sources` alone, and swap it in.

    Readers see the old index until the new one is complete; programs that have it open go on
    with the new one. What no file holds is carried over: `card_stats`, and the views, indexes and
    triggers that somebody added. A damaged database is set aside under another name. The caller
    holds the write lock. Raises MemoryFault, before anything is changed, when the database holds
    other tables, which would be lost, or a source is missing.
    """
    aside = _aside(path)
    try:
        with _old(path) as old:
            page_size = old and old.execute("pragma page_size").fetchone()[0]
            with contextlib.closing(connect_write(aside, page_size or opening.PAGE_SIZE)) as new:
                # The file is thrown away if anything goes wrong, so it need not survive a crash.
                new.execute("pragma synchronous = off")
                migrate(new)
                added = _added(old, new) if old else []
                if tables := [name for type, name, _ in added if type == "table"]:
                    raise MemoryFault(
                        f"{path} also holds the tables {', '.join(tables)}, which a rebuild "
                        "would drop",
                        "run it without --rebuild, or give the memory a database of its own",
                    )
        with contextlib.closing(connect_write(aside)) as new:
            new.execute("pragma synchronous = off")
            migrate(new)
            result = sync(new, sources, progress)
            _carry_over(new, path, added, result)
            new.execute("pragma wal_checkpoint(truncate)")
            _swap_in(new, path, result)
    finally:
        clear_away(path)
    return result
