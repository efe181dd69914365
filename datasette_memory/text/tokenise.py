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

import re
from collections.abc import Iterator
from operator import add
from typing import NamedTuple

from ._tables import MARKS
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
_LETTER = rf"[^\W_{_CJK}]"
_WORD = rf"{_LETTER}+(?:[{MARKS}]+{_LETTER}*)*"

CJK_RUN = re.compile(f"([{_CJK}]+)")
WORD = re.compile(_WORD)
_RUN = re.compile(f"([{_CJK}]+)|{_WORD}")
# The same as WORD where the text is ASCII, and twice as fast.
_ASCII_WORD = re.compile("[A-Za-z0-9]+")
# What most often stands between two runs of Chinese. Not looking into it saves a tenth.
_NO_WORD = frozenset(["", " ", "\n", "\n\n", *"，。、：；？！（）“”《》/-,.:|`"])
# Where a camelCase word divides: `getUser` before U, `HTTPServer` before S.
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# Whether there is such a place at all. It starts at a capital, which most text has few of.
_ANY_HUMP = re.compile(r"[A-Z](?:(?<=[a-z0-9].)|[A-Z][a-z])")


class Token(NamedTuple):
    """A token and the place `[start, end)` in the original text that it stands for."""

    text: str
    start: int
    end: int


def tokens(text: str) -> Iterator[Token]:
    """Every token of a document in index order, with offsets in characters of `text`."""
    normal, offsets = normalise_with_offsets(text)
    parts: list[Token] = []
    for match in _RUN.finditer(normal):
        run, begin, end = match.group(), match.start(), match.end()
        if match.group(1) is None:
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
    normal = normalise(text)
    humped = has_humps(normal)
    if normal.isascii():
        words = out = _ASCII_WORD.findall(normal)
    else:
        words, out = [], []
        pieces = CJK_RUN.split(normal)
        for between, run in zip(pieces[::2], [*pieces[1::2], ""]):
            if between not in _NO_WORD:
                found = (_ASCII_WORD if between.isascii() else WORD).findall(between)
                out += found
                if humped:
                    words += found
            if run:
                out += map(add, run, run[1:])
                out.append(run[-1])
    if humped:
        for word in [word for word in words if not (word[1:].islower() or word.islower())]:
            parts = _HUMP.split(word)
            if len(parts) > 1:
                out += parts
    return " ".join(out).casefold()


def has_humps(text: str) -> bool:
    """Whether any word of `text` is camelCase."""
    return _ANY_HUMP.search(text) is not None


def camel_parts(word: str) -> list[tuple[int, str]]:
    """The parts of a camelCase word with their offsets in it; empty when it has no humps."""
    if not has_humps(word):
        return []
    cuts = [0, *(match.start() for match in _HUMP.finditer(word)), len(word)]
    if len(cuts) == 2:
        return []
    return [(a, word[a:b]) for a, b in zip(cuts, cuts[1:])]
