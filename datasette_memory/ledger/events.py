"""An event of the ledger, and the line that it is on disk."""

import json
import os
import re
import time
from dataclasses import dataclass, field
from datetime import datetime
from math import isfinite
from typing import Any

VERSION = 1

KINDS = (
    "created",
    "updated",
    "superseded",
    "moved",
    "linked",
    "unlinked",
    "trashed",
    "restored",
    "read",
    "gap",
    "inject",
    "feedback",
    "runtime",
)

ACTOR = ("surface", "agent", "session")
"""The keys of `by`: who did it, and through what."""

MAX_VALUE = 2_000
"""Characters of one value: what is longer is a text, and belongs into the evidence."""

MAX_PATH = 4_096
MAX_LINE = 65_536
"""Bytes of a line, without its end."""

#: Keys that a text would come under, at any depth.
TEXT_KEYS = frozenset({"body", "text", "prompt", "content"})

_FIRST_KEYS = ("v", "id", "t", "kind", "ref", "source", "path", "by")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_KIND = re.compile(r"[a-z][a-z_]{0,31}", re.ASCII)
_HALF_PAIR = re.compile("[\ud800-\udfff]")
_BASE32 = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to the memory.

    `t` is UTC with milliseconds, `2026-12-01T02:03:04.567Z`; `by` has the keys of ACTOR, each a
    string or None; `data` holds the keys that this kind of event adds.
    """

    v: int
    id: str
    t: str
    kind: str
    ref: str | None = None
    source: str | None = None
    path: str | None = None
    by: dict[str, str | None] = field(default_factory=lambda: dict.fromkeys(ACTOR))
    data: dict[str, Any] = field(default_factory=dict)


def now_ms() -> int:
    """Milliseconds since 1970, by the clock of the machine, which may be set back."""
    return time.time_ns() // 1_000_000


def timestamp(ms: int) -> str:
    """UTC with milliseconds: `2026-12-01T02:03:04.567Z`."""
    seconds, rest = divmod(ms, 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{rest:03d}Z"


def new_id(ms: int | None = None) -> str:
    """26 characters of Crockford's base 32: 48 bits of milliseconds, 80 random bits.

    Sorts by time, and no two processes make the same one. It is laid out as a ULID.
    """
    ms = now_ms() if ms is None else ms
    number = (ms & (1 << 48) - 1) << 80 | int.from_bytes(os.urandom(10), "big")
    return "".join(_BASE32[number >> shift & 31] for shift in range(125, -5, -5))


def time_of_id(id: str) -> int:
    """The milliseconds since 1970 that `new_id` was given; 0 when `id` is none of its making."""
    number = 0
    for character in id[:10]:
        if (digit := _BASE32.find(character)) < 0:
            return 0
        number = number << 5 | digit
    return number


def cleaned(value: Any) -> Any:
    """`value` with halves of surrogate pairs, which no file can hold, replaced by U+FFFD.

    Raises RecursionError when it has no end.
    """
    if isinstance(value, str):
        return value if value.isascii() else _HALF_PAIR.sub("\ufffd", value)
    if isinstance(value, dict):
        return {cleaned(key): cleaned(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [cleaned(item) for item in value]
    return value


def dump(event: Event) -> bytes:
    """The line of the event, without its end.

    Raises ValueError when the event breaks a rule of the ledger: an unknown kind, a text in it, a
    value that JSON has no form for, too much of anything.
    """
    if event.kind not in KINDS:
        raise ValueError(f"no kind of event is named {_show(event.kind)}")
    if taken := event.data.keys() & set(_FIRST_KEYS):
        raise ValueError(f"the key {_show(min(taken))} has a meaning of its own")
    _check(event)
    known = {key: getattr(event, key) for key in _FIRST_KEYS}
    try:
        line = json.dumps(
            {**known, **event.data}, ensure_ascii=False, allow_nan=False, separators=(",", ":")
        ).encode("utf-8")
    except (TypeError, RecursionError) as error:
        raise ValueError(f"an event holds JSON values alone: {error}") from error
    if len(line) > MAX_LINE:
        raise ValueError(f"an event is at most {MAX_LINE} bytes, this one has {len(line)}")
    return line


def parse(line: bytes) -> Event:
    """The event of a line, with or without its end.

    A kind that a later version adds is kept as it stands. Raises ValueError when the line is no
    event, or one that `dump` would not write.
    """
    line = line.removesuffix(b"\n")
    if len(line) > MAX_LINE:
        raise ValueError(f"longer than {MAX_LINE} bytes")
    try:
        record = json.loads(line.decode("utf-8"), parse_constant=_no_constant)
        halves = b"\\u" in line and cleaned(record) != record
    except UnicodeDecodeError:
        raise ValueError("not UTF-8") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg}") from None
    except RecursionError:
        raise ValueError("nested too deep") from None
    if not isinstance(record, dict):
        raise ValueError("not a JSON object")
    if halves:
        raise ValueError("half of a surrogate pair")
    by = record.get("by")
    if by is None:
        by = {}
    elif not isinstance(by, dict):
        raise ValueError("'by' is not an object")
    event = Event(
        v=record.get("v"),
        id=record.get("id"),
        t=record.get("t"),
        kind=record.get("kind"),
        ref=record.get("ref"),
        source=record.get("source"),
        path=record.get("path"),
        by={key: by.get(key) for key in ACTOR},
        data={key: value for key, value in record.items() if key not in _FIRST_KEYS},
    )
    _check(event)
    return event


def _check(event: Event) -> None:
    """Raise ValueError, in a few words, unless the event obeys the rules of the ledger."""
    if type(event.v) is not int or event.v != VERSION:
        raise ValueError(f"version {_show(event.v)} of the ledger is not known here")
    for key, pattern in (("id", _ID), ("t", _TIME), ("kind", _KIND)):
        value = getattr(event, key)
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise ValueError(f"{key!r} is {_show(value)}")
    try:
        datetime.fromisoformat(event.t)
    except ValueError:
        raise ValueError(f"'t' is {_show(event.t)}") from None
    for key, limit in (("ref", MAX_VALUE), ("source", MAX_VALUE), ("path", MAX_PATH)):
        value = getattr(event, key)
        if value is not None and (not isinstance(value, str) or len(value) > limit):
            raise ValueError(f"{key!r} is {_show(value)}")
    if event.by.keys() != set(ACTOR):
        raise ValueError(f"'by' has the keys {', '.join(ACTOR)}, and these alone")
    for key, value in event.by.items():
        if value is not None and (not isinstance(value, str) or len(value) > MAX_VALUE):
            raise ValueError(f"'by.{key}' is {_show(value)}")
    if event.data:
        _check_data(event.data)


def _check_data(data: dict[str, Any]) -> None:
    pending: list[Any] = [data]
    seen = 0
    while pending:
        value = pending.pop()
        seen += 1
        # A list that holds itself has no end, and no line is long enough for so many values.
        if seen > MAX_LINE:
            raise ValueError("an event holds too many values")
        if isinstance(value, str):
            if len(value) > MAX_VALUE:
                raise ValueError(f"a value is longer than {MAX_VALUE} characters")
        elif isinstance(value, dict):
            for key in value:
                if not isinstance(key, str):
                    raise ValueError(f"the key {_show(key)} is no string")
                if key.strip().lower() in TEXT_KEYS:
                    raise ValueError(f"no event carries a text, and this one has {_show(key)}")
            pending += value.keys()
            pending += value.values()
        elif isinstance(value, list):
            pending += value
        elif isinstance(value, float):
            if not isfinite(value):
                raise ValueError(f"{value} is no JSON")
        elif value is not None and not isinstance(value, int):
            raise ValueError(f"a value is of the type {type(value).__name__}")


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _show(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
