"""The tiers: what a hit has of a query, and which of them make the list."""

from collections.abc import Sequence

from ..text.query import TIERS

#: What a hit has that holds no term, and was found by its vector.
VECTOR = "vector"


def tier_of(counts: Sequence[float], prefixes: Sequence[bool]) -> str:
    """The tier of a card that holds each term `counts` times; those with a prefix are held by
    words that go on."""
    held = [bool(count) for count in counts]
    by_prefix = any(has and prefix for has, prefix in zip(held, prefixes))
    if all(held):
        return "all-prefix" if by_prefix else "all"
    exact = any(has and not prefix for has, prefix in zip(held, prefixes))
    return "any" if exact else "any-prefix"


def first(tiers: Sequence[str]) -> str | None:
    """The most exact of some tiers."""
    return min(tiers, key=(*TIERS, VECTOR).index, default=None)
