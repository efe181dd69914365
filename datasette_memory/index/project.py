"""What the ledger tells, as tables: the events, how often a card was read, links on foreign cards.

Projecting all events at once gives the same tables as one part after the other. What comes first
is told by the position in the ledger, because a clock may be set back.
"""

import contextlib
import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..ledger.cohort import VERDICTS, parse_cohort
from ..ledger.events import Event
from ..ledger.reader import merge
from ..ledger.writer import FILE_NAME
from . import numbers
from .connection import transaction
from .links import link_keys, resolve
from .rows import INSERT_LINK, as_json, secret_path
from .schema import MARKS, get_meta, set_meta
from .tail import Tail, may_name

# The secret cards when the events were taken in, hashed.
_SECRET = "ledger_secret"

_INSERT_STATS = (
    "insert into card_stats (card_id, reads, last_read, support, contradict, gain, adopted, rejected) "
    "select id, ?3, ?4, ?5, ?6, ?7, ?8, ?9 from cards where source = ?1 and path = ?2"
)

_INSERT = (
    "insert or ignore into events (id, t, kind, ref, source, path, surface, agent, session, data, "
    "host, line) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


def project(connection, ledger: Path, cards_changed: bool = False) -> list[str]:
    """Take in the events that the index does not know yet; gives one line a fault of the ledger.

    `cards_changed` says that cards came, went or moved, and what hangs on both is due anyway.
    """
    reading = merge(ledger, json.loads(get_meta(connection, MARKS) or "{}"))
    events = list(reading)
    faults = reading.faults
    secret = _secret_cards(connection)
    restarted = bool(reading.restarted) or get_meta(connection, _SECRET) != secret
    restarted = restarted or any("secret" in event.data for event, _ in events)
    if restarted:
        # The files are not what they were, or what may be told has changed: all over again.
        reading = merge(ledger)
        events = list(reading)
        faults = [*dict.fromkeys([*faults, *reading.faults])]
    if events or restarted or cards_changed:
        with transaction(connection):
            if restarted:
                connection.execute("delete from events")
            numbers.keep(connection, [event.ref for event, _ in events if event.ref])
            connection.executemany(
                _INSERT,
                [
                    _row(event, position.file, position.line)
                    for event, position in _without_secrets(connection, events)
                ],
            )
            set_meta(connection, MARKS, json.dumps(reading.positions(), sort_keys=True))
            set_meta(connection, _SECRET, secret)
            _derive(connection)
    return [f"{fault.file}:{fault.line}: {fault.reason}" for fault in faults]


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


# --- secret cards ---------------------------------------------------------------------------


def _secret_cards(connection) -> str:
    """One hash for all secret cards."""
    rows = connection.execute(
        "select source, path from files where card_id is null and sha256 is not null "
        "order by source, path"
    ).fetchall()
    return hashlib.sha256(repr(rows).encode()).hexdigest() if rows else ""


def _without_secrets(connection, events: list) -> Iterable:
    """The events, of secret cards only that something happened: a path tells a title.

    A card is secret when its file is, or when the last event that says so does.
    """
    hidden = {
        path
        for (path,) in connection.execute(
            "select path from files where card_id is null and sha256 is not null"
        )
    }
    last = {event.ref: event.data["secret"] for event, _ in events if "secret" in event.data}
    refs = {ref for ref, secret in last.items() if secret}
    if not hidden and not refs:
        return events
    paths = {
        (source, path)
        for event, _ in events
        for source, path, _ in _named(event)
        if path and secret_path(str(source), path) in hidden
    }
    refs |= {ref for event, _ in events for *place, ref in _named(event) if tuple(place) in paths}
    refs.discard(None)

    def told(event: Event) -> Event:
        if event.ref in refs or (event.source, event.path) in paths:
            return replace(event, ref=None, path=None, data={}, by=dict.fromkeys(event.by))
        if event.kind == "inject" and any(
            ref in refs or (source, path) in paths for source, path, ref in _named(event)
        ):
            return replace(event, data=_without_cards(event.data, refs, paths))
        return event

    return [(told(event), position) for event, position in events]


def _named(event: Event) -> Iterator[tuple[str | None, str | None, str | None]]:
    """Source, path and ref of each card that an event names."""
    yield event.source, event.path, event.ref
    if event.kind == "inject" and (cohort := parse_cohort(event.data)):
        for card in cohort.cards:
            yield card.source, card.path, card.ref


def _without_cards(data: dict, refs: set, paths: set) -> dict:
    """The data of an `inject` event without those cards."""
    kept = [
        row
        for row in data["cards"]
        if isinstance(row, dict)
        and str(row.get("ref")) not in refs
        and (str(row.get("source")), str(row.get("path"))) not in paths
    ]
    return data | {"cards": kept}


# --- what hangs on events and cards ---------------------------------------------------------


def _derive(connection) -> None:
    """Make what depends on events and cards together."""
    state = _walk(connection)
    connection.execute("delete from card_stats")
    connection.executemany(_INSERT_STATS, _stats(state))
    connection.execute("delete from links where origin = 'ledger'")
    for (source, path), found in state.links.items():
        row = connection.execute(
            "select id from cards where source = ? and path = ?", (source, path)
        ).fetchone()
        if row:
            connection.executemany(
                INSERT_LINK,
                [(row[0], *link, "ledger", *link_keys(link[1], path)) for link in found],
            )
    resolve(connection)


def _stats(state: "State") -> Iterator[tuple]:
    for place in state.counts.keys() | state.verdicts.keys():
        reads, last_read = state.counts.get(place, (0, None))
        judged = tally(state.verdicts.get(place, {}).values())
        if reads or judged != NOTHING:
            yield *place, reads, last_read, *judged


Place = tuple[str, str]
"""A source, and a path in it."""

Links = dict[Place, list[tuple[str, str]]]
"""The `(type, target)` of the links on each card."""

Verdicts = dict[str, str]
"""The verdict on a card by cohort, in the order in which they were given: the last one counts."""

#: What a card has by feedback: support, contradict, gain, adopted, rejected.
Judged = tuple[int, int, float, int, int]
NOTHING: Judged = (0, 0, 0.0, 0, 0)


def tally(verdicts: Iterable[str]) -> Judged:
    """What verdicts on a card come to, in their order: an adoption is support + 1 and gain + 0.1, a
    rejection contradict + 1 and gain - 0.1; gain never leaves -1..1 on the way."""
    adopted = rejected = tenths = 0
    for verdict in verdicts:
        if verdict == "adopted":
            adopted, tenths = adopted + 1, min(10, tenths + 1)
        elif verdict == "rejected":
            rejected, tenths = rejected + 1, max(-10, tenths - 1)
    return adopted, rejected, tenths / 10, adopted, rejected


def links_at(connection, moment: str) -> Links:
    """The links that the ledger held at `moment`, a time as events have it, by the present places
    of the cards that they are on."""
    return {place: list(found) for place, found in _walk(connection, moment).links.items()}


@dataclass(slots=True)
class State:
    """What the events say of the cards, each by its present place: how often and when last it was
    read, its links, the verdicts on it, and what `marks` were put on it."""

    counts: dict[Place, tuple[int, str]] = field(default_factory=dict)
    links: dict[Place, dict[tuple[str, str], None]] = field(default_factory=dict)
    verdicts: dict[Place, Verdicts] = field(default_factory=dict)
    marks: dict[Place, set[int]] = field(default_factory=dict)


Row = tuple[str, str, int, str, str, str, str]
"""An event: t, file, line, kind, source, path and data as JSON."""

_MOVES = ("moved", "trashed", "restored")


def walk(connection, tail: Tail, marks: Iterable[Row] = ()) -> State:
    """What the events come to with those of `tail`, which must be the whole of it.

    Reads are counted only as far as they decide what moved. `marks` are rows of the kind `mark`,
    whose data is a number: `State.marks` tells where the card that was there then is now.
    """
    return _walk(connection, tail=tail, marks=marks)


def _walk(
    connection, moment: str | None = None, tail: Tail | None = None, marks: Iterable[Row] = ()
) -> State:
    """What the events come to.

    Only what concerns places that cards moved from or to needs the reads one by one; a card in
    the trash has its place there, and may come back from it.
    """
    more = [*marks, *(_told(tail) if tail else ())]
    moved = [
        (source, _move(kind, path, json.loads(data)))
        for kind, source, path, data in connection.execute(
            "select kind, source, path, data from events "
            "where kind in ('moved', 'trashed', 'restored') and path is not null"
        )
    ]
    moved += [
        (source, _move(kind, path, json.loads(data)))
        for _, _, _, kind, source, path, data in more
        if kind in _MOVES
    ]
    places = {(source, path) for source, move in moved for path in move}
    state = State()
    if tail:
        more += _reads(tail, places)
    else:
        state.counts = {
            (source, path): (reads, last)
            for source, path, reads, last in connection.execute(
                "select source, path, count(*), max(t) from events where kind = 'read' "
                "and source is not null and path is not null group by source, path"
            )
            if (source, path) not in places
        }
    counts, links, verdicts = state.counts, state.links, state.verdicts
    came_from: dict[Place, str] = {}
    for at, t, kind, source, path, data in _in_order(connection, places, more):
        place, record = (source, path), json.loads(data)
        if kind == "read":
            reads, last = counts.get(place, (0, ""))
            counts[place] = reads + 1, max(last, t)
        elif kind in ("linked", "unlinked"):
            if moment is not None and at > moment:
                continue
            link = (str(record.get("type")), str(record.get("target")))
            if kind == "linked":
                links.setdefault(place, {})[link] = None
            else:
                links.get(place, {}).pop(link, None)
        elif kind == "feedback":
            cohort, verdict = record.get("cohort"), record.get("verdict")
            if isinstance(cohort, str) and verdict in VERDICTS:
                given = verdicts.setdefault(place, {})
                # What was said before is taken back.
                given.pop(cohort, None)
                given[cohort] = verdict
        elif kind == "mark":
            state.marks.setdefault(place, set()).add(record)
        else:
            old, new = _move(kind, path, record)
            here, there = (source, old), (source, new)
            states = (counts, links, verdicts)
            if came_from.get(there) == old and not any(here in one for one in states):
                # Told twice, by a sync that was cut short and the one after it.
                continue
            came_from[there] = old
            came_from.pop(here, None)
            for one in (*states, state.marks):
                gone = one.pop(here, None)
                one.pop(there, None)
                if gone is not None:
                    one[there] = gone
    return state


def _told(tail: Tail) -> Iterator[Row]:
    for event, file, line in tail.events(*_MOVES, "linked", "unlinked", "feedback"):
        links = event.kind in ("linked", "unlinked")
        if not links or event.data.get("origin") == "ledger":
            yield from _as_row(event, file, line)


def _reads(tail: Tail, places: set[Place]) -> Iterator[Row]:
    paths = {as_json(path).encode("utf-8", "replace") for _, path in places}
    if paths:
        for event, file, line in tail.events("read", holding=lambda line: may_name(line, paths)):
            if (event.source, event.path) in places:
                yield from _as_row(event, file, line)


def _as_row(event: Event, file: str, line: int) -> Iterator[Row]:
    if event.source is not None and event.path is not None:
        yield (
            event.t, file, line, event.kind, event.source, event.path, as_json(event.data),
        )  # fmt: skip


def _move(kind: str, path: str, record: dict) -> tuple[str, str]:
    """From where to where an event says that a card went."""
    key = "old_path" if kind == "moved" else "trash"
    other = str(record.get(key) or path)
    return (path, other) if kind == "trashed" else (other, path)


def _in_order(connection, places: Iterable[Place], more: Iterable[Row]) -> list[tuple]:
    """`(time, t, kind, source, path, data)` of moves, links, feedback, and reads at `places`, and of
    `more`, sorted as `ledger.reader.merge` does: within a host by position, between hosts by time.

    The first time is the latest that the host had told of until then: its clock may be set back.
    """
    rows = connection.execute(
        "select t, host, line, kind, source, path, data from events "
        "where source is not null and path is not null and ("
        "kind in ('moved', 'trashed', 'restored', 'feedback') "
        "or kind in ('linked', 'unlinked') and data ->> 'origin' = 'ledger' "
        "or kind = 'read' and (source, path) in "
        "(select value ->> 0, value ->> 1 from json_each(?)))",
        [json.dumps(sorted(places))],
    ).fetchall()
    rows += more
    rows.sort(key=lambda row: (_host(row[1]), row[1], row[2]))
    latest: dict[str, str] = {}
    ordered = []
    for t, file, line, *rest in rows:
        host = _host(file)
        latest[host] = max(t, latest.get(host, ""))
        ordered.append(((latest[host], host, file, line), t, *rest))
    ordered.sort(key=lambda row: row[0])
    return [(order[0], *rest) for order, *rest in ordered]


def _host(file: str) -> str:
    match = FILE_NAME.fullmatch(file)
    return match[2] if match else file
