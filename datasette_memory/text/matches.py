"""Where in an original text the terms of a query stand: the ground for snippets and coverage."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from .lazy import lazy
from .normalise import normalise_with_offsets
from .query import Term
from .stem import MOST_CHANGED, index_key
from .tokenise import CJK_RUN, camel_parts, has_humps, runs

#: A phrase is followed to so many places, the first ones, in one text.
MOST_PLACES = 10_000

# What `runs` finds in ASCII, faster.
_ASCII_WORD = lazy("[A-Za-z0-9]+")


class Match(NamedTuple):
    """Term number `term` of the query stands at `[start, end)` of the original text."""

    start: int
    end: int
    term: int


class _Pattern(NamedTuple):
    """A phrase of term number `term` as index keys; the last may be a prefix."""

    term: int
    keys: tuple[str, ...]
    prefix: bool


def find(text: str, terms: tuple[Term, ...]) -> list[Match]:
    """Every place where a term stands, sorted; a word counts if it goes on past the term.

    It calls the same things equal as FTS5 does on the index (`stem.index_key`), and is what
    filtering `tokenise.tokens(text)` would give, without making the tokens that match nothing. A
    phrase is one place, unless it runs from one word's camelCase parts into the next's, which
    are neighbours in the index only: then each piece is a place.
    """
    normal, offsets = normalise_with_offsets(text)
    found: list[tuple[int, int, int]] = []
    patterns: list[_Pattern] = []
    for number, term in enumerate(terms):
        first = term.phrases[0][0]
        if CJK_RUN.match(first):
            found += islice(_find_characters(normal, first, number), MOST_PLACES)
        else:
            for phrase in term.phrases:
                keys = tuple(map(index_key, phrase))
                longer = term.extends(phrase)
                patterns.append(_Pattern(number, keys, longer))
                if longer:
                    for other in term.others(phrase):
                        keys = (*keys[:-1], index_key(other[-1]))
                        patterns.append(_Pattern(number, keys, False))
    if patterns:
        found += _find_words(normal, patterns)
    found.sort()
    places = dict.fromkeys(found)
    if offsets.normal:
        return sorted(Match(offsets.start(a), offsets.end(b), term) for a, b, term in places)
    return list(map(Match._make, places))


def _find_characters(normal: str, characters: str, term: int) -> Iterator[tuple[int, int, int]]:
    # Two neighbours in a run are a token, and any character begins one.
    at = normal.find(characters)
    while at >= 0:
        yield at, at + len(characters), term
        at = normal.find(characters, at + 1)


def _find_words(normal: str, patterns: list[_Pattern]) -> Iterator[tuple[int, int, int]]:
    """The places of the patterns, by a string search in the index keys of the words.

    The keys stand behind a space each, in index order: words, then camelCase parts. A word that
    no pattern can mean, or a run of Chinese, leaves its place empty.
    """
    beginnings = tuple(
        {key[: max(1, len(key) - MOST_CHANGED)] for pattern in patterns for key in pattern.keys}
    )
    if normal.isascii():
        spans = [match.span() for match in _ASCII_WORD.finditer(normal)]
    else:
        spans = list(runs(normal))
    words = [normal[start:end] for start, end in spans]
    if not words:
        return
    count = len(words)
    folded = " ".join(words).casefold().split(" ")
    keys = _keys(folded, beginnings)
    if has_humps(normal):
        parts: list[str] = []
        for word, same, (start, end) in zip(words, folded, list(spans)):
            if word == same:
                continue
            if not word.isascii() or any(beginning in same for beginning in beginnings):
                for at, part in camel_parts(word):
                    parts.append(part.casefold())
                    spans.append((start + at, start + at + len(part)))
            elif has_humps(word):
                parts.append("")
                spans.append((start, end))
        keys += _keys(parts, beginnings)
    stream = f" {' '.join(keys)} "
    hits = [
        (first, first + len(pattern.keys), pattern.term)
        for pattern in patterns
        for first in islice(_positions(stream, pattern), MOST_PLACES)
    ]
    for first, end, term in hits:
        if end <= count or end == first + 1:
            yield spans[first][0], spans[end - 1][1], term
            continue
        if first < count:
            yield spans[first][0], spans[count - 1][1], term
        for start, stop in _joined(spans[max(first, count) : end]):
            yield start, stop, term


def _keys(words: list[str], beginnings: tuple[str, ...]) -> list[str]:
    """The index keys of those words that could have a key with one of the beginnings, else ""."""
    keys: list[str] = []
    for word in words:
        if word.isascii():
            possible = word.startswith(beginnings)
        else:
            possible = not CJK_RUN.match(word)
        keys.append(index_key(word) if possible else "")
    return keys


def _positions(stream: str, pattern: _Pattern) -> Iterator[int]:
    """The numbers of the keys in `stream` at which the pattern begins."""
    wanted = f" {' '.join(pattern.keys)}{'' if pattern.prefix else ' '}"
    number = done = 0
    at = stream.find(wanted)
    while at >= 0:
        number += stream.count(" ", done, at)
        yield number
        done = at
        at = stream.find(wanted, at + 1)


def _joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The spans, those that touch made one."""
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        if joined and joined[-1][1] == start:
            joined[-1] = joined[-1][0], end
        else:
            joined.append((start, end))
    return joined
