"""The SQL functions of the project on a plain connection."""

import json

import pytest

from datasette_memory.index.connection import sqlite3
from datasette_memory.search.functions import register


@pytest.fixture
def connection(index_file):
    connection = sqlite3.connect(index_file())
    register(connection)
    yield connection
    connection.close()


def one(connection, sql: str, *values):
    return connection.execute(f"select {sql}", values).fetchone()[0]


def refs(connection, *arguments) -> list[str]:
    marks = ", ".join("?" * len(arguments))
    return [
        hit["ref"] for hit in json.loads(one(connection, f"memory_search({marks})", *arguments))
    ]


def test_memory_search_gives_hits_for_json_each(connection):
    rows = connection.execute(
        "select value ->> 'ref', value ->> 'matched', value ->> 'html', cards.title "
        "from json_each(memory_search('备份', 5)) join cards on cards.id = value ->> 'id'"
    ).fetchall()
    assert rows == [("F_0001", "all", "网关监听 8765 端口，<b>备份</b>任务在 02:30。", "端口约定")]


def test_html_is_escaped(connection):
    (hit,) = json.loads(one(connection, "memory_search('敌意')"))
    assert "<script>" not in hit["html"] and "&lt;script&gt;" in hit["html"]


def test_the_limit_may_be_left_out_and_is_clamped(connection):
    assert refs(connection, "全文检索") == ["D_0001"]
    for limit in (1, "1", 1.9, b"1", 0, -5):
        assert len(refs(connection, "8765 users getUserById 备份", limit)) == 1
    for limit in (None, "", 5, 10**9):
        assert len(refs(connection, "8765 users getUserById 备份", limit)) == 2


@pytest.mark.parametrize(
    "query", [None, 8765, 8765.0, "8765".encode(), "", b"\xff", "\0", -1, 1e300]
)
def test_a_query_may_be_any_value(query, connection):
    assert isinstance(refs(connection, query, 5), list)


def test_a_number_is_its_digits(connection):
    assert refs(connection, 8765, 5) == refs(connection, b"8765", 5) == ["F_0001"]


@pytest.mark.parametrize("limit", ["many", b"\xff", float("inf"), "1e9"])
def test_a_limit_that_is_none_is_an_error_of_the_statement(limit, connection):
    with pytest.raises(sqlite3.OperationalError):
        refs(connection, "备份", limit)
    assert refs(connection, "备份", 5) == ["F_0001"]


def test_a_database_without_an_index_says_so_and_keeps_the_other_functions():
    connection = sqlite3.connect(":memory:")
    register(connection)
    with pytest.raises(sqlite3.OperationalError):
        one(connection, "memory_search('x')")
    assert one(connection, "memory_tokens('阿里云')") == "阿里 里云 云"
    assert one(connection, "memory_match('阿里云 x', 'all')") == '"阿里" AND "里云" AND "x"'
    assert one(connection, "memory_coverage('阿里', '阿里云')") == 0.5
    assert (
        one(connection, "memory_snippet('a <b> 阿里云', '阿里云')") == "a &lt;b&gt; <b>阿里云</b>"
    )


def test_the_tiers_are_visible_in_plain_sql(connection):
    for tier, expected in {"all": [], "all-prefix": ["F_0001"], 1: [], "2": ["F_0001"]}.items():
        rows = connection.execute(
            "select ref from cards join cards_fts on cards.id = cards_fts.rowid "
            "where cards_fts match memory_match('87', ?)",
            (tier,),
        )
        assert [ref for (ref,) in rows] == expected


@pytest.mark.parametrize("tier", ["some", 0, 5, None, "", "any "])
def test_a_tier_that_is_none_is_an_error_of_the_statement(tier, connection):
    with pytest.raises(sqlite3.OperationalError):
        one(connection, "memory_match('x', ?)", tier)


def test_pure_functions_may_stand_in_an_index(connection):
    connection.execute("create table t (a)")
    connection.execute("create index tokens on t (memory_tokens(a))")
    with pytest.raises(sqlite3.OperationalError, match="non-deterministic"):
        connection.execute("create index found on t (memory_search(a))")


def test_superseded_cards_are_left_out_in_sql_too(connection):
    assert refs(connection, "外部服务") == []
    assert one(connection, "superseded_by from cards where ref = 'D_0002'") == "D_0001"
