"""The command line that `memory serve` runs, the configuration in it, and running it."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
import yaml
from datasette.app import Datasette
from datasette.utils import tilde_encode

from datasette_memory.errors import MemoryFault
from memory_cli import serve as serving

LINE_1_0 = hasattr(Datasette, "table_config")
REPOSITORY = Path(__file__).resolve().parent.parent


def test_the_ready_configuration_is_the_one_of_the_repository():
    assert serving.find_metadata() == REPOSITORY / "metadata.yml"


def test_command_names_the_configuration_where_this_line_looks_for_it(tmp_path):
    argv = serving.command(
        tmp_path / "memory.db",
        port=8765,
        host="127.0.0.1",
        open_browser=False,
        metadata=Path("m.yml"),
    )
    start = [sys.executable, "-P", "-X", "utf8", "-m", "datasette", "serve"]
    start.append(str(tmp_path / "memory.db"))
    where = ["--host", "127.0.0.1", "--port", "8765"]
    configuration = ["--metadata", "m.yml"] + (["--config", "m.yml"] if LINE_1_0 else [])
    settings = ["--setting", "suggest_facets", "off", "--setting", "facet_time_limit_ms", "500"]
    assert argv == start + where + configuration + settings


def test_nothing_is_imported_from_the_current_folder(tmp_path):
    for name in ("yaml", "mcp", "datasette"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported from here')")
    argv = serving.command(
        tmp_path / "memory.db", port=8765, host="127.0.0.1", open_browser=False, metadata=Path("m")
    )
    done = subprocess.run(
        [*argv[: argv.index("serve")], "--version"], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, "datasette" in done.stdout) == (0, True)


def test_command_opens_the_browser_when_asked(tmp_path):
    argv = serving.command(
        tmp_path / "a.db", port=1, host="::1", open_browser=True, metadata=Path("m.yml")
    )
    assert argv[-1] == "--open"


def test_a_folder_that_cannot_be_written_is_served_as_immutable(tmp_path, monkeypatch):
    # Root may write anywhere, so the fault is made rather than arranged.
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path)
    argv = serving.command(
        tmp_path / "a.db", port=1, host="127.0.0.1", open_browser=False, metadata=Path("m.yml")
    )
    assert argv[argv.index(str(tmp_path / "a.db")) - 1] == "--immutable"


def test_configuration_under_another_name():
    path = serving.find_metadata()
    original = yaml.safe_load(path.read_text(encoding="utf-8"))
    renamed = serving.configuration(path, "笔记")
    assert list(renamed["databases"]) == ["笔记"]
    assert renamed["databases"]["笔记"] == original["databases"]["memory"]
    assert renamed["plugins"] == original["plugins"] and renamed["title"] == original["title"]


def test_the_copy_is_ascii_and_goes_away():
    with serving.renamed(serving.find_metadata(), "笔记") as copy:
        assert list(json.loads(copy.read_text(encoding="ascii"))["databases"]) == ["笔记"]
    assert not copy.exists() and not copy.parent.exists()


@pytest.mark.parametrize("name", ["missing.db", "folder", "text.db", "empty.db"])
def test_what_is_no_index_is_a_clear_fault(tmp_path, name):
    (tmp_path / "folder").mkdir()
    (tmp_path / "text.db").write_text("no database, this")
    (tmp_path / "empty.db").touch()
    with pytest.raises(MemoryFault) as fault:
        serving.serve(tmp_path / name)
    assert name in fault.value.error and fault.value.hint


def test_a_port_that_is_taken_is_a_clear_fault(index_file):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(MemoryFault) as fault:
            serving.serve(index_file(), port=port)
    assert str(port) in fault.value.error and "--port" in fault.value.hint


def test_a_configuration_that_is_not_there_is_a_clear_fault(index_file, tmp_path):
    with pytest.raises(MemoryFault) as fault:
        serving.serve(index_file(), metadata=tmp_path / "no.yml")
    assert "no.yml" in fault.value.error and "--metadata" in fault.value.hint


@pytest.mark.parametrize("port", [-1, 70000])
def test_a_port_that_is_none_is_a_clear_fault(index_file, port):
    with pytest.raises(MemoryFault):
        serving.serve(index_file(), port=port)


@pytest.mark.parametrize("name", ["memory.db", "笔记.db", "my notes.db"])
def test_serving_from_start_to_end(index_file, free_port, serve, name):
    path = index_file(name)
    script = (
        "import sys; from pathlib import Path; from memory_cli.serve import serve; "
        "sys.exit(serve(Path(sys.argv[1]), port=int(sys.argv[2])))"
    )
    with serve([sys.executable, "-c", script, str(path), str(free_port)], free_port) as url:
        with urllib.request.urlopen(f"{url}/-/databases.json") as response:
            answer = json.load(response)
        databases = answer["databases"] if isinstance(answer, dict) else answer
        assert [Path(entry["path"]) for entry in databases if entry["path"]] == [path]
        (entry,) = [entry for entry in databases if entry["path"]]
        search = f"{url}/{tilde_encode(entry['route'])}/search.json?_shape=array"
        with urllib.request.urlopen(search) as response:
            assert json.load(response) == []
    # The server ended with its parent: the port is free again.
    deadline = time.monotonic() + 20
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", free_port)):
                break
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.skipif(os.name != "posix", reason="a terminal's Ctrl-C is sent to a process group")
@pytest.mark.parametrize("name", ["memory.db", "other.db"])
def test_ctrl_c_ends_it_without_a_traceback(index_file, free_port, name):
    script = (
        "import sys; from pathlib import Path; from memory_cli.serve import serve; "
        "sys.exit(serve(Path(sys.argv[1]), port=int(sys.argv[2])))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(index_file(name)), str(free_port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    url = f"http://127.0.0.1:{free_port}/-/versions.json"
    deadline = time.monotonic() + 60
    while True:
        try:
            urllib.request.urlopen(url).close()
            break
        except OSError:
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=30)
    assert "Traceback" not in output
