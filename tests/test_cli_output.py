"""What makes text safe to show, and the summary of an import."""

import io
import json
import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasette_memory.index.sync import Report, SyncResult
from memory_cli import output
from memory_cli.guard import wants_json
from memory_cli.output import Style, marked, one_line, readable, safe, write_json
from memory_cli.present import size
from memory_cli.summary import summary

# Control characters in Unicode's sense (Cc), and the embeddings, overrides and isolates.
FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
ANY_TEXT = st.text(st.characters(exclude_categories=()))


@given(ANY_TEXT)
def test_safe_text_holds_no_control_character(text):
    assert not FORBIDDEN.search(safe(text))
    assert not re.search(r"[\n\t]", one_line(text))


def test_what_is_written_out():
    assert safe("a\x1b[31mb") == "a\\x1b[31mb"
    assert safe("\u202egnp.exe") == "\\u202egnp.exe"
    assert safe("one\r\ntwo\tthree\rfour") == "one\ntwo\tthree\\x0dfour"
    assert safe("👩‍👩‍👧 \u200b 中文 é") == "👩‍👩‍👧 \u200b 中文 é"
    assert one_line(" a\n\n b\t ") == "a b"


def test_marks_stand_around_what_is_marked():
    text = "网关监听\n8765 \x1b端口"
    spans = [(2, 4), (11, 13)]
    assert marked(text, spans, lambda part: f"<{part}>") == "网关<监听> 8765 \\x1b<端口>"
    assert marked("  x  ", [], str) == "x"


class Stdout(io.TextIOWrapper):
    """A stdout whose bytes can be looked at."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="ascii")


def written(value: object, monkeypatch) -> bytes:
    stdout = Stdout()
    monkeypatch.setattr(sys, "stdout", stdout)
    write_json(value)
    return stdout.buffer.getvalue()


@pytest.mark.parametrize(
    "text",
    ["\ud800", "\udc80 \udcff", "\ud83d\ude00 as two", "\x9b \x7f \u202e", "\\ud800", "🙂", '"\\'],
)
def test_json_carries_every_string(text, monkeypatch):
    data = written({"text": text}, monkeypatch)
    assert not FORBIDDEN.search(data.decode("utf-8").rstrip("\n"))
    # Two surrogates in a row are one character in JSON.
    paired = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    assert json.loads(data) == {"text": paired}


def test_an_argument_that_python_could_not_decode():
    assert readable("阿里云") == "阿里云"
    assert readable("\ud800") == "?"
    # UTF-8 arguments under an ASCII locale.
    if sys.platform != "win32":
        assert readable("阿里".encode().decode("ascii", "surrogateescape")) == "阿里"
        assert readable("\udcff") == "\ufffd"


def test_whether_json_is_asked_for():
    assert wants_json(["search", "x", "--json"])
    assert not wants_json(["search", "--", "--json"])
    assert not wants_json([])


def test_a_command_line_to_copy(monkeypatch):
    monkeypatch.setattr(output.os, "name", "posix")
    assert output.quoted(["memory", "show", "it's a 卡"]) == "memory show 'it'\"'\"'s a 卡'"
    monkeypatch.setattr(output.os, "name", "nt")
    assert output.quoted(["memory", "show", "a b"]) == 'memory show "a b"'


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (1000, "1.0 kB"), (655360, "655.4 kB"), (3 * 10**12, "3000.0 GB")],
)  # fmt: skip
def test_sizes(number, text):
    assert size(number) == text


# Summary

PLAIN = Style(None)


def test_a_summary_counts():
    result = SyncResult(added=1234, updated=2, moved=3, removed=4, unchanged=5, seconds=0.123)
    assert summary(result, "m.db", PLAIN).splitlines() == [
        "1,234 added, 2 updated, 3 moved, 4 removed, 5 unchanged in 0.12 s",
        "index: m.db",
    ]


def test_reasons_that_differ_in_a_value_alone_are_one_group():
    result = SyncResult(seconds=83.21)
    result.skipped = [
        *(Report("s", f"big{n}.md", f"larger than 2 MiB ({n + 3}.1 MiB)") for n in range(10)),
        Report("s", "pipe.md", "not a regular file"),
    ]
    assert summary(result, "m.db", PLAIN).splitlines()[2:] == [
        "11 files skipped, not in the index:",
        "  larger than … MiB …:",
        "    s/big0.md: larger than 2 MiB (3.1 MiB)",
        "    s/big1.md: larger than 2 MiB (4.1 MiB)",
        "    s/big2.md: larger than 2 MiB (5.1 MiB)",
        "    and 7 more (--json names them)",
        "  not a regular file:",
        "    s/pipe.md",
    ]


def test_many_reasons_are_counted():
    result = SyncResult(added=300)
    words = [chr(97 + n % 26) * (n // 26 + 1) for n in range(40)]
    result.faults = [Report("s", f"{word}.md", f"trouble with {word}") for word in words]
    lines = summary(result, "m.db", PLAIN).splitlines()
    assert len(lines) < 25
    assert lines[-1] == "  and 32 files more for 32 other reasons (--json names them)"


def test_a_summary_is_safe():
    result = SyncResult(added=1, notes=["vault\x1b[2J"])
    result.faults = [Report("s\x07", "a\nb\x1b.md", "why\x9b")]
    assert not FORBIDDEN.search(summary(result, "m\x1b.db", PLAIN))
