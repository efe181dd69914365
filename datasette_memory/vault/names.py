"""File names made from titles: readable, and the same file on Linux, macOS and Windows.

A name is what a user sees in a folder, so it keeps the title's words and script; what some system
refuses, hides or takes for something else becomes a dash.
"""

from __future__ import annotations

import re
import unicodedata

from ..text.lazy import lazy

SUFFIX = ".md"
MARKDOWN_SUFFIXES = (SUFFIX, ".markdown", ".mdown", ".mkd")
MAX_BYTES = 120
"""Bytes of a whole file name in UTF-8, with the number of a namesake and the suffix."""

UNTITLED = "untitled"

_ROOM = len("-999" + SUFFIX)
# What follows in a title can no longer reach the name.
_MAX_TITLE = 500

# Windows refuses <>:"/\|?* ; #^[] have a meaning in the wikilinks that name a file. U+226E and
# U+226F are "<" and ">" with a stroke, and fall apart into them on a disk that decomposes.
_UNSAFE = frozenset('<>:"/\\|?*#^[]\u226e\u226f\ufffd')
# Control characters, all blanks and line ends, private use and what is not assigned (a Mac refuses
# to store it). Format characters and lone surrogates are nothing that a reader sees.
_DASHED = frozenset({"Cc", "Zs", "Zl", "Zp", "Co", "Cn"})
_DROPPED = frozenset({"Cf", "Cs"})
_VARIATION_SELECTORS = lazy("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_DASHES = lazy("-{2,}")
# At the start a dot hides the file, a dash looks like an option, a tilde like a home; blanks and
# dots at the end are cut by Windows.
_EDGES = " .-~"

# https://learn.microsoft.com/windows/win32/fileio/naming-a-file: devices, whatever follows a dot.
_DEVICE = lazy(
    r"(CON|PRN|AUX|NUL|CLOCK\$|CONIN\$|CONOUT\$|(?:COM|LPT)[0-9\xb9\xb2\xb3])(?=\.|\Z)",
    re.IGNORECASE,
)


def file_name(title: str) -> str:
    """The stem of a file name for a card called `title`: no folder, no suffix, never empty.

    NFC, blanks and unsafe characters as single dashes, at most 120 bytes in UTF-8 together with
    `-999.md`, cut where a reader sees a character end. Windows' device names get an underscore.
    Never raises.
    """
    name = title.strip()[:_MAX_TITLE]
    if not (name.isascii() and name.isalnum()):
        name = _safe(name)
    name = _guarded(name)
    shorter = _cut(name, MAX_BYTES - _ROOM)
    if shorter != name:
        # A cut can lay bare an edge, and behind many dots a device.
        name = _guarded(shorter.rstrip(_EDGES))
    return name or UNTITLED


def numbered(stem: str, number: int) -> str:
    """`stem` for the first card of that name, `stem-2` for the second, and so on.

    Beyond 999, or for a stem that `file_name` did not make, the stem is cut where name and suffix
    would be longer than 120 bytes.
    """
    if number < 2:
        return stem
    tail = f"-{number}"
    return (_cut(stem, MAX_BYTES - len(tail + SUFFIX)).rstrip(_EDGES) or UNTITLED) + tail


def name_key(path: str) -> str:
    """A file name or path in the form in which two are equal when a Mac or Windows may take them
    for one: canonical caseless matching (Unicode 3.13, D145), in NFC.

    >>> name_key("Straße.md") == name_key("STRASSE.md")
    True
    """
    if path.isascii():
        return path.lower()
    folded = unicodedata.normalize("NFD", path).casefold()
    return unicodedata.normalize("NFC", folded)


def _safe(title: str) -> str:
    if not title.isascii():
        title = _VARIATION_SELECTORS.sub("", title)
    kept: list[str] = []
    for character in title:
        category = unicodedata.category(character)
        if category in _DASHED:
            kept.append("-")
        elif category not in _DROPPED:
            kept.append(character)
    # Composed last: what stood between two characters is gone now.
    name = unicodedata.normalize("NFC", "".join(kept))
    name = "".join("-" if character in _UNSAFE else character for character in name)
    name = _DASHES.sub("-", name).strip(_EDGES)
    lower = name.lower()
    for suffix in MARKDOWN_SUFFIXES:
        if lower.endswith(suffix):
            name = name[: -len(suffix)].rstrip(_EDGES)
            break
    while name and _is_mark(name[0]):
        # Without a letter of its own a mark would sit on the slash before the name.
        name = name.lstrip(name[0]).lstrip(_EDGES)
    return name


def _guarded(name: str) -> str:
    return _DEVICE.sub(r"\1_", name, count=1) if _DEVICE.match(name) else name


def _cut(text: str, limit: int) -> str:
    """The start of `text` of at most `limit` bytes in UTF-8, cut between graphemes where those
    are of sane length."""
    if len(text) * 4 <= limit:
        return text
    data = text.encode("utf-8")
    if len(data) <= limit:
        return text
    short = data[:limit].decode("utf-8", "ignore")
    end = len(short)
    while end > 0 and len(short) - end < 16 and _continues(text, end):
        end -= 1
    return short if end == 0 or _continues(text, end) else short[:end]


def _continues(text: str, at: int) -> bool:
    """Whether the character at `at` belongs to the one before it."""
    character = text[at]
    if _is_mark(character) or "\U0001f3fb" <= character <= "\U0001f3ff":
        return True
    if "\u1160" <= character <= "\u11ff":
        return True
    if _is_flag(character):
        # Two of these letters are one flag.
        before = text[:at]
        return (len(before) - len(before.rstrip(_FLAGS))) % 2 == 1
    return False


_FLAGS = "".join(map(chr, range(0x1F1E6, 0x1F200)))


def _is_flag(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _is_mark(character: str) -> bool:
    return unicodedata.category(character)[0] == "M"
