"""Cards of the index as candidates: all that is known of each, by one statement."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from .candidate import MAX_BODY, Candidate

if TYPE_CHECKING:
    from ..index.connection import sqlite3

# Names of a candidate's fields, and how each is read where it is not the column of that name.
_COLUMNS = (
    "id", "ref", "path", "source", "title", "kind", "project", "tags", "keywords", "aliases",
    "summary", "body", "length", "created", "updated", "valid_from", "valid_until", "ttl",
    "priority", "confidence", "sensitivity", "superseded_by", "version", "refs", "reads",
    "last_read", "support", "contradict", "gain",
)  # fmt: skip
_SQL = {
    "body": f"substr(cards.body, 1, {MAX_BODY})",
    "length": "length(cards.body)",
    **{name: f"coalesce({name}, 0)" for name in ("reads", "support", "contradict", "gain")},
    "last_read": "last_read",
}
_CARDS = f"""
select {", ".join(_SQL.get(name, f"cards.{name}") for name in _COLUMNS)}
from json_each(?) as wanted join cards on cards.id = wanted.value
left join card_stats on card_stats.card_id = cards.id order by wanted.key
"""


def load(
    connection: sqlite3.Connection, known: Mapping[int, Mapping[str, object]]
) -> list[Candidate]:
    """The cards with these row ids, in their order; an id that is none is left out.

    `known` has for each what the card itself does not tell: at least its `score`.
    """
    rows = connection.execute(_CARDS, [json.dumps(list(known))])
    return [_candidate(row, known[row[0]]) for row in rows]


def _candidate(row: tuple, known: Mapping[str, object]) -> Candidate:
    values = dict(zip(_COLUMNS, row))
    for name in ("tags", "keywords", "aliases"):
        values[name] = tuple(json.loads(values[name])) if values[name] != "[]" else ()
    values["refs"] = json.loads(values["refs"]) if values["refs"] != "{}" else {}
    return Candidate(**values, **known)
