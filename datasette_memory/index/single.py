"""One card into the index, or out of it, at a cost that does not grow with the index."""

import hashlib
import time

from ..vault.card import Card, parse_card
from . import numbers, seen
from .connection import transaction
from .links import card_names, resolve_around
from .rows import INSERT_LINK, card_row, file_time, link_rows, secret_path, tag_rows, upsert_sql
from .schema import merge_now, set_meta


def index_card(
    connection,
    source: str,
    path: str,
    data: bytes,
    mtime_ns: int,
    ends: dict[str, int] | None = None,
    card: Card | None = None,
) -> int | None:
    """Put the file at `path`, whose bytes are `data`, into the index; gives the row id.

    A secret card leaves the index, with every word of it, and None is given. The triggers of
    `cards` keep the full-text part in step. `ends` is how far the index follows the ledger with
    this; see `seen`. `card` is what `data` reads as, if the caller has read it already.
    """
    card = parse_card(data, path) if card is None else card
    hidden = False
    with transaction(connection):
        row = connection.execute(
            "select id from cards where source = ? and path = ?", (source, path)
        ).fetchone()
        id = row and row[0]
        old_keys = _keys(connection, id)
        if card.sensitivity == "secret":
            if id is not None:
                hidden = True
                _delete(connection, id, source, path)
                # FTS5 keeps the words of a deleted row until it merges.
                merge_now(connection)
            id = None
        else:
            if id is None:
                id = connection.execute("select coalesce(max(id), 0) + 1 from cards").fetchone()[0]
            _write(connection, card, id, source, path, mtime_ns)
        _write_file(connection, card, id, source, path, data, mtime_ns)
        affected = [number for number in (id, row and row[0]) if number is not None]
        resolve_around(connection, affected, {*old_keys, *_keys(connection, id)})
        if card.ref:
            # No table holds that of a secret card, and yet nobody may get it again.
            numbers.keep(connection, [card.ref])
        _finish(connection, ends)
    if hidden:
        connection.execute("pragma wal_checkpoint(truncate)")
    return id


def unindex_card(connection, source: str, path: str, ends: dict[str, int] | None = None) -> None:
    """Take the card at `path` out of the index. `ends` as for `index_card`."""
    with transaction(connection):
        row = connection.execute(
            "select id from cards where source = ? and path = ?", (source, path)
        ).fetchone()
        keys = _keys(connection, row and row[0])
        if row:
            _delete(connection, row[0], source, path)
        connection.execute(
            "delete from files where source = ? and path in (?, ?)",
            (source, path, secret_path(source, path)),
        )
        resolve_around(connection, [], keys)
        _finish(connection, ends)


def _finish(connection, ends: dict[str, int] | None) -> None:
    set_meta(connection, "changed", file_time(time.time_ns()))
    if ends is not None:
        seen.follow(connection, ends)


def _keys(connection, id: int | None) -> set[int]:
    if id is None:
        return set()
    return {key for (key,) in connection.execute("select key from names where card_id = ?", (id,))}


def _delete(connection, id: int, source: str, path: str) -> None:
    # Links to it are set free by their foreign key; they may find another target afterwards.
    connection.execute("delete from cards where id = ?", (id,))
    connection.execute("delete from files where source = ? and path = ?", (source, path))


def _write(connection, card: Card, id: int, source: str, path: str, mtime_ns: int) -> None:
    row = card_row(card, id, source, path, mtime_ns)
    connection.execute(upsert_sql(row), row)
    for table in ("tags", "names"):
        connection.execute(f"delete from {table} where card_id = ?", (id,))
    connection.execute("delete from links where card_id = ? and origin != 'ledger'", (id,))
    connection.executemany("insert or ignore into tags values (?, ?)", tag_rows(card, id))
    connection.executemany(INSERT_LINK, link_rows(card, id, path))
    connection.executemany(
        "insert into names (key, rank, card_id) values (?, ?, ?)",
        card_names(id, str(row["ref"]), path, card.title, card.aliases),
    )


def _write_file(
    connection, card: Card, id: int | None, source: str, path: str, data: bytes, mtime_ns: int
) -> None:
    """The row of `files`; its size is left open, so that the next sync looks at the file once."""
    hashed = secret_path(source, path)
    connection.execute(
        "delete from files where source = ? and path in (?, ?)", (source, path, hashed)
    )
    connection.execute(
        "insert into files (source, path, mtime_ns, size, sha256, card_id, fault) "
        "values (?, ?, ?, -1, ?, ?, ?)",
        (
            source,
            hashed if id is None else path,
            mtime_ns,
            hashlib.sha256(data).hexdigest(),
            id,
            None if id is None else "; ".join(card.faults) or None,
        ),
    )
