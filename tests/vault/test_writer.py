import errno
import hashlib
import os
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from datasette_memory import durable
from datasette_memory.errors import MemoryFault, NotFound
from datasette_memory.vault.card import parse_card
from datasette_memory.vault.names import name_key
from datasette_memory.vault.revise import updated_text
from datasette_memory.vault.writer import Conflict, Trashed, Vault, new_text, text_of

NFC, NFD = "Andr\u00e9.md", "Andre\u0301.md"


@pytest.fixture
def vault(tmp_path):
    return Vault(tmp_path / "vault")


def put(vault, path, text="Text\n"):
    file = vault.root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode())
    return file


def files(vault):
    """Every file below the root with its text, hidden and temporary ones too."""
    return {
        file.relative_to(vault.root).as_posix(): file.read_text(encoding="utf-8")
        for file in vault.root.rglob("*")
        if file.is_file()
    }


def sha(text):
    return hashlib.sha256(text.encode()).hexdigest()


# --- paths ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "folder"),
    [
        ("decision", "09-Decisions"),
        ("code_change", "10-Code"),
        ("Code Change", "10-Code"),
        ("note", "17-Notes"),
        (None, "17-Notes"),
        ("", "17-Notes"),
        ("misc", "99-Misc"),
        # Never a folder by a name that is not in the table.
        ("meeting", "99-Misc"),
        ("../../etc", "99-Misc"),
        ("node_modules", "99-Misc"),
    ],
)
def test_the_folder_of_a_kind(vault, kind, folder):
    assert vault.path_for(kind, "端口 约定") == f"{folder}/端口-约定.md"
    assert not vault.root.exists()


def test_a_folder_that_is_there_in_another_case_is_used(vault):
    put(vault, "09-DECISIONS/old.md")
    put(vault, "12-facts", "a file")
    assert vault.create("x", "decision", "New") == "09-DECISIONS/New.md"
    assert vault.path_for("fact", "New") == "12-Facts/New.md"


# --- create --------------------------------------------------------------------------------


def test_create_writes_the_text_and_makes_the_folder(vault):
    text = new_text({"id": "D_0001", "title": "端口：8765", "kind": "decision"}, "正文。\n")
    path = vault.create(text, "decision", "端口：8765")
    assert path == "09-Decisions/端口：8765.md"
    assert files(vault) == {path: text}
    card = parse_card(vault.read(path), path)
    assert (card.title, card.kind, card.ref, card.body) == (
        "端口：8765",
        "decision",
        "D_0001",
        "正文。\n",
    )


def test_namesakes_get_numbers(vault):
    paths = [vault.create(f"{n}", "fact", "Port") for n in range(3)]
    assert paths == ["12-Facts/Port.md", "12-Facts/Port-2.md", "12-Facts/Port-3.md"]
    assert files(vault) == dict(zip(paths, "012"))


@pytest.mark.parametrize(
    ("there", "title", "name"),
    [
        ("port.MD", "PORT", "PORT-2.md"),
        ("straße.md", "STRASSE", "STRASSE-2.md"),
        (NFD, "Andr\u00e9", "Andr\u00e9-2.md"),
        (NFC, "ANDRE\u0301", "ANDR\u00c9-2.md"),
        ("a-b.md", "A/B", "A-B-2.md"),
        ("Port-2.md", "Port", "Port.md"),
    ],
)
def test_names_that_a_mac_or_windows_takes_for_one_are_namesakes(vault, there, title, name):
    put(vault, f"12-Facts/{there}", "old")
    path = vault.create("new", "fact", title)
    assert path == f"12-Facts/{name}"
    assert files(vault) == {f"12-Facts/{there}": "old", path: "new"}


def test_a_name_is_taken_by_whatever_has_it(vault):
    (vault.root / "12-Facts" / "Port.md").mkdir(parents=True)
    (vault.root / "12-Facts" / "Port-2.md").symlink_to("nowhere")
    assert vault.create("new", "fact", "Port") == "12-Facts/Port-3.md"
    assert not (vault.root / "12-Facts" / "nowhere").exists()


def test_the_index_may_answer_instead_of_the_folder(vault):
    known = {name_key("12-Facts/PORT.md"), name_key("12-Facts/port-2.md")}
    asked = []

    def taken(key):
        asked.append(key)
        return key in known

    assert vault.create("new", "fact", "Port", taken) == "12-Facts/Port-3.md"
    assert asked == ["12-facts/port.md", "12-facts/port-2.md", "12-facts/port-3.md"]
    # What the index does not know is not overwritten all the same.
    put(vault, "12-Facts/Ärger.md", "old")
    assert vault.create("new", "fact", "Ärger", lambda key: False) == "12-Facts/Ärger-2.md"
    assert (vault.root / "12-Facts" / "Ärger.md").read_text(encoding="utf-8") == "old"


CREATE = """
import sys, time
from datasette_memory.vault.writer import Vault
vault = Vault(sys.argv[1])
sys.stdin.readline()
for n in range(5):
    taken = None if n % 2 else lambda key: False
    print(vault.create(f"{sys.argv[2]}-{n}", "fact", "同一个 Title", taken), flush=True)
"""


def test_eight_processes_that_create_one_title_give_as_many_names(vault):
    writers = [
        subprocess.Popen(
            [sys.executable, "-X", "utf8", "-c", CREATE, str(vault.root), str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        for number in range(8)
    ]
    for writer in writers:
        writer.stdin.write("go\n")
        writer.stdin.flush()
    paths = {}
    for number, writer in enumerate(writers):
        out, _ = writer.communicate(timeout=120)
        assert writer.returncode == 0
        for n, path in enumerate(out.splitlines()):
            assert path not in paths
            paths[path] = f"{number}-{n}"
    assert len(paths) == 40
    assert files(vault) == paths
    assert paths.keys() == {
        "12-Facts/同一个-Title.md",
        *(f"12-Facts/同一个-Title-{number}.md" for number in range(2, 41)),
    }


@pytest.mark.parametrize("text", ["half \ud83d", "x" * (2 * 1024 * 1024 + 1)])
def test_a_text_that_cannot_be_a_card_is_refused(vault, text):
    path = vault.create("old", "fact", "T")
    with pytest.raises(MemoryFault):
        vault.create(text, "fact", "New")
    with pytest.raises(MemoryFault):
        vault.replace(path, text, sha("old"))
    assert files(vault) == {path: "old"}


def test_a_folder_that_leads_out_is_refused(vault, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    vault.root.mkdir()
    (vault.root / "12-Facts").symlink_to(outside, target_is_directory=True)
    (vault.root / ".trash").symlink_to(outside, target_is_directory=True)
    put(vault, "a.md")
    with pytest.raises(MemoryFault, match="out of the vault"):
        vault.create("x", "fact", "T")
    with pytest.raises(MemoryFault, match="out of the vault"):
        vault.trash("a.md")
    assert list(outside.iterdir()) == []
    # One that stays inside is a folder like others.
    (vault.root / "notes").mkdir()
    (vault.root / "17-Notes").symlink_to("notes", target_is_directory=True)
    assert vault.create("x", "note", "T") == "17-Notes/T.md"
    assert (vault.root / "notes" / "T.md").read_text() == "x"


def test_what_the_disk_refuses_is_an_os_error_and_leaves_nothing(vault, monkeypatch):
    path = vault.create("old", "fact", "T")

    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(durable.system, "write", full)
    with pytest.raises(OSError, match="No space left"):
        vault.create("new", "fact", "New")
    with pytest.raises(OSError, match="No space left"):
        vault.replace(path, "new", sha("old"))
    assert files(vault) == {path: "old"}


# --- replace -------------------------------------------------------------------------------


def test_replace(vault):
    path = vault.create("---\nx: 1  # c\n---\nOld", "fact", "T")
    data = vault.read(path)
    text = updated_text(text_of(data, path), {"version": 2}, "New\n")
    assert vault.replace(path, text, hashlib.sha256(data).hexdigest()) == sha(text)
    assert files(vault) == {path: "---\nversion: 2\nx: 1  # c\n---\nNew\n"}


def test_replace_of_a_card_that_changed_meanwhile_is_a_conflict(vault):
    path = vault.create("old", "fact", "T")
    put(vault, path, "by an editor")
    with pytest.raises(Conflict, match="changed by somebody else"):
        vault.replace(path, "new", sha("old"))
    assert files(vault) == {path: "by an editor"}
    with pytest.raises(NotFound):
        vault.replace("12-Facts/gone.md", "new", sha("old"))
    assert files(vault) == {path: "by an editor"}


def test_bytes_survive_on_the_way(vault):
    text = "\ufeff---\r\ntitle: T\r\n---\r\na\nb\r"
    path = vault.create(text, "fact", "T")
    assert vault.read(path) == text.encode()
    assert text_of(vault.read(path), path) == text
    with pytest.raises(MemoryFault, match="UTF-8"):
        text_of("端口".encode("gbk"), path)


def test_a_name_in_nfd_is_found_by_its_path(vault):
    file = put(vault, f"12-Facts/Andre\u0301/{NFD}", "old")
    path = f"12-Facts/Andr\u00e9/{NFC}"
    vault.replace(path, "new", sha("old"))
    assert file.read_text() == "new"
    assert len(files(vault)) == 1
    gone = vault.trash(path)
    assert gone.endswith(path)
    assert [item.trash_path for item in vault.trashed()] == [gone]
    assert vault.restore(gone) == path
    # In the folder that it came from, not in a twin.
    assert list((vault.root / "12-Facts").iterdir()) == [file.parent]
    assert vault.read(path) == b"new"


def test_a_link_is_followed_inside_the_vault_only(vault, tmp_path):
    real = put(vault, "17-Notes/real.md", "old")
    secret = tmp_path / "secret.md"
    secret.write_text("secret")
    (vault.root / "in.md").symlink_to("17-Notes/real.md")
    (vault.root / "out.md").symlink_to(secret)
    (vault.root / "lost.md").symlink_to("nothing.md")
    (vault.root / "up").symlink_to(tmp_path, target_is_directory=True)
    vault.replace("in.md", "new", sha("old"))
    assert real.read_text() == "new"
    assert (vault.root / "in.md").is_symlink()
    for path in ("out.md", "up/secret.md"):
        for call in (vault.read, vault.trash, lambda path: vault.replace(path, "x", sha("secret"))):
            with pytest.raises(MemoryFault, match="out of the vault"):
                call(path)
    with pytest.raises(NotFound):
        vault.replace("lost.md", "x", sha(""))
    assert secret.read_text() == "secret"
    # A link goes to the trash itself; what it leads to is a card of its own.
    assert vault.trash("in.md").endswith("/in.md")
    assert real.read_text() == "new"


@pytest.mark.parametrize(
    "path",
    ["../x.md", "/etc/x.md", "a/../../x.md", "a//x.md", "./x.md", "", "/", "x.md/", "x\0.md"]
    + [
        ".trash/x.md",
        ".git/x.md",
        "a/.obsidian/x.md",
        ".x.md",
        "script.py",
        "12-Facts",
        "~/../x.md",
    ],
)
def test_paths_that_are_not_those_of_cards_are_refused(vault, tmp_path, path):
    inside = put(vault, "script.py", "code")
    put(vault, ".git/x.md", "git")
    (tmp_path / "x.md").write_text("outside")
    before = files(vault)
    for call in (vault.read, vault.trash, lambda path: vault.replace(path, "x", sha("code"))):
        with pytest.raises(MemoryFault):
            call(path)
    assert files(vault) == before
    assert inside.read_text() == "code"
    assert (tmp_path / "x.md").read_text() == "outside"


def test_what_is_no_file_is_refused(vault):
    (vault.root / "folder.md").mkdir(parents=True)
    for call in (vault.read, vault.trash, lambda path: vault.replace(path, "x", sha(""))):
        with pytest.raises(MemoryFault, match="regular file"):
            call("folder.md")
    if hasattr(os, "mkfifo"):
        os.mkfifo(vault.root / "pipe.md")
        with pytest.raises(MemoryFault, match="regular file"):
            vault.read("pipe.md")


# --- trash ---------------------------------------------------------------------------------

NOW = datetime(2026, 12, 1, 10, 3, 4, 567_890, tzinfo=timezone(timedelta(hours=8)))


def test_trash_and_restore(vault):
    path = vault.create("text", "fact", "端口")
    file = vault.root / path
    os.utime(file, (1_700_000_000, 1_700_000_000))
    gone = vault.trash(path, now=NOW)
    assert gone == ".trash/20261201-020304-567/12-Facts/端口.md"
    assert files(vault) == {gone: "text"}
    when = datetime(2026, 12, 1, 2, 3, 4, 567_000, tzinfo=timezone.utc)
    assert vault.trashed() == [Trashed(gone, path, when)]
    assert vault.restore(gone) == path
    assert files(vault) == {path: "text"}
    assert file.stat().st_mtime == 1_700_000_000
    assert vault.trashed() == []


def test_the_folders_of_the_trash_go_with_the_last_card_in_them(vault):
    gone = []
    for path in ("12-Facts/a.md", "12-Facts/b.md"):
        put(vault, path, path)
        gone.append(vault.trash(path, now=NOW))
    os.rmdir(vault.root / "12-Facts")
    (vault.root / "empty").mkdir()
    assert vault.restore(gone[0]) == "12-Facts/a.md"
    assert (vault.root / gone[1]).is_file()
    assert vault.restore(gone[1]) == "12-Facts/b.md"
    assert os.listdir(vault.root / ".trash") == []
    # Folders that the user made are no business of ours.
    assert (vault.root / "empty").is_dir()


def test_one_path_can_go_twice_in_one_moment(vault):
    gone = []
    for text in "abc":
        put(vault, "a.md", text)
        gone.append(vault.trash("a.md", now=NOW))
    put(vault, "b.md", "b")
    gone.append(vault.trash("b.md", now=NOW))
    stamps = ["567", "568", "569", "567"]
    assert gone == [
        f".trash/20261201-020304-{stamp}/{name}.md" for stamp, name in zip(stamps, "aaab")
    ]
    assert list(files(vault).values()).count("b") == 2
    assert [item.trash_path for item in vault.trashed()] == [gone[2], gone[1], gone[3], gone[0]]


def test_restore_never_overwrites(vault):
    put(vault, "12-Facts/Port.md", "first")
    first = vault.trash("12-Facts/Port.md")
    put(vault, "12-Facts/PORT.md", "second")
    put(vault, "12-Facts/port-2.md", "third")
    assert vault.restore(first) == "12-Facts/Port-3.md"
    assert files(vault) == {
        "12-Facts/PORT.md": "second",
        "12-Facts/port-2.md": "third",
        "12-Facts/Port-3.md": "first",
    }
    put(vault, "a.markdown", "old")
    gone = vault.trash("a.markdown")
    put(vault, "a.markdown", "new")
    assert vault.restore(gone) == "a-2.markdown"


@pytest.mark.parametrize(
    "path",
    [
        "",
        "12-Facts/x.md",
        ".trash/x.md",
        ".trash/notes/x.md",
        ".trash/20261201-020304-567",
        ".trash/20261201-020304-567/../../../x.md",
        ".trash/20261201-020304-567/../../12-Facts/x.md",
        ".trash/../20261201-020304-567/x.md",
        ".trash/20261201-020304-567/.git/config.md",
        ".trash/20261201-020304-567/x.py",
        ".trash/20261201-020304-567/gone.md",
        ".trash/20261201-020304-567/link.md",
        ".trash/20261201-020304-567/up/x.md",
    ],
)
def test_only_what_is_in_the_trash_is_restored(vault, tmp_path, path):
    (tmp_path / "x.md").write_text("outside")
    put(vault, "12-Facts/x.md", "card")
    put(vault, ".trash/notes/x.md", "somebody's")
    put(vault, ".trash/20261201-020304-567/x.py", "code")
    put(vault, ".trash/20261201-020304-567/.git/config.md", "git")
    (vault.root / ".trash/20261201-020304-567/link.md").symlink_to(tmp_path / "x.md")
    (vault.root / ".trash/20261201-020304-567/up").symlink_to(tmp_path, target_is_directory=True)
    before = files(vault)
    with pytest.raises(MemoryFault):
        vault.restore(path)
    assert files(vault) == before
    assert (tmp_path / "x.md").read_text() == "outside"


def test_trashed_passes_over_what_is_not_its_own(vault):
    assert vault.trashed() == []
    put(vault, ".trash/notes/x.md")
    put(vault, ".trash/20269901-020304-567/x.md")
    put(vault, ".trash/20261201-020304-567/.tmp-1")
    assert vault.trashed() == []


def test_a_vault_behind_a_link_is_the_folder_that_it_leads_to(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real", target_is_directory=True)
    vault = Vault(tmp_path / "link")
    path = vault.create("x", "note", "T")
    assert vault.restore(vault.trash(path)) == path
    assert Path(tmp_path / "real" / path).read_text() == "x"
