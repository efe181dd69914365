"""SQL functions over text: pure and deterministic, so that views and triggers may use them."""

# What only a search needs is imported where it is used: writing must not pay for it.
from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from ..text.tokenise import index_text

if TYPE_CHECKING:
    from ..text.query import Term


def register(connection) -> None:
    """Give `connection` the functions `memory_tokens`, `memory_match`, `memory_snippet` and
    `memory_coverage`. Each takes NULL for an empty text.
    """
    for function in (memory_tokens, memory_match, memory_snippet, memory_coverage):
        connection.create_function(
            function.__name__, function.__code__.co_argcount, function, deterministic=True
        )


def memory_tokens(text) -> str:
    """The tokens of a text, as the index holds them, separated by spaces."""
    return index_text(as_text(text)) if text is not None else ""


def memory_match(query, tier) -> str:
    """The FTS5 MATCH expression of a query in a tier, by name (`all`) or number (1 to 4)."""
    from ..text.query import TIERS, expression

    if isinstance(tier, (int, float)) or (isinstance(tier, str) and tier.isdigit()):
        number = int(tier)
        if not 1 <= number <= len(TIERS):
            raise ValueError("tier is 1 to 4, or all, all-prefix, any, any-prefix")
        tier = TIERS[number - 1]
    return expression(_terms(as_text(query)), as_text(tier))


def memory_snippet(text, query) -> str:
    """The passage of `text` that answers `query` best: escaped HTML, matches in `<b>`."""
    from ..text.snippet import snippet

    return snippet(as_text(text), _terms(as_text(query))).html()


def memory_coverage(text, query) -> float:
    """The share of the terms of `query` that `text` holds, 0..1."""
    from ..text.snippet import coverage

    return coverage([as_text(text)], _terms(as_text(query)))


def as_text(value) -> str:
    """An SQL value as text: NULL is empty, a blob is read as UTF-8."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return "" if value is None else str(value)


@lru_cache(maxsize=128)
def _terms(query: str) -> tuple[Term, ...]:
    from ..text.query import parse

    return parse(query)
