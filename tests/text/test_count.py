"""Counting terms in a text, held against FTS5 on the index of the same text."""

import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datasette_memory.text.count import TermCounter
from datasette_memory.text.query import parse
from datasette_memory.text.stem import index_key, other_endings
from datasette_memory.text.tokenise import CJK_RUN, FTS5_TOKENIZE, index_text


def counts(text: str, query: str, prefix: bool = False) -> list[int]:
    terms = parse(query)
    numbers = [number for number, term in enumerate(terms) if prefix and term.extensible]
    return TermCounter(terms, numbers).count(text)


@pytest.mark.parametrize(
    "text, query, expected",
    [
        ("备份脚本覆盖了备份", "备份", [2]),
        ("哈哈哈，哈哈", "哈哈", [3]),
        ("一把锁，三把锁", "锁", [2]),
        ("臺北的網路", "网络台北", [0, 0, 1]),
        ("Running runs, ran", "run", [2]),
        ("ecs-prod-01 and ecs prod 01, ecs-prod", "ecs-prod-01", [2]),
        ("getUserById userById", "getUserById", [2]),
        ("get user by id", "getUserById", [1]),
        ("ecs 备份 prod", "ecs-prod", [0]),
        ("Café cafe", "café", [2]),
        ("", "备份 ecs", [0, 0]),
        ("ecs\0prod", "ecs", [1]),
    ],
)
def test_counts_by_hand(text, query, expected):
    assert counts(text, query) == expected


def test_prefixes():
    assert counts("sqlite3 SQLite sqlitebrowser", "sqlite") == [1]
    assert counts("sqlite3 SQLite sqlitebrowser", "sqlite", prefix=True) == [3]
    assert counts("ecs-production ecs-prod", "ecs-prod", prefix=True) == [2]


def fts5_counts(text: str, query: str, prefix: bool) -> list[int]:
    """By FTS5's own vocabulary of instances: of single tokens all, of phrases by their places."""
    connection = sqlite3.connect(":memory:")
    connection.execute(f'create virtual table t using fts5(x, tokenize="{FTS5_TOKENIZE}")')
    connection.execute("create virtual table v using fts5vocab(t, instance)")
    connection.execute("insert into t values (?)", [index_text(text)])
    connection.execute(f'create virtual table q using fts5(x, tokenize="{FTS5_TOKENIZE}")')
    connection.execute("create virtual table w using fts5vocab(q, instance)")
    places: dict[int, str] = dict(connection.execute("select offset, term from v"))

    def keys(phrase):
        connection.execute("delete from q")
        connection.execute("insert into q values (?)", [" ".join(phrase)])
        return [term for (term,) in connection.execute("select term from w order by offset")]

    found = []
    for term in parse(query):
        count = 0
        for phrase in term.phrases:
            wanted = keys(phrase)
            open_end = term.open or prefix and term.extends(phrase)
            for at in places:
                here = [places.get(at + step) for step in range(len(wanted))]
                same = here[:-1] == wanted[:-1] and here[-1] is not None
                end = same and (
                    here[-1].startswith(wanted[-1]) if open_end else here[-1] == wanted[-1]
                )
                end = (
                    end
                    or same
                    and open_end
                    and here[-1] in map(index_key, other_endings(phrase[-1]))
                )
                count += bool(end)
        found.append(count)
    return found


TEXT = st.text(
    st.sampled_from("备份脚本哈一なにガ한국 aBcdeErRun1s-_./'\n，。éßÉ臺网")
    | st.characters(codec="utf-8"),
    max_size=60,
)


@settings(max_examples=300)
@given(TEXT, TEXT, st.booleans())
def test_any_text_is_counted_as_fts5_counts_it(text, query, prefix):
    if prefix and any(CJK_RUN.search(character) for character in query):
        # A pair that is asked as a prefix is itself; a single one is open anyway.
        prefix = False
    assert counts(text, query, prefix) == fts5_counts(text, query, prefix)


@settings(max_examples=100)
@given(TEXT, st.data())
def test_a_piece_of_the_text_is_counted_in_it(text, data):
    start = data.draw(st.integers(0, max(0, len(text) - 1)))
    piece = text[start : start + data.draw(st.integers(1, 6))]
    assert counts(text, piece) == fts5_counts(text, piece, False)
