"""Secret cards: no trace of them in the index, and found all the same by who asks for them."""

import contextlib
import os
import random

import pytest

from datasette_memory.index.connection import connect_read, sqlite3
from datasette_memory.index.rows import secret_path
from datasette_memory.index.secret import secret_index
from datasette_memory.search.sqlite import SQLiteSearcher

posix = pytest.mark.skipif(os.name == "nt", reason="needs POSIX files")

# Words that occur nowhere else, and stay themselves in the index.
WORDS = ["zqtitlexv", "zqbodyxv", "zqtagxv", "zqkeyxv", "zqaliasxv", "zqsumxv", "zqprojxv",
         "zqlinkxv", "zqextraxv", "zqfilexv"]  # fmt: skip
CARD = """---
id: N_4711
title: zqtitlexv
summary: zqsumxv
tags: [zqtagxv]
keywords: [zqkeyxv]
aliases: [zqaliasxv]
project: zqprojxv
own: zqextraxv
{more}---
The zqbodyxv is 甲骨文密语 [[zqlinkxv]].
"""
PUBLIC = CARD.format(more="")
SECRET = CARD.format(more="sensitivity: secret\n")


def traces(index) -> list[str]:
    """Where words of the card stand: as bytes in a file, or in a row of any table."""
    found = []
    wanted = [*WORDS, "甲骨", "骨文", "密语", "N_4711"]
    for path in index.path.parent.iterdir():
        data = path.read_bytes()
        found += [f"{path.name}: {word}" for word in wanted if word.encode() in data]
        # FTS5 keeps of a word only what differs from the one before it.
        found += [f"{path.name}: ...{word[2:]}" for word in WORDS if word[2:].encode() in data]
    with contextlib.closing(sqlite3.connect(index.path)) as connection:
        tables = connection.execute(
            "select name from sqlite_master where type = 'table' and name != 'cards_fts'"
        ).fetchall()
        for (table,) in tables:
            for row in connection.execute(f'select * from "{table}"').fetchall():
                found += [f"{table}: {word}" for word in wanted if word in repr(row)]
        connection.execute("create virtual table temp.v using fts5vocab(main, cards_fts, row)")
        terms = {term for (term,) in connection.execute("select term from temp.v")}
        found += [f"vocabulary: {word}" for word in wanted if word.lower() in terms]
    return found


@pytest.fixture
def others(folder):
    """Cards around the secret one, which link to it and share words with it."""
    chance = random.Random(1)
    for number in range(150):
        words = " ".join(f"word{chance.randrange(900)}" for _ in range(120))
        folder.write(f"other/{number:03}.md", f"# Other {number}\n\n{words} zq\n")


def test_a_secret_card_is_not_in_the_index(folder, index, others):
    folder.write("zqfilexv.md", SECRET)
    assert index.counts(index.sync(folder)) == {"added": 150, "secret": 1}
    assert traces(index) == []
    assert index.query("select count(*) from cards") == [(150,)]
    assert index.query("select path, fault from files where card_id is null") == [
        (secret_path("notes", "zqfilexv.md"), None)
    ]
    assert index.counts(index.sync(folder)) == {"unchanged": 150, "secret": 1}


def test_the_search_for_traces_finds_them(folder, index, others):
    folder.write("zqfilexv.md", PUBLIC)
    index.sync(folder)
    found = " ".join(traces(index))
    for word in (*WORDS, "N_4711", "甲骨"):
        assert f"memory.db: {word}" in found
    assert "vocabulary: zqbodyxv" in found


def test_a_card_that_becomes_secret_leaves_no_trace(folder, index, others):
    folder.write("zqfilexv.md", PUBLIC)
    index.sync(folder)
    folder.write("zqfilexv.md", SECRET)
    assert index.counts(index.sync(folder)) == {"unchanged": 150, "removed": 1, "secret": 1}
    assert traces(index) == []
    index.check()


def test_nor_does_one_that_is_moved_at_the_same_time(folder, index, others):
    folder.write("zqfilexv.md", PUBLIC)
    index.sync(folder)
    folder.delete("zqfilexv.md")
    folder.write("deep/zqfilexv.md", SECRET)
    assert index.counts(index.sync(folder)) == {"unchanged": 150, "removed": 1, "secret": 1}
    assert traces(index) == []


def test_nor_does_one_that_changed_often_before(folder, index, others):
    chance = random.Random(2)
    for _ in range(12):
        lines = [line * chance.randrange(1, 60) for line in PUBLIC.splitlines(True)[-1:]]
        folder.write("zqfilexv.md", PUBLIC + "".join(lines))
        for number in chance.sample(range(150), 40):
            words = " ".join(f"word{chance.randrange(900)}" for _ in range(chance.randrange(400)))
            folder.write(f"other/{number:03}.md", f"# Other {number}\n\n{words}\n")
        index.sync(folder)
    folder.write("zqfilexv.md", SECRET)
    index.sync(folder)
    assert traces(index) == []
    index.check()


def test_nor_while_another_program_has_the_index_open(folder, index, others):
    folder.write("zqfilexv.md", PUBLIC)
    index.sync(folder)
    with contextlib.closing(sqlite3.connect(index.path)) as reader:
        reader.execute("select count(*) from cards").fetchone()
        folder.write("zqfilexv.md", SECRET)
        index.sync(folder)
        assert traces(index) == []


def test_an_interrupted_sync_leaves_it_to_the_next(folder, index, others):
    folder.write("zqfilexv.md", PUBLIC)
    index.sync(folder)
    folder.write("zqfilexv.md", SECRET)

    def stop(done, total):
        if done == total:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        index.sync(folder, progress=stop)
    assert index.titles('"zqbodyxv"') == []
    index.sync(folder)
    assert traces(index) == []


def test_a_secret_card_that_becomes_public(folder, index, make_index):
    folder.write("a.md", SECRET)
    folder.write("b.md", "# B\n\n[[N_4711]]")
    index.sync(folder)
    assert index.query("select count(*) from broken_links") == [(1,)]
    folder.write("a.md", PUBLIC)
    assert index.counts(index.sync(folder)) == {"added": 1, "unchanged": 1}
    assert index.titles('"zqbodyxv"') == ["zqtitlexv"]
    # The link of the card itself is broken, the one to it no longer.
    assert index.query("select target from broken_links") == [("zqlinkxv",)]
    assert index.query("select path from files order by path") == [("a.md",), ("b.md",)]
    fresh = make_index("fresh.db")
    fresh.sync(folder)
    assert index.contents() == fresh.contents()


def test_renamed_and_deleted_secret_cards_leave_no_row(folder, index):
    folder.write("a.md", SECRET)
    folder.write("b.md", SECRET + "more")
    folder.write("c.md", "# C")
    index.sync(folder)
    folder.rename("a.md", "new.md")
    folder.delete("b.md")
    assert index.counts(index.sync(folder)) == {"unchanged": 1, "secret": 1}
    assert sorted(index.query("select path from files")) == sorted(
        [("c.md",), (secret_path("notes", "new.md"),)]
    )


@posix
def test_a_secret_card_that_cannot_be_read_stays_secret(
    public_place, make_folder, make_index, as_nobody
):
    folder = make_folder("notes", public_place)
    index = make_index("memory.db", public_place)
    file = folder.write("zqfilexv.md", SECRET)
    folder.write("b.md", "# B")
    as_nobody(lambda: index.sync(folder))
    os.chmod(file, 0)
    folder.touch("zqfilexv.md")
    result = as_nobody(lambda: index.sync(folder))
    assert [skip.path for skip in result.skipped] == ["zqfilexv.md"]
    assert index.query("select path, fault from files where card_id is null") == [
        (secret_path("notes", "zqfilexv.md"), None)
    ]
    os.chmod(file, 0o644)
    assert index.counts(as_nobody(lambda: index.sync(folder))) == {"unchanged": 1, "secret": 1}


def test_the_secret_index_holds_the_secret_cards_alone(folder, make_folder, index):
    folder.write("a.md", SECRET)
    folder.write("b.md", "# Public\n\nzqbodyxv")
    other = make_folder("other")
    other.write("a.md", "---\nsensitivity: secret\ntags: [t]\n---\n# Other\n\nzqbodyxv 口令")
    index.sync(folder, other)
    sources = [folder.source(), other.source()]
    with contextlib.closing(connect_read(index.path)) as connection:
        with contextlib.closing(secret_index(connection, sources)) as secret:
            rows = secret.execute("select id, source, path, title from cards order by source")
            assert rows.fetchall() == [
                (-1, "notes", "a.md", "zqtitlexv"), (-2, "other", "a.md", "Other"),
            ]  # fmt: skip
            assert secret.execute("select card_id, tag from tags order by tag").fetchall() == [
                (-2, "t"), (-1, "zqtagxv"),
            ]  # fmt: skip
            found = SQLiteSearcher(secret).search("口令 zqbodyxv 别的")
            assert [(hit.source, hit.matched) for hit in found.hits] == [
                ("other", "any"), ("notes", "any"),
            ]  # fmt: skip


def test_the_secret_index_does_without_what_is_gone(folder, make_folder, index):
    folder.write("a.md", SECRET)
    folder.write("b.md", SECRET)
    index.sync(folder)
    folder.delete("a.md")
    gone = make_folder("gone")
    gone.write("c.md", SECRET)
    index.sync(gone)
    gone.delete("c.md")
    gone.root.rmdir()
    with contextlib.closing(connect_read(index.path)) as connection:
        sources = [folder.source(), gone.source()]
        with contextlib.closing(secret_index(connection, sources)) as secret:
            assert secret.execute("select path from cards").fetchall() == [("b.md",)]
