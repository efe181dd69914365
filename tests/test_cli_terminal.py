"""The command line on a terminal: colours, progress, Ctrl-C. Each test runs on a pseudo-terminal."""

import contextlib
import json
import os
import re
import select
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

pty = pytest.importorskip("pty", reason="Windows has no pseudo-terminals")

ROOT = Path(__file__).resolve().parent.parent
SAMPLE = ROOT / "examples" / "vault"
MEMORY = [sys.executable, "-m", "memory_cli"]
IMPORT = [sys.executable, "-c", "from memory_cli.main import import_main; import_main()"]


def environment(home: Path, more: dict[str, str]) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MEMORY_", "PYTHON", "NO_COLOR", "TERM"))
    }
    ours = {"PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", "TERM": "xterm", "COLUMNS": "80"}
    return kept | ours | {"MEMORY_AGENT_HOME": str(home)} | more


class Terminal:
    """A process whose stdout, stderr or both are a terminal; `text` is what it showed."""

    def __init__(self, argv, home: Path, streams=("stdout", "stderr"), **more: str) -> None:
        self.fd, slave = pty.openpty()
        ends = {
            name: slave if name in streams else subprocess.PIPE for name in ("stdout", "stderr")
        }
        self.process = subprocess.Popen(argv, stdin=slave, env=environment(home, more), **ends)
        os.close(slave)
        self.data = b""

    def read(self, until: bytes | None = None) -> str:
        """What the terminal shows, up to the end or to `until`."""
        deadline = time.monotonic() + 60
        while until is None or until not in self.data:
            assert time.monotonic() < deadline, self.data
            if not select.select([self.fd], [], [], 1)[0]:
                continue
            with contextlib.suppress(OSError):
                if part := os.read(self.fd, 65536):
                    self.data += part
                    continue
            break
        return self.data.decode()

    def finish(self) -> tuple[int, str, str]:
        """The exit code, what the terminal shows, and what went into a pipe."""
        text = self.read()
        piped = b"".join(
            stream.read() for stream in (self.process.stdout, self.process.stderr) if stream
        )
        code = self.process.wait(timeout=60)
        os.close(self.fd)
        return code, text.replace("\r\n", "\n"), piped.decode()


def test_matches_are_highlighted(index_file, tmp_path):
    argv = [*MEMORY, "search", "--db", str(index_file()), "监听"]
    code, text, _ = Terminal(argv, tmp_path).finish()
    assert code == 0
    assert "\x1b[1m端口约定\x1b[0m" in text, "the title"
    assert "\x1b[33m\x1b[1m监听\x1b[0m" in text, "the match"


@pytest.mark.parametrize("variable", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_colours_can_be_turned_off(index_file, tmp_path, variable):
    argv = [*MEMORY, "search", "--db", str(index_file()), "监听"]
    code, text, _ = Terminal(argv, tmp_path, **variable).finish()
    assert code == 0
    assert "网关监听 8765" in text
    assert "\x1b" not in text


def test_no_colours_in_a_pipe(index_file, tmp_path):
    argv = [*MEMORY, "search", "--db", str(index_file()), "监听"]
    code, text, piped = Terminal(argv, tmp_path, streams=("stderr",)).finish()
    assert (code, text) == (0, "")
    assert "网关监听 8765" in piped and "\x1b" not in piped


def test_escapes_of_a_card_do_nothing_to_the_terminal(tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    title = json.dumps("红\x1b]0;owned\x07\x9b2J")
    (folder / "a.md").write_text(
        f"---\nid: N_1\ntitle: {title}\n---\n红字 \x1b[2J\x1b[31m end \x9b2J\n", "utf-8"
    )
    db = str(tmp_path / "m.db")
    assert Terminal([*IMPORT, db, str(folder)], tmp_path).finish()[0] == 0
    for command in (["search", "红字"], ["show", "N_1"], ["search", "红字", "--json"]):
        code, text, _ = Terminal([*MEMORY, *command, "--db", db], tmp_path).finish()
        assert code == 0
        text = re.sub(r"\x1b\[[0-9]*m", "", text) if "--json" not in command else text
        assert "\x07" not in text and "\x1b" not in text and "\x9b" not in text
        assert "2J" in text, "it is written out"


def test_json_on_a_terminal_is_indented(index_file, tmp_path):
    argv = [*MEMORY, "search", "--db", str(index_file()), "监听", "--json"]
    code, text, _ = Terminal(argv, tmp_path).finish()
    assert text.startswith('{\n  "query": "监听",\n')
    assert json.loads(text)["count"] == 1


def test_an_import_shows_its_progress(tmp_path):
    argv = [*IMPORT, str(tmp_path / "m.db"), str(SAMPLE)]
    code, text, piped = Terminal(argv, tmp_path, streams=("stderr",)).finish()
    assert code == 0
    assert "Reading files" in text and "100%" in text
    assert piped.startswith("63 added"), "the summary alone is on stdout"
    assert text.endswith("\n"), "what comes next begins on a line of its own"


def test_each_source_has_a_bar(tmp_path):
    for name, count in (("one", 3), ("two", 2)):
        (tmp_path / name).mkdir()
        for number in range(count):
            (tmp_path / name / f"{number}.md").write_text(f"# {name} {number}", "utf-8")
    argv = [*IMPORT, str(tmp_path / "m.db"), str(tmp_path / "one"), str(tmp_path / "two")]
    code, text, piped = Terminal(argv, tmp_path, streams=("stderr",)).finish()
    assert code == 0
    assert text.count("\n") == 2
    assert piped.startswith("5 added")


@pytest.mark.parametrize("option", ["--quiet", "--json"])
def test_no_bar_is_drawn_over_what_was_asked_for(tmp_path, option):
    argv = [*IMPORT, str(tmp_path / "m.db"), str(SAMPLE), option]
    code, text, piped = Terminal(argv, tmp_path).finish()
    assert code == 0
    if option == "--quiet":
        assert text == ""
    else:
        assert json.loads(text[text.index("{") :])["added"] == 63


def test_ctrl_c_while_waiting(tmp_path):
    from filelock import FileLock

    lock = FileLock(tmp_path / ".m.db.lock")
    with lock:
        terminal = Terminal([*IMPORT, str(tmp_path / "m.db"), str(SAMPLE)], tmp_path)
        terminal.read(b"waiting")
        terminal.process.send_signal(signal.SIGINT)
        code, text, _ = terminal.finish()
    assert code == 130
    assert text.endswith(
        "\nStopped. The index is whole; run the command again to go on from there.\n"
    )
    assert "Traceback" not in text


# The signal comes while SQLite calls the tokeniser, which is where an import spends its time.
# SQLite makes an error of its own of the exception.
STOPPED = """
import os, signal
from datasette_memory.index import functions
real, calls = functions.memory_tokens, []
def memory_tokens(text):
    calls.append(text)
    if len(calls) == 50:
        os.kill(os.getpid(), signal.SIGINT)
    return real(text)
functions.memory_tokens = memory_tokens
from memory_cli.main import import_main
import_main()
"""


def test_ctrl_c_inside_sqlite(tmp_path):
    db = tmp_path / "m.db"
    argv = [sys.executable, "-c", STOPPED, str(db), str(SAMPLE)]
    code, text, piped = Terminal(argv, tmp_path, streams=()).finish()
    assert code == 130
    assert piped == "Stopped. The index is whole; run the command again to go on from there.\n"
    connection = sqlite3.connect(db)
    assert connection.execute("pragma integrity_check").fetchone() == ("ok",)
    connection.close()
    code, _, piped = Terminal([*IMPORT, str(db), str(SAMPLE)], tmp_path, streams=()).finish()
    assert code == 0
    code, _, piped = Terminal([*MEMORY, "stats", "--db", str(db), "--json"], tmp_path, ()).finish()
    assert json.loads(piped)["cards"] == 63


TYPED = """
import os, signal, sys, time
class Keyboard:
    def read(self, size):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)
class Stdin:
    buffer = Keyboard()
sys.stdin = Stdin()
from memory_cli.main import main
main()
"""


def test_ctrl_c_while_a_query_is_typed(index_file, tmp_path):
    argv = [sys.executable, "-c", TYPED, "search", "--db", str(index_file()), "-"]
    code, text, _ = Terminal(argv, tmp_path).finish()
    # The terminal has shown ^C, so that the message begins on a new line.
    assert (code, text) == (130, "\nStopped.\n")
    code, _, piped = Terminal([*argv, "--json"], tmp_path, streams=("stderr",)).finish()
    assert code == 130
    assert json.loads(piped) == {"ok": False, "error": "Stopped.", "hint": ""}
