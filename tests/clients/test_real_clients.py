"""Real agent clients with the memory, offline, each against a stand-in for its model: `make test-clients`.

The home of each run belongs to nobody. What is asserted is what stood in the requests to the model and
what is left in the home after `memory client uninstall`.
"""

import importlib.util
import os
from pathlib import Path

import pytest

from datasette_memory.clients.records import BY_NAME
from datasette_memory.clients.runs import RUNS
from datasette_memory.clients.standin import StandIn
from datasette_memory.clients.targets import SERVER
from datasette_memory.clients.verify import STEPS, TOOL, Step, Trial, hook_events, ladder

from . import fetch


def _load(name):
    path = Path(__file__).parents[1] / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


homes = _load("homes")

pytestmark = pytest.mark.clients

FOLDER = Path(os.environ.get("MEMORY_TEST_CLIENTS_FOLDER", "not-given"))
NAMES = os.environ.get("MEMORY_TEST_CLIENTS", "").split() or list(RUNS)
#: These have to show the model what a hook gives; of the others, the tool is enough.
WITH_CONTEXT = {
    "claude-code", "codex", "gemini-cli", "qwen-code", "opencode", "copilot", "openclaw",
}  # fmt: skip
PATIENCE = 240.0


@pytest.fixture(scope="module")
def table(request):
    """The rows of a table that is printed when all are done."""
    rows: list[list[str]] = []
    yield rows
    heads = ["client", "scope", "version", *STEPS.values(), "uninstall"]
    widths = [max(map(len, one)) for one in zip(heads, *rows, strict=True)]
    told = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (heads, *rows)
    ]
    homes.tell(request, told)


@pytest.fixture
def trial_of(tmp_path, monkeypatch):
    """Makes the trial of a client, in a folder whose name needs quoting everywhere."""

    def make(name: str) -> Trial:
        if why := fetch.why(FOLDER, name):
            pytest.skip(f"{name} cannot be installed: {why}")
        if node := fetch.node(FOLDER):
            monkeypatch.setenv("PATH", os.pathsep.join([node, os.environ["PATH"]]))
        return Trial(name, tmp_path / "a run's 记忆", str(fetch.program(FOLDER, name)))

    return make


def stand_in(trial: Trial) -> StandIn:
    return StandIn(SERVER, TOOL, trial.card.query, trial.card.answer)


CASES = [
    (name, scope)
    for name in NAMES
    for scope in ("user", "project")
    if scope in BY_NAME[name].server.paths
]


@pytest.mark.parametrize("name, scope", CASES)
def test_the_client_answers_from_memory_and_is_left_as_it_was(name, scope, table, trial_of):
    row = [name, scope, "", *["-"] * len(STEPS), "-"]
    table.append(row)
    row[2] = f"not installed: {fetch.why(FOLDER, name)[:60]}"
    trial = trial_of(name)
    # Approvals are the user's, and are not given for a project.
    approved = trial.run.trust and scope == "user"
    with stand_in(trial) as model:
        trial.prepare(model.url)
        row[2] = trial.version(model.url)
        before = contents(trial)
        options = ["--scope", scope, *(["--trust"] if approved else [])]
        report = trial.client("install", model.url, *options)
        ours = [str(Path(one["path"]).relative_to(trial.folder)) for one in report["files"]]
        installed = contents(trial)
        seen = trial.ask(model.url, PATIENCE)
        ran = contents(trial)
        trial.client("uninstall", model.url)
        turns = model.turns()
    memory = str(trial.memory)
    steps = {"configured": Step(installed != before, "")}
    steps |= ladder(turns, seen, hook_events(trial.memory, name), trial.card.answer, memory)
    without = {*trial.run.without} | ({"hook", "context"} if trial.run.trust > approved else set())
    marks = [
        "yes" if steps[one].ok else "-" if one in without else "no" for one in STEPS
    ]  # fmt: skip
    wrong = not_as_it_was(ours, before, installed, ran, contents(trial), memory)
    row[3:] = [*marks, "no" if wrong else "yes"]

    told = "\n".join([f"{one}: {step}" for one, step in steps.items()] + [seen.output[-3000:]])
    answer = trial.card.answer
    # The tool was called, and its answer is in a later request to the model and in what was printed.
    assert any(answer in text for one in turns for text in one.results()), told
    assert answer in seen.output, told
    assert steps["server"].ok and steps["listed"].ok, told
    if "hook" not in without:
        assert steps["hook"].ok, told
    if name in WITH_CONTEXT and "context" not in without:
        # What the hook gave stood before the model when no tool had been called yet.
        first = [one.text() for one in turns if not one.results()]
        assert any(f"called {answer}" in text for text in first), told
    assert wrong == []
    assert left_running(trial.home) == []


@pytest.mark.skipif("claude-code" not in NAMES, reason="Claude Code is not asked for")
def test_a_tool_that_claude_code_hides_is_found(trial_of):
    """With alwaysLoad off, tools of servers stand behind ToolSearch."""
    trial = trial_of("claude-code")
    with stand_in(trial) as model:
        trial.prepare(model.url)
        trial.client("install", model.url)
        config = trial.home / ".claude.json"
        config.write_text(config.read_text().replace('"alwaysLoad": true', '"alwaysLoad": false'))
        trial.ask(model.url, PATIENCE)
        turns = model.turns()
    offered = [{tool.name for tool in one.offers()} for one in turns]
    main = next(one for one in offered if "ToolSearch" in one)
    assert "mcp__memory__memory_search" not in main
    assert any(trial.card.answer in text for one in turns for text in one.results())


def contents(trial: Trial) -> dict[str, bytes | None]:
    """The bytes of every file of the home and the project, and None for a folder, by path."""
    found: dict[str, bytes | None] = {}
    for path in sorted([*trial.home.rglob("*"), *trial.project.rglob("*")]):
        try:
            regular = path.is_file() and not path.is_symlink()
            found[str(path.relative_to(trial.folder))] = path.read_bytes() if regular else None
        except OSError:
            # A client may still tidy up.
            continue
    return found


def not_as_it_was(paths: list[str], before, installed, ran, after, memory: str) -> list[str]:
    """What `uninstall` left of the files at `paths`, which `install` wrote, or took that was not ours.
    What the client itself wrote may be there."""
    wrong = []
    folders = {str(one) for path in paths for one in Path(path).parents if str(one) != "."}
    ours = {*paths, *folders - {*before}}
    for path in sorted({*ran, *after} - ours):
        if after.get(path, b"no file") != ran.get(path, b"no file"):
            wrong.append(f"{path} is the client's, and was changed")
    for path in sorted(ours):
        if path in folders:
            if path in after and not any(one.startswith(f"{path}{os.sep}") for one in after):
                wrong.append(f"the folder {path} is empty, and was not there")
        elif ran.get(path) == installed[path]:
            if after.get(path, b"no file") != before.get(path, b"no file"):
                wrong.append(f"{path} is not what it was")
        elif any(
            word in (after.get(path) or b"") for word in (b"datasette-memory", memory.encode())
        ):
            wrong.append(f"{path}, which the client has rewritten, still has something of ours")
    return wrong


def left_running(home: Path) -> list[str]:
    """The processes whose home is that of the run."""
    import psutil

    found = []
    for one in psutil.process_iter():
        try:
            if one.status() != psutil.STATUS_ZOMBIE and one.environ().get("HOME") == str(home):
                found.append(" ".join(one.cmdline()))
        except (psutil.Error, OSError):
            continue
    return found
