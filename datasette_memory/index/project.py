"""What the ledger tells, as tables: the events, how often a card was read, links on foreign cards.

Projecting all events at once gives the same tables as one part after the other.
"""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

from ..ledger.events import Event
from ..ledger.reader import merge
from .connection import transaction
from .links import link_keys, resolve
from .rows import INSERT_LINK, as_json
from .schema import get_meta, set_meta

_MARKS = "ledger_marks"

_INSERT = (
    "insert or ignore into events (id, t, kind, ref, source, path, surface, agent, session, data, "
    "host, line) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


def project(connection, ledger: Path, cards_changed: bool = False) -> list[str]:
    """Take in the events that the index does not know yet; gives one line a fault of the ledger.

    `cards_changed` says that cards came, went or moved, and what hangs on both is due anyway.
    """
    reading = merge(ledger, json.loads(get_meta(connection, _MARKS) or "{}"))
    events = [_row(event, position.file, position.line) for event, position in reading]
    if reading.restarted:
        # The file is not what it was, so neither is what was made of it: all over again.
        reading = merge(ledger)
        events = [_row(event, position.file, position.line) for event, position in reading]
    if events or reading.restarted or cards_changed:
        with transaction(connection):
            if reading.restarted:
                connection.execute("delete from events")
            connection.executemany(_INSERT, events)
            set_meta(connection, _MARKS, json.dumps(reading.positions(), sort_keys=True))
            _derive(connection)
    return [f"{fault.file}:{fault.line}: {fault.reason}" for fault in reading.faults]


def project_evidence(connection, folder: Path) -> None:
    """Make the table `evidence` list the records in the folder; it holds no text."""
    columns = ("sha256", "bytes", "kind", "origin", "session", "created", "sensitivity")
    rows = [[record[column] for column in columns] for record in _records(folder, columns)]
    with transaction(connection):
        connection.execute("delete from evidence")
        connection.executemany(
            f"insert or ignore into evidence ({', '.join(columns)}) values (?, ?, ?, ?, ?, ?, ?)",
            rows,
        )


def _records(folder: Path, columns: tuple[str, ...]) -> Iterator[dict]:
    for path in sorted(folder.glob("??/*.json")):
        with contextlib.suppress(OSError, ValueError):
            record = json.loads(path.read_bytes())
            # A secret record is no business of a database.
            if set(columns) <= record.keys() and record["sensitivity"] != "secret":
                yield record


def _row(event: Event, file: str, line: int) -> tuple:
    by = event.by
    return (
        event.id,
        event.t,
        event.kind,
        event.ref,
        event.source,
        event.path,
        by["surface"],
        by["agent"],
        by["session"],
        as_json(event.data),
        file,
        line,
    )


def _derive(connection) -> None:
    """Make what depends on events and cards together."""
    moves = _moves(connection)
    connection.execute("delete from card_stats")
    connection.executemany(
        "insert into card_stats (card_id, reads, last_read) select id, ?3, ?4 from cards "
        "where source = ?1 and path = ?2 on conflict (card_id) do update set "
        "reads = reads + excluded.reads, last_read = max(last_read, excluded.last_read)",
        _reads(connection, moves),
    )
    connection.execute("delete from links where origin = 'ledger'")
    for (source, path), links in _links(connection, moves).items():
        row = connection.execute(
            "select id from cards where source = ? and path = ?", (source, path)
        ).fetchone()
        if row:
            connection.executemany(
                INSERT_LINK,
                [(row[0], *link, "ledger", *link_keys(link[1], path)) for link in links],
            )
    resolve(connection)


_Place = tuple[str, str]
_Moves = dict[_Place, list[tuple[str, str]]]


def _moves(connection) -> _Moves:
    """From a place to the moves away from it: when, and to which path of the same source."""
    moves: _Moves = {}
    for t, source, path, data in connection.execute(
        "select t, source, path, data from events where kind = 'moved' order by t, id"
    ):
        old = json.loads(data).get("old_path")
        if isinstance(old, str) and old != path:
            moves.setdefault((source, old), []).append((t, path))
    return moves


def _now_at(place: _Place, t: str, moves: _Moves) -> _Place:
    """Where the card is now that was at `place` at time `t`."""
    source, path = place
    while True:
        later = next(((when, to) for when, to in moves.get((source, path), ()) if when >= t), None)
        if later is None:
            return source, path
        t, path = later[0] + "~", later[1]  # Behind this move, in the order of text.


def _reads(connection, moves: _Moves) -> list[tuple]:
    """`(source, path, reads, last read)`, with reads before a move counted where the card is."""
    rows = connection.execute(
        "select source, path, count(*), max(t) from events where kind = 'read' "
        "and source is not null and path is not null group by source, path"
    ).fetchall()
    moved = [row for row in rows if (row[0], row[1]) in moves]
    found = [row for row in rows if (row[0], row[1]) not in moves]
    for source, path, *_ in moved:
        for (t,) in connection.execute(
            "select t from events where kind = 'read' and source = ? and path = ?", (source, path)
        ).fetchall():
            found.append((*_now_at((source, path), t, moves), 1, t))
    return found


def _links(connection, moves: _Moves) -> dict[_Place, list[tuple[str, str]]]:
    """The links that the ledger holds and has not taken back, by the card that they are on."""
    found: dict[_Place, dict[tuple[str, str], None]] = {}
    for t, kind, source, path, data in connection.execute(
        "select t, kind, source, path, data from events where kind in ('linked', 'unlinked') "
        "and data ->> 'origin' = 'ledger' order by t, id"
    ):
        record = json.loads(data)
        link = (str(record.get("type")), str(record.get("target")))
        links = found.setdefault(_now_at((source, path), t, moves), {})
        if kind == "linked":
            links[link] = None
        else:
            links.pop(link, None)
    return {place: list(links) for place, links in found.items()}
