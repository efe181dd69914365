"""One written form for what means the same: NFKC, Simplified for Traditional, no invisible characters.

`normalise()` gives the form; `normalise_with_offsets()` gives it together with the way back to the
original text, so that a highlight can be drawn where the reader sees the word.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from ._tables import SIMPLIFIED, TRADITIONAL
from .lazy import lazy

_FOLD = str.maketrans(TRADITIONAL, SIMPLIFIED)
# Most Chinese text holds no character of the table. The search that finds this out is many times
# faster than the translation, as long as its class stays inside the basic plane.
_UNFOLDED = lazy("[^%s]*+" % "".join(c for c in TRADITIONAL if c < "\U00010000"))

_ASTRAL = lazy("[\U00020000-\U0003ffff]")

# Characters that nobody sees and that pasted text is full of: soft hyphen, zero width space,
# direction marks, word joiner, variation selectors (of emoji, and of Han in Japanese names), byte
# order mark.
_INVISIBLE = lazy("[\u00ad\u200b\u200e\u200f\u2060\ufe00-\ufe0f\ufeff\U000e0100-\U000e01ef]")

# What NFKC never changes and never joins to what stands before it: ASCII, Latin letters with
# diacritics, Han, kana, CJK punctuation.
_STABLE = (
    "\x00-\x7f\u00b7\u00c0-\u00ff\u3001-\u3029\u3030-\u3035\u3041-\u3096\u30a0-\u30fe"
    "\u3400-\u4dbf\u4e00-\u9fff"
)
# NFKC changes some of these to ASCII punctuation. No token holds either, and nearly every Chinese
# text has them, so a text without anything else to change is left as it is.
_PUNCTUATION = "\u2010-\u2029\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f"
_STABLE_IN_TOKENS = lazy(f"[{_STABLE}{_PUNCTUATION}]*+")
# One character in front comes along, because a mark may compose with it.
_UNSTABLE = lazy(f".?[^{_STABLE}]+", re.DOTALL)

# A character and the marks on it count up to here, the rest is dropped: nobody writes more, and
# NFKC takes time with the square of their number.
_MAX_PIECE = 256


def normalise(text: str) -> str:
    """NFKC, then Traditional Chinese folded to Simplified, invisible characters dropped.

    Full-width punctuation may stay where nothing else needs NFKC. Case is kept (camelCase has to
    be seen later). Folding is character by character, by OpenCC's table, and keeps the length.
    """
    if text.isascii():
        return text
    if not _STABLE_IN_TOKENS.fullmatch(text):
        if _has_long_piece(text):
            text = "".join(piece[:_MAX_PIECE] for piece in _pieces(text))
        text = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text))
        return (
            text
            if _UNFOLDED.fullmatch(text) and not _ASTRAL.search(text)
            else text.translate(_FOLD)
        )
    return text if _UNFOLDED.fullmatch(text) else text.translate(_FOLD)


@dataclass(frozen=True, slots=True)
class Offsets:
    """The way from positions in a normalised text back to the original.

    Breakpoint i says that `normal[i]` stands for `original[i]`. Behind an odd breakpoint the two
    run side by side; a changed piece lies between an even breakpoint and the odd one after it.
    An empty `normal` means that the two texts have the same positions throughout.
    """

    normal: tuple[int, ...] = ()
    original: tuple[int, ...] = ()

    def start(self, position: int) -> int:
        """Where the piece that holds the normalised character at `position` begins."""
        return self._map(position, 0)

    def end(self, position: int) -> int:
        """Where the piece that holds the normalised character before `position` ends."""
        return self._map(position - 1, 1)

    def _map(self, position: int, end: int) -> int:
        at = bisect_right(self.normal, position) - 1
        if at < 0:
            return position + end
        if at % 2:
            return self.original[at] + position - self.normal[at] + end
        return self.original[at + end]


def normalise_with_offsets(text: str) -> tuple[str, Offsets]:
    """The same text as `normalise()`, with the `Offsets` that lead back to `text`."""
    if text.isascii() or _STABLE_IN_TOKENS.fullmatch(text):
        return normalise(text), Offsets()
    out: list[str] = []
    normal: list[int] = []
    original: list[int] = []
    length = done = 0
    for match in _UNSTABLE.finditer(text):
        at = match.start()
        out.append(text[done:at])
        length += at - done
        for piece in _pieces(match.group()):
            new = _normalised_piece(piece[:_MAX_PIECE])
            if len(new) != 1 or len(piece) != 1:
                normal += (length, length + len(new))
                original += (at, at + len(piece))
            out.append(new)
            length += len(new)
            at += len(piece)
        done = match.end()
    out.append(text[done:])
    return "".join(out).translate(_FOLD), Offsets(tuple(normal), tuple(original))


@lru_cache(maxsize=4096)
def _normalised_piece(piece: str) -> str:
    return unicodedata.normalize("NFKC", _INVISIBLE.sub("", piece))


def _pieces(text: str) -> Iterator[str]:
    """Cut `text` where no NFKC composition can cross the cut."""
    begin = 0
    for at, character in enumerate(text):
        if at and not _joins_left(character):
            yield text[begin:at]
            begin = at
    if text:
        yield text[begin:]


def _has_long_piece(text: str) -> bool:
    """Whether a piece may be longer than `_MAX_PIECE`; looks at a few characters only."""
    step = _MAX_PIECE // 2
    return any(
        all(map(_joins_left, text[at : at + step])) for at in range(0, len(text) - step + 1, step)
    )


@lru_cache(maxsize=4096)
def _joins_left(character: str) -> bool:
    """Whether NFKC may compose `character` with what stands before it.

    True of marks, of Hangul vowels and finals, of the vowel signs of Kirat Rai (letters to
    Unicode, 16D63-16D6A), of whatever decomposes to one of them first, and of invisible
    characters, which are dropped and must not keep a mark from its letter.
    """
    if _INVISIBLE.match(character):
        return True
    first = unicodedata.normalize("NFKD", character)[0]
    return (
        unicodedata.category(first)[0] == "M"
        or "\u1160" <= first <= "\u11ff"
        or "\U00016d63" <= first <= "\U00016d6a"
    )
