"""How near cards are to a question by their vectors, and how that goes into the order.

All cards are compared, by brute force: the vectors are read once and kept for as long as the
process lives, 2 bytes a number, 1 kilobyte a card with the model of the extra. NumPy and the model
are loaded only when a question is asked of an index that holds vectors.

A cosine by itself says little, as each model has its own idea of how near unrelated texts are. So
a card is as near as it stands out among all: by `DEVIATIONS` standard deviations from the mean it
is at 1. The score of a hit is then

    0.7 min(1, h / 0.6) (score / best score)  +  0.3 nearness

where h is the share of all that the terms are worth which the best card by words holds: words
decide as long as a card holds those of the question, and vectors where none does. Evidence is in
`bench/README.md`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..index import embedder
from ..index.read import storable
from ..index.schema import get_meta
from ..index.vectors import MODEL, STATE, count_lacking, read

if TYPE_CHECKING:
    import numpy

#: What nearness counts in the score, against words.
SHARE = 0.3

#: Words count in full when the best card by words holds such a share of what they are worth.
ENOUGH = 0.6

#: So far from the mean nearness is 1.
DEVIATIONS = 5

#: A card whose vector is farther than this is no answer by its vector alone.
LEAST_COSINE = 0.2

#: So many cards may come in by their vectors alone: enough for the longest list, with some replaced
#: cards among them.
NEAREST = 30

# NumPy takes several threads for larger ones, which wait for each other on a busy machine.
_BLOCK = 512

_STILL = (
    "select id from cards where id in (select value from json_each(?)) "
    "and embedding is not null and {conditions}"
)


@dataclass(frozen=True, slots=True)
class Nearness:
    """How near cards are, 0 to 1, by row id. `notice` says what is wrong."""

    values: dict[int, float] = field(default_factory=dict)
    notice: str | None = None


def nearness(
    connection, question: str, where: tuple[str, Sequence[object]], known: Sequence[int]
) -> Nearness:
    """How near the cards `known` are to `question`, and the nearest others that meet the
    conditions `where`, as `Filters.sql` gives them.

    Without vectors in the index there is nothing, and nothing is said. Never raises for a model
    that is missing or broken: words have to do then, and `notice` tells.
    """
    model = get_meta(connection, MODEL)
    if not model:
        return Nearness()
    here = embedder.installed()
    if here is None:
        return Nearness(
            notice=f"Only words were compared: the vectors of this index need {model}, which is "
            "not installed (pip install 'datasette-memory[vectors]')."
        )
    if here != model:
        return Nearness(
            notice=f"Only words were compared: the vectors of this index are of {model}, and "
            f"{here} is installed. `memory index` makes them anew."
        )
    try:
        vector = embedder.embed([storable(question)])[0]
    except embedder.ModelFault as fault:
        return Nearness(notice=f"Only words were compared: the model {model} fails ({fault}).")
    ids, matrix = _kept(connection, len(vector))
    notice = None
    if lacking := count_lacking(connection):
        cards = "1 card has" if lacking == 1 else f"{lacking} cards have"
        notice = f"{cards} no vector yet: `memory index` makes it."
    if not len(ids):
        return Nearness(notice=notice)
    return Nearness(_near(connection, ids, matrix, vector, where, known), notice)


def blend(words: float, best: float, share: float, near: float) -> float:
    """The score of a card that has `words` by its words, where the best has `best` and holds the
    share `share` of what the terms are worth."""
    by_words = min(1.0, share / ENOUGH) * words / best if best else 0.0
    return (1 - SHARE) * by_words + SHARE * near


def _near(connection, ids, matrix, vector, where, known) -> dict[int, float]:
    import numpy

    cosines = numpy.concatenate(
        [
            matrix[at : at + _BLOCK].astype(numpy.float32) @ vector
            for at in range(0, len(ids), _BLOCK)
        ]
    )
    spread = float(cosines.std()) or 1.0
    values = ((cosines - cosines.mean()) / (DEVIATIONS * spread)).clip(0, 1)
    conditions, parameters = where
    able = cosines >= LEAST_COSINE
    if conditions != "1":
        rows = connection.execute(f"select id from cards where {conditions}", parameters)
        able &= numpy.isin(ids, [id for (id,) in rows])
    by_words = numpy.isin(ids, list(known))
    others = numpy.flatnonzero(able & ~by_words)
    nearest = others[numpy.argsort(-cosines[others], kind="stable")[:NEAREST]]
    places = [*nearest.tolist(), *numpy.flatnonzero(by_words).tolist()]
    found = {int(ids[place]): float(values[place]) for place in places}
    # A vector that was read earlier may be that of a text that has changed since, or is gone.
    still = {
        id
        for (id,) in connection.execute(
            _STILL.format(conditions=conditions), [json.dumps(list(found)), *parameters]
        )
    }
    return {id: value for id, value in found.items() if id in still}


# The state of the last index that was asked, its row ids and vectors: a process has mostly one.
_last: tuple[str | None, numpy.ndarray, numpy.ndarray] | None = None


def _kept(connection, dimensions: int) -> tuple[numpy.ndarray, numpy.ndarray]:
    global _last
    state, kept = get_meta(connection, STATE), _last
    if kept is None or kept[0] != state:
        kept = _last = None  # The old ones go before the new ones come.
        kept = _last = (state, *read(connection, dimensions))
    return kept[1], kept[2]
