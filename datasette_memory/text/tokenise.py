"""The pre-tokeniser that stands in front of FTS5.

FTS5's `unicode61` takes an unbroken run of Chinese for one token. So the text is cut here first:

- it is normalised (`normalise.py`);
- a run of Han, kana and Hangul becomes its overlapping pairs of characters, then its last
  character; a run of one character stays itself. `阿里云` gives `阿里 里云 云`;
- everything else becomes case-folded words of letters, digits and their marks. Where the script
  changes, a token ends: `重跑gen后` gives `重跑 跑 gen 后`;
- behind all that come the parts of camelCase words: `getUserById` gives `getuserbyid`, and at the
  end `get user by id`. At the end, so that the words around it stay neighbours for phrases.

`tokens()` is the definition, with offsets into the original. `index_text()` is the same sequence
as one string, several times faster. Diacritics and English endings are left to FTS5's own
`porter unicode61`.
"""

from array import array
from collections.abc import Iterator
from itertools import filterfalse
from typing import NamedTuple

from ._tables import MARKS
from .lazy import lazy
from .normalise import normalise, normalise_with_offsets

#: Changes whenever any text may give other tokens; a stored index is then built again.
TOKENIZER_VERSION = "1"

#: The tokeniser that FTS5 runs over `index_text()`. Marks are part of a word (Devanagari, Thai).
FTS5_TOKENIZE = "porter unicode61 categories 'L* N* Co Mn Mc'"

# Han with its extensions and compatibility forms, kana, bopomofo, Hangul. The middle dot of
# katakana is punctuation and stays out.
_CJK = (
    "\u1100-\u11ff\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303c\u3041-\u3096\u3099\u309a"
    "\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u3131-\u318e\u31a0-\u31bf\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7fb\uf900-\ufaff"
    "\U0001b000-\U0001b167\U00020000-\U0002fa1f\U00030000-\U000323af"
)
CJK_RUN = lazy(f"([{_CJK}]+)")
#: A word in a text without Chinese: to leave Chinese out here takes a while to compile.
WORD = rf"[^\W_]+(?:[{MARKS}]+[^\W_]*)*"
_WORD = lazy(WORD)
# Where a camelCase word divides: `getUser` before U, `HTTPServer` before S.
_HUMP = lazy(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# Whether there is such a place at all. It starts at a capital, which most text has few of.
_ANY_HUMP = lazy(r"[A-Z](?:(?<=[a-z0-9].)|[A-Z][a-z])")

# NUL, which no token holds, stands in `index_text` where a run of Chinese was cut out.
_CUT = "\x00"
_WORD_OR_CUT = lazy(f"{WORD}|{_CUT}")
# Text without a letter that is neither ASCII nor Chinese: the rest are the punctuation and the
# symbols that are common in notes. A class by itself would be compiled twice, for search too.
_PLAIN = lazy(
    f"[\x00-\x7f{_CJK}\u00b7\u00d7\u2010-\u205e\u2190-\u245f\u2500-\u2775\u2794-\u2bff"
    "\u3000-\u3004\u3008-\u3020\u3030\uff01-\uff0f\uff1a-\uff20\ufffd]*+"
)
_ASCII_WORDS = bytes(c if chr(c).isalnum() or c == 0 else 32 for c in range(128)) + b" " * 128


class Token(NamedTuple):
    """A token and the place `[start, end)` in the original text that it stands for."""

    text: str
    start: int
    end: int


def runs(normal: str) -> Iterator[tuple[int, int]]:
    """Where the runs of Chinese and the words of a normalised text stand, in order."""
    done = 0
    for run in CJK_RUN.finditer(normal):
        for match in _WORD.finditer(normal, done, run.start()):
            yield match.span()
        yield run.span()
        done = run.end()
    for match in _WORD.finditer(normal, done):
        yield match.span()


def tokens(text: str) -> Iterator[Token]:
    """Every token of a document in index order, with offsets in characters of `text`."""
    normal, offsets = normalise_with_offsets(text)
    parts: list[Token] = []
    for begin, end in runs(normal):
        run = normal[begin:end]
        if not CJK_RUN.match(run):
            yield Token(run.casefold(), offsets.start(begin), offsets.end(end))
            for at, part in camel_parts(run):
                begin_part, end_part = begin + at, begin + at + len(part)
                place = offsets.start(begin_part), offsets.end(end_part)
                parts.append(Token(part.casefold(), *place))
        else:
            for i in range(begin, end - 1):
                yield Token(normal[i : i + 2], offsets.start(i), offsets.end(i + 2))
            yield Token(normal[end - 1], offsets.start(end - 1), offsets.end(end))
    yield from parts


def index_text(text: str) -> str:
    """The tokens of `tokens(text)` joined by single spaces: what the index holds of a text."""
    normal = normalise(text).replace(_CUT, " ")
    pieces = [normal] if normal.isascii() else CJK_RUN.split(normal)
    words = _words(_CUT.join(pieces[::2]))
    out = " ".join(words).casefold()
    if len(pieces) > 1:
        pieces[::2] = out.split(_CUT)
        pieces[1::2] = _paired(pieces[1::2])
        out = "".join(pieces)
    if has_humps(normal):
        parts: list[str] = []
        for word in filterfalse(str.islower, words):
            if not word[1:].islower():
                found = _HUMP.split(word)
                if len(found) > 1:
                    parts += found
        out = f"{out} {' '.join(parts).casefold()}"
    return out


def word_tokens(normal: str) -> list[str]:
    """The tokens of a normalised text that are words, in index order; a run of Chinese is NUL."""
    if normal.isascii():
        words = _words(normal.replace(_CUT, " "))
    else:
        words = _words(_CUT.join(CJK_RUN.split(normal.replace(_CUT, " "))[::2]))
    folded = " ".join(words).casefold().split(" ") if words else []
    if has_humps(normal):
        for word in filterfalse(str.islower, words):
            folded += [part.casefold() for _, part in camel_parts(word)]
    return folded


def _words(text: str) -> list[str]:
    """The words and the cuts in a text without Chinese."""
    if not is_plain(text):
        return _WORD_OR_CUT.findall(text)
    return ascii_words(text.replace(_CUT, f" {_CUT} "))


def ascii_words(text: str) -> list[str]:
    """The words of ASCII letters and digits in a text; all of its words, if it `is_plain`."""
    return text.encode("ascii", "replace").translate(_ASCII_WORDS).decode("ascii").split()


def _paired(runs: list[str]) -> list[str]:
    """Each run as its pairs of characters and its last character, with spaces between.

    Done for all runs at once, in an array of numbers, which takes a third of the time of a loop:
    the characters go to every third place, and once more, moved along by one, to the places
    behind those; the rest are spaces. `ab` behind a cut gives `?a ab b?`, where ? is the cut.
    """
    characters = array("I", (_CUT + _CUT.join(runs)).encode("utf-32-le"))
    pairs = array("I", (" " * (3 * len(characters))).encode("utf-32-le"))
    pairs[::3] = characters
    pairs[1:-3:3] = characters[1:]
    pairs[-2] = 0
    return [run[2:] for run in pairs.tobytes().decode("utf-32-le").split(_CUT)[1::2]]


def is_plain(normal: str) -> bool:
    """Whether a normalised text has no words but those of ASCII letters and digits, and Chinese."""
    return normal.isascii() or _PLAIN.fullmatch(normal) is not None


def has_humps(text: str) -> bool:
    """Whether any word of `text` is camelCase."""
    return _ANY_HUMP.search(text) is not None


def camel_parts(word: str) -> list[tuple[int, str]]:
    """The parts of a camelCase word with their offsets in it; empty when it has no humps."""
    if word.islower() or word[1:].islower() or not has_humps(word):
        return []
    cuts = [0, *(match.start() for match in _HUMP.finditer(word)), len(word)]
    return [(a, word[a:b]) for a, b in zip(cuts, cuts[1:])]
