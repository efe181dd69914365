"""Changes that cannot be made now: kept, made later in their order, or laid aside."""

import errno
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from datasette_memory import durable
from datasette_memory.errors import MemoryFault
from datasette_memory.index import lock
from datasette_memory.memory import Memory
from datasette_memory.pending import ATTEMPTS, Pending


def _load(name):
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


homes = _load("homes")

BODY = "站点根目录在 /srv/www/orchid，不是 /var/www，改之前先看一眼。"
OTHER = "站点的日志在 /var/log/orchid，每天凌晨轮转一次，留三十天。"
THIRD = "站点的备份在 /srv/backup，每周日凌晨跑一次，留八个星期。"


@pytest.fixture
def home():
    with homes.place() as folder:
        yield folder / "home"


@pytest.fixture
def memory(home) -> Memory:
    return Memory(str(home))


class Disk:
    """Lets every call that writes below a folder fail."""

    def __init__(self, monkeypatch, folder: Path) -> None:
        self.monkeypatch = monkeypatch
        self.folder = str(folder)

    def fill(self, number: int = errno.ENOSPC) -> None:
        real = vars(durable.system).copy()

        def refusing(name):
            def call(path, *arguments, **keywords):
                if str(path).startswith(self.folder):
                    raise OSError(number, os.strerror(number), str(path))
                return real[name](path, *arguments, **keywords)

            return call

        for name in ("open", "mkdir", "rename", "replace", "unlink"):
            self.monkeypatch.setattr(durable.system, name, refusing(name))

    def mend(self) -> None:
        self.monkeypatch.undo()


@pytest.fixture
def full(monkeypatch, home):
    """The vault is full, the rest of the home is not."""
    return Disk(monkeypatch, home / "vault")


def texts(home: Path) -> dict[str, str]:
    """The body of every card by its path."""
    return {
        path: data.decode().split("---\n", 2)[2].strip() for path, data in homes.cards(home).items()
    }


def test_a_full_disk_and_what_becomes_of_it(memory, home, full):
    memory.capture("站点", BODY)
    full.fill()
    change = memory.capture(
        "日志", OTHER, kind="decision", tags=["甲", "乙"], relates=[("caused_by", "N_0001")],
        raw="原文", by={"surface": "mcp", "agent": "审查", "session": "s1"},
    )  # fmt: skip
    assert (change.status, change.indexed, change.ref) == ("pending", False, None)
    assert "No space left" in change.reason and str(home / "vault") in change.reason
    [record] = homes.pending(home)
    assert change.pending_path == str(next((home / "pending").glob("*.json")))
    assert (record["v"], record["change"], record["attempts"]) == (1, "capture", 0)
    assert list(texts(home)) == ["17-Notes/站点.md"]

    still = memory.sync_pending().to_dict()
    assert (still["done"], still["dead"], still["left"]) == ([], [], 0)
    assert still["failed"][0]["attempts"] == 1 and "No space" in still["failed"][0]["reason"]

    full.mend()
    done = memory.sync_pending().to_dict()
    assert [(one["status"], one["ref"], one["indexed"]) for one in done["done"]] == [
        ("created", "D_0001", True)
    ]
    assert (done["failed"], done["dead"], homes.pending(home)) == ([], [], [])
    card = memory.show("D_0001").card
    assert (card["tags"], card["relations"][0]["target"]) == (["甲", "乙"], "N_0001")
    assert memory.raw("D_0001")["text"] == "原文"
    event = homes.events(home, "created")[-1]
    assert event["by"] == {"surface": "mcp", "agent": "审查", "session": "s1"}
    assert event["queued"] == record["t"]
    assert memory.sync_pending().to_dict() == {
        "done": [], "failed": [], "dead": [], "left": 0, "elsewhere": [],
    }  # fmt: skip


def test_the_oldest_comes_first(memory, home, full, monkeypatch):
    memory.capture("站点", BODY)
    full.fill()
    moments = iter([5, 5, 5, 4, 3])  # The clock stands still, and then goes back.
    with monkeypatch.context() as clock:
        clock.setattr("datasette_memory.pending.now_ms", lambda: 1_800_000_000_000 + next(moments))
        memory.update("N_0001", body=f"{BODY} 第二版")
        memory.update("N_0001", body=f"{BODY} 第三版")
        memory.capture("日志", OTHER)
        memory.update("站点", tags=["甲"])
        memory.supersede("N_0001", "站点", THIRD)
    assert [record["change"] for record in homes.pending(home)] == [
        "update", "update", "capture", "update", "supersede",
    ]  # fmt: skip
    full.mend()
    result = memory.sync_pending()
    assert (result.failed, result.dead) == ([], [])
    assert [(one["status"], one["version"]) for one in result.done] == [
        ("updated", 2), ("updated", 3), ("created", 1), ("updated", 4), ("superseded", 1),
    ]  # fmt: skip
    old = memory.show("N_0001").card
    assert (old["tags"], old["superseded_by"], old["version"]) == (["甲"], "N_0003", 4)
    assert texts(home)["17-Notes/站点.md"] == f"{BODY} 第三版"
    assert [event["version_before"] for event in homes.events(home, "updated")] == [1, 2, 3]


def test_nothing_comes_before_what_failed(memory, home, full):
    memory.capture("站点", BODY)
    full.fill()
    for number in range(3):
        memory.capture(f"卡 {number}", f"{OTHER} {number}")
    for attempt in range(1, ATTEMPTS):
        result = memory.sync_pending()
        assert [one["attempts"] for one in result.failed] == [attempt]
        assert result.left == 2
    assert [record["attempts"] for record in homes.pending(home)] == [ATTEMPTS - 1, 0, 0]
    # The fifth time.
    result = memory.sync_pending()
    assert [one["change"] for one in result.dead] == ["capture"]
    [dead] = (home / "pending" / "dead").glob("*.json")
    record = json.loads(dead.read_bytes())
    assert record["arguments"]["new"]["title"] == "卡 0" and "No space" in record["reason"]
    full.mend()
    assert [one["path"] for one in memory.sync_pending().done] == [
        "17-Notes/卡-1.md", "17-Notes/卡-2.md",
    ]  # fmt: skip
    # Its owner may put it back.
    os.rename(dead, home / "pending" / dead.name)
    assert [one["path"] for one in memory.sync_pending().done] == ["17-Notes/卡-0.md"]


def test_one_that_always_fails_holds_up_no_other(memory, home, full):
    memory.capture("站点", BODY)
    full.fill()
    memory.update("N_0001", body=OTHER)
    memory.capture("日志", THIRD)
    full.mend()
    memory.forget("N_0001")
    result = memory.sync_pending()
    assert [one["reason"] for one in result.failed] == ["no card answers to 'N_0001'"]
    assert [one["path"] for one in result.done] == ["17-Notes/日志.md"]
    for _ in range(ATTEMPTS - 1):
        result = memory.sync_pending()
    assert [one["change"] for one in result.dead] == ["update"]
    assert homes.pending(home) == []


@pytest.mark.parametrize(
    "poison",
    [
        b"",
        b"{",
        b"[]",
        b'"text"',
        b"null",
        b"\xff\xfe\x00",
        b'{"v": 1}',
        b'{"v": 2, "t": "", "change": "capture", "arguments": {}, "attempts": 0}',
        b'{"v": 1, "t": "", "change": "capture", "arguments": [], "attempts": 0}',
        b'{"v": 1, "t": "", "change": "capture", "arguments": {}, "attempts": "many"}',
        b"[" * 100_000,
    ],
)
def test_poison_is_laid_aside(memory, home, poison, full):
    full.fill()
    memory.capture("日志", OTHER)
    full.mend()
    (home / "pending" / "00000000000000000000000000.json").write_bytes(poison)
    result = memory.sync_pending()
    assert [one["file"] for one in result.dead] == ["00000000000000000000000000.json"]
    assert result.dead[0]["reason"].startswith("cannot be read")
    assert [one["status"] for one in result.done] == ["created"]
    [dead] = (home / "pending" / "dead").glob("*.json")
    assert dead.read_bytes() == poison
    assert homes.pending(home) == []


@pytest.mark.parametrize(
    "change, arguments",
    [
        ("burn", {}),
        ("__init__", {}),
        ("capture", {}),
        ("capture", {"new": {"title": "a", "body": BODY, "colour": "red"}}),
        ("capture", {"new": {"title": "a", "body": BODY, "relates": [1, 2]}}),
        ("update", {"reference": "N_0001", "changes": {}, "body": BODY, "what": 1}),
        ("update", {"reference": ["N_0001"], "changes": None, "body": 5}),
    ],
)
def test_a_record_that_makes_no_sense_fails_and_is_laid_aside(memory, home, change, arguments):
    memory.capture("站点", BODY)
    Pending(home / "pending").add(change, arguments, "by hand")
    for attempt in range(1, ATTEMPTS + 1):
        result = memory.sync_pending()
        assert len(result.failed) == (attempt < ATTEMPTS)
    assert len(result.dead) == 1 and homes.pending(home) == []
    assert list(texts(home)) == ["17-Notes/站点.md"]


def test_a_change_that_is_refused_is_not_lost(memory, home, full):
    full.fill()
    memory.capture("日志", OTHER, on_conflict="reject")
    full.mend()
    memory.capture("日志", THIRD)
    result = memory.sync_pending()
    assert [one["reason"] for one in result.dead] == [
        "another card has this title and another body"
    ]
    [dead] = (home / "pending" / "dead").glob("*.json")
    assert json.loads(dead.read_bytes())["arguments"]["new"]["body"] == OTHER


def test_an_update_that_waited_does_not_undo_a_later_one(memory, home, full):
    memory.capture("站点", BODY)
    full.fill()
    memory.update("N_0001", body=OTHER)
    full.mend()
    time.sleep(0.002)
    memory.update("N_0001", body=THIRD)
    result = memory.sync_pending()
    assert "updated after" in result.dead[0]["reason"]
    assert texts(home) == {"17-Notes/站点.md": THIRD}


def test_a_change_is_made_in_the_vault_that_it_was_meant_for(memory, home, full, tmp_path):
    memory.capture("站点", BODY)
    wiki = tmp_path / "wiki"
    other = Memory(str(home), vault=str(wiki), db=str(tmp_path / "wiki.db"))
    elsewhere = Disk(full.monkeypatch, wiki)
    elsewhere.fill()
    kept = other.capture("日志", OTHER)
    assert kept.status == "pending" and kept.hint.endswith(f"with --vault {wiki}")
    full.mend()
    full.fill()
    assert memory.capture("备份", THIRD).status == "pending"
    full.mend()
    assert [(one["vault"], one["db"]) for one in homes.pending(home)] == [
        (str(wiki.resolve()), str((tmp_path / "wiki.db").resolve())), ("vault", "memory.db"),
    ]  # fmt: skip

    result = memory.sync_pending()
    assert [(one["status"], one["path"]) for one in result.done] == [
        ("created", "17-Notes/备份.md")
    ]
    assert [(one["change"], one["vault"]) for one in result.elsewhere] == [
        ("capture", str(wiki.resolve()))
    ]
    assert sorted(texts(home)) == ["17-Notes/备份.md", "17-Notes/站点.md"]
    done = homes.command(home, "sync-pending")
    [line] = done.stdout.splitlines()
    assert done.returncode == 0
    assert line.startswith("1 ") and str(wiki.resolve()) in line and "--vault" in line

    done = homes.command(home, "sync-pending", "--vault", wiki, "--db", tmp_path / "wiki.db")
    assert (done.returncode, done.stderr) == (0, "") and "created" in done.stdout
    assert (wiki / "17-Notes" / "日志.md").read_text().endswith(f"{OTHER}\n")
    assert homes.pending(home) == [] and len(texts(home)) == 2


def test_what_waits_moves_with_its_home(memory, home, full):
    full.fill()
    memory.capture("日志", OTHER)
    full.mend()
    moved = home.with_name("moved")
    home.rename(moved)
    [done] = Memory(str(moved)).sync_pending().done
    assert (done["status"], list(texts(moved))) == ("created", ["17-Notes/日志.md"])


def test_a_vault_that_can_never_be_is_an_error(home, tmp_path):
    file = tmp_path / "passwd"
    file.write_text("root\n")
    (loop := tmp_path / "loop").symlink_to(loop)
    for vault, reason in [
        (file, "Not a directory"),
        (file / "below", "Not a directory"),
        (tmp_path / ("x" * 300), "File name too long"),
        (loop / "vault", "loop: Not a directory"),
    ]:
        done = homes.command(home, "--vault", vault, "capture", "--title", "日志", stdin=OTHER)
        assert done.returncode == 2 and done.stdout == ""
        [line] = done.stderr.splitlines()
        assert line.startswith("Error: nothing was written") and reason in line, line
        assert "--vault" in line
    assert homes.pending(home) == [] and file.read_text() == "root\n"


def test_the_same_twice_is_one_card(memory, home, full):
    full.fill()
    memory.capture("日志", OTHER)
    memory.capture("日志", OTHER)
    full.mend()
    assert [one["status"] for one in memory.sync_pending().done] == ["created", "unchanged"]
    assert len(texts(home)) == 1


def test_two_that_replay_at_once_make_each_change_once(memory, home, full):
    memory.capture("站点", BODY)
    full.fill()
    for number in range(6):
        memory.capture(f"卡 {number}", f"{OTHER} {number}")
    memory.forget("N_0001")
    full.mend()
    both = [
        subprocess.Popen(
            [*homes.MEMORY, "sync-pending", "--json"],
            env=homes.environment(home),
            stdout=subprocess.PIPE,
        )
        for _ in range(2)
    ]
    answers = [json.loads(one.communicate(timeout=60)[0]) for one in both]
    done = [one for answer in answers for one in answer.get("done", ())]
    assert sorted(one["status"] for one in done) == ["created"] * 6 + ["trashed"]
    assert not any(answer.get("dead") or answer.get("failed") for answer in answers)
    assert homes.pending(home) == [] and len(texts(home)) == 6


# The lock


HOLDER = """
import sys
from filelock import FileLock
with FileLock(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def holder(home):
    """Another process that holds the lock of the vault until it is told to let go."""
    home.mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(home / ".vault.lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()


def test_the_lock_is_not_had_in_time(memory, home, holder, monkeypatch):
    monkeypatch.setattr(lock, "VAULT_PATIENCE", 0.1)
    change = memory.capture("日志", OTHER)
    assert change.status == "pending"
    assert str(home) in change.reason and "another program" in change.reason
    assert "lock" not in change.reason.replace(str(home), "")
    result = memory.sync_pending()
    assert len(result.failed) == 1
    # Reading needs no lock, and neither does bringing the index in step.
    (home / "vault").mkdir(exist_ok=True)
    memory.index()
    assert memory.search("日志").hits == ()
    holder.stdin.write("\n")
    holder.stdin.flush()
    holder.wait(timeout=30)
    assert [one["status"] for one in memory.sync_pending().done] == ["created"]


def test_a_holder_that_is_killed_holds_no_longer(memory, holder):
    holder.kill()
    holder.wait()
    assert memory.capture("日志", OTHER).status == "created"


# Permissions


@pytest.fixture
def public():
    """A folder that every user may enter and write to."""
    with tempfile.TemporaryDirectory(prefix="memory-") as name:
        os.chmod(name, 0o777)
        yield Path(name)


def as_nobody() -> tuple[str, ...]:
    """The start of a command that may not do everything; none when the tests may not either."""
    if os.name == "nt":
        pytest.skip("permissions are another thing on Windows")
    if os.geteuid() != 0:
        return ()
    assert shutil.which("setpriv"), "setpriv (util-linux) is needed to give up root"
    user = str(homes.NOBODY)
    return ("setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups")


def test_a_vault_that_cannot_be_written(public):
    home = public / "home"
    prefix = as_nobody()
    arguments = ("capture", "--title", "日志", "--json")
    done = homes.command(home, *arguments, stdin=OTHER, prefix=prefix)
    assert json.loads(done.stdout)["status"] == "created", done.stderr
    for folder in (home / "vault", home / "vault" / "17-Notes"):
        os.chmod(folder, 0o555)
    try:
        done = homes.command(home, *arguments[:2], "备份", "--json", stdin=THIRD, prefix=prefix)
        answer = json.loads(done.stdout)
        assert (done.returncode, answer["status"]) == (0, "pending")
        assert "Permission denied" in answer["reason"]
        # For those who read: one line, and what to do.
        done = homes.command(home, "forget", "N_0001", prefix=prefix)
        assert (done.returncode, done.stdout) == (0, "")
        [line] = done.stderr.splitlines()
        assert line.startswith("pending: ") and "memory sync-pending" in line
        done = homes.command(home, "sync-pending", prefix=prefix)
        assert done.returncode == 1 and "Permission denied" in done.stdout
    finally:
        for folder in (home / "vault", home / "vault" / "17-Notes"):
            os.chmod(folder, 0o755)
    done = homes.command(home, "sync-pending", "--json", prefix=prefix)
    assert [one["status"] for one in json.loads(done.stdout)["done"]] == ["created", "trashed"]
    assert list(texts(home)) == ["17-Notes/备份.md"]


def test_a_home_that_cannot_be_written(public):
    home = public / "home"
    prefix = as_nobody()
    homes.command(home, "capture", "--title", "日志", stdin=OTHER, prefix=prefix)
    before = homes.digest(home)
    folders = [home, *(path for path in home.rglob("*") if path.is_dir())]
    for folder in folders:
        os.chmod(folder, 0o555)
    try:
        arguments = ("capture", "--title", "备份", "--json")
        done = homes.command(home, *arguments, stdin=THIRD, prefix=prefix)
    finally:
        for folder in folders:
            os.chmod(folder, 0o755)
    answer = json.loads(done.stdout)
    assert done.returncode == 2
    assert answer["ok"] is False and "nothing could be written" in answer["error"]
    assert "lost" in answer["hint"]
    [line] = done.stderr.splitlines()
    assert line.startswith("Error: nothing could be written")
    assert homes.digest(home) == before


def test_when_nothing_can_be_kept_the_caller_is_told(memory, home, monkeypatch):
    memory.capture("站点", BODY)
    Disk(monkeypatch, home).fill()
    with pytest.raises(MemoryFault) as caught:
        memory.capture("日志", OTHER)
    assert "No space left" in caught.value.error and "lost" in caught.value.hint
    monkeypatch.undo()
    assert homes.pending(home) == [] and list(texts(home)) == ["17-Notes/站点.md"]
    assert memory.capture("日志", OTHER).status == "created"


def test_the_names_that_are_not_ours_stay(memory, home, full):
    """Somebody keeps a note in the folder of pending changes."""
    full.fill()
    memory.capture("日志", OTHER)
    full.mend()
    (home / "pending" / "read me.txt").write_text("mine")
    memory.sync_pending()
    assert [path.name for path in (home / "pending").iterdir()] == ["read me.txt"]
