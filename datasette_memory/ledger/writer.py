"""Adds events to the ledger: a file per month and host, a line per event."""

import os
import re
from pathlib import Path
from typing import Any

from ..durable import append_line, host_name
from .events import ACTOR, VERSION, Event, cleaned, dump, new_id, now_ms, timestamp

HOST_FILE = ".host"
"""Beside the ledger's files: one name a line, one line for each machine that wrote here."""

FILE_NAME = re.compile(r"(\d{4}-\d\d)\.([a-z0-9_-]{1,40}-[0-9a-f]{4})\.jsonl", re.ASCII)

_MAX_HOST_FILE = 1 << 20


class Ledger:
    """The ledger in `folder`, for this machine to add to. The folder is made when first needed."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)
        self._host: str | None = None

    @property
    def host(self) -> str:
        """What this machine is called in file names: its own name and four random hex digits.

        Chosen once and kept in HOST_FILE. Raises OSError.
        """
        if self._host is None:
            self._host = _kept_host(self.folder / HOST_FILE)
        return self._host

    def append(
        self,
        kind: str,
        *,
        ref: str | None = None,
        source: str | None = None,
        path: str | None = None,
        by: dict[str, str | None] | None = None,
        sync: bool = True,
        **data: Any,
    ) -> Event:
        """Record that this happened now; gives the event as it was written.

        `sync=False` leaves it to the system when the line reaches the disk: right for reads.
        Raises OSError when the line cannot be written, ValueError when the event breaks a rule.
        """
        by = by or {}
        if unknown := by.keys() - set(ACTOR):
            raise ValueError(f"'by' has no key {min(unknown)!r}")
        try:
            data = cleaned(data)
        except RecursionError:
            raise ValueError("an event is nested too deep") from None
        ms = now_ms()
        event = Event(
            v=VERSION,
            id=new_id(ms),
            t=timestamp(ms),
            kind=kind,
            ref=cleaned(ref),
            source=cleaned(source),
            path=cleaned(path),
            by={key: cleaned(by.get(key)) for key in ACTOR},
            data=data,
        )
        line = dump(event)
        append_line(self.folder / self._file_name(event.t[:7]), line, sync=sync)
        return event

    def _file_name(self, month: str) -> str:
        """The file of this month, or the last one there is when the clock was set back.

        Position orders events, so none may come to stand in a file before one that is older.
        """
        host = self.host
        try:
            names = os.listdir(self.folder)
        except FileNotFoundError:
            names = []
        for name in names:
            if (match := FILE_NAME.fullmatch(name)) and match[2] == host:
                month = max(month, match[1])
        return f"{month}.{host}.jsonl"


def _kept_host(path: Path) -> str:
    """The first line in the file for this machine; one is added when there is none.

    Several processes may add theirs at once: the first line is the one that all then read. A
    ledger that was copied to another machine, with this file, gets a line for that one.
    """
    name = _plain(host_name())
    own = re.compile(rf"{re.escape(name)}-[0-9a-f]{{4}}", re.ASCII)
    if found := _first_line(path, own):
        return found
    append_line(path, f"{name}-{os.urandom(2).hex()}".encode("ascii"))
    found = _first_line(path, own)
    if not found:
        raise OSError(f"{path} does not keep what is written to it")
    return found


def _first_line(path: Path, pattern: re.Pattern[str]) -> str | None:
    try:
        with open(path, "rb") as file:
            text = file.read(_MAX_HOST_FILE).decode("utf-8", "replace")
    except FileNotFoundError:
        return None
    return next((line for line in text.splitlines() if pattern.fullmatch(line)), None)


def _plain(name: str) -> str:
    """A name that every file system takes, and tells from others by more than case."""
    return re.sub(r"[^a-z0-9_]+", "-", name.lower()).strip("-_")[:35].strip("-_") or "host"
