"""The passage of a text that answers a query best, and how much of the query a text holds."""

import html
import re
from collections.abc import Iterable
from dataclasses import dataclass

from .matches import Match, find
from .query import Term

#: How wide a snippet is, in columns; a Han character, kana or syllable takes two.
WIDTH = 140

_SPACE = re.compile(r"\s+")
_WIDE = re.compile("[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97c\uac00-\ud7ff\uf900-\ufaff\uff00-\uff60\U00020000-\U0003ffff]")


@dataclass(frozen=True, slots=True)
class Snippet:
    """`text` is cut from the original, white space folded; `highlights` are `(start, end)` in it."""

    text: str
    highlights: tuple[tuple[int, int], ...] = ()

    def html(self) -> str:
        """The text escaped for HTML, each highlight in `<b>`."""
        out: list[str] = []
        done = 0
        for start, end in self.highlights:
            out += [html.escape(self.text[done:start]), "<b>", html.escape(self.text[start:end]), "</b>"]
            done = end
        return "".join([*out, html.escape(self.text[done:])])


def snippet(text: str, terms: tuple[Term, ...], width: int = WIDTH) -> Snippet:
    """The `width` columns of `text` that hold the most distinct terms, marked where they stand."""
    return cut(text, find(text, terms), width)


def cut(text: str, matches: list[Match], width: int = WIDTH) -> Snippet:
    """The snippet of `text` around the densest of `matches` (sorted by start)."""
    start, end = _densest(matches, width)
    start, end = _widen(text, start, end, width)
    spans = _merge(match for match in matches if start <= match.start and match.end <= end)
    return _fold_space(text, start, end, spans)


def coverage(texts: Iterable[str], terms: tuple[Term, ...]) -> float:
    """The share of `terms` that stand in at least one of `texts`, 0..1; 0 without terms.

    It is shown and never used to sort.
    """
    if not terms:
        return 0.0
    held: set[int] = set()
    for text in texts:
        held.update(match.term for match in find(text, terms))
    return len(held) / len(terms)


def _densest(matches: list[Match], width: int) -> tuple[int, int]:
    """The stretch of at most `width` characters with the most distinct terms, then most matches."""
    if not matches:
        return 0, 0
    best = (0, 0, 0, 0)
    counts: dict[int, int] = {}
    first = 0
    for last, match in enumerate(matches):
        counts[match.term] = counts.get(match.term, 0) + 1
        while match.end - matches[first].start > width and first < last:
            left = matches[first].term
            counts[left] -= 1
            if not counts[left]:
                del counts[left]
            first += 1
        score = (len(counts), last - first)
        if score > best[:2]:
            best = (*score, matches[first].start, match.end)
    if best[:2] == (0, 0):
        return matches[0].start, matches[0].end
    return best[2], best[3]


def _widen(text: str, start: int, end: int, width: int) -> tuple[int, int]:
    """Grow `[start, end)` to `width` columns, two thirds of them behind, at word boundaries."""
    free = width - _columns(text[start : min(end, start + width)])
    before = text[max(0, start - width) : start]
    room = _fit(before[::-1], max(0, free) // 3)
    begin = start - room
    if begin > 0:
        begin = start - _whole_words(before[::-1], room)
    behind = text[end : end + 2 * width]
    room = _fit(behind, width - _columns(text[begin : min(end, begin + width)]))
    stop = end + room
    if stop < len(text):
        stop = end + _whole_words(behind, room)
    return begin, stop


def _columns(text: str) -> int:
    return len(text) + len(_WIDE.findall(text))


def _fit(text: str, columns: int) -> int:
    """How many characters of `text` take at most `columns`."""
    used = 0
    for at, character in enumerate(text):
        used += 2 if _WIDE.match(character) else 1
        if used > columns:
            return at
    return len(text)


def _whole_words(text: str, room: int) -> int:
    """`room`, or less by the ASCII word that it would cut in two."""
    at = room
    while 0 < at < len(text) and _is_word(text[at - 1]) and _is_word(text[at]):
        at -= 1
    return at if at > 0 and room - at < 24 else room


def _is_word(character: str) -> bool:
    return character.isalnum() and not _WIDE.match(character)


def _merge(matches: Iterable[Match]) -> list[tuple[int, int]]:
    """Overlapping and touching matches as one span, so that 阿里 + 里云 reads 阿里云."""
    spans: list[tuple[int, int]] = []
    for match in matches:
        if spans and match.start <= spans[-1][1]:
            spans[-1] = spans[-1][0], max(spans[-1][1], match.end)
        else:
            spans.append((match.start, match.end))
    return spans


def _fold_space(text: str, start: int, end: int, spans: list[tuple[int, int]]) -> Snippet:
    """`text[start:end]` with runs of white space as one space, and the spans moved along."""
    out = "…" if text[:start].strip() else ""
    highlights: list[tuple[int, int]] = []
    done = start
    edges = [edge for span in spans for edge in span]
    marks: list[int] = []
    for edge in [*edges, end]:
        piece = _SPACE.sub(" ", text[done:edge])
        if out[-1:] in ("", " ", "…") and piece.startswith(" "):
            piece = piece[1:]
        out += piece
        marks.append(len(out))
        done = edge
    highlights = [(a, b) for a, b in zip(marks[:-1:2], marks[1:-1:2]) if a < b]
    trimmed = out.rstrip()
    return Snippet(trimmed + ("…" if text[end:].strip() else ""), tuple(highlights))
