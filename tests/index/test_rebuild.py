"""Building anew: what is carried over, what is refused, and what a damaged index comes to."""

import contextlib

import pytest

from datasette_memory.errors import MemoryFault
from datasette_memory.index.connection import connect_write, sqlite3
from datasette_memory.index.rebuild import clear_away, rebuild
from datasette_memory.vault.sources import Source


@pytest.fixture
def built(folder, index):
    for number in range(60):
        folder.write(f"{number}.md", f"# Card {number}\n\nwillow {number} " + "filler text " * 40)
    index.sync(folder)
    return index


def left_behind(index) -> set[str]:
    return {path.name for path in index.path.parent.iterdir()} - {"memory.db"}


def test_a_rebuild_gives_the_same_and_counts_all_as_added(folder, built):
    before = built.contents()
    assert built.counts(rebuild(built.path, [folder.source()])) == {"added": 60}
    assert built.contents() == before
    built.check()
    assert left_behind(built) == set()


def test_a_rebuild_without_an_index_makes_one(folder, index):
    folder.write("a.md", "# A\n\nwillow")
    index.path.parent.mkdir()
    rebuild(index.path, [folder.source()])
    assert index.titles('"willow"') == ["A"]
    index.path.write_bytes(b"")
    rebuild(index.path, [folder.source()])
    assert index.titles('"willow"') == ["A"]


def test_it_drops_what_is_not_asked_for(folder, make_folder, index):
    other = make_folder("other")
    folder.write("a.md", "a")
    other.write("b.md", "b")
    index.sync(folder, other)
    rebuild(index.path, [other.source()])
    assert index.query("select source, path from cards") == [("other", "b.md")]
    assert index.query("select name from sources") == [("other",)]


def test_stats_are_carried_over_by_place_and_not_by_id(folder, index):
    folder.write("b.md", "b")
    index.sync(folder)
    folder.write("a.md", "a")
    index.sync(folder)
    index.query(
        "insert into card_stats select id, 7, '2026-01-01', 1, 2, 0.5, 3, 4 from cards "
        "where path = 'b.md'"
    )
    rebuild(index.path, [folder.source()])
    assert index.query(
        "select path, id, card_stats.* from cards left join card_stats on card_id = id order by id"
    ) == [
        ("a.md", 1, None, None, None, None, None, None, None, None),
        ("b.md", 2, 2, 7, "2026-01-01", 1, 2, 0.5, 3, 4),
    ]


def test_views_indexes_and_triggers_of_the_user_are_made_again(folder, built):
    built.query("create view mine as select title from cards where project = 'swallow'")
    built.query("create index mine_too on cards (agent)")
    built.query(
        "create trigger mine_also after delete on cards begin delete from meta where key='x'; end"
    )
    built.query("create view hopeless as select missing from nowhere")
    result = rebuild(built.path, [folder.source()])
    names = {name for (name,) in built.query("select name from sqlite_master")}
    assert {"mine", "mine_too", "mine_also"} <= names
    assert built.query("select count(*) from mine") == [(0,)]
    assert result.notes == []


def test_what_cannot_be_made_again_is_told(folder, built):
    built.query("alter table cards add column own text")
    built.query("create index mine on cards (own)")
    result = rebuild(built.path, [folder.source()])
    assert result.notes == ["the index mine could not be made again: no such column: own"]


def test_a_database_with_other_tables_is_refused_and_left_alone(folder, built):
    built.query("create table recipes (name text)")
    built.query("insert into recipes values ('bread')")
    before = built.contents()
    with pytest.raises(MemoryFault) as caught:
        rebuild(built.path, [folder.source()])
    assert caught.value.error == (
        f"{built.path} also holds tables that a rebuild would drop: recipes"
    )
    assert "--rebuild" in caught.value.hint
    assert built.query("select name from recipes") == [("bread",)]
    assert built.contents() == before
    assert left_behind(built) == set()


def test_so_is_one_that_is_no_index_at_all(folder, index):
    folder.write("a.md", "a")
    index.path.parent.mkdir()
    for number in range(7):
        index.query(f"create table t{number} (a)")
    with pytest.raises(MemoryFault, match="t0, t1, t2, t3, t4, [.]{3}$"):
        rebuild(index.path, [folder.source()])
    assert index.query("select count(*) from sqlite_master") == [(7,)]


@pytest.mark.parametrize("page_size", [512, 4096, 65536])
def test_an_index_in_a_database_with_other_pages_is_rebuilt(page_size, folder, index):
    folder.write("a.md", "# A\n\nwillow")
    index.path.parent.mkdir()
    with contextlib.closing(sqlite3.connect(index.path)) as connection:
        connection.execute(f"pragma page_size = {page_size}")
        connection.execute("create view mine as select 1")
        connection.commit()
    index.sync(folder)
    with contextlib.closing(sqlite3.connect(index.path)) as reader:
        assert reader.execute("select count(*) from cards").fetchone() == (1,)
        folder.write("b.md", "# B\n\nwillow")
        rebuild(index.path, [folder.source()])
        assert reader.execute("select count(*) from cards").fetchone() == (2,)
    assert index.titles('"willow"') == ["A", "B"]
    assert index.query("pragma page_size") == [(page_size,)]


def truncate(path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def cut_in_the_header(path) -> None:
    path.write_bytes(path.read_bytes()[:50])


def zero_a_page(path) -> None:
    data = bytearray(path.read_bytes())
    data[16384:32768] = bytes(16384)
    path.write_bytes(data)


def flip_bits(path) -> None:
    data = bytearray(path.read_bytes())
    for at in range(20_000, len(data), 1000):
        data[at] ^= 0x55
    path.write_bytes(data)


@pytest.mark.parametrize("damage", [truncate, cut_in_the_header, zero_a_page, flip_bits])
def test_a_damaged_index_is_kept_and_replaced(damage, folder, built):
    damage(built.path)
    damaged = built.path.read_bytes()
    result = rebuild(built.path, [folder.source()])
    assert result.notes == ["the damaged index was kept as memory.db.damaged"]
    built.check()
    assert len(built.paths()) == 60
    assert built.path.with_name("memory.db.damaged").read_bytes() == damaged
    assert left_behind(built) == {"memory.db.damaged"}
    damage(built.path)
    result = rebuild(built.path, [folder.source()])
    assert result.notes == ["the damaged index was kept as memory.db.damaged-2"]
    assert left_behind(built) == {"memory.db.damaged", "memory.db.damaged-2"}


def test_so_is_one_with_other_pages(folder, index):
    for number in range(60):
        folder.write(f"{number}.md", f"# Card {number}\n\nwillow {number} " + "filler text " * 40)
    with contextlib.closing(connect_write(index.path, page_size=4096)):
        pass
    index.sync(folder)
    assert index.query("pragma page_size") == [(4096,)]
    # Its end alone, so that the tables can still be listed.
    data = index.path.read_bytes()
    index.path.write_bytes(data[:-40960] + b"\x55" * 40960)
    rebuild(index.path, [folder.source()])
    index.check()
    assert left_behind(index) == {"memory.db.damaged"}


def test_a_full_text_part_that_is_out_of_step_is_mended(folder, built):
    built.query("insert into cards_fts (cards_fts) values ('delete-all')")
    assert built.titles('"willow"') == []
    rebuild(built.path, [folder.source()])
    assert len(built.titles('"willow"')) == 60
    built.check()


def test_a_locked_index_is_waited_for_and_then_given_up(folder, built, monkeypatch):
    monkeypatch.setattr("datasette_memory.index.connection.WRITE_TIMEOUT", 0.1)
    before = built.contents()
    with contextlib.closing(sqlite3.connect(built.path, isolation_level=None)) as other:
        other.execute("begin exclusive")
        with pytest.raises(MemoryFault, match="is locked by another program"):
            rebuild(built.path, [folder.source()])
        other.execute("rollback")
    assert built.contents() == before
    assert left_behind(built) == set()


def test_a_missing_source_leaves_the_old_index(folder, built, place):
    before = built.contents()
    with pytest.raises(MemoryFault, match="gone does not exist"):
        rebuild(built.path, [folder.source(), Source("gone", str(place / "gone"))])
    assert built.contents() == before
    assert left_behind(built) == set()


def test_an_exception_on_the_way_leaves_the_old_index(folder, built):
    def stop(done, total):
        raise KeyboardInterrupt

    before = built.contents()
    with pytest.raises(KeyboardInterrupt):
        rebuild(built.path, [folder.source()], progress=stop)
    assert built.contents() == before
    assert left_behind(built) == set()


def test_the_last_touch_is_put_on_the_new_index_before_it_is_seen(folder, built):
    seen = []

    def finish(connection, result):
        connection.execute("insert into meta (key, value) values ('touch', 'last')")
        seen.append(built.query("select count(*) from meta where key = 'touch'"))
        result.notes.append("noted")

    assert rebuild(built.path, [folder.source()], finish=finish).notes == ["noted"]
    assert seen == [[(0,)]]
    assert built.query("select value from meta where key = 'touch'") == [("last",)]


def test_clear_away_takes_what_a_killed_rebuild_left(built):
    for suffix in ("", "-wal", "-shm"):
        built.path.with_name(f"memory.db.rebuild{suffix}").write_bytes(b"left")
    clear_away(built.path)
    assert left_behind(built) == set()
    clear_away(built.path)


def test_a_rebuild_empties_the_log(folder, built):
    with contextlib.closing(connect_write(built.path)) as other:
        other.execute("select 1 from cards").fetchone()
        rebuild(built.path, [folder.source()])
        assert built.path.with_name("memory.db-wal").stat().st_size == 0
