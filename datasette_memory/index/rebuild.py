"""Building the index anew beside the old one, and putting it in the old one's place at once."""

import contextlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from ..errors import MemoryFault
from ..vault.sources import Source
from . import vectors
from .connection import (
    PAGE_SIZE,
    Damaged,
    NoIndex,
    connect_any,
    connect_read,
    connect_write,
    copy_into,
    sqlite3,
    transaction,
    translated,
)
from .migrations import migrate
from .sync import Progress, SyncResult, sync


def rebuild(
    path: Path,
    sources: Iterable[Source],
    progress: Progress | None = None,
    finish: Callable[[object, SyncResult], None] | None = None,
    alone: Callable[[], contextlib.AbstractContextManager] = contextlib.nullcontext,
) -> SyncResult:
    """Build the index at `path` from `sources` alone, and swap it in.

    `finish(connection, result)` is called on the new index before anybody sees it. `alone()` keeps
    others from changing cards: only the last step is made in it, with what was changed during
    the first. Readers see
    the old index until the new one is complete; programs that have it open go on with the new
    one. What no file holds is carried over: `card_stats`, vectors, and views, indexes and triggers that
    somebody added. A damaged database is set aside under another name. The caller holds the write
    lock. Raises MemoryFault, and leaves the old index as it is, when the database holds other
    tables, which would be lost, or a source is missing.
    """
    clear_away(path)
    try:
        page_size, schema = _survey(path)
        with contextlib.closing(connect_write(_aside(path), page_size)) as new:
            # The file is thrown away if anything goes wrong, so it need not survive a crash.
            new.execute("pragma synchronous = off")
            migrate(new)
            ours = {name for (name,) in new.execute("select name from sqlite_master")}
            added = [entry for entry in schema if entry[1] not in ours]
            _refuse_tables(path, added)
            result = sync(new, sources, progress)
            with alone():
                # The new index takes the place of the old one, and of what was written into that
                # since the files were looked at.
                result.take(sync(new, sources))
                _carry_over(new, path, added, result)
                if finish:
                    finish(new, result)
                new.execute("pragma wal_checkpoint(truncate)")
                _swap_in(new, path, result)
    finally:
        clear_away(path)
    return result


def clear_away(path: Path) -> None:
    """Remove what a rebuild that was killed left beside the index at `path`."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        with contextlib.suppress(FileNotFoundError):
            os.remove(f"{_aside(path)}{suffix}")


def _aside(path: Path) -> Path:
    return path.with_name(f"{path.name}.rebuild")


def _survey(path: Path) -> tuple[int, list[tuple[str, str, str]]]:
    """The page size of the database at `path`, and `(type, name, sql)` of all that it holds.

    Of a damaged one nothing, because it will be kept.
    """
    with contextlib.suppress(NoIndex, Damaged), translated(path):
        with contextlib.closing(connect_any(path)) as old:
            schema = old.execute(
                "select type, name, sql from sqlite_master where substr(name, 1, 7) != 'sqlite_'"
            ).fetchall()
            if old.execute("pragma page_count").fetchone()[0]:
                # A copy into a database in WAL mode needs pages of the same size.
                return old.execute("pragma page_size").fetchone()[0], schema
    return PAGE_SIZE, []


def _refuse_tables(path: Path, added: Iterable[tuple[str, str, str]]) -> None:
    if tables := sorted(str(name) for type, name, _ in added if type == "table"):
        named = ", ".join(tables[:5]) + (", ..." if len(tables) > 5 else "")
        raise MemoryFault(
            f"{path} also holds tables that a rebuild would drop: {named}",
            "leave --rebuild out, or keep the index in a database of its own",
        )


def _carry_over(new, path: Path, added: Iterable[tuple[str, str, str]], result: SyncResult) -> None:
    """Take along what no file holds; a damaged index has nothing to give."""
    rows = []
    with contextlib.suppress(MemoryFault, sqlite3.Error):
        with contextlib.closing(connect_read(path)) as old:
            rows = old.execute(
                "select source, path, reads, last_read, support, contradict, gain, adopted, "
                "rejected from card_stats join cards on cards.id = card_stats.card_id"
            ).fetchall()
            vectors.carry_over(old, new)
    with transaction(new):
        new.executemany(
            "insert into card_stats (card_id, reads, last_read, support, contradict, gain, "
            "adopted, rejected) select id, ?3, ?4, ?5, ?6, ?7, ?8, ?9 from cards "
            "where source = ?1 and path = ?2",
            rows,
        )
    for type, name, sql in added:
        try:
            new.execute(sql)
        except sqlite3.Error as error:
            result.notes.append(f"the {type} {name} could not be made again: {error}")


def _swap_in(new, path: Path, result: SyncResult) -> None:
    """Copy the new index over the old, or set the old one aside when it is damaged."""
    try:
        with translated(path), contextlib.closing(connect_write(path)) as old:
            check = old.execute("pragma quick_check(1)").fetchone()[0]
            if check != "ok":
                raise Damaged(f"the index {path} is damaged ({check})")
            _copy(new, old)
            return
    except Damaged:
        kept = set_aside(path)
    result.notes.append(f"the damaged index was kept as {kept.name}")
    page_size = new.execute("pragma page_size").fetchone()[0]
    with translated(path), contextlib.closing(connect_write(path, page_size)) as old:
        _copy(new, old)


def _copy(new, old) -> None:
    """Copy the new index over another."""
    copy_into(new, old)
    # Else the log stays as large as the index for as long as another program has it open.
    old.execute("pragma wal_checkpoint(truncate)")


def set_aside(path: Path) -> Path:
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
