"""Conditions that a card has to meet, as SQL over the table `cards`."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from ..errors import MemoryFault
from ..index.read import storable
from ..text.lazy import lazy

_AGO = lazy(r"(\d{1,5})\s*([hdwmy])", re.IGNORECASE)
_DAYS = {"h": 1 / 24, "d": 1, "w": 7, "m": 30, "y": 365}

# A date without a time lasts to its end. One that cannot be read is no bound.
_HELD = (
    "julianday(coalesce(cards.valid_from, cards.created)) <= julianday(?) "
    "and coalesce(julianday(cards.valid_until, iif(length(cards.valid_until) <= 10, '+1 day', "
    "'+0 days')) > julianday(?), 1)"
)


@dataclass(frozen=True, slots=True)
class Filters:
    """What a hit has to be. `tags` must all be there, `exclude_tags` none; `since` is ISO 8601 or
    an age like `30d`. `sensitivities` and `kinds` are those that are allowed; None allows all, and
    an empty list nothing.

    `as_of` is a moment, ISO 8601 with offset: the fact held at that time, as far as its card says
    so, or else the card was there.
    """

    kind: str | None = None
    source: str | None = None
    project: str | None = None
    tags: tuple[str, ...] = ()
    since: str | None = None
    as_of: str | None = None
    exclude_tags: tuple[str, ...] = ()
    sensitivities: tuple[str, ...] | None = None
    kinds: tuple[str, ...] | None = None

    def nothing_allowed(self) -> bool:
        """Whether no card whatever can meet the conditions."""
        return self.sensitivities == () or self.kinds == ()

    def sql(self) -> tuple[str, list[object]]:
        """Conditions joined by `and` (or `1`), and their parameters.

        Raises MemoryFault when `since` is no date.
        """
        conditions: list[str] = []
        parameters: list[object] = []
        for column in ("kind", "source", "project"):
            if value := getattr(self, column):
                conditions.append(f"cards.{column} = ? collate nocase")
                parameters.append(storable(value))
        for tag in self.tags:
            conditions.append("cards.id in (select card_id from tags where tag = ?)")
            parameters.append(storable(tag).lstrip("#"))
        for tag in self.exclude_tags:
            conditions.append("cards.id not in (select card_id from tags where tag = ?)")
            parameters.append(storable(tag).lstrip("#"))
        for column, allowed in (("sensitivity", self.sensitivities), ("kind", self.kinds)):
            if allowed is not None:
                places = ", ".join("?" * len(allowed))
                conditions.append(f"cards.{column} collate nocase in ({places})")
                parameters += map(storable, allowed)
        if self.since:
            conditions.append("julianday(cards.updated) >= julianday(?)")
            parameters.append(parse_since(self.since))
        if self.as_of:
            conditions.append(_HELD)
            parameters += [self.as_of] * 2
        return " and ".join(conditions) or "1", parameters


def parse_since(text: str, now: datetime | None = None) -> str:
    """A date or an age (`12h`, `30d`, `8w`, `6m`, `1y`) as ISO 8601 with offset.

    A date without a time is its first moment, one without an offset is UTC, as SQLite takes it.
    Raises MemoryFault for anything else.
    """
    text = text.strip()
    if match := _AGO.fullmatch(text):
        days = int(match.group(1)) * _DAYS[match.group(2).lower()]
        now = now or datetime.now(timezone.utc)
        first = datetime.min.replace(tzinfo=timezone.utc)
        then = now - timedelta(days=days) if days < (now - first).days else first
        return then.isoformat(timespec="seconds")
    try:
        return datetime.fromisoformat(text).isoformat()
    except ValueError:
        raise MemoryFault(
            f"{text!r} is no date", "write 2026-09-30, 2026-09-30T08:00+08:00, or an age like 30d"
        ) from None
