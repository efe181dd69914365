"""Building the index anew beside the old one, and putting it in the old one's place at once."""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from ..errors import MemoryFault
from ..vault.sources import Source
from .connection import connect_read, connect_write, sqlite3, transaction, translated
from .migrations import migrate
from .sync import Progress, SyncResult, sync


def rebuild(path: Path, sources: Iterable[Source], progress: Progress | None = None) -> SyncResult:
    """Build the index at `path` from `sources` alone, and swap it in.

    Readers see the old index until the new one is complete; programs that have it open go on
    with the new one. What no file holds yet (`card_stats`) is carried over. A damaged database
    is set aside under another name first. The caller holds the write lock.
    """
    aside = path.with_name(f"{path.name}.rebuild")
    _remove(aside)
    try:
        with contextlib.closing(connect_write(aside)) as new:
            # The file is thrown away if anything goes wrong, so it need not survive a crash.
            new.execute("pragma synchronous = off")
            migrate(new)
            result = sync(new, sources, progress)
            _carry_over(new, path, result)
            new.execute("pragma wal_checkpoint(truncate)")
            with translated(path):
                _swap_in(new, path, result)
    finally:
        _remove(aside)
    return result


def _swap_in(new, path: Path, result: SyncResult) -> None:
    """Copy the new index over the old within one transaction of SQLite's backup."""
    try:
        with contextlib.closing(connect_write(path)) as old:
            if old.execute("pragma quick_check(1)").fetchone()[0] != "ok":
                raise sqlite3.DatabaseError("malformed")
            new.backup(old)
            return
    except (MemoryFault, sqlite3.DatabaseError) as error:
        cause = error.__cause__ if isinstance(error, MemoryFault) else error
        if isinstance(cause, sqlite3.OperationalError) or cause is None:
            raise
    kept = _set_aside(path)
    result.notes.append(f"the damaged index was kept as {kept.name}")
    with contextlib.closing(connect_write(path)) as old:
        new.backup(old)


def _set_aside(path: Path) -> Path:
    """Rename a damaged database to the first free `NAME.damaged`, `NAME.damaged-2`, ..."""
    number = 1
    while True:
        kept = path.with_name(f"{path.name}.damaged" + (f"-{number}" if number > 1 else ""))
        if not kept.exists():
            break
        number += 1
    for suffix in ("-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            os.replace(f"{path}{suffix}", f"{kept}{suffix}")
    os.replace(path, kept)
    return kept


def _carry_over(new, path: Path, result: SyncResult) -> None:
    """Take the read counts along, by source and path; a damaged index has none to give."""
    try:
        with contextlib.closing(connect_read(path)) as old:
            rows = old.execute(
                "select source, path, reads, last_read, support, contradict, gain, adopted, "
                "rejected from card_stats join cards on cards.id = card_stats.card_id"
            ).fetchall()
    except (MemoryFault, sqlite3.Error):
        return
    with transaction(new):
        new.executemany(
            "insert into card_stats (card_id, reads, last_read, support, contradict, gain, "
            "adopted, rejected) select id, ?3, ?4, ?5, ?6, ?7, ?8, ?9 from cards "
            "where source = ?1 and path = ?2",
            rows,
        )


def _remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            os.remove(f"{path}{suffix}")
