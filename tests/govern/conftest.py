"""A home with something of everything in it, and a look at what is on a disk."""

import contextlib
import json
import multiprocessing
import os
import shutil
import stat
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from datasette_memory.evidence.store import EvidenceStore
from datasette_memory.govern import verify as verify_module
from datasette_memory.govern.verify import Verification, verify
from datasette_memory.home import Home, resolve
from datasette_memory.index.connection import connect_read, connect_write, sqlite3
from datasette_memory.index.functions import register
from datasette_memory.index.migrations import migrate
from datasette_memory.index.project import project
from datasette_memory.index.sync import sync
from datasette_memory.ledger.writer import Ledger
from datasette_memory.vault.sources import Source

VAULT = {
    "09-Decisions/缓存用-Redis.md": """---
id: D_0001
title: 缓存用 Redis
tags: [缓存, Redis]
keywords: [TTL]
aliases: [cache decision]
project: 燕子
created: 2026-01-02T08:00:00+08:00
relations:
  - {type: supersedes, target: D_0002}
  - {type: caused_by, target: 容量报告}
---
热数据放进 Redis，过期时间十分钟。见 [[端口约定]]。
""",
    "09-Decisions/缓存放内存.md": """---
id: D_0002
title: 缓存放内存
created: 2026-01-01T08:00:00+08:00
---
先放在进程的内存里。
""",
    "12-Facts/端口约定.md": """---
id: F_0001
title: 端口约定
tags: [运维]
---
网关监听 8765 端口。
""",
    "17-Notes/bare.md": "# A bare note\n\nNo frontmatter, no date. #loose\n",
    "18-References/key.md": """---
id: R_0001
title: 保险柜的密码
sensitivity: secret
---
右三圈，左两圈。
""",
}
"""Five files, four cards: R_0001 is secret. D_0001 supersedes D_0002."""

NOTES = {
    "容量报告.md": "---\ntitle: 容量报告\ntags: [容量]\n---\n内存用了九成。\n",
    "sub/second.md": "# Second\n\nRefers to [[D_0001]].\n",
}
"""A source of somebody else: two cards."""


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch):
    """Nobody else writes in most tests, so that nobody has to be waited for."""
    monkeypatch.setattr(verify_module, "_PAUSES", (0.0,))


@dataclass
class Place:
    """A home, its sources, and what can be done to them."""

    root: Path
    sources: list[Source] = field(default_factory=list)

    @property
    def home(self) -> Home:
        return resolve(str(self.root / "home"))

    @property
    def db(self) -> Path:
        return self.home.db

    @property
    def vault(self) -> Path:
        return self.home.vault

    @property
    def notes(self) -> Path:
        return self.root / "notes"

    @property
    def ledger(self) -> Path:
        return self.home.home / "ledger"

    def index(self) -> None:
        """Bring the index in step with files and ledger."""
        with contextlib.closing(connect_write(self.db)) as connection:
            migrate(connection)
            sync(connection, self.sources)
            project(connection, self.ledger, cards_changed=True)

    def verify(self, **options) -> Verification:
        with contextlib.closing(connect_read(self.db)) as connection:
            return verify(connection, self.db, self.sources, self.ledger, **options)

    def sql(self, *statements: str) -> list[tuple]:
        """Run statements on the index behind its back: foreign keys are off."""
        with contextlib.closing(sqlite3.connect(self.db, isolation_level=None)) as connection:
            register(connection)
            for statement in statements:
                rows = connection.execute(statement).fetchall()
            return rows

    def calm(self) -> None:
        """Put all of the index into its one file, as when the last program has let go of it."""
        self.sql("pragma wal_checkpoint(truncate)")
        for suffix in ("-wal", "-shm"):
            Path(f"{self.db}{suffix}").unlink(missing_ok=True)


def told(found: Verification) -> list[tuple[str, str, str]]:
    """The differences as `(table, source/path, what)`."""
    return [(one.table, f"{one.source}/{one.path}", one.what) for one in found.differences]


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


@pytest.fixture
def place(tmp_path) -> Place:
    """A home with cards, a source, events, evidence, and an index in step with them."""
    found = Place(tmp_path)
    write(found.vault, VAULT)
    write(found.notes, NOTES)
    found.sources = [Source("vault", str(found.vault)), Source("notes", str(found.notes))]
    (found.home.home / "config.json").write_text(
        json.dumps({"sources": [{"name": "notes", "path": str(found.notes)}]})
    )
    ledger = Ledger(found.ledger)
    for _ in range(3):
        ledger.append("read", ref="F_0001", source="vault", path="12-Facts/端口约定.md")
    ledger.append(
        "linked",
        ref="x",
        source="notes",
        path="sub/second.md",
        type="implements",
        target="F_0001",
        origin="ledger",
    )
    ledger.append("gap", query="没有答案的问题")
    EvidenceStore(found.home.home / "evidence").put(
        "很长的原文。" * 50, kind="raw", origin="D_0001"
    )
    found.index()
    return found


def state(*roots: Path) -> dict[str, tuple]:
    """Every name below the roots, with what a write would change."""
    found = {}
    for root in roots:
        for folder, folders, names in os.walk(root):
            for name in [".", *folders, *names]:
                path = os.path.join(folder, name)
                status = os.lstat(path)
                size = status.st_size if stat.S_ISREG(status.st_mode) else 0
                found[path] = (status.st_mtime_ns, size, status.st_mode, status.st_ino)
    return found


@pytest.fixture(name="state")
def _state() -> Callable[..., dict[str, tuple]]:
    return state


@pytest.fixture(name="told")
def _told() -> Callable[[Verification], list[tuple[str, str, str]]]:
    return told


@pytest.fixture
def public_place():
    """A folder that every user may enter."""
    folder = Path(tempfile.mkdtemp(prefix="memory-"))
    os.chmod(folder, 0o755)
    yield folder
    for found, _, _ in os.walk(folder):
        os.chmod(found, 0o755)
    shutil.rmtree(folder)


@pytest.fixture
def as_nobody():
    """`as_nobody(function)` calls it as a user who may not do everything; gives what it gives.

    What the function imports is to be loaded before: the interpreter may be out of reach.
    """

    def run(function: Callable):
        if os.geteuid() != 0:
            return function()
        context = multiprocessing.get_context("fork")
        receiving, sending = context.Pipe(duplex=False)

        def child() -> None:
            os.setgroups([])
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)
            try:
                sending.send((True, function()))
            except BaseException as error:
                sending.send((False, repr(error)))

        process = context.Process(target=child)
        process.start()
        sending.close()
        try:
            done, value = receiving.recv()
        finally:
            process.join()
        assert done, value
        return value

    return run
