"""A crowd of processes writes, reads and imports at once: nothing is lost, nobody is turned away."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from datasette_memory.memory import Memory

_spec = importlib.util.spec_from_file_location("homes", Path(__file__).with_name("homes.py"))
homes = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(homes)

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs fork")

WRITERS, READERS = 8, 4

# Each of the crowd writes a line of JSON for everything that it was told.
CROWD = """
import json, os, sys, time, traceback
from pathlib import Path
from datasette_memory.memory import Memory

home, seconds, heavy = Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3] == "heavy"
WRITERS, READERS = int(sys.argv[4]), int(sys.argv[5])
notes = home.parent / "notes"
begin = time.monotonic() + 0.3


def text(tag):
    return "\\n".join(f"{tag} 第 {line} 行，网关监听端口。" for line in range(40))


def writer(number, memory, say):
    step = 0
    while time.monotonic() < begin + seconds:
        step += 1
        tag = f"w{number}s{step}"
        if step % 4 == 1:
            change = memory.capture(f"卡片 {tag}", text(tag), tags=[f"t{number}"])
            say(do="capture", tag=tag, answer=change.to_dict())
            last = change.ref
        elif step % 4 == 2:
            change = memory.update("N_0001", body=text(tag))
            say(do="update", tag=tag, answer=change.to_dict())
        elif step % 4 == 3:
            change = memory.link("N_0002", tag, last)
            say(do="link", tag=tag, target=last, answer=change.to_dict())
        else:
            hits = memory.search(f"卡片 {last}").hits
            change = memory.update(last, tags=[f"t{number}", tag])
            say(do="tags", tag=tag, ref=last, hits=len(hits), answer=change.to_dict())


def reader(number, memory, say):
    while time.monotonic() < begin + seconds:
        found = memory.search("网关 端口", limit=20)
        say(do="search", hits=len(found.hits))
        shown = memory.show("N_0001", full=True)
        lines = shown.window.text.split("\\n")[:-1]
        say(do="show", version=shown.card["version"], lines=len(lines),
            tags=sorted({line.split(" ")[0] for line in lines}))
        memory.show("N_0003", full=True)
        say(do="show", version=1, lines=40, tags=["third"])


def importer(number, memory, say):
    step = 0
    while time.monotonic() < begin + seconds:
        step += 1
        (notes / f"{step % 50}.md").write_text(f"# 外来 {step}\\n\\n{text(f'n{step}')}\\n")
        if heavy and step % 7 == 0:
            memory.index(rebuild=True)
        elif step % 2:
            memory.import_paths([str(notes)])
        else:
            memory.index()
        say(do="import")


roles = [writer] * WRITERS + [reader] * READERS + [importer]
children = []
for number, role in enumerate(roles):
    child = os.fork()
    if child == 0:
        status = 0
        with open(home.parent / f"said-{number}.jsonl", "w") as file:
            def say(**what):
                file.write(json.dumps(what) + "\\n")
            try:
                time.sleep(max(0, begin - time.monotonic()))
                role(number, Memory(str(home)), say)
            except BaseException:
                say(do="failed", traceback=traceback.format_exc())
                status = 1
        os._exit(status)
    children.append(child)
for child in children:
    os.waitpid(child, 0)
"""


def text(tag: str) -> str:
    return "\n".join(f"{tag} 第 {line} 行，网关监听端口。" for line in range(40))


def crowd(seconds: float, heavy: bool, folder: Path) -> list[dict]:
    """Let them loose in a home with three cards and a folder of two hundred; what they said."""
    home = folder / "home"
    notes = folder / "notes"
    notes.mkdir()
    for number in range(200):
        (notes / f"{number}.md").write_text(f"# 外来 {number}\n\n{text(f'n{number}')}\n", "utf-8")
    memory = Memory(str(home))
    for title, tag in (("第一", "first"), ("第二", "second"), ("第三", "third")):
        memory.capture(title, text(tag))
    del memory
    done = subprocess.run(
        [sys.executable, "-c", CROWD, str(home), str(seconds), "heavy" if heavy else "",
         str(WRITERS), str(READERS)],
        env=homes.environment(home), capture_output=True, text=True, timeout=seconds + 300,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return [
        json.loads(line)
        for path in sorted(folder.glob("said-*.jsonl"))
        for line in path.read_text("utf-8").splitlines()
    ]


def check(folder: Path, said: list[dict]) -> None:
    """Everything that was answered is so."""
    home = folder / "home"
    assert not [one for one in said if one["do"] == "failed"]
    # No word of a lock reaches anybody.
    assert not re.search("locked|busy", json.dumps(said))

    made = {one["tag"]: one["answer"] for one in said if one["do"] == "capture"}
    cards = homes.cards(home)
    for tag, answer in made.items():
        assert answer["status"] == "created" and answer["indexed"], answer
        data = cards[answer["path"]].decode()
        assert f"id: {answer['ref']}\ntitle: 卡片 {tag}\n" in data
        assert data.endswith(f"---\n{text(tag)}\n")
    assert len(cards) == len(made) + 3
    ids = homes.ids(home)
    assert len(ids) == len(set(ids)) == len(cards)
    assert sorted(ids) == [f"N_{number:04}" for number in range(1, len(cards) + 1)]
    created = [event["ref"] for event in homes.events(home, "created")]
    assert sorted(created) == sorted(ids)

    # Every update of the one card is a version, and the versions are a chain.
    updates = [one for one in said if one["do"] == "update"]
    chain = [event for event in homes.events(home, "updated") if event["ref"] == "N_0001"]
    assert [event["version"] for event in chain] == list(range(2, len(updates) + 2))
    assert sorted(one["answer"]["version"] for one in updates) == list(range(2, len(updates) + 2))
    for earlier, later in zip(chain, chain[1:]):
        assert later["before"] == earlier["sha256"]
    last = max(updates, key=lambda one: one["answer"]["version"])
    assert cards["17-Notes/第一.md"].endswith(f"---\n{text(last['tag'])}\n".encode())
    evidence = {path.stem for path in (home / "evidence").rglob("*.txt")}
    assert {event["before"] for event in chain} <= evidence

    links = [one for one in said if one["do"] == "link"]
    assert {one["answer"]["status"] for one in links} <= {"linked"}
    written = re.findall(r"- type: (\w+)\n +target: (\w+)", cards["17-Notes/第二.md"].decode())
    assert sorted(written) == sorted((one["tag"], one["target"]) for one in links)
    linked = [(event["type"], event["target"]) for event in homes.events(home, "linked")]
    assert sorted(linked) == sorted(written)

    for one in (one for one in said if one["do"] == "tags"):
        assert one["answer"]["status"] == "updated" and one["answer"]["indexed"]

    shows = [one for one in said if one["do"] == "show"]
    for one in shows:
        assert one["lines"] == 40 and len(one["tags"]) == 1, one
    assert len(homes.events(home, "read")) == len(shows)
    assert all(one["hits"] for one in said if one["do"] == "search")

    # All of it was in the index before anybody brings that in step.
    db = home / "memory.db"
    found = homes.query(db, "select ref from cards where source = 'vault'")
    assert sorted(ref for (ref,) in found) == sorted(ids)
    assert homes.temporaries(home) == [] and homes.pending(home) == []
    memory = Memory(str(home))
    memory.index()
    assert homes.query(db, "pragma integrity_check") == [("ok",)]
    after = homes.contents(db)
    reads = homes.query(db, "select sum(reads) from card_stats")
    assert reads == [(len(shows),)]
    del memory
    homes.remove_index(home)
    Memory(str(home)).index()
    assert homes.contents(db) == after


@pytest.fixture
def report(request):
    def write(seconds: float, said: list[dict]) -> None:
        counts = Counter(one["do"] for one in said)
        figures = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
        who = f"{WRITERS} writers, {READERS} readers and an import"
        homes.tell(request, [f"{who}, {seconds:.0f} s: {figures}"])

    return write


def test_a_crowd_for_a_moment(report):
    with homes.place() as folder:
        said = crowd(4, False, folder)
        check(folder, said)
        report(4, said)


@pytest.mark.faults
@pytest.mark.parametrize("heavy", [False, True], ids=["import", "rebuild"])
def test_a_crowd_for_a_while(report, tmp_path, heavy):
    """On a disk, where it counts."""
    said = crowd(20, heavy, tmp_path)
    check(tmp_path, said)
    report(20, said)


def test_an_import_does_not_undo_what_is_changed_meanwhile(monkeypatch):
    """It has read the file, and another changes the card before it writes what it has read."""
    from datasette_memory.index import sync as syncing

    real = syncing.read_file
    with homes.place() as folder:
        home = folder / "home"
        memory, other = Memory(str(home)), Memory(str(home))
        for number in range(3):
            memory.capture(f"卡 {number}", text(f"first{number}"))
        path = home / "vault" / "17-Notes" / "卡-1.md"
        path.write_text(path.read_text("utf-8").replace("first1", "edited"), "utf-8")

        def read(file, source):
            data = real(file, source)
            if file.path == "17-Notes/卡-1.md":
                monkeypatch.setattr(syncing, "read_file", real)
                other.update("N_0002", body=text("updated"))
            return data

        monkeypatch.setattr(syncing, "read_file", read)
        memory.index()
        assert memory.show("N_0002").window.text == text("updated") + "\n"
        assert memory.show("N_0002").card["version"] == 2
        before = homes.contents(home / "memory.db", "cards", "tags", "links")
        memory.index()
        assert homes.contents(home / "memory.db", "cards", "tags", "links") == before


def test_an_import_does_not_take_out_a_card_that_came_meanwhile(monkeypatch):
    """A card is forgotten while it looks at the files, and a new one gets the same row."""
    from datasette_memory.index import sync as syncing

    real = syncing.scan
    with homes.place() as folder:
        home = folder / "home"
        memory, other = Memory(str(home)), Memory(str(home))
        for number in range(3):
            memory.capture(f"卡 {number}", text(f"first{number}"))

        def scan(source):
            monkeypatch.setattr(syncing, "scan", real)
            path = home / "vault" / "17-Notes" / "卡-2.md"
            kept = path.read_bytes()
            path.unlink()
            found = real(source)
            path.write_bytes(kept)
            other.forget("N_0003")
            assert other.capture("新的", text("new")).id == 3
            return found

        monkeypatch.setattr(syncing, "scan", scan)
        memory.index()
        assert memory.show("N_0004").card["title"] == "新的"
        found = homes.query(home / "memory.db", "select ref from cards order by ref")
        assert found == [("N_0001",), ("N_0002",), ("N_0004",)]


def test_eight_captures_at_once_are_eight_cards():
    with homes.place() as folder:
        home = folder / "home"
        processes = [
            subprocess.Popen(
                [*homes.MEMORY, "capture", "--title", "同一个标题", "--json",
                 "--body", f"第 {number} 个进程写的正文，各不相同。"],
                env=homes.environment(home), stdout=subprocess.PIPE,
            )
            for number in range(8)
        ]  # fmt: skip
        answers = [json.loads(process.communicate(timeout=120)[0]) for process in processes]
        assert [process.returncode for process in processes] == [0] * 8
        assert sorted(answer["ref"] for answer in answers) == [f"N_{n:04}" for n in range(1, 9)]
        assert len({answer["path"] for answer in answers}) == 8
        assert sorted(bool(answer.get("conflict")) for answer in answers) == [False] + [True] * 7
        assert all(answer["status"] == "created" and answer["indexed"] for answer in answers)
        assert len(homes.cards(home)) == len(homes.events(home, "created")) == 8
