"""Why a search did not give a card: what it lacks, what kept it out, and at which place it stands."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from ..index.schema import FTS_COLUMNS
from ..text.count import TermCounter
from ..text.importance import are_keywords
from ..text.query import Term, parse
from .filters import Filters
from .ranked import Ranked
from .searcher import DEFAULT_LIMIT, MAX_LIMIT, clamp
from .sqlite import WHOLE, SQLiteSearcher

if TYPE_CHECKING:
    from ..index.connection import sqlite3

_TEXT = (
    f"select {', '.join(sql.format(row='') for sql in FTS_COLUMNS.values())}, superseded_by "
    "from cards where id = ?"
)

_FAULT = "select fault from files where card_id = ? and fault is not null"

# A filter as the command line has it.
_OPTIONS = {
    "tags": "--tag",
    "exclude_tags": "--exclude-tag",
    "sensitivities": "--sensitivity",
    "as_of": "--as-of",
}


def why_not(
    connection: sqlite3.Connection,
    query: str,
    id: int,
    *,
    filters: Filters = Filters(),
    limit: int = DEFAULT_LIMIT,
    superseded: bool = False,
) -> dict[str, Any]:
    """Why the search for `query` does not give the card of the index with this row id.

    `{found, reason, answer, place, ranked, limit, tier, coverage, score, terms, fault, notes}`:
    `answer` is one sentence, `reason` its code; `place` is that in the whole ranking, from 1, of `ranked` cards,
    or None where the card is not ranked; `terms` say of each what it is worth and whether the card
    holds it: `held` is true, false, or "prefix" for the beginning of a word. Raises MemoryFault for
    a filter that cannot be understood.
    """
    limit = clamp(limit)
    searcher = SQLiteSearcher(connection)
    terms = parse(query)
    *texts, replaced_by = connection.execute(_TEXT, [id]).fetchone()
    exact = TermCounter(terms).count(*texts)
    longer = TermCounter(terms, range(len(terms))).count(*texts)
    held = [True if count else "prefix" if more else False for count, more in zip(exact, longer)]
    told: dict[str, Any] = {
        "found": False,
        "reason": "",
        "answer": "",
        "place": None,
        "ranked": 0,
        "limit": limit,
        "tier": None,
        "coverage": round(sum(map(bool, exact)) / len(terms), 3) if terms else 0.0,
        "score": None,
        "terms": [{"term": term.name, "held": has} for term, has in zip(terms, held)],
        "fault": _fault(connection, id),
        "notes": [],
    }
    if not terms:
        return told | _says("no-terms", "The query holds no letter or digit to search for.")
    worth = searcher.worth(terms)
    for one, value in zip(told["terms"], worth):
        one["worth"] = round(value, 4)
    whole = searcher.ranking(query, filters, max(limit, WHOLE))
    ranked = [one for one in whole.cards if superseded or one.superseded_by is None or one.id == id]
    told["ranked"] = len(ranked)
    hits = searcher.search(query, limit=limit, filters=filters, superseded=superseded).hits
    given = [hit.id for hit in hits]
    if id in given:
        return told | _found(given.index(id) + 1, hits[given.index(id)])
    if kept_out := _keeps_out(connection, id, filters):
        return told | _says("filter", f"It does not meet {', '.join(kept_out)}.")
    places = {one.id: place for place, one in enumerate(ranked, 1)}
    if id in places:
        told |= _place(places[id], ranked[places[id] - 1])
    if replaced_by and not superseded:
        there = f" It would be at place {told['place']}." if told["place"] else ""
        return told | _says(
            "superseded",
            f"It is superseded by {replaced_by}, and left out (--superseded lets it in).{there}",
        )
    if told["place"]:
        more = f"-n {told['place']} shows it" if told["place"] <= MAX_LIMIT else (
            f"no search gives more than {MAX_LIMIT}: ask for what it alone holds"
        )  # fmt: skip
        return told | _says(
            "limit",
            f"It is ranked, at place {told['place']} of {len(ranked)}, and the search gives "
            f"{limit}: {more}.",
        )
    alone = searcher.alone(query, id)
    if alone:
        told |= {"tier": alone.tier, "score": round(alone.score, 4)}
    if whole.cut_short and any(held):
        return told | _says(
            "cut-short", "The search took long and was cut before this card was looked at."
        )
    return told | _unranked(terms, held, ranked, alone)


def _unranked(
    terms: tuple[Term, ...], held: list, ranked: list[Ranked], alone: Ranked | None
) -> dict[str, Any]:
    """What is said of a card that the search did not rank."""
    missing = [term.name for term, has in zip(terms, held) if has is not True]
    lacks = _listed(missing)
    if not any(held):
        none = f"holds none of the {len(terms)} terms ({lacks})"
        return _says(
            "no-term-held", f"It {none if len(terms) > 1 else f'does not hold the term {lacks}'}."
        )
    if ranked and ranked[0].tier.startswith("all") and (are_keywords(terms) or not missing):
        cards = "1 card holds" if len(ranked) == 1 else f"{len(ranked)} cards hold"
        if missing:
            only = [term.name for term, has in zip(terms, held) if has == "prefix"]
            but = f"; of {_listed(only)} it holds only the beginning" if only else ""
            return _says(
                "keywords",
                f"{cards} all keywords, and then no other card is given: this one lacks "
                f"{lacks}{but}.",
            )
        return _says(
            "as-typed",
            f"It holds every keyword, but {cards} them as they were typed, and those are given.",
        )
    if alone is None:
        return _says(
            "prefix-only",
            f"It holds {lacks} only as the beginning of a word, and enough cards hold more.",
        )
    better = sum(one.score >= alone.score for one in ranked)
    return _says(
        "not-read",
        f"It was not looked at: only the {len(ranked)} cards that hold most of what is rare are. "
        f"By its score it would be at place {better + 1}.",
    ) | {"place": None}


def _found(place: int, hit) -> dict[str, Any]:
    return {
        "found": True,
        "place": place,
        "tier": hit.matched,
        "score": round(hit.score, 4),
        "coverage": round(hit.coverage, 3),
        **_says("found", f"It is found, at place {place} ({hit.matched})."),
    }


def _place(place: int, one: Ranked) -> dict[str, Any]:
    return {"place": place, "tier": one.tier, "score": round(one.score, 4)}


def _says(reason: str, answer: str) -> dict[str, str]:
    return {"reason": reason, "answer": answer}


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:12])
    return shown + (f" and {len(names) - 12} more" if len(names) > 12 else "")


def _fault(connection: sqlite3.Connection, id: int) -> str | None:
    row = connection.execute(_FAULT, [id]).fetchone()
    return row[0] if row else None


def _keeps_out(connection: sqlite3.Connection, id: int, filters: Filters) -> list[str]:
    """The filters that a card does not meet, as the command line has them."""
    found = []
    for field in fields(Filters):
        asked = getattr(filters, field.name)
        if asked == field.default:
            continue
        alone = Filters(**{field.name: asked})
        conditions, parameters = alone.sql()
        row = connection.execute(
            f"select 1 from cards where id = ? and {conditions}", [id, *parameters]
        ).fetchone()
        if row is None:
            option = _OPTIONS.get(field.name, f"--{field.name}")
            values = asked if isinstance(asked, tuple) else [asked]
            found.append(" ".join(f"{option} {value}" for value in values) or option)
    return found
