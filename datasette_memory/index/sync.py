"""Bringing the index in step with the files: what is new, changed, moved or gone, and no more."""

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from sqlite_utils import Database

from ..errors import MemoryFault
from ..vault.card import Card, parse_card
from ..vault.sources import FileStat, Source, scan
from ..vault.sources import read as read_file
from . import numbers
from .connection import transaction
from .links import card_names, resolve
from .rows import INSERT_LINK, card_row, file_time, link_rows, secret_path, tag_rows, upsert_sql
from .schema import (
    INDEX_ROWS,
    UNINDEX_ROWS,
    create_triggers,
    drop_triggers,
    get_meta,
    merge_later,
    merge_now,
    merges_later,
    set_meta,
)

#: A batch is one transaction: this many files, or this many bytes of them.
BATCH_FILES = 2_000
BATCH_BYTES = 8_000_000

#: From here on an import puts off what can be done once at its end.
MANY_FILES = 2_000

# A file changed within this time of the scan may change again without a newer time stamp: it is
# read again next time (git calls such entries racy).
_RACY_NS = 2_000_000_000

# How `scan` says that it does not know what is there. What the index knows of it is kept.
_UNREAD = "cannot be read"

_INT64 = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Report:
    """Something to tell about a file."""

    source: str
    path: str
    reason: str


@dataclass(slots=True)
class SyncResult:
    """What a sync did. `skipped` files are not in the index; `faults` are, with a reservation.

    `secret` counts the cards that are kept out on purpose, without naming them, and `vectors`
    those that got a vector afterwards.
    """

    added: int = 0
    updated: int = 0
    moved: int = 0
    removed: int = 0
    unchanged: int = 0
    secret: int = 0
    vectors: int = 0
    skipped: list[Report] = field(default_factory=list)
    faults: list[Report] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def take(self, other: "SyncResult") -> None:
        """Count what another sync of the same sources did after this one."""
        for name in ("added", "updated", "moved", "removed"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.faults += other.faults

    @property
    def changed(self) -> bool:
        """Whether any row of `cards` is another than before."""
        return bool(self.added or self.updated or self.moved or self.removed)

    def to_dict(self) -> dict[str, object]:
        """The object that every surface returns."""
        return {
            "added": self.added,
            "updated": self.updated,
            "moved": self.moved,
            "removed": self.removed,
            "unchanged": self.unchanged,
            "secret": self.secret,
            "vectors": self.vectors,
            "skipped": [_report(report) for report in self.skipped],
            "faults": [_report(report) for report in self.faults],
            "notes": self.notes,
            "seconds": round(self.seconds, 3),
        }


def _report(report: Report) -> dict[str, str]:
    return {"source": report.source, "path": report.path, "reason": report.reason}


@dataclass(frozen=True, slots=True)
class _Known:
    """A row of `files`. Its `size` is -1 when the file has to be read again in any case.

    The row of a secret card has a hash and no card; that of a file that was never read, or whose
    card somebody deleted from the index, has neither.
    """

    mtime_ns: int
    size: int
    sha256: str | None
    card_id: int | None

    @property
    def is_secret(self) -> bool:
        return self.card_id is None and self.sha256 is not None

    def is_same(self, other: "_Known") -> bool:
        """Whether nobody has indexed the file between the two."""
        return (self.sha256, self.card_id) == (other.sha256, other.card_id)


@dataclass(slots=True)
class _Read:
    """A file that was read because it is new or looks changed.

    `known` is its row of `files`, and `key` the path in it: another than that of the file when
    the card is secret, or was moved here. Without a `sha256` it could not be read; without a
    `card` nothing has changed.
    """

    stat: FileStat
    known: _Known | None = None
    key: str | None = None
    sha256: str | None = None
    card: Card | None = None
    fault: str | None = None
    moved: bool = False


Progress = Callable[[int, int], None]


Moved = Callable[[str, str, str, str | None], None]
"""Told of a card that moved: source, path before, path now, its own reference."""


def sync(
    connection,
    sources: Iterable[Source],
    progress: Progress | None = None,
    on_moved: Moved | None = None,
) -> SyncResult:
    """Bring the index behind `connection` in step with `sources`; other sources stay as they are.

    `connection` has the present schema (`migrations.migrate`). Each batch is a transaction of its
    own, so that an interrupted sync leaves a whole index, and the next one goes on from there.
    `progress` is called with files done and files to do, `on_moved` before a move is committed,
    so that nothing which knows a card by its path loses it. A source that is missing, or that is
    suddenly empty, keeps its cards and gets a note. Raises MemoryFault, when all else is done,
    for one that is missing and never had any.
    """
    begun = time.monotonic()
    result = SyncResult()
    db = Database(connection, execute_plugins=False)
    faults = []
    for source in sources:
        try:
            _sync_source(db, source, result, progress, on_moved)
        except MemoryFault as fault:
            faults.append(fault)
    # Also what an interrupted sync has left to do.
    if get_meta(connection, "unresolved") or merges_later(connection):
        merged = merges_later(connection)
        with transaction(connection):
            if merged:
                merge_now(connection)
            resolve(connection)
            set_meta(connection, "unresolved", "")
            set_meta(connection, "changed", file_time(time.time_ns()))
        if merged:
            # The log holds what the index held before, and is as large as all that was written.
            connection.execute("pragma wal_checkpoint(truncate)")
    if faults:
        raise faults[0]
    result.seconds = time.monotonic() - begun
    return result


def _sync_source(
    db: Database,
    source: Source,
    result: SyncResult,
    progress: Progress | None,
    on_moved: Moved | None,
) -> None:
    known = _rows(db, "files.source = ?", source.name)
    scanned_ns = time.time_ns()
    try:
        files, skipped = scan(source)
    except MemoryFault as fault:
        if not known:
            raise
        result.notes.append(f"{source.name}: {fault.error}; its {len(known)} files stay indexed")
        _register(db, source, note=fault.error)
        return
    if known and not files and not skipped and _is_empty(source):
        note = f"no file is left in {source.root}"
        result.notes.append(f"{source.name}: {note}; its {len(known)} files stay indexed")
        _register(db, source, note=note)
        return
    _register(db, source, note=None)
    result.skipped += [Report(source.name, skip.path, skip.reason) for skip in skipped]

    to_read: list[tuple[FileStat, str | None]] = []
    missing = dict(known)
    for file in files:
        key = file.path if file.path in missing else secret_path(source.name, file.path)
        row = missing.pop(key, None)
        if row is None:
            to_read.append((file, None))
        elif row.mtime_ns != file.mtime_ns or row.size != file.size or row.sha256 is None:
            to_read.append((file, key))
        elif row.is_secret:
            result.secret += 1
        else:
            result.unchanged += 1
    if unread := tuple(skip.path for skip in skipped if _UNREAD in skip.reason):
        below = tuple(path + "/" for path in unread)
        for path in [path for path in missing if path in unread or path.startswith(below)]:
            del missing[path]

    if len(to_read) > MANY_FILES:
        with transaction(db.conn):
            merge_later(db.conn)
    batches = _Batches(db, source, missing, scanned_ns, result, on_moved)
    done = 0
    if progress and to_read:
        progress(0, len(to_read))
    for batch in _batches(to_read):
        batches.write([_read(source, file, key, known.get(key)) for file, key in batch])
        done += len(batch)
        if progress:
            progress(done, len(to_read))
    batches.remove_missing()


def _rows(db: Database, where: str, *parameters: str) -> dict[str, _Known]:
    """Rows of `files` by their path."""
    return {
        path: _Known(*rest)
        for path, *rest in db.execute(
            "select files.path, mtime_ns, size, "
            "iif(cards.id is null and files.path not like 'sha256:%', null, sha256), cards.id "
            f"from files left join cards on cards.id = files.card_id where {where}",
            parameters,
        )
    }


def _is_empty(source: Source) -> bool:
    """Whether there is nothing, also of what is excluded."""
    return not (source.exclude and scan(replace(source, exclude=()))[0])


def _batches(
    files: list[tuple[FileStat, str | None]],
) -> Iterator[list[tuple[FileStat, str | None]]]:
    batch: list[tuple[FileStat, str | None]] = []
    size = 0
    for file in files:
        batch.append(file)
        size += file[0].size
        if len(batch) >= BATCH_FILES or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _read(source: Source, file: FileStat, key: str | None, known: _Known | None) -> _Read:
    try:
        data = read_file(file, source)
    except OSError as error:
        return _Read(file, known, key, fault=f"{_UNREAD}: {error.strerror or error}")
    sha256 = hashlib.sha256(data).hexdigest()
    same = known is not None and known.sha256 == sha256
    if same and known.mtime_ns == _stored_time(file):
        return _Read(file, known, key, sha256)
    card = parse_card(data, file.path)
    if same and (card.updated or card.created):
        return _Read(file, known, key, sha256)
    # A card that states no date has those of its file.
    return _Read(file, known, key, sha256, card, "; ".join(card.faults) or None)


def _stored_time(file: FileStat) -> int:
    """The time of the file within what SQLite can hold, which ends in the year 2262."""
    return max(-_INT64, min(_INT64, file.mtime_ns))


class _Batches:
    """Writes what was read, a transaction a batch, and knows what may still turn out moved."""

    def __init__(
        self,
        db: Database,
        source: Source,
        missing: dict[str, _Known],
        scanned_ns: int,
        result: SyncResult,
        on_moved: Moved | None,
    ) -> None:
        self.db = db
        self.source = source
        self.missing = missing
        self.scanned_ns = scanned_ns
        self.result = result
        self.on_moved = on_moved
        # Where what is missing may turn up again: by its content, or by its ref.
        self.by_hash: dict[str, list[str]] = {}
        paths = {row.card_id: path for path, row in missing.items() if row.card_id is not None}
        for path in paths.values():
            if sha256 := missing[path].sha256:
                self.by_hash.setdefault(sha256, []).append(path)
        refs = db.execute(
            "select id, ref from cards where id in (select value from json_each(?))",
            [json.dumps(list(paths))],
        )
        self.by_ref = {ref: paths[id] for id, ref in refs}

    def write(self, batch: list[_Read]) -> None:
        """Put one batch into the index."""
        for read in batch:
            self._find_move(read)
        counts = SyncResult()
        with transaction(self.db.conn):
            self._write(batch, counts)
        for name in ("added", "updated", "moved", "removed", "unchanged", "secret"):
            setattr(self.result, name, getattr(self.result, name) + getattr(counts, name))
        self.result.skipped += counts.skipped
        self.result.faults += counts.faults

    def _write(self, batch: list[_Read], counts: SyncResult) -> None:
        whole, batch = batch, self._not_overtaken(batch)
        counts.unchanged += len(whole) - len(batch)
        ids = self._ids(batch)
        cards: list[tuple[_Read, int]] = []
        gone: list[int] = []
        secret_refs: list[str] = []
        files: list[dict[str, object]] = []
        for read in batch:
            id = read.known.card_id if read.known else None
            if read.sha256 is None:
                # It cannot be read now; what the index knows of it is kept.
                self._report(counts.skipped, read)
            elif read.card is None:
                if id is None:
                    counts.secret += 1
                else:
                    counts.unchanged += 1
            elif read.card.sensitivity == "secret":
                counts.secret += 1
                if id is not None:
                    gone.append(id)
                id = None
                if read.card.ref and self.source.name == "vault":
                    secret_refs.append(read.card.ref)
            else:
                if read.moved:
                    counts.moved += 1
                    if self.on_moved:
                        self.on_moved(
                            self.source.name, str(read.key), read.stat.path, read.card.ref
                        )
                elif id is None:
                    counts.added += 1
                else:
                    counts.updated += 1
                id = ids[read.stat.path]
                cards.append((read, id))
                if read.fault:
                    self._report(counts.faults, read)
            files.append(self._file_row(read, id))
        self._write_cards(cards, gone)
        keys = [read.key for read, row in zip(batch, files) if read.key != row["path"]]
        self._write_files(files, [key for key in keys if key is not None])
        # No table has these references, and yet no new card may get one.
        numbers.keep(self.db.conn, secret_refs)
        if gone:
            # FTS5 keeps the words of a deleted row until it merges.
            merge_later(self.db.conn)
        counts.removed += len(gone)

    def _not_overtaken(self, batch: list[_Read]) -> list[_Read]:
        """The batch without what somebody else has put into the index since the sync began, one
        card at a time: what he read is newer. The next sync looks at it."""
        hashed = {read.stat.path: secret_path(self.source.name, read.stat.path) for read in batch}
        paths = {path for read in batch for path in (read.key, read.stat.path) if path}
        now = self._now(paths | set(hashed.values()))

        def overtaken(read: _Read) -> bool:
            row = now.get(read.stat.path) or now.get(hashed[read.stat.path])
            if read.known is None or read.moved:
                if row is not None and row.sha256 != read.sha256:
                    return True
            if read.known is None:
                return False
            before = now.get(str(read.key))
            return before is None or not before.is_same(read.known)

        return [read for read in batch if not overtaken(read)]

    def _now(self, paths: Iterable[str]) -> dict[str, _Known]:
        """Rows of `files` as they are within this transaction."""
        where = "files.source = ? and files.path in (select value from json_each(?))"
        return _rows(self.db, where, self.source.name, json.dumps(list(paths)))

    def _ids(self, batch: list[_Read]) -> dict[str, int]:
        """The row id for each path of a batch: the one that it has, else a new one.

        Looked up within the transaction that writes, because others may have added rows since
        the sync began.
        """
        paths = [read.stat.path for read in batch]
        ids = dict(
            self.db.execute(
                "select path, id from cards where source = ? "
                "and path in (select value from json_each(?))",
                [self.source.name, json.dumps(paths)],
            ).fetchall()
        )
        next_id = self.db.execute("select coalesce(max(id), 0) + 1 from cards").fetchone()[0]
        for read in batch:
            path = read.stat.path
            if read.known and read.known.card_id is not None:
                ids[path] = read.known.card_id
            elif path not in ids:
                ids[path] = next_id
                next_id += 1
        return ids

    def remove_missing(self) -> None:
        """Take out the cards of the files that are gone."""
        if not self.missing:
            return
        with transaction(self.db.conn):
            now = self._now(self.missing)
            paths = [
                path for path, row in self.missing.items() if path in now and now[path].is_same(row)
            ]
            gone = [id for path in paths if (id := self.missing[path].card_id) is not None]
            self._write_cards([], gone)
            self._write_files([], paths)
        self.result.removed += len(gone)

    def _find_move(self, read: _Read) -> None:
        """A new file with the content, or the id, of one that is missing is that one, moved."""
        if read.known is not None or read.card is None:
            return
        for path in (*self.by_hash.get(read.sha256, ()), self.by_ref.get(read.card.ref)):
            if path in self.missing:
                read.known, read.key, read.moved = self.missing.pop(path), path, True
                return

    def _write_cards(self, cards: list[tuple[_Read, int]], gone: list[int]) -> None:
        """Write the rows of `cards` and all that hangs on them."""
        connection = self.db.conn
        if not cards and not gone:
            return
        new = [
            card_row(read.card, id, self.source.name, read.stat.path, read.stat.mtime_ns)
            for read, id in cards
        ]
        ids = [id for _, id in cards]
        old = [*gone, *self._present(ids)]
        # Triggers go row by row, and FTS5 then flushes after each. They come back before the
        # transaction ends, so that nobody ever sees the table without them.
        drop_triggers(connection)
        if old:
            connection.execute(UNINDEX_ROWS, [json.dumps(old)])
            for table in ("tags", "links", "names"):
                connection.execute(
                    f"delete from {table} where card_id in (select value from json_each(?))",
                    [json.dumps(old)],
                )
        if gone:
            connection.execute(
                "delete from cards where id in (select value from json_each(?))",
                [json.dumps(gone)],
            )
        if new:
            connection.executemany(upsert_sql(new[0]), new)
            connection.execute(INDEX_ROWS, [json.dumps(ids)])
            connection.executemany(
                "insert or ignore into tags (card_id, tag) values (?, ?)",
                [row for read, id in cards for row in tag_rows(read.card, id)],
            )
            connection.executemany(
                INSERT_LINK,
                [row for read, id in cards for row in link_rows(read.card, id, read.stat.path)],
            )
            connection.executemany(
                "insert into names (key, rank, card_id) values (?, ?, ?)",
                [
                    name
                    for row, (read, id) in zip(new, cards)
                    for name in card_names(
                        id, row["ref"], row["path"], row["title"], read.card.aliases
                    )
                ],
            )
        create_triggers(connection)
        set_meta(connection, "unresolved", "1")

    def _present(self, ids: list[int]) -> list[int]:
        sql = "select id from cards where id in (select value from json_each(?))"
        return [id for (id,) in self.db.execute(sql, [json.dumps(ids)])]

    def _write_files(self, files: list[dict[str, object]], stale_paths: list[str]) -> None:
        connection = self.db.conn
        connection.executemany(
            "delete from files where source = ? and path = ?",
            [(self.source.name, path) for path in stale_paths],
        )
        connection.executemany(
            "insert into files (source, path, mtime_ns, size, sha256, card_id, fault) values "
            "(:source, :path, :mtime_ns, :size, :sha256, :card_id, :fault) "
            "on conflict (source, path) do update set mtime_ns = excluded.mtime_ns, "
            "size = excluded.size, sha256 = excluded.sha256, card_id = excluded.card_id, "
            "fault = iif(excluded.sha256 is files.sha256, files.fault, excluded.fault)",
            files,
        )

    def _file_row(self, read: _Read, card_id: int | None) -> dict[str, object]:
        stat, known = read.stat, read.known
        unread = read.sha256 is None
        racy = stat.mtime_ns > self.scanned_ns - _RACY_NS
        is_secret = card_id is None and (known is not None and known.is_secret if unread else True)
        return {
            "source": self.source.name,
            "path": secret_path(self.source.name, stat.path) if is_secret else stat.path,
            "mtime_ns": known.mtime_ns if unread and known else _stored_time(stat),
            "size": -1 if racy or unread else stat.size,
            "sha256": known.sha256 if unread and known else read.sha256,
            "card_id": card_id,
            "fault": None if is_secret else read.fault,
        }

    def _report(self, reports: list[Report], read: _Read) -> None:
        reports.append(Report(self.source.name, read.stat.path, read.fault or ""))


def _register(db: Database, source: Source, note: str | None) -> None:
    """Keep in `sources` what the source is, when it was imported, and what is wrong with it."""
    row = {
        "name": source.name,
        "root": source.root,
        "exclude": json.dumps(source.exclude, ensure_ascii=False),
        "max_bytes": source.max_bytes,
        "note": note,
    }
    if note is None:
        row["imported"] = file_time(time.time_ns())
    with transaction(db.conn):
        db.table("sources").upsert(row, pk="name")


def stored_sources(connection) -> list[Source]:
    """The sources as the index keeps them, by name."""
    return [
        Source(name, root, tuple(json.loads(exclude)), max_bytes)
        for name, root, exclude, max_bytes in connection.execute(
            "select name, root, exclude, max_bytes from sources order by name"
        )
    ]


def drop_sources(connection, keep: set[str], result: SyncResult) -> None:
    """Take every source out of the index that is not in `keep`, with its cards."""
    gone = [source.name for source in stored_sources(connection) if source.name not in keep]
    for name in gone:
        with transaction(connection):
            removed = connection.execute("delete from cards where source = ?", [name]).rowcount
            connection.execute("delete from sources where name = ?", [name])
            resolve(connection)
            set_meta(connection, "changed", file_time(time.time_ns()))
        result.removed += removed
        result.notes.append(f"{name}: no longer a source; its {removed} cards left the index")
