"""Which cards are worth a look: those that hold the rarest terms of a query.

Asking for any of forty common terms makes FTS5 rank half of all cards. The rare ones decide: they
are taken until their cards are `BUDGET` in all, and of those the ones that hold most of what is
rare are read.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ..text.query import Term
from .scoring import idf

#: So many cards of single terms are looked through, and so many cards are read.
BUDGET = 20_000
CANDIDATES = 120

#: With so few terms FTS5's own bm25() chooses well, and costs little.
FEW = 4

#: So many cards are read for a query of so few terms.
FEW_CANDIDATES = 50

# To know how common a term is, so many of its cards are counted; the rest follows from how far
# apart they stand.
_PROBE = 400


@dataclass(frozen=True, slots=True)
class Reach:
    """What a term reaches: by `match`, an FTS5 expression, about `cards` cards. `prefix` says that
    no card holds the term itself, and it was asked as a prefix."""

    match: str
    cards: int
    prefix: bool
    ids: tuple[int, ...] | None
    """All of the cards, where they are few."""


class Recall:
    """Looks for cards in one index, under `conditions` on `cards` with their `parameters`."""

    def __init__(self, connection, conditions: str, parameters: Sequence[object]) -> None:
        self._connection = connection
        filtered = conditions != "1"
        source = "cards_fts join cards on cards.id = cards_fts.rowid" if filtered else "cards_fts"
        self._parameters = list(parameters) if filtered else []
        self._ids = (
            f"select cards_fts.rowid from {source} where cards_fts match ? and {conditions} limit ?"
        )
        self._ranked = (
            f"select cards_fts.rowid from {source} "
            f"where cards_fts match ? and {conditions} order by rank limit ?"
        )
        self._last = connection.execute("select max(id) from cards").fetchone()[0] or 0

    def reach(self, term: Term) -> Reach:
        """What a term reaches; as a prefix when it reaches nothing by itself."""
        match = term.expression(prefix=False)
        ids, cards = self._probe(match)
        if not cards and term.extensible:
            return self.reach_prefix(term)
        return Reach(match, cards, False, ids)

    def reach_prefix(self, term: Term) -> Reach:
        """What a term reaches as a prefix."""
        match = term.expression(prefix=True)
        ids, cards = self._probe(match)
        return Reach(match, cards, True, ids)

    def candidates(self, reaches: Sequence[Reach], worth: Sequence[float]) -> list[int]:
        """The cards to read, the most promising first; `worth` is what each term is worth."""
        order = sorted(
            (number for number, reach in enumerate(reaches) if reach.cards),
            key=lambda number: (-worth[number], number),
        )
        chosen: list[int] = []
        budget = BUDGET
        for number in order:
            if not chosen or reaches[number].cards <= budget:
                chosen.append(number)
                budget -= reaches[number].cards
        if len(chosen) <= FEW:
            match = " OR ".join(reaches[number].match for number in chosen)
            count = FEW_CANDIDATES if len(reaches) <= FEW else CANDIDATES
            return self._fetch(self._ranked, match, count) if match else []
        found: dict[int, float] = {}
        for number in chosen:
            ids = reaches[number].ids
            if ids is None or self._parameters:
                ids = self._fetch(self._ids, reaches[number].match, BUDGET)
            value = worth[number]
            if found:
                for id in ids:
                    found[id] = found.get(id, 0.0) + value
            else:
                found = dict.fromkeys(ids, value)
        if not found:
            return []
        least = sorted(found.values(), reverse=True)[:CANDIDATES][-1]
        best = sorted((-value, id) for id, value in found.items() if value >= least)
        return [id for _, id in best[:CANDIDATES]]

    def _fetch(self, statement: str, match: str, count: int) -> list[int]:
        rows = self._connection.execute(statement, [match, *self._parameters, count])
        return [id for (id,) in rows]

    def _probe(self, match: str) -> tuple[tuple[int, ...] | None, int]:
        """The cards of an expression if they are few, and about how many they are."""
        ids = self._look(match, "asc")
        if len(ids) < _PROBE:
            return tuple(ids), len(ids)
        # Cards of one topic stand together, so both ends are looked at.
        back = self._look(match, "desc")
        span = max(1, ids[-1] - ids[0] + 1) + max(1, back[0] - back[-1] + 1)
        return None, max(_PROBE, round(2 * _PROBE * max(1, self._last) / span))

    def _look(self, match: str, order: str) -> list[int]:
        sql = f"select rowid from cards_fts where cards_fts match ? order by rowid {order} limit ?"
        return [id for (id,) in self._connection.execute(sql, [match, _PROBE])]


def worth_of(reaches: Sequence[Reach], weights: Sequence[float], cards: int) -> list[float]:
    """What each term is worth: its weight times its idf among `cards` cards."""
    return [weight * idf(cards, reach.cards) for weight, reach in zip(weights, reaches)]
