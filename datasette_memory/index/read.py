"""Reading cards and figures from the index: the SQL behind `show`, `stats` and `bench`."""

import json
import os
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from .schema import FTS_COLUMNS

_COLUMNS = (
    "id, ref, title, kind, project, updated, created, superseded_by, summary, tags, keywords, "
    "aliases, source, path, confidence, sensitivity, priority, ttl, valid_from, valid_until, "
    "version, agent, session, refs, extra, body"
)

_RELATED = """
select distinct links.type, coalesce(cards.ref, links.target), cards.title from links
left join cards on cards.id = links.target_id where links.card_id = ? order by links.type, 2
"""


@dataclass(frozen=True, slots=True)
class Stats:
    """Figures of an index; `by_*` go from name to number of cards."""

    cards: int
    by_kind: dict[str, int]
    by_source: dict[str, int]
    by_project: dict[str, int]
    tags: int
    links: int
    broken_links: int
    superseded: int
    faults: int
    updated_last: str | None
    synced_last: str | None
    index_bytes: int

    def to_dict(self) -> dict[str, object]:
        """The object that every surface returns."""
        return {name: getattr(self, name) for name in self.__slots__}


def storable(text: str) -> str:
    """`text` without what SQLite cannot take: NUL and lone surrogates."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")


def find_cards(connection, reference: str, roots: Iterable[tuple[str, str]] = ()) -> list[int]:
    """The ids of the cards that `reference` means; empty if none.

    Looked for in this order, and the first that answers decides: ref, row id, path, exact title.
    Within one source a ref means the card that was created first. A path is relative to its
    source, has the source's name in front, or is one of the file system under a root in `roots`.
    """
    reference = storable(reference)
    rows = connection.execute(
        "select id, source from cards where ref = ? collate nocase "
        "order by source, julianday(created) is null, julianday(created), path",
        [reference],
    ).fetchall()
    first: dict[str, int] = {}
    for id, source in rows:
        first.setdefault(source, id)
    if first:
        return list(first.values())
    if reference.isascii() and reference.isdigit() and len(reference) < 19:
        if rows := connection.execute("select id from cards where id = ?", [int(reference)]):
            if found := [id for (id,) in rows]:
                return found
    for source, path in _paths(reference, roots):
        sql = "select id from cards where path = ?" + (" and source = ?" if source else "")
        found = [id for (id,) in connection.execute(sql, [path, source] if source else [path])]
        if found:
            return found
    sql = "select id from cards where title = ? collate nocase order by source, path"
    return [id for (id,) in connection.execute(sql, [reference])]


def _paths(reference: str, roots: Iterable[tuple[str, str]]) -> list[tuple[str | None, str]]:
    """The ways in which a reference may be a path, as `(source or None, path)`."""
    posix = reference.replace("\\", "/").removeprefix("./")
    ways: list[tuple[str | None, str]] = [(None, posix)]
    source, slash, rest = posix.partition("/")
    if slash:
        ways.append((source, rest))
    # As it is written, and where links lead: the root of a source is without links.
    for place in _places(reference):
        for name, root in roots:
            if place == root:
                ways.append((name, Path(place).name))
            elif Path(place).is_relative_to(root):
                ways.append((name, Path(place).relative_to(root).as_posix()))
    return [(source, unicodedata.normalize("NFC", path)) for source, path in ways]


def _places(reference: str) -> list[str]:
    """Where in the file system a reference may lie; nowhere if its names cannot be there."""
    try:
        places = os.path.abspath(reference), os.path.realpath(reference)
    except (OSError, ValueError):
        return []
    return list(dict.fromkeys(places))


def card(connection, id: int) -> dict[str, object]:
    """The row of a card with this id, as stored, with `relations`: `{type, target, title}`."""
    cursor = connection.execute(f"select {_COLUMNS} from cards where id = ?", [id])
    row = cursor.fetchone()
    found = {column[0]: value for column, value in zip(cursor.description, row)}
    found["relations"] = [
        {"type": type, "target": target, "title": title}
        for type, target, title in connection.execute(_RELATED, [id])
    ]
    return found


def existing(connection, ids: Iterable[int]) -> list[int]:
    """Those of `ids` that are cards, in their order."""
    sql = "select 1 from cards where id = ?"
    return [id for id in ids if connection.execute(sql, [id]).fetchone()]


def title(connection, reference: str) -> str | None:
    """The title of the card that a reference means; None if it means none, or several."""
    ids = find_cards(connection, reference)
    if len(ids) != 1:
        return None
    return connection.execute("select title from cards where id = ?", ids).fetchone()[0]


def titles(connection, ids: Iterable[int]) -> list[str]:
    """`ref  source/path  title` of each card, to choose from."""
    rows = []
    for id in ids:
        sql = "select ref, source || '/' || path, title from cards where id = ?"
        rows.append("  ".join(connection.execute(sql, [id]).fetchone()))
    return rows


def is_replaced(connection, source: str, path: str) -> bool | None:
    """Whether another card replaced the one at this place; None when there is no such card."""
    sql = "select superseded_by is not null from cards where source = ? and path = ?"
    row = connection.execute(sql, [storable(source), storable(path)]).fetchone()
    return bool(row[0]) if row else None


class Searched(NamedTuple):
    """What a search looks at in a card; `rest` is all but the title."""

    source: str
    path: str
    title: str
    tags: list[str]
    rest: str


def searched(connection) -> Iterator[Searched]:
    """What a search looks at in every card that no other replaced, in the order of their places."""
    title, *others = (sql.format(row="") for sql in FTS_COLUMNS.values())
    rest = " || char(10) || ".join(others)
    sql = (
        f"select source, path, {title}, tags, {rest} from cards where superseded_by is null "
        "order by source, path"
    )
    for source, path, title, tags, rest in connection.execute(sql):
        yield Searched(source, path, title, json.loads(tags), rest)


def has_secret(connection) -> bool:
    """Whether there are cards that the index holds nothing of but hashes."""
    sql = "select exists (select 1 from files where card_id is null and sha256 is not null)"
    return bool(connection.execute(sql).fetchone()[0])


def count(connection) -> int:
    """The number of cards."""
    return connection.execute("select count(*) from cards").fetchone()[0]


def roots(connection) -> list[tuple[str, str]]:
    """The `(name, root)` of each source in the index."""
    return connection.execute("select name, root from sources").fetchall()


def stats(connection, path: Path) -> Stats:
    """The figures of the index at `path`."""

    def one(sql: str):
        return connection.execute(sql).fetchone()[0]

    def groups(column: str) -> dict[str, int]:
        sql = (
            f"select {column}, count(*) from cards where {column} is not null "
            f"group by {column} order by 2 desc, 1"
        )
        return dict(connection.execute(sql).fetchall())

    return Stats(
        cards=count(connection),
        by_kind=groups("kind"),
        by_source=groups("source"),
        by_project=groups("project"),
        tags=one("select count(distinct tag) from tags"),
        links=one("select count(*) from links"),
        broken_links=one("select count(*) from broken_links"),
        superseded=one("select count(*) from cards_superseded"),
        faults=one("select count(*) from file_faults"),
        updated_last=one(
            "select (select updated from cards order by julianday(updated) desc, updated limit 1)"
        ),
        synced_last=one("select max(imported) from sources"),
        index_bytes=path.stat().st_size if path.exists() else 0,
    )


def record_read(connection, id: int, moment: str) -> None:
    """Count a read of the card; whoever asks has to do without if the index cannot be written."""
    connection.execute(
        "insert into card_stats (card_id, reads, last_read) values (?, 1, ?) "
        "on conflict (card_id) do update set reads = reads + 1, last_read = excluded.last_read",
        [id, moment],
    )
