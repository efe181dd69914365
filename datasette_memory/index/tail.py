"""The end of the ledger that the table `events` does not hold yet, read without parsing it.

It is asked at every turn of a conversation, and most of it are reads. So lines are picked by their
bytes, and only those are parsed that may say what is asked.
"""

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ..ledger.events import VERSION, Event, parse
from ..ledger.writer import FILE_NAME
from .schema import MARKS, get_meta

#: So many bytes of a file are read, its last ones: an index that is further behind is due anyway.
MAX_BYTES = 8_000_000


# How a line of `ledger.events.dump` begins.
_OWN = b'{"v":%d,"id":"' % VERSION


@dataclass(frozen=True, slots=True)
class Part:
    """What a file of the ledger has grown by: whole lines, and the number of the line before."""

    file: str
    lines_before: int
    lines: bytes


class Tail:
    """What the index behind `connection` has not taken in of `ledger`, as it was just now: of each
    file `limit` bytes at the most."""

    def __init__(self, connection, ledger: Path, limit: int | None = MAX_BYTES) -> None:
        marks = json.loads(get_meta(connection, MARKS) or "{}")
        self.parts = tuple(_parts(ledger, marks, limit))

    def events(
        self, *kinds: str, holding: Callable[[bytes], bool] | None = None
    ) -> Iterator[tuple[Event, str, int]]:
        """The events of these kinds with their file and line, by file and then line.

        Of the lines those alone are parsed that `holding` lets pass.
        """
        for part in self.parts:
            lines = part.lines
            number, counted = part.lines_before, 0
            spans = (span for kind in kinds for span in _lines_with(lines, kind))
            for start, end in spans if len(kinds) == 1 else sorted(set(spans)):
                line = lines[start:end]
                if holding is None or holding(line):
                    number, counted = number + lines.count(b"\n", counted, start), start
                    with contextlib.suppress(ValueError):
                        event = parse(line)
                        if event.kind in kinds:
                            yield event, part.file, number + 1

    def records(self, kind: str, holding: Callable[[bytes], bool]) -> Iterator[dict]:
        """The events of a kind as objects of JSON, whose rules nobody has checked: that takes most
        of the time."""
        for part in self.parts:
            for start, end in _lines_with(part.lines, kind):
                line = part.lines[start:end]
                if holding(line):
                    with contextlib.suppress(ValueError, RecursionError):
                        record = json.loads(line)
                        if isinstance(record, dict) and record.get("kind") == kind:
                            yield record


def may_name(line: bytes, names: set[bytes]) -> bool:
    """Whether a line may have one of `names`, each as JSON has it, for its ref or path; told
    without parsing it where it is laid out as `ledger.events.dump` does."""
    if not line.startswith(_OWN):
        return True
    ref = line.partition(b'"ref":')[2].partition(b',"source":')[0]
    path = line.partition(b'"path":')[2].partition(b',"by":')[0]
    return ref in names or path in names


def _lines_with(lines: bytes, word: str) -> Iterator[tuple[int, int]]:
    """Where each line begins and ends that has `word` as a text of JSON."""
    needle = json.dumps(word).encode()
    find, rfind = lines.find, lines.rfind
    at = find(needle)
    while at >= 0:
        end = find(b"\n", at)
        yield rfind(b"\n", 0, at) + 1, end
        at = find(needle, end)


def _parts(ledger: Path, marks: dict, limit: int | None) -> Iterator[Part]:
    try:
        with os.scandir(ledger) as entries:
            sizes = {
                entry.name: entry.stat().st_size
                for entry in entries
                if FILE_NAME.fullmatch(entry.name)
            }
    except OSError:
        return
    for name, size in sorted(sizes.items()):
        mark = marks.get(name, {})
        begin, before = int(mark.get("offset", 0)), int(mark.get("lines", 0))
        if begin > size:
            # A file that is shorter than it was is another one.
            begin, before = 0, 0
        if size > begin:
            skipped = 0 if limit is None else max(0, size - begin - limit)
            with contextlib.suppress(OSError), open(ledger / name, "rb") as file:
                file.seek(begin + skipped)
                lines = file.read(size - begin - skipped)
                if skipped:
                    lines = lines[lines.find(b"\n") + 1 :]
                yield Part(name, before, lines[: lines.rfind(b"\n") + 1])
