"""Reads the ledger: every event there is, and every line that is none."""

import hashlib
import heapq
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from .events import MAX_LINE, Event, parse
from .writer import FILE_NAME

Marks = Mapping[str, Mapping[str, int | str]]
"""How far each file was read, as JSON can keep it: `{file: {offset, lines, sample}}`.

`offset` counts bytes and `lines` the lines before it; `sample` tells the part before it from
another that has taken its place.
"""

_SAMPLE = 4_096
_SUFFIX = ".jsonl"


@dataclass(frozen=True, slots=True)
class Position:
    """Where an event stands. `line` counts from 1; `end` is the byte behind the line."""

    file: str
    line: int
    end: int


@dataclass(frozen=True, slots=True)
class Fault:
    """What could not be read. `line` is 0 when it is about the file as a whole."""

    file: str
    line: int
    reason: str


class Reading:
    """Events with their positions, to be walked through once.

    `faults`, `restarted` and `positions()` say what was found up to where the walk has come.
    """

    def __init__(self, folder: Path, since: Marks | None, merged: bool) -> None:
        self.faults: list[Fault] = []
        self.restarted: list[str] = []
        """Files that were read before and are now read from their start, or are gone."""
        self._folder = Path(folder)
        self._since = dict(since or {})
        self._reached: dict[str, tuple[int, int, str | None]] = {}
        self._events = self._merged() if merged else self._in_files(self._files())

    def __iter__(self) -> Iterator[tuple[Event, Position]]:
        return self

    def __next__(self) -> tuple[Event, Position]:
        item = next(self._events)
        self._reached[item[1].file] = (item[1].end, item[1].line, None)
        return item

    def positions(self) -> dict[str, dict[str, int | str]]:
        """What to give as `since` to read on from here. A last line without an end is not read."""
        marks = dict(self._since)
        for name, (offset, lines, sample) in self._reached.items():
            if sample is None:
                try:
                    with open(self._folder / name, "rb") as file:
                        sample = _sample(file, offset)
                except OSError:
                    continue
            marks[name] = {"offset": offset, "lines": lines, "sample": sample}
        return marks

    def _files(self) -> list[str]:
        """The names of the ledger's files, by month and then host."""
        names, strangers = [], []
        try:
            with os.scandir(self._folder) as entries:
                for entry in entries:
                    if FILE_NAME.fullmatch(entry.name) and entry.is_file():
                        names.append(entry.name)
                    elif entry.name.endswith(_SUFFIX):
                        strangers.append(entry.name)
        except FileNotFoundError:
            pass
        except OSError as error:
            self.faults.append(Fault(self._folder.name, 0, f"cannot be read: {error.strerror}"))
            return []
        for name in sorted(strangers):
            self.faults.append(Fault(name, 0, "not a file that the ledger made"))
        for name in sorted(self._since.keys() - set(names)):
            self.faults.append(Fault(name, 0, "was read before and is gone"))
            self._forget(name)
        return sorted(names, key=lambda name: FILE_NAME.fullmatch(name).groups())

    def _in_files(self, names: list[str]) -> Iterator[tuple[Event, Position]]:
        for name in names:
            yield from self._in_file(name)

    def _merged(self) -> Iterator[tuple[Event, Position]]:
        hosts: dict[str, list[str]] = {}
        for name in self._files():
            hosts.setdefault(FILE_NAME.fullmatch(name)[2], []).append(name)
        # Of equal times the host that is named first comes first. Within a host the order of the
        # lines stays, also where a clock was set back.
        streams = [self._in_files(names) for _, names in sorted(hosts.items())]
        yield from heapq.merge(*streams, key=lambda item: item[0].t)

    def _in_file(self, name: str) -> Iterator[tuple[Event, Position]]:
        try:
            with open(self._folder / name, "rb") as file:
                yield from self._lines(name, file, *self._resume(name, file))
        except OSError as error:
            self.faults.append(Fault(name, 0, f"cannot be read: {error.strerror}"))

    def _resume(self, name: str, file: IO[bytes]) -> tuple[int, int]:
        """The offset and the number of lines to read on from."""
        mark = self._since.get(name)
        if mark is None:
            return 0, 0
        try:
            offset, lines, sample = int(mark["offset"]), int(mark["lines"]), mark["sample"]
        except (KeyError, TypeError, ValueError):
            reason = "was read before, nobody knows how far"
        else:
            if not 0 <= offset <= os.fstat(file.fileno()).st_size:
                reason = "is shorter than it was"
            elif sample != _sample(file, offset):
                reason = "is another than it was"
            else:
                return offset, lines
        self.faults.append(Fault(name, 0, f"{reason}: it is read anew"))
        self._forget(name)
        return 0, 0

    def _forget(self, name: str) -> None:
        del self._since[name]
        self.restarted.append(name)

    def _lines(
        self, name: str, file: IO[bytes], offset: int, number: int
    ) -> Iterator[tuple[Event, Position]]:
        file.seek(offset)
        while line := file.readline(MAX_LINE + 1):
            # It may be the writer's last line, of which more comes while it is read.
            while not line.endswith(b"\n") and len(line) <= MAX_LINE:
                if not (more := file.readline(MAX_LINE + 1 - len(line))):
                    break
                line += more
            size = len(line)
            too_long = size > MAX_LINE and not line.endswith(b"\n")
            while not line.endswith(b"\n") and (more := file.readline(MAX_LINE)):
                size += len(more)
                line = more
            if not line.endswith(b"\n"):
                self.faults.append(Fault(name, number + 1, "the last line has no end"))
                break
            offset += size
            number += 1
            if too_long:
                self.faults.append(Fault(name, number, f"longer than {MAX_LINE} bytes"))
            elif line.strip():
                try:
                    event = parse(line)
                except ValueError as error:
                    self.faults.append(Fault(name, number, str(error)))
                else:
                    yield event, Position(name, number, offset)
        self._reached[name] = (offset, number, _sample(file, offset))


def read(folder: Path, since: Marks | None = None) -> Reading:
    """All events by file: month, then host, then line. `since` leaves out what was read before.

    Lines that are no events are passed over and reported in `faults`; nothing is raised.
    """
    return Reading(folder, since, merged=False)


def merge(folder: Path, since: Marks | None = None) -> Reading:
    """All events in the order in which they happened, as far as that can be told.

    Within one host that is the order of its lines, whatever its clock said; between hosts it is
    `t`, then the host's name. Otherwise as `read`.
    """
    return Reading(folder, since, merged=True)


def _sample(file: IO[bytes], offset: int) -> str:
    """A hash of how the part before `offset` begins and ends."""
    file.seek(0)
    sample = hashlib.sha256(file.read(min(offset, _SAMPLE)))
    file.seek(max(0, offset - _SAMPLE))
    sample.update(file.read(min(offset, _SAMPLE)))
    return sample.hexdigest()[:16]
