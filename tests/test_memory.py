"""Memory: reading what is there, and following the vault and the sources."""

import contextlib
import json
import os
import shutil
import unicodedata
from pathlib import Path

import pytest

from datasette_memory.errors import Ambiguous, MemoryFault, NotFound
from datasette_memory.index.connection import sqlite3
from datasette_memory.memory import Memory

posix = pytest.mark.skipif(os.name == "nt", reason="needs links")

NFC = unicodedata.normalize("NFC", "Café notes.md")
NFD = unicodedata.normalize("NFD", "Café notes.md")

CARDS = {
    "12-Facts/端口.md": "---\nid: F_0001\ntitle: 端口约定\ntags: [运维]\nproject: tern\n"
    "updated: 2026-03-01T08:00:00+08:00\n---\n网关监听 8765 端口。见 [[D_0001]] 与 [[没有]]。",
    "09-Decisions/new.md": "---\nid: D_0002\ntitle: Port rule\nsupersedes: D_0001\n"
    "updated: 2026-03-01T00:30:00Z\nproject: tern\n---\nPorts are handed out from 8765 on.",
    "09-Decisions/old.md": "---\nid: D_0001\ntitle: Old rule\nupdated: 2026-01-01\n---\nAny 8765.",
    NFC: "---\ntitle: Café\nupdated: 2026-01-02\n---\nwillow",
    "17-Notes/long.md": "---\ntitle: Long\nupdated: 2026-01-02\n---\n"
    + "一二三四五六七八九十" * 100,
    "21-Policies/keys.md": "---\nid: PO_0001\ntitle: 口令本\nsensitivity: secret\n---\n开门口令在信封里。",
    "99-Misc/7.md": "---\ntitle: F_0001\nupdated: 2026-01-02\n---\nnamed like a ref",
}


def write(root: Path, cards: dict[str, str]) -> Path:
    for path, text in cards.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
        os.utime(file, (1_767_225_600, 1_767_225_600))  # 2026-01-01T00:00:00Z
    return root


@pytest.fixture
def place(tmp_path):
    return tmp_path.resolve()


@pytest.fixture
def home(place):
    write(place / "home" / "vault", CARDS)
    return place / "home"


@pytest.fixture
def memory(home):
    memory = Memory(str(home))
    memory.index()
    return memory


def query(memory, sql: str, *parameters) -> list[tuple]:
    with contextlib.closing(sqlite3.connect(memory.db)) as connection:
        return connection.execute(sql, parameters).fetchall()


def config(home) -> dict:
    path = home / "config.json"
    return json.loads(path.read_text("utf-8")) if path.exists() else {}


# Reading


def test_nothing_is_made_before_it_is_needed(place):
    memory = Memory(str(place / "new"))
    for call in (
        lambda: memory.search("x"),
        lambda: memory.show("x"),
        memory.stats,
        memory.count,
        memory.index,
        lambda: memory.index(rebuild=True),
        lambda: memory.import_paths([str(place / "none")]),
    ):
        with pytest.raises(MemoryFault) as caught:
            call()
        assert caught.value.hint and "\n" not in caught.value.error
    assert list(place.iterdir()) == []


def test_search(memory):
    result = memory.search("8765")
    assert {hit.ref for hit in result.hits} == {"F_0001", "D_0002"}
    assert result.notice == "1 superseded card is left out."
    assert {hit.ref for hit in memory.search("8765", superseded=True).hits} == {
        "F_0001", "D_0002", "D_0001",
    }  # fmt: skip
    assert [hit.ref for hit in memory.search("8765", kind="fact").hits] == ["F_0001"]
    assert len(memory.search("8765", project="TERN", limit=1).hits) == 1
    assert memory.search("8765", source="other").hits == ()
    assert [hit.ref for hit in memory.search("8765", tags=["运维"]).hits] == ["F_0001"]
    assert [hit.ref for hit in memory.search("8765", since="2026-03-01T00:15Z").hits] == ["D_0002"]
    with pytest.raises(MemoryFault, match="is no date"):
        memory.search("8765", since="lately")


@pytest.mark.parametrize(
    "reference, title",
    [
        ("D_0002", "Port rule"),
        ("d_0002", "Port rule"),
        ("09-Decisions/new.md", "Port rule"),
        ("./09-Decisions/new.md", "Port rule"),
        ("09-Decisions\\new.md", "Port rule"),
        ("vault/09-Decisions/new.md", "Port rule"),
        ("vault/12-Facts/端口.md", "端口约定"),
        ("Port rule", "Port rule"),
        ("PORT RULE", "Port rule"),
        ("端口约定", "端口约定"),
        (NFC, "Café"),
        (NFD, "Café"),
        # A ref before a title.
        ("F_0001", "端口约定"),
    ],
)
def test_show_by_ref_path_and_title(reference, title, memory):
    assert memory.show(reference).card["title"] == title


def test_what_is_known_of_cards_in_a_list_without_a_read(memory, home):
    ids = [memory.show(ref).card["id"] for ref in ("D_0002", "F_0001")]
    reads = (home / "ledger").glob("*.jsonl")
    before = [path.read_bytes() for path in sorted(reads)]
    found = memory.cards([ids[0], 999_999, ids[1]])
    assert [card["ref"] for card in found] == ["D_0002", "F_0001"]
    assert found[1]["tags"] == ["运维"] and "body" not in found[1]
    assert [path.read_bytes() for path in sorted((home / "ledger").glob("*.jsonl"))] == before


def test_show_by_row_id(memory):
    ((id, title),) = query(memory, "select id, title from cards where ref = 'D_0001'")
    assert memory.show(str(id)).card["title"] == title == "Old rule"


def test_show_by_a_path_of_the_file_system(memory, home, monkeypatch):
    file = home / "vault" / "09-Decisions" / "new.md"
    assert memory.show(str(file)).card["ref"] == "D_0002"
    monkeypatch.chdir(home / "vault" / "09-Decisions")
    for reference in ("new.md", "./new.md", "../09-Decisions/new.md", "x/../new.md"):
        assert memory.show(reference).card["ref"] == "D_0002"
    assert memory.show(str(home / "vault" / NFD)).card["title"] == "Café"
    with pytest.raises(NotFound):
        memory.show(str(home / "vault" / "09-Decisions"))
    with pytest.raises(NotFound):
        memory.show(str(home / "elsewhere" / "new.md"))


@posix
def test_show_by_a_path_through_a_link(memory, home, place):
    (place / "link").symlink_to(home)
    file = place / "link" / "vault" / "09-Decisions" / "new.md"
    assert memory.show(str(file)).card["ref"] == "D_0002"


def test_a_source_that_is_a_single_file_is_shown_by_its_path(memory, place):
    file = write(place, {"README.md": "# Read me"}) / "README.md"
    memory.import_paths([str(file)])
    for reference in (str(file), "README.md", "README/README.md"):
        assert memory.show(reference).card["title"] == "Read me"


@pytest.mark.parametrize(
    "reference",
    ["", "D_9999", "999", "0", "-1", "9" * 30, "none.md", "/", ".", "..", "%", "port", "\ud800", "a\0b",
     "x" * 10_000, "'; drop table cards; --", "~", "C:\\x.md", "²"],
)  # fmt: skip
def test_what_is_not_there(reference, memory):
    with pytest.raises(NotFound) as caught:
        memory.show(reference)
    assert caught.value.error.startswith("no card answers to") and caught.value.hint


def test_what_is_there_twice_is_told(memory, place):
    write(place / "notes", {"x.md": "---\nid: D_0002\ntitle: Port rule\n---\n", "y.md": "# Café"})
    memory.import_paths([str(place / "notes")])
    with pytest.raises(Ambiguous) as caught:
        memory.show("D_0002")
    assert caught.value.error == "2 cards answer to 'D_0002'"
    assert caught.value.candidates == [
        "D_0002  notes/x.md  Port rule", "D_0002  vault/09-Decisions/new.md  Port rule",
    ]  # fmt: skip
    with pytest.raises(Ambiguous):
        memory.show("Café")
    assert memory.show("notes/x.md").card["source"] == "notes"
    assert memory.show("y.md").card["source"] == "notes"


def test_within_a_source_a_ref_is_that_of_the_card_made_first(memory, home):
    write(
        home / "vault",
        {
            "a.md": "---\nid: N_0007\ntitle: late\ncreated: 2026-02-01T08:00:00+08:00\n---\n",
            "b.md": "---\nid: N_0007\ntitle: early\ncreated: 2026-02-01T00:30:00+01:00\n---\n",
        },
    )
    memory.index()
    assert memory.show("N_0007").card["title"] == "early"
    assert memory.show("a.md").card["title"] == "late"


def test_what_show_gives(memory):
    shown = memory.show("F_0001").to_dict()
    text = "网关监听 8765 端口。见 [[D_0001]] 与 [[没有]]。"
    for key, value in {
        "ref": "F_0001",
        "path": "12-Facts/端口.md",
        "source": "vault",
        "title": "端口约定",
        "kind": "fact",
        "tags": ["运维"],
        "keywords": [],
        "refs": {},
        "project": "tern",
        "sensitivity": "internal",
        "superseded_by": None,
        "expired": False,
        "text": text,
        "offset": 0,
        "length": len(text),
        "returned": len(text),
        "has_more": False,
        "next_offset": None,
        "relations": [
            {"type": "refers_to", "target": "D_0001", "title": "Old rule"},
            {"type": "refers_to", "target": "没有", "title": None},
        ],
    }.items():
        assert shown[key] == value
    assert "body" not in shown
    assert memory.show("D_0001").card["superseded_by"] == "D_0002"
    json.dumps(shown)


def test_windows(memory):
    window = memory.show("Long", max_chars=300).window
    assert (window.offset, window.length, window.returned, window.next_offset) == (
        0,
        1000,
        300,
        300,
    )
    window = memory.show("Long", offset=995).window
    assert (window.text, window.has_more) == ("六七八九十", False)
    assert memory.show("Long", offset=5000).window.text == ""
    for options in ({"full": True}, {"max_chars": 0}, {}):
        assert memory.show("Long", **options).window.returned == 1000
    parts, offset = [], 0
    while offset is not None:
        window = memory.show("Long", offset=offset, max_chars=333).window
        parts.append(window.text)
        offset = window.next_offset
    assert "".join(parts) == "一二三四五六七八九十" * 100


def test_secret_cards_are_shown_and_found_only_on_demand(memory):
    for reference in ("PO_0001", "口令本", "21-Policies/keys.md"):
        with pytest.raises(NotFound):
            memory.show(reference)
        shown = memory.show(reference, secret=True)
        assert (shown.card["title"], shown.window.text) == ("口令本", "开门口令在信封里。")
    assert memory.search("口令").hits == ()
    (hit,) = memory.search("口令", secret=True).hits
    assert (hit.ref, hit.path, hit.matched) == ("PO_0001", "21-Policies/keys.md", "all")
    # Only those, when they are asked for; and an open card is shown all the same.
    assert memory.search("8765", secret=True).hits == ()
    assert memory.show("F_0001", secret=True).card["title"] == "端口约定"
    for file in memory.home.home.rglob("*"):
        if file.is_file() and "vault" not in file.parts:
            assert not [w for w in ("信封", "PO_0001") if w.encode() in file.read_bytes()]


def test_a_secret_card_is_read_anew_each_time(memory, home):
    file = home / "vault" / "21-Policies" / "keys.md"
    file.write_text("---\nid: PO_0001\nsensitivity: secret\n---\n换了。", "utf-8")
    assert memory.show("PO_0001", secret=True).window.text == "换了。"
    file.unlink()
    with pytest.raises(NotFound):
        memory.show("PO_0001", secret=True)


def reads(memory) -> list[tuple]:
    return query(
        memory, "select ref, reads from card_stats join cards on card_id = cards.id order by ref"
    )


def test_reads_are_counted_and_survive_everything(memory, home):
    for _ in range(3):
        memory.show("F_0001")
    memory.show("D_0002", max_chars=1)
    memory.search("8765")
    with pytest.raises(NotFound):
        memory.show("nothing")
    expected = [("D_0002", 1), ("F_0001", 3)]
    assert reads(memory) == expected
    memory.index()
    assert reads(memory) == expected
    memory.index(rebuild=True)
    assert reads(memory) == expected
    (home / "vault" / "12-Facts" / "端口.md").write_text("---\nid: F_0001\n---\nnew", "utf-8")
    memory.index()
    assert reads(memory) == expected
    last = query(memory, "select max(last_read) from card_stats")[0][0]
    assert last[:2] == "20" and last.endswith("Z")


def test_stats(memory, place):
    stats = memory.stats()
    assert stats.to_dict() | {"index_bytes": 0, "synced_last": ""} == {
        "cards": 6,
        "by_kind": {"decision": 2, "note": 2, "fact": 1, "misc": 1},
        "by_source": {"vault": 6},
        "by_project": {"tern": 2},
        "tags": 1,
        "links": 3,
        "broken_links": 1,
        "superseded": 1,
        "faults": 0,
        # Half past midnight in UTC is later than eight in Shanghai.
        "updated_last": "2026-03-01T00:30:00+00:00",
        "synced_last": "",
        "index_bytes": 0,
    }
    assert stats.index_bytes == memory.db.stat().st_size
    assert memory.count() == 6


def test_an_empty_vault_gives_an_empty_index(place):
    (place / "home" / "vault").mkdir(parents=True)
    memory = Memory(str(place / "home"))
    memory.index()
    stats = memory.stats()
    assert (stats.cards, stats.by_kind, stats.updated_last) == (0, {}, None)
    assert memory.search("x").hits == ()


# Sources


def test_import_of_a_folder_and_of_a_file_on_the_index_of_the_home(memory, home, place):
    (home / "config.json").write_text('{"own": {"a": 1}}', "utf-8")
    notes = write(place / "notes", {"a.md": "willow a", "drafts/b.md": "willow b"})
    one = write(place, {"one.md": "willow one"}) / "one.md"
    result = memory.import_paths([str(notes), str(one)], exclude=["drafts/"], max_bytes=1000)
    assert result.added == 2
    options = {"exclude": ["drafts/"], "max_bytes": 1000}
    assert config(home) == {
        "own": {"a": 1},
        "sources": [
            {"name": "notes", "path": str(notes), **options},
            {"name": "one", "path": str(one), **options},
        ],
    }
    assert sorted(hit.source for hit in memory.search("willow").hits) == ["notes", "one", "vault"]
    # From now on `index` follows them, also after the index was lost.
    write(notes, {"c.md": "willow c"})
    assert memory.index().added == 1
    memory.db.unlink()
    assert Memory(str(home)).index().added == 9
    # The same path again is the same source, with the options that it has.
    before = config(home)
    assert memory.import_paths([str(notes)]).unchanged == 2
    assert config(home) == before
    memory.db.unlink()
    assert memory.import_paths([str(notes)]).added == 2
    assert config(home) == before


def test_an_import_into_another_database_records_nothing(memory, home, place):
    notes = write(place / "notes", {"a.md": "willow a"})
    other = Memory(str(home), db=str(place / "other.db"))
    assert other.import_paths([str(notes)], name="mine").added == 1
    assert config(home) == {}
    assert memory.search("willow").hits[0].source == "vault"
    assert [hit.source for hit in other.search("willow").hits] == ["mine"]
    # It knows its sources itself.
    write(notes, {"b.md": "willow b"})
    assert other.import_paths([str(notes)]).added == 1
    assert other.import_paths([str(notes)], rebuild=True).added == 2
    assert {hit.source for hit in other.search("willow").hits} == {"mine"}


def test_an_index_of_another_database_keeps_the_sources_that_it_has(memory, home, place):
    notes = write(place / "notes", {"a.md": "willow a"})
    other = Memory(str(home), db=str(place / "other.db"))
    other.import_paths([str(notes)])
    write(notes, {"b.md": "willow b"})
    result = other.index()
    assert (result.removed, result.notes) == (0, [])
    assert other.stats().by_source == {"vault": 6, "notes": 2}
    other.index(rebuild=True)
    assert other.stats().by_source == {"vault": 6, "notes": 2}


@posix
def test_the_index_of_the_home_is_its_own_under_any_name(memory, home, place, monkeypatch):
    notes = write(place / "notes", {"a.md": "willow a"})
    (place / "link.db").symlink_to(memory.db)
    (home / "sub").mkdir()
    monkeypatch.chdir(home / "sub")
    for db in (str(place / "link.db"), "../memory.db", str(memory.db)):
        (home / "config.json").unlink(missing_ok=True)
        Memory(str(home), db=db).import_paths([str(notes)])
        assert config(home)["sources"] == [{"name": "notes", "path": str(notes)}]
        assert Memory(str(home)).index().removed == 0


def test_a_source_that_is_taken_out_of_the_config_leaves(memory, home, place):
    a, b = (write(place / name, {"x.md": f"willow {name}"}) for name in "ab")
    memory.import_paths([str(a), str(b)])
    sources = config(home)["sources"]
    (home / "config.json").write_text(json.dumps({"sources": sources[1:]}), "utf-8")
    result = memory.index()
    assert result.removed == 1
    assert result.notes == ["a: no longer a source; its 1 cards left the index"]
    assert memory.stats().by_source == {"vault": 6, "b": 1}
    assert query(memory, "select count(*) from files where source = 'a'") == [(0,)]
    # It stays out, also when the index is built anew by an import.
    memory.import_paths([str(b)], rebuild=True)
    assert memory.stats().by_source == {"vault": 6, "b": 1}


def test_what_is_changed_in_the_config_counts(memory, home, place):
    notes = write(place / "notes", {"a.md": "a", "drafts/b.md": "b"})
    memory.import_paths([str(notes)], exclude=["drafts/"])
    entry = {"name": "notes", "path": "../notes"}
    (home / "config.json").write_text(json.dumps({"sources": [entry]}), "utf-8")
    assert memory.import_paths([str(notes)]).added == 1
    assert config(home) == {"sources": [entry]}
    assert memory.index().removed == 0
    entry["name"] = "renamed"
    (home / "config.json").write_text(json.dumps({"sources": [entry]}), "utf-8")
    memory.index()
    assert memory.stats().by_source == {"vault": 6, "renamed": 2}


def test_a_part_of_a_source_is_refused_also_without_an_index(memory, home, place):
    notes = write(place / "notes", {"in/a.md": "a"})
    memory.import_paths([str(notes)])
    for path in (notes / "in", home / "vault" / "12-Facts"):
        with pytest.raises(MemoryFault, match="is part of the source"):
            memory.import_paths([str(path)])
    memory.db.unlink()
    with pytest.raises(MemoryFault, match="is part of the source 'notes'"):
        memory.import_paths([str(notes / "in")])
    assert not memory.db.exists()


@pytest.mark.parametrize(
    "path, options, part",
    [
        ("notes.txt", {}, "neither a folder nor a Markdown file"),
        ("notes", {"exclude": ["[z-a]x"]}, "is not valid"),
        ("none", {}, "there is no folder or file"),
        ("notes", {"name": "vault"}, "is already the name"),
    ],
)
def test_what_could_not_be_imported_is_not_recorded(path, options, part, memory, home, place):
    write(place, {"notes.txt": "x", "notes/a.md": "a"})
    with pytest.raises(MemoryFault, match=part):
        memory.import_paths([str(place / path)], **options)
    assert config(home) == {}
    assert memory.index().removed == 0


def test_a_configured_source_that_never_was_there_holds_nobody_up(memory, home, place):
    notes = write(place / "notes", {"a.md": "willow"})
    sources = [{"name": "gone", "path": "/no/such"}, {"name": "notes", "path": str(notes)}]
    (home / "config.json").write_text(json.dumps({"sources": sources}), "utf-8")
    with pytest.raises(MemoryFault, match="/no/such does not exist"):
        memory.index()
    assert memory.stats().by_source == {"vault": 6, "notes": 1}
    before = memory.db.read_bytes()
    with pytest.raises(MemoryFault, match="/no/such does not exist"):
        memory.index(rebuild=True)
    assert memory.db.read_bytes() == before


def test_a_vault_that_is_gone_keeps_its_cards(memory, home):
    shutil.move(home / "vault", home / "away")
    result = memory.index()
    assert len(result.notes) == 1 and "its 7 files stay indexed" in result.notes[0]
    assert memory.count() == 6


def test_a_broken_config_stops_before_anything_is_changed(memory, home):
    (home / "config.json").write_text("{", "utf-8")
    before = memory.db.read_bytes()
    for call in (lambda: Memory(str(home)), memory.index, lambda: memory.import_paths([str(home)])):
        with pytest.raises(MemoryFault, match="is not valid JSON"):
            call()
    assert memory.db.read_bytes() == before
    assert (home / "config.json").read_text() == "{"


def test_an_index_that_another_source_of_the_same_place_is_in(memory, home, place):
    # Another --vault for the same database: the source named vault follows it.
    other = write(place / "second", {"a.md": "willow"})
    memory_two = Memory(str(home), vault=str(other))
    result = memory_two.index()
    assert (result.added, result.removed) == (1, 6)
    assert memory_two.stats().by_source == {"vault": 1}


# The index itself


def test_rebuild_and_index_say_what_they_did(memory):
    assert memory.index().to_dict() | {"seconds": 0, "vectors": 0} == {
        "added": 0, "updated": 0, "moved": 0, "removed": 0, "unchanged": 6, "secret": 1,
        "vectors": 0, "skipped": [], "faults": [], "notes": [], "seconds": 0,
    }  # fmt: skip
    result = memory.index(rebuild=True)
    assert (result.added, result.unchanged, result.secret) == (6, 0, 1)


def test_a_killed_rebuild_is_cleared_away_by_the_next_command(memory):
    litter = memory.db.with_name("memory.db.rebuild")
    litter.write_bytes(b"half")
    memory.index()
    assert not litter.exists()


def test_a_damaged_index_is_told_and_mended_by_index(memory):
    memory.show("F_0001")
    os.truncate(memory.db, memory.db.stat().st_size // 2)
    damaged = memory.db.read_bytes()
    for call in (
        lambda: memory.search("8765"),
        lambda: memory.show("Port rule"),
        memory.stats,
        memory.count,
        lambda: memory.import_paths([str(memory.home.vault)]),
    ):
        with pytest.raises(MemoryFault) as caught:
            call()
        assert "is damaged" in caught.value.error and "--rebuild" in caught.value.hint
        assert memory.db.read_bytes() == damaged
    result = memory.index()
    assert result.notes == [
        "the index was damaged, and was built anew from the files",
        "the damaged index was kept as memory.db.damaged",
    ]
    assert memory.count() == 6
    assert reads(memory) == [("F_0001", 1)]


@pytest.mark.parametrize("rebuild", [False, True])
@pytest.mark.parametrize("content", [b"A letter to nobody.\n" * 100, b"Sq"])
def test_something_else_in_the_place_of_the_index_is_set_aside(memory, content, rebuild):
    memory.show("F_0001")
    for suffix in ("", "-wal", "-shm"):
        memory.db.with_name(f"memory.db{suffix}").unlink(missing_ok=True)
    memory.db.write_bytes(content)
    with pytest.raises(MemoryFault, match="is not a database") as caught:
        memory.search("8765")
    assert "`memory index`" in caught.value.hint
    result = memory.index(rebuild=rebuild)
    assert result.notes == [
        "memory.db was not a database: it was kept as memory.db.damaged, and the index was built "
        "from the files"
    ]
    assert memory.db.with_name("memory.db.damaged").read_bytes() == content
    assert memory.count() == 6
    assert reads(memory) == [("F_0001", 1)]
    assert memory.index().notes == []
    memory.db.write_bytes(b"again")
    assert "kept as memory.db.damaged-2," in memory.index().notes[0]


def test_what_may_have_been_the_index_once_is_kept_and_built_anew(memory):
    for suffix in ("", "-wal", "-shm"):
        memory.db.with_name(f"memory.db{suffix}").unlink(missing_ok=True)
    content = b"\x7fELF\0\0" * 999
    memory.db.write_bytes(content)
    with pytest.raises(MemoryFault, match="is damaged") as caught:
        memory.search("8765")
    assert "`memory index" in caught.value.hint
    assert memory.index().notes == [
        "the index was damaged, and was built anew from the files",
        "the damaged index was kept as memory.db.damaged",
    ]
    assert memory.db.with_name("memory.db.damaged").read_bytes() == content
    assert memory.count() == 6


def test_an_empty_file_in_the_place_of_the_index_is_told(memory):
    for suffix in ("-wal", "-shm"):
        memory.db.with_name(f"memory.db{suffix}").unlink(missing_ok=True)
    memory.db.write_bytes(b"")
    assert memory.index().notes == ["memory.db was empty, and was built from the files"]
    assert memory.count() == 6


@pytest.mark.parametrize("rebuild", [False, True])
@pytest.mark.parametrize("how", ["option", "variable", "link"])
def test_a_text_outside_of_the_home_is_never_moved(memory, place, monkeypatch, how, rebuild):
    text = place / "notes.txt"
    text.write_text("Named by mistake.\n")
    home = str(memory.home.home)
    other = Memory(home, db=str(text))
    if how == "variable":
        monkeypatch.setenv("MEMORY_AGENT_DB", str(text))
        other = Memory(home)
    elif how == "link":
        for suffix in ("", "-wal", "-shm"):
            memory.db.with_name(f"memory.db{suffix}").unlink(missing_ok=True)
        memory.db.symlink_to(text)
        other = memory
    with pytest.raises(MemoryFault, match="is not a database, and lies outside of the home"):
        other.index(rebuild=rebuild)
    assert text.read_text() == "Named by mistake.\n"
    assert not list(place.glob("notes.txt.*"))


def test_without_cards_nothing_is_moved(place):
    (place / "empty").mkdir()
    (place / "empty" / "memory.db").write_text("# Mine")
    with pytest.raises(MemoryFault, match="is not a database"):
        Memory(str(place / "empty")).index()
    assert (place / "empty" / "memory.db").read_text() == "# Mine"


def bad_places(place) -> dict[str, Path]:
    (place / "folder.db").mkdir()
    (place / "text.db").write_text("# no database", "utf-8")
    with contextlib.closing(sqlite3.connect(place / "strange.db")) as connection:
        connection.execute("create table mine (a)")
        connection.execute("insert into mine values (7)")
        connection.commit()
    return {name: place / f"{name}.db" for name in ("folder", "text", "strange", "none")}


@pytest.mark.parametrize("where", ["folder", "text", "strange", "none"])
def test_every_method_in_a_bad_place_is_one_line(where, home, place):
    path = bad_places(place)[where]
    memory = Memory(str(home), db=str(path))
    before = path.read_bytes() if path.is_file() else None
    calls = [lambda: memory.search("x"), lambda: memory.show("x"), memory.stats, memory.count]
    if where in ("folder", "text"):
        calls += [memory.index, lambda: memory.import_paths([str(place / "home" / "vault")])]
    if where != "none":
        calls.append(lambda: memory.index(rebuild=True))
    for call in calls:
        with pytest.raises(MemoryFault) as caught:
            call()
        assert str(path) in caught.value.error and "\n" not in caught.value.error
        assert caught.value.hint
        assert (path.read_bytes() if path.is_file() else None) == before


def test_an_index_may_be_added_to_a_database_of_somebody_else(home, place):
    path = bad_places(place)["strange"]
    memory = Memory(str(home), db=str(path))
    memory.index()
    assert memory.count() == 6
    assert query(memory, "select a from mine") == [(7,)]
    with pytest.raises(MemoryFault, match="also holds tables that a rebuild would drop: mine"):
        memory.index(rebuild=True)
    assert query(memory, "select a from mine") == [(7,)]
    assert memory.count() == 6


def test_a_database_that_needs_the_names_itself_is_left_alone(home, place):
    path = place / "other.db"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("create table tags (mine)")
        connection.commit()
    memory = Memory(str(home), db=str(path))
    with pytest.raises(MemoryFault, match="holds something else under a name"):
        memory.index()
    assert query(memory, "select name from sqlite_master") == [("tags",)]


@pytest.mark.parametrize("mend", ["index", "repair"])
def test_an_index_that_was_overwritten_is_kept_and_built_anew(memory, mend):
    spoilt = b"garbage\0" * 1000
    for suffix in ("-wal", "-shm"):
        memory.db.with_name(f"memory.db{suffix}").unlink(missing_ok=True)
    memory.db.write_bytes(spoilt)
    done = getattr(memory, mend)()
    said = done.notes if mend == "index" else done.steps
    assert "the damaged index was kept as memory.db.damaged" in said
    assert memory.db.with_name("memory.db.damaged").read_bytes() == spoilt
    assert memory.verify(deep=True).ok


def test_a_locked_index_can_be_read_and_not_written(memory, monkeypatch):
    monkeypatch.setattr("datasette_memory.index.connection.WRITE_TIMEOUT", 0.1)
    with contextlib.closing(sqlite3.connect(memory.db, isolation_level=None)) as other:
        other.execute("begin exclusive")
        assert len(memory.search("8765").hits) == 2
        assert memory.show("F_0001").card["title"] == "端口约定"
        for call in (memory.index, lambda: memory.index(rebuild=True)):
            with pytest.raises(MemoryFault, match="is locked by another program"):
                call()
        other.execute("rollback")
    memory.index()
    # The read was written down all the same, and is counted now.
    assert reads(memory) == [("F_0001", 1)]


def test_a_search_sees_one_state_of_the_index(memory, home, monkeypatch):
    """A card that is taken out in the middle of a search is still there for this search."""
    from datasette_memory.search.sqlite import SQLiteSearcher

    hit = SQLiteSearcher._hit

    def meanwhile(self, ranked, terms):
        if (home / "vault" / "12-Facts").exists():
            shutil.rmtree(home / "vault" / "12-Facts")
            shutil.rmtree(home / "vault" / "09-Decisions")
            assert memory.index().removed == 3
        return hit(self, ranked, terms)

    monkeypatch.setattr(SQLiteSearcher, "_hit", meanwhile)
    assert {found.ref for found in memory.search("8765").hits} == {"F_0001", "D_0002"}
    assert memory.search("8765").hits == ()


def test_a_capture_beside_a_rebuild_is_not_lost(tmp_path, monkeypatch):
    """What was answered `indexed` while the new index was being made is in the new one too."""
    from datasette_memory.index import rebuild as rebuilding
    from datasette_memory.memory import Memory

    memory = Memory(str(tmp_path / "home"))
    memory.capture("before", "a card that was there before the rebuild began")
    sync, done = rebuilding.sync, []

    def sync_and_be_overtaken(*arguments, **options):
        result = sync(*arguments, **options)
        if not done:
            done.append(Memory(str(tmp_path / "home")).capture("meanwhile", "okapi words " * 3))
        return result

    monkeypatch.setattr(rebuilding, "sync", sync_and_be_overtaken)
    memory.index(rebuild=True)
    assert done[0].indexed
    assert [hit.ref for hit in memory.search("okapi").hits] == [done[0].ref]
    assert memory.capture("meanwhile", "okapi words " * 3).status == "unchanged"


def test_a_damaged_index_is_built_anew_by_index(tmp_path):
    from datasette_memory.memory import Memory

    memory = Memory(str(tmp_path / "home"))
    memory.capture("kept", "the words of an okapi that must not be lost")
    memory.__dict__.pop("_kept_open", None)
    with memory.db.open("r+b") as file:
        file.truncate(5000)
    for suffix in ("-wal", "-shm"):
        memory.db.with_name(memory.db.name + suffix).unlink(missing_ok=True)
    result = Memory(str(tmp_path / "home")).index()
    assert "built anew" in result.notes[0]
    assert [hit.title for hit in Memory(str(tmp_path / "home")).search("okapi").hits] == ["kept"]


def test_a_credential_that_was_searched_for_is_not_kept(tmp_path):
    from datasette_memory.memory import Memory

    memory = Memory(str(tmp_path / "home"))
    memory.capture("a card", "a card with nothing of the kind in it")
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    assert not memory.search(token).hits
    told = "".join(path.read_text() for path in (tmp_path / "home" / "ledger").glob("*.jsonl"))
    assert '"kind":"gap"' in told and token not in told


def test_an_update_keeps_when_a_note_without_frontmatter_was_written(tmp_path):
    import os

    from datasette_memory.memory import Memory

    note = tmp_path / "home" / "vault" / "old.md"
    note.parent.mkdir(parents=True)
    note.write_text("# Old note\n\nThis was written years ago and is kept.\n")
    os.utime(note, (1588636800, 1588636800))  # 2020-05-05T00:00:00Z, as `date -u -d` says
    memory = Memory(str(tmp_path / "home"))
    memory.index()
    memory.update("old.md", tags=["q"])
    assert memory.show("old.md").card["created"] == "2020-05-05T00:00:00+00:00"
