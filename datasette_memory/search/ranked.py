"""Cards as a search found them, and their order."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple


class Ranked(NamedTuple):
    """A card that was found, and how: `coverage` is the share of the terms that it holds, `share`
    that of what they are worth."""

    id: int
    score: float
    tier: str
    coverage: float
    superseded_by: str | None
    share: float = 1.0
    held: tuple[bool, ...] = ()


class Found(NamedTuple):
    """The cards that answer, in order, and what there is to say about them.

    `by_words` are the ids in the order of words alone, `near` how near cards are by their vectors,
    `named` those that are called as the query. `worth` is empty where no term was weighed.
    """

    cards: list[Ranked]
    left_out: int = 0
    cut_short: bool = False
    said: str | None = None
    by_words: Sequence[int] = ()
    near: Mapping[int, float] = {}
    named: frozenset[int] = frozenset()
    worth: tuple[float, ...] = ()


def without_superseded(
    found: list[Ranked], limit: int, superseded: bool
) -> tuple[list[Ranked], int]:
    """The first `limit`, without superseded ones unless these are let in, and how many were left
    out before that."""
    shown: list[Ranked] = []
    left_out = 0
    for one in found:
        if len(shown) == limit:
            break
        if one.superseded_by is None or superseded:
            shown.append(one)
        else:
            left_out += 1
    return shown, left_out


def ranks(ids: Iterable[int]) -> dict[int, int]:
    """The place of each, from 1."""
    return {id: place for place, id in enumerate(ids, 1)}


def named_first(found: list[Ranked], named: frozenset[int]) -> list[Ranked]:
    """The list with these cards first."""
    return sorted(found, key=lambda one: one.id not in named)


def in_order(found: list[Ranked]) -> list[Ranked]:
    """The list by score, the best first."""
    return sorted(found, key=lambda one: (-one.score, one.id))
