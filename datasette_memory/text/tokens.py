"""What a text costs in tokens of a language model.

`estimate` needs nothing and takes microseconds a page. `count` asks a real tokeniser when the extra
`tokens` is installed: `toktok`, whose vocabularies are compiled into it, so that it reads no file
and knows no network. (tiktoken fetches its vocabularies, and is not asked.) The first count of a
process loads the vocabulary, a quarter of a second: whoever pays for every start uses `estimate`.
"""

import re
from functools import cache
from math import ceil

#: The vocabulary that is counted with, and that the estimate is fitted to.
ENCODING = "o200k_base"


def count(text: str) -> int:
    """The tokens of `text` by o200k_base where the extra `tokens` is installed, else `estimate`."""
    counter = _counter()
    if counter is None:
        return estimate(text)
    try:
        return counter([text], ENCODING, 1)[0]
    except UnicodeEncodeError:  # half a surrogate pair, from a file name or from JSON
        return counter([text.encode("utf-8", "replace").decode()], ENCODING, 1)[0]


@cache
def _counter():
    try:
        from toktok import batch_count
    except ImportError:
        return None
    return batch_count


# Tokens for each, by least squares over 3,600 texts of 30 sorts in o200k_base, weighted towards
# notes and rounded up. docs/context.md has the ratios.
_PIECE, _LETTER = 0.6, 0.12  # of a word in ASCII; camelCase is several
_DIGITS = 1.4  # up to three, and the blank that no number takes along
_PUNCTUATION_RUN, _PUNCTUATION = 0.25, 0.2
_DENSE_PUNCTUATION = 0.7  # six and more different ones in a row
_LINE_END, _INDENT = 1.4, 0.7
_HAN, _KANA, _HANGUL, _WIDE_PUNCTUATION = 0.9, 0.87, 0.82, 0.85
_ACCENTED, _CYRILLIC, _OTHER, _EASTERN, _SYMBOL, _CONTROL = 0.8, 0.33, 0.42, 0.7, 1.6, 1.0

_CONTINUATION = bytes(range(0x80, 0xC0))


def _classes() -> bytes:
    """The class of each byte of UTF-8; a lead byte stands for its character."""
    table = bytearray(b"c" * 256)
    for byte in range(0x21, 0x7F):
        kind = "." if not chr(byte).isalnum() else "0" if chr(byte).isdigit() else "a"
        table[byte] = ord("A" if chr(byte).isupper() else kind)
    for first, last, kind in (
        (0x09, 0x09, " "), (0x20, 0x20, " "), (0x0A, 0x0A, "\n"), (0x0D, 0x0D, "\n"),
        (0xC2, 0xC9, "l"), (0xCA, 0xE0, "o"), (0xD0, 0xD3, "y"), (0xE1, 0xE1, "e"),
        (0xE2, 0xE2, "p"), (0xE3, 0xE3, "k"), (0xE4, 0xE9, "h"), (0xEA, 0xED, "g"), (0xEE, 0xEE, "r"),
        (0xEF, 0xEF, "p"), (0xF0, 0xF4, "r"),
    ):  # fmt: skip
        table[first : last + 1] = kind.encode() * (last + 1 - first)
    return bytes(table)


_CLASSES = _classes()
_PIECES = re.compile(rb"A?a+|A+(?!a)")
_NUMBERS = re.compile(rb"0{1,3}")
_RUNS = re.compile(rb"\.+")
_LINE_ENDS = re.compile(rb"\n{1,40}")
_INDENTS = re.compile(rb" {2,80}")
_VIETNAMESE = (b"\xe1\xb8", b"\xe1\xb9", b"\xe1\xba", b"\xe1\xbb")
_LONG_RUNS = re.compile(rb"[!-/:-@\[-`{-~]{6,}")


def estimate(text: str) -> int:
    """About the tokens of `text`, an int of at least 1 for any text but the empty one; never raises.

    The sum, rounded up, over the UTF-8 text of: 0.6 a word in ASCII letters (each hump of camelCase
    is one) and 0.12 a letter of it; 1.4 for up to three digits; 0.25 a run of ASCII punctuation and
    0.2 a character of it, or 0.7 a character where six and more stand in a row that are not a rule
    such as `-----`; 1.4 line ends, 0.7 an indent; 0.9 a Han character, 0.87 kana, 0.82 Hangul, 0.85
    Chinese punctuation; 0.8 an accented Latin letter, 0.33 a Cyrillic one, 0.42 a letter of other
    scripts, 0.7 one of Khmer, Georgian and their neighbours in Unicode; 1.6 a symbol or emoji; 1 a
    control character.

    Fitted to o200k_base. Other vocabularies cost other than that: cl100k_base half as much again on
    Chinese, Qwen's a sixth less.
    """
    data = text.encode("utf-8", "surrogatepass")
    kinds = data.translate(_CLASSES, _CONTINUATION)
    number = kinds.count
    tokens = (
        _PIECE * len(_PIECES.findall(kinds))
        + _LETTER * (number(b"a") + number(b"A"))
        + _DIGITS * len(_NUMBERS.findall(kinds))
        + _PUNCTUATION_RUN * len(_RUNS.findall(kinds))
        + _PUNCTUATION * number(b".")
        + _LINE_END * len(_LINE_ENDS.findall(kinds))
        + _INDENT * len(_INDENTS.findall(kinds))
        + _CONTROL * number(b"c")
    )
    if b"......" in kinds:
        for run in _LONG_RUNS.findall(data):
            price = _DENSE_PUNCTUATION if len(set(run)) > 3 else 1 / 16
            tokens += (price - _PUNCTUATION) * len(run)
    if not text.isascii():
        # E2 80 and E3 80 are punctuation, the rest of E2 symbols and of E3 kana.
        wide = data.count(b"\xe3\x80")
        symbols = data.count(b"\xe2") - data.count(b"\xe2\x80")
        # E1 B8 to E1 BB are letters of Vietnamese, whose words are dear enough already.
        eastern = number(b"e") - sum(map(data.count, _VIETNAMESE)) if b"e" in kinds else 0
        tokens += (
            _HAN * number(b"h")
            + _KANA * (number(b"k") - wide)
            + _HANGUL * number(b"g")
            + _WIDE_PUNCTUATION * (wide + number(b"p") - symbols)
            + _ACCENTED * number(b"l")
            + _CYRILLIC * number(b"y")
            + _EASTERN * eastern
            + _OTHER * number(b"o")
            + _SYMBOL * (number(b"r") + symbols)
        )
    return max(ceil(tokens), 1) if text else 0
