"""The time that a question asks about: days that it names, and whether it asks for the past."""

from __future__ import annotations

from datetime import datetime

from ..text.lazy import lazy
from ..text.normalise import normalise

# 2026, 2026-09, 2026/9/30, 2026年9月30日; not a port, a version, or a part of a name.
_NAMED = lazy(
    r"(?<![\w.:/#-])((?:19|20)\d\d)"
    r"(?:(?:[-/]|年)(0?[1-9]|1[0-2])(?:(?:[-/]|月)(0?[1-9]|[12]\d|3[01])(?!\d))?)?"
    r"(?![A-Za-z0-9_-]|[.:/]\d)"
)

# Years told from now.
_TOLD = {
    "前年": -2, "去年": -1, "今年": 0, "明年": 1, "last year": -1, "this year": 0, "next year": 1,
}  # fmt: skip

_HISTORY = lazy(
    r"历史|以前|当时|过去|曾经|往年|去年|前年|上次|原先|原来"
    r"|\b(?:history|historical|previously|formerly|used to|back then|last (?:time|year)|in the past"
    r"|at that time|as of)\b"
)


def named_days(text: str, now: datetime) -> tuple[str, str] | None:
    """The first and the last day that a text names, as ISO dates; None if it names none.

    A year means all its days, a month likewise; with several of them, the days from the earliest
    to the latest. `去年` and `last year` are told from `now`.
    """
    text = normalise(text).casefold()
    days: list[str] = []
    for year, month, day in _NAMED.findall(text):
        days.append(f"{year}-{month or '1':0>2}-{day or '1':0>2}")
        days.append(f"{year}-{month or '12':0>2}-{day or '31':0>2}")
    for word, years in _TOLD.items():
        if word in text:
            days += [f"{now.year + years}-01-01", f"{now.year + years}-12-31"]
    return (min(days), max(days)) if days else None


def asks_for_history(text: str, now: datetime) -> bool:
    """Whether a question is about what was: by its words, or by days that have passed."""
    days = named_days(text, now)
    past = days is not None and days[1] < now.date().isoformat()
    return past or _HISTORY.search(normalise(text).casefold()) is not None
