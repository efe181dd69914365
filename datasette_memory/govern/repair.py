"""Mending the index by the least that is needed."""

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from ..errors import MemoryFault
from ..index import audit
from ..index.connection import (
    Damaged,
    NoIndex,
    connect_read,
    connect_write,
    translated,
)
from ..index.lock import write_lock
from ..index.migrations import migrate
from ..index.project import project
from ..index.rebuild import rebuild, set_aside
from ..index.rows import secret_path
from ..index.single import unindex_card
from ..index.sync import Progress, SyncResult, drop_sources, sync
from ..vault.sources import Source, scan
from .verify import MISSING, Difference, Verification, verify


@dataclass(slots=True)
class Repaired:
    """What was done, a line each, what was wrong before, and what was found afterwards."""

    steps: list[str]
    before: Verification
    after: Verification

    @property
    def ok(self) -> bool:
        """Whether the index now is what the files say."""
        return self.after.ok

    def to_dict(self) -> dict[str, object]:
        """The object that every surface returns."""
        return {
            "ok": self.ok,
            "steps": self.steps,
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
        }


def repair(
    db_path: Path,
    sources: Iterable[Source],
    ledger_folder: Path,
    *,
    deep: bool = False,
    evidence_folder: Path | None = None,
    finish: Callable[[object], None] | None = None,
    progress: Progress | None = None,
    waiting: Callable[[], None] | None = None,
) -> Repaired:
    """Mend the index by the least that is needed, and verify it again.

    Rows that differ are made again from their files, and no other file is parsed; an index that
    is damaged, or cannot be mended so, is built anew, and a damaged one is kept under another
    name. Takes the write lock itself. `finish(connection)` is called on an index that was built
    anew, for what the caller keeps in it beside cards and events. Raises MemoryFault when the
    index cannot be written, and when a damaged one cannot be built anew: a source is missing, or
    the database holds tables of somebody else.
    """
    db_path = Path(db_path)
    work = _Repair(db_path, list(sources), Path(ledger_folder), progress)

    def look() -> Verification:
        try:
            with contextlib.closing(connect_read(db_path)) as connection, translated(db_path):
                return verify(
                    connection,
                    db_path,
                    work.sources,
                    work.ledger,
                    deep=deep,
                    evidence_folder=evidence_folder,
                    progress=progress,
                )
        except NoIndex as error:
            none = Difference("schema", "", "", f"{MISSING}: {error.error}")
            return Verification(differences=[none], deep=deep)
        except Damaged as error:
            return Verification(damage=[str(error)], deep=deep)

    with write_lock(db_path, waiting):
        before = look()
        if not (before.differences or before.damage):
            return Repaired([], before, before)
        hopeless = bool(before.damage)
        if not hopeless:
            try:
                work.mend(before)
            except MemoryFault:
                # As when a row holds a text that is none. If it is the disk, it fails again.
                hopeless = True
            else:
                after = look()
                if not (after.differences or after.damage):
                    return Repaired(work.steps, before, after)
                if empty := [one.source for one in after.left_out if not one.path]:
                    why = f"the index alone still holds the cards of {', '.join(empty)}"
                    return Repaired([*work.steps, f"it was not built anew: {why}"], before, after)
        try:
            work.build_anew(bool(before.damage), finish)
        except MemoryFault as error:
            if hopeless:
                raise
            work.steps.append(f"it could not be built anew: {error.error}")
        return Repaired(work.steps, before, look())


class _Repair:
    """The steps of a repair; `steps` tells of those that were taken."""

    def __init__(
        self, db_path: Path, sources: list[Source], ledger: Path, progress: Progress | None
    ) -> None:
        self.db_path = db_path
        self.sources = sources
        self.ledger = ledger
        self.progress = progress
        self.steps: list[str] = []

    def mend(self, found: Verification) -> None:
        """Make again what differs."""
        told = found.differences
        # Of more differences than are listed nobody knows where they are.
        keys = None if found.more else _places(told)
        with contextlib.closing(connect_write(self.db_path)) as connection:
            with translated(self.db_path):
                migrate(connection)
                if any(one.path.startswith("trigger ") for one in told if one.table == "schema"):
                    audit.renew_triggers(connection)
                    self.steps.append("the triggers were made anew")
                if audit.orphans(connection):
                    audit.remove_orphans(connection)
                    self.steps.append("rows that belong to no card were taken out")
                self._read_again(connection, keys)
                events = any(one.table == "events" for one in told)
                if events or found.more:
                    audit.forget_ledger(connection)
                    self.steps.append("the ledger was read anew")
                project(connection, self.ledger, cards_changed=True)
                if audit.renew_full_text(connection):
                    self.steps.append("the full text was built again")

    def _read_again(self, connection, keys: list[tuple[str, str]] | None) -> None:
        audit.forget_files(connection, keys)
        result = SyncResult()
        # Of a source that is missing the others know nothing.
        with contextlib.suppress(MemoryFault):
            result = sync(connection, self.sources, self.progress)
        gone = len(audit.ghosts(connection))
        drop_sources(connection, {source.name for source in self.sources}, result)
        for source, path in audit.ghosts(connection):
            unindex_card(connection, source, path)
        if count := result.added + result.updated + result.moved:
            self.steps.append(f"read again: {count} file{'' if count == 1 else 's'}")
        if count := result.removed + gone:
            self.steps.append(f"taken out: {count} card{'' if count == 1 else 's'} without a file")

    def build_anew(self, damaged: bool, finish: Callable[[object], None] | None) -> None:
        """Build the index from all files."""
        try:
            notes = rebuild(self.db_path, self.sources, self.progress).notes
        except (MemoryFault, TypeError) as error:
            # The database makes no sense even as a thing to be replaced: names in its schema are
            # other words now, or no words. One that is whole and holds more stays where it is.
            if not damaged or "locked" in str(error):
                raise
            for source in self.sources:
                scan(source)
            kept = set_aside(self.db_path)
            notes = rebuild(self.db_path, self.sources, self.progress).notes
            notes.append(f"the damaged index was kept as {kept.name}")
        with contextlib.closing(connect_write(self.db_path)) as connection:
            with translated(self.db_path):
                migrate(connection)
                audit.forget_ledger(connection)
                project(connection, self.ledger, cards_changed=True)
                if finish:
                    finish(connection)
        self.steps += ["the index was built anew from the files", *notes]


def _places(told: list[Difference]) -> list[tuple[str, str]]:
    """Where the table `files` may have the files that differences tell of."""
    places = dict.fromkeys(
        (one.source, path)
        for one in told
        if one.table in ("cards", "files", "tags", "links", "names") and one.path
        for path in (one.path, secret_path(one.source, one.path))
    )
    return list(places)
