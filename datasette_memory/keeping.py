"""The keeping half of `Memory`: is everything whole, and can it be brought back?"""

# What keeping needs is imported where it is used: reading must not pay for it.
from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import MemoryFault
from .home import Home

if TYPE_CHECKING:
    from .govern import bench
    from .govern.backup import Report
    from .govern.doctor import Check
    from .govern.manifest import Manifest
    from .govern.repair import Repaired
    from .govern.verify import Verification
    from .index.connection import sqlite3

Progress = Callable[[int, int], None]


class Keeping:
    """Checks, repairs and backups of the memory of `home`; see `Memory`."""

    home: Home

    def verify(self, *, deep: bool = False, progress: Progress | None = None) -> Verification:
        """Make the index anew beside it, and compare; nothing is written.

        `deep` also compares every token, and checks every text of the evidence.
        """
        from .govern.verify import verify
        from .index.connection import connect_read

        with contextlib.closing(connect_read(self.home.db)) as connection:
            return verify(
                connection,
                self.home.db,
                self._sources(False),
                self.home.home / "ledger",
                deep=deep,
                evidence_folder=self.home.home / "evidence",
                progress=progress,
            )

    def repair(
        self,
        *,
        deep: bool = False,
        progress: Progress | None = None,
        waiting: Callable[[], None] | None = None,
    ) -> Repaired:
        """Mend the index by the least that is needed, and verify it again."""
        from .govern.repair import repair
        from .index.sync import SyncResult

        return repair(
            self.home.db,
            self._sources(True),
            self.home.home / "ledger",
            deep=deep,
            evidence_folder=self.home.home / "evidence",
            finish=lambda connection: self._follow_ledger(connection, SyncResult()),
            progress=progress,
            waiting=waiting,
        )

    def manifests(self) -> list[Manifest]:
        """One hash for all files of each source: whoever compares two of them knows whether
        anything in it has changed. Nothing is written."""
        from .govern.manifest import manifest

        found = []
        for source in self._sources(True):
            if not Path(source.root).exists():
                raise MemoryFault(f"the source {source.name!r} is not there: {source.root}")
            found.append(manifest(source))
        return found

    def doctor(self) -> list[Check]:
        """What is well and what is not, each with a remedy. Never raises."""
        from .govern.doctor import checks

        return checks(self.home)

    def backup(self, destination: str | Path) -> Report:
        """Copy vault, ledger, evidence, pending changes, configuration and index to a new folder
        or `.tar.gz`, while others write, and check the copy."""
        from .govern.backup import backup

        return backup(self.home, Path(destination))

    def restore_backup(self, archive: str | Path, *, force: bool = False) -> Report:
        """Bring a backup back into an empty home; with `force`, what is there is moved aside."""
        from .govern.backup import restore

        return restore(Path(archive), self.home, force=force)

    def bench(self) -> bench.Report:
        """Ask the index the queries of `bench_queries.json`; nothing of it reaches the ledger."""
        from .govern import bench

        queries = bench.load(self.home.home / bench.FILE_NAME)
        with self._reading() as connection:
            return bench.run(connection, queries)

    def draft_bench(self) -> tuple[Path, int]:
        """Write a first `bench_queries.json` from the cards, to be edited: its path, and how many
        queries it has. Raises MemoryFault when there is one already, or nothing to make it of."""
        from .govern import bench
        from .govern.drafts import draft

        path = self.home.home / bench.FILE_NAME
        bench.refuse_existing(path)
        with self._reading() as connection:
            queries = draft(connection)
        if not queries:
            raise MemoryFault(
                "the index holds no card that a query could be made of",
                "write some, or import a folder with `memory-import FOLDER`",
            )
        bench.write(path, queries)
        return path, len(queries)

    def add_to_bench(self, query: str, expect: Iterable[str]) -> dict[str, object]:
        """Say in `bench_queries.json` that the cards `expect`, each by any REF, answer `query`:
        `{path, status, query, group, acceptable, answer, notes}`.

        `status` is `added`, `extended` when the query was there and lacked some of the cards, or
        `unchanged`; `answer` is what the search finds for it now, as `bench` judges it.
        """
        from .govern import bench, truth

        path = self.home.home / bench.FILE_NAME
        with self._reading() as connection:
            cards = [self._find(connection, reference) for reference in expect]
            if not cards:
                raise MemoryFault("no card is named that answers it", "name one with its REF")
            places = [f"{card['source']}/{card['path']}" for card in cards]
            status, one = truth.add(path, query, places)
            report = bench.run(connection, [one])
        return {
            "path": str(path),
            "status": status,
            "query": one.text,
            "group": one.group,
            "acceptable": sorted(one.acceptable),
            "answer": report.answers[0].to_dict(),
            "notes": report.notes,
        }

    def _reading(self) -> AbstractContextManager[sqlite3.Connection]:
        """See `Memory`."""
        raise NotImplementedError

    def _find(self, connection, reference: str) -> dict[str, object]:
        """See `Memory`."""
        raise NotImplementedError

    def _sources(self, rebuild: bool) -> list:
        """See `Memory`."""
        raise NotImplementedError

    def _follow_ledger(self, connection, result) -> None:
        """See `Memory`."""
        raise NotImplementedError
