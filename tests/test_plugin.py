"""The Datasette side, on whichever Datasette is installed here: 0.65 and 1.0 run these alike."""

import base64
import json
import sqlite3
import urllib.error
import urllib.request
from urllib.parse import quote, urlencode

import pytest
import yaml
from datasette.app import Datasette
from datasette.version import __version__ as datasette_version
from datasette_auth_passwords.utils import hash_password
from hypothesis import given
from hypothesis import strategies as st

from datasette_memory import plugin
from datasette_memory.index.connection import connect_write
from datasette_memory.memory import Memory
from datasette_memory.search import functions
from memory_cli.serve import command, find_metadata

pytestmark = pytest.mark.asyncio

LINE_1_0 = hasattr(Datasette, "table_config")
CONFIGURATION = yaml.safe_load(find_metadata().read_text(encoding="utf-8"))


def datasette(*files, configuration=None, **options) -> Datasette:
    """A Datasette with its configuration where this line looks for it."""
    if configuration is not None:
        options["config" if LINE_1_0 else "metadata"] = configuration
    return Datasette([str(file) for file in files], **options)


async def titles(ds: Datasette, query: str, database: str = "memory") -> set[str]:
    response = await ds.client.get(f"/{database}/cards.json?_shape=array&{query}")
    assert response.status_code == 200, response.text
    return {row["title"] for row in response.json()}


async def test_the_plugin_is_installed():
    plugins = (await datasette().client.get("/-/plugins.json")).json()
    (found,) = [entry for entry in plugins if entry["name"] == "datasette-memory"]
    assert {"prepare_connection", "startup", "filters_from_request"} <= set(found["hooks"])


# The search box


@pytest.mark.parametrize("name", ["memory", "笔记", "my notes", "a.b", "Memory-2"])
async def test_search_box_answers_chinese_in_a_memory_of_any_name(index_file, name):
    ds = datasette(index_file(f"{name}.db"))
    (attached,) = (db for db in ds.databases.values() if db.name == name)
    page = await ds.client.get(f"{ds.urls.table(name, 'cards')}?_search={quote('全文检索')}")
    assert page.status_code == 200
    assert "2 rows" in page.text
    assert 'type="search" name="_search" value="全文检索"' in page.text
    assert "全文检索用二元组" in page.text and "getUserById is batched" not in page.text


async def test_json_csv_and_facets_follow_the_search(index_file):
    ds = datasette(index_file())
    query = f"_search={quote('全文检索')}"
    assert await titles(ds, query) == {"全文检索用二元组", "全文检索用外部服务"}
    assert await titles(ds, f"{query}&kind=note") == set()
    csv = await ds.client.get(f"/memory/cards.csv?{query}&_col=title&_sort=id")
    assert csv.text.splitlines() == ["id,title", *sorted(csv.text.splitlines()[1:])]
    assert csv.text.count("全文检索用") == 2
    facets = await ds.client.get(f"/memory/cards.json?{query}&_facet=kind&_extra=facet_results")
    results = facets.json()["facet_results"]
    results = results.get("results", results)
    assert [(item["value"], item["count"]) for item in results["kind"]["results"]] == [
        ("decision", 2)
    ]


async def test_two_characters_one_character_and_identifiers(index_file):
    ds = datasette(index_file())
    assert await titles(ds, f"_search={quote('备份')}") == {"端口约定"}
    assert await titles(ds, f"_search={quote('网')}") == {"端口约定"}
    assert await titles(ds, "_search=userById") == {"getUserById is batched"}
    assert await titles(ds, "_search=ecs-prod-02") == {"getUserById is batched"}


async def test_a_looser_tier_is_used_only_when_no_stricter_one_finds_anything(index_file):
    ds = datasette(index_file())
    page = await ds.client.get(f"/memory/cards?_search={quote('备份 外部')}")
    assert "any term of" in page.text and "2 rows" in page.text
    page = await ds.client.get("/memory/cards?_search=batch")
    assert "1 row" in page.text and "getUserById is batched" in page.text
    page = await ds.client.get(f"/memory/cards?_search={quote('端口 备份')}")
    assert "every term of" in page.text and "1 row" in page.text


async def test_search_of_one_column(index_file):
    ds = datasette(index_file())
    assert await titles(ds, f"_search_title={quote('端口')}") == {"端口约定"}
    assert await titles(ds, f"_search_title={quote('备份')}") == set()
    assert await titles(ds, f"_search_body={quote('备份')}") == {"端口约定"}
    # Two columns, and the whole: all have to hold.
    assert await titles(ds, f"_search_title={quote('端口')}&_search_body={quote('备份')}") == {
        "端口约定"
    }
    assert await titles(ds, f"_search={quote('检索')}&_search_body={quote('外部')}") == {
        "全文检索用外部服务"
    }
    response = await ds.client.get("/memory/cards?_search_path=x")
    assert response.status_code == 400
    assert "title, keywords, summary, body" in response.text


async def test_no_search_is_no_filter_and_nothing_to_look_for_finds_nothing(index_file):
    ds = datasette(index_file())
    for empty in ("", "_search=", "_search=%20%09", "_search_title="):
        assert len(await titles(ds, empty)) == 6
    for nothing in ("?", '"', "。，！", "***", "- -"):
        assert await titles(ds, f"_search={quote(nothing)}") == set()
    page = await ds.client.get("/memory/cards?_search=%3F%3F")
    assert "has no letter or digit to look for" in page.text


HOSTILE = [
    '"', "'", "*", "a*", "^a", "a:b", "title:端口", "(", ")", "NEAR(a b)", "a AND", "OR", "NOT a",
    "{title}: a", "-a", "a + b", "--", ";drop table cards", "%", "_", "\\", "全文\x00检索", "😀", "é",
    "\u202e", "ﬁ", "字" * 3000, "a" * 3000, '" OR 1=1 --', "')", ":search", "?", "[x]", "{}", "<b>",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
async def test_no_text_is_an_error(index_file, text):
    ds = datasette(index_file())
    for key in ("_search", "_search_title"):
        for extension in ("", ".json", ".csv"):
            response = await ds.client.get(f"/memory/cards{extension}?{urlencode({key: text})}")
            assert response.status_code == 200, (key, extension, response.text[:500])


async def test_bytes_that_are_no_text_are_no_error(index_file):
    ds = datasette(index_file())
    for raw in ("%ED%A0%80", "%FF%FE", "%E5%85"):
        assert (await ds.client.get(f"/memory/cards?_search={raw}")).status_code == 200


async def test_any_text_at_all(index_file):
    ds = datasette(index_file())
    await ds.invoke_startup()
    connection = sqlite3.connect(ds.get_database("memory").path)
    functions.register(connection)

    @given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
    def check(text):
        built = plugin.table_filter.build(connection, {"": text, "body": text})
        where = " and ".join(built.where)
        connection.execute(f"select count(*) from cards where {where}", built.params).fetchone()

    check()
    connection.close()


async def test_the_sql_of_a_search_runs_by_itself(index_file):
    ds = datasette(index_file())
    response = await ds.client.get(f"/memory/cards.json?_search={quote('备份')}&_extra=query")
    asked = response.json()["query"]
    assert "memory_match(:memory_search, 'all')" in asked["sql"]
    path = "/memory/-/query.json" if LINE_1_0 else "/memory.json"
    again = await ds.client.get(
        f"{path}?{urlencode({'sql': asked['sql'], '_shape': 'array', **asked['params']})}"
    )
    assert [row["title"] for row in again.json()] == ["端口约定"]


async def test_sql_functions_in_plain_sql(index_file):
    ds = datasette(index_file())
    sql = (
        "select memory_snippet(body, '备份') as s, json_array_length(memory_search('备份', 5)) as n"
    )
    path = "/memory/-/query.json" if LINE_1_0 else "/memory.json"
    response = await ds.client.get(
        f"{path}?{urlencode({'sql': sql + ' from cards where ref = :r', 'r': 'F_0001'})}&_shape=array"
    )
    (row,) = response.json()
    assert row["n"] == 1 and "<b>备份</b>任务" in row["s"]


async def test_another_database_with_cards_is_left_alone(tmp_path):
    path = tmp_path / "game.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(
            "create table cards (id integer primary key, title text, body text, snippet text);"
            "insert into cards values (1, '红桃', '<i>x</i>', '<b>y</b>');"
        )
    ds = datasette(path)
    table = await ds.client.get("/game/cards")
    assert table.status_code == 200 and 'name="_search"' not in table.text
    assert "&lt;b&gt;y&lt;/b&gt;" in table.text and "memory-" not in table.text
    row = await ds.client.get("/game/cards/1")
    assert "&lt;i&gt;x&lt;/i&gt;" in row.text and "memory-" not in row.text


# Starting


def alter(path) -> None:
    """What `table.transform()` and "Alter table" do to triggers, and then a change of a row."""
    with sqlite3.connect(path) as connection:
        for (name,) in connection.execute(
            "select name from sqlite_master where type = 'trigger'"
        ).fetchall():
            connection.execute(f"drop trigger {name}")
        connection.execute("update cards set title = '紫砂壶' where ref = 'F_0001'")
    connection.close()


async def test_start_mends_a_search_that_went_stale(index_file, capsys):
    path = index_file()
    alter(path)
    ds = datasette(path)
    assert await titles(ds, f"_search={quote('紫砂')}") == {"紫砂壶"}
    assert await titles(ds, f"_search_title={quote('端口')}") == set()
    assert "search was mended" in capsys.readouterr().err
    with sqlite3.connect(path) as connection:
        triggers = {
            name
            for (name,) in connection.execute(
                "select name from sqlite_master where type = 'trigger' and tbl_name = 'cards'"
            )
        }
    assert {"cards_fts_insert", "cards_fts_delete", "cards_fts_update"} <= triggers
    connection.close()


async def test_an_index_of_another_version_is_named_at_the_start(index_file, capsys):
    path = index_file("old.db")
    with sqlite3.connect(path) as connection:
        connection.execute("update meta set value = '0' where key = 'tokenizer_version'")
    connection.close()
    ds = datasette(path)
    assert len(await titles(ds, "", "old")) == 6
    said = capsys.readouterr().err
    assert "old" in said and "`memory index`" in said


async def test_an_immutable_memory_is_served_as_it_is(index_file):
    path = index_file()
    alter(path)
    ds = datasette(immutables=[str(path)])
    assert "端口约定" not in await titles(ds, "")
    assert "紫砂壶" in await titles(ds, "")


async def test_a_memory_that_cannot_be_mended_does_not_stop_the_others(index_file, capsys):
    broken = index_file("broken.db")
    alter(broken)
    with sqlite3.connect(broken) as connection:
        connection.execute("drop table meta")
        connection.execute("create view meta as select 1 as key, 2 as value")
    connection.close()
    ds = datasette(broken, index_file())
    assert await titles(ds, f"_search={quote('备份')}") == {"端口约定"}
    assert "broken" in capsys.readouterr().err


async def test_a_memory_that_is_filled_after_the_start_is_found(tmp_path, small_vault):
    path = tmp_path / "later.db"
    sqlite3.connect(path).execute("create table other (a)")
    ds = datasette(path)
    assert (await ds.client.get("/later/cards")).status_code == 404
    Memory(str(tmp_path / "home"), db=str(path)).import_paths([str(small_vault)])
    assert await titles(ds, f"_search={quote('备份')}", "later") == {"端口约定"}
    assert "memory-cards" in (await ds.client.get("/later/cards")).text


async def test_without_any_database_and_in_memory():
    assert (await datasette().client.get("/")).status_code == 200
    assert (await datasette(memory=True).client.get("/_memory")).status_code == 200


# Pages


async def card_id(ds, ref: str) -> int:
    response = await ds.client.get(f"/memory/cards.json?_shape=array&ref={ref}")
    return response.json()[0]["id"]


async def test_row_page_shows_the_card(index_file):
    ds = datasette(index_file())
    number, replaced = await card_id(ds, "D_0001"), await card_id(ds, "D_0002")
    ports = await card_id(ds, "F_0001")
    page = (await ds.client.get(f"/memory/cards/{number}")).text
    assert "<strong>两个字</strong>" in page
    assert "query = &quot;&lt;全文&gt;&quot;" in page or 'query = "&lt;全文&gt;"' in page
    # Wikilink, relative link, relation, tag; and the relation that leads nowhere.
    assert (
        f'<a href="/memory/cards/{ports}" rel="noopener noreferrer nofollow">端口约定</a>' in page
    )
    assert (
        f'<a href="/memory/cards/{replaced}" rel="noopener noreferrer nofollow">旧决定</a>' in page
    )
    assert f'supersedes → <a href="/memory/cards/{replaced}">全文检索用外部服务</a>' in page
    assert "caused_by → I_0404 <em>(no such card)</em>" in page
    assert f'href="/memory/cards?tags__arraycontains={quote("检索")}"' in page

    old = (await ds.client.get(f"/memory/cards/{replaced}")).text
    assert 'Superseded by <a href="/memory/cards?ref=D_0001">D_0001</a>' in old
    assert f'supersedes ← <a href="/memory/cards/{number}">' in old


async def test_row_page_json_keeps_the_original(index_file):
    ds = datasette(index_file())
    number = await card_id(ds, "D_0001")
    response = await ds.client.get(f"/memory/cards/{number}.json?_shape=objects")
    assert response.json()["rows"][0]["body"].startswith("FTS5 自带的分词器找不到**两个字**的词。")


async def test_hostile_cards_are_text(index_file):
    ds = datasette(index_file())
    number = await card_id(ds, "N_0001")
    for path in (f"/memory/cards/{number}", "/memory/cards", "/memory/cards?_col=body&_col=title"):
        page = (await ds.client.get(path)).text
        assert "<script>window.hacked" not in page
        assert 'href="javascript' not in page and "<b>tag" not in page
        assert "<img" not in page


async def test_table_page_shows_excerpts_not_walls(index_file):
    ds = datasette(index_file())
    page = (await ds.client.get("/memory/cards?_col=title&_col=body")).text
    assert page.count("甲乙丙丁") < 20
    assert "很长的一页 甲乙丙丁" in page


async def test_table_page_begins_with_few_columns_and_has_them_all(index_file):
    ds = datasette(index_file())
    page = (await ds.client.get("/memory/cards")).text
    assert "#memory-all-columns:not(:checked) ~ .table-wrapper .col-embedding" in page
    assert ".table-wrapper .col-title" not in page
    assert 'class="col-body' in page
    chosen = (await ds.client.get("/memory/cards?_col=session")).text
    assert "memory-all-columns" not in chosen and 'class="col-session' in chosen


async def test_database_page_has_a_search_box_and_no_view_of_tokens(index_file):
    ds = datasette(index_file("笔记.db"))
    page = (await ds.client.get(ds.urls.database("笔记"))).text
    assert f'action="{ds.urls.table("笔记", "cards")}"' in page and 'name="_search"' in page
    assert ">cards_never_read</a>" in page
    assert ">cards_fts_source</a>" not in page


async def test_defaults_for_any_memory_and_the_users_word_above_them(index_file):
    ds = datasette(index_file("other.db"))
    page = (await ds.client.get("/other/cards")).text
    assert "sorted by updated descending" in page
    for facet in ("kind", "source", "project", "tags"):
        assert f'data-column="{facet}"' in page
    tags = (await ds.client.get("/other/tags")).text
    assert "全文检索用二元组</a>&nbsp;<em>" in tags

    mine = {"databases": {"other": {"tables": {"cards": {"facets": [], "sort": "title"}}}}}
    ds = datasette(index_file("other.db"), configuration=mine)
    page = (await ds.client.get("/other/cards")).text
    assert "facet-info" not in page


async def test_links_of_a_table_that_may_not_be_seen_stay_unseen(index_file):
    rules = {"databases": {"memory": {"tables": {"links": {"allow": {"id": "owner"}}}}}}
    ds = datasette(index_file(), configuration=rules)
    number = await card_id(ds, "D_0001")
    page = (await ds.client.get(f"/memory/cards/{number}")).text
    assert "<strong>两个字</strong>" in page
    assert "memory-links" not in page and "no such card" not in page


async def test_base_url_is_kept_in_links(index_file):
    ds = datasette(index_file(), settings={"base_url": "/under/"})
    number = await card_id(ds, "D_0001")
    page = (await ds.client.get(f"/memory/cards/{number}")).text
    assert 'href="/under/memory/cards/' in page and 'href="/memory/cards/' not in page


# metadata.yml


async def rows(ds, query: str, **arguments: str) -> list[dict]:
    arguments = {"_shape": "array", **arguments}
    response = await ds.client.get(f"/memory/{query}.json?{urlencode(arguments)}")
    assert response.status_code == 200, response.text
    return response.json()


async def test_canned_queries(index_file):
    ds = datasette(index_file(), configuration=CONFIGURATION)
    found = await rows(ds, "search", q="备份")
    assert [(row["title"], row["matched"], row["coverage"]) for row in found] == [
        ("端口约定", "all", 1.0)
    ]
    assert "<b>备份</b>任务" in found[0]["snippet"]
    assert await rows(ds, "search") == await rows(ds, "search", q="?!") == []

    recent = [row["title"] for row in await rows(ds, "recent")]
    assert len(recent) == 6
    assert recent.index("全文检索用二元组") < recent.index("全文检索用外部服务")
    kinds = {row["kind"]: (row["cards"], row["superseded"]) for row in await rows(ds, "by-kind")}
    assert kinds == {"decision": (2, 1), "note": (2, 0), "fact": (1, 0), "code_change": (1, 0)}
    assert len(await rows(ds, "never-read")) == 6
    broken = await rows(ds, "broken-links")
    assert [(row["title"], row["type"], row["target"]) for row in broken] == [
        ("全文检索用二元组", "caused_by", "I_0404")
    ]
    health = {row["what"]: row["value"] for row in await rows(ds, "index-health")}
    assert health["cards"] == health["cards in the full-text index"] == 6
    assert health["superseded cards"] == health["links without a target"] == 1
    assert health["files with a fault"] == 0


async def test_a_card_that_was_read_leaves_the_list(index_file):
    path = index_file()
    with sqlite3.connect(path) as connection:
        connection.execute(
            "insert into card_stats (card_id, reads) select id, 1 from cards where ref = 'F_0001'"
        )
    connection.close()
    ds = datasette(path, configuration=CONFIGURATION)
    assert "端口约定" not in {row["title"] for row in await rows(ds, "never-read")}


@pytest.mark.parametrize("query", sorted(CONFIGURATION["databases"]["memory"]["queries"]))
async def test_canned_query_pages(index_file, query):
    ds = datasette(index_file(), configuration=CONFIGURATION)
    page = await ds.client.get(f"/memory/{query}?q={quote('备份')}")
    assert page.status_code == 200
    assert CONFIGURATION["databases"]["memory"]["queries"][query]["title"] in page.text
    if query == "search":
        number = await card_id(ds, "F_0001")
        assert f'<a href="/memory/cards/{number}">端口约定</a>' in page.text
        assert "<mark>备份</mark>任务" in page.text


async def test_a_snippet_made_by_hand_cannot_carry_a_script(index_file):
    ds = datasette(index_file())
    sql = "select '<script>x</script><b onclick=\"x()\">ok</b>' as snippet"
    path = "/memory/-/query" if LINE_1_0 else "/memory"
    page = (await ds.client.get(f"{path}?{urlencode({'sql': sql})}")).text
    assert "<mark>ok</mark>" in page and "<script>x" not in page


# A server of its own


def fetch(url: str, **headers: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


async def test_a_real_server_with_the_ready_configuration(index_file, serve, free_port):
    path = index_file()
    argv = command(
        path, port=free_port, host="127.0.0.1", open_browser=False, metadata=find_metadata()
    )
    with serve(argv, free_port) as url:
        assert "Memory · 记忆" in fetch(url)[1]
        status, page = fetch(f"{url}/memory/cards?_search={quote('全文检索')}")
        assert status == 200 and "2 rows" in page and "Cards · 卡片" in page
        status, answer = fetch(f"{url}/memory/search.json?_shape=array&q={quote('备份')}")
        assert [row["title"] for row in json.loads(answer)] == ["端口约定"]
        # The index grows while it is served; the server needs no word of it.
        connection = connect_write(path)
        functions.register(connection)
        connection.execute(
            "insert into cards (ref, title, kind, source, path, body, summary) "
            "values ('F_0009', '新到的茶', 'fact', 'vault', 'new.md', '龙井', '')"
        )
        connection.close()
        assert "新到的茶" in fetch(f"{url}/memory/cards?_search={quote('龙井')}")[1]
        # Nobody set a password: nothing is asked for, and nobody can log in.
        assert fetch(f"{url}/-/login")[0] == 200
        basic = "Basic " + base64.b64encode(b"owner:None").decode()
        assert '"actor": null' in fetch(f"{url}/-/actor.json", Authorization=basic)[1]


async def test_with_a_password_and_allow_only_the_owner_sees_the_memory(
    index_file, serve, free_port, tmp_path
):
    text = find_metadata().read_text(encoding="utf-8")
    closed = text.replace("    # allow:\n    #   id: [", "    allow:\n      id: [")
    assert closed != text
    metadata = tmp_path / "closed.yml"
    metadata.write_text(closed, encoding="utf-8")
    argv = command(
        index_file(), port=free_port, host="127.0.0.1", open_browser=False, metadata=metadata
    )
    hashed = {"MEMORY_PASSWORD_HASH": hash_password("s3cret", iterations=10)}
    with serve(argv, free_port, hashed) as url:
        for path in ("", "/cards.json", "/cards/1", "/search.json?q=x", "/cards?_search=a"):
            assert fetch(f"{url}/memory{path}")[0] == 403
        good = "Basic " + base64.b64encode(b"owner:s3cret").decode()
        bad = "Basic " + base64.b64encode(b"owner:guess").decode()
        assert fetch(url + "/memory/cards.json", Authorization=bad)[0] == 403
        status, page = fetch(f"{url}/memory/cards?_search={quote('备份')}", Authorization=good)
        assert status == 200 and "端口约定" in page


async def test_this_runs_on_a_known_line():
    assert LINE_1_0 == (not datasette_version.startswith("0."))
