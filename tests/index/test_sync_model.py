"""After any sequence of changes to files, the index is the one that a fresh import gives."""

import contextlib
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from datasette_memory.index import sync as syncing

PATHS = st.sampled_from(
    ["a.md", "b.md", "甲.md", "sub/a.md", "sub/乙.md", "09-Decisions/a.md", "09-Decisions/c.md"]
)
NAMES = [
    "D_0001",
    "D_0002",
    "a",
    "b",
    "甲",
    "sub/a",
    "a.md",
    "sub/a.md",
    "../a.md",
    "Plan",
    "方案",
    "x",
]
TITLES = ["Plan", "plan", "方案", "a", "缓存 notes"]


@st.composite
def texts(draw) -> str:
    """A card: with and without everything that another card, or the index, may hang on."""
    lines = []
    for key, values in (
        ("id", ["D_0001", "D_0002", "d_0001", "not a ref"]),
        ("title", TITLES),
        ("aliases", ["[x, 方案]"]),
        ("tags", ["[t, T, 标签]", "u"]),
        ("project", ["swallow"]),
        ("sensitivity", ["secret", "private"]),
        ("created", ["2026-01-01", "2026-02-01T08:00:00+0800"]),
        ("updated", ["2026-03-01"]),
        ("supersedes", NAMES),
        ("superseded_by", NAMES),
    ):
        if draw(st.integers(0, 3)) == 0:
            lines.append(f"{key}: {draw(st.sampled_from(values))}")
    if draw(st.integers(0, 9)) == 0:
        lines.append("broken: [")
    body = draw(st.sampled_from(["", "# Plan\n\n", "# 方案\n\n"]))
    body += draw(st.sampled_from(["", "willow", "阿里云 私钥", "getUserById"]))
    body += "".join(f" [[{name}]]" for name in draw(st.lists(st.sampled_from(NAMES), max_size=2)))
    return "---\n" + "\n".join(lines) + "\n---\n" + body if lines else body


class Files(RuleBasedStateMachine):
    """Two sources; one file of each is never touched, because an empty source keeps its cards."""

    make_folder = make_index = template = None

    @initialize()
    def begin(self):
        self.place = Path(tempfile.mkdtemp(dir=self.template.parent))
        self.folders = [self.make_folder(name, self.place) for name in ("notes", "other")]
        for folder in self.folders:
            folder.write("anchor.md", "anchor [[a]]")
        self.exclude = ()
        self.index = self.fresh("memory.db")
        self.in_step = False

    def fresh(self, name):
        shutil.copy(self.template, self.place / name)
        return self.make_index(name, self.place)

    def files(self, which):
        folder = self.folders[which]
        return sorted(
            path.relative_to(folder.root).as_posix()
            for path in folder.root.rglob("*.md")
            if path.name != "anchor.md"
        )

    def pick(self, which, number):
        files = self.files(which)
        return files[number % len(files)] if files else None

    which = st.integers(0, 1)
    number = st.integers(0, 6)

    @rule(which=which, path=PATHS, text=texts(), recent=st.booleans())
    def write(self, which, path, text, recent):
        file = self.folders[which].write(path, text)
        if recent:
            file.write_bytes(file.read_bytes())  # Its time is now.
        self.in_step = False

    @rule(which=which, number=number, path=PATHS)
    def rename(self, which, number, path):
        if (old := self.pick(which, number)) and old != path:
            self.folders[which].rename(old, path)
            self.in_step = False

    @rule(which=which, number=number, other=number)
    def swap(self, which, number, other):
        a, b = self.pick(which, number), self.pick(which, other)
        if a and b and a != b:
            self.folders[which].rename(a, "swapping.tmp")
            self.folders[which].rename(b, a)
            self.folders[which].rename("swapping.tmp", b)
            self.in_step = False

    @rule(which=which, number=number, path=PATHS)
    def copy(self, which, number, path):
        if (old := self.pick(which, number)) and old != path:
            self.folders[1 - which].write(path, (self.folders[which].root / old).read_bytes())
            self.in_step = False

    @rule(which=which, number=number)
    def delete(self, which, number):
        if path := self.pick(which, number):
            self.folders[which].delete(path)
            self.in_step = False

    @rule(which=which, number=number)
    def touch(self, which, number):
        if path := self.pick(which, number):
            self.folders[which].touch(path)
            self.in_step = False

    @rule(exclude=st.sampled_from([(), ("sub/",), ("a.md",), ("*", "!anchor.md")]))
    def change_exclude(self, exclude):
        self.exclude = exclude
        self.in_step = False

    def sources(self):
        return [folder.source(exclude=self.exclude) for folder in self.folders]

    @rule(batches=st.integers(1, 3))
    def sync_and_be_interrupted(self, batches):
        def progress(done, total):
            nonlocal batches
            batches -= 1
            if batches == 0:
                raise KeyboardInterrupt

        with contextlib.suppress(KeyboardInterrupt):
            self.index.sync(*self.sources(), progress=progress)
        self.index.check()

    @rule()
    def sync(self):
        self.index.sync(*self.sources())
        self.in_step = True

    @invariant()
    def equals_a_fresh_import(self):
        if not getattr(self, "in_step", False):
            return
        self.index.check()
        fresh = self.fresh("fresh.db")
        fresh.sync(*self.sources())
        assert self.index.contents() == fresh.contents()
        # Once more is nothing at all.
        result = self.index.sync(*self.sources())
        assert not result.changed
        assert self.index.contents() == fresh.contents()
        self.in_step = False

    def teardown(self):
        if hasattr(self, "place"):
            self.sync()
            self.equals_a_fresh_import()
            shutil.rmtree(self.place)


@pytest.fixture
def machine(make_folder, make_index, monkeypatch):
    monkeypatch.setattr(syncing, "BATCH_FILES", 2)
    monkeypatch.setattr(syncing, "MANY_FILES", 5)
    template = make_index("template.db")
    template.sync()
    template.query("pragma wal_checkpoint(truncate)")
    return type("Files", (Files,), {
        "make_folder": staticmethod(make_folder),
        "make_index": staticmethod(make_index),
        "template": template.path,
    })  # fmt: skip


def test_incremental_equals_fresh(machine):
    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=40,
            stateful_step_count=20,
            derandomize=True,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
