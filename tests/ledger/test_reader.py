import io
import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasette_memory.ledger.events import MAX_LINE, Event, dump, timestamp
from datasette_memory.ledger.reader import Fault, Position, merge, read

A, B = "alpha-00aa", "beta-00bb"


def line(id, second=0, kind="read", **data):
    return dump(Event(1, id, timestamp(1_796_090_584_000 + second * 1000), kind, data=data)) + b"\n"


def ids(reading):
    return [event.id for event, _ in reading]


def write(folder, month, host, *lines):
    path = folder / f"{month}.{host}.jsonl"
    path.write_bytes(b"".join(lines))
    return path


def test_no_ledger_is_an_empty_one(tmp_path):
    for folder in (tmp_path, tmp_path / "missing"):
        reading = read(folder)
        assert ids(reading) == []
        assert reading.faults == []
        assert reading.positions() == {}


def test_files_are_read_by_month_then_host(tmp_path):
    write(tmp_path, "2026-12", A, line("4"), line("5"))
    write(tmp_path, "2026-11", B, line("3"))
    write(tmp_path, "2026-11", A, line("1"), line("2"))
    assert ids(read(tmp_path)) == ["1", "2", "3", "4", "5"]


def test_every_event_has_its_place(tmp_path):
    one, two = line("1"), line("2")
    path = write(tmp_path, "2026-11", A, one, b"\n", b"foreign\n", two)
    assert [position for _, position in read(tmp_path)] == [
        Position(path.name, 1, len(one)),
        Position(path.name, 4, len(one) + 1 + 8 + len(two)),
    ]


def test_what_is_no_event_is_reported_and_passed_over(tmp_path):
    path = write(
        tmp_path,
        "2026-11",
        A,
        line("1"),
        line("x")[:40] + b"\n",
        b"\n \r\n",
        b"\xff\n",
        b"x" * 70_000 + b"\n",
        b"x" * 300_000 + b"\n",
        line("2"),
        line("y")[:-1],
    )
    reading = read(tmp_path)
    assert ids(reading) == ["1", "2"]
    assert [(fault.file, fault.line) for fault in reading.faults] == [
        (path.name, number) for number in (2, 5, 6, 7, 9)
    ]
    assert [fault.reason.partition(":")[0] for fault in reading.faults] == [
        "not JSON",
        "not UTF-8",
        "longer than 65536 bytes",
        "longer than 65536 bytes",
        "the last line has no end",
    ]
    assert reading.positions()[path.name]["lines"] == 8


@pytest.mark.parametrize("size", [65_534, 65_535, 65_536, 65_537, 65_538, 131_072, 131_073])
def test_a_long_line_ends_where_it_ends(tmp_path, size):
    write(tmp_path, "2026-11", A, b"x" * size + b"\n", line("1"))
    reading = read(tmp_path)
    assert ids(reading) == ["1"]
    assert len(reading.faults) == 1


def test_the_longest_line_is_read(tmp_path):
    rest = 65_536 + 1 - len(line("1", pad=["x" * 1000] * 64, last=""))
    longest = line("1", pad=["x" * 1000] * 64, last="x" * rest)
    assert len(longest) == 65_537
    write(tmp_path, "2026-11", A, longest, line("2"))
    assert ids(read(tmp_path)) == ["1", "2"]


def test_names_that_the_ledger_did_not_give(tmp_path):
    write(tmp_path, "2026-11", A, line("1"))
    copy = write(tmp_path, "2026-11", f"{A} (copy)", line("2"))
    for name in (".host", "notes.md", ".tmp-1-2-3", "2026-11.alpha-00aa.jsonl.bak"):
        (tmp_path / name).write_bytes(line("3"))
    folder = tmp_path / "2026-10.alpha-00aa.jsonl"
    folder.mkdir()
    reading = read(tmp_path)
    assert ids(reading) == ["1"]
    assert reading.faults == [
        Fault(folder.name, 0, "not a file that the ledger made"),
        Fault(copy.name, 0, "not a file that the ledger made"),
    ]


def test_a_ledger_that_is_a_file_is_a_fault(tmp_path):
    (tmp_path / "ledger").touch()
    reading = read(tmp_path / "ledger")
    assert ids(reading) == []
    assert [(fault.file, fault.line) for fault in reading.faults] == [("ledger", 0)]


# Reading on


def test_reading_goes_on_where_it_stopped(tmp_path):
    path = write(tmp_path, "2026-11", A, line("1"), b"foreign\n", line("2"))
    first = read(tmp_path)
    assert ids(first) == ["1", "2"]
    since = json.loads(json.dumps(first.positions()))
    again = read(tmp_path, since)
    assert ids(again) == []
    assert again.faults == []
    assert again.positions() == since
    with open(path, "ab") as file:
        file.write(line("3") + b"foreign\n")
    write(tmp_path, "2026-12", B, line("4"))
    onward = read(tmp_path, since)
    assert ids(onward) == ["3", "4"]
    assert [(fault.file, fault.line) for fault in onward.faults] == [(path.name, 5)]
    assert onward.restarted == []
    assert ids(read(tmp_path, onward.positions())) == []


def test_a_line_without_an_end_is_read_when_it_has_one(tmp_path):
    path = write(tmp_path, "2026-11", A, line("1"), line("2")[:30])
    first = read(tmp_path)
    assert ids(first) == ["1"]
    assert len(first.faults) == 1
    path.write_bytes(line("1") + line("2"))
    second = read(tmp_path, first.positions())
    assert ids(second) == ["2"]
    assert second.faults == []


@pytest.mark.parametrize("walk", [read, merge])
def test_what_was_not_walked_through_is_not_counted_as_read(tmp_path, walk):
    write(tmp_path, "2026-11", A, line("1", 0), b"foreign\n", line("3", 2))
    write(tmp_path, "2026-11", B, line("2", 1), line("4", 3))
    expected = ids(walk(tmp_path))
    for count in range(5):
        reading = walk(tmp_path)
        before = [next(reading)[0].id for _ in range(count)]
        assert before + ids(walk(tmp_path, reading.positions())) == expected


def test_a_file_that_is_shorter_is_read_anew(tmp_path):
    path = write(tmp_path, "2026-11", A, line("1"), line("2"))
    since = read(tmp_path)
    assert ids(since) == ["1", "2"]
    path.write_bytes(line("1"))
    reading = read(tmp_path, since.positions())
    assert ids(reading) == ["1"]
    assert reading.faults == [Fault(path.name, 0, "is shorter than it was: it is read anew")]
    assert reading.restarted == [path.name]


@pytest.mark.parametrize("count", [1, 200])
@pytest.mark.parametrize("where", ["first", "middle", "last"])
def test_a_file_that_has_changed_is_read_anew(tmp_path, where, count):
    lines = [line(f"{number:05}") for number in range(count)]
    path = write(tmp_path, "2026-11", A, *lines)
    since = read(tmp_path)
    assert len(ids(since)) == count
    other = line("other")
    lines.insert({"first": 0, "middle": count // 2, "last": count - 1}[where], other)
    path.write_bytes(b"".join(lines))
    reading = read(tmp_path, since.positions())
    assert len(ids(reading)) == count + 1
    assert reading.faults == [Fault(path.name, 0, "is another than it was: it is read anew")]
    assert reading.restarted == [path.name]
    assert ids(read(tmp_path, reading.positions())) == []


def test_a_file_that_is_gone_is_reported(tmp_path):
    path = write(tmp_path, "2026-11", A, line("1"))
    since = read(tmp_path)
    assert ids(since) == ["1"]
    os.remove(path)
    reading = read(tmp_path, since.positions())
    assert ids(reading) == []
    assert reading.faults == [Fault(path.name, 0, "was read before and is gone")]
    assert reading.restarted == [path.name]
    assert reading.positions() == {}


@pytest.mark.parametrize(
    "mark",
    [{}, {"offset": None, "lines": 0, "sample": ""}, {"offset": -1, "lines": 0, "sample": ""}, [1]],
)
def test_marks_that_nobody_understands_count_for_nothing(tmp_path, mark):
    path = write(tmp_path, "2026-11", A, line("1"))
    reading = read(tmp_path, {path.name: mark})
    assert ids(reading) == ["1"]
    assert len(reading.faults) == 1


# The order across hosts


def test_hosts_are_merged_by_time(tmp_path):
    write(tmp_path, "2026-11", A, line("1", 10), line("4", 40))
    write(tmp_path, "2026-11", B, line("2", 20), line("3", 30))
    write(tmp_path, "2026-12", B, line("5", 50))
    assert ids(merge(tmp_path)) == ["1", "2", "3", "4", "5"]
    assert ids(read(tmp_path)) == ["1", "4", "2", "3", "5"]


def test_at_the_same_time_the_hosts_name_decides(tmp_path):
    write(tmp_path, "2026-11", B, line("3"), line("4"))
    write(tmp_path, "2026-11", A, line("1"), line("2"))
    assert ids(merge(tmp_path)) == ["1", "2", "3", "4"]


def test_within_a_host_position_decides_whatever_its_clock_says(tmp_path):
    write(tmp_path, "2026-11", A, line("a1", 50), line("a2", 10), line("a3", 60))
    write(tmp_path, "2026-11", B, line("b1", 20), line("b2", 55))
    assert ids(merge(tmp_path)) == ["b1", "a1", "a2", "b2", "a3"]


@given(st.lists(st.lists(st.integers(0, 20), max_size=6), max_size=4))
def test_a_merge_keeps_the_order_of_every_host(tmp_path_factory, hosts):
    folder = tmp_path_factory.mktemp("ledger")
    for number, seconds in enumerate(hosts):
        lines = [line(f"{number}-{place}", second) for place, second in enumerate(seconds)]
        write(folder, "2026-11", f"host{number}-0000", *lines)
    merged = ids(merge(folder))
    assert len(merged) == sum(map(len, hosts))
    for number, seconds in enumerate(hosts):
        own = [id for id in merged if id.startswith(f"{number}-")]
        assert own == [f"{number}-{place}" for place in range(len(seconds))]


def test_a_merge_has_faults_and_positions_too(tmp_path):
    write(tmp_path, "2026-11", A, b"foreign\n", line("1"))
    write(tmp_path, "2026-11", B, line("2"), b"foreign\n")
    reading = merge(tmp_path)
    assert ids(reading) == ["1", "2"]
    assert sorted((fault.file[8:13], fault.line) for fault in reading.faults) == [
        ("alpha", 1),
        ("beta-", 2),
    ]
    assert reading.positions() == _positions_of_a_read(tmp_path)


def _positions_of_a_read(folder):
    reading = read(folder)
    assert ids(reading)
    return reading.positions()


class Growing(io.RawIOBase):
    """A file that another writes: its end is where that one has come, and later it is not."""

    def __init__(self, *parts):
        self.parts = list(parts)
        self.data, self.at = b"", 0

    def readable(self):
        return True

    def seekable(self):
        return True

    def seek(self, offset, whence=0):
        assert whence == 0
        self.at = offset
        return offset

    def readinto(self, buffer):
        if self.at >= len(self.data) and self.parts:
            # One time at the end, and then there is more.
            part = self.parts.pop(0)
            self.data += part
            if not part:
                return 0
        got = self.data[self.at : self.at + len(buffer)]
        buffer[: len(got)] = got
        self.at += len(got)
        return len(got)


def test_a_line_that_is_being_written_is_not_lost(tmp_path, monkeypatch):
    write(tmp_path, "2026-11", A)
    whole, torn = line("1"), line("2")
    for cut in (1, 40, len(torn) - 1):
        file = Growing(whole + torn[:cut], b"", torn[cut:], b"")
        monkeypatch.setattr(
            "datasette_memory.ledger.reader.open",
            lambda *_, file=file: io.BufferedReader(file),
            raising=False,
        )
        reading = read(tmp_path)
        assert ids(reading) == ["1", "2"]
        assert reading.faults == []


def test_the_longest_line_is_no_fault(tmp_path):
    texts = ["a" * 2000] * 32
    rest = MAX_LINE + 1 - len(line("1", x=texts, y=""))
    path = write(tmp_path, "2026-11", A, line("1", x=texts, y="a" * rest), line("2"))
    assert path.stat().st_size == MAX_LINE + 1 + len(line("2"))
    reading = read(tmp_path)
    assert ids(reading) == ["1", "2"]
    assert reading.faults == []
