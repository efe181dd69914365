"""One written form for what means the same: NFKC, Simplified for Traditional, no invisible characters.

`normalise()` gives the form; `normalise_with_offsets()` gives it together with the way back to the
original text, so that a highlight can be drawn where the reader sees the word.
"""

import re
import unicodedata
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache

from ._tables import SIMPLIFIED, TRADITIONAL

_FOLD = {ord(t): s for t, s in zip(TRADITIONAL, SIMPLIFIED)}
# Most Chinese text holds no character of the table. The search that finds this out is many times
# faster than the translation, as long as its class stays inside the basic plane.
_MAY_FOLD = re.compile("[%s]" % "".join(c for c in TRADITIONAL if c < "\U00010000"))

_ASTRAL = re.compile("[\U00020000-\U0003ffff]")

# Characters that nobody sees and that pasted text is full of: soft hyphen, zero width space,
# direction marks, word joiner, variation selectors, byte order mark.
_INVISIBLE = re.compile("[\u00ad\u200b\u200e\u200f\u2060\ufe00-\ufe0f\ufeff]")

# What NFKC never changes and never joins to what stands before it: ASCII, Latin letters with
# diacritics, Han, kana, CJK punctuation.
_STABLE = "\x00-\x7f\u00b7\u00c0-\u00ff\u3001-\u3035\u3041-\u3096\u30a0-\u30fe\u3400-\u4dbf\u4e00-\u9fff"
# NFKC changes these to ASCII punctuation. No token holds either, and nearly every Chinese text has
# them, so a text without anything else to change is left as it is.
_PUNCTUATION = "\u2010-\u2029\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f"
_UNSTABLE_IN_TOKENS = re.compile(f"[^{_STABLE}{_PUNCTUATION}]")
# One character in front comes along, because a mark may compose with it.
_UNSTABLE = re.compile(f".?[^{_STABLE}]+", re.DOTALL)


def normalise(text: str) -> str:
    """NFKC, then Traditional Chinese folded to Simplified, invisible characters dropped.

    Full-width punctuation may stay where nothing else needs NFKC. Case is kept (camelCase has to be seen later). Folding is character by character, by OpenCC's
    table, and keeps the length.
    """
    if text.isascii():
        return text
    if _UNSTABLE_IN_TOKENS.search(text):
        text = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text))
        return text.translate(_FOLD) if _MAY_FOLD.search(text) or _ASTRAL.search(text) else text
    return text.translate(_FOLD) if _MAY_FOLD.search(text) else text


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
    if text.isascii():
        return text, Offsets()
    out: list[str] = []
    normal: list[int] = []
    original: list[int] = []
    length = done = 0
    for match in _UNSTABLE.finditer(text):
        at = match.start()
        out.append(text[done:at])
        length += at - done
        for piece in _pieces(match.group()):
            new = unicodedata.normalize("NFKC", _INVISIBLE.sub("", piece))
            if len(new) != 1 or len(piece) != 1:
                normal += (length, length + len(new))
                original += (at, at + len(piece))
            out.append(new)
            length += len(new)
            at += len(piece)
        done = match.end()
    out.append(text[done:])
    return "".join(out).translate(_FOLD), Offsets(tuple(normal), tuple(original))


def _pieces(text: str) -> list[str]:
    """Cut `text` where no NFKC composition can cross the cut."""
    pieces: list[str] = []
    for character in text:
        if pieces and _joins_left(character):
            pieces[-1] += character
        else:
            pieces.append(character)
    return pieces


@lru_cache(maxsize=4096)
def _joins_left(character: str) -> bool:
    """Whether NFKC may compose `character` with what stands before it.

    True of marks, of Hangul vowels and finals, of whatever decomposes to one of them first, and
    of invisible characters, which are dropped and must not keep a mark from its letter.
    """
    if _INVISIBLE.match(character):
        return True
    first = unicodedata.normalize("NFKD", character)[0]
    return unicodedata.category(first)[0] == "M" or "\u1160" <= first <= "\u11ff"
