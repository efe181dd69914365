"""The cards of a cohort where they are now, the verdicts on them, and what those come to."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ..ledger.cohort import Given
from .connection import transaction
from .given import Told, find_cohort
from .project import Place, tally, walk
from .rows import foreign_ref
from .tail import Tail

_BY_REF = "select id, ref, source, path, title from cards where ref = ? and source = ?"
_BY_PLACE = "select id, ref, source, path, title from cards where path = ? and source = ?"

_SET = """
insert into card_stats (card_id, support, contradict, gain, adopted, rejected)
select id, ?3, ?4, ?5, ?6, ?7 from cards where source = ?1 and path = ?2
on conflict (card_id) do update set support = excluded.support, contradict = excluded.contradict,
gain = excluded.gain, adopted = excluded.adopted, rejected = excluded.rejected
"""
# Without a read or a verdict that counts a card has no row.
_DROP = """
delete from card_stats where card_id = (select id from cards where source = ? and path = ?)
and reads = 0 and (support, contradict, gain, adopted, rejected) = (0, 0, 0, 0, 0)
"""


@dataclass(frozen=True, slots=True)
class Member:
    """A card of a cohort: as it was given, and where it is now, with the verdict so far.

    `id`, `ref`, `source`, `path` and `title` are None when the index has it no more.
    """

    given: Given
    id: int | None = None
    ref: str | None = None
    source: str | None = None
    path: str | None = None
    title: str | None = None
    verdict: str | None = None


def members(connection, ledger: Path, cohort: str) -> tuple[Told, list[Member]] | None:
    """The cohort with this id and its cards, in their order; None when no event tells of it."""
    tail = Tail(connection, ledger, limit=None)
    told = find_cohort(connection, tail, cohort)
    if told is None:
        return None
    cards = told.cohort.cards
    marks = [
        (told.t, told.file, told.line, "mark", card.source, card.path, str(number))
        for number, card in enumerate(cards)
        if card.source is not None and card.path is not None
    ]
    state = walk(connection, tail, marks)
    places = {number: place for place, numbers in state.marks.items() for number in numbers}
    found = []
    for number, card in enumerate(cards):
        row = _present(connection, card, places.get(number))
        verdict = state.verdicts.get((row[2], row[3]), {}).get(cohort) if row else None
        found.append(Member(card, *row, verdict) if row else Member(card))
    return told, found


def _present(connection, card: Given, place: Place | None) -> tuple | None:
    """Id, ref, source, path and title of a card that was given; None when it has gone.

    A ref that stands in a card is never given to another; where two have it, or where it is made of
    the place itself, the place tells what is meant.
    """
    rows = connection.execute(_BY_REF, [card.ref, card.source]).fetchall()
    if card.path is not None and card.ref == foreign_ref(str(card.source), card.path):
        rows = []
    if len(rows) != 1 and place is not None:
        rows = connection.execute(_BY_PLACE, [place[1], place[0]]).fetchall()
    return rows[0] if len(rows) == 1 else None


def count(connection, ledger: Path, places: Iterable[Place]) -> None:
    """Bring the figures of the cards at `places` in step with the verdicts in the ledger, as the
    next projection will, but for reads."""
    with transaction(connection):
        verdicts = walk(connection, Tail(connection, ledger, limit=None)).verdicts
        for place in places:
            connection.execute(_SET, [*place, *tally(verdicts.get(place, {}).values())])
            connection.execute(_DROP, place)
