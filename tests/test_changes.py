"""Capture and every other change of a card: what it answers, and what is on disk afterwards."""

import importlib.util
import json
import os
import re
import sqlite3
import subprocess
import sys
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from datasette_memory.errors import Ambiguous, MemoryFault, NotFound
from datasette_memory.memory import Memory

_spec = importlib.util.spec_from_file_location("homes", Path(__file__).with_name("homes.py"))
homes = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(homes)

BODY = "站点根目录在 /srv/www/orchid，不是 /var/www，改之前先看一眼。"
OTHER = "站点的日志在 /var/log/orchid，每天凌晨轮转一次，留三十天。"


@pytest.fixture
def home():
    with homes.place() as folder:
        yield folder / "home"


@pytest.fixture
def memory(home) -> Memory:
    return Memory(str(home))


class InProcess:
    """`Memory.capture`, and the exit code that the command line gives its status."""

    def __init__(self, home: Path) -> None:
        self.memory = Memory(str(home))

    def capture(self, title, body, **options):
        change = self.memory.capture(title, body, **options).to_dict()
        return change, {"rejected": 1, "conflict": 3}.get(change["status"], 0)


class CommandLine:
    """`memory capture --json` as a process."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def capture(self, title, body, **options):
        arguments = ["capture", "--title", title, "--json"]
        if options.pop("reject_secrets", False):
            arguments.append("--reject-secrets")
        for name, value in options.items():
            value = ",".join(value) if name == "tags" else str(value)
            arguments += [f"--{name.replace('_', '-')}", value]
        done = homes.command(self.home, *arguments, stdin=body)
        assert done.stderr == "" or done.returncode
        return json.loads(done.stdout), done.returncode


@pytest.fixture(params=[InProcess, CommandLine])
def surface(request, home):
    return request.param(home)


# The table


def test_a_new_card(surface, home):
    change, code = surface.capture(
        "站点根目录", BODY, kind="decision", tags=["网络", "部署"], project="燕子"
    )
    assert change == {
        "status": "created",
        "id": 1,
        "ref": "D_0001",
        "path": "09-Decisions/站点根目录.md",
        "indexed": True,
        "version": 1,
    }
    assert code == 0
    text = homes.cards(home)["09-Decisions/站点根目录.md"].decode()
    front, body = text.split("---\n")[1:]
    assert front.splitlines()[:6] == [
        "id: D_0001", "title: 站点根目录", "kind: decision", "tags:", "  - 网络", "  - 部署",
    ]  # fmt: skip
    assert "project: 燕子\n" in front
    assert body == BODY + "\n"
    [event] = homes.events(home)
    assert (event["kind"], event["ref"], event["path"]) == ("created", "D_0001", change["path"])
    assert BODY not in json.dumps(event, ensure_ascii=False)
    # It is found at once, and nothing but it was read for that.
    assert [hit.ref for hit in Memory(str(home)).search("根目录").hits] == ["D_0001"]
    assert not homes.temporaries(home)


def test_the_same_again_changes_nothing(surface, home):
    surface.capture("站点根目录", BODY, tags=["网络"])
    before = homes.cards(home)
    again, code = surface.capture("站点根目录", BODY, tags=["网络"])
    assert again == {
        "status": "unchanged",
        "id": 1,
        "ref": "N_0001",
        "path": "17-Notes/站点根目录.md",
        "indexed": True,
        "version": 1,
    }
    assert code == 0
    # Another kind is another folder, and yet it is the same card.
    for options in ({"kind": "fact"}, {"tags": ["网络", "部署"]}, {"confidence": 0.0}):
        again, code = surface.capture("站点根目录", f"\n{BODY}\n\n", **options)
        assert (again["status"], again["metadata_differs"], code) == ("unchanged", True, 0)
    assert homes.cards(home) == before
    assert len(homes.events(home)) == 1


def test_titles_are_the_same_after_nfc_and_case_folding(surface):
    surface.capture("Café Straße", BODY)
    again, _ = surface.capture("CAFE\u0301 STRASSE", BODY)
    assert (again["status"], again["ref"]) == ("unchanged", "N_0001")
    other, _ = surface.capture("cafe\u0301  strasse", OTHER, kind="fact")
    assert (other["status"], other["conflict"]) == ("created", True)


@pytest.mark.parametrize(
    "body, enough",
    [
        ("a" * 19, False),
        ("a" * 20, True),
        ("汉" * 9 + "a", False),
        ("汉" * 10, True),
        ("カ" * 10, True),
        ("한" * 9, False),
        ("한" * 10, True),
        (" " * 40, False),
        (f"{' ' * 10}{'a' * 19}\n\n{' ' * 10}", False),
        ("\0" * 40, False),
    ],
)
def test_a_body_that_says_too_little(memory, home, body, enough):
    change = memory.capture("短", body).to_dict()
    if enough:
        assert change["status"] == "created"
        return
    assert change["status"] == "rejected"
    assert "20 characters" in change["reason"]
    assert homes.cards(home) == {} and homes.events(home) == []


def test_too_little_through_every_surface(surface, home):
    change, code = surface.capture("短", "太短了")
    assert (change["status"], change["indexed"], code) == ("rejected", False, 1)
    assert change["reason"] and homes.cards(home) == {}


def test_the_same_title_with_another_body(surface, home):
    surface.capture("站点", BODY)
    first = homes.cards(home)
    change, code = surface.capture("站点", OTHER)
    assert change == {
        "status": "created",
        "id": 2,
        "ref": "N_0002",
        "path": "17-Notes/站点-2.md",
        "indexed": True,
        "version": 1,
        "conflict": True,
        "existing_path": "17-Notes/站点.md",
        "collision_paths": ["17-Notes/站点.md"],
    }
    assert code == 0
    assert homes.cards(home)["17-Notes/站点.md"] == first["17-Notes/站点.md"]
    third, _ = surface.capture("站点", f"{OTHER}后来改了。", kind="fact")
    assert third["collision_paths"] == ["17-Notes/站点-2.md", "17-Notes/站点.md"]
    assert third["path"] == "12-Facts/站点.md"


def test_the_same_title_refused(surface, home):
    surface.capture("站点", BODY)
    before = homes.digest(home / "vault"), homes.events(home)
    change, code = surface.capture("站点", OTHER, on_conflict="reject")
    assert (change["status"], change["conflict"], change["indexed"]) == ("conflict", True, False)
    assert (change["existing_path"], change["collision_paths"]) == (
        "17-Notes/站点.md",
        ["17-Notes/站点.md"],
    )
    assert code == 3
    assert (homes.digest(home / "vault"), homes.events(home)) == before
    assert surface.capture("站点", BODY, on_conflict="reject")[0]["status"] == "unchanged"


CREDENTIAL = "连接用的钥匙是 AKIA" + "QYLPMN5HFIQR7BBB" + "，写在配置里。"


def test_a_credential_is_written_and_said(surface, home):
    change, code = surface.capture("钥匙", CREDENTIAL)
    assert (change["status"], change["indexed"], code) == ("created", True, 0)
    [found] = change["secrets_found"]
    assert (found["field"], CREDENTIAL[found["start"] : found["end"]]) == (
        "body", "AKIA" + "QYLPMN5HFIQR7BBB",
    )  # fmt: skip
    assert len(change["warnings"]) == 1 and "AKIA" not in json.dumps(change)
    assert CREDENTIAL.encode() in homes.cards(home)[change["path"]]


def test_a_credential_is_refused(surface, home):
    change, code = surface.capture("钥匙", CREDENTIAL, reject_secrets=True)
    assert (change["status"], change["indexed"], code) == ("rejected", False, 1)
    assert change["reason"] and change["secrets_found"]
    assert homes.cards(home) == {} and homes.events(home) == []


def test_personal_data_is_warned_of_and_never_rejected(memory, home):
    # 11010519491231002X: the example of GB 11643, with the right check digit.
    change = memory.capture(
        "访客登记", "身份证 11010519491231002X，周三来过。", reject_secrets=True
    )
    assert change.status == "created"
    assert [found["kind"] for found in change.personal_found] == ["id_card"]
    assert b"11010519491231002X" in homes.cards(home)[change.path]


def test_a_credential_in_any_field(memory):
    secret = "AKIA" + "QYLPMN5HFIQR7BBB"
    change = memory.capture(f"{secret}", BODY, summary=secret, raw=f"原文 {secret}")
    assert sorted(found["field"] for found in change.secrets_found) == ["raw", "summary", "title"]


def _out_of_order(kind, db):
    db.parent.mkdir(parents=True, exist_ok=True)
    for path in db.parent.glob("memory.db*"):
        path.unlink()
    if kind == "folder":
        db.mkdir()
    elif kind == "foreign":
        db.write_bytes(b"not a database, " * 100)
    elif kind == "header":
        db.write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)


@pytest.mark.parametrize("kind", ["folder", "foreign", "header"])
def test_an_index_that_cannot_be_updated(surface, home, kind):
    surface.capture("站点", BODY)
    _out_of_order(kind, home / "memory.db")
    change, code = surface.capture("日志", OTHER)
    assert (change["status"], change["indexed"], code) == ("created", False, 0)
    # Counted without the index, from files and ledger.
    assert (change["ref"], change["path"]) == ("N_0002", "17-Notes/日志.md")
    assert homes.cards(home)["17-Notes/日志.md"].endswith(f"{OTHER}\n".encode())
    assert homes.events(home)[-1]["ref"] == "N_0002"
    warning = change["warning"]
    assert "index" in warning and "Error" not in warning
    assert surface.capture("站点", BODY)[0]["status"] == "unchanged"
    conflict, _ = surface.capture("站点", OTHER)
    assert (conflict["path"], conflict["conflict"]) == ("17-Notes/站点-2.md", True)

    # What the warning says mends it.
    if "--rebuild" in warning:
        Memory(str(home)).index(rebuild=True)
    elif kind == "foreign":
        assert "`memory index`" in warning
        Memory(str(home)).index()
    else:
        assert "`memory index` takes it in" in warning
        os.rename(home / "memory.db", home / "away")
        Memory(str(home)).index()
    found = homes.query(home / "memory.db", "select ref from cards order by ref")
    assert found == [("N_0001",), ("N_0002",), ("N_0003",)]
    assert surface.capture("第四", f"{BODY}再写一张。")[0]["ref"] == "N_0004"


def _damage(db: Path, keep: int) -> None:
    """Overwrite all of a database but the pages of its schema."""
    size = db.stat().st_size
    with open(db, "r+b") as file:
        file.seek(keep)
        file.write(b"\xa5" * (size - keep))


def test_an_index_that_breaks_in_the_middle(memory, home):
    for number in range(30):
        memory.capture(f"卡片 {number}", f"{BODY} 第 {number} 张。")
    del memory
    db = home / "memory.db"
    assert homes.query(db, "pragma wal_checkpoint(truncate)")
    _damage(db, 16384)
    memory = Memory(str(home))
    change = memory.capture("坏了以后", OTHER)
    assert (change.status, change.ref, change.indexed) == ("created", "N_0031", False)
    assert "--rebuild" in change.warning
    assert memory.capture("卡片 7", f"{BODY} 第 7 张。").status == "unchanged"
    memory.index(rebuild=True)
    assert homes.query(db, "select count(*) from cards") == [(31,)]


@pytest.fixture
def busy(home):
    """Another program holds the index, until it is closed."""
    connection = sqlite3.connect(home / "memory.db", isolation_level=None, timeout=30)
    connection.execute("begin immediate")
    connection.execute("update meta set value = value")
    yield connection
    connection.close()


def test_an_index_that_is_busy(memory, home, monkeypatch, request):
    monkeypatch.setattr("datasette_memory.known.INDEX_PATIENCE", 0.1)
    memory.capture("站点", BODY)
    busy = request.getfixturevalue("busy")
    answers = [
        memory.capture("日志", OTHER),
        memory.capture("备份", f"{OTHER} 备份"),
        memory.update("N_0001", body=f"{BODY} 第二版"),
        memory.forget("N_0001"),
    ]
    assert [(one.status, one.ref, one.indexed) for one in answers] == [
        ("created", "N_0002", False),
        ("created", "N_0003", False),
        ("updated", "N_0001", False),
        ("trashed", "N_0001", False),
    ]
    for answer in answers:
        assert "busy" in answer.warning and "locked" not in answer.warning
    # What the index does not know yet is known from the files.
    assert memory.capture("日志", OTHER).status == "unchanged"
    busy.execute("rollback")
    # The next change makes up for all of it, without a look at other files.
    change = memory.capture("以后", f"{BODY} 以后")
    assert (change.ref, change.indexed, change.warning) == ("N_0004", True, None)
    found = homes.query(home / "memory.db", "select ref from cards order by ref")
    assert found == [("N_0002",), ("N_0003",), ("N_0004",)]
    assert [hit.ref for hit in memory.search("备份").hits] == ["N_0003"]


HOLDER = """
import sys
from filelock import FileLock
with FileLock(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.readline()
"""


def test_a_first_change_while_an_import_runs(home, monkeypatch):
    """The index has never seen the vault, and may not look now: the files are read."""
    monkeypatch.setattr("datasette_memory.writing.FOLLOW_PATIENCE", 0.1)
    notes = home / "vault" / "17-Notes"
    notes.mkdir(parents=True)
    hand = "---\nid: N_0017\ntitle: 手写\n---\n\n手写的一张卡片，不在账本里。\n"
    (notes / "手写.md").write_text(hand, "utf-8")
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(home / ".memory.db.lock")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert holder.stdout.readline() == "held\n"
        memory = Memory(str(home))
        assert memory.capture("手写", "手写的一张卡片，不在账本里。").status == "unchanged"
        change = memory.capture("新的", BODY, relates=[("refers_to", "手写")])
        assert (change.ref, change.indexed) == ("N_0018", True)
        assert b"target: N_0017" in homes.cards(home)["17-Notes/新的.md"]
        assert memory.capture("又一张", OTHER).ref == "N_0019"
    finally:
        holder.communicate("\n", timeout=30)
    memory.index()
    assert memory.capture("最后", f"{OTHER} 最后").ref == "N_0020"
    assert memory.show("N_0017").card["title"] == "手写"


def test_a_near_duplicate_is_said(surface, home):
    # 20 words of which the title gives 2; 18 of 22 tokens are shared: 0.818. Worked out by hand.
    words = [f"word{chr(97 + n)}" for n in range(18)]
    surface.capture("alpha beta", " ".join(words))
    nearly = [*words[:16], "other", "text"]
    change, code = surface.capture("alpha beta two", " ".join(nearly), kind="fact")
    # Both: alpha beta + 16 words; either: alpha beta two + 18 + 2.
    assert (change["status"], code) == ("created", 0)
    assert "similar" not in change and 18 / 23 < 0.8
    nearly = [*words[:17], "other"]
    change, code = surface.capture("alpha beta three", " ".join(nearly), kind="fact")
    # Both: alpha beta + 17; either: alpha beta three + 18 + 1: 19 of 22.
    assert change["similar"] == [
        {"ref": "N_0001", "path": "17-Notes/alpha-beta.md", "score": round(19 / 22, 3)},
        # With the second: alpha beta + 16 + other of alpha beta two three + 18 + text: 19 of 23.
        {"ref": "F_0001", "path": "12-Facts/alpha-beta-two.md", "score": round(19 / 23, 3)},
    ]
    assert change["path"] in homes.cards(home)


@pytest.mark.parametrize("shared, told", [(80, True), (79, False)])
def test_the_border_of_likeness(memory, shared, told):
    """Of 100 different tokens in all, `shared` stand in both: 0.80 is told, 0.79 is not."""
    rest = 100 - shared
    both = [f"both{n}" for n in range(shared - 1)]  # and the word of the title
    memory.capture("border", " ".join([*both, *(f"first{n}" for n in range(rest // 2))]))
    change = memory.capture(
        "Border", " ".join([*both, *(f"second{n}" for n in range(rest - rest // 2))])
    )
    assert change.conflict
    assert bool(change.similar) is told
    if told:
        assert change.similar[0]["score"] == 0.8


def test_near_duplicates_are_found_wherever_they_differ(memory):
    """Every ninth token another one: the worst spread of a tenth of changes."""
    words = [f"w{n}" for n in range(120)]
    memory.capture("一", " ".join(words))
    for start in range(9):
        changed = [f"x{start}y{n}" if n % 12 == start else word for n, word in enumerate(words)]
        change = memory.capture(f"{start}", " ".join(changed))
        # 110 shared of 1 + 1 + 130 tokens.
        assert [one["score"] for one in change.similar if one["ref"] == "N_0001"] == [
            round(110 / 132, 3)
        ]


def test_a_phrase_that_everybody_uses_hides_no_near_duplicate(memory):
    """Forty cards share their first and last lines; of those, one says the same."""
    head, tail = "## 背景 这一节说明为什么要写这张卡片", "## 结论 以上内容由值班的人复核过了"
    for number in range(40):
        middle = " ".join(f"only{number}word{n}" for n in range(60))
        memory.capture(f"周报 {number}", f"{head}\n{middle}\n{tail}")
    middle = " ".join(f"only37word{n}" for n in range(58))
    change = memory.capture("周报", f"{head}\n{middle} 新 词\n{tail}")
    assert [one["ref"] for one in change.similar] == ["N_0038"]


# Kept for later, and nothing to be done: see also test_pending.py


def test_what_can_only_be_queued(surface, home):
    surface.capture("站点", BODY)
    # A file where the folder of decisions would be: this one card cannot be written.
    (home / "vault" / "09-Decisions").write_text("in the way")
    change, code = surface.capture("日志", OTHER, kind="decision")
    assert (change["status"], change["indexed"], code) == ("pending", False, 0)
    assert "09-Decisions" in change["reason"] and "sync-pending" in change["hint"]
    assert Path(change["pending_path"]).parent == home / "pending"
    assert len(homes.cards(home)) == 1


def test_what_cannot_be_stored_at_all(home):
    (home / "vault").mkdir(parents=True)
    (home / "vault" / "17-Notes").write_text("in the way")
    (home / "pending").write_text("in the way")
    with pytest.raises(MemoryFault) as caught:
        Memory(str(home)).capture("日志", OTHER)
    assert "nothing could be written" in caught.value.error
    done = homes.command(home, "capture", "--title", "日志", "--json", stdin=OTHER)
    assert done.returncode == 2
    answer = json.loads(done.stdout)
    assert answer["ok"] is False and "nothing could be written" in answer["error"]
    assert len(done.stderr.splitlines()) == 1 and "Traceback" not in done.stderr


# What is asked for and cannot be


@pytest.mark.parametrize(
    "fields, word",
    [
        ({"title": "长" * 501}, "title"),
        ({"summary": "长" * 1001}, "summary"),
        ({"tags": ["长" * 101]}, "tags"),
        ({"keywords": ["长" * 201]}, "keywords"),
        ({"project": "长" * 201}, "project"),
        ({"confidence": 1.01}, "confidence"),
        ({"confidence": "high"}, "confidence"),
        ({"sensitivity": "hidden"}, "sensitivity"),
        ({"priority": "high"}, "priority"),
        ({"ttl": -1}, "ttl"),
        ({"ttl": 1.5}, "ttl"),
        ({"valid_until": "next week"}, "valid_until"),
        ({"tags": {"a": 1}}, "tags"),
        ({"colour": "red"}, "colour"),
        ({"relates": [("", "N_0001")]}, "type"),
        ({"on_conflict": "overwrite"}, "on_conflict"),
    ],
)
def test_a_field_that_no_card_can_have_is_refused_before_anything_is_written(
    memory, home, fields, word
):
    memory.capture("有的", BODY)
    before = homes.digest(home / "vault"), homes.events(home)
    with pytest.raises(MemoryFault) as caught:
        memory.capture(**({"title": "新的", "body": OTHER} | fields))
    assert word in caught.value.error
    if "relates" not in fields and "on_conflict" not in fields:
        with pytest.raises(MemoryFault):
            memory.update("N_0001", **fields)
    assert (homes.digest(home / "vault"), homes.events(home)) == before
    assert homes.pending(home) == []


def test_a_relation_to_nothing_is_refused(surface, memory, home):
    surface.capture("站点", BODY)
    before = homes.digest(home / "vault"), homes.events(home)
    with pytest.raises(NotFound):
        memory.capture("日志", OTHER, relates=[("caused_by", "X_0404")])
    with pytest.raises(NotFound):
        memory.link("N_0001", "caused_by", "X_0404")
    if isinstance(surface, CommandLine):
        arguments = ("--title", "日志", "--relates", "caused_by:X_0404", "--json")
        done = homes.command(home, "capture", *arguments, stdin=OTHER)
        assert done.returncode == 1 and json.loads(done.stdout)["ok"] is False
    assert (homes.digest(home / "vault"), homes.events(home)) == before


def test_relations_without_an_index(memory, home):
    memory.capture("站点", BODY)
    _out_of_order("folder", home / "memory.db")
    change = memory.capture("日志", OTHER, relates=[("caused_by", "站点")])
    assert (change.status, change.indexed) == ("created", False)
    assert b"target: N_0001" in homes.cards(home)[change.path]
    with pytest.raises(NotFound):
        memory.capture("别的", f"{OTHER}。", relates=[("caused_by", "X_0404")])


# Round trip

# A line of a title: blanks run together, control characters and line ends are blanks.
_titles = st.text(min_size=1, max_size=80)
_bodies = st.text(max_size=300)
_words = st.lists(st.text(max_size=30), max_size=6)


def _as_line(text: str) -> str:
    """What may happen to a text of one line: a run of control characters becomes a blank."""
    controls = "".join(map(chr, (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029)))
    return re.sub(f"[{re.escape(controls)}\ud800-\udfff]+", " ", text)


def _as_body(text: str) -> str:
    """Line ends become \\n, NULs go, half a character becomes U+FFFD; empty lines around go."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    return "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text).strip("\n")


@pytest.fixture(scope="module")
def one_home():
    with homes.place() as folder:
        yield Memory(str(folder / "home"))


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(title=_titles, body=_bodies, tags=_words, keywords=_words)
def test_what_is_captured_is_shown(one_home, title, body, tags, keywords):
    memory = one_home
    body = f"{body}\n{time.time_ns()} 足够长的一段正文，写在最后。"
    expected_title = " ".join(_as_line(title).split())
    change = memory.capture(title, body, tags=tags, keywords=keywords)
    if not expected_title:
        assert change.status == "rejected"
        return
    assert change.status == "created" and change.indexed, change
    shown = memory.show(str(change.ref), full=True)
    assert shown.card["title"] == expected_title
    assert shown.window.text == _as_body(body) + "\n"
    lines = [_as_line(tag).strip().lstrip("#").strip() for tag in tags]
    wanted = list(dict.fromkeys(line for line in lines if line))
    # Tags that stand in the body come behind those that were given.
    assert shown.card["tags"][: len(wanted)] == wanted
    lines = [_as_line(word).strip() for word in keywords]
    assert shown.card["keywords"] == list(dict.fromkeys(line for line in lines if line))
    # The same once more is the same card.
    assert memory.capture(title, body, tags=tags, keywords=keywords).to_dict() == {
        "status": "unchanged", "id": change.id, "ref": change.ref, "path": change.path,
        "indexed": True, "version": 1,
    }  # fmt: skip


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=_bodies, tags=_words)
def test_what_is_updated_is_shown(one_home, body, tags):
    memory = one_home
    body = f"{body}\n{time.time_ns()} 足够长的一段正文，写在最后。"
    change = memory.capture(f"待改 {time.time_ns()}", BODY)
    updated = memory.update(change.ref, body=body, tags=tags)
    assert (updated.status, updated.version) == ("updated", 2)
    shown = memory.show(change.ref, full=True)
    assert shown.window.text == _as_body(body) + "\n"
    memory.restore_version(change.ref, 1)
    assert memory.show(change.ref, full=True).window.text == BODY + "\n"


# Numbers


def test_a_number_is_never_given_again(memory, home):
    refs = [memory.capture(f"卡 {n}", f"{BODY} {n}").ref for n in range(3)]
    assert refs == ["N_0001", "N_0002", "N_0003"]
    memory.forget("N_0003")
    assert memory.capture("卡 4", f"{BODY} 4").ref == "N_0004"
    (home / "vault" / "17-Notes" / "卡-4.md").unlink()
    memory.index()
    homes.remove_index(home)
    # By the ledger and the trash; a card made by hand counts too.
    hand = "---\nid: N_0017\ntitle: 手写\n---\n\n手写的一张卡片，不在账本里。\n"
    (home / "vault" / "17-Notes" / "手写.md").write_text(hand, "utf-8")
    assert Memory(str(home)).capture("卡 5", f"{BODY} 5").ref == "N_0018"


def test_a_number_after_changes_that_the_index_missed(memory, home):
    """The index goes back to what it was, as after a power cut: the ledger knows better."""
    memory.capture("一", f"{BODY} 1")
    del memory
    db = home / "memory.db"
    old = db.read_bytes()
    Memory(str(home)).capture("二", f"{BODY} 2")
    Memory(str(home)).update("N_0001", body=OTHER)
    homes.remove_index(home)
    db.write_bytes(old)
    memory = Memory(str(home))
    change = memory.capture("三", f"{BODY} 3")
    assert change.ref == "N_0003"
    # And what it missed is in it again.
    assert memory.show("N_0002").card["title"] == "二"
    assert memory.show("N_0001").window.text == OTHER + "\n"
    assert memory.capture("二", f"{BODY} 2").status == "unchanged"


def test_a_number_of_another_index(memory, home):
    memory.capture("一", f"{BODY} 1")
    hand = "---\nid: N_0030\ntitle: 手写\n---\n\n手写的一张卡片，不在账本里。\n"
    (home / "vault" / "17-Notes" / "手写.md").write_text(hand, "utf-8")
    other = Memory(str(home), db=str(home / "other.db"))
    change = other.capture("二", f"{BODY} 2")
    assert (change.ref, change.indexed) == ("N_0031", True)
    assert memory.capture("三", f"{BODY} 3").ref == "N_0032"
    assert other.capture("四", f"{BODY} 4").ref == "N_0033"
    assert [hit.ref for hit in memory.search("手写").hits] == []


def test_a_number_that_a_source_uses_is_passed_over(memory, home):
    source = home.parent / "notes"
    source.mkdir()
    (source / "a.md").write_text("---\nid: N_0001\ntitle: 别人的\n---\n\n别人的卡片。\n", "utf-8")
    memory.import_paths([str(source)])
    change = memory.capture("一", BODY)
    assert change.ref == "N_0002"
    assert memory.show("N_0001").card["source"] == "notes"


# Update, history, restore


def test_update_keeps_what_it_does_not_change(memory, home):
    path = home / "vault" / "17-Notes" / "手写.md"
    path.parent.mkdir(parents=True)
    text = (
        "---\n# 这张卡是手写的\nauthor: 林\ntitle: 手写   # 标题\nid: N_0007\n"
        "tags: [甲, 乙]\nmood: fine\n---\n\n第一版，写得很长很长很长。\n"
    )
    path.write_text(text, "utf-8")
    memory.index()
    change = memory.update("N_0007", body="第二版，写得更长更长更长。", confidence=0.9)
    assert change.to_dict() == {
        "status": "updated", "id": 1, "ref": "N_0007", "path": "17-Notes/手写.md",
        "indexed": True, "version": 2,
    }  # fmt: skip
    new = path.read_text("utf-8")
    front = new.split("---\n")[1]
    kept = text.split("---\n")[1].splitlines()
    assert [line for line in front.splitlines() if line in kept] == kept
    assert "confidence: 0.9\n" in front and "version: 2\n" in front
    assert new.endswith("---\n第二版，写得更长更长更长。\n")
    [event] = homes.events(home, "updated")
    assert (event["version_before"], event["version"], event["ref"]) == (1, 2, "N_0007")
    kept = home / "evidence" / event["before"][:2] / f"{event['before']}.txt"
    assert kept.read_text("utf-8") == text
    assert memory.update("N_0007", confidence=0.9).status == "unchanged"
    assert len(homes.events(home, "updated")) == 1


def test_history_and_an_earlier_version(memory, home):
    memory.capture("站点", BODY)
    memory.update("N_0001", body=OTHER)
    memory.update("N_0001", title="站点 新", tags=["甲"])
    history = memory.history("N_0001")
    assert (history["ref"], history["version"]) == ("N_0001", 3)
    assert [event["kind"] for event in history["events"]] == ["created", "updated", "updated"]
    assert [event.get("version_before") for event in history["events"]] == [None, 1, 2]
    change = memory.restore_version("N_0001", 1)
    assert (change.status, change.version) == ("updated", 4)
    shown = memory.show("N_0001")
    assert (shown.card["title"], shown.window.text) == ("站点", BODY + "\n")
    assert memory.history("N_0001")["events"][-1]["restores"] == 1
    # What was replaced by that can be had as well.
    memory.restore_version("N_0001", 3)
    assert memory.show("N_0001").card["title"] == "站点 新"
    with pytest.raises(NotFound) as caught:
        memory.restore_version("N_0001", 9)
    assert "1, 2, 3, 4" in caught.value.hint


def test_update_through_the_command_line(memory, home):
    memory.capture("站点", BODY, tags=["甲"], project="燕子")
    done = homes.command(
        home, "update", "N_0001", "--body", "-", "--tags", "", "--json", stdin=OTHER
    )
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["status"], answer["version"]) == (0, "updated", 2)
    shown = memory.show("N_0001")
    assert (shown.card["tags"], shown.card["project"]) == ([], "燕子")
    done = homes.command(home, "history", "N_0001", "--json")
    assert [event["kind"] for event in json.loads(done.stdout)["events"]] == ["created", "updated"]
    done = homes.command(home, "history", "N_0001", "--restore", "1", "--json")
    assert (done.returncode, json.loads(done.stdout)["version"]) == (0, 3)
    assert memory.show("N_0001").window.text == BODY + "\n"
    done = homes.command(home, "update", "N_0404", "--body", OTHER)
    assert done.returncode == 1 and done.stderr.startswith("Error: no card answers")
    assert homes.command(home, "update", "N_0001").returncode == 2


def test_a_file_that_changed_under_the_editor_is_not_lost(memory, home):
    """The index knows an older text than the file has: the file counts."""
    memory.capture("站点", BODY)
    path = home / "vault" / "17-Notes" / "站点.md"
    path.write_bytes(path.read_bytes().replace(BODY.encode(), "编辑器里改过的一版正文。".encode()))
    memory.update("N_0001", tags=["甲"])
    assert "编辑器里改过的一版正文。" in path.read_text("utf-8")
    assert memory.show("N_0001").window.text == "编辑器里改过的一版正文。\n"


# Supersede, link, related


def test_supersede(memory, home):
    memory.capture("端口", "网关监听 8025 端口，备份在 02:30。", kind="fact", project="燕子")
    change = memory.supersede("F_0001", "端口", "网关监听 8030 端口，备份在 02:30。")
    assert change.to_dict() == {
        "status": "superseded", "id": 2, "ref": "F_0002", "path": "12-Facts/端口-2.md",
        "indexed": True, "version": 1, "supersedes": "F_0001",
        "similar": change.similar,
    }  # fmt: skip
    old, new = memory.show("F_0001").card, memory.show("F_0002").card
    assert (old["superseded_by"], old["version"]) == ("F_0002", 1)
    assert (new["kind"], new["project"], new["superseded_by"]) == ("fact", "燕子", None)
    assert [(one["type"], one["target"]) for one in new["relations"]] == [("supersedes", "F_0001")]
    assert "8025" in memory.show("F_0001").window.text
    assert [hit.ref for hit in memory.search("网关").hits] == ["F_0002"]
    assert [hit.ref for hit in memory.search("8025", superseded=True).hits] == ["F_0001"]
    assert [event["kind"] for event in homes.events(home, "created", "superseded")] == [
        "created", "created", "superseded",
    ]  # fmt: skip
    assert (
        memory.supersede("F_0001", "端口", "网关监听 8030 端口，备份在 02:30。").status
        == "unchanged"
    )


def test_link_unlink_related(memory, home):
    for number in range(4):
        memory.capture(f"卡 {number}", f"{BODY} {number}")
    change = memory.link("N_0001", "caused by", "卡 1")
    assert (change.status, change.ref, change.indexed) == ("linked", "N_0001", True)
    assert b"type: caused_by" in homes.cards(home)["17-Notes/卡-0.md"]
    assert memory.link("N_0001", "caused_by", "N_0002").status == "unchanged"
    memory.link("N_0002", "implements", "N_0003")
    memory.link("N_0004", "refers_to", "N_0003")

    def around(reference, depth=1):
        found = memory.related(reference, depth=depth)["cards"]
        return [
            (one["ref"], one["depth"], one["type"], one["outgoing"], one["via"]) for one in found
        ]

    assert around("N_0001") == [("N_0002", 1, "caused_by", True, "N_0001")]
    assert around("N_0003") == [
        ("N_0002", 1, "implements", False, "N_0003"),
        ("N_0004", 1, "refers_to", False, "N_0003"),
    ]
    assert around("N_0001", 3) == [
        ("N_0002", 1, "caused_by", True, "N_0001"),
        ("N_0003", 2, "implements", True, "N_0002"),
        ("N_0004", 3, "refers_to", False, "N_0003"),
    ]
    assert memory.unlink("N_0002", "implements", "N_0003").status == "unlinked"
    assert memory.unlink("N_0002", "implements", "N_0003").status == "unchanged"
    assert around("N_0001", 3) == [("N_0002", 1, "caused_by", True, "N_0001")]
    # A link to a card that is gone can be taken away under its name.
    memory.forget("N_0002")
    assert around("N_0001") == []
    assert memory.unlink("N_0001", "caused_by", "N_0002").status == "unlinked"
    assert homes.events(home, "linked", "unlinked")[0]["target"] == "N_0002"


def test_links_through_the_command_line(memory, home):
    memory.capture("甲", f"{BODY} 1")
    memory.capture("乙", f"{BODY} 2")
    done = homes.command(home, "link", "N_0001", "caused_by", "N_0002", "--json")
    assert (done.returncode, json.loads(done.stdout)["status"]) == (0, "linked")
    done = homes.command(home, "related", "N_0002", "--json")
    assert [card["ref"] for card in json.loads(done.stdout)["cards"]] == ["N_0001"]
    done = homes.command(home, "unlink", "N_0001", "caused_by", "N_0002", "--json")
    assert (done.returncode, json.loads(done.stdout)["status"]) == (0, "unlinked")
    done = homes.command(home, "related", "N_0002")
    assert done.returncode == 1 and done.stderr.startswith("No card")


@pytest.mark.parametrize("how", ["capture", "supersede", "update", "raw", "raw-stdin", "argument"])
def test_a_text_that_is_not_utf8_is_refused(home, tmp_path, how):
    homes.command(home, "capture", "--title", "站点", stdin=BODY)
    before, events = homes.cards(home), homes.events(home)
    # Fifteen bytes in UTF-8, and then GB18030.
    data = "站点根目录".encode() + "在别处，不在这里".encode("gb18030")
    (tmp_path / "old.txt").write_bytes(data)
    arguments, name = {
        "capture": (["capture", "--title", "日志"], "the text on stdin"),
        "supersede": (["supersede", "N_0001", "--title", "日志"], "the text on stdin"),
        "update": (["update", "N_0001", "--body", "-"], "the text on stdin"),
        "raw": (
            ["capture", "--title", "日志", "--body", OTHER, "--raw", str(tmp_path / "old.txt")],
            str(tmp_path / "old.txt"),
        ),
        "raw-stdin": (
            ["capture", "--title", "日志", "--body", OTHER, "--raw", "-"],
            "the text on stdin",
        ),
        "argument": (["update", "N_0001", "--body", os.fsdecode(data)], "--body"),
    }[how]
    done = homes.command(home, *arguments, stdin=data)
    [line] = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, "")
    assert line.startswith(f"Error: {name} is not UTF-8: byte 0xd4 at offset 15; "), line
    assert (homes.cards(home), homes.events(home)) == (before, events)
    assert homes.pending(home) == [] and not list((home / "evidence").rglob("*.txt"))


def test_every_text_that_is_written_has_to_be_utf8(home):
    for option in ("--title", "--summary", "--tags", "--agent", "--session", "--relates"):
        arguments = {"--title": "站点", option: "a:\udcff"}
        words = [word for pair in arguments.items() for word in pair]
        done = homes.command(home, "capture", *words, stdin=BODY)
        assert done.returncode == 2
        assert done.stderr.startswith(f"Error: {option} is not UTF-8: byte 0xff at offset 2;")
    assert not home.exists()


def test_a_byte_order_mark_is_no_part_of_the_text(home):
    homes.command(home, "capture", "--title", "站点", stdin=b"\xef\xbb\xbf" + BODY.encode())
    assert homes.cards(home)["17-Notes/站点.md"].endswith(f"---\n{BODY}\n".encode())


def test_a_text_on_stdin_is_never_cut(home):
    done = homes.command(home, "capture", "--title", "站点", stdin="长" * 3_000_000)
    assert done.returncode == 2 and "larger than 8 MiB" in done.stderr
    assert not home.exists()


def test_a_fact_does_not_end_before_it_begins(memory, home):
    done = homes.command(
        home, "capture", "--title", "站点", "--valid-from", "2026-03-02",
        "--valid-until", "2026-03-01", stdin=BODY,
    )  # fmt: skip
    [line] = done.stderr.splitlines()
    assert done.returncode == 2
    assert "valid_until 2026-03-01 is before valid_from 2026-03-02" in line
    assert homes.cards(home) == {} and homes.events(home) == []
    # One day is a time.
    memory.capture("站点", BODY, valid_from="2026-03-01", valid_until="2026-03-01")
    before = homes.cards(home)
    with pytest.raises(MemoryFault, match="is before valid_from 2026-03-01"):
        memory.update("N_0001", valid_until="2026-02-28T23:59:00+00:00")
    with pytest.raises(MemoryFault, match="is before valid_from"):
        # 09:59:59 in the other one's time.
        memory.supersede(
            "N_0001", "站点二", OTHER, valid_from="2026-05-01T10:00:00+08:00",
            valid_until="2026-05-01T01:59:59+00:00",
        )  # fmt: skip
    assert homes.cards(home) == before and len(homes.events(home)) == 1
    assert homes.pending(home) == []


def test_a_card_that_ends_before_it_begins_can_be_changed_and_mended(memory, home):
    memory.capture("站点", BODY, valid_from="2026-03-01")
    path = home / "vault" / "17-Notes" / "站点.md"
    path.write_text(path.read_text().replace("valid_from:", "valid_until: 2026-02-01\nvalid_from:"))
    memory.index()
    assert memory.update("N_0001", tags=["甲"]).status == "updated"
    assert memory.update("N_0001", valid_until="2026-04-01").status == "updated"
    assert memory.show("N_0001").card["valid_until"] == "2026-04-01"


# Forget, trash, restore


def test_forget_and_restore(memory, home):
    memory.capture("站点", BODY)
    memory.capture("日志", OTHER, relates=[("caused_by", "N_0001")])
    before = homes.cards(home)["17-Notes/站点.md"]
    change = memory.forget("N_0001")
    assert (change.status, change.ref, change.indexed) == ("trashed", "N_0001", True)
    assert change.hint == f"memory trash --restore {change.trash_path}"
    assert (home / "vault" / change.trash_path).read_bytes() == before
    assert "17-Notes/站点.md" not in homes.cards(home)
    with pytest.raises(NotFound):
        memory.show("N_0001")
    assert memory.search("根目录", limit=1).hits == ()
    [listed] = memory.trashed()
    assert (listed["trash_path"], listed["path"]) == (change.trash_path, "17-Notes/站点.md")
    memory.index()
    assert homes.query(home / "memory.db", "select count(*) from cards") == [(1,)]

    back = memory.restore(change.trash_path)
    assert (back.status, back.ref, back.path, back.indexed) == (
        "restored", "N_0001", "17-Notes/站点.md", True,
    )  # fmt: skip
    assert homes.cards(home)["17-Notes/站点.md"] == before
    assert memory.trashed() == []
    assert [card["ref"] for card in memory.related("N_0002")["cards"]] == ["N_0001"]
    assert [event["kind"] for event in homes.events(home) if event["kind"] != "gap"] == [
        "created", "created", "trashed", "restored",
    ]  # fmt: skip
    with pytest.raises(NotFound) as told:
        memory.restore(change.trash_path)
    assert str(told.value) == f"{change.trash_path} is not in the trash"
    assert "brought back" in told.value.hint and "`memory trash`" in told.value.hint


def test_restore_where_the_name_is_taken(memory, home):
    memory.capture("站点", BODY)
    memory.show("N_0001")
    gone = memory.forget("N_0001").trash_path
    memory.capture("站点", OTHER)
    memory.show("N_0002")
    memory.show("N_0002")
    assert memory.restore(gone).path == "17-Notes/站点-2.md"
    # Reads belong to the card, wherever it lies.
    for again in (memory, _built_anew(home)):
        again.index()
        reads = homes.query(
            home / "memory.db", "select ref, reads from card_stats join cards on id = card_id"
        )
        assert sorted(reads) == [("N_0001", 1), ("N_0002", 2)]


def test_trash_through_the_command_line(memory, home):
    memory.capture("站点", BODY)
    done = homes.command(home, "forget", "N_0001")
    assert done.returncode == 0 and "memory trash --restore .trash/" in done.stdout
    done = homes.command(home, "trash", "--json")
    [card] = json.loads(done.stdout)["cards"]
    done = homes.command(home, "trash", "--restore", card["trash_path"], "--json")
    assert (done.returncode, json.loads(done.stdout)["status"]) == (0, "restored")
    assert homes.command(home, "trash", "--restore", "../../etc/passwd").returncode == 2
    assert homes.command(home, "forget", "N_0009").returncode == 1


# Raw


def test_raw(memory, home):
    raw = "第一行\n" + "甲乙丙丁" * 2000 + "\n最后一行"
    change = memory.capture("会议", BODY, kind="episode", raw=raw)
    sha256 = change.evidence
    assert (home / "evidence" / sha256[:2] / f"{sha256}.txt").read_text("utf-8") == raw
    assert f"- {sha256}".encode() in homes.cards(home)[change.path]
    shown = memory.raw("E_0001", max_chars=10)
    assert (shown["text"], shown["length"], shown["has_more"]) == (raw[:10], len(raw), True)
    assert memory.raw("E_0001", offset=len(raw) - 4, max_chars=0)["text"] == "最后一行"
    assert memory.search("甲乙").hits == ()
    assert (
        memory.capture("会议", BODY, kind="episode", raw=raw).to_dict().get("metadata_differs")
        is None
    )
    assert memory.capture("会议", BODY, raw="另一份").metadata_differs is True
    with pytest.raises(NotFound):
        memory.raw("E_0001", part=2)


def test_raw_through_the_command_line(home, tmp_path):
    file = tmp_path / "call.txt"
    file.write_text("原文" * 100, "utf-8")
    arguments = ("capture", "--title", "电话", "--body", BODY, "--raw")
    assert homes.command(home, *arguments, str(file)).returncode == 0
    done = homes.command(home, "raw", "N_0001", "--max-chars", "4", "--json")
    assert json.loads(done.stdout)["text"] == "原文原文"
    assert homes.command(home, *arguments, str(tmp_path / "none")).returncode == 2
    big = tmp_path / "big.txt"
    big.write_bytes(b"a" * (2 * 1024 * 1024 + 1))
    done = homes.command(home, *arguments[:2], "大", *arguments[3:], str(big))
    assert done.returncode == 2 and "split" in done.stderr
    assert list(homes.cards(home)) == ["17-Notes/电话.md"]
    done = homes.command(home, "capture", "--title", "大", "--raw", "-", stdin=BODY)
    assert done.returncode == 2 and "stdin" in done.stderr


# Sources that are only read


@pytest.fixture
def source(memory, home) -> Path:
    folder = home.parent / "notes"
    folder.mkdir()
    (folder / "a.md").write_text(
        "---\nid: K_0001\ntitle: 甲\n---\n\n别人写的第一张卡片。\n", "utf-8"
    )
    (folder / "b.md").write_text(
        "---\nid: K_0002\ntitle: 乙\nrelations:\n  - {type: caused_by, target: K_0001}\n---\n\n"
        "别人写的第二张卡片。\n",
        "utf-8",
    )
    memory.capture("自己的", BODY)
    memory.import_paths([str(folder)])
    return folder


def test_a_source_is_never_touched(memory, home, source):
    before = homes.digest(source)
    for call in (
        lambda: memory.update("K_0001", body=OTHER),
        lambda: memory.forget("K_0001"),
        lambda: memory.restore_version("K_0001", 1),
    ):
        with pytest.raises(MemoryFault) as caught:
            call()
        assert "only read" in caught.value.error

    change = memory.link("K_0001", "refers_to", "N_0001")
    assert (change.status, change.indexed) == ("linked", True)
    assert "ledger" in change.warnings[0]
    assert [card["ref"] for card in memory.related("N_0001")["cards"]] == ["K_0001"]
    assert memory.link("K_0001", "refers_to", "N_0001").status == "unchanged"
    # What stands in the file of somebody else cannot be taken out of it.
    with pytest.raises(MemoryFault) as caught:
        memory.unlink("K_0002", "caused_by", "K_0001")
    assert "b.md" in caught.value.error
    assert memory.link("K_0002", "caused_by", "K_0001").status == "unchanged"

    change = memory.supersede("K_0002", "乙 新", "自己写的，代替别人的第二张。")
    assert (change.status, change.supersedes) == ("superseded", "K_0002")
    assert "ledger" in change.warnings[0]
    assert memory.show("K_0002").card["superseded_by"] == change.ref
    memory.capture("引用", OTHER, relates=[("refers_to", "K_0001")])
    memory.index()
    assert homes.digest(source) == before

    for again in (memory, _built_anew(home)):
        assert again.show("K_0002").card["superseded_by"] == change.ref
        assert {card["ref"] for card in again.related("N_0001")["cards"]} == {"K_0001"}
    assert memory.unlink("K_0001", "refers_to", "N_0001").status == "unlinked"
    with pytest.raises(MemoryFault):
        memory.unlink("K_0002", "caused_by", "K_0001")
    for again in (memory, _built_anew(home)):
        assert again.related("N_0001")["cards"] == []
    assert homes.digest(source) == before


def _built_anew(home: Path) -> Memory:
    homes.remove_index(home)
    memory = Memory(str(home))
    memory.index()
    return memory


# As it was


class Clock:
    """Stands in for the clock of the machine."""

    def __init__(self, monkeypatch, start: datetime) -> None:
        self.moment = start
        monkeypatch.setattr("datasette_memory.ledger.events.time.time_ns", self.ns)
        monkeypatch.setattr("datasette_memory.changes._now", self.iso)

    def ns(self) -> int:
        self.moment += timedelta(milliseconds=1)
        return int(self.moment.timestamp() * 1000) * 1_000_000

    def iso(self) -> str:
        return self.moment.astimezone(timezone.utc).isoformat(timespec="seconds")

    def set(self, text: str) -> None:
        self.moment = datetime.fromisoformat(text)


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch, datetime(2026, 3, 1, 12, tzinfo=timezone.utc))


def test_as_of(memory, clock):
    memory.capture("端口", "网关监听 8025 端口，备份在 02:30。", kind="fact")
    memory.capture("原因", OTHER)
    clock.set("2026-03-05T12:00+00:00")
    memory.update("F_0001", body="网关监听 8026 端口，备份在 02:30。")
    memory.link("F_0001", "caused_by", "N_0001")
    clock.set("2026-03-09T12:00+00:00")
    memory.supersede("F_0001", "新端口", "网关监听 8030 端口，备份在 03:30。")
    memory.unlink("F_0001", "caused_by", "N_0001")

    def port(day):
        return memory.show("F_0001", as_of=day).window.text[4:9].strip()

    assert [port(f"2026-03-{day:02}") for day in (1, 4, 5, 8, 9, 20)] == [
        " 8025".strip(), "8025", "8026", "8026", "8026", "8026",
    ]  # fmt: skip
    assert port("2026-03-05T11:00+00:00") == "8025"
    with pytest.raises(NotFound):
        memory.show("F_0001", as_of="2026-02-28")
    assert memory.show("F_0001", as_of="2026-03-05").card["superseded_by"] is None
    assert memory.show("F_0001", as_of="2026-03-09").card["superseded_by"] == "F_0002"

    def links(day):
        return [
            (card["type"], card["ref"]) for card in memory.related("F_0001", as_of=day)["cards"]
        ]

    assert links("2026-03-04") == []
    assert links("2026-03-06") == [("caused_by", "N_0001")]
    assert links("2026-03-09") == [("superseded_by", "F_0002")]
    found = memory.search("网关", as_of="2026-03-06")
    assert [hit.ref for hit in found.hits] == ["F_0001"]
    assert found.notice


def test_as_of_of_links_on_foreign_cards(clock, memory, home, source):
    clock.set("2026-04-01T12:00+00:00")
    memory.link("K_0001", "refers_to", "K_0002")
    clock.set("2026-04-03T12:00+00:00")
    memory.unlink("K_0001", "refers_to", "K_0002")

    def links(moment):
        # The files of the source are as old as this test; the cards count as there all the time.
        for file in source.glob("*.md"):
            os.utime(file, (1_700_000_000, 1_700_000_000))
        memory.index()
        found = memory.related("K_0001", as_of=moment)["cards"]
        return [card["type"] for card in found if card["outgoing"]]

    assert links("2026-03-31") == []
    assert links("2026-04-02") == ["refers_to"]
    assert links("2026-04-04") == []


def test_a_clock_set_backwards(clock, memory, home, source):
    """What comes first is told by the position in the ledger, not by the time."""
    memory.capture("版本", f"{BODY} 一")
    ref = "N_0002"
    memory.show(ref)
    memory.link("K_0001", "refers_to", ref)
    clock.set("2026-02-01T00:00+00:00")
    memory.update(ref, body=f"{BODY} 二")
    memory.unlink("K_0001", "refers_to", ref)
    clock.set("2025-01-01T00:00+00:00")
    memory.update(ref, body=f"{BODY} 三")
    os.rename(home / "vault/17-Notes/版本.md", home / "vault/17-Notes/改名.md")
    memory.index()
    memory.show(ref)
    clock.set("2026-03-20T00:00+00:00")
    memory.update(ref, body=f"{BODY} 四")

    versions = [event.get("version_before") for event in memory.history(ref)["events"]]
    assert [version for version in versions if version] == [1, 2, 3]
    # One file of the month for all: none may stand before an older one.
    assert [path.name[:7] for path in sorted((home / "ledger").glob("*.jsonl"))] == ["2026-03"]
    for again in (memory, _built_anew(home)):
        assert again.related(ref)["cards"] == []
        assert homes.query(
            home / "memory.db",
            "select reads from card_stats join cards on id = card_id where ref = ?", ref,
        ) == [(2,)]  # fmt: skip
        # The text of a moment is that before the first change that came after it.
        assert again.show(ref, as_of="2026-03-10").window.text == f"{BODY} 三\n"
        assert again.show(ref, as_of="2026-03-21").window.text == f"{BODY} 四\n"
    # The queue keeps its order as well: see test_pending.py.


# Secret cards


def test_a_secret_card_leaves_no_word_in_the_index(memory, home):
    change = memory.capture(
        "金库密码本", "密码本放在第三个抽屉，钥匙在门后。", sensitivity="secret"
    )
    assert (change.status, change.id, change.indexed) == ("created", None, False)
    assert change.warning is None and "secret" in change.hint
    memory.capture("平常", BODY)
    memory.update("N_0001", body="密码本搬到了第四个抽屉，钥匙还在门后。")
    memory.capture("后来保密", OTHER)
    memory.show("N_0003")
    memory.update("N_0003", sensitivity="secret")
    memory.index()
    for _ in range(2):
        data = b"".join(path.read_bytes() for path in home.glob("memory.db*"))
        for word in ("金库", "抽屉", "后来保密", "轮转", "N_0001", "N_0003"):
            assert word.encode() not in data, word
        memory = _built_anew(home)
    assert memory.show("N_0001", secret=True).window.text.startswith("密码本搬到了第四个抽屉")
    # The same again is the same card, whatever the folder.
    again = memory.capture("金库密码本", "密码本搬到了第四个抽屉，钥匙还在门后。", kind="fact")
    assert (again.status, again.ref) == ("unchanged", "N_0001")
    assert memory.capture("再一张", f"{BODY} 再").ref == "N_0004"


def test_a_secret_card_can_be_changed_and_forgotten(memory, home):
    memory.capture("金库密码本", "密码本放在第三个抽屉，钥匙在门后。", sensitivity="secret")
    memory.capture("平常", BODY)
    gone = memory.forget("N_0001")
    assert gone.status == "trashed"
    memory.index()
    data = b"".join(path.read_bytes() for path in home.glob("memory.db*"))
    assert "金库".encode() not in data
    memory.restore(gone.trash_path)
    memory.update("N_0001", sensitivity="private")
    memory.index()
    for again in (memory, _built_anew(home)):
        assert again.show("N_0001").card["path"] == "17-Notes/金库密码本.md"


def test_a_secret_card_has_all_the_commands(memory, home):
    """It is found on this side of every server: its raw text, history, links, and its successor."""
    memory.capture("平常", BODY)
    memory.capture(
        "金库密码本", "密码本放在第三个抽屉，钥匙在门后。", kind="fact", sensitivity="secret",
        raw="密码本的扫描件原文", relates=[("refers_to", "N_0001")],
    )  # fmt: skip
    memory.capture("另一张", OTHER)
    assert memory.raw("F_0001", secret=True)["text"] == "密码本的扫描件原文"
    assert memory.link("N_0002", "about", "F_0001").status == "linked"
    assert memory.link("F_0001", "seen_in", "N_0002").status == "linked"
    found = memory.related("金库密码本", secret=True, depth=2)
    assert [(one["ref"], one["type"], one["outgoing"], one["via"]) for one in found["cards"]] == [
        ("N_0001", "refers_to", True, "F_0001"),
        ("N_0002", "seen_in", True, "F_0001"),
    ]
    kinds = [event["kind"] for event in memory.history("F_0001", secret=True)["events"]]
    assert kinds == ["created", "linked"]
    # What a server calls does not know them.
    for ask in (memory.raw, memory.related, memory.history, memory.show):
        with pytest.raises(NotFound):
            ask("F_0001")
    # What replaces it is secret too, unless it is said not to be.
    change = memory.supersede("F_0001", "金库密码本二", "密码本改放在第五个抽屉，钥匙在门后。")
    assert (change.status, change.ref, change.indexed) == ("superseded", "F_0002", False)
    old = homes.cards(home)["12-Facts/金库密码本.md"].decode()
    assert "superseded_by: F_0002\n" in old and "sensitivity: secret\n" in old
    new = homes.cards(home)["12-Facts/金库密码本二.md"].decode()
    assert "kind: fact\n" in new and "sensitivity: secret\n" in new
    memory.index()
    data = b"".join(path.read_bytes() for path in home.glob("memory.db*"))
    for word in ("金库", "抽屉", "扫描件"):
        assert word.encode() not in data, word
    open_one = memory.supersede(
        "F_0002", "密码本的去处", "密码本已经交给银行保管，不在抽屉里。", sensitivity="internal"
    )
    assert memory.show(open_one.ref).card["sensitivity"] == "internal"
    for command in ("history", "related", "raw"):
        done = homes.command(home, command, "F_0001")
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("index", [True, False], ids=["index", "files"])
def test_a_server_does_not_learn_that_there_is_a_secret_card(memory, home, index):
    body = "密码本放在第三个抽屉，钥匙在门后。"
    memory.capture("金库密码本", body, sensitivity="secret")
    if not index:
        homes.remove_index(home)
        (home / "memory.db").mkdir()
    for surface in ("api", "mcp"):
        by = {"surface": surface}
        change = memory.capture("金库密码本", f"{body}{surface}", by=by, on_conflict="reject")
        assert change.status == "created"
        assert (change.conflict, change.existing_path, change.collision_paths) == (None,) * 3
        memory.forget(change.path, by=by) if index else (home / "vault" / change.path).unlink()
    same = memory.capture("金库密码本", body, by={"surface": "api"})
    assert same.status == "created"
    assert memory.capture("金库密码本", body).status == "unchanged"


# Looking back, and around


def test_two_cards_with_several_links(memory, home):
    memory.capture("甲", BODY)
    memory.capture("乙", OTHER)
    for arguments in (
        ("N_0001", "caused_by", "N_0002"),
        ("N_0001", "implements", "N_0002"),
        ("N_0002", "refers_to", "N_0001"),
    ):
        memory.link(*arguments)
    [card] = memory.related("N_0001")["cards"]
    assert (card["type"], card["outgoing"]) == ("caused_by", True)
    assert card["also"] == [
        {"type": "implements", "outgoing": True},
        {"type": "refers_to", "outgoing": False},
    ]
    told = homes.command(home, "related", "N_0001").stdout
    assert "caused by ->, implements ->, refers to <- N_0002 乙" in told


def test_a_restored_version_does_not_make_the_card_younger(memory, home):
    notes = home / "vault" / "17-Notes"
    notes.mkdir(parents=True)
    (notes / "手写.md").write_text(f"---\nid: N_0007\n---\n{BODY}\n", "utf-8")
    long_ago = datetime(2026, 1, 1, tzinfo=timezone.utc).timestamp()
    os.utime(notes / "手写.md", (long_ago, long_ago))
    memory.index()
    memory.update("N_0007", body=OTHER)
    memory.restore_version("N_0007", 1)
    assert memory.show("N_0007").card["created"] == "2026-01-01T00:00:00+00:00"
    assert memory.show("N_0007", as_of="2026-01-02").window.text == f"{BODY}\n"


def test_an_earlier_text_names_the_cards_that_it_led_to(memory):
    memory.capture("甲", BODY)
    memory.capture("乙", OTHER, relates=[("refers_to", "N_0001")])
    then = datetime.now(timezone.utc).isoformat()
    time.sleep(0.01)
    memory.update("N_0002", body=f"{OTHER} 二")
    assert memory.show("N_0002", as_of=then).card["relations"] == [
        {"type": "refers_to", "target": "N_0001", "title": "甲"}
    ]


def test_a_forgotten_card_says_where_it_is(memory):
    memory.capture("甲", BODY)
    trash = memory.forget("N_0001").trash_path
    for ask in (memory.show, memory.history, memory.related):
        with pytest.raises(NotFound) as caught:
            ask("N_0001")
        assert f"`memory trash --restore {trash}`" in caught.value.hint
    memory.capture("密", OTHER, sensitivity="secret")
    memory.forget("N_0002")
    with pytest.raises(NotFound) as caught:
        memory.show("N_0002", secret=True)
    assert "trash" not in caught.value.hint


def test_a_fact_may_have_held_before_it_was_written_down(memory):
    memory.capture("端口", BODY, valid_from="2026-01-01", valid_until="2026-02-01")
    assert [hit.ref for hit in memory.search("站点", as_of="2026-01-15").hits] == ["N_0001"]
    assert not memory.search("站点", as_of="2025-12-15").hits
    assert not memory.search("站点", as_of="2026-02-15").hits


# What must not be


def test_cards_cannot_replace_each_other(memory):
    for title in "甲乙丙":
        memory.capture(title, f"{BODY} {title}")
    memory.link("N_0001", "supersedes", "N_0002")
    memory.link("N_0003", "superseded_by", "N_0002")
    for arguments in (
        ("N_0002", "supersedes", "N_0001"),
        ("N_0001", "superseded_by", "N_0002"),
        ("N_0003", "supersedes", "N_0001"),
        ("N_0001", "superseded_by", "N_0003"),
    ):
        with pytest.raises(MemoryFault, match="would replace each other"):
            memory.link(*arguments)
    assert memory.link("N_0001", "supersedes", "N_0003").status == "linked"
    assert memory.link("N_0002", "refers_to", "N_0001").status == "linked"


def test_a_version_that_is_a_word_stays_and_the_ledger_counts(memory, home):
    memory.capture("接口", BODY)
    path = home / "vault" / "17-Notes" / "接口.md"
    path.write_text(path.read_text("utf-8").replace("kind:", "version: 2.1-rc\nkind:"), "utf-8")
    texts = [f"{BODY} {number}" for number in range(3)]
    answers = [memory.update("N_0001", body=text).version for text in texts]
    assert answers == [2, 3, 4]
    assert "version: 2.1-rc\n" in path.read_text("utf-8")
    kept = [
        event["version_before"] for event in memory.history("N_0001")["events"] if "before" in event
    ]
    assert kept == [1, 2, 3]
    back = memory.restore_version("N_0001", 2)
    assert (back.status, back.version) == ("updated", 5)
    assert memory.show("N_0001").window.text == f"{texts[0]}\n"


def test_a_card_that_was_moved_by_hand_is_followed(memory, home):
    memory.capture("站点", BODY)
    memory.show("N_0001")
    notes = home / "vault" / "17-Notes"
    for change in (
        lambda: memory.update("N_0001", body=OTHER),
        lambda: memory.link("N_0001", "refers_to", "N_0002"),
        lambda: memory.forget("N_0001"),
    ):
        memory.capture("别的", f"{BODY} 别的")
        [path] = [path for path in notes.rglob("*.md") if "站点" in path.name]
        path.rename(notes / f"{path.stem}-新.md")
        assert change().path == f"17-Notes/{path.stem}-新.md"
    # And one that is gone says so.
    (notes / "别的.md").unlink()
    with pytest.raises(NotFound):
        memory.update("N_0002", body=OTHER)


def test_what_comes_back_from_the_trash_brings_its_reads(memory, home):
    memory.capture("站点", BODY)
    memory.show("N_0001")
    memory.show("N_0001")
    memory.restore(memory.forget("N_0001").trash_path)
    reads = homes.query(home / "memory.db", "select reads from card_stats")
    assert reads == [(2,)]
    memory.index()
    assert homes.query(home / "memory.db", "select reads from card_stats") == reads


# References


def test_a_reference_that_several_cards_answer_to(memory):
    memory.capture("站点", BODY)
    memory.capture("站点", OTHER, kind="fact")
    with pytest.raises(Ambiguous) as caught:
        memory.update("站点", tags=["甲"])
    assert len(caught.value.candidates) == 2
