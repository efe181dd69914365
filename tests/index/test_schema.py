"""The full-text part beside its cards: triggers, their loss and repair, and SQLite without us."""

import contextlib
import shutil
import subprocess

import pytest
from sqlite_utils import Database

from datasette_memory.errors import MemoryFault
from datasette_memory.index import schema
from datasette_memory.index.connection import connect_write, sqlite3
from datasette_memory.index.functions import register
from datasette_memory.index.migrations import migrate
from datasette_memory.memory import Memory


@pytest.fixture
def cards(folder, index):
    folder.write("a.md", "---\ntags: [t]\n---\n# 阿里云服务器\n\nwillow [[b]]")
    folder.write("b.md", "---\ntitle: Berta\n---\npoplar")
    index.sync(folder)
    return index


@pytest.fixture
def memory(cards, place):
    return Memory(str(place / "home"), db=str(cards.path))


def insert(index, title: str) -> None:
    index.query(
        "insert into cards (ref, title, kind, source, path, body, summary) "
        "values ('N_0009', ?, 'note', 'mine', ?, '', '')",
        title,
        title,
    )


def test_triggers_follow_what_sql_writes(cards):
    insert(cards, "杭州机房")
    assert cards.titles('"杭州" "机房"') == ["杭州机房"]
    cards.query("update cards set title = '上海机房' where source = 'mine'")
    assert cards.titles('"杭州"') == [] and cards.titles('"上海"') == ["上海机房"]
    cards.query("update cards set priority = 5, tags = '[\"zz\"]' where source = 'mine'")
    assert cards.titles('"zz"') == ["上海机房"]
    cards.query(
        "insert into cards (id, ref, title, kind, source, path, body, summary) select id, ref, "
        "'深圳', kind, source, path, body, summary from cards where source = 'mine' "
        "on conflict (id) do update set title = excluded.title"
    )
    assert cards.titles('"深圳"') == ["深圳"] and cards.titles('"上海"') == []
    cards.query("delete from cards where source = 'mine'")
    assert cards.titles('"深圳"') == []
    cards.check()


def test_a_deleted_row_takes_all_that_hangs_on_it_along(cards):
    cards.query("insert into card_stats (card_id, reads) values (1, 1)")
    assert cards.query("pragma foreign_keys") == [(0,)]
    cards.query("delete from cards where title = 'Berta'")
    assert cards.query("select target, target_id from links") == [("b", None)]
    cards.query("delete from cards where title = '阿里云服务器'")
    for table in ("tags", "links", "names", "card_stats"):
        assert cards.query(f"select count(*) from {table}") == [(0,)]
    assert cards.query("select count(*) from files where card_id is not null") == [(0,)]
    cards.check()


def test_plain_sqlite_can_search_and_writing_fails_closed(cards):
    with contextlib.closing(sqlite3.connect(cards.path)) as plain:
        assert plain.execute(
            "select title from cards join cards_fts on cards.id = cards_fts.rowid "
            """where cards_fts match '"阿里" "里云"' order by rank"""
        ).fetchall() == [("阿里云服务器",)]
        for statement in (
            "update cards set title = 'x'",
            "delete from cards",
            "insert into cards (ref, title, kind, source, path, body, summary) "
            "values ('r', 't', 'note', 's', 'p', 'b', '')",
        ):
            with pytest.raises(sqlite3.OperationalError, match="no such function: memory_tokens"):
                plain.execute(statement)
        plain.rollback()
        # What the index does not hold can be written.
        plain.execute("update cards set priority = 3 where title = 'Berta'")
        plain.commit()
    assert cards.query("select priority from cards where title = 'Berta'") == [(3,)]
    cards.check()


@pytest.mark.skipif(not shutil.which("sqlite3"), reason="needs the sqlite3 shell")
def test_so_does_the_sqlite3_shell(cards):
    query = (
        "select title from cards join cards_fts on cards.id = cards_fts.rowid "
        """where cards_fts match '"阿里" "里云"'"""
    )
    ran = subprocess.run(
        ["sqlite3", "-readonly", str(cards.path), query], capture_output=True, encoding="utf-8"
    )
    assert (ran.stdout, ran.stderr) == ("阿里云服务器\n", "")
    ran = subprocess.run(
        ["sqlite3", str(cards.path), "update cards set title = 'x'"],
        capture_output=True,
        encoding="utf-8",
    )
    assert "no such function: memory_tokens" in ran.stderr


def triggers(index) -> set[str]:
    names = index.query("select name from sqlite_master where type = 'trigger'")
    return {name for (name,) in names}


def transform(index) -> None:
    with contextlib.closing(sqlite3.connect(index.path)) as connection:
        register(connection)
        Database(connection, execute_plugins=False).table("cards").transform(
            types={"priority": int}
        )
        connection.commit()


def drop_by_hand(index) -> None:
    for name in schema.TRIGGERS:
        index.query(f"drop trigger {name}")


def drop_one(index) -> None:
    index.query("drop trigger cards_fts_update")


@pytest.mark.parametrize("lose", [transform, drop_by_hand, drop_one])
@pytest.mark.parametrize("command", ["search", "show", "stats", "sync"])
def test_lost_triggers_come_back_and_the_search_is_right_again(
    lose, command, folder, cards, memory
):
    lose(cards)
    assert triggers(cards) < set(schema.TRIGGERS)
    cards.query("update cards set title = '杭州机房' where title = 'Berta'")
    {
        "search": lambda: memory.search("poplar"),
        "show": lambda: memory.show("1"),
        "stats": memory.stats,
        "sync": lambda: cards.sync(folder),
    }[command]()
    assert triggers(cards) == set(schema.TRIGGERS)
    assert cards.titles('"杭州"') == ["杭州机房"]
    assert [hit.title for hit in memory.search("杭州").hits] == ["杭州机房"]
    assert memory.search("Berta").hits == ()
    cards.check()


def test_a_search_is_right_in_the_very_run_that_finds_them_lost(cards, memory):
    drop_by_hand(cards)
    cards.query("update cards set title = '杭州机房' where title = 'Berta'")
    assert [hit.title for hit in memory.search("杭州").hits] == ["杭州机房"]


def test_a_bulk_change_that_drops_triggers_itself_is_never_seen_without(cards):
    with contextlib.closing(connect_write(cards.path)) as connection:
        register(connection)
        with contextlib.closing(sqlite3.connect(cards.path)) as other:
            connection.execute("begin immediate")
            schema.drop_triggers(connection)
            assert schema.missing_triggers(connection) == sorted(schema.TRIGGERS)
            assert schema.missing_triggers(other) == []
            connection.execute("rollback")


def test_triggers_are_restored_within_a_transaction_of_the_caller(cards):
    drop_by_hand(cards)
    cards.query("update cards set title = '杭州机房' where title = 'Berta'")
    with contextlib.closing(connect_write(cards.path)) as connection:
        register(connection)
        connection.execute("begin immediate")
        assert schema.ensure_triggers(connection)
        connection.execute("rollback")
    assert triggers(cards) == set()
    with contextlib.closing(connect_write(cards.path)) as connection:
        register(connection)
        assert schema.ensure_triggers(connection)
        assert not schema.ensure_triggers(connection)
    assert cards.titles('"杭州"') == ["杭州机房"]


def test_another_tokeniser_is_told_by_readers_and_mended_by_writers(folder, cards, memory):
    cards.query("update meta set value = 'old' where key = 'tokenizer_version'")
    # As if other tokens had been written by it.
    cards.query("insert into cards_fts (cards_fts) values ('delete-all')")
    with pytest.raises(MemoryFault, match="built by another version"):
        memory.search("willow")
    cards.sync(folder)
    assert [hit.title for hit in memory.search("willow").hits] == ["阿里云服务器"]
    cards.check()


def test_migrations_are_all_or_nothing_in_a_database_of_somebody_else(index):
    index.path.parent.mkdir()
    index.query("create table cards (a)")
    before = index.query("select sql from sqlite_master")
    with contextlib.closing(connect_write(index.path)) as connection:
        with pytest.raises(sqlite3.OperationalError, match="already exists"):
            migrate(connection)
    assert index.query("select sql from sqlite_master") == before


def test_migrating_twice_changes_nothing(cards):
    before = cards.query("select * from sqlite_master order by name")
    for _ in range(2):
        with contextlib.closing(connect_write(cards.path)) as connection:
            migrate(connection)
    assert cards.query("select * from sqlite_master order by name") == before
    assert schema.is_memory(sqlite3.connect(cards.path))
    assert not schema.is_memory(sqlite3.connect(":memory:"))


def test_an_index_of_an_earlier_version_gets_what_it_lacks(cards):
    def entries():
        return cards.query(
            "select type, name, sql from sqlite_master where tbl_name not like '\\_%' escape '\\' "
            "order by name"
        )

    before = entries()
    for statement in (
        "drop view injections", "drop view feedback_given", "drop index idx_events_session",
        "drop index idx_events_cohort", "delete from _sqlite_migrations where name = 'm003_feedback'",
        "update meta set value = '2' where key = 'schema_version'",
    ):  # fmt: skip
        cards.query(statement)
    with contextlib.closing(connect_write(cards.path)) as connection:
        assert not schema.is_current(connection)
        migrate(connection)
        assert schema.is_current(connection)
    assert entries() == before


def test_what_was_given_and_what_came_of_it(cards):
    insert = (
        "insert into events (id, t, kind, ref, source, path, agent, session, data, host, line) "
        "values (?, 't', ?, ?, 'vault', ?, 'claude', 's1', ?, 'h', 1)"
    )
    given = '{"cohort": "c1", "cards": [{}, {}], "tokens": 30, "budget": 99, "project": "p"}'
    cards.query(insert, "1", "inject", None, None, given)
    cards.query(insert, "2", "inject", None, None, "{}")
    cards.query(insert, "3", "feedback", "D_0001", "a.md", '{"cohort": "c1", "verdict": "adopted"}')
    cards.query(insert, "4", "feedback", None, None, "{}")  # Of a secret card.
    cards.query(insert, "5", "read", "D_0001", "a.md", "{}")
    columns = "t, cohort, session, agent, project, cards, tokens, budget"
    assert cards.query(f"select {columns} from injections order by cohort desc") == [
        ("t", "c1", "s1", "claude", "p", 2, 30, 99), ("t", None, "s1", "claude", None, None, None, None),
    ]  # fmt: skip
    assert cards.query(
        "select t, cohort, verdict, ref, source, path, session, agent from feedback_given"
    ) == [("t", "c1", "adopted", "D_0001", "vault", "a.md", "s1", "claude")]


def test_every_view_can_be_read(cards):
    views = cards.query("select name from sqlite_master where type = 'view'")
    assert {"cards_never_read", "cards_superseded", "broken_links", "file_faults"} <= {
        name for (name,) in views
    }
    for (name,) in views:
        cards.query(f"select * from {name}")
    assert cards.query("select title from cards_never_read order by id") == [
        ("阿里云服务器",), ("Berta",),
    ]  # fmt: skip
    cards.query("insert into card_stats (card_id, reads) values (1, 1)")
    assert cards.query("select title from cards_never_read") == [("Berta",)]
