"""Which cards hang together by their links."""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..vault.card import Card
from .links import BEST, hashed_name, link_keys
from .project import links_at

#: How far a walk goes at the most, and how many cards it gives.
MAX_DEPTH = 5
MAX_CARDS = 200


@dataclass(frozen=True, slots=True)
class Edge:
    """A link between two cards of the index, by row id."""

    source: int
    type: str
    target: int


@dataclass(frozen=True, slots=True)
class Related:
    """A card that was reached, over how many links, and by the first of them that led to it.

    `also` are the other links between it and `via`, as `(type, outgoing)`.
    """

    id: int
    depth: int
    type: str
    outgoing: bool
    via: int
    also: tuple[tuple[str, bool], ...] = ()


def walk(connection, start: int, depth: int, edges: Iterable[Edge] | None = None) -> list[Related]:
    """The cards around `start`, nearest first, at most `MAX_DEPTH` links away.

    `edges` stand for the links of the index when they are given.
    """
    depth = max(1, min(MAX_DEPTH, depth))
    around = _table(edges) if edges is not None else None
    found: dict[int, Related] = {}
    queue = deque([(start, 0)])
    while queue and len(found) < MAX_CARDS:
        id, distance = queue.popleft()
        if distance == depth:
            continue
        links = around.get(id, []) if around is not None else _links(connection, id)
        ways: dict[int, list[tuple[str, bool]]] = {}
        for type, other, outgoing in links:
            ways.setdefault(other, []).append((type, outgoing))
        for other, ((type, outgoing), *also) in ways.items():
            if other != start and other not in found and len(found) < MAX_CARDS:
                found[other] = Related(other, distance + 1, type, outgoing, id, tuple(also))
                queue.append((other, distance + 1))
    return list(found.values())


_OLDER = """
with recursive older (id) as (
    select id from cards where ref = ?1
    union
    select links.target_id from older join links on links.card_id = older.id
    where links.type = 'supersedes' and links.target_id is not null
    union
    select links.card_id from older join links on links.target_id = older.id
    where links.type = 'superseded_by'
)
select exists (select 1 from older join cards on cards.id = older.id where cards.ref = ?2)
"""


def replaces(connection, newer: str, older: str) -> bool:
    """Whether one card replaces another, itself or by others between them; both by ref."""
    return bool(connection.execute(_OLDER, (newer, older)).fetchone()[0])


def written_edges(connection) -> list[Edge]:
    """Every link that stands in a card and has a target."""
    rows = connection.execute(
        "select card_id, type, target_id from links "
        "where target_id is not null and origin != 'ledger'"
    )
    return [Edge(*row) for row in rows]


def ledger_edges(connection, moment: str) -> list[Edge]:
    """The links that the ledger held at `moment`, a time as events have it."""
    edges = []
    for (source, path), links in links_at(connection, moment).items():
        row = connection.execute(
            "select id from cards where source = ? and path = ?", (source, path)
        ).fetchone()
        if row:
            edges += _edges(connection, row[0], source, path, links)
    return edges


def all_edges(connection) -> list[Edge]:
    """Every link that has a target, wherever it is written."""
    rows = connection.execute(
        "select card_id, type, target_id from links where target_id is not null"
    )
    return [Edge(*row) for row in rows]


def edges_outside(connection, card: Mapping[str, Any]) -> list[Edge]:
    """The links between the index and a card that it does not hold, as `read.card` gives that."""
    written = [(one["type"], one["target"]) for one in card["relations"]]
    rows = connection.execute(
        "select card_id, type from links where key = ? and target_id is null",
        (hashed_name(card["ref"]),),
    )
    return [
        *_edges(connection, card["id"], card["source"], card["path"], written),
        *(Edge(id, type, card["id"]) for id, type in rows),
    ]


def edges_of(connection, card: Card, id: int, source: str, path: str) -> list[Edge]:
    """The links that a text of a card makes with the cards of the index."""
    written = [(relation.type, relation.target) for relation in card.relations]
    if card.superseded_by:
        written.append(("superseded_by", card.superseded_by))
    written += [("refers_to", target) for target in card.wikilinks]
    return _edges(connection, id, source, path, written)


def _edges(
    connection, id: int, source: str, path: str, links: Iterable[tuple[str, str]]
) -> list[Edge]:
    edges = []
    for type, target in links:
        for key in filter(None, link_keys(target, path)):
            row = connection.execute(BEST, (key, source)).fetchone()
            if row:
                edges.append(Edge(id, type, row[0]))
                break
    return edges


def _links(connection, id: int) -> list[tuple[str, int, bool]]:
    rows = connection.execute(
        "select type, target_id, 1 from links where card_id = ?1 and target_id is not null "
        "union select type, card_id, 0 from links where target_id = ?1 order by 3 desc, 1, 2",
        (id,),
    )
    return [(type, other, bool(outgoing)) for type, other, outgoing in rows]


def _table(edges: Iterable[Edge]) -> dict[int, list[tuple[str, int, bool]]]:
    table: dict[int, set[tuple[bool, str, int]]] = {}
    for edge in edges:
        table.setdefault(edge.source, set()).add((False, edge.type, edge.target))
        table.setdefault(edge.target, set()).add((True, edge.type, edge.source))
    return {
        id: [(type, other, not incoming) for incoming, type, other in sorted(links)]
        for id, links in table.items()
    }
