"""What stages look up beside the cards that were found: neighbours, recent states, and files."""

from __future__ import annotations

import hashlib
import json
import os
import unicodedata
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from . import cards
from .filters import Filters

if TYPE_CHECKING:
    from ..index.connection import sqlite3
    from .candidate import Candidate

_FILES = """
select files.card_id, sources.root, files.path, files.mtime_ns, files.size, files.sha256
from files join sources on sources.name = files.source
where files.card_id in (select value from json_each(?))
"""

_LATEST = """
select id from cards where superseded_by is null and kind in (select value from json_each(?))
and {conditions} order by julianday(coalesce(updated, created)) desc, id limit ?
"""

_ALLOWED = """
select id from cards where superseded_by is null and id in (select value from json_each(?))
and {conditions}
"""


class Written(NamedTuple):
    """What the file of a card says that the index does not say yet. `gone`: there is no file."""

    superseded_by: str | None = None
    secret: bool = False
    gone: bool = False
    sensitivity: str | None = None
    confidence: float | None = None
    tags: tuple[str, ...] = ()


class Lookup:
    """Reads one index, and the files behind it, for one question; `filters` narrow what it adds."""

    def __init__(self, connection: sqlite3.Connection, filters: Filters = Filters()) -> None:
        self.connection = connection
        self._filters = filters
        self._written: dict[int, Written | None] = {}

    def load(self, known: Mapping[int, Mapping[str, object]]) -> list[Candidate]:
        """See `cards.load`."""
        return cards.load(self.connection, known)

    def latest(self, kinds: Iterable[str], limit: int) -> list[int]:
        """The cards of these kinds that were updated last and pass the filters."""
        if self._filters.nothing_allowed():
            return []
        conditions, parameters = self._filters.sql()
        sql = _LATEST.format(conditions=conditions)
        rows = self.connection.execute(sql, [json.dumps(list(kinds)), *parameters, limit])
        return [id for (id,) in rows]

    def around(self, id: int, depth: int) -> list[tuple[int, int]]:
        """`(id, depth)` of the cards around one that no other replaced and that pass the filters."""
        from ..index.graph import walk

        if self._filters.nothing_allowed():
            return []
        found = walk(self.connection, id, depth)
        conditions, parameters = self._filters.sql()
        sql = _ALLOWED.format(conditions=conditions)
        ids = json.dumps([one.id for one in found])
        allowed = {id for (id,) in self.connection.execute(sql, [ids, *parameters])}
        return [(one.id, one.depth) for one in found if one.id in allowed]

    def written(self, ids: Iterable[int]) -> dict[int, Written]:
        """What the files of those cards say that have changed since the index read them.

        A file that cannot be read says nothing; one of a source that is not there is not gone.
        """
        ids = list(ids)
        if unknown := [id for id in ids if id not in self._written]:
            self._written.update(dict.fromkeys(unknown))
            rows = self.connection.execute(_FILES, [json.dumps(unknown)])
            for id, *file in rows:
                self._written[id] = _written(*file)
        return {id: told for id in ids if (told := self._written.get(id))}


def _written(root: str, path: str, mtime_ns: int, size: int, sha256: str) -> Written | None:
    single = not os.path.isdir(root)
    for form in ("NFC", "NFD") if not path.isascii() else ("NFC",):
        place = root if single else os.path.join(root, unicodedata.normalize(form, path))
        try:
            status = os.stat(place)
        except FileNotFoundError:
            continue
        except OSError:
            return None
        if status.st_mtime_ns == mtime_ns and status.st_size == size:
            return None
        return _read(root, place, sha256)
    return None if single else Written(gone=True)


def _read(root: str, place: str, sha256: str) -> Written | None:
    from ..vault.sources import DEFAULT_MAX_BYTES, open_regular

    real, inside = os.path.realpath(place), os.path.realpath(root)
    if real != inside and not real.startswith(os.path.join(inside, "")):
        return None  # A link that leads out of the source.
    try:
        with open_regular(real) as file:
            data = file.read(DEFAULT_MAX_BYTES)
        # The size of a young file is left open in the index: as a rule it is the same text.
        if hashlib.sha256(data).hexdigest() == sha256:
            return None
        from ..vault.card import parse_card  # Brings YAML along.

        card = parse_card(data, os.path.basename(place))
    except (OSError, ValueError):
        return None
    return Written(
        card.superseded_by,
        card.sensitivity == "secret",
        sensitivity=card.sensitivity,
        confidence=card.confidence,
        tags=tuple(card.tags),
    )
