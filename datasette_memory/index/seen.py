"""What the index has seen: which sources, and how far the ledger.

A change is in the ledger before it is in the index. What the index missed, because it could not be
written just then or a power cut took its last transactions, is found by looking at what the ledger
has grown by since.
"""

import contextlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

from ..ledger.events import Event, parse
from ..ledger.writer import FILE_NAME
from ..vault.sources import Source
from .schema import MARKS, get_meta, set_meta

_SEEN = "ledger_seen"

# Most lines are of these, which change no card.
_PASSED = (b'"kind":"read"', b'"kind":"inject"', b'"kind":"feedback"')
_CHANGES = frozenset(
    {"created", "updated", "superseded", "moved", "linked", "unlinked", "trashed", "restored"}
)


def has_seen(connection, source: str, root: str) -> bool:
    """Whether the index was ever brought in step with the source at `root`."""
    row = connection.execute(
        "select root from sources where name = ? and imported is not null", (source,)
    ).fetchone()
    return row is not None and row[0] == root


def announce(connection, source: Source) -> None:
    """Let the index take single cards of a source that it has not seen yet. Runs in the caller's
    transaction."""
    connection.execute(
        "insert or ignore into sources (name, root, exclude, max_bytes) values (?, ?, ?, ?)",
        (source.name, source.root, json.dumps(source.exclude), source.max_bytes),
    )


@dataclass(frozen=True, slots=True)
class Growth:
    """Changes of cards that the index may have missed, the oldest of a file first.

    `ends` is how far each file of the ledger goes, in bytes.
    """

    changes: tuple[Event, ...]
    ends: dict[str, int]


def growth(connection, ledger: Path) -> Growth:
    """What the ledger has grown by since the index last followed it."""
    known = {
        name: int(mark["offset"])
        for name, mark in json.loads(get_meta(connection, MARKS) or "{}").items()
    }
    for name, end in json.loads(get_meta(connection, _SEEN) or "{}").items():
        known[name] = max(end, known.get(name, 0))
    changes: list[Event] = []
    ends: dict[str, int] = {}
    for name, size in sorted(_sizes(ledger).items()):
        begin = known.get(name, 0)
        # A file that is shorter than it was is another one.
        begin = begin if begin <= size else 0
        ends[name] = begin
        if size > begin:
            with contextlib.suppress(OSError), open(ledger / name, "rb") as file:
                file.seek(begin)
                lines, newline, _ = file.read(size - begin).rpartition(b"\n")
                ends[name] += len(lines) + len(newline)
                changes += _changes(lines)
    return Growth(tuple(changes), ends)


def follow(connection, ends: dict[str, int]) -> None:
    """Keep how far the index has followed the ledger. Runs in the caller's transaction."""
    set_meta(connection, _SEEN, json.dumps(ends, sort_keys=True))


def grown_by_us(ends: dict[str, int], ledger: Path, host: str) -> dict[str, int]:
    """`ends`, with the files of this machine to where they now end."""
    own = {name: size for name, size in _sizes(ledger).items() if name.endswith(f".{host}.jsonl")}
    return ends | own


def _changes(lines: bytes) -> list[Event]:
    found = []
    for line in lines.split(b"\n"):
        if line and not any(kind in line for kind in _PASSED):
            with contextlib.suppress(ValueError):
                event = parse(line)
                if event.kind in _CHANGES:
                    found.append(event)
    return found


def _sizes(ledger: Path) -> dict[str, int]:
    try:
        with os.scandir(ledger) as entries:
            return {
                entry.name: entry.stat().st_size
                for entry in entries
                if FILE_NAME.fullmatch(entry.name)
            }
    except OSError:
        return {}
