"""The filter behind the search box of the page of cards."""

import sqlite3

import pytest

from datasette_memory.search.functions import register
from datasette_memory.search.table_filter import UnknownColumn, asked, build


@pytest.fixture
def connection(index_file):
    connection = sqlite3.connect(index_file())
    register(connection)
    yield connection
    connection.close()


def refs(connection, **searches: str) -> list[str]:
    built = build(connection, {column.strip("_"): text for column, text in searches.items()})
    where = " and ".join(built.where) or "1"
    sql = f"select ref from cards where {where} order by ref"
    return [ref for (ref,) in connection.execute(sql, built.params)]


def test_only_searches_are_taken_from_a_url():
    arguments = {
        "_search": "全文",
        "_search_title": "端口",
        "_searchmode": "raw",
        "_search_body": " ",
        "_sort": "id",
        "kind": "note",
    }
    assert asked(arguments) == {"": "全文", "title": "端口"}


@pytest.mark.parametrize("name", ["path", "id", "title) or (1", "search", ""])
def test_a_column_that_is_not_indexed_is_refused(name):
    if not name:
        assert asked({"_search_": "x"}) == {"": "x"}
        return
    with pytest.raises(UnknownColumn, match="title, keywords, summary, body"):
        asked({f"_search_{name}": "x"})


def test_rows(connection):
    assert refs(connection, _="检索") == ["D_0001", "D_0002"]
    assert refs(connection, body="外部服务") == ["D_0002"]
    assert refs(connection, keywords="燕子") == ["D_0001", "D_0002"]
    assert refs(connection, _="检索", summary="中文") == ["D_0001"]
    assert refs(connection, _="?") == []
    assert refs(connection, _="饕餮") == []
    assert len(refs(connection)) == 6


def test_the_sql_names_the_tier_that_found_something(connection):
    assert "'all')" in build(connection, {"": "全文检索"}).where[0]
    assert "'all-prefix')" in build(connection, {"": "swal ecs"}).where[0]
    assert "'any')" in build(connection, {"": "备份 外部"}).where[0]
    assert "'all')" in build(connection, {"": "饕餮"}).where[0]


def test_parameters_and_words(connection):
    built = build(connection, {"": "备份", "title": "端口"})
    assert built.params == {"memory_search": "备份", "memory_search_title": "端口"}
    assert built.text == "备份"
    assert built.human == [
        'search matches every term of "备份"',
        'title matches every term of "端口"',
    ]
