import contextlib
import errno
import gzip
import hashlib
import importlib.util
import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tarfile
import textwrap
import time
from pathlib import Path

import pytest

from datasette_memory import durable
from datasette_memory.errors import MemoryFault
from datasette_memory.govern import archive as archives
from datasette_memory.govern import backup as backups
from datasette_memory.govern.backup import backup, restore
from datasette_memory.home import resolve
from datasette_memory.ledger.reader import read as read_ledger
from datasette_memory.vault.sources import Source

_spec = importlib.util.spec_from_file_location("faults", Path(__file__).parents[1] / "faults.py")
_faults = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_faults)
AFTER, BEFORE, HALFWAY, armed = _faults.AFTER, _faults.BEFORE, _faults.HALFWAY, _faults.armed

posix = pytest.mark.skipif(os.name == "nt", reason="needs POSIX files")

NAMES = ("backup.tar.gz", "backup")
both = pytest.mark.parametrize("name", NAMES)


@pytest.fixture
def full(place):
    """A place with a trash, hidden files, pending changes, a queue of tests and odd names."""
    home = place.home.home
    for name, text in {
        "vault/.trash/20261201-020304-567/17-Notes/old.md": "# Old\n\nIn the trash.\n",
        "vault/.obsidian/app.json": "{}",
        "vault/17-Notes/image.png": "\x00\x01not text",
        "vault/17-Notes/" + "很" * 60 + ".md": "# Long name\n",
        "pending/01.json": "{}",
        "pending/dead/02.json": "{}",
        "bench_queries.json": "[]",
    }.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    os.utime(home / "vault/17-Notes/bare.md", ns=(1, 1_700_000_000_123_456_789))
    place.index()
    return place


def tree(root: Path) -> dict[str, bytes]:
    """Every file below the root but the locks of programs, with its bytes."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.is_symlink() and not path.name.endswith(".lock")
    }


def truth(root: Path) -> dict[str, bytes]:
    """The same without the index, which is no truth."""
    return {name: data for name, data in tree(root).items() if not name.startswith("memory.db")}


def fresh(place, name: str = "fresh"):
    return resolve(str(place.root / name))


# There and back


@both
def test_there_and_back(full, name):
    destination = full.root / "kept" / name
    made = backup(full.home, destination)
    assert made.ok
    assert made.path == str(destination)
    assert made.counts == {
        "pending": 2,
        "ledger": 2,
        "vault": 9,
        "evidence": 2,
        "config.json": 1,
        "bench_queries.json": 1,
        "memory.db": 1,
    }
    assert made.files == 18
    assert made.index == "copied"
    assert made.sources == [{"name": "notes", "root": str(full.notes)}]
    before = tree(destination) if destination.is_dir() else destination.read_bytes()
    home = fresh(full)
    done = restore(destination, home)
    assert truth(home.home) == truth(full.home.home)
    assert done.path == str(home.home)
    assert (done.files, done.counts, done.moved_aside) == (18, made.counts, [])
    assert done.index == "checked, 0 cards changed"
    assert os.stat(home.home / "vault/17-Notes/bare.md").st_mtime_ns == 1_700_000_000_123_456_789
    assert (tree(destination) if destination.is_dir() else destination.read_bytes()) == before
    assert sorted(os.listdir(full.root / "kept")) == [name]
    assert not [path for path in os.listdir(full.root) if path.startswith(".tmp")]
    verified = verify_at(full, home)
    assert verified.ok, verified.lines()
    assert verified.cards == 7


def verify_at(place, home):
    from datasette_memory.govern.verify import verify
    from datasette_memory.index.connection import connect_read

    sources = [Source("vault", str(home.vault)), Source("notes", str(place.notes))]
    with contextlib.closing(connect_read(home.db)) as connection:
        return verify(connection, home.db, sources, home.home / "ledger", deep=True)


def test_the_manifest_says_what_is_in_it(full):
    backup(full.home, full.root / "kept.tgz")
    with tarfile.open(full.root / "kept.tgz") as tar:
        names = tar.getnames()
        assert names[-1] == "manifest.json"
        manifest = json.load(tar.extractfile("manifest.json"))
        files = {one["path"]: one for one in manifest["files"]}
        assert sorted(files) == sorted(names[:-1])
        for name, one in files.items():
            data = tar.extractfile(name).read()
            assert (one["size"], one["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())
    assert manifest["format"] == 1
    assert manifest["home"] == str(full.home.home)
    assert manifest["counts"]["vault"] == 9
    assert manifest["bytes"] == sum(one["size"] for one in files.values())
    assert manifest["sources"] == [{"name": "notes", "root": str(full.notes)}]
    assert manifest["created"].endswith("+00:00")


@posix
def test_nobody_else_may_read_a_backup(full):
    backup(full.home, full.root / "kept")
    backup(full.home, full.root / "kept.tar.gz")
    assert (full.root / "kept").stat().st_mode & 0o777 == 0o700
    assert (full.root / "kept.tar.gz").stat().st_mode & 0o777 == 0o600


@posix
@both
def test_permissions_come_back(full, name):
    card = full.vault / "17-Notes/bare.md"
    os.chmod(card, 0o440)
    backup(full.home, full.root / name)
    restore(full.root / name, fresh(full))
    restored = full.root / "fresh/vault/17-Notes/bare.md"
    assert restored.stat().st_mode & 0o777 == 0o440


@posix
@both
def test_links_of_the_vault_come_back_when_they_stay_inside(full, name):
    (full.vault / "link.md").symlink_to("12-Facts/端口约定.md")
    (full.vault / "17-Notes/up").symlink_to("../09-Decisions")
    (full.vault / "out.md").symlink_to("../../notes/容量报告.md")
    (full.vault / "absolute.md").symlink_to("/etc/passwd")
    made = backup(full.home, full.root / name)
    assert made.ok and made.files == 22
    done = restore(full.root / name, fresh(full))
    vault = full.root / "fresh/vault"
    assert os.readlink(vault / "link.md") == "12-Facts/端口约定.md"
    assert (vault / "17-Notes/up/缓存放内存.md").is_file()
    assert not os.path.lexists(vault / "out.md") and not os.path.lexists(vault / "absolute.md")
    assert [note for note in done.notes if "was left out" in note] == [
        "the link vault/absolute.md was left out: it leads to /etc/passwd",
        "the link vault/out.md was left out: it leads to ../../notes/容量报告.md",
    ]


def test_what_is_no_backup_is_left_behind(full):
    (full.vault / ".tmp-unfinished").write_text("x")
    (full.home.home / ".vault.lock").write_text("")
    (full.home.home / "memory.db.damaged").write_text("x")
    made = backup(full.home, full.root / "kept")
    found = tree(full.root / "kept")
    assert set(found) - {"manifest.json", "memory.db"} == set(truth(full.home.home)) - {
        "vault/.tmp-unfinished",
        "memory.db.damaged",
    }
    assert made.ok


@posix
def test_what_cannot_be_copied_is_named(full):
    os.mkfifo(full.vault / "pipe")
    made = backup(full.home, full.root / "kept.tar.gz")
    assert not made.ok
    assert made.left_out == [{"path": "vault/pipe", "reason": "not a regular file"}]
    done = restore(full.root / "kept.tar.gz", fresh(full))
    assert done.left_out == made.left_out


@posix
def test_what_nobody_may_read_is_named(full, public_place, as_nobody):
    shutil.copytree(full.root, public_place / "p")
    os.chmod(public_place, 0o777)
    full.root = public_place / "p"
    os.chmod(full.root, 0o777)
    full.calm()
    os.chmod(full.vault / "12-Facts/端口约定.md", 0)
    os.chmod(full.vault / "18-References", 0)
    full.db.with_name(".memory.db.lock").unlink(missing_ok=True)
    made = as_nobody(lambda: backup(full.home, full.root / "kept").to_dict())
    assert not made["ok"]
    assert sorted(one["path"] for one in made["left_out"]) == [
        "vault/12-Facts/端口约定.md",
        "vault/18-References",
    ]
    assert made["counts"]["vault"] == 7


@posix
@both
def test_names_that_are_no_utf8_come_back(full, name):
    path = os.path.join(os.fsencode(full.vault), b"\xff\xfe.md")
    with open(path, "wb") as file:
        file.write(b"bytes")
    backup(full.home, full.root / name)
    restore(full.root / name, fresh(full))
    with open(os.path.join(os.fsencode(full.root / "fresh/vault"), b"\xff\xfe.md"), "rb") as file:
        assert file.read() == b"bytes"


def test_a_home_without_an_index_gets_one(full):
    full.calm()
    full.db.unlink()
    made = backup(full.home, full.root / "kept")
    assert made.index == "there is none"
    done = restore(full.root / "kept", fresh(full))
    assert done.index == "built from the files"
    assert verify_at(full, fresh(full)).ok


def test_a_damaged_index_is_left_out_and_built_anew(full):
    full.calm()
    full.db.write_bytes(full.db.read_bytes()[:20_000])
    made = backup(full.home, full.root / "kept.tar.gz")
    assert made.index.startswith("left out: ") and "damaged" in made.index
    assert "memory.db" not in made.counts
    assert restore(full.root / "kept.tar.gz", fresh(full)).index == "built from the files"
    assert verify_at(full, fresh(full)).ok


def test_an_index_that_is_older_than_its_files_is_brought_up_to_date(full):
    (full.vault / "new.md").write_text("# New\n\nNot indexed yet.\n")
    backup(full.home, full.root / "kept")
    assert restore(full.root / "kept", fresh(full)).index == "checked, 1 cards changed"
    assert verify_at(full, fresh(full)).ok


def test_a_source_that_this_machine_lacks_keeps_its_cards(full):
    backup(full.home, full.root / "kept")
    full.notes.rename(full.root / "elsewhere")
    done = restore(full.root / "kept", fresh(full))
    assert any("notes" in note for note in done.notes)
    assert done.index.startswith("checked")
    home = fresh(full)
    full.sources = []
    from datasette_memory.index.connection import connect_read

    with contextlib.closing(connect_read(home.db)) as connection:
        sql = "select count(*) from cards where source = 'notes'"
        assert connection.execute(sql).fetchone() == (2,)


# Where it may go


@both
def test_nothing_is_overwritten(full, name):
    (full.root / name).mkdir()
    with pytest.raises(MemoryFault, match="is there already"):
        backup(full.home, full.root / name)
    (full.root / name).rmdir()
    if os.name != "nt":
        (full.root / name).symlink_to("nowhere")
        with pytest.raises(MemoryFault, match="is there already"):
            backup(full.home, full.root / name)


def test_somebody_who_takes_the_name_meanwhile_is_not_overwritten(full, monkeypatch):
    destination = full.root / "kept.tar.gz"
    real = backups.inspect

    def inspect(path, packed=None):
        destination.write_text("theirs")
        return real(path, packed)

    monkeypatch.setattr(backups, "inspect", inspect)
    with pytest.raises(MemoryFault, match="is there already"):
        backup(full.home, destination)
    assert destination.read_text() == "theirs"
    assert [name for name in os.listdir(full.root) if name.startswith(".tmp")] == []


def test_no_place_that_is_backed_up_or_only_read(full):
    for place in ("vault", "vault/.hidden/x", "ledger", "evidence/y", "pending"):
        with pytest.raises(MemoryFault, match="lies inside the|is there already"):
            backup(full.home, full.home.home / place / "kept.tar.gz")
    with pytest.raises(MemoryFault, match="lies inside the source 'notes'"):
        backup(full.home, full.notes / "kept")
    if os.name != "nt":
        (full.root / "other").symlink_to(full.vault)
        with pytest.raises(MemoryFault, match="lies inside the vault"):
            backup(full.home, full.root / "other" / "kept")
    assert backup(full.home, full.home.home / "backups" / "kept.tar.gz").ok


@pytest.mark.parametrize("name", ["kept.zip", "kept.tar", "kept.7z", "kept.tar.xz"])
def test_other_kinds_of_archives_are_not_made_as_folders(full, name):
    with pytest.raises(MemoryFault, match="a folder or a .tar.gz"):
        backup(full.home, full.root / name)


def test_nothing_to_back_up(tmp_path):
    with pytest.raises(MemoryFault, match="nothing to back up"):
        backup(resolve(str(tmp_path / "none")), tmp_path / "kept")
    assert os.listdir(tmp_path) == []


def test_what_a_killed_backup_left_goes_at_once_or_a_day_later(full):
    for name in (".tmp-backup-old", ".tmp-backup-new", ".tmp-other"):
        (full.root / name).mkdir()
        (full.root / name / "file").write_text("x")
    for name in (".tmp-backup-old", ".tmp-other"):
        os.utime(full.root / name, (1, 1))
    if os.name != "nt":
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                (full.root / durable.temporary_name("backup-")).write_text("x")
            os._exit(0)
        os.waitpid(child, 0)
    backup(full.home, full.root / "kept")
    assert len(list(full.root.glob(".tmp-backup-*"))) == 1
    assert not (full.root / ".tmp-backup-old").exists()
    assert (full.root / ".tmp-backup-new/file").exists() and (
        full.root / ".tmp-other/file"
    ).exists()


# While others write


@both
def test_a_line_of_the_ledger_that_is_not_whole_yet_is_left_out(full, name):
    file = next(full.ledger.glob("*.jsonl"))
    whole = file.read_bytes()
    with open(file, "ab") as ledger:
        ledger.write(b'{"v": 1, "id": "half')
    made = backup(full.home, full.root / name)
    assert made.notes == [f"ledger/{file.name}: a last line without an end was left out"]
    restore(full.root / name, fresh(full))
    assert (full.root / "fresh/ledger" / file.name).read_bytes() == whole


def test_a_long_ledger_without_any_end_is_empty(full):
    (full.ledger / "2020-01.other-00aa.jsonl").write_bytes(b"x" * 3_000_000)
    backup(full.home, full.root / "kept")
    assert (full.root / "kept/ledger/2020-01.other-00aa.jsonl").read_bytes() == b""


def on_first(monkeypatch, path: Path, act):
    """Call `act` when the first bytes of `path` have been read for the backup."""
    real, calls = backups._copied_stream, []

    def copied(name, file, size, status, out):
        entry = real(name, file, size, status, out)
        if os.path.samestat(status, before) and not calls:
            calls.append(name)
            act()
        return entry

    before = path.stat()
    monkeypatch.setattr(backups, "_copied_stream", copied)


@both
def test_a_file_that_is_written_to_meanwhile_is_copied_again(full, name, monkeypatch):
    card = full.vault / "12-Facts/端口约定.md"
    on_first(monkeypatch, card, lambda: card.write_bytes(b"# Whole and new\n"))
    backup(full.home, full.root / name)
    restore(full.root / name, fresh(full))
    assert (full.root / "fresh/vault/12-Facts/端口约定.md").read_bytes() == b"# Whole and new\n"


def test_a_file_that_never_rests_has_the_hash_of_its_copy(full, monkeypatch):
    card = full.vault / "12-Facts/端口约定.md"
    real = backups._copied_stream

    def copied(path, *rest):
        if path.endswith("端口约定.md"):
            with open(card, "ab") as file:
                file.write(b"more\n")
        return real(path, *rest)

    monkeypatch.setattr(backups, "_copied_stream", copied)
    assert backup(full.home, full.root / "kept.tar.gz").ok
    restore(full.root / "kept.tar.gz", fresh(full))
    data = (full.root / "fresh/vault/12-Facts/端口约定.md").read_bytes()
    assert card.read_bytes().startswith(data) and data.endswith(b"more\n")


@both
def test_a_card_that_is_moved_meanwhile_is_not_lost(full, name, monkeypatch):
    # It goes from where nobody has looked yet to where somebody has.
    card = full.vault / "17-Notes/bare.md"
    text = card.read_bytes()
    first = full.vault / ".trash/20261201-020304-567/17-Notes/old.md"
    target = full.vault / ".trash/20261201-020304-999/17-Notes/bare.md"

    def trash():
        target.parent.mkdir(parents=True)
        card.rename(target)

    on_first(monkeypatch, first, trash)
    made = backup(full.home, full.root / name)
    assert made.ok
    restore(full.root / name, fresh(full))
    kept = full.root / "fresh/vault/.trash/20261201-020304-999/17-Notes/bare.md"
    assert kept.read_bytes() == text


WRITER = textwrap.dedent(
    """
    import sys
    from pathlib import Path
    from datasette_memory.durable import write_whole
    from datasette_memory.ledger.writer import Ledger
    home, number = Path(sys.argv[1]), 0
    ledger = Ledger(home / "ledger")
    print("ready", flush=True)
    while True:
        number += 1
        name = f"card-{number % 40:03}.md"
        text = f"# Card {number}\\n\\n" + f"line of card {number}\\n" * 500
        write_whole(home / "vault/17-Notes" / name, text.encode())
        ledger.append("updated", ref=f"N_{number}", source="vault", path=f"17-Notes/{name}", sync=False)
    """
)


@both
def test_backups_while_another_process_writes(full, name):
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(full.home.home)], stdout=subprocess.PIPE
    )
    try:
        assert process.stdout.readline() == b"ready\n"
        cards = 0
        for number in range(3):
            before = {path.name for path in (full.vault / "17-Notes").glob("card-*.md")}
            destination = full.root / f"{number}-{name}"
            assert backup(full.home, destination).ok
            home = fresh(full, f"fresh-{number}")
            restore(destination, home)
            found = {path.name: path for path in (home.vault / "17-Notes").glob("card-*.md")}
            assert before <= found.keys()
            cards = len(found)
            for path in found.values():
                lines = path.read_text().splitlines()
                assert lines[2:] == [lines[2]] * 500
                assert lines[0].split()[-1] == lines[2].split()[-1]
            reading = read_ledger(home.home / "ledger")
            events = [event for event, _ in reading]
            assert reading.faults == []
            assert len({event.id for event in events}) == len(events) >= 5
            for file in (home.home / "ledger").glob("*.jsonl"):
                assert (full.ledger / file.name).read_bytes().startswith(file.read_bytes())
            assert verify_at(full, home).ok
        assert cards > 3
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


# Where it comes back


@both
def test_a_home_that_holds_something_is_refused(full, name, state):
    backup(full.home, full.root / name)
    before = truth(full.home.home)
    with pytest.raises(MemoryFault, match="is not empty"):
        restore(full.root / name, full.home)
    assert truth(full.home.home) == before
    (full.root / "other").mkdir()
    (full.root / "other/.hidden").write_text("mine")
    with pytest.raises(MemoryFault, match="is not empty"):
        restore(full.root / name, resolve(str(full.root / "other")))
    assert os.listdir(full.root / "other") == [".hidden"]


@both
def test_with_force_the_old_one_is_moved_aside_and_whole(full, name):
    backup(full.home, full.root / name)
    (full.vault / "later.md").write_text("# Written after the backup\n")
    before = tree(full.home.home)
    done = restore(full.root / name, full.home, force=True)
    (aside,) = map(Path, done.moved_aside)
    assert aside.parent == full.root
    assert aside.name.startswith("home.before-restore-")
    assert tree(aside) == before
    assert not (full.vault / "later.md").exists()
    assert verify_at(full, full.home).ok


def test_an_empty_home_is_fine(full):
    backup(full.home, full.root / "kept")
    (full.root / "fresh").mkdir()
    assert restore(full.root / "kept", fresh(full)).ok


@posix
def test_a_home_that_is_a_link_stays_one(full):
    backup(full.home, full.root / "kept")
    (full.root / "real").mkdir()
    (full.root / "link").symlink_to(full.root / "real")
    done = restore(full.root / "kept", resolve(str(full.root / "link")))
    assert (full.root / "link").is_symlink()
    assert done.path == str(full.root / "real")
    assert (full.root / "link/vault/17-Notes/bare.md").is_file()


def test_a_home_that_is_a_disk_of_its_own(full, monkeypatch):
    # As in a container: it cannot be renamed, and what is beside it is on another disk.
    backup(full.home, full.root / "kept")
    home = fresh(full)
    home.home.mkdir()
    before = home.home.stat().st_ino
    monkeypatch.setattr(backups.os.path, "ismount", lambda path: Path(path) == home.home)
    restore(full.root / "kept", home)
    assert truth(home.home) == truth(full.home.home)
    assert sorted(os.listdir(full.root)) == ["fresh", "home", "kept", "notes"]
    old = tree(home.home)
    with pytest.raises(MemoryFault, match="is not empty"):
        restore(full.root / "kept", home)
    done = restore(full.root / "kept", home, force=True)
    (aside,) = map(Path, done.moved_aside)
    assert aside.parent == home.home
    assert tree(aside) == old
    assert home.home.stat().st_ino == before
    assert not [name for name in os.listdir(home.home) if name.startswith(".tmp")]


def test_vault_and_index_go_where_an_option_says(full):
    backup(full.home, full.root / "kept.tar.gz")
    home = resolve(
        str(full.root / "fresh"), str(full.root / "x/index.db"), str(full.root / "y/cards")
    )
    done = restore(full.root / "kept.tar.gz", home)
    assert (full.root / "y/cards/17-Notes/bare.md").is_file()
    assert (full.root / "x/index.db").is_file()
    assert not (full.root / "fresh/vault").exists() and not (full.root / "fresh/memory.db").exists()
    assert done.index.startswith("checked")
    assert sorted(os.listdir(full.root / "y")) == ["cards"]
    # All three are in the way of another.
    shutil.rmtree(full.root / "fresh")
    with pytest.raises(MemoryFault, match="cards is not empty"):
        restore(full.root / "kept.tar.gz", home)
    done = restore(full.root / "kept.tar.gz", home, force=True)
    assert len(done.moved_aside) == 2


def test_settings_that_name_another_place_are_settled(full):
    elsewhere = full.root / "elsewhere" / "cards"
    shutil.move(full.vault, elsewhere)
    config = json.loads(full.home.config.read_text())
    full.home.config.write_text(json.dumps(config | {"vault": str(elsewhere), "mine": 1}))
    full.sources[0] = Source("vault", str(elsewhere))
    full.index()
    backup(full.home, full.root / "kept")
    shutil.move(elsewhere, full.root / "gone")
    done = restore(full.root / "kept", fresh(full))
    assert fresh(full).vault == full.root / "fresh/vault"
    assert (full.root / "fresh/vault/17-Notes/bare.md").is_file()
    assert json.loads((full.root / "fresh/config.json").read_text()) == config | {"mine": 1}
    assert f"config.json said vault: {elsewhere}; it is in its usual place now" in done.notes


def test_settings_that_name_a_place_inside_the_home_are_kept(full):
    shutil.move(full.vault, full.home.home / "cards")
    config = json.loads(full.home.config.read_text()) | {"vault": "cards", "db": "deep/index.db"}
    full.home.config.write_text(json.dumps(config))
    full.sources[0] = Source("vault", str(full.vault))
    full.index()
    backup(full.home, full.root / "kept")
    restore(full.root / "kept", fresh(full))
    assert fresh(full).vault == full.root / "fresh/cards"
    assert (full.root / "fresh/cards/17-Notes/bare.md").is_file()
    assert (full.root / "fresh/deep/index.db").is_file()


@pytest.mark.parametrize("stated", ["../outside", ".", "/", "vault/../../outside"])
def test_settings_never_lead_out_of_the_home(full, stated):
    config = json.loads(full.home.config.read_text()) | {"vault": str(full.vault)}
    full.home.config.write_text(json.dumps(config))
    backup(full.home, full.root / "kept")
    (full.root / "kept/config.json").write_text(json.dumps({"vault": stated, "db": stated}))
    sign(full.root / "kept")
    restore(full.root / "kept", fresh(full))
    assert (full.root / "fresh/vault/17-Notes/bare.md").is_file()
    assert not (full.root / "outside").exists()
    assert fresh(full).vault == full.root / "fresh/vault"


def sign(folder: Path) -> None:
    """Make the manifest of a folder fit what it holds now."""
    manifest = json.loads((folder / "manifest.json").read_text())
    known = {one["path"]: one for one in manifest["files"]}
    manifest["files"] = [
        known.get(name, {"mtime_ns": 0, "mode": 0o600})
        | {"path": name, "size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for name, data in tree(folder).items()
        if name != "manifest.json"
    ]
    (folder / "manifest.json").write_text(json.dumps(manifest))


# Archives that are damaged, or hostile


def refused(full, path: Path, match: str = "cannot be used") -> None:
    """The archive is refused in one line, and nothing was made."""
    before = sorted(os.listdir(full.root))
    with pytest.raises(MemoryFault, match=match) as caught:
        restore(path, fresh(full))
    assert "\n" not in str(caught.value)
    assert sorted(os.listdir(full.root)) == before


def test_an_archive_that_was_cut_short_is_refused(full):
    whole = full.root / "kept.tar.gz"
    backup(full.home, whole)
    data = whole.read_bytes()
    path = full.root / "cut.tar.gz"
    for size in [0, 1, 5, 17, *range(100, len(data), len(data) // 40), len(data) - 1]:
        path.write_bytes(data[:size])
        refused(full, path)


def test_an_archive_with_a_flipped_bit_is_refused_or_the_same(full):
    whole = full.root / "kept.tar.gz"
    backup(full.home, whole)
    data = whole.read_bytes()
    path = full.root / "flipped.tar.gz"
    expected = archives.inspect(whole).dump()
    chance = random.Random(7)
    places = [*range(12), *range(len(data) - 12, len(data)), *chance.sample(range(len(data)), 150)]
    same = 0
    for place in places:
        flipped = data[place] ^ 1 << chance.randrange(8)
        path.write_bytes(data[:place] + bytes([flipped]) + data[place + 1 :])
        try:
            assert archives.inspect(path).dump() == expected
            same += 1
        except MemoryFault as error:
            assert "cannot be used" in str(error)
    # The time, the flags for speed and the system in the head of a packed file mean nothing, and a
    # few bits of its stream stand for nothing that is unpacked; any other flip has to be seen.
    assert same < len(places) // 10


@pytest.mark.parametrize("number", range(3))
def test_a_folder_with_a_flipped_bit_is_refused(full, number):
    backup(full.home, full.root / "kept")
    names = sorted(tree(full.root / "kept"))
    path = full.root / "kept" / names[number * 6]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)
    refused(full, full.root / "kept")


@pytest.mark.parametrize("name", ["vault/17-Notes/bare.md", "manifest.json", "memory.db"])
def test_a_folder_that_lacks_a_file_is_refused(full, name):
    backup(full.home, full.root / "kept")
    (full.root / "kept" / name).unlink()
    refused(full, full.root / "kept")


@pytest.mark.parametrize("name", ["vault/more.md", "more.md", "vault/../x", "ledger.txt"])
def test_a_folder_with_a_file_too_many_is_refused(full, name):
    backup(full.home, full.root / "kept")
    (full.root / "kept" / name).write_text("x")
    refused(full, full.root / "kept")


@posix
def test_a_folder_with_a_link_or_a_pipe_is_refused(full):
    backup(full.home, full.root / "kept")
    card = full.root / "kept/vault/17-Notes/bare.md"
    data = card.read_bytes()
    card.unlink()
    (full.root / "outside.md").write_bytes(data)
    card.symlink_to(full.root / "outside.md")
    refused(full, full.root / "kept", "is no plain file")
    card.unlink()
    os.mkfifo(card)
    refused(full, full.root / "kept", "is no plain file")


def test_what_is_no_backup_at_all_is_refused(full):
    for name, data in {
        "text.tar.gz": b"just text",
        "zeros.tar.gz": bytes(100_000),
        "packed.tar.gz": gzip.compress(b"just text"),
        "packed-zeros.tar.gz": gzip.compress(bytes(100_000)),
        "empty.tar.gz": b"",
    }.items():
        (full.root / name).write_bytes(data)
        refused(full, full.root / name)
    (full.root / "folder").mkdir()
    refused(full, full.root / "folder", "it has no manifest")
    refused(full, full.root / "nowhere", "there is no backup at")


def member(name: str, data: bytes = b"", **values) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for key, value in values.items():
        setattr(info, key, value)
    return info, data


def packed(path: Path, *members: tuple[tarfile.TarInfo, bytes], manifest: dict | None = None):
    """An archive made by somebody else, with a manifest that fits unless another is given."""
    if manifest is None:
        manifest = {
            "format": 1,
            "version": "0",
            "created": "2026-01-01",
            "home": "/",
            "sources": [],
            "left_out": [],
            "links": [],
            "files": [
                {
                    "path": info.name,
                    "size": len(data),
                    "sha256": hashlib.sha256(data).hexdigest(),
                    "mtime_ns": 0,
                    "mode": 0o644,
                }
                for info, data in members
            ],
        }
    with tarfile.open(path, "w:gz") as tar:
        for info, data in [*members, member("manifest.json", json.dumps(manifest).encode())]:
            tar.addfile(info, io.BytesIO(data))
    return path


def test_an_archive_that_somebody_else_made_well_is_taken(full):
    path = packed(full.root / "theirs.tar.gz", member("vault/a.md", b"# A card\n\nWith text.\n"))
    assert restore(path, fresh(full)).counts == {"vault": 1}
    assert (full.root / "fresh/vault/a.md").read_bytes() == b"# A card\n\nWith text.\n"


@pytest.mark.parametrize(
    "name",
    [
        "/etc/cron.d/x",
        "../outside.md",
        "vault/../../outside.md",
        "vault/..",
        "vault/./a.md",
        "vault//a.md",
        "./vault/a.md",
        "vault",
        "other/a.md",
        "secrets.txt",
        "memory.db/x.md",
        ".bashrc",
        "vault/a\0b.md",
        "",
    ],
)
def test_names_that_have_no_place_in_a_home_are_refused(full, name):
    try:
        path = packed(full.root / "hostile.tar.gz", member(name, b"x"))
    except ValueError:
        pytest.fail("tarfile cannot even write it")
    refused(full, path)
    assert not (full.root / "outside.md").exists()


@pytest.mark.parametrize(
    "values",
    [
        {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"},
        {"type": tarfile.SYMTYPE, "linkname": "b.md"},
        {"type": tarfile.LNKTYPE, "linkname": "/etc/passwd"},
        {"type": tarfile.LNKTYPE, "linkname": "vault/b.md"},
        {"type": tarfile.CHRTYPE, "devmajor": 1, "devminor": 3},
        {"type": tarfile.BLKTYPE, "devmajor": 8},
        {"type": tarfile.FIFOTYPE},
        {"type": tarfile.DIRTYPE},
        {"type": b"Z"},
    ],
)
def test_what_is_no_plain_file_is_refused(full, values):
    path = packed(full.root / "hostile.tar.gz", member("vault/a.md", **values))
    if values["type"] == b"Z":
        refused(full, path)  # An unknown type counts as a plain file, and is none.
    else:
        refused(full, path, "is no plain file")


def test_a_name_that_stands_twice_is_refused(full):
    twice = [member("vault/a.md", b"x"), member("vault/a.md", b"x")]
    refused(full, packed(full.root / "hostile.tar.gz", *twice), "is in it twice")


def test_sizes_that_are_absurd_are_refused_before_anything_is_read(full):
    info, _ = member("vault/a.md")
    info.size = 1 << 50
    block = info.tobuf(tarfile.GNU_FORMAT)
    path = full.root / "hostile.tar.gz"
    path.write_bytes(gzip.compress(block + bytes(1024)))
    refused(full, path, "absurd size")


def test_a_header_that_would_fill_the_memory_is_refused(full):
    info, _ = member("x", type=tarfile.XHDTYPE)
    info.size = 200_000_000
    path = full.root / "bomb.tar.gz"
    with gzip.open(path, "wb", 1) as file:
        file.write(info.tobuf(tarfile.USTAR_FORMAT))
        for _ in range(200):
            file.write(bytes(1_000_000))
    refused(full, path, "it is damaged")


def test_more_than_there_is_room_for_is_refused(full, monkeypatch):
    path = packed(full.root / "large.tar.gz", member("vault/a.md", b"x" * 5000))

    class Usage:
        free = 4000

    monkeypatch.setattr(backups.shutil, "disk_usage", lambda path: Usage)
    refused(full, path, "the backup needs 0.0 MB")


def test_more_data_behind_the_end_is_refused(full):
    path = packed(full.root / "theirs.tar.gz", member("vault/a.md", b"x"))
    path.write_bytes(path.read_bytes() + gzip.compress(b"hidden" * 2000))
    refused(full, path)


@pytest.mark.parametrize(
    "manifest",
    [
        {},
        [],
        {"format": 2},
        {"format": 1, "files": []},
        {"format": 1, "version": "", "created": "", "home": "", "sources": [], "left_out": [],
         "links": [], "files": [{"path": "vault/a.md"}]},
        {"format": 1, "version": "", "created": "", "home": "", "sources": [], "left_out": [],
         "links": [], "files": []},
        {"format": 1, "version": "", "created": "", "home": "", "sources": [], "left_out": [],
         "links": [], "files": [{"path": "vault/a.md", "size": 1, "sha256": "0" * 64,
                                 "mtime_ns": 0, "mode": 0}]},
    ],
)  # fmt: skip
def test_a_manifest_that_does_not_fit_is_refused(full, manifest):
    path = packed(full.root / "x.tar.gz", member("vault/a.md", b"x"), manifest=manifest)
    refused(full, path, "cannot be used|another version")


@pytest.mark.parametrize("raw", [b"", b"{", b"[" * 100_000, b"\xff", b"null", b'{"format": 1e999}'])
def test_a_manifest_that_is_none_is_refused(full, raw):
    path = full.root / "x.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        tar.addfile(
            *map(
                lambda x: io.BytesIO(x) if isinstance(x, bytes) else x, member("manifest.json", raw)
            )
        )
    refused(full, path, "cannot be used|another version")


@posix
@pytest.mark.parametrize(
    "path, target",
    [
        ("vault/a", "/etc"),
        ("vault/a", "../../outside"),
        ("../a", "vault"),
        ("vault/../../a", "b.md"),
        ("ledger/a", "b.md"),
        ("vault", "x"),
        ("vault/x/a", "../../.."),
    ],
)
def test_links_in_a_manifest_lead_nowhere_else(full, path, target):
    file = packed(full.root / "x.tar.gz", member("vault/b.md", b"# B\n\ntext\n"))
    with tarfile.open(file) as tar:
        manifest = json.load(tar.extractfile("manifest.json"))
    # A link into a folder that another link makes.
    manifest["links"] = [
        {"path": path, "target": target},
        {"path": "vault/here", "target": "."},
        {"path": "vault/here/again", "target": "b.md"},
    ]
    file = packed(full.root / "y.tar.gz", member("vault/b.md", b"# B\n\ntext\n"), manifest=manifest)
    done = restore(file, fresh(full))
    root = full.root / "fresh"
    for folder, folders, names in os.walk(root):
        for name in folders + names:
            real = os.path.realpath(os.path.join(folder, name))
            assert real.startswith(str(root) + os.sep)
    assert not os.path.lexists(full.root / "a")
    assert sum("was left out" in note for note in done.notes) >= 1


def test_a_mode_in_a_manifest_gives_no_special_powers(full):
    file = packed(full.root / "x.tar.gz", member("vault/b.md", b"x"))
    with tarfile.open(file) as tar:
        manifest = json.load(tar.extractfile("manifest.json"))
    manifest["files"][0]["mode"] = 0o106755
    file = packed(full.root / "y.tar.gz", member("vault/b.md", b"x"), manifest=manifest)
    restore(file, fresh(full))
    assert (full.root / "fresh/vault/b.md").stat().st_mode & 0o7000 == 0


# Disks that fail


LIMITED = textwrap.dedent(
    """
    import resource, sys
    from datasette_memory.errors import MemoryFault
    from datasette_memory.govern.backup import backup, restore
    from datasette_memory.home import resolve
    what, one, two, limit = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
    try:
        if what == "backup":
            backup(resolve(one), two)
        else:
            restore(one, resolve(two))
    except MemoryFault as error:
        print(error, "|", error.hint)
        sys.exit(2)
    """
)


def limited(*arguments) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", LIMITED, *map(str, arguments)], capture_output=True, text=True
    )


@posix
@both
@pytest.mark.parametrize("limit", [1_000, 30_000, 200_000])
def test_a_backup_that_the_disk_has_no_room_for(full, name, limit):
    (full.vault / "large.bin").write_bytes(random.Random(1).randbytes(300_000))
    full.calm()
    before = truth(full.home.home)
    (full.root / "kept").mkdir()
    done = limited("backup", full.home.home, full.root / "kept" / name, limit)
    assert (done.returncode, done.stderr) == (2, "")
    assert "nothing is left of it" in done.stdout
    assert os.listdir(full.root / "kept") == []
    assert truth(full.home.home) == before
    done = limited("backup", full.home.home, full.root / "kept" / name, 10_000_000)
    assert done.returncode == 0, done.stdout + done.stderr
    assert archives.inspect(full.root / "kept" / name).counts()["vault"] == 10


@posix
@both
def test_a_restore_that_the_disk_has_no_room_for(full, name):
    (full.vault / "large.bin").write_bytes(random.Random(1).randbytes(300_000))
    backup(full.home, full.root / name)
    before = sorted(os.listdir(full.root))
    done = limited("restore", full.root / name, full.root / "fresh", 200_000)
    assert (done.returncode, done.stderr) == (2, "")
    assert "cannot be written: File too large" in done.stdout
    assert sorted(os.listdir(full.root)) == before


@pytest.fixture
def small(place):
    """A home small enough to fail at each of its steps."""
    for folder in ("evidence",):
        shutil.rmtree(place.home.home / folder)
    for path in list(place.vault.rglob("*.md"))[1:]:
        path.unlink()
    place.calm()
    place.db.unlink()
    (place.root / "kept").mkdir()
    return place


@both
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_a_backup_fails_whole_at_any_call(small, name, number, monkeypatch):
    calls: list[str] = []
    destination = small.root / "kept" / name
    real = durable.system
    monkeypatch.setattr(durable, "system", armed(real, None, BEFORE, calls))
    backup(small.home, destination)
    (shutil.rmtree if destination.is_dir() else os.unlink)(destination)
    before = tree(small.home.home)
    count = len(calls)
    for step in range(1, count + 1):
        calls.clear()
        monkeypatch.setattr(durable, "system", armed(real, step, number, calls))
        with pytest.raises(MemoryFault) as caught:
            backup(small.home, destination)
        if destination.exists():
            # It failed after that got its name.
            assert "is written and whole" in str(caught.value)
            assert calls[:step].count("rename") == 1
            archives.inspect(destination)
            (shutil.rmtree if destination.is_dir() else os.unlink)(destination)
        else:
            assert "cannot be written" in str(caught.value)
        assert os.listdir(small.root / "kept") == [], (step, calls[step - 1])
        assert tree(small.home.home) == before
    assert count >= 5


@posix
@both
def test_a_backup_that_is_killed_has_its_name_whole_or_not_at_all(small, name, monkeypatch):
    calls: list[str] = []
    destination = small.root / "kept" / name
    real = durable.system
    monkeypatch.setattr(durable, "system", armed(real, None, BEFORE, calls))
    backup(small.home, destination)
    (shutil.rmtree if destination.is_dir() else os.unlink)(destination)
    survived = 0
    for step in range(1, len(calls) + 1):
        for how in (BEFORE, HALFWAY, AFTER):
            child = os.fork()
            if child == 0:
                durable.system = armed(real, step, how)
                with contextlib.suppress(BaseException):
                    backup(small.home, destination)
                os._exit(0)
            _, status = os.waitpid(child, 0)
            assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
            if destination.exists():
                archives.inspect(destination)
                survived += 1
            for entry in os.listdir(small.root / "kept"):
                path = small.root / "kept" / entry
                assert path == destination or entry.startswith(".tmp-backup-")
                (shutil.rmtree if path.is_dir() else os.unlink)(path)
    assert survived >= 1


@both
def test_a_restore_fails_whole_at_any_call(small, name, monkeypatch):
    source = small.root / name
    backup(small.home, source)
    (small.root / "kept").rmdir()
    home = fresh(small)
    (home.home / "vault").mkdir(parents=True)
    (home.home / "vault/mine.md").write_text("# Mine\n")
    before, listed = tree(small.root / "fresh"), sorted(os.listdir(small.root))
    calls: list[str] = []
    real = durable.system
    monkeypatch.setattr(backups, "_bring_up", lambda home, notes: "left alone")
    step = 0
    while True:
        step += 1
        calls.clear()
        monkeypatch.setattr(durable, "system", armed(real, step, errno.ENOSPC, calls))
        try:
            done = restore(source, home, force=True)
        except MemoryFault:
            assert tree(home.home) == before, (step, calls)
            assert sorted(os.listdir(small.root)) == listed, (step, calls)
        else:
            break
    assert len(calls) < step
    assert step > 10
    assert tree(Path(done.moved_aside[0])) == before


@posix
@pytest.mark.parametrize("mounted", [False, True])
def test_what_a_killed_restore_left_is_told_and_goes_with_the_next(full, monkeypatch, mounted):
    from datasette_memory.govern.doctor import checks

    def looked() -> str:
        return {one.name: one.what for one in checks(home)}["temporary files"]

    backup(full.home, full.root / "kept")
    home = fresh(full, "deep/fresh")
    home.home.mkdir(parents=True)
    place = home.home if mounted else home.home.parent
    if mounted:
        monkeypatch.setattr(backups.os.path, "ismount", lambda path: Path(path) == home.home)
    child = os.fork()
    if child == 0:
        durable.system = armed(durable.system, 20, BEFORE)
        with contextlib.suppress(BaseException):
            restore(full.root / "kept", home)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)
    (left,) = place.glob(".tmp-restore-*")
    # One that goes on: it was begun by a process that lives.
    other = place / durable.temporary_name("restore-")
    other.mkdir()
    assert looked() == f"1 unfinished file left by a program that died: {left}"
    if mounted:
        other.rmdir()
    done = restore(full.root / "kept", home)
    assert not left.exists()
    if not mounted:
        assert f"{other} was left alone: another restore may be at work on it" in done.notes
        other.rmdir()
    assert looked() == "none are left over"
    assert verify_at(full, home).ok


def test_an_archive_that_changes_while_it_is_read_is_refused(full, monkeypatch):
    backup(full.home, full.root / "kept")
    real = backups.inspect

    def inspect(path, packed=None):
        found = real(path, packed)
        (path / "vault/17-Notes/bare.md").write_text("# Swapped\n")
        return found

    monkeypatch.setattr(backups, "inspect", inspect)
    refused(full, full.root / "kept", "was changed while it was read")


@pytest.mark.parametrize("more", [False, True])
def test_an_archive_that_gains_or_loses_a_file_while_it_is_read_is_refused(full, monkeypatch, more):
    backup(full.home, full.root / "kept")
    real = backups.inspect

    def inspect(path, packed=None):
        found = real(path, packed)
        if more:
            (path / "vault/more.md").write_text("# More\n")
        else:
            (path / "vault/17-Notes/bare.md").unlink()
        return found

    monkeypatch.setattr(backups, "inspect", inspect)
    refused(full, full.root / "kept", "was changed while it was read")


def test_two_names_that_are_one_to_a_disk_are_told(full, monkeypatch):
    (full.vault / "a.md").write_text("one")
    (full.vault / "A.md").write_text("two")
    if len(list(full.vault.glob("[aA].md"))) == 1:
        return  # Nobody can have both here.
    real = archives.Sink

    def folding(path):
        path = Path(path)
        return real(path.with_name("a.md") if path.name == "A.md" else path)

    monkeypatch.setattr(archives, "Sink", folding)
    monkeypatch.setattr(archives.os, "utime", lambda path, ns: None)
    with pytest.raises(MemoryFault, match="'vault/a.md' for the name of another file"):
        backup(full.home, full.root / "kept")
    assert not (full.root / "kept").exists()


def test_reports_are_objects_for_every_surface(full):
    started = time.monotonic()
    found = backup(full.home, full.root / "kept").to_dict()
    assert 0 < found["seconds"] <= time.monotonic() - started + 0.001
    assert json.loads(json.dumps(found)) == found
    assert sorted(found) == [
        "bytes", "counts", "files", "index", "left_out", "moved_aside", "notes", "ok", "path",
        "seconds", "sources",
    ]  # fmt: skip
