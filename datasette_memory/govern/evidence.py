"""Whether the texts kept as evidence are all there, and still what their names say."""

import contextlib
import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from ..errors import MemoryFault
from ..evidence.store import EvidenceStore
from ..ledger.events import Event
from ..ledger.reader import read as read_ledger
from ..vault.card import parse_card
from ..vault.sources import Source, read, scan

_FOLDER = re.compile(r"[0-9a-f]{2}", re.ASCII)
_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)

Named = tuple[str, str]
"""The hash of a text, and who names it."""


def texts(folder: Path) -> Iterator[tuple[str, Path]]:
    """`(sha256, path)` of every text below the folder of the evidence; nothing is read."""
    for name in filter(_FOLDER.fullmatch, _names(folder)):
        for text in _names(folder / name):
            sha256, suffix = os.path.splitext(text)
            if suffix == ".txt" and _HASH.fullmatch(sha256):
                yield sha256, folder / name / text


def fault_of(folder: Path, sha256: str, path: Path) -> str | None:
    """What is wrong with a text or the record beside it, in one line; None when nothing is."""
    try:
        with open(path, "rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != sha256:
            return f"{path} is damaged: its contents are not those of its name"
        EvidenceStore(folder).record(sha256)
    except OSError as error:
        return f"{path} cannot be read: {error.strerror}"
    except MemoryFault as error:
        return error.error
    return None


def earlier_text(event: Event) -> Iterator[Named]:
    """The text that a card had before this event."""
    if "before" in event.data:
        yield str(event.data["before"]), f"an earlier text of {event.ref}"


def missing(folder: Path, named: Iterable[Named]) -> Iterator[str]:
    """A line for each text that is named and not there."""
    gone: dict[str, str] = {}
    for sha256, what in named:
        if _HASH.fullmatch(sha256) and not (folder / sha256[:2] / f"{sha256}.txt").exists():
            gone.setdefault(sha256, what)
    return (f"{sha256} is gone: {what}" for sha256, what in gone.items())


def faults(folder: Path, ledger: Path, vault: Source | None) -> Iterator[str]:
    """What is wrong with the evidence, a line each. Every text is read, and every card and event
    that may name one."""
    events = chain.from_iterable(earlier_text(event) for event, _ in read_ledger(ledger))
    yield from missing(folder, chain(events, _raw_texts(vault) if vault else ()))
    for sha256, path in texts(folder):
        if fault := fault_of(folder, sha256, path):
            yield fault


def _raw_texts(vault: Source) -> Iterator[Named]:
    with contextlib.suppress(MemoryFault):
        for file in scan(vault)[0]:
            with contextlib.suppress(OSError):
                card = parse_card(read(file, vault), file.path)
                named = card.refs.get("evidence", ())
                what = f"a raw text of {card.ref or 'a card'}"
                for sha256 in [named] if isinstance(named, str) else named:
                    yield str(sha256), what


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
