"""One card in or out by itself gives what a sync of all gives."""

import contextlib

import pytest

from datasette_memory.index.connection import connect_write
from datasette_memory.index.migrations import migrate
from datasette_memory.index.rows import secret_path
from datasette_memory.index.single import index_card, unindex_card


@pytest.fixture
def one(folder, index):
    """`one(path)` brings the file at `path` into the index, or out of it, and nothing else."""

    def put(path: str) -> int | None:
        file = folder.root / path
        with contextlib.closing(connect_write(index.path)) as connection:
            migrate(connection)
            if not file.exists():
                return unindex_card(connection, "notes", path)
            return index_card(connection, "notes", path, file.read_bytes(), file.stat().st_mtime_ns)

    return put


@pytest.fixture
def steps(folder, index):
    """Cards, indexed, that link to each other in every way."""
    folder.write("a.md", "---\nid: N_0001\ntags: [t]\n---\nwillow [[b]] [[new]]")
    folder.write("b.md", "---\nid: N_0002\nsupersedes: a\n---\npoplar [[N_0001]]")
    folder.write("new old.md", "---\naliases: [new]\n---\nbirch")
    index.sync(folder)


def write(folder, path: str, text: str | None) -> None:
    if text is None:
        folder.delete(path)
    else:
        folder.write(path, text)


SECRET = "---\nsensitivity: secret\n---\nzqsecretxv"

CHANGES = [
    [("a.md", "---\nid: N_0001\n---\nmaple [[new old]]")],
    [("a.md", "bare text")],
    [("a.md", None)],
    [("b.md", None)],
    [("new.md", "# The real one")],
    [("new.md", "# The real one"), ("new.md", None)],
    [("sub/a.md", "---\nid: N_0001\ncreated: 2020-01-01\n---\nx")],
    [("b.md", "---\nid: N_0002\n---\nno longer")],
    [("a.md", SECRET)],
    [("a.md", SECRET), ("a.md", "---\nid: N_0001\n---\nback")],
    [("c.md", SECRET), ("c.md", None)],
    [("a.md", None), ("a.md", "---\nid: N_0001\n---\nback [[b]]"), ("d.md", "[[a]]")],
]


@pytest.mark.parametrize("changes", CHANGES, ids=range(len(CHANGES)))
def test_it_equals_a_fresh_import(changes, steps, folder, index, make_index, one):
    for path, text in changes:
        write(folder, path, text)
        one(path)
        index.check()
        fresh = make_index("fresh.db")
        fresh.sync(folder)
        assert index.contents() == fresh.contents()
        fresh.path.unlink()
    # The next sync looks at the file once more, and finds it as it is.
    assert not index.sync(folder).changed


def test_a_card_that_becomes_secret_leaves_no_trace(steps, folder, index, one):
    folder.write("zqname.md", "---\ntitle: zqtitle\ntags: [zqtag]\n---\nzqbody 甲骨文 [[zqlink]]")
    assert one("zqname.md") == 4
    words = ("zqname", "zqtitle", "zqtag", "zqbody", "zqlink", "甲骨")

    def traces() -> list[str]:
        return [
            word
            for word in words
            for file in index.path.parent.iterdir()
            if word.encode() in file.read_bytes()
        ]

    assert set(traces()) == set(words)
    folder.write("zqname.md", "---\nsensitivity: secret\n---\nzqbody")
    assert one("zqname.md") is None
    assert traces() == []
    assert index.query("select path from files where card_id is null") == [
        (secret_path("notes", "zqname.md"),)
    ]


def test_the_row_is_kept_while_the_path_is(steps, folder, one, index):
    ((before,),) = index.query("select id from cards where path = 'a.md'")
    folder.write("a.md", "changed")
    assert one("a.md") == before
    folder.delete("a.md")
    assert one("a.md") is None
    assert one("a.md") is None
