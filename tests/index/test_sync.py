"""Following the files: each kind of change, and nothing read that has not changed."""

import os
import sys
import time
import unicodedata

import pytest

from datasette_memory.errors import MemoryFault
from datasette_memory.index.connection import sqlite3
from datasette_memory.index.rows import file_time, foreign_ref, stated_time
from datasette_memory.vault.sources import Source

posix = pytest.mark.skipif(os.name == "nt", reason="needs POSIX files")

DATED = "---\nupdated: 2026-01-05T08:00:00+08:00\n---\n"

_opened: list[str] | None = None


def _note_open(event: str, arguments: tuple) -> None:
    # Flags are those of reading; the tests themselves write.
    if event == "open" and _opened is not None and not arguments[2] & (os.O_WRONLY | os.O_RDWR):
        if str(arguments[0]).endswith(".md"):
            _opened.append(os.path.basename(arguments[0]))


# An audit hook stays for the life of the process; it notes something only inside `opened`.
sys.addaudithook(_note_open)


@pytest.fixture
def opened():
    """The names of the Markdown files that are opened while the test runs."""
    global _opened
    _opened = []
    yield _opened
    _opened = None


def test_a_card_and_all_that_hangs_on_it(folder, index):
    folder.write(
        "09-Decisions/缓存.md",
        """---
id: D_0007
title: 缓存用 Redis
summary: 一句话。
tags: [缓存, Redis]
keywords: [TTL]
aliases: [cache]
project: swallow
created: 2026-01-02
updated: 2026-01-05T08:00:00+08:00
sensitivity: private
priority: 2
unknown: kept
relations:
  - {type: caused_by, target: 事故}
---
见 [[端口]] 。
""",
    )
    result = index.sync(folder)
    assert index.counts(result) == {"added": 1}
    assert index.query(
        "select id, ref, title, kind, summary, summary_from_body, tags, keywords, aliases, project,"
        " created, updated, sensitivity, priority, extra, source, path, superseded_by, confidence,"
        " ttl, version, body from cards"
    ) == [
        (
            1, "D_0007", "缓存用 Redis", "decision", "一句话。", 0, '["缓存","Redis"]', '["TTL"]',
            '["cache"]', "swallow", "2026-01-02", "2026-01-05T08:00:00+08:00", "private", 2,
            '{"unknown":"kept"}', "notes", "09-Decisions/缓存.md", None, 0.7, None, 1,
            "见 [[端口]] 。\n",
        )
    ]  # fmt: skip
    assert index.query("select tag from tags order by tag") == [("Redis",), ("缓存",)]
    assert index.query("select type, target, origin, target_id from links order by type") == [
        ("caused_by", "事故", "frontmatter", None),
        ("refers_to", "端口", "body", None),
    ]
    assert index.query("select path, card_id, fault from files") == [
        ("09-Decisions/缓存.md", 1, None)
    ]
    assert index.titles('"缓存"') == index.titles('"ttl"') == ["缓存用 Redis"]
    index.check()


def test_a_bare_file_has_its_dates_and_its_ref_from_the_file_system(folder, index):
    folder.write("a.md", "# 标题\n\n正文", mtime=1_767_225_600)  # 2026-01-01T00:00:00Z
    index.sync(folder)
    # printf 'notes/a.md' | sha256sum
    assert index.query("select ref, title, created, updated, kind from cards") == [
        (
            "x" + "b33a8099b0",
            "标题",
            "2026-01-01T00:00:00+00:00",
            "2026-01-01T00:00:00+00:00",
            "note",
        )
    ]


def test_a_second_sync_opens_no_file(folder, index, opened):
    folder.write("a.md", "one")
    folder.write("b/c.md", "---\nsensitivity: secret\n---\ntwo")
    index.sync(folder)
    assert sorted(opened) == ["a.md", "c.md"]
    opened.clear()
    assert index.counts(index.sync(folder)) == {"unchanged": 1, "secret": 1}
    assert opened == []


def test_only_what_has_changed_is_opened(folder, index, opened):
    for name in "abcd":
        folder.write(f"{name}.md", DATED + name)
    index.sync(folder)
    opened.clear()
    folder.write("b.md", DATED + "more")  # other size
    folder.write("c.md", DATED + "C")  # other time
    folder.touch("d.md")
    assert index.counts(index.sync(folder)) == {"updated": 2, "unchanged": 2}
    assert sorted(opened) == ["b.md", "c.md", "d.md"]
    opened.clear()
    assert index.counts(index.sync(folder)) == {"unchanged": 4}
    assert opened == []
    assert index.query("select body from cards order by path") == [
        ("a",), ("more",), ("C",), ("d",),
    ]  # fmt: skip
    index.check()


def test_a_changed_card_leaves_nothing_of_the_old_one(folder, index):
    folder.write("a.md", "---\ntags: [old, both]\n---\n# Elder\n\nwillow [[gone]]")
    index.sync(folder)
    folder.write("a.md", "---\ntags: [new, both]\n---\n# Younger\n\npoplar [[come]]")
    assert index.counts(index.sync(folder)) == {"updated": 1}
    assert index.titles('"willow"') == index.titles('"elder"') == []
    assert index.titles('"poplar"') == ["Younger"]
    assert index.query("select tag from tags order by tag") == [("both",), ("new",)]
    assert index.query("select target from links") == [("come",)]
    assert index.query("select count(*) from cards") == [(1,)]
    index.check()


def test_a_renamed_card_keeps_its_row(folder, index):
    folder.write("12-Facts/a.md", "# Same\n\ntext")
    folder.write("other.md", "other")
    index.sync(folder)
    index.query(
        "insert into card_stats (card_id, reads) select id, 3 from cards where title='Same'"
    )
    before = index.query("select id from cards where title = 'Same'")
    folder.rename("12-Facts/a.md", "09-Decisions/b.md")
    assert index.counts(index.sync(folder)) == {"moved": 1, "unchanged": 1}
    assert index.query("select id from cards where title = 'Same'") == before
    assert index.query("select path, kind, ref from cards where title = 'Same'") == [
        # The kind follows the folder, the ref of a card without an id its path.
        ("09-Decisions/b.md", "decision", foreign_ref("notes", "09-Decisions/b.md"))
    ]
    assert index.query("select reads from card_stats") == [(3,)]
    assert index.query("select path from files order by path") == [
        ("09-Decisions/b.md",), ("other.md",),
    ]  # fmt: skip
    index.check()


def test_a_card_that_is_moved_and_edited_is_known_by_its_id(folder, index):
    folder.write("a.md", "---\nid: D_0001\n---\nold words")
    folder.write("other.md", "other")
    index.sync(folder)
    folder.delete("a.md")
    folder.write("deep/er/b.md", "---\nid: D_0001\n---\nnew words")
    assert index.counts(index.sync(folder)) == {"moved": 1, "unchanged": 1}
    assert index.query("select id, path, body from cards where ref = 'D_0001'") == [
        (1, "deep/er/b.md", "new words")
    ]
    assert index.titles('"old"') == []
    index.check()


def test_a_whole_folder_of_equal_files_can_move(folder, index):
    for number in range(3):
        folder.write(f"old/{number}.md", "the same text in each")
    folder.write("stays.md", "stays")
    index.sync(folder)
    folder.rename("old", "new")
    assert index.counts(index.sync(folder)) == {"moved": 3, "unchanged": 1}
    assert index.paths() == ["new/0.md", "new/1.md", "new/2.md", "stays.md"]
    assert index.query("select max(id) from cards") == [(4,)]


def test_swapped_names(folder, index):
    folder.write("a.md", "# Anna\n\nfirst")
    folder.write("b.md", "# Berta\n\nsecond")
    index.sync(folder)
    folder.rename("a.md", "tmp.md")
    folder.rename("b.md", "a.md")
    folder.rename("tmp.md", "b.md")
    assert index.counts(index.sync(folder)) == {"updated": 2}
    assert index.query("select path, title, body from cards order by path") == [
        ("a.md", "Berta", "# Berta\n\nsecond"),
        ("b.md", "Anna", "# Anna\n\nfirst"),
    ]
    index.check()


def test_a_chain_of_renames(folder, index, make_index):
    for name in "abc":
        folder.write(f"{name}.md", f"---\nid: N_000{ord(name) - 96}\n---\nwas {name}")
    index.sync(folder)
    folder.rename("c.md", "d.md")
    folder.rename("b.md", "c.md")
    folder.rename("a.md", "b.md")
    index.sync(folder)
    assert index.query("select path, ref, body from cards order by path") == [
        ("b.md", "N_0001", "was a"), ("c.md", "N_0002", "was b"), ("d.md", "N_0003", "was c"),
    ]  # fmt: skip
    fresh = make_index("fresh.db")
    fresh.sync(folder)
    assert index.contents() == fresh.contents()


def test_a_deleted_card_leaves_and_comes_back(folder, index):
    folder.write("a.md", "---\ntags: [t]\n---\n# A\n\nwillow [[b]]")
    folder.write("b.md", "# B\n\n[[a]]")
    index.sync(folder)
    folder.delete("a.md")
    assert index.counts(index.sync(folder)) == {"removed": 1, "unchanged": 1}
    assert index.paths() == ["b.md"]
    assert index.titles('"willow"') == []
    assert index.query("select count(*) from tags") == [(0,)]
    assert index.query("select path from files") == [("b.md",)]
    assert index.query("select target, target_id from links") == [("a", None)]
    index.check()
    folder.write("a.md", "# A\n\nwillow")
    assert index.counts(index.sync(folder)) == {"added": 1, "unchanged": 1}
    assert index.titles('"willow"') == ["A"]
    assert index.query("select count(*) from broken_links") == [(0,)]


@pytest.fixture
def theirs(public_place, make_folder, make_index, as_nobody):
    """A folder and an index in a public place, and a sync by a user who may not read everything."""
    folder = make_folder("notes", public_place)
    index = make_index("memory.db", public_place)
    return folder, index, lambda: as_nobody(lambda: index.sync(folder))


@posix
def test_a_card_that_cannot_be_read_for_a_while_is_kept(theirs):
    folder, index, sync = theirs
    file = folder.write("a.md", "# A\n\nwillow")
    folder.write("b.md", "# B\n\npoplar")
    sync()
    os.chmod(file, 0)
    folder.touch("a.md")
    result = sync()
    assert [(skip.source, skip.path, skip.reason) for skip in result.skipped] == [
        ("notes", "a.md", "cannot be read: Permission denied")
    ]
    assert index.counts(result) == {"unchanged": 1}
    assert index.titles('"willow"') == ["A"]
    # It is tried again, though nothing tells that it has changed.
    os.chmod(file, 0o644)
    assert index.counts(sync()) == {"updated": 1, "unchanged": 1}
    folder.write("a.md", "# A\n\nbirch")
    assert sync().skipped == []
    assert index.titles('"birch"') == ["A"]
    assert index.query("select count(*) from file_faults") == [(0,)]
    index.check()


@posix
def test_a_card_that_could_never_be_read_is_no_card_but_a_fault(theirs):
    folder, index, sync = theirs
    file = folder.write("a.md", "# A\n\nwillow")
    folder.write("b.md", "# B\n\npoplar")
    os.chmod(file, 0)
    assert index.counts(sync()) == {"added": 1}
    assert index.paths() == ["b.md"]
    assert index.query("select path, fault from file_faults") == [
        ("a.md", "cannot be read: Permission denied")
    ]
    assert [skip.path for skip in sync().skipped] == ["a.md"]
    os.chmod(file, 0o644)
    assert index.counts(sync()) == {"added": 1, "unchanged": 1}
    assert index.query("select count(*) from file_faults") == [(0,)]
    assert index.paths() == ["a.md", "b.md"]


@posix
def test_the_cards_of_a_folder_that_cannot_be_read_are_kept(theirs):
    folder, index, sync = theirs
    folder.write("in/a.md", "# A\n\nwillow")
    folder.write("in/deep/b.md", "# B\n\nwillow")
    folder.write("inner.md", "# C\n\nwillow")
    sync()
    os.chmod(folder.root / "in", 0)
    folder.delete("inner.md")
    folder.write("new.md", "# D\n\nwillow")
    result = sync()
    assert [skip.path for skip in result.skipped] == ["in"]
    assert index.counts(result) == {"added": 1, "removed": 1}
    assert index.titles('"willow"') == ["A", "B", "D"]
    os.chmod(folder.root / "in", 0o755)
    result = sync()
    assert (index.counts(result), result.skipped) == ({"unchanged": 3}, [])


def test_a_file_that_grows_over_the_limit_leaves_and_comes_back(folder, index):
    folder.write("a.md", "x" * 100)
    folder.write("b.md", "y" * 10)
    small = folder.source(max_bytes=100)
    assert index.counts(index.sync(small)) == {"added": 2}
    folder.write("a.md", "x" * 101)
    result = index.sync(small)
    assert [(skip.path, skip.reason) for skip in result.skipped] == [
        ("a.md", "larger than 100 bytes (101 bytes)")
    ]
    assert index.paths() == ["b.md"]
    assert index.counts(index.sync(folder.source(max_bytes=101))) == {"added": 1, "unchanged": 1}


def test_the_last_file_of_a_source_may_grow_over_the_limit(folder, index):
    folder.write("a.md", "x" * 100)
    index.sync(folder.source(max_bytes=100))
    folder.write("a.md", "x" * 101)
    assert index.counts(index.sync(folder.source(max_bytes=100))) == {"removed": 1}


def test_a_change_within_two_seconds_is_noticed_though_size_and_time_are_the_same(folder, index):
    now = time.time()
    folder.write("a.md", "# A\n\nwillow", mtime=now)
    index.sync(folder)
    folder.write("a.md", "# A\n\npoplar", mtime=now)
    assert index.counts(index.sync(folder)) == {"updated": 1}
    assert index.titles('"poplar"') == ["A"] and index.titles('"willow"') == []


def test_a_fresh_file_is_read_once_more_and_then_rests(folder, index, opened):
    folder.write("a.md", "# A\n\nwillow", mtime=time.time())
    index.sync(folder)
    opened.clear()
    assert index.counts(index.sync(folder)) == {"unchanged": 1}
    assert opened == ["a.md"]
    before = index.contents()
    os.utime(folder.root / "a.md", (1_700_000_000, 1_700_000_000))
    index.sync(folder)
    opened.clear()
    index.sync(folder)
    assert opened == []
    assert before["words"] == index.contents()["words"]


def test_touched_without_change(folder, index, make_index):
    folder.write("dated.md", DATED + "text")
    folder.write("bare.md", "text")
    index.sync(folder)
    folder.touch("dated.md", 1_767_225_600)
    folder.touch("bare.md", 1_767_225_600)
    # A card that states no date has that of its file, which is another now.
    assert index.counts(index.sync(folder)) == {"updated": 1, "unchanged": 1}
    assert index.query("select path, updated from cards order by path") == [
        ("bare.md", "2026-01-01T00:00:00+00:00"),
        ("dated.md", "2026-01-05T08:00:00+08:00"),
    ]
    assert index.counts(index.sync(folder)) == {"unchanged": 2}
    fresh = make_index("fresh.db")
    fresh.sync(folder)
    assert index.contents() == fresh.contents()


NFC = unicodedata.normalize("NFC", "Zürich/Café.md")
NFD = unicodedata.normalize("NFD", "Zürich/Café.md")


@pytest.mark.skipif(sys.platform == "darwin", reason="the file system takes both for one")
def test_a_name_that_changes_its_unicode_form_is_the_same_path(folder, index):
    folder.write(NFD, "# 咖啡\n\nwillow")
    folder.write("b.md", "b")
    index.sync(folder)
    assert index.paths() == [NFC, "b.md"]
    folder.rename(NFD, NFC)
    assert index.counts(index.sync(folder)) == {"unchanged": 2}
    assert index.paths() == [NFC, "b.md"]


def test_two_sources_with_the_same_paths(folder, make_folder, index):
    other = make_folder("other")
    folder.write("a.md", "# Mine\n\nwillow")
    other.write("a.md", "# Theirs\n\nwillow")
    index.sync(folder, other)
    assert index.query("select source, path, title from cards order by source") == [
        ("notes", "a.md", "Mine"), ("other", "a.md", "Theirs"),
    ]  # fmt: skip
    refs = index.query("select distinct ref from cards")
    assert len(refs) == 2
    other.delete("a.md")
    other.write("b.md", "# New\n\nwillow")
    assert index.counts(index.sync(other)) == {"added": 1, "removed": 1}
    assert index.titles('"willow"') == ["Mine", "New"]


def test_a_card_that_moves_to_another_source_is_removed_here_and_added_there(
    folder, make_folder, index
):
    other = make_folder("other")
    folder.write("a.md", "---\nid: D_0001\n---\nwillow")
    folder.write("stay.md", "stay")
    index.sync(folder, other)
    os.rename(folder.root / "a.md", other.root / "a.md")
    assert index.counts(index.sync(folder, other)) == {"added": 1, "removed": 1, "unchanged": 1}
    assert index.query("select source from cards where ref = 'D_0001'") == [("other",)]


def test_a_missing_source_keeps_its_cards(folder, index):
    folder.write("a.md", "# A\n\nwillow")
    index.sync(folder)
    away = folder.root.with_name("away")
    folder.root.rename(away)
    result = index.sync(folder)
    assert index.counts(result) == {}
    assert result.notes == [
        f"notes: source notes: {folder.root} does not exist; its 1 files stay indexed"
    ]
    assert index.titles('"willow"') == ["A"]
    assert index.query("select note from sources") == [
        (f"source notes: {folder.root} does not exist",)
    ]
    away.rename(folder.root)
    assert index.counts(index.sync(folder)) == {"unchanged": 1}
    assert index.query("select note from sources") == [(None,)]


def test_a_source_that_is_suddenly_empty_keeps_its_cards(folder, index):
    folder.write("a.md", "# A\n\nwillow")
    index.sync(folder)
    folder.delete("a.md")
    result = index.sync(folder)
    assert index.counts(result) == {}
    assert result.notes == [f"notes: no file is left in {folder.root}; its 1 files stay indexed"]
    assert index.titles('"willow"') == ["A"]


def test_a_source_that_was_never_there_is_a_fault_and_holds_nobody_up(
    folder, make_folder, index, place
):
    other = make_folder("other")
    folder.write("a.md", "# A\n\n[[b]]")
    folder.write("b.md", "# B\n\nwillow")
    other.write("c.md", "# C\n\nwillow")
    with pytest.raises(MemoryFault, match="nowhere does not exist"):
        index.sync(Source("gone", str(place / "nowhere")), folder, other)
    assert index.titles('"willow"') == ["B", "C"]
    assert index.query("select count(*) from broken_links") == [(0,)]
    assert index.query("select name from sources order by name") == [("notes",), ("other",)]


def test_changed_exclude_patterns(folder, index):
    for name in ("a.md", "drafts/b.md", "drafts/c.md"):
        folder.write(name, f"# {name}\n\nwillow")
    index.sync(folder)
    without = folder.source(exclude=("drafts/",))
    assert index.counts(index.sync(without)) == {"unchanged": 1, "removed": 2}
    assert index.titles('"willow"') == ["a.md"]
    one = folder.source(exclude=("drafts/*", "!drafts/c.md"))
    assert index.counts(index.sync(one)) == {"unchanged": 1, "added": 1}
    assert index.counts(index.sync(folder)) == {"unchanged": 2, "added": 1}


def test_everything_excluded_is_not_a_source_that_is_suddenly_empty(folder, index):
    folder.write("a.md", "# A\n\nwillow")
    index.sync(folder)
    result = index.sync(folder.source(exclude=("*",)))
    assert index.counts(result) == {"removed": 1}
    assert result.notes == []


def test_a_broken_file_does_not_hold_back_the_next(folder, index):
    folder.write("a.md", b"---\ntitle: [unclosed\n---\nwillow \xff\xfe\n")
    folder.write("b.md", b"\x00\x01\x02" * 1000)
    folder.write("c.md", "# Good\n\nwillow")
    folder.write("空.md", b"")
    result = index.sync(folder)
    assert index.counts(result) == {"added": 4}
    assert [fault.path for fault in result.faults] == ["a.md"]
    assert "YAML" in result.faults[0].reason and "UTF-8" in result.faults[0].reason
    assert index.query("select path, fault from file_faults") == [("a.md", result.faults[0].reason)]
    assert index.titles('"willow"') == ["Good", "a"]
    # The fault is kept as long as the file is, and goes when it is mended.
    assert index.sync(folder).faults == []
    assert index.query("select count(*) from file_faults") == [(1,)]
    folder.write("a.md", "willow")
    index.sync(folder)
    assert index.query("select count(*) from file_faults") == [(0,)]


def test_files_from_before_and_after_all_reckoning(folder, index):
    folder.write("past.md", "past", mtime=-2_000_000_000)  # 1906
    folder.write("future.md", "future", mtime=13_000_000_000)  # 2381, beyond 64 bits of ns
    index.sync(folder)
    assert index.query("select path, updated from cards order by path") == [
        ("future.md", "2381-12-14T23:06:40+00:00"), ("past.md", "1906-08-16T20:26:40+00:00"),
    ]  # fmt: skip
    assert index.counts(index.sync(folder)) == {"unchanged": 2}


@pytest.mark.parametrize(
    "mtime_ns, text",
    [
        (0, "1970-01-01T00:00:00+00:00"),
        (1_767_225_600_999_999_999, "2026-01-01T00:00:00+00:00"),
        (-1, "1969-12-31T23:59:59+00:00"),
        (10**30, "9999-12-31T23:59:59+00:00"),
        (-(10**30), "0001-01-01T00:00:00+00:00"),
    ],
)
def test_file_time(mtime_ns, text):
    assert file_time(mtime_ns) == text


@pytest.mark.parametrize(
    "text, stated",
    [
        (None, None),
        ("2026-05-31", "2026-05-31"),
        ("2026-05-31T09:30:00Z", "2026-05-31T09:30:00+00:00"),
        ("2026-05-31T09:30:00+0800", "2026-05-31T09:30:00+08:00"),
        ("2026-05-31T09", "2026-05-31T09:00:00"),
        ("2026-05-31T0930", "2026-05-31T09:30:00"),
    ],
)
def test_stated_time_is_one_that_sqlite_understands(text, stated):
    assert stated_time(text) == stated
    sql = "select julianday(?) is null"
    assert sqlite3.connect(":memory:").execute(sql, [stated]).fetchone()[0] == (text is None)


def test_rows_that_somebody_else_put_in(folder, index, make_index):
    folder.write("a.md", "# A\n\nwillow")
    index.sync(folder)
    index.query(
        "insert into cards (ref, title, kind, source, path, body, summary) values "
        "('N_0009', 'Typed in', 'note', 'notes', 'b.md', 'poplar', '')"
    )
    folder.write("b.md", "# B\n\nbirch")
    index.sync(folder)
    assert index.query("select path, title from cards order by path") == [
        ("a.md", "A"), ("b.md", "B"),
    ]  # fmt: skip
    assert index.titles('"poplar"') == []
    index.check()
    fresh = make_index("fresh.db")
    fresh.sync(folder)
    assert index.contents() == fresh.contents()


def test_rows_that_somebody_else_deleted_come_back(folder, index, make_index):
    folder.write("a.md", "# A\n\nwillow")
    folder.write("b.md", "# B\n\nwillow [[a]]")
    folder.write("c.md", "# C\n\nwillow")
    index.sync(folder)
    # Plain SQLite does not look after foreign keys; the last row's id is given again.
    index.query("delete from cards where path in ('a.md', 'c.md')")
    index.query(
        "insert into cards (id, ref, title, kind, source, path, body, summary) values "
        "(3, 'N_0009', 'Typed in', 'note', 'mine', 'c.md', '', '')"
    )
    assert index.counts(index.sync(folder)) == {"added": 2, "unchanged": 1}
    assert index.titles('"willow"') == ["A", "B", "C"]
    assert index.query("select source from cards where title = 'Typed in'") == [("mine",)]
    index.query("delete from cards where source = 'mine'")
    index.check()
    fresh = make_index("fresh.db")
    fresh.sync(folder)
    assert index.contents() == fresh.contents()


def test_tables_of_the_user_in_the_same_database_survive(folder, index):
    index.path.parent.mkdir()
    index.query("create table recipes (name text)")
    index.query("insert into recipes values ('bread')")
    folder.write("a.md", "a")
    index.sync(folder)
    folder.write("a.md", "b")
    index.sync(folder)
    assert index.query("select name from recipes") == [("bread",)]


def test_batches_are_transactions_and_progress_is_told(folder, index, monkeypatch):
    monkeypatch.setattr("datasette_memory.index.sync.BATCH_FILES", 2)
    for number in range(5):
        folder.write(f"{number}.md", f"willow {number}")
    told = []
    index.sync(folder, progress=lambda done, total: told.append((done, total, len(index.paths()))))
    assert told == [(0, 5, 0), (2, 5, 2), (4, 5, 4), (5, 5, 5)]


def test_a_batch_ends_at_so_many_bytes(folder, index, monkeypatch):
    monkeypatch.setattr("datasette_memory.index.sync.BATCH_BYTES", 20)
    for number in range(4):
        folder.write(f"{number}.md", "x" * 10)
    told = []
    index.sync(folder, progress=lambda done, total: told.append(done))
    assert told == [0, 2, 4]


def test_merging_is_put_off_for_many_files_and_made_up_for(folder, index, monkeypatch):
    monkeypatch.setattr("datasette_memory.index.sync.BATCH_FILES", 2)
    monkeypatch.setattr("datasette_memory.index.sync.MANY_FILES", 4)
    automerge = "select v from cards_fts_config where k = 'automerge'"
    for number in range(9):
        folder.write(f"{number}.md", f"willow {number}")
    seen = []
    index.sync(folder, progress=lambda done, total: seen.append(index.query(automerge)))
    assert set(map(tuple, seen)) == {((0,),)}
    assert index.query(automerge) == [(4,)]
    index.check()


def test_what_an_interrupted_sync_left_is_finished_by_the_next(folder, index, monkeypatch):
    monkeypatch.setattr("datasette_memory.index.sync.BATCH_FILES", 1)
    monkeypatch.setattr("datasette_memory.index.sync.MANY_FILES", 2)
    folder.write("a.md", "# A\n\n[[b]]")
    folder.write("b.md", "# B\n\nwillow")
    folder.write("c.md", "# C\n\n[[a]] [[b]]")

    def stop(done, total):
        if done == total:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        index.sync(folder, progress=stop)
    assert index.query("select count(*) from broken_links") == [(3,)]
    result = index.sync(folder)
    # Nothing is left to read, and still there is something to do.
    assert index.counts(result) == {"unchanged": 3}
    assert index.query("select count(*) from broken_links") == [(0,)]
    assert index.query("select v from cards_fts_config where k = 'automerge'") == [(4,)]
    index.check()
