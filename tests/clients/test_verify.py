"""`memory client verify`, with a small client of our own in the place of a real one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

SMALL = Path(__file__).with_name("small_client.py")
pytestmark = pytest.mark.skipif(os.name == "nt", reason="a script is no program there")


@pytest.fixture
def small(tmp_path):
    """Makes the program `claude`, in a folder of its own that is not on the PATH."""

    def make(tweak: str = "", version: str = "1.2.3") -> Path:
        text = SMALL.read_text().replace('TWEAK = ""', f'TWEAK = "{tweak}"')
        text = text.replace("1.2.3", version)
        text = text.replace('os.environ["SMALL_CLIENT_NOTES"]', repr(str(tmp_path)))
        path = tmp_path / "programs" / "claude"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!{sys.executable}\n{text}")
        path.chmod(0o755)
        return path

    return make


@pytest.fixture
def memory(user, tmp_path):
    """Runs `memory client`; the memory is in a folder beside the user's home."""

    def run(*words: object, path: str = "/usr/bin:/bin") -> subprocess.CompletedProcess:
        argv = [sys.executable, "-m", "memory_cli", "client", *map(str, words)]
        argv += ["--home", str(tmp_path / "memory")]
        environment = {**os.environ, "PATH": path, "ANTHROPIC_API_KEY": "a real one"}
        return subprocess.run(argv, capture_output=True, text=True, env=environment, timeout=120)

    return run


def test_every_rung_is_reached_and_the_evidence_is_kept(memory, small, tmp_path, user):
    program = small()
    before = sorted(user.rglob("*"))
    done = memory("verify", "claude-code", "--program", program, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    steps = {name: one["ok"] for name, one in told["steps"].items()}
    assert steps == dict.fromkeys(
        ["configured", "server", "listed", "called", "hook", "context"], True
    )
    assert told["version"] == "1.2.3 (Small Client)" and told["client"] == "claude-code"
    assert told["steps"]["listed"]["seen"] == "mcp__memory__memory_search"
    assert "~/.claude.json" in told["steps"]["configured"]["seen"]
    assert "mcp --home" in told["steps"]["server"]["seen"]
    assert "session-start: given" in told["steps"]["hook"]["seen"]
    # What the model read in the first place is what the tool gave, and what the client printed.
    name = told["steps"]["context"]["seen"].removesuffix(".").split()[-1]
    assert name in told["steps"]["called"]["seen"] and name in told["answer"]
    path = tmp_path / "memory/clients/evidence/claude-code.json"
    assert told["evidence"] == str(path)
    kept = json.loads(path.read_text())
    assert kept["steps"] == told["steps"] and kept["date"] == told["date"]
    # Nothing of the user's was touched, and the scratch memory is not this one.
    assert sorted(user.rglob("*")) == before
    assert not (tmp_path / "memory/vault").exists()


def test_variables_of_the_user_lead_nowhere(memory, small, tmp_path, monkeypatch):
    for name in ("DB", "VAULT"):
        monkeypatch.setenv(f"MEMORY_AGENT_{name}", str(tmp_path / "real" / name.lower()))
    assert memory("verify", "claude-code", "--program", small()).returncode == 0
    assert not (tmp_path / "real").exists()


def level(memory, **more: str) -> tuple[str, str]:
    rows = json.loads(memory("list", "--json", **more).stdout)["clients"]
    row = next(one for one in rows if one["name"] == "claude-code")
    return row["level"], row["evidence"]


def test_it_is_verified_for_as_long_as_its_version_stays(memory, small):
    program = small()
    assert level(memory) == ("install-ready", "")
    assert memory("verify", "claude-code", "--program", program).returncode == 0
    verified, day = level(memory)
    assert verified == "verified" and len(day) == 10
    small(version="1.2.4")
    assert level(memory) == ("install-ready", day)
    small()
    assert level(memory) == ("verified", day)
    program.unlink()
    assert level(memory) == ("install-ready", day)


@pytest.mark.parametrize(
    "tweak, missing",
    [
        ("toolless", ["listed", "called"]),
        ("hookless", ["hook", "context"]),
        ("deaf", ["context"]),
    ],
)
def test_what_was_not_reached_is_said(memory, small, tweak, missing):
    done = memory("verify", "claude-code", "--program", small(tweak), "--json")
    assert done.returncode == 1
    told = json.loads(done.stdout)
    assert [name for name, one in told["steps"].items() if not one["ok"]] == missing
    assert told["verified"] is False
    assert level(memory) == ("install-ready", "")
    printed = memory("verify", "claude-code", "--program", small(tweak)).stdout
    assert printed.count("\nno   ") == len(missing) and "The client said:" in printed


def test_a_client_that_hangs_is_stopped_with_all_that_it_started(memory, small, tmp_path):
    done = memory("verify", "claude-code", "--program", small("hangs"), "--timeout", "3", "--json")
    assert done.returncode == 1
    steps = json.loads(done.stdout)["steps"]
    assert "stopped for time" in steps["server"]["seen"] and steps["configured"]["ok"]
    daemon = int((tmp_path / "daemon").read_text())
    assert not psutil.pid_exists(daemon) or psutil.Process(daemon).status() == "zombie"


def test_the_scratch_folder_goes_or_is_kept(memory, small, tmp_path, monkeypatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    assert memory("verify", "claude-code", "--program", small()).returncode == 0
    assert list(temporary.iterdir()) == []
    done = memory("verify", "claude-code", "--program", small(), "--keep", tmp_path / "kept")
    folder = next((tmp_path / "kept").iterdir())
    assert f"kept: {folder}" in done.stdout
    bodies = [json.loads(one)["body"] for one in (folder / "requests.jsonl").open()]
    assert len(bodies) == 2 and bodies[0]["tools"]
    assert {"home", "memory", "project", "output.txt"} <= {one.name for one in folder.iterdir()}


def test_a_client_that_is_not_there_says_how_to_get_it(memory, tmp_path):
    done = memory("verify", "claude-code")
    assert done.returncode == 2 and done.stdout == ""
    assert "claude is not on the PATH" in done.stderr
    assert "npm install -g @anthropic-ai/claude-code" in done.stderr
    done = memory("verify", "codex", "--program", tmp_path / "codex", "--json")
    assert done.returncode == 2
    assert "npm install -g @openai/codex" in json.loads(done.stdout)["hint"]


def test_a_folder_that_cannot_be_made_is_said(memory, small, tmp_path):
    (tmp_path / "file").write_text("")
    done = memory("verify", "claude-code", "--program", small(), "--keep", tmp_path / "file" / "x")
    assert done.returncode == 2 and "no folder can be made in" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name, word", [("zed", "cannot be run offline"), ("vi", "'vi'")])
def test_others_cannot_be_verified(memory, name, word):
    done = memory("verify", name)
    assert done.returncode == 2 and word in done.stderr
