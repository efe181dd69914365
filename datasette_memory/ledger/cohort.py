"""What an `inject` event tells: a cohort, which is the cards that an agent was given at once.

Cards are told by their places and versions; no word of them or of the question is kept. An event of
a later version, or one that somebody else wrote, is understood as far as it can be.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .events import MAX_VALUE, cleaned, new_id

VERDICTS = ("adopted", "rejected", "ignored")

#: Bytes of the cards of one event. The rest of a line, with whoever did it, takes much less than
#: what is then left of `events.MAX_LINE`.
MAX_CARDS_BYTES = 32_768

#: So many reasons for leaving cards out are kept; the firewall has about twenty.
_MAX_CODES = 64
_MAX_CODE = 64


@dataclass(frozen=True, slots=True)
class Given:
    """A card as it was given: its place, its version, and how much of it (`view`) at what price.

    `mark` tells its text from another one, also where nobody counts versions. `path` and `source`
    are None where they were too long to be kept.
    """

    ref: str
    source: str | None
    path: str | None
    view: str = "detail"
    tokens: int = 0
    version: int = 1
    mark: str | None = None


@dataclass(frozen=True, slots=True)
class Cohort:
    """The cards that were given at once. `tokens` is the price of the whole, `left_out` counts by
    reason what was not given, `more` the cards for which the event had no room."""

    id: str
    cards: tuple[Given, ...]
    tokens: int = 0
    budget: int = 0
    left_out: Mapping[str, int] | None = None
    project: str | None = None
    more: int = 0


def new_cohort() -> str:
    """16 characters that sort by time: those of the time, and 30 random bits."""
    return new_id()[:16]


def cohort_data(cohort: Cohort) -> dict[str, Any]:
    """The data of its `inject` event, which fits into a line of the ledger whatever is in it."""
    cards, more = _fitting(cohort.cards)
    codes = [
        (code, count)
        for code, count in (cohort.left_out or {}).items()
        if 0 < len(code) <= _MAX_CODE
    ]
    data: dict[str, Any] = {
        "cohort": cohort.id,
        "cards": cards,
        "tokens": cohort.tokens,
        "budget": cohort.budget,
        "left_out": dict(codes[:_MAX_CODES]),
        "project": _short(cohort.project),
    }
    return data | {"more": more + cohort.more} if more + cohort.more else data


def parse_cohort(data: Mapping[str, Any]) -> Cohort | None:
    """The cohort of an event's data; None when it names none. What is not understood is passed
    over, a card without a ref too."""
    id = data.get("cohort")
    if not isinstance(id, str) or not id:
        return None
    left_out = data.get("left_out")
    return Cohort(
        id,
        tuple(_cards(data.get("cards"))),
        _count(data.get("tokens")),
        _count(data.get("budget")),
        {
            code: count
            for code, count in (left_out if isinstance(left_out, dict) else {}).items()
            if _count(count)
        },
        _text(data.get("project")),
        _count(data.get("more")),
    )


def _fitting(cards: Iterable[Given]) -> tuple[list[dict[str, Any]], int]:
    """As many cards as there is room for, the first ones, and how many more there are."""
    rows: list[dict[str, Any]] = []
    more = 0
    room = MAX_CARDS_BYTES
    for card in cards:
        row = {
            "ref": _short(card.ref),
            "source": _short(card.source),
            "path": _short(card.path),
            "view": card.view,
            "tokens": card.tokens,
            "version": card.version,
        }
        if card.mark is not None:
            row["mark"] = card.mark
        line = json.dumps(row, ensure_ascii=False, separators=(",", ":"))
        room -= len(line.encode("utf-8", "surrogatepass")) + 1
        if more or room < 0 or not row["ref"]:
            more += 1
        else:
            rows.append(row)
    return rows, more


def _cards(rows: object) -> Iterator[Given]:
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict) and (ref := _text(row.get("ref"))):
            yield Given(
                ref,
                _text(row.get("source")),
                _text(row.get("path")),
                _text(row.get("view")) or "detail",
                _count(row.get("tokens")),
                _count(row.get("version")) or 1,
                _text(row.get("mark")),
            )


def _short(value: str | None) -> str | None:
    """`value` as a ledger keeps it, None when it is longer than that."""
    return cleaned(value) if value is not None and len(value) <= MAX_VALUE else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _count(value: object) -> int:
    """A number of something; 0 for what is none."""
    return value if type(value) is int and value > 0 else 0
