import contextlib
import hashlib
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import textwrap

import pytest

from datasette_memory.errors import MemoryFault
from datasette_memory.evidence import store
from datasette_memory.evidence.store import EvidenceStore
from datasette_memory.govern import verify as verify_module
from datasette_memory.govern.repair import repair
from datasette_memory.govern.verify import Difference, Verification
from datasette_memory.index import audit
from datasette_memory.index.connection import (
    Damaged,
    NoIndex,
    connect_read,
    connect_write,
)
from datasette_memory.index.functions import register
from datasette_memory.index.schema import is_in_step
from datasette_memory.ledger.writer import Ledger
from datasette_memory.vault.sources import Source

posix = pytest.mark.skipif(os.name == "nt", reason="needs POSIX files")

PORT = "vault/12-Facts/端口约定.md"
REDIS = "vault/09-Decisions/缓存用-Redis.md"
ID = "(select id from cards where path = '12-Facts/端口约定.md')"


def mend(place, **options):
    return repair(place.db, place.sources, place.ledger, **options)


# What is whole


@pytest.mark.parametrize("deep", [False, True])
def test_an_index_in_step_has_no_difference(place, deep):
    found = place.verify(deep=deep)
    assert found.ok
    assert found.lines() == ["the index is what the files say (6 cards compared)"]
    assert found.to_dict() | {"seconds": 0} == {
        "ok": True,
        "cards": 6,
        "differences": [],
        "more": 0,
        "damage": [],
        "evidence": [],
        "left_out": [],
        "behind": 0,
        "notes": [],
        "deep": deep,
        "seconds": 0,
    }


def test_nothing_is_written_and_nothing_is_left_behind(place, state, tmp_path, monkeypatch):
    place.calm()
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    folders = place.vault, place.notes, place.ledger, place.home.home / "evidence"
    before = state(*folders), place.db.read_bytes(), os.stat(place.db).st_mtime_ns
    assert place.verify(deep=True).ok
    assert (state(*folders), place.db.read_bytes(), os.stat(place.db).st_mtime_ns) == before
    assert os.listdir(scratch) == []


@posix
def test_a_read_only_index_is_compared_like_any_other(place, public_place, as_nobody):
    place.calm()
    shutil.copytree(place.root, public_place / "p")
    place.root = public_place / "p"
    place.sources = [
        Source("vault", str(place.vault)),
        Source("notes", str(place.notes)),
    ]
    place.index()
    place.calm()
    for folder, _, names in os.walk(public_place):
        os.chmod(folder, 0o555)
        for name in names:
            os.chmod(os.path.join(folder, name), 0o444)
    found = as_nobody(lambda: place.verify(deep=True).to_dict())
    assert found["ok"], found
    assert found["cards"] == 6
    os.chmod(place.db.parent, 0o755)
    os.chmod(place.db, 0o644)
    spoil_words(place)
    place.calm()
    os.chmod(place.db, 0o444)
    os.chmod(place.db.parent, 0o555)
    found = as_nobody(lambda: place.verify().to_dict())
    assert [one["table"] for one in found["differences"]] == ["cards_fts"]


def test_the_connection_is_given_back_as_it_was(place):
    from datasette_memory.govern.verify import verify

    with contextlib.closing(connect_read(place.db)) as connection:
        verify(connection, place.db, place.sources, place.ledger)
        assert not connection.in_transaction
        assert connection.execute("select title from cards where ref = 'F_0001'").fetchone() == (
            "端口约定",
        )


def test_a_secret_card_leaves_no_trace_in_what_is_told(place):
    place.sql("delete from files where path like 'sha256:%'")
    found = place.verify(deep=True)
    assert not found.ok
    assert "key" not in str(found.to_dict()) and "保险柜" not in str(found.to_dict())
    assert mend(place).ok


# What is not


def spoil_words(place):
    """Take the tokens of a card out of the full text, and leave the card."""
    names = ", ".join(f"{name}_tokens" for name in ("title", "keywords", "summary", "body"))
    place.sql(
        f"insert into cards_fts (cards_fts, rowid, {names}) select 'delete', rowid, {names} "
        f"from cards_fts_source where rowid = {ID}"
    )


DAMAGE = {
    "a title": ["update cards set title = 'x' where ref = 'F_0001'"],
    "several columns": ["update cards set kind = 'note', ttl = 3 where ref = 'F_0001'"],
    "a body without its trigger": [
        "drop trigger cards_fts_update",
        "update cards set body = 'x' where ref = 'F_0001'",
    ],
    "supersession": ["update cards set superseded_by = null"],
    "a card is missing": ["delete from cards where ref = 'F_0001'"],
    "a card too many": [
        "insert into cards (ref, title, source, path) values ('Z_1', 'z', 'vault', 'z.md')"
    ],
    "a tag is missing": ["delete from tags where tag = '运维'"],
    "a tag too many": [f"insert into tags values ({ID}, 'more')"],
    "a link is missing": ["delete from links where type = 'caused_by'"],
    "a link of the ledger is missing": ["delete from links where origin = 'ledger'"],
    "a link leads elsewhere": [f"update links set target_id = {ID} where type = 'supersedes'"],
    "a name is missing": [f"delete from names where card_id = {ID}"],
    "a read too many": ["update card_stats set reads = reads + 1"],
    "no reads": ["delete from card_stats"],
    "an event is missing": ["delete from events where kind = 'gap'"],
    "an event too many": [
        "insert into events (id, t, kind, data, host, line) values ('z', 't', 'read', '{}', 'h', 1)"
    ],
    "a hash": ["update files set sha256 = 'x' where path like '%端口%'"],
    "a fault": ["update files set fault = 'x' where path like '%端口%'"],
    "a file without its card": ["update files set card_id = null where path like '%端口%'"],
    "a file too many": [
        "insert into files (source, path, mtime_ns, size) values ('vault', 'z', 1, 1)"
    ],
    "a file is missing": ["delete from files where path like '%端口%'"],
    "a trigger is missing": ["drop trigger cards_fts_insert"],
    "a trigger does nothing": [
        "drop trigger cards_fts_insert",
        "create trigger cards_fts_insert after insert on cards begin select 1; end",
    ],
    "an index is missing": ["drop index idx_cards_kind"],
    "a view is another": [
        "drop view broken_links",
        "create view broken_links as select 1",
    ],
    "a table is missing": ["drop table names"],
    "a column is missing": ["alter table cards drop column agent"],
    "the tokens are old": ["update meta set value = '0' where key = 'tokenizer_version'"],
    "the schema is old": ["update meta set value = '0' where key = 'schema_version'"],
    "orphans": ["insert into tags values (999, 'orphan')"],
    "a root": ["update sources set root = '/elsewhere' where name = 'notes'"],
    "a source too many": [
        "insert into sources (name, root, exclude, max_bytes) values ('old', '/old', '[]', 1)",
        "insert into cards (ref, title, source, path) values ('O_1', 'o', 'old', 'o.md')",
        "insert into files (source, path, mtime_ns, size, card_id) values ('old', 'o.md', 1, 1, "
        "(select id from cards where ref = 'O_1'))",
    ],
}  # fmt: skip

TOLD = {
    "a title": [("cards", PORT, "differs: title")],
    "several columns": [("cards", PORT, "differs: kind, ttl")],
    "a body without its trigger": [
        ("schema", "/trigger cards_fts_update", "missing in index"),
        ("cards", PORT, "differs: body"),
        ("cards_fts", "/", "differs: the tokens of the cards"),
    ],
    "supersession": [("cards", "vault/09-Decisions/缓存放内存.md", "differs: superseded_by")],
    "a card is missing": [
        ("cards", PORT, "missing in index"),
        ("files", PORT, "differs: card"),
        ("links", "notes/sub/second.md",
         "differs: missing in index 'implements F_0001 ledger vault 12-Facts/端口约定.md'; "
         "not in files 'implements F_0001 ledger'"),
        ("links", REDIS,
         "differs: missing in index 'refers_to 端口约定 body vault 12-Facts/端口约定.md'; "
         "not in files 'refers_to 端口约定 body'"),
    ],
    "a card too many": [("cards", "vault/z.md", "not in files")],
    "a tag is missing": [("tags", PORT, "differs: missing in index '运维'")],
    "a tag too many": [("tags", PORT, "differs: not in files 'more'")],
    "a link is missing": [
        ("links", REDIS,
         "differs: missing in index 'caused_by 容量报告 frontmatter notes 容量报告.md'"),
    ],
    "a link of the ledger is missing": [
        ("links", "notes/sub/second.md",
         "differs: missing in index 'implements F_0001 ledger vault 12-Facts/端口约定.md'"),
    ],
    "a link leads elsewhere": [
        ("links", REDIS,
         "differs: missing in index 'supersedes D_0002 frontmatter vault "
         "09-Decisions/缓存放内存.md'; not in files 'supersedes D_0002 frontmatter vault "
         "12-Facts/端口约定.md'"),
    ],
    # Its ref, its path, the path and the name without the suffix, the name; the title is the stem.
    "a name is missing": [
        ("names", PORT, "differs: missing in index 5 of the names that it answers to")
    ],
    "a read too many": [("card_stats", PORT, "differs: reads")],
    "no reads": [("card_stats", PORT, "missing in index")],
    "a hash": [("files", PORT, "differs: sha256")],
    "a fault": [("files", PORT, "differs: fault")],
    "a file without its card": [("files", PORT, "differs: card")],
    "a file too many": [("files", "vault/z", "not in files")],
    "a file is missing": [("files", PORT, "missing in index")],
    "a trigger is missing": [("schema", "/trigger cards_fts_insert", "missing in index")],
    "a trigger does nothing": [("schema", "/trigger cards_fts_insert", "differs: sql")],
    "an index is missing": [("schema", "/index idx_cards_kind", "missing in index")],
    "a view is another": [("schema", "/view broken_links", "differs: sql")],
    "a column is missing": [("schema", "/table cards", "lacks agent")],
    "the tokens are old": [("meta", "/tokenizer_version", "differs: 0 instead of 1")],
    "orphans": [("tags", "/", "1 rows belong to no row of another table")],
    "a root": [("sources", "notes/", "differs: root")],
    "a source too many": [("sources", "old/", "not in files: it is no source any more")],
}  # fmt: skip

#: What the least repair cannot bring back.
BUILT_ANEW = {
    "an index is missing",
    "a view is another",
    "a table is missing",
    "a column is missing",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_every_difference_is_told_and_mended(place, told, damage):
    place.sql(*DAMAGE[damage])
    found = place.verify()
    assert not found.ok
    assert not found.damage
    if damage in TOLD:
        expected = TOLD[damage]
        if damage == "the tokens are old":
            expected = [(*expected[0][:2], found.differences[0].what)]
        assert sorted(told(found)) == sorted(expected)
    repaired = mend(place)
    assert repaired.ok, repaired.after.lines()
    assert told(repaired.before) == told(found)
    assert place.verify(deep=True).ok
    built = any("built anew" in step for step in repaired.steps)
    assert built == (damage in BUILT_ANEW), repaired.steps


def test_words_that_are_not_those_of_the_cards_are_found(place, told):
    spoil_words(place)
    assert told(place.verify()) == [("cards_fts", "/", "differs: the tokens of the cards")]
    repaired = mend(place)
    assert repaired.ok
    assert repaired.steps == ["the full text was built again"]


def test_the_least_is_done(place):
    # Only the card that differs is parsed and written.
    ids = dict(place.sql("select path, id from cards"))
    place.sql("update cards set title = 'x' where ref = 'F_0001'")
    repaired = mend(place)
    assert repaired.steps == ["read again: 1 file"]
    assert dict(place.sql("select path, id from cards")) == ids
    assert mend(place).steps == []


def test_what_changed_on_disk_since_is_told_too(place, told):
    (place.vault / "new.md").write_text("# New\n\nA card nobody indexed.\n")
    (place.vault / "17-Notes/bare.md").unlink()
    port = place.vault / "12-Facts/端口约定.md"
    port.write_text(port.read_text("utf-8").replace("8765", "9000"), encoding="utf-8")
    os.utime(port, ns=(port.stat().st_atime_ns, port.stat().st_mtime_ns + 5_000_000_000))
    found = told(place.verify())
    assert ("cards", "vault/new.md", "missing in index") in found
    assert ("cards", "vault/17-Notes/bare.md", "not in files") in found
    # It states no date of its own, so that it has those of its file.
    assert ("cards", PORT, "differs: updated, created, summary, body") in found
    assert mend(place).ok


def test_a_card_that_became_secret_is_not_in_the_files(place, told):
    path = place.vault / "17-Notes/bare.md"
    path.write_text("---\nsensitivity: secret\n---\n# A bare note\n")
    found = told(place.verify())
    assert ("cards", "vault/17-Notes/bare.md", "not in files") in found
    assert mend(place).ok
    assert place.sql("select count(*) from cards where path = '17-Notes/bare.md'") == [(0,)]


def test_many_differences_are_counted_and_not_all_kept(place):
    place.sql(
        "insert into cards (ref, title, source, path) with recursive n (i) as "
        "(select 1 union all select i + 1 from n where i < 2500) "
        "select 'Z_' || i, 'z', 'vault', 'z/' || i || '.md' from n"
    )
    found = place.verify()
    assert len(found.differences) == 1000
    assert found.more == 1500
    lines = found.lines(limit=5)
    assert lines[0] == "the index is not what the files say: 2500 differences"
    assert len(lines) == 7
    assert lines[-1] == "and 2495 more"
    assert mend(place).ok


# What cannot be read now


def test_a_source_that_is_missing_is_left_out_and_named(place, told):
    place.notes.rename(place.root / "elsewhere")
    found = place.verify(deep=True)
    assert found.ok, told(found)
    assert found.cards == 4
    assert [(one.source, one.path) for one in found.left_out] == [("notes", "")]
    assert "does not exist" in found.left_out[0].reason
    assert found.lines()[1].startswith("left out: notes: ")
    place.sql("update cards set title = 'x' where ref = 'F_0001'")
    repaired = mend(place)
    assert repaired.ok
    assert place.sql("select count(*) from cards where source = 'notes'") == [(2,)]


@pytest.mark.parametrize("gone", [True, False])
def test_a_vault_that_is_missing_or_empty_is_not_well(place, told, gone):
    place.vault.rename(place.root / "elsewhere")
    if not gone:
        place.vault.mkdir()
    found = place.verify()
    assert not found.ok and told(found) == []
    lines = found.lines()
    assert lines[0] == "the index is not what the files say: no card of the vault is there"
    assert lines[1].startswith("left out: vault: ") and str(place.vault) in lines[1]
    # Nothing can be mended, and the cards stay in the index until the vault is back.
    repaired = mend(place)
    assert repaired.steps == [] and not repaired.ok
    assert place.sql("select count(*) from cards where source = 'vault'") == [(4,)]
    # Not even when it is time to build it anew.
    place.sql("drop index idx_cards_kind")
    assert mend(place).steps[-1] == (
        "it was not built anew: the index alone still holds the cards of vault"
    )
    assert place.sql("select count(*) from cards where source = 'vault'") == [(4,)]
    if not gone:
        place.vault.rmdir()
    (place.root / "elsewhere").rename(place.vault)
    assert mend(place).ok
    assert place.verify().ok


def test_a_source_that_is_suddenly_empty_keeps_its_cards(place, told):
    shutil.rmtree(place.notes)
    place.notes.mkdir()
    found = place.verify()
    assert found.ok, told(found)
    assert [one.source for one in found.left_out] == ["notes"]
    assert "no file is left" in found.left_out[0].reason


@posix
def test_files_that_cannot_be_read_are_left_out_and_named(place, public_place, as_nobody):
    shutil.copytree(place.root, public_place / "p")
    place.root = public_place / "p"
    place.sources = [Source("vault", str(place.vault)), Source("notes", str(place.notes))]
    place.index()
    place.calm()
    os.chmod(place.root, 0o755)
    os.chmod(place.vault / "12-Facts/端口约定.md", 0)
    os.chmod(place.vault / "09-Decisions", 0)
    os.chmod(place.vault / "18-References", 0)
    found = as_nobody(lambda: place.verify(deep=True).to_dict())
    assert found["ok"], found["differences"]
    assert sorted(one["path"] for one in found["left_out"]) == [
        "09-Decisions",
        "12-Facts/端口约定.md",
        "18-References",
    ]
    assert found["cards"] == 3


# The ledger


def test_events_that_the_index_has_not_seen_yet_are_no_difference(place):
    ledger = Ledger(place.ledger)
    for _ in range(2):
        ledger.append("read", ref="D_0001", source="vault", path="09-Decisions/缓存用-Redis.md")
    found = place.verify()
    assert found.ok
    assert found.behind == 2
    assert found.lines()[1] == "2 events wait in the ledger for the next `memory index`"
    # Reads may be counted at once, before their events are taken in.
    place.sql(
        "insert into card_stats (card_id, reads, last_read) select id, 2, "
        f"'{ledger.append('read', ref='D_0001', source='vault', path='x').t}' "
        "from cards where ref = 'D_0001'"
    )
    assert not place.verify().ok  # Not with the time of another event.
    place.sql("delete from card_stats where reads = 2")
    place.index()
    assert place.verify().behind == 0


def test_counts_may_be_ahead_of_the_events(place):
    event = Ledger(place.ledger).append(
        "read", ref="F_0001", source="vault", path="12-Facts/端口约定.md"
    )
    place.sql(f"update card_stats set reads = 4, last_read = '{event.t}'")
    assert place.verify().ok


def test_a_torn_line_is_noted(place):
    file = next(place.ledger.glob("*.jsonl"))
    with open(file, "ab") as ledger:
        ledger.write(b"foreign\n")
    place.index()
    found = place.verify()
    assert found.ok
    assert found.notes == [f"{file.name}:6: not JSON: Expecting value"]


def test_a_ledger_that_lost_events_is_told(place, told):
    file = next(place.ledger.glob("*.jsonl"))
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:2]))
    found = place.verify()
    assert [table for table, *_ in told(found) if table == "events"] == ["events"] * 3
    assert mend(place).ok
    assert place.sql("select reads from card_stats") == [(2,)]


def test_events_that_are_not_in_the_ledger_are_named_by_their_id(place, told):
    place.sql(*DAMAGE["an event too many"])
    assert told(place.verify()) == [("events", "ledger/z", "not in files")]


# Others at work


def test_writing_goes_on_meanwhile(place, monkeypatch):
    monkeypatch.setattr(verify_module, "_PAUSES", (0.3, 0.7))
    writer = textwrap.dedent(
        """
        import sys
        from datasette_memory.memory import Memory
        memory = Memory(sys.argv[1])
        number = 0
        print("ready", flush=True)
        while True:
            number += 1
            title = f"card number {number}"
            body = f"the body of card number {number}, long enough to be kept"
            change = memory.capture(title, body)
            memory.update(change.ref, body=body + " and changed")
        """
    )
    process = subprocess.Popen(
        [sys.executable, "-c", writer, str(place.home.home)], stdout=subprocess.PIPE
    )
    try:
        assert process.stdout.readline() == b"ready\n"
        cards = []
        for _ in range(15):
            found = place.verify()
            assert found.ok, found.lines()
            cards.append(found.cards)
        assert process.poll() is None
        assert cards[-1] > cards[0]
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    place.index()
    assert place.verify(deep=True).ok


# A damaged database


def flipped(data: bytes, at: int, bit: int = 0) -> bytes:
    return data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]


def test_a_flipped_bit_in_a_body_is_found(place, told):
    # SQLite's own checks have nothing to compare it with.
    place.calm()
    data = place.db.read_bytes()
    place.db.write_bytes(flipped(data, data.index("网关监听".encode()) + 16))
    assert place.sql("pragma integrity_check") == [("ok",)]
    found = told(place.verify())
    assert [one[:2] for one in found][0] == ("cards", PORT)
    assert mend(place).ok


def test_a_flipped_bit_in_an_index_is_found_and_mended(place):
    place.calm()
    page = place.sql("select rootpage from sqlite_master where name = 'idx_cards_kind'")[0][0]
    size = place.sql("pragma page_size")[0][0]
    data = place.db.read_bytes()
    at = data.index(b"decision", (page - 1) * size, page * size)
    place.db.write_bytes(flipped(data, at))
    assert place.sql("pragma quick_check") == [("ok",)]
    found = place.verify()
    assert any("idx_cards_kind" in line for line in found.damage), found.lines()
    repaired = mend(place)
    assert repaired.ok
    assert "the index was built anew from the files" in repaired.steps


def test_what_the_check_of_fts5_overlooks_is_found_deep(tmp_path):
    # Its sum of hashes is the same for some other tokens: look for a bit that shows it.
    path = tmp_path / "memory.db"
    with contextlib.closing(connect_write(path)) as connection:
        from datasette_memory.index.migrations import migrate

        migrate(connection)
        body = " ".join(f"word{number % 40}" for number in range(300))
        connection.execute(
            "insert into cards (ref, title, source, path, body) values ('A_1', 'a', 's', 'p', ?)",
            (body,),
        )
        row, block = connection.execute(
            "select id, block from cards_fts_data order by length(block) desc limit 1"
        ).fetchone()
        tokens = audit._all_tokens(connection)
        overlooked = None
        for at in range(4, len(block)):
            for bit in range(8):
                with contextlib.suppress(sqlite3.DatabaseError):
                    changed = flipped(block, at, bit)
                    connection.execute("begin")
                    connection.execute(
                        "update cards_fts_data set block = ? where id = ?", (changed, row)
                    )
                    if is_in_step(connection) and audit._all_tokens(connection) != tokens:
                        overlooked = changed
                if connection.in_transaction:
                    connection.execute("rollback")
        assert overlooked, "FTS5 finds them all now: the exact comparison can go"
        connection.execute("update cards_fts_data set block = ? where id = ?", (overlooked, row))
        register(connection)
        assert audit.full_text_is_in_step(connection)
        assert not audit.full_text_is_in_step(connection, exactly=True)


def test_damage_of_any_kind_is_found_or_without_effect(place, tmp_path):
    """No exception but MemoryFault, and no difference in what the tables hold goes unseen."""
    place.calm()
    whole = place.db.read_bytes()
    names = ("cards", "tags", "links", "names", "card_stats", "events", "cards_fts_docsize")

    def contents():
        with contextlib.closing(
            sqlite3.connect(f"file:{place.db}?mode=ro", uri=True)
        ) as connection:
            connection.text_factory = bytes
            return [
                sorted(map(repr, connection.execute(f"select * from {name}"))) for name in names
            ]

    before = contents()
    chance = random.Random(4)
    outcomes = set()
    for number in range(60):
        at = chance.randrange(len(whole))
        spoilt = [
            flipped(whole, at, chance.randrange(8)),
            whole[:at],
            whole[: at & ~4095] + bytes(4096) + whole[(at & ~4095) + 4096 :],
            flipped(whole, at % 100, chance.randrange(8)),
        ][number % 4]
        for suffix in ("-wal", "-shm"):
            (tmp_path / "home" / f"memory.db{suffix}").unlink(missing_ok=True)
        place.db.write_bytes(spoilt)
        try:
            ok = place.verify(deep=True).ok
        except (MemoryFault, UnicodeError):
            ok = False
        outcomes.add(ok)
        if ok:
            with contextlib.suppress(sqlite3.Error):
                assert contents() == before, (number, at)
    assert outcomes == {True, False}


@pytest.mark.parametrize("zeroed", [False, True])
def test_a_damaged_database_is_kept_and_built_anew(place, zeroed):
    place.calm()
    data = place.db.read_bytes()
    spoilt = data[:4096] + bytes(40_000) + data[44_096:] if zeroed else data[: len(data) // 3]
    place.db.write_bytes(spoilt)
    repaired = mend(place)
    assert repaired.ok
    assert repaired.before.damage
    assert repaired.steps == [
        "the index was built anew from the files",
        "the damaged index was kept as memory.db.damaged",
    ]
    kept = place.db.with_name("memory.db.damaged")
    assert len(kept.read_bytes()) >= 4096
    assert place.sql("select reads from card_stats") == [(3,)]
    assert place.sql("select count(*) from events") == [(5,)]


def test_a_file_that_is_no_database_any_more_is_kept_and_built_anew(place):
    place.calm()
    place.db.write_bytes(b"garbage\0" * 1000)
    with pytest.raises(Damaged):
        place.verify()
    repaired = mend(place)
    assert repaired.ok
    assert repaired.steps[-1] == "the damaged index was kept as memory.db.damaged"
    assert place.db.with_name("memory.db.damaged").read_bytes() == b"garbage\0" * 1000


@pytest.mark.parametrize("head", [bytes(16384), b"SQLite fosmat 3\0"])
def test_an_index_that_lost_its_head_is_damaged(place, head):
    place.calm()
    data = place.db.read_bytes()
    place.db.write_bytes(head + data[len(head) :])
    with pytest.raises(Damaged):
        place.verify()
    repaired = mend(place)
    assert repaired.ok
    assert repaired.steps[-1] == "the damaged index was kept as memory.db.damaged"


def test_a_text_file_is_not_taken_for_a_database(place):
    place.calm()
    place.db.write_text("# My notes\n\nNamed by mistake with --db.\n")
    with pytest.raises(MemoryFault, match="is not a database"):
        mend(place)
    assert place.db.read_text() == "# My notes\n\nNamed by mistake with --db.\n"
    assert not place.db.with_name("memory.db.damaged").exists()


def test_an_empty_file_gets_an_index(place):
    place.calm()
    place.db.write_bytes(b"")
    repaired = mend(place)
    assert repaired.ok
    assert repaired.before.differences[0].table == "schema"


def test_a_database_of_somebody_else_keeps_its_tables(place):
    place.calm()
    place.db.unlink()
    with contextlib.closing(sqlite3.connect(place.db)) as connection:
        connection.execute("create table theirs (a)")
        connection.execute("insert into theirs values (1)")
        connection.commit()
    assert mend(place).ok
    assert place.sql("select a from theirs") == [(1,)]


def test_a_damaged_index_is_not_given_up_for_less_than_all_sources(place):
    place.calm()
    place.notes.rename(place.root / "elsewhere")
    spoilt = place.db.read_bytes()[:20_000]
    place.db.write_bytes(spoilt)
    with pytest.raises(MemoryFault, match="notes: .* does not exist"):
        mend(place)
    assert place.db.read_bytes() == spoilt


def test_no_index_at_all_is_made(place):
    place.calm()
    place.db.unlink()
    with pytest.raises(NoIndex):
        place.verify()
    assert mend(place).ok


@posix
def test_an_index_that_nobody_may_write_is_one_clear_line(place, public_place, as_nobody):
    shutil.copytree(place.root, public_place / "p")
    place.root = public_place / "p"
    place.sql("update cards set title = 'x' where ref = 'F_0001'")
    place.calm()
    for folder, _, _ in os.walk(public_place):
        os.chmod(folder, 0o555)

    def attempt():
        try:
            mend(place)
        except MemoryFault as error:
            return str(error)

    assert "cannot be written" in as_nobody(attempt)


def test_damage_of_the_texts_is_told_when_deep(place):
    evidence = place.home.home / "evidence"
    text = next(evidence.glob("??/*.txt"))
    text.write_bytes(text.read_bytes() + b"x")
    assert place.verify(evidence_folder=evidence).ok
    found = place.verify(deep=True, evidence_folder=evidence)
    assert not found.ok
    assert found.evidence == [f"{text} is damaged: its contents are not those of its name"]
    assert found.lines()[0] == "the index is not what the files say: damage"
    # No index can mend that.
    repaired = mend(place, deep=True, evidence_folder=evidence)
    assert repaired.steps == [] and not repaired.ok


def test_texts_that_are_gone_are_told_when_deep(place):
    evidence = place.home.home / "evidence"
    gone = {name: hashlib.sha256(name.encode()).hexdigest() for name in ("raw", "secret", "before")}
    (place.vault / "12-Facts/raw.md").write_text(
        f"---\nid: F_0002\nrefs: {{evidence: [{gone['raw']}, not a hash]}}\n---\n# Raw\n"
    )
    (place.vault / "12-Facts/hidden.md").write_text(
        f"---\nid: F_0003\nsensitivity: secret\nrefs: {{evidence: {gone['secret']}}}\n---\n# S\n"
    )
    Ledger(place.ledger).append(
        "updated", ref="D_0001", source="vault", path="x", before=gone["before"], version=2
    )
    place.index()
    assert place.verify(evidence_folder=evidence).ok
    found = place.verify(deep=True, evidence_folder=evidence)
    assert not found.ok
    assert found.evidence == [
        f"{gone['before']} is gone: an earlier text of D_0001",
        f"{gone['secret']} is gone: a raw text of F_0003",
        f"{gone['raw']} is gone: a raw text of F_0002",
    ]
    store = EvidenceStore(evidence)
    for name in gone:
        store.put(name, kind="raw")
    assert place.verify(deep=True, evidence_folder=evidence).ok


def test_no_descriptor_of_the_live_index_is_opened_but_by_sqlite(place):
    # To close one would take away the locks that SQLite holds on it in the same process.
    script = textwrap.dedent(
        """
        import os, sys
        from pathlib import Path
        from datasette_memory.memory import Memory
        home = Path(sys.argv[1])

        def hook(event, arguments):
            if event in ("open", "os.open") and str(arguments[0]) == str(home / "memory.db"):
                print("opened", flush=True)
                os._exit(7)

        memory = Memory(str(home))
        sys.addaudithook(hook)
        memory.verify(deep=True)
        memory.doctor()
        memory.repair(deep=True)
        memory.backup(home.parent / "kept")
        """
    )
    command = [sys.executable, "-c", script, str(place.home.home)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_finish_is_called_on_an_index_that_was_built_anew(place):
    place.calm()
    place.db.write_bytes(place.db.read_bytes()[:30_000])
    called = []
    mend(place, finish=lambda connection: called.append(connection.execute("select 1").fetchone()))
    assert called == [(1,)]


def test_a_difference_reads_like_a_line():
    assert str(Difference("cards", "vault", "a.md", "not in files")) == (
        "cards: vault/a.md: not in files"
    )
    assert str(Difference("tags", "", "", "2 rows")) == "tags: 2 rows"
    found = Verification(differences=[Difference("cards", "vault", "a.md", "not in files")])
    assert found.lines() == [
        "the index is not what the files say: 1 difference",
        "cards: vault/a.md: not in files",
    ]


def test_what_somebody_has_not_committed_yet_is_no_difference(place):
    with contextlib.closing(connect_write(place.db)) as connection:
        register(connection)
        connection.execute("begin immediate")
        connection.execute("update cards set title = 'not yet' where ref = 'F_0001'")
        assert place.verify().ok


def test_damage_while_opening_says_so(place):
    place.calm()
    place.db.write_bytes(place.db.read_bytes()[:5000])
    with pytest.raises(Damaged, match="is damaged"):
        place.verify()


def test_a_text_that_a_kill_forestalled_is_no_damage(place, monkeypatch):
    evidence = place.home.home / "evidence"
    real = store.write_whole

    def killed(path, data, **options):
        if path.suffix == ".txt":
            raise KeyboardInterrupt
        real(path, data, **options)

    monkeypatch.setattr(store, "write_whole", killed)
    with pytest.raises(KeyboardInterrupt):
        EvidenceStore(evidence).put("what was before", kind="version")
    monkeypatch.setattr(store, "write_whole", real)
    place.index()
    assert place.verify(deep=True, evidence_folder=evidence).ok
    # The next time the same text is kept, it comes.
    record = EvidenceStore(evidence).put("what was before", kind="version")
    assert EvidenceStore(evidence).get(record.sha256) == "what was before"
