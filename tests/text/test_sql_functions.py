"""The functions over text as SQL calls them, with whatever an SQL value can be."""

import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datasette_memory.index.functions import register
from datasette_memory.text.query import TIERS
from datasette_memory.text.tokenise import FTS5_TOKENIZE

BODY = "阿里云部署 <b> getUserById 1.5 -7 deploy"


@pytest.fixture(scope="module")
def connection():
    connection = sqlite3.connect(":memory:")
    register(connection)
    connection.execute(f'create virtual table f using fts5(a, tokenize="{FTS5_TOKENIZE}")')
    connection.execute("insert into f values (memory_tokens(?))", (BODY,))
    yield connection
    connection.close()


def one(connection, sql: str, *values):
    return connection.execute(f"select {sql}", values).fetchone()[0]


VALUES = (
    st.none()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats()
    | st.binary(max_size=30)
    | st.text(max_size=30)
    | st.lists(st.sampled_from(['"', "*", "NEAR(", " AND ", ":", "a", "云", "\x00"])).map("".join)
)


@settings(max_examples=800, deadline=None)
@given(query=VALUES, tier=st.sampled_from([*TIERS, 1, 2, 3, 4, "1", "4", 2.0, b"any"]))
def test_no_value_is_a_syntax_error(connection, query, tier):
    sql = "select count(*) from f where f match memory_match(?, ?)"
    assert connection.execute(sql, (query, tier)).fetchone()[0] in (0, 1)


@settings(max_examples=500, deadline=None)
@given(text=VALUES, query=VALUES)
def test_every_function_takes_every_value(connection, text, query):
    assert isinstance(one(connection, "memory_tokens(?)", text), str)
    assert isinstance(one(connection, "memory_snippet(?, ?)", text, query), str)
    assert 0 <= one(connection, "memory_coverage(?, ?)", text, query) <= 1


@pytest.mark.parametrize(
    "query, hits",
    [
        ("阿里云", 1),
        ("阿里云".encode(), 1),
        (1.5, 1),
        (-7, 1),
        (7, 1),
        (8, 0),
        (None, 0),
        ("", 0),
        (b"", 0),
        (b"\xff\xfe", 0),
        (b"\xffdeploy\xff", 1),
        ("\x00deploy\x00", 1),
    ],
)
def test_values_as_queries(connection, query, hits):
    sql = "select count(*) from f where f match memory_match(?, 'all')"
    assert connection.execute(sql, (query,)).fetchone()[0] == hits


def test_expressions(connection):
    assert one(connection, "memory_match('backup 云', 'all-prefix')") == '"backup"* AND "云"*'
    for number, tier in enumerate(TIERS, 1):
        for given_as in (number, str(number), float(number), tier, tier.encode()):
            match = one(connection, "memory_match('deploy 阿里', ?)", given_as)
            assert match == one(connection, "memory_match('deploy 阿里', ?)", tier)


# Datasette has sqlite3 report what a function raised; pytest warns of that.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("tier", [None, "", "most", 0, 5, -1, "9", "²", b"\xff", "ALL"])
def test_a_wrong_tier_is_an_sql_error(connection, tier):
    with pytest.raises(sqlite3.OperationalError):
        one(connection, "memory_match('a', ?)", tier)


def test_snippet_and_coverage(connection):
    snippet = one(connection, "memory_snippet(?, '部署 b')", BODY)
    assert snippet == "阿里云<b>部署</b> &lt;<b>b</b>&gt; getUserById 1.5 -7 deploy"
    assert one(connection, "memory_coverage(?, '阿里云 nothing here')", BODY) == 0.5
    assert one(connection, "memory_coverage(?, 'user by id')", BODY) == 1
    assert one(connection, "memory_coverage(NULL, NULL)") == 0
    assert one(connection, "memory_snippet(NULL, 'a')") == ""
    assert one(connection, "memory_tokens(NULL)") == ""
    assert one(connection, "memory_tokens('阿里 getX')") == "阿里 里 getx get x"
