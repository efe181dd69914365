"""A file of a source that the index has no card of, and why."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable
from typing import NamedTuple

from ..errors import MemoryFault
from ..vault.card import parse_card
from ..vault.sources import Source, read, scan
from .links import fold


class Unindexed(NamedTuple):
    """A file without a card in the index. `reason` is `new`, `unreadable` or `skipped`; `why` says
    what is wrong with it, or is empty. `secret` cards have no row in any index."""

    source: str
    path: str
    reason: str
    why: str = ""
    ref: str | None = None
    title: str | None = None
    kind: str | None = None
    secret: bool = False


def find_unindexed(connection, sources: Iterable[Source], reference: str) -> Unindexed | None:
    """The file that `reference` means: by its path, or by the ref, title or alias of its card.

    Reads the folders of the sources, and the files that the index knows nothing of.
    """
    wanted = fold(reference)
    try:
        place = unicodedata.normalize("NFC", os.path.realpath(os.path.expanduser(reference)))
    except (OSError, ValueError):  # No name that a disk could have.
        place = ""
    for source in sources:
        known = {
            path: (fault, card)
            for path, fault, card in connection.execute(
                "select path, fault, card_id from files where source = ?", [source.name]
            )
        }
        try:
            files, skipped = scan(source)
        except MemoryFault:
            continue

        for skip in skipped:
            if _means(wanted, place, source, skip.path):
                return Unindexed(source.name, skip.path, "skipped", skip.reason)
        for file in files:
            fault, card_id = known.get(file.path, (None, None))
            means = _means(wanted, place, source, file.path)
            if card_id is not None:
                continue
            if fault is not None and means:
                return Unindexed(source.name, file.path, "unreadable", fault)
            try:
                card = parse_card(read(file, source), file.path)
            except OSError as error:
                if means:
                    why = f"cannot be read: {error.strerror or error}"
                    return Unindexed(source.name, file.path, "unreadable", why)
                continue
            names = filter(None, (card.ref, card.title, *card.aliases))
            if means or wanted in map(fold, names):
                secret = card.sensitivity == "secret"
                return Unindexed(
                    source.name, file.path, "new", "", card.ref, card.title, card.kind, secret
                )
    return None


def _means(wanted: str, place: str, source: Source, path: str) -> bool:
    """Whether a reference, folded or as a `place` in the file system, is the path of a file."""
    names = path, f"{source.name}/{path}", path.rpartition("/")[2]
    return wanted in map(fold, names) or place == os.path.join(os.path.realpath(source.root), path)
