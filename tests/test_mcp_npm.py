"""The protocol's own conformance suite and inspector, against real servers: `make test-npm`."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest


def _load(name):
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


agents = _load("agents")
homes = _load("homes")

pytestmark = pytest.mark.npm

PROGRAMS = agents.ROOT / ".npm" / "node_modules" / ".bin"
NPM = Path(__file__).with_name("npm")


@pytest.fixture
def home(small_vault, tmp_path) -> Path:
    """A home with the six cards of the tests."""
    return agents.make_home(tmp_path / "home", small_vault)


@pytest.fixture
def url(home, free_port, serve):
    """A Datasette on it, with the tools that the suite calls beside ours."""
    argv = agents.datasette(home, free_port)
    shutil.copy(NPM / "fixture_tools.py", home.parent / "plugins")
    with serve(argv, free_port) as url:
        yield f"{url}/-/mcp"


def run(home: Path, *words: str) -> str:
    """Run a program of npm, with the node that came with it; what it prints."""
    assert PROGRAMS.is_dir(), "run `make test-npm`: it installs what this needs"
    path = f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [PROGRAMS / words[0], *words[1:]],
        capture_output=True,
        text=True,
        cwd=home.parent,
        env=agents.environment(home, PATH=path, CI="1"),
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_conformance(home, url, request):
    baseline = NPM / "expected-failures.yml"
    suite = ["--suite", "all", "--expected-failures", str(baseline)]
    printed = run(home, "conformance", "server", "--url", url, *suite)
    results = {name: mark for mark, name in re.findall(r"^([✓✗]) ([\w-]+): ", printed, re.M)}
    homes.tell(request, [f"{mark} {name}" for name, mark in results.items()])
    assert len(results) == 32
    needed = {
        "server-initialize", "ping", "tools-list", "tools-call-simple-text", "tools-call-image",
        "tools-call-audio", "tools-call-embedded-resource", "tools-call-mixed-content",
        "tools-call-error", "server-sse-multiple-streams",
    }  # fmt: skip
    assert {name for name in needed if results[name] != "✓"} == set()


def where(transport: str, url: str, home: Path) -> list[str]:
    # The inspector passes none of our variables on.
    stdio = [*agents.MCP, "--home", str(home)]
    return [url, "--transport", "http"] if transport == "http" else stdio


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_inspector_lists_and_calls(home, url, transport):
    inspect = ["mcp-inspector", "--cli", *where(transport, url, home), "--method"]
    listed = json.loads(run(home, *inspect, "tools/list", "--strict"))["tools"]
    assert {tool["name"] for tool in listed} >= {*agents.READING, *agents.WRITING}
    call = [*inspect, "tools/call", "--tool-name", "memory_search", "--tool-arg", "query=备份"]
    found = json.loads(run(home, *call))
    assert found["structuredContent"]["hits"][0]["ref"] == "F_0001"
    assert found["content"][0]["text"].startswith("F_0001 端口约定")
