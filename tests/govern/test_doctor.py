import contextlib
import hashlib
import os
import shutil
import sqlite3
from dataclasses import replace
from types import SimpleNamespace

import pytest

from datasette_memory.evidence.store import EvidenceStore
from datasette_memory.govern import doctor
from datasette_memory.govern.doctor import CHECKS, Check, checks, examine
from datasette_memory.home import resolve
from datasette_memory.memory import Memory
from datasette_memory.pending import Pending

posix = pytest.mark.skipif(os.name == "nt", reason="needs POSIX files")


def by_name(found: list[Check]) -> dict[str, Check]:
    """The worst of each name."""
    order = ("ok", "warning", "error")
    return {one.name: one for one in sorted(found, key=lambda one: order.index(one.level))}


def look(place, name: str) -> Check:
    return by_name(checks(place.home))[name]


def test_a_memory_in_good_health(place):
    found = checks(place.home)
    assert [one for one in found if not one.ok] == []
    assert {one.name for one in found} == {
        "config.json",
        "home",
        "vault",
        "disk space",
        "SQLite",
        "index",
        "sources",
        "age of the index",
        "files",
        "references",
        "pending",
        "ledger",
        "evidence",
        "temporary files",
    }
    for one in found:
        assert one.level == "ok" and one.remedy == "" and "\n" not in one.what
    what = {one.name: one.what for one in found}
    assert what["index"] == f"{place.db} opens, 6 cards"
    assert what["sources"] == "1 source, and all are there"
    assert what["ledger"] == "5 events, every line whole"
    assert what["evidence"] == "1 text, 1 looked at: all are what they were"


def test_every_finding_is_one_line_with_one_remedy(tmp_path):
    for one in checks(resolve(str(tmp_path / "nothing"))):
        assert "\n" not in one.what + one.remedy
        assert bool(one.remedy) != one.ok
        assert one.ok == (one.level == "ok")


def test_nothing_is_written(place, state):
    place.calm()
    before = state(place.root)
    checks(place.home)
    examine(str(place.home.home))
    after = state(place.root)
    # SQLite keeps two files beside the index while it reads.
    folder = place.db.parent
    here = {str(folder), f"{folder}/.", f"{place.db}-wal", f"{place.db}-shm"}
    assert {name: at for name, at in after.items() if name not in here} == {
        name: at for name, at in before.items() if name not in here
    }


def test_nothing_there_yet_is_no_error(tmp_path):
    found = by_name(checks(resolve(str(tmp_path / "nothing"))))
    assert found["home"].level == found["vault"].level == found["index"].level == "warning"
    assert all(one.level != "error" for one in found.values())
    assert not (tmp_path / "nothing").exists()


def test_a_check_that_fails_is_an_error_and_the_others_go_on(place, monkeypatch):
    def broken(home):
        raise ZeroDivisionError("no\nsuch thing")

    monkeypatch.setattr(doctor, "CHECKS", (("broken", broken), *CHECKS))
    found = checks(place.home)
    assert found[0] == Check(
        "broken", False, "error", "cannot be checked: no such thing",
        "mend that first, then ask again",
    )  # fmt: skip
    assert len(found) == 15


def test_settings_that_cannot_be_understood_are_the_first_finding(place):
    place.home.config.write_text("{")
    found = examine(str(place.root / "home"))
    assert (found[0].name, found[0].level) == ("config.json", "error")
    assert "is not valid JSON" in found[0].what
    assert by_name(found)["index"].ok
    # As far as anybody can tell without them.
    (place.root / "home/config.json").write_text('{"sources": [{"name": "vault", "path": "x"}]}')
    found = by_name(examine(str(place.root / "home")))
    assert found["config.json"].level == "error"
    assert found["index"].ok


def test_examine_finds_the_same_as_checks(place):
    (place.root / "home/config.json").write_text("{}")
    one, other = examine(str(place.root / "home")), checks(place.home)
    assert [(a.name, a.ok) for a in one] == [(b.name, b.ok) for b in other]


def test_a_vault_that_is_a_file(place):
    shutil.rmtree(place.vault)
    place.vault.write_text("")
    assert look(place, "vault").what == f"{place.vault} is not a folder"


@posix
def test_folders_that_cannot_be_written(place, public_place, as_nobody):
    shutil.copytree(place.root, public_place / "p")
    place.root = public_place / "p"
    place.calm()
    for folder, _, names in os.walk(public_place):
        os.chmod(folder, 0o555)
        for name in names:
            os.chmod(os.path.join(folder, name), 0o444)
    found = as_nobody(lambda: by_name(checks(place.home)))
    for name in ("home", "vault"):
        assert found[name].level == "error"
        assert found[name].what.endswith("cannot be written")
    assert found["index"].what == f"{place.db} cannot be written"


def test_an_old_sqlite(place, monkeypatch):
    old = SimpleNamespace(sqlite_version="3.39.4")
    monkeypatch.setattr(doctor, "sqlite3", old)
    found = {one.name: one for one in doctor._sqlite(place.home)}["SQLite"]
    assert found.level == "error"
    assert found.what == "version 3.39.4 is older than 3.40"


def test_an_index_that_is_damaged(place):
    place.calm()
    place.db.write_bytes(place.db.read_bytes()[:5000])
    found = look(place, "index")
    assert found.level == "error"
    assert "is damaged" in found.what and "--rebuild" in found.remedy
    place.db.write_text("no database")
    assert "is not a database" in look(place, "index").what


def test_an_index_with_a_flipped_bit_is_found_and_told(place, monkeypatch):
    place.calm()
    whole = place.db.read_bytes()
    page = place.sql("select rootpage from sqlite_master where name = 'idx_cards_kind'")[0][0]
    size = place.sql("pragma page_size")[0][0]
    in_index = whole.index(b"decision", (page - 1) * size, page * size)
    # The body stands behind the summary that was taken from it; only the full text knows better.
    text = "网关监听".encode()
    in_body = whole.index(text, whole.index(text) + 1) + 16
    for at, told in ((in_index, "idx_cards_kind"), (in_body, "its full text is not that of")):
        place.db.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        found = look(place, "index")
        assert (found.level, found.remedy) == ("error", "memory verify --repair")
        assert found.what.startswith(f"{place.db} is damaged: ") and told in found.what
    # In a large one nobody looks, and that is said.
    monkeypatch.setattr(doctor, "MAX_INDEX", len(whole) - 1)
    found = look(place, "index")
    assert found.what == (
        f"{place.db} opens, 6 cards; too large to be checked here: see `memory verify --deep`"
    )


def test_an_index_of_another_version_or_without_triggers(place):
    place.sql("update meta set value = '0' where key = 'tokenizer_version'")
    assert look(place, "index").what.endswith("was built by another version of this program")
    place.index()
    place.sql("drop trigger cards_fts_update")
    found = look(place, "index")
    assert (found.level, found.what) == ("error", f"{place.db} lacks triggers: cards_fts_update")
    place.index()
    assert look(place, "index").ok


def test_files_that_changed_since_are_counted(place):
    (place.vault / "new.md").write_text("# New\n")
    (place.notes / "also new.md").write_text("# New\n")
    (place.vault / "17-Notes/bare.md").unlink()
    path = place.vault / "12-Facts/端口约定.md"
    path.write_text(path.read_text("utf-8").replace("8765", "8766"), "utf-8")
    found = look(place, "age of the index")
    assert found.level == "warning"
    assert found.what.endswith(": 2 new, 1 changed, 1 gone")
    assert found.remedy == "memory index"
    place.index()
    assert look(place, "age of the index").ok


def test_a_file_with_another_time_and_the_same_bytes_has_not_changed(place):
    for path in place.vault.rglob("*.md"):
        os.utime(path, (1, 1))
    assert look(place, "age of the index").ok


def test_a_source_that_is_missing(place):
    place.notes.rename(place.root / "elsewhere")
    found = by_name(checks(place.home))
    assert found["sources"].level == "warning"
    assert f"missing: notes ({place.notes})" in found["sources"].what
    assert found["age of the index"].ok


def test_files_with_a_fault(place):
    for name in ("a", "b", "c", "d", "e"):
        (place.vault / f"{name}.md").write_bytes(b"# Bytes\n\n\xff\xfe that are no text\n")
    place.index()
    found = look(place, "files")
    assert found.level == "warning"
    assert found.what.startswith("5 files with a fault: vault/a.md (not UTF-8")
    assert found.what.endswith(" and 2 more")


def test_references_that_two_cards_have(place):
    (place.vault / "copy.md").write_text("---\nid: f_0001\ntitle: Copy\n---\nText\n")
    # Another source may have the same: a reference there means another card.
    (place.notes / "same.md").write_text("---\nid: D_0001\ntitle: Same\n---\nText\n")
    place.index()
    found = look(place, "references")
    assert not found.ok
    assert "F_0001 (2 cards of vault: 12-Facts/端口约定.md, copy.md)" in found.what
    assert "D_0001" not in found.what


def test_changes_that_wait_and_changes_that_were_laid_aside(place):
    pending = Pending(place.home.home / "pending")
    pending.add("capture", {}, "disk full")
    assert look(place, "pending") == Check(
        "pending", False, "warning", "1 change could not be made yet", "memory sync-pending"
    )
    dead = place.home.home / "pending/dead"
    dead.mkdir()
    (dead / "x.json").write_text("{}")
    found = look(place, "pending")
    assert found.level == "error"
    assert found.what.startswith("1 change failed too often")


def test_lines_of_the_ledger_that_are_none(place):
    file = next(place.ledger.glob("*.jsonl"))
    with open(file, "ab") as ledger:
        ledger.write(b'foreign\n{"v": 1, "id"')
    found = look(place, "ledger")
    assert found.level == "warning"
    assert found.what.startswith(
        f"2 lines cannot be read and are passed over: {file.name}:6 not JSON"
    )
    assert "the last line has no end" in found.what


def test_evidence_that_is_damaged_or_has_lost_its_record(place):
    folder = place.home.home / "evidence"
    record = EvidenceStore(folder).put("second text", kind="raw")
    text = folder / record.sha256[:2] / f"{record.sha256}.txt"
    text.write_text("second texT")
    found = look(place, "evidence")
    assert found.level == "error"
    assert found.what == (
        f"1 of 2 texts looked at: {text} is damaged: its contents are not those of its name"
    )
    text.write_text("second text")
    assert look(place, "evidence").ok
    text.with_suffix(".json").unlink()
    assert not look(place, "evidence").ok


def test_texts_that_a_card_or_its_history_needs_and_that_are_gone(place):
    memory = Memory(str(place.home.home))
    body = "The gateway is restarted every night at three."
    kept = memory.capture("Nightly restart", body, raw="the whole talk about it")
    ref = kept.ref
    assert look(place, "evidence").ok
    folder = place.home.home / "evidence"
    raw = hashlib.sha256(b"the whole talk about it").hexdigest()
    before = hashlib.sha256((place.vault / kept.path).read_bytes()).hexdigest()
    memory.update(ref, body=f"{body} No longer.")
    assert look(place, "evidence").ok

    for sha256, what in ((before, "an earlier text"), (raw, "a raw text")):
        for suffix in ("txt", "json"):
            (folder / sha256[:2] / f"{sha256}.{suffix}").rename(place.root / f"kept.{suffix}")
        found = look(place, "evidence")
        assert found.level == "error"
        assert found.what == f"1 text of {folder}: {sha256} is gone: {what} of {ref}"
        assert found.remedy == "put the folder back from a backup"
        for suffix in ("txt", "json"):
            (place.root / f"kept.{suffix}").rename(folder / sha256[:2] / f"{sha256}.{suffix}")
    # What a foreign card names is kept by somebody else.
    (place.notes / "theirs.md").write_text(
        f"---\nrefs: {{evidence: [{'0' * 64}]}}\n---\n# Theirs\n\nFrom another memory.\n"
    )
    memory.index()
    assert look(place, "evidence").ok


def test_a_large_evidence_is_looked_at_in_part(place, monkeypatch):
    store = EvidenceStore(place.home.home / "evidence")
    for number in range(20):
        store.put(f"text {number}", kind="raw")
    monkeypatch.setattr(doctor, "EVIDENCE_SAMPLE", 5)
    assert look(place, "evidence").what == "21 texts, 5 looked at: a sample is whole"


def test_unfinished_files_that_nobody_writes_any_more(place):
    fresh = place.vault / "09-Decisions/.tmp-fresh"
    fresh.write_text("")
    assert look(place, "temporary files").ok
    os.utime(fresh, (1, 1))
    found = look(place, "temporary files")
    assert found.level == "warning"
    assert found.what.startswith("1 unfinished file left") and str(fresh) in found.what


def test_damaged_indexes_that_were_kept(place):
    place.db.with_name("memory.db.damaged").write_text("x")
    found = look(place, "damaged indexes")
    assert found.what.endswith("memory.db.damaged")


def test_a_disk_that_is_nearly_full(place, monkeypatch):
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda path: SimpleNamespace(free=50_000_000))
    found = look(place, "disk space")
    assert found.level == "warning"
    assert found.what.startswith("50 MB free in ")
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda path: SimpleNamespace(free=5_000_000))
    assert look(place, "disk space").level == "error"


def test_an_index_elsewhere_is_looked_at_there(place):
    other = place.root / "elsewhere" / "index.db"
    other.parent.mkdir()
    place.calm()
    shutil.move(place.db, other)
    found = by_name(checks(replace(place.home, db=other)))
    assert found["index"].ok and found["index folder"].ok


def test_what_a_finding_is_as_an_object():
    assert Check("a", True, "ok", "fine").to_dict() == {
        "name": "a",
        "ok": True,
        "level": "ok",
        "what": "fine",
        "remedy": "",
    }


def test_an_index_with_a_schema_that_makes_no_sense(place):
    place.calm()
    with contextlib.closing(sqlite3.connect(place.db)) as connection:
        connection.execute("pragma writable_schema = on")
        connection.execute(
            "update sqlite_master set sql = cast(x'637265617465ff' as text) where name = 'tags'"
        )
        connection.commit()
    assert look(place, "index").level == "error"
