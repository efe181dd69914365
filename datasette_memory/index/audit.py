"""What `govern` asks of an index, in SQL: rows by source and path, and SQLite's own checks."""

import contextlib
import hashlib
import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path

from .connection import copy_into, sqlite3, transaction
from .functions import register
from .links import resolve
from .schema import (
    MARKS,
    create_triggers,
    drop_triggers,
    get_meta,
    is_in_step,
    rebuild_fts,
)

Key = tuple[bytes, bytes]
"""A source and a path, as bytes."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table as it can be compared across indexes: by source and path, never by row id.

    `sql` gives source, path and then `columns`, in the order of source and path. With `many`
    there may be several rows for a card, each of them told by its values.
    """

    name: str
    columns: tuple[str, ...]
    sql: str
    many: bool = False


def tables(connection) -> list[Table]:
    """What is compared of an index with the schema of `connection`: the cards first, and last
    what depends on cards and events."""
    cards = columns(connection, "cards")
    cards = tuple(name for name in cards if name not in ("id", "embedding", "source", "path"))
    stats = tuple(name for name in columns(connection, "card_stats") if name != "card_id")
    events = tuple(
        name for name in columns(connection, "events") if name not in ("id", "host", "line")
    )
    return [
        Table("cards", cards, f"select source, path, {', '.join(cards)} from cards order by 1, 2"),
        Table(
            "files",
            ("sha256", "fault", "card"),
            # Whether the row of the card is the one at this very path.
            "select files.source, files.path, files.sha256, files.fault, cards.id is not null "
            "from files left join cards on cards.id = files.card_id "
            "and cards.source = files.source and cards.path = files.path "
            "order by files.source, files.path",
        ),
        _hanging("tags", ("tag",), "tags.tag", many=True),
        _hanging(
            "links",
            ("type", "target", "origin", "target_source", "target_path"),
            "links.type, links.target, links.origin, other.source, other.path",
            "left join cards as other on other.id = links.target_id",
            many=True,
        ),
        _hanging("names", ("key", "rank"), "names.key, names.rank", many=True),
        # The row of an event has no source and path of its own: it is told by its id.
        Table(
            "events", events, f"select 'ledger', id, {', '.join(events)} from events order by id"
        ),
        _hanging("card_stats", stats, ", ".join(f"card_stats.{name}" for name in stats)),
    ]


def _hanging(
    name: str, columns: tuple[str, ...], values: str, join: str = "", many: bool = False
) -> Table:
    """A table that hangs on `cards`; its rows come along the index on source and path."""
    return Table(
        name,
        columns,
        f"select cards.source, cards.path, {values} from cards "
        f"cross join {name} on {name}.card_id = cards.id {join} "
        "order by cards.source, cards.path",
        many,
    )


def columns(connection, table: str) -> tuple[str, ...]:
    """The names of the columns; empty when there is no such table."""
    rows = connection.execute("select name from pragma_table_info(?)", (table,))
    return tuple(_text(name) for (name,) in rows)


Group = tuple[Key, list[tuple]]


def groups(connection, table: Table) -> Iterator[Group]:
    """The rows of a table by source and path, in that order; texts as bytes.

    `connection` gives texts as bytes; see `as_bytes`.
    """
    cursor = connection.execute(table.sql)
    for key, rows in itertools.groupby(cursor, key=itemgetter(0, 1)):
        yield (_bytes(key[0]), _bytes(key[1])), [tuple(row[2:]) for row in rows]


def merged(left: Iterator[Group], right: Iterator[Group]) -> Iterator[tuple[Key, list, list]]:
    """Both in one order: each key with the rows that either side has, or an empty list."""
    one, other = next(left, None), next(right, None)
    while one or other:
        if other is None or (one is not None and one[0] < other[0]):
            yield *one, []
            one = next(left, None)
        elif one is None or other[0] < one[0]:
            yield other[0], [], other[1]
            other = next(right, None)
        else:
            yield *one, other[1]
            one, other = next(left, None), next(right, None)


@contextlib.contextmanager
def as_bytes(*connections) -> Iterator[None]:
    """Texts as the bytes they are: those of a damaged index need not be UTF-8."""
    before = [connection.text_factory for connection in connections]
    try:
        for connection in connections:
            connection.text_factory = bytes
        yield
    finally:
        for connection, factory in zip(connections, before):
            connection.text_factory = factory


@contextlib.contextmanager
def snapshot(connection) -> Iterator[None]:
    """One state of the index for all that is read, whatever is written meanwhile."""
    if connection.in_transaction:
        yield
        return
    connection.execute("begin")
    try:
        yield
    finally:
        if connection.in_transaction:
            connection.execute("rollback")


def data_version(connection) -> int:
    """A number that is another when somebody else has written to the database."""
    return connection.execute("pragma data_version").fetchone()[0]


# The schema


def schema(connection) -> dict[tuple[str, str], str]:
    """`(type, name)` to SQL of all that the schema defines, but for what SQLite and sqlite-utils
    keep for themselves."""
    rows = connection.execute(
        "select type, name, sql from sqlite_master where name not like '%sqlite\\_%' escape '\\'"
    )
    return {(_text(type), _text(name)): _text(sql) for type, name, sql in rows}


def orphans(connection) -> dict[str, int]:
    """How many rows of each table refer to a row that is not there."""
    counted: Counter[str] = Counter()
    for table, *_ in connection.execute("pragma foreign_key_check"):
        counted[_text(table)] += 1
    return dict(counted)


def source_rows(connection) -> dict[str, tuple]:
    """`(root, exclude as JSON, max_bytes)` and the number of files of each source, by name."""
    rows = connection.execute(
        "select name, root, exclude, max_bytes, "
        "(select count(*) from files where files.source = sources.name) from sources"
    )
    return {
        _text(name): (_text(root), _text(out), size, files) for name, root, out, size, files in rows
    }


def unread_files(connection) -> list[tuple[str, str]]:
    """`(source, path)` of the files that were listed and could not be read."""
    rows = connection.execute(
        "select source, path from files where sha256 is null and fault is not null"
    )
    return [(_text(source), _text(path)) for source, path in rows]


def marks(connection) -> str | None:
    """How far the ledger is known to the index, as JSON."""
    found = get_meta(connection, MARKS)
    return found if found is None else _text(found)


def meta(connection, key: str) -> str | None:
    """A value of `meta`."""
    found = get_meta(connection, key)
    return found if found is None else _text(found)


# SQLite's own checks


@contextlib.contextmanager
def copied(connection, path: Path | str = ":memory:") -> Iterator["sqlite3.Connection"]:
    """A copy at `path` of the database behind `connection`, as it is at one moment, page by page.

    Works on a database that is only read, and while others write. Raises sqlite3.Error.
    """
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as target:
        copy_into(connection, target)
        yield target


def quick_check(connection) -> list[str]:
    """What SQLite finds wrong with the pages and rows; empty when all is well."""
    return _checked(connection, "quick_check")


def integrity_check(connection) -> list[str]:
    """The same, and whether the indexes hold what their tables hold."""
    return _checked(connection, "integrity_check")


def _checked(connection, pragma: str) -> list[str]:
    lines = [_text(line) for (line,) in connection.execute(f"pragma {pragma}(10)")]
    return [] if lines == ["ok"] else lines


def full_text_is_in_step(connection, exactly: bool = False) -> bool:
    """Whether `cards_fts` holds the tokens of `cards`, by FTS5's own check, which has to write:
    `connection` is that of a copy.

    That check adds up hashes, and one flipped bit in a hundred leaves the sum as it was. With
    `exactly` the full text is built again, and each token has to stand where it stood before.
    """
    register(connection)
    if not is_in_step(connection):
        return False
    if not exactly:
        return True
    before = _all_tokens(connection)
    with transaction(connection):
        rebuild_fts(connection)
    return _all_tokens(connection) == before


def _all_tokens(connection) -> bytes:
    """A hash over every token, with the row, column and place where it stands."""
    digest = hashlib.sha256()
    connection.execute(
        "create virtual table temp.every_token using fts5vocab(main, cards_fts, instance)"
    )
    rows = connection.execute("select term, doc, col, offset from temp.every_token")
    while part := rows.fetchmany(10_000):
        digest.update(repr(part).encode())
    connection.execute("drop table temp.every_token")
    return digest.digest()


# Mending


def forget_files(connection, keys: list[tuple[str, str]] | None) -> None:
    """Let the next sync read these files again, or with None all of them."""
    change = "update files set mtime_ns = -1, size = -1, sha256 = null"
    with transaction(connection):
        if keys is None:
            connection.execute(change)
        else:
            connection.executemany(f"{change} where source = ? and path = ?", keys)


def forget_ledger(connection) -> None:
    """Let the next projection read the whole ledger again."""
    with transaction(connection):
        connection.execute("delete from events")
        connection.execute("delete from meta where key = ?", (MARKS,))


def ghosts(connection) -> list[tuple[str, str]]:
    """`(source, path)` of the cards that no file stands for."""
    return connection.execute(
        "select source, path from cards where not exists (select 1 from files "
        "where files.source = cards.source and files.path = cards.path and card_id = cards.id)"
    ).fetchall()


def remove_orphans(connection) -> None:
    """Take out what hangs on no card, and work out all links anew."""
    there = "select id from cards"
    with transaction(connection):
        for table in ("tags", "links", "names", "card_stats"):
            connection.execute(f"delete from {table} where card_id not in ({there})")
        connection.execute(f"update links set target_id = null where target_id not in ({there})")
        connection.execute(f"update files set card_id = null where card_id not in ({there})")
        resolve(connection)


def renew_triggers(connection) -> None:
    """Make the triggers anew, whatever stands under their names."""
    with transaction(connection):
        drop_triggers(connection)
        create_triggers(connection)


def renew_full_text(connection) -> bool:
    """Build `cards_fts` again if it is not in step with the cards; whether that was done."""
    if is_in_step(connection):
        return False
    with transaction(connection):
        rebuild_fts(connection)
    return True


# What the doctor looks at


def count_cards(connection) -> int:
    """How many cards there are."""
    return connection.execute("select count(*) from cards").fetchone()[0]


def duplicate_refs(connection, limit: int) -> list[tuple[str, str, int, str, str]]:
    """`(source, ref, cards, first path, last path)` of references that several cards have."""
    return connection.execute(
        "select source, min(ref), count(*), min(path), max(path) from cards "
        "group by source, ref collate nocase having count(*) > 1 order by 1, 2 limit ?",
        (limit,),
    ).fetchall()


def faults(connection, limit: int) -> tuple[int, list[tuple[str, str, str]]]:
    """How many files have a fault, and `(source, path, fault)` of the first."""
    where = "from files where fault is not null"
    count = connection.execute(f"select count(*) {where}").fetchone()[0]
    sql = f"select source, path, fault {where} order by source, path limit ?"
    return count, connection.execute(sql, (limit,)).fetchall()


def known_files(connection, source: str) -> dict[str, tuple[int, int, str | None]]:
    """`{path: (mtime_ns, size, sha256)}` of a source; the paths of secret cards are hashed."""
    rows = connection.execute(
        "select path, mtime_ns, size, sha256 from files where source = ?", (source,)
    )
    return {path: (mtime_ns, size, sha256) for path, mtime_ns, size, sha256 in rows}


def raw_texts(connection) -> list[tuple[str, str, str]]:
    """`(source, ref, sha256)` of the texts that cards name as their evidence."""
    return connection.execute(
        "select source, ref, named.value from cards, json_each(cards.refs, '$.evidence') as named "
        "where named.type = 'text'"
    ).fetchall()


def last_import(connection) -> str | None:
    """When a source was last brought in, ISO 8601 in UTC."""
    return connection.execute("select max(imported) from sources").fetchone()[0]


def _text(value: object) -> str:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


def _bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else repr(value).encode()
