"""What a caller wants a card to say, in the form in which it will be read again.

A card cuts what is too long when it is read; whoever writes one is told before.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from .errors import MemoryFault
from .vault.card import MAX_SUMMARY, MAX_TITLE, MAX_TTL, MAX_WORD, SENSITIVITIES
from .vault.compose import clean_body, one_line
from .vault.inline import MAX_TAG
from .vault.kinds import by_name

_LISTS = {"tags": MAX_TAG, "keywords": MAX_WORD, "aliases": MAX_TITLE}
_LINES = {
    "title": MAX_TITLE, "summary": MAX_SUMMARY, "kind": MAX_WORD, "project": MAX_WORD,
    "agent": MAX_WORD, "session": MAX_WORD,
}  # fmt: skip
# A reader takes so many digits.
_LARGEST = 10**18 - 1


def checked(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a card as they will be read again; None for what says nothing.

    Texts become one line without blanks around it, a list loses what is empty or there twice,
    tags lose their `#`. A list may be a text with commas. Raises MemoryFault for what is too long,
    is no number where one is meant, or is no sensitivity; dates are left to the reader.
    """
    return {name: _checked(name, value) for name, value in fields.items()}


def body_of(text: str) -> str:
    """The body of a card as it will be read again, without empty lines around it.

    Line ends become `\\n`, NULs go, a lone surrogate becomes U+FFFD.
    """
    return clean_body(text).strip("\n")


def words(value: str | Iterable[Any] | None) -> list[str]:
    """The items of a list, or of a text with commas between them, Chinese ones too."""
    if isinstance(value, str):
        value = value.replace("，", ",").replace("、", ",").split(",")
    return [word for word in (str(one).strip() for one in value or ()) if word]


def _checked(name: str, value: Any) -> Any:
    if value is None or value == "":
        return None
    if name in _LISTS:
        return _list(name, value, _LISTS[name])
    if name in _LINES:
        return _line(name, value, _LINES[name])
    if name == "sensitivity":
        if value not in SENSITIVITIES:
            raise MemoryFault(
                f"{value!r} is no sensitivity", f"it is one of {', '.join(SENSITIVITIES)}"
            )
    if name == "confidence":
        return _number(name, value, 0.0, 1.0)
    if name == "priority":
        return _whole(name, value, -_LARGEST, _LARGEST)
    if name == "ttl":
        return _whole(name, value, 0, MAX_TTL)
    return value


def _line(name: str, value: Any, limit: int) -> str | None:
    if not isinstance(value, str):
        raise MemoryFault(f"{name} must be a text, not a {type(value).__name__}")
    text = one_line(value)
    if name == "title":
        text = " ".join(text.split())
    elif name != "summary" and text.startswith("[[") and text.endswith("]]"):
        text = text[2:-2].partition("|")[0].strip()
    if name == "kind" and not by_name(text):
        known = by_name(text.lower().replace("-", "_").replace(" ", "_"))
        text = known.name if known else text
    return _fitting(name, text, limit) or None


def _list(name: str, value: Any, limit: int) -> tuple[str, ...] | None:
    if not isinstance(value, (str, list, tuple, set, frozenset)):
        raise MemoryFault(f"{name} must be a list of texts, not a {type(value).__name__}")
    found: dict[str, None] = {}
    for word in words(value):
        text = one_line(word)
        if name == "tags":
            text = text.lstrip("#").strip()
        if text:
            found[_fitting(name, text, limit)] = None
    return tuple(found) or None


def _fitting(name: str, text: str, limit: int) -> str:
    if len(text) > limit:
        raise MemoryFault(
            f"{name}: {text[:30]}... has {len(text):,} characters, and a card takes {limit:,}",
            "shorten it, and put the rest into the body",
        )
    return text


def _number(name: str, value: Any, low: float, high: float) -> float:
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not low <= number <= high:
        raise MemoryFault(f"{name} must be a number from {low:g} to {high:g}, not {value!r}")
    return number


def _whole(name: str, value: Any, low: int, high: int) -> int:
    try:
        number = int(value)
        if isinstance(value, bool) or number != float(value) or not low <= number <= high:
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise MemoryFault(f"{name} must be a whole number, not {value!r}") from None
    return number
