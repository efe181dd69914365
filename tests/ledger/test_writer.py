import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from datasette_memory import durable
from datasette_memory.ledger import writer
from datasette_memory.ledger.events import parse
from datasette_memory.ledger.reader import read
from datasette_memory.ledger.writer import Ledger

ROOT = Path(__file__).parents[2]
MARCH, FEBRUARY = 1_772_503_200_000, 1_770_000_000_000  # 2026-03-03, 2026-02-02, by date -u -d


def at(monkeypatch, ms):
    monkeypatch.setattr(writer, "now_ms", lambda: ms)


def ledger_files(folder):
    return sorted(name for name in os.listdir(folder) if name != ".host")


def together(code, folder, count):
    """Run the code in `count` processes that start at the same moment; gives what each printed."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-S", "-c", code, str(folder), str(number)],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(count)
    ]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = [process.communicate(timeout=120)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * count
    return answers


READY = """
import sys
from datasette_memory.ledger.writer import Ledger
print("ready", flush=True)
sys.stdin.readline()
"""


def test_an_event_is_a_line_of_this_months_file(tmp_path, monkeypatch):
    at(monkeypatch, MARCH + 7)
    ledger = Ledger(tmp_path / "ledger")
    event = ledger.append("read", ref="D_0001", source="vault", path="a.md", by={"agent": "燕子"})
    assert event.t == "2026-03-03T02:00:00.007Z"
    assert event.by == {"surface": None, "agent": "燕子", "session": None}
    [name] = ledger_files(ledger.folder)
    assert name == f"2026-03.{ledger.host}.jsonl"
    line = (ledger.folder / name).read_bytes()
    assert line.endswith(b"\n")
    assert parse(line) == event


def test_other_keys_are_data(tmp_path):
    event = Ledger(tmp_path).append("gap", sync=False, q="\ud800备份", tiers=("all", "any"))
    assert event.data == {"q": "\ufffd备份", "tiers": ["all", "any"]}
    assert [found for found, _ in read(tmp_path)] == [event]


def test_reads_do_not_wait_for_the_disk(tmp_path, monkeypatch):
    ledger = Ledger(tmp_path)
    ledger.append("read")
    synced = []
    monkeypatch.setattr(durable.system, "fsync", synced.append)
    ledger.append("read", sync=False)
    assert synced == []
    ledger.append("created")
    assert len(synced) == 1


def test_what_breaks_a_rule_is_not_written(tmp_path):
    ledger = Ledger(tmp_path)
    endless = []
    endless.append(endless)
    for refused in (
        {"kind": "dreamt"},
        {"kind": "read", "body": "x"},
        {"kind": "read", "id": "x"},
        {"kind": "read", "by": {"who": "x"}},
        {"kind": "read", "what": "x" * 2001},
        {"kind": "read", "what": endless},
    ):
        with pytest.raises(ValueError):
            ledger.append(**refused)
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_written_is_the_callers_to_know(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError):
        Ledger(tmp_path / "file" / "ledger").append("read")


def test_a_clock_set_back_does_not_change_the_order(tmp_path, monkeypatch):
    ledger = Ledger(tmp_path)
    written = []
    for ms in (MARCH, FEBRUARY, MARCH - 1000, MARCH + 1000, FEBRUARY + 5):
        at(monkeypatch, ms)
        written.append(ledger.append("created"))
        # Another process finds the same.
        written.append(Ledger(tmp_path).append("updated"))
    assert ledger_files(tmp_path) == [f"2026-03.{ledger.host}.jsonl"]
    assert [event for event, _ in read(tmp_path)] == written
    at(monkeypatch, MARCH + 31 * 86_400_000)
    written.append(ledger.append("created"))
    assert len(ledger_files(tmp_path)) == 2
    assert [event for event, _ in read(tmp_path)] == written


def test_the_months_of_other_hosts_are_theirs(tmp_path, monkeypatch):
    (tmp_path / "2027-01.other-00ff.jsonl").touch()
    at(monkeypatch, MARCH)
    ledger = Ledger(tmp_path)
    ledger.append("read")
    assert (tmp_path / f"2026-03.{ledger.host}.jsonl").exists()


def test_a_torn_line_costs_no_other(tmp_path):
    ledger = Ledger(tmp_path)
    first = ledger.append("created")
    [name] = ledger_files(tmp_path)
    with open(tmp_path / name, "ab") as file:
        file.write(b'{"v":1,"id":"01K')
    second = Ledger(tmp_path).append("updated")
    reading = read(tmp_path)
    assert [event for event, _ in reading] == [first, second]
    assert [(fault.file, fault.line) for fault in reading.faults] == [(name, 2)]


def test_eight_processes_write_whole_lines(tmp_path):
    code = f"""{READY}
ledger = Ledger(sys.argv[1])
for number in range(200):
    ledger.append("read", sync=False, writer=int(sys.argv[2]), number=number, pad="字" * 900)
"""
    together(code, tmp_path, 8)
    [name] = ledger_files(tmp_path)
    lines = (tmp_path / name).read_bytes().split(b"\n")
    assert lines.pop() == b""
    found = [parse(line) for line in lines]
    assert len(found) == 1600
    assert len({event.id for event in found}) == 1600
    for number in range(8):
        own = [event.data["number"] for event in found if event.data["writer"] == number]
        assert own == list(range(200))


# What this machine is called


def test_the_host_is_the_name_of_the_machine_and_four_digits(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "host_name", lambda: "Swallow.local")
    host = Ledger(tmp_path).host
    assert re.fullmatch("swallow-local-[0-9a-f]{4}", host)
    assert (tmp_path / ".host").read_text("ascii") == f"{host}\n"
    assert Ledger(tmp_path).host == host


@pytest.mark.parametrize(
    "name, plain",
    [
        ("", "host"),
        ("燕子", "host"),
        ("燕子的 Laptop", "laptop"),
        ("../../etc", "etc"),
        ("a" * 100, "a" * 35),
        ("NUL", "nul"),
        ("x\n2026", "x-2026"),
        ("a_b-c", "a_b-c"),
    ],
)
def test_any_name_of_a_machine_makes_a_file_name(tmp_path, monkeypatch, name, plain):
    monkeypatch.setattr(writer, "host_name", lambda: name)
    event = Ledger(tmp_path).append("read")
    assert re.fullmatch(rf"\d{{4}}-\d\d\.{plain}-[0-9a-f]{{4}}\.jsonl", ledger_files(tmp_path)[0])
    assert [found for found, _ in read(tmp_path)] == [event]


def test_a_copy_on_another_machine_gets_a_name_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "host_name", lambda: "one")
    one = Ledger(tmp_path).host
    monkeypatch.setattr(writer, "host_name", lambda: "two")
    two = Ledger(tmp_path).host
    assert two.startswith("two-")
    monkeypatch.setattr(writer, "host_name", lambda: "one")
    assert Ledger(tmp_path).host == one


@pytest.mark.parametrize("content", [b"", b"one-12", b"\xff\xfe\x00", b"<<<<<<< HEAD\none-zzzz\n"])
def test_a_host_file_that_says_nothing_is_added_to(tmp_path, monkeypatch, content):
    monkeypatch.setattr(writer, "host_name", lambda: "one")
    (tmp_path / ".host").write_bytes(content)
    host = Ledger(tmp_path).host
    assert re.fullmatch("one-[0-9a-f]{4}", host)
    assert Ledger(tmp_path).host == host


def test_eight_processes_that_start_at_once_agree_on_a_name(tmp_path):
    for attempt in range(3):
        answers = together(
            f"{READY}\nprint(Ledger(sys.argv[1]).host)\n", tmp_path / f"{attempt}", 8
        )
        assert len(set(answers)) == 1
        assert re.fullmatch(r"[a-z0-9_-]+-[0-9a-f]{4}\n", answers[0])
