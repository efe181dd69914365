"""Proof that the index is what its files say: it is made again from them, and compared.

Nothing is written but to a temporary folder, which needs room for the index twice.
"""

import contextlib
import json
import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path

from ..errors import MemoryFault
from ..index import audit
from ..index.connection import connect_write, fault, sqlite3, translated
from ..index.migrations import migrate
from ..index.project import project
from ..index.rows import secret_path
from ..index.sync import Progress, Report, sync
from ..ledger.writer import FILE_NAME
from ..sources import VAULT
from ..vault.sources import Source
from .evidence import faults as evidence_faults

#: Differences that are listed; the rest is counted.
LISTED = 1_000

MISSING = "missing in index"
GHOST = "not in files"

# How `scan` and `sync` say that a file or folder is there and cannot be read.
_UNREAD = "cannot be read"
_DAMAGE_LINES = 20
_VALUES = 3
# How often what differs is looked at while others write, and the seconds between: a writer comes
# from the file to the index in a fraction of them.
_LOOKS = 6
_PAUSES = (0.3, 0.7)
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Difference:
    """What the index holds otherwise than the files say.

    `what` is `missing in index`, `not in files` or `differs: ...` with the columns, or for tables
    with several rows a card some of the rows. The table is `schema` when the database lacks
    something, and source and path are empty where no single file is meant.
    """

    table: str
    source: str
    path: str
    what: str

    def __str__(self) -> str:
        place = f"{self.source}/{self.path}" if self.source else self.path
        return f"{self.table}: {place}: {self.what}" if place else f"{self.table}: {self.what}"


@dataclass(slots=True)
class Verification:
    """What was found. `cards` were compared; `more` differences are not listed; `damage` is what
    is broken in the database, `evidence` which texts are; `left_out` could not be read now, with
    an empty path a whole source; `behind` counts the events that the next `index` takes in, which
    is no difference; `notes` tell of the ledger.
    """

    cards: int = 0
    differences: list[Difference] = field(default_factory=list)
    more: int = 0
    damage: list[str] = field(default_factory=list)
    evidence: list[str] = field(default_factory=list)
    left_out: list[Report] = field(default_factory=list)
    behind: int = 0
    notes: list[str] = field(default_factory=list)
    deep: bool = False
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether the index is what the files say, as far as they could be read: a source may be
        away, but of the vault there is something to compare."""
        return not (self.differences or self.damage or self.evidence or self._lacks_vault)

    @property
    def _lacks_vault(self) -> bool:
        return any(one.source == VAULT and not one.path for one in self.left_out)

    def to_dict(self) -> dict[str, object]:
        """The object that every surface returns."""
        return {"ok": self.ok} | asdict(self) | {"seconds": round(self.seconds, 3)}

    def lines(self, limit: int = 20) -> list[str]:
        """The same for people: a verdict, and at most `limit` lines of each part."""
        if self.ok:
            lines = [f"the index is what the files say ({self.cards} cards compared)"]
        else:
            count = len(self.differences) + self.more
            parts = [f"{count} difference{'' if count == 1 else 's'}"] if count else []
            parts += ["damage"] if self.damage or self.evidence else []
            parts += ["no card of the vault is there"] if self._lacks_vault else []
            lines = [f"the index is not what the files say: {' and '.join(parts)}"]
        lines += _first(self.damage + self.evidence, limit)
        lines += _first([str(one) for one in self.differences], limit, self.more)
        left_out = [
            f"left out: {'/'.join(filter(None, (one.source, one.path)))}: {one.reason}"
            for one in self.left_out
        ]
        lines += _first(left_out, limit)
        if self.behind:
            waiting = "1 event waits" if self.behind == 1 else f"{self.behind} events wait"
            lines.append(f"{waiting} in the ledger for the next `memory index`")
        return lines + _first(self.notes, limit)


def _first(lines: list[str], limit: int, more: int = 0) -> list[str]:
    more += max(0, len(lines) - limit)
    return lines[:limit] + ([f"and {more} more"] if more else [])


def verify(
    connection,
    db_path: Path,
    sources: Iterable[Source],
    ledger_folder: Path,
    *,
    deep: bool = False,
    evidence_folder: Path | None = None,
    progress: Progress | None = None,
) -> Verification:
    """Compare the index behind `connection` with one that is made from `sources` and the ledger.

    `connection` may be read-only (`connect_read`), and is only read. Others may write meanwhile:
    what differs is looked at again, and counts when it still does a second later. `deep` also
    compares every token, and looks whether the texts in `evidence_folder` are there and whole. Damage is found, not raised; MemoryFault is raised when the comparison
    itself cannot be made.
    """
    begun = time.monotonic()
    sources = list(sources)
    ledger = Path(ledger_folder)
    with tempfile.TemporaryDirectory(prefix="memory-verify-") as name:
        folder = Path(name)
        found = _compared(connection, db_path, sources, ledger, folder, progress)
        # On a copy: a check of the full text has to write, and keeps out other writers.
        with (
            _noting_damage(db_path, found),
            audit.copied(connection, folder / "copy.db") as copy,
        ):
            found.damage += audit.integrity_check(copy)
            if not found.damage and not audit.full_text_is_in_step(copy, exactly=deep):
                words = Difference("cards_fts", "", "", "differs: the tokens of the cards")
                found.differences.append(words)
    del found.damage[_DAMAGE_LINES:]
    if deep and evidence_folder is not None:
        vault = next((one for one in sources if one.name == VAULT), None)
        faults = evidence_faults(Path(evidence_folder), ledger, vault)
        found.evidence = list(islice(faults, _DAMAGE_LINES))
    found.deep = deep
    found.seconds = time.monotonic() - begun
    return found


def _compared(
    connection,
    db_path: Path,
    sources: list[Source],
    ledger: Path,
    folder: Path,
    progress: Progress | None,
) -> Verification:
    scratch_path = folder / "scratch.db"
    with contextlib.closing(connect_write(scratch_path)) as scratch, translated(scratch_path):
        scratch.execute("pragma synchronous = off")
        migrate(scratch)
        before: Verification | None = None
        seen = None
        for look in range(_LOOKS):
            comparison = _Comparison(connection, scratch, sources)
            changed = comparison.read_files(progress)
            with _noting_damage(db_path, comparison.found):
                version = audit.data_version(connection)
                with audit.snapshot(connection), audit.as_bytes(connection):
                    comparison.read_ledger(ledger, folder / "ledger")
                    comparison.compare()
            found = comparison.found
            if before is not None and not (found.more or before.more):
                lasting = set(before.differences)
                found.differences = [one for one in found.differences if one in lasting]
            quiet = look >= len(_PAUSES) and seen == version and not changed
            if found.damage or not found.differences or quiet:
                break
            # Somebody may be in the midst of writing a card and its row: look again.
            before, seen = found, version
            time.sleep(_PAUSES[min(look, len(_PAUSES) - 1)])
    # Room for the copy that is made next.
    for path in folder.glob("scratch.db*"):
        path.unlink()
    return found


@contextlib.contextmanager
def _noting_damage(db_path: Path, found: Verification) -> Iterator[None]:
    """Note what a damaged database makes SQLite say; raise the rest as MemoryFault."""
    try:
        yield
    except (sqlite3.Error, OverflowError, MemoryError, UnicodeError) as error:
        if isinstance(error, sqlite3.OperationalError) and (
            any(word in str(error) for word in ("locked", "full", "disk I/O"))
        ):
            # Only what is temporary is written to.
            full = "full" in str(error)
            raise fault(error, Path(tempfile.gettempdir()) if full else db_path) from error
        found.damage.append(f"the database is damaged: {error or type(error).__name__}")


class _Comparison:
    """One comparison of the index with the scratch database."""

    def __init__(self, live, scratch, sources: list[Source]) -> None:
        self.live = live
        self.scratch = scratch
        self.sources = sources
        self.found = Verification()
        # Sources and files that cannot be read; of a folder all that is below it.
        self.out_sources: set[bytes] = set()
        self.out_paths: set[audit.Key] = set()
        self.out_folders: dict[bytes, list[bytes]] = {}
        # Cards that only one side has: what hangs on them differs too, and goes without saying.
        self.lone: set[audit.Key] = set()

    # The other side

    def read_files(self, progress: Progress | None) -> bool:
        """Bring the scratch database in step with the files; whether that changed anything."""
        try:
            results = [sync(self.scratch, self.sources, progress)]
        except MemoryFault:
            # One is missing. The others are in by now, so that each by itself costs little.
            results = []
            for source in self.sources:
                try:
                    results.append(sync(self.scratch, [source]))
                except MemoryFault as error:
                    self._leave_out(source.name, "", error.error)
        for report in (report for result in results for report in result.skipped):
            if _UNREAD in report.reason:
                self._leave_out(report.source, report.path, report.reason)
        for source, path in audit.unread_files(self.scratch):
            self._leave_out(source, path, _UNREAD)
        return any(result.changed for result in results)

    def _leave_out(self, source: str, path: str, reason: str) -> None:
        place = (source.encode(), path.encode())
        if place in self.out_paths or place[0] in self.out_sources:
            return
        self.found.left_out.append(Report(source, path, reason))
        if not path:
            self.out_sources.add(place[0])
            return
        self.out_paths |= {place, (place[0], secret_path(source, path).encode())}
        self.out_folders.setdefault(place[0], []).append(place[1] + b"/")

    def _is_out(self, key: audit.Key) -> bool:
        source, path = key
        if source in self.out_sources or key in self.out_paths:
            return True
        folders = self.out_folders.get(source)
        # Where a hashed path leads nobody can tell.
        return folders is not None and (
            path.startswith(tuple(folders)) or path.startswith(b"sha256:")
        )

    def read_ledger(self, ledger: Path, copy: Path) -> None:
        """Bring the scratch database in step with the ledger, as far as the index knows it."""
        self.ledger = ledger
        self.found.behind = _cut_ledger(ledger, copy, audit.marks(self.live))
        audit.forget_ledger(self.scratch)
        self.found.notes = project(self.scratch, copy, cards_changed=True)

    # Comparing

    def compare(self) -> None:
        """Note every difference."""
        lacking = self._compare_schema()
        self._compare_sources()
        for table, count in audit.orphans(self.live).items():
            self._tell(table, "", "", f"{count} rows belong to no row of another table")
        if "cards" not in lacking:
            for table in audit.tables(self.scratch):
                if table.name not in lacking:
                    self._compare_table(table)

    def _compare_schema(self) -> set[str]:
        """Note what the database lacks; gives the tables that cannot be compared."""
        ours, theirs = audit.schema(self.scratch), audit.schema(self.live)
        lacking: set[str] = set()
        for (kind, name), sql in sorted(ours.items()):
            if (kind, name) not in theirs:
                self._tell("schema", "", f"{kind} {name}", MISSING)
                lacking.add(name)
            elif kind == "table":
                there = audit.columns(self.live, name)
                if gone := [c for c in audit.columns(self.scratch, name) if c not in there]:
                    self._tell("schema", "", f"table {name}", f"lacks {', '.join(gone)}")
                    lacking.add(name)
            elif kind in ("trigger", "view") and theirs[kind, name] != sql:
                self._tell("schema", "", f"{kind} {name}", "differs: sql")
        for key in ("schema_version", "tokenizer_version"):
            if "meta" not in lacking:
                here, there = audit.meta(self.scratch, key), audit.meta(self.live, key)
                if here != there:
                    self._tell("meta", "", key, f"differs: {there} instead of {here}")
        return lacking

    def _compare_sources(self) -> None:
        ours, theirs = audit.source_rows(self.scratch), audit.source_rows(self.live)
        for name, (*row, files) in ours.items():
            if name not in theirs:
                self._tell("sources", name, "", MISSING)
                continue
            *known, indexed = theirs[name]
            if names := [
                n for n, a, b in zip(("root", "exclude", "max_bytes"), row, known) if a != b
            ]:
                self._tell("sources", name, "", f"differs: {', '.join(names)}")
            if indexed and not files and all(one.source != name for one in self.found.left_out):
                # As when a disk is not mounted: the index keeps what it has of it.
                root = row[0]
                self._leave_out(name, "", f"no file is left in {root}; the index keeps its cards")
        named = {source.name for source in self.sources}
        for name in sorted(theirs.keys() - named):
            self._tell("sources", name, "", f"{GHOST}: it is no source any more")
            self.out_sources.add(name.encode())

    def _compare_table(self, table: audit.Table) -> None:
        compare = self._many if table.many else self._one
        for key, ours, theirs in self._pairs(table):
            if table.name == "cards":
                self.found.cards += 1
                if not (ours and theirs) and len(self.lone) < 100 * LISTED:
                    self.lone.add(key)
            elif table.name != "files" and key in self.lone:
                continue
            if what := compare(table, ours, theirs):
                self._tell(table.name, *map(_shown, key), what)
        if table.name == "card_stats":
            self._forgive_newer_counts(table)

    def _pairs(self, table: audit.Table) -> Iterator[tuple[audit.Key, list, list]]:
        """The rows that are not the same, and of `cards` all; of what can be read."""
        every = table.name == "cards"
        with audit.as_bytes(self.scratch):
            for key, ours, theirs in audit.merged(
                audit.groups(self.scratch, table), audit.groups(self.live, table)
            ):
                if (every or ours != theirs) and not self._is_out(key):
                    yield key, ours, theirs

    def _one(self, table: audit.Table, ours: list[tuple], theirs: list[tuple]) -> str | None:
        if ours == theirs:
            return None
        if not theirs:
            return MISSING
        if not ours:
            return GHOST
        pairs = zip(table.columns, ours[0], theirs[0])
        names = [name for name, here, there in pairs if here != there]
        if self.out_sources or self.out_paths:
            # The card that supersedes may be among what cannot be read.
            names = [name for name in names if name != "superseded_by"]
        if len(theirs) > 1:
            names.append(f"{len(theirs)} rows")
        return f"differs: {', '.join(names)}" if names else None

    def _many(self, table: audit.Table, ours: list[tuple], theirs: list[tuple]) -> str | None:
        if table.name == "links":
            ours, theirs = self._targets_that_can_be_told(ours, theirs)
        here, there = Counter(ours), Counter(theirs)
        told = []
        for what, rows in ((MISSING, here - there), (GHOST, there - here)):
            if rows:
                told.append(f"{what} {_values(table, list(rows))}")
        return f"differs: {'; '.join(told)}" if told else None

    def _targets_that_can_be_told(self, ours: list[tuple], theirs: list[tuple]):
        """Both without the targets of those links whose target now cannot be read."""
        gone = {row[:3] for row in theirs if row[3] is not None and self._is_out(row[3:])}

        def plain(rows: list[tuple]) -> list[tuple]:
            return [(*row[:3], None, None) if row[:3] in gone else row for row in rows]

        return plain(ours), plain(theirs)

    def _forgive_newer_counts(self, table: audit.Table) -> None:
        """Counts of the index may be ahead of the events that it holds: reads are counted at once."""
        told = [one for one in self.found.differences if one.table == table.name]
        if not told or not self.found.behind:
            return
        project(self.scratch, self.ledger)
        differs = {tuple(map(_shown, key)) for key, ours, theirs in self._pairs(table)}
        for one in told:
            if (one.source, one.path) not in differs:
                self.found.differences.remove(one)

    def _tell(self, table: str, source: str, path: str, what: str) -> None:
        found = self.found
        if len(found.differences) >= LISTED:
            found.more += 1
        else:
            found.differences.append(Difference(table, source, path, what))


def _shown(value: object) -> str:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


def _values(table: audit.Table, rows: list[tuple]) -> str:
    if table.name == "names":
        return f"{len(rows)} of the names that it answers to"
    shown = []
    for row in sorted(rows, key=repr)[:_VALUES]:
        text = " ".join(_shown(value) for value in row if value is not None)
        shown.append(repr(text if len(text) <= 80 else f"{text[:77]}..."))
    more = f" and {len(rows) - _VALUES} more" if len(rows) > _VALUES else ""
    return f"{', '.join(shown)}{more}"


def _cut_ledger(ledger: Path, copy: Path, marks: str | None) -> int:
    """Copy the ledger as far as the index knows it; gives the number of lines behind that.

    A file that is shorter than it was is copied whole: what the index knows of it is then found
    to be in no file.
    """
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir()
    try:
        known = json.loads(marks or "{}")
        names = [name for name in os.listdir(ledger) if FILE_NAME.fullmatch(name)]
    except (OSError, ValueError):
        known, names = {}, []
    behind = 0
    for name in names:
        mark = known.get(name) if isinstance(known, dict) else None
        offset = mark.get("offset") if isinstance(mark, dict) else 0
        with contextlib.suppress(OSError), open(ledger / name, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if not isinstance(offset, int) or not 0 <= offset <= size:
                offset = size
            with open(copy / name, "wb") as target:
                while offset and (part := file.read(min(offset, _CHUNK))):
                    target.write(part)
                    offset -= len(part)
            behind += sum(part.count(b"\n") for part in iter(lambda: file.read(_CHUNK), b""))
    return behind
