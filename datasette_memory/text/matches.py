"""Where in an original text the terms of a query stand: the ground for snippets and coverage."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from .normalise import normalise_with_offsets
from .query import Term
from .stem import index_key
from .tokenise import CJK_RUN, WORD, camel_parts, has_humps

_NEXT_TOKEN = re.compile(f"{CJK_RUN.pattern}|{WORD.pattern}")


class Match(NamedTuple):
    """Term number `term` of the query stands at `[start, end)` of the original text."""

    start: int
    end: int
    term: int


class _Pattern(NamedTuple):
    """A phrase as index keys; the last may be a prefix."""

    term: int
    keys: tuple[str, ...]
    prefix: bool

    def fits(self, at: int, key: str) -> bool:
        last = self.prefix and at == len(self.keys) - 1
        return key.startswith(self.keys[at]) if last else key == self.keys[at]


def find(text: str, terms: tuple[Term, ...]) -> list[Match]:
    """Every place where a term stands, by start; a word counts if it goes on past the term.

    It calls the same things equal as FTS5 does on the index (`stem.index_key`), and is what
    filtering `tokenise.tokens(text)` would give, without making the tokens that match nothing.
    """
    normal, offsets = normalise_with_offsets(text)
    found: set[tuple[int, int, int]] = set()
    patterns: list[_Pattern] = []
    for number, term in enumerate(terms):
        first = term.phrases[0][0]
        if CJK_RUN.match(first):
            at = normal.find(first)
            while at >= 0:
                found.add((at, at + len(first), number))
                at = normal.find(first, at + 1)
        else:
            for phrase in term.phrases:
                keys = tuple(map(index_key, phrase))
                patterns.append(_Pattern(number, keys, term.extensible and len(phrase[-1]) > 1))
    if patterns:
        found.update(_find_words(normal, patterns))
    return sorted(
        Match(offsets.start(start), offsets.end(end), term) for start, end, term in found
    )


def _find_words(normal: str, patterns: list[_Pattern]) -> Iterator[tuple[int, int, int]]:
    for match in _words(normal, "".join(sorted({pattern.keys[0][0] for pattern in patterns}))):
        key = index_key(match.group().casefold())
        for pattern in patterns:
            if pattern.fits(0, key):
                end = _follow(normal, match.end(), pattern)
                if end is not None:
                    yield match.start(), end, pattern.term
    if has_humps(normal):
        for match in WORD.finditer(normal):
            parts = camel_parts(match.group())
            keys = [index_key(part.casefold()) for _, part in parts]
            for pattern in patterns:
                size = len(pattern.keys)
                for at in range(len(keys) - size + 1):
                    if all(pattern.fits(i, keys[at + i]) for i in range(size)):
                        last, part = parts[at + size - 1]
                        start = match.start() + parts[at][0]
                        yield start, match.start() + last + len(part), pattern.term


def _words(normal: str, initials: str) -> Iterator[re.Match[str]]:
    """The words of `normal` whose key may start with one of `initials`."""
    if normal.isascii():
        # Neither the stemmer nor case folding changes the first letter of an ASCII word
        # into another letter, so that most words need no look.
        ascii_initials = "".join(c for c in initials if c.isascii())
        return _ascii_words(ascii_initials).finditer(normal) if ascii_initials else iter(())
    return WORD.finditer(normal)


@lru_cache(maxsize=64)
def _ascii_words(initials: str) -> re.Pattern[str]:
    return re.compile(f"(?<![A-Za-z0-9])[{initials}{initials.upper()}][A-Za-z0-9]*")


def _follow(normal: str, end: int, pattern: _Pattern) -> int | None:
    """Where the rest of the phrase ends if it follows at `end`, else None."""
    for at in range(1, len(pattern.keys)):
        match = _NEXT_TOKEN.search(normal, end)
        if match is None or match.group(1) is not None:
            return None
        if not pattern.fits(at, index_key(match.group().casefold())):
            return None
        end = match.end()
    return end
