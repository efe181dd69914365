"""The passage of a text that answers a query best, and how much of the query a text holds."""

from collections.abc import Iterable
from dataclasses import dataclass

from .lazy import lazy
from .matches import Match, find
from .query import Term

#: How wide a snippet is, in columns; a Han character, kana or syllable takes two.
WIDTH = 140

_SPACE = lazy(r"\s+")
_WIDE = lazy(
    "[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97c\uac00-\ud7ff\uf900-\ufaff\uff00-\uff60"
    "\U00020000-\U0003ffff]+"
)
# Where a cut would divide an ASCII word, the snippet gives up so many characters to keep it whole.
_LONGEST_KEPT = 24


@dataclass(frozen=True, slots=True)
class Snippet:
    """`text` is cut from the original, each run of white space made one space.

    `highlights` are `(start, end)` in it, in order and apart. An ellipsis stands where the
    original goes on.
    """

    text: str
    highlights: tuple[tuple[int, int], ...] = ()

    def html(self) -> str:
        """The text escaped for HTML, each highlight in `<b>`."""
        import html

        out: list[str] = []
        done = 0
        for start, end in self.highlights:
            out.append(html.escape(self.text[done:start]))
            out.append(f"<b>{html.escape(self.text[start:end])}</b>")
            done = end
        return "".join(out) + html.escape(self.text[done:])


def snippet(text: str, terms: tuple[Term, ...], width: int = WIDTH) -> Snippet:
    """The `width` columns of `text` that hold the most distinct terms, marked where they stand."""
    return cut(text, find(text, terms), width)


def cut(text: str, matches: list[Match], width: int = WIDTH) -> Snippet:
    """The snippet of `text` around the densest of `matches` (sorted, as `find` gives them)."""
    if matches:
        start, end = _densest(text, matches, width)
    else:
        start = end = len(text) - len(text.lstrip())
    start, end = _widen(text, start, end, width)
    inside = (
        (max(match.start, start), min(match.end, end))
        for match in matches
        if match.start < end and start < match.end
    )
    return _fold_space(text, start, end, _merge(inside))


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


def _densest(text: str, matches: list[Match], width: int) -> tuple[int, int]:
    """The stretch of at most `width` columns with the most distinct terms, then most matches."""
    columns: list[int] = []
    column = place = 0
    for match in matches:
        column += _columns(text[place : match.start])
        place = match.start
        columns.append(column)
    best = (0, 0)
    start = end = matches[0].start
    counts: dict[int, int] = {}
    first = 0
    for last, match in enumerate(matches):
        counts[match.term] = counts.get(match.term, 0) + 1
        size = _columns(text[match.start : min(match.end, match.start + _reach(width))])
        while first < last and columns[last] + size - columns[first] > width:
            left = matches[first].term
            counts[left] -= 1
            if not counts[left]:
                del counts[left]
            first += 1
        score = len(counts), last - first
        if score > best:
            best = score
            start, end = matches[first].start, match.end
    return start, start + _fit(text[start : min(end, start + _reach(width))], width)


def _widen(text: str, start: int, end: int, width: int) -> tuple[int, int]:
    """Grow `[start, end)` to `width` columns, two thirds of them behind, at word boundaries."""
    free = width - _columns(text[start:end])
    before = text[max(0, start - _reach(width)) : start][::-1]
    behind = text[end : end + _reach(width)]
    unused = free - _columns(behind[: _fit(behind, free)])
    room = _fit(before, max(free // 3, unused))
    if room < start:
        room = _whole_words(before, room)
    free -= _columns(before[:room])
    begin = start - room
    room = _fit(behind, free)
    if end + room < len(text):
        room = _whole_words(behind, room)
    return begin, end + room


def _reach(width: int) -> int:
    """How many characters to look at for `width` columns: white space takes next to none."""
    return 4 * width


def _columns(text: str) -> int:
    """The width of `text`, white space folded."""
    text = _SPACE.sub(" ", text)
    return len(text) if text.isascii() else len(text) + sum(map(len, _WIDE.findall(text)))


def _fit(text: str, columns: int) -> int:
    """How many characters of `text` take at most `columns`, white space folded."""
    used = 0
    space = False
    for at, character in enumerate(text):
        if character.isspace():
            used += not space
            space = True
        else:
            used += 2 if _is_wide(character) else 1
            space = False
        if used > columns:
            return at
    return len(text)


def _whole_words(text: str, room: int) -> int:
    """`room`, or less by the ASCII word that it would cut in two."""
    at = room
    while 0 < at < len(text) and _is_word(text[at - 1]) and _is_word(text[at]):
        at -= 1
    return at if at > 0 and room - at < _LONGEST_KEPT else room


def _is_word(character: str) -> bool:
    return character.isalnum() and not _is_wide(character)


def _is_wide(character: str) -> bool:
    return character >= "\u1100" and _WIDE.match(character) is not None


def _merge(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Overlapping and touching spans made one, so that 阿里 + 里云 reads 阿里云."""
    merged: list[tuple[int, int]] = []
    for start, end in spans:
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((start, end))
    return merged


def _fold_space(text: str, start: int, end: int, spans: list[tuple[int, int]]) -> Snippet:
    """`text[start:end]` with runs of white space as one space, and the spans moved along."""
    out = ""
    edges: list[int] = []
    done = start
    for edge in [*(edge for span in spans for edge in span), end]:
        piece = _SPACE.sub(" ", text[done:edge])
        out += piece[1:] if piece[:1] == " " and out[-1:] in ("", " ") else piece
        edges.append(len(out))
        done = edge
    out = out.rstrip()
    before = "…" if text[:start].strip() else ""
    after = "…" if text[end:].strip() else ""
    shift = len(before)
    highlights = tuple(
        (a + shift, min(b, len(out)) + shift) for a, b in zip(edges[:-1:2], edges[1:-1:2])
    )
    return Snippet(f"{before}{out}{after}", highlights)
