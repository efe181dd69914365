"""Moments and days as cards write them: ISO 8601, a date alone or with a time."""

from datetime import datetime, timezone

_DAY = 86_400


def moment(text: str | None) -> datetime | None:
    """The moment that `text` names, aware of its zone; None where it names none.

    A date alone is its first moment; what has no offset is in UTC, as SQLite takes it.
    """
    try:
        found = datetime.fromisoformat((text or "").strip())
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=timezone.utc)


def days_since(text: str | None, now: datetime) -> float | None:
    """How many days before `now` the moment was, below 0 if it is to come; None without one."""
    then = moment(text)
    return (now.timestamp() - then.timestamp()) / _DAY if then else None


def is_expired(
    created: str | None, ttl: int | None, valid_until: str | None, now: datetime | None = None
) -> bool:
    """Whether the time of a card has passed: its `valid_until`, or `ttl` days from `created`.

    A date without a time lasts to its end. A date that is none never passes.
    """
    now = now or datetime.now(timezone.utc)
    if valid_until and (end := moment(valid_until)):
        days = 1 if len(valid_until.strip()) <= 10 else 0
        if now.timestamp() >= end.timestamp() + days * _DAY:
            return True
    if ttl is not None and created and (start := moment(created)):
        return now.timestamp() >= start.timestamp() + ttl * _DAY
    return False
