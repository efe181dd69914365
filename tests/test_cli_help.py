"""The help of every command: it is there, its examples work, and docs/cli.md repeats it."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from datasette_memory.ledger.cohort import Cohort, Given, cohort_data
from datasette_memory.ledger.writer import Ledger
from memory_cli.care_commands import COMMANDS as CARE_COMMANDS
from memory_cli.change_commands import COMMANDS as CHANGE_COMMANDS
from memory_cli.client_commands import client_command
from memory_cli.import_command import import_command
from memory_cli.main import cli

ROOT = Path(__file__).resolve().parent.parent
CHANGES = [command.name for command in (*CHANGE_COMMANDS, *CARE_COMMANDS)]
COMMANDS = {
    "memory": [],
    **{f"memory {name}": [name] for name in cli.commands},
    **{f"memory client {name}": ["client", name] for name in client_command.commands},
    "memory-import": [],
}


def help_of(title: str, option: str = "--help") -> str:
    program = import_command if title == "memory-import" else cli
    result = CliRunner().invoke(program, [*COMMANDS[title], option], prog_name=title.split()[0])
    assert result.exit_code == 0
    return result.output


def examples(title: str) -> list[str]:
    text = help_of(title)
    block = re.search(r"^  Examples:\n((?:    .*\n)+)", text, re.M)
    assert block, f"{title} has no example"
    return [re.sub(r"\s{3,}.*", "", line.strip()) for line in block[1].splitlines()]


def test_the_commands_are_all_there():
    assert list(cli.commands) == [
        *("paths", "index", "search", "show", "stats", "serve", "mcp", "hook", "client"),
        *("context", "brief", "why-not", "feedback"),
        *CHANGES,
    ]


@pytest.mark.parametrize("title", COMMANDS)
def test_help(title):
    text = help_of(title)
    assert text == help_of(title, "-h")
    assert text.startswith(f"Usage: {title} ")
    assert examples(title)
    for option in ("--home", "--db", "--vault", "--json"):
        assert option in text


@pytest.mark.parametrize("title", COMMANDS)
def test_every_option_is_explained(title):
    command = import_command if title == "memory-import" else cli
    for name in COMMANDS[title]:
        command = command.commands[name]
    for parameter in command.params:
        if parameter.param_type_name == "option":
            assert parameter.help and parameter.help[0].isupper() and "." in parameter.help
    assert command.help and (title == "memory" or command.short_help)


@pytest.mark.parametrize("program", ["memory", "memory-import"])
def test_version(program):
    from datasette_memory import __version__

    command = import_command if program == "memory-import" else cli
    result = CliRunner().invoke(command, ["--version"], prog_name=program)
    assert result.output == f"{program} {__version__}\n"


def test_the_references_repeat_the_help_and_the_routes():
    result = subprocess.run(
        [sys.executable, "-m", "cogapp", "--check", "docs/cli.md", "docs/api.md", "docs/clients.md"],
        cwd=ROOT, capture_output=True, text=True, env={**os.environ, "PYTHONUTF8": "1"},
    )  # fmt: skip
    assert result.returncode == 0, f"run `make docs`\n{result.stdout}{result.stderr}"
    text = (ROOT / "docs" / "cli.md").read_text("utf-8")
    for title in COMMANDS:
        assert f"\n## {title}\n" in text


# sqlite-utils finds the plugin by itself where the package is installed.
PROGRAMS = {
    "memory": "from memory_cli.main import main; main()",
    "memory-import": "from memory_cli.main import import_main; import_main()",
    "sqlite-utils": """
from sqlite_utils.cli import cli
from memory_cli.sqlite_utils_plugin import register_commands
if "memory-import" not in cli.commands:
    register_commands(cli)
cli()
""",
}


@pytest.fixture(scope="module")
def user(tmp_path_factory):
    """The home folder of somebody with notes, the sample vault imported, the programs on the path."""
    folder = tmp_path_factory.mktemp("user")
    vault = ROOT / "examples" / "vault"
    for name in ("notes", "笔记", "docs"):
        shutil.copytree(vault / "17-Notes", folder / name)
    (folder / "README.md").write_text("# Read me\n", "utf-8")
    scripts = folder / "bin"
    scripts.mkdir()
    for name, code in PROGRAMS.items():
        (scripts / f"{name}.py").write_text(code)
        script = scripts / name
        python, program = shlex.quote(sys.executable), shlex.quote(str(scripts / f"{name}.py"))
        script.write_text(f'#!/bin/sh\nexec {python} {program} "$@"\n')
        script.chmod(0o755)
    moved = ("MEMORY_", "CLAUDE_", "CODEX_", "XDG_")
    env = {name: value for name, value in os.environ.items() if not name.startswith(moved)}
    env |= {
        "HOME": str(folder),
        "PATH": f"{scripts}{os.pathsep}{env['PATH']}",
        "PYTHONPATH": str(ROOT),
        "PYTHONUTF8": "1",
    }

    def shell(line: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            line, shell=True, cwd=folder, env=env, capture_output=True, encoding="utf-8", timeout=60
        )

    for name in ("reason.md", "decision.md", "corrected.md", "call.txt"):
        (folder / name).write_text(f"What {name} says, long enough to be kept.\n", "utf-8")
    (folder / "prompt.txt").write_text(
        "How do we roll back a release of orchid-gateway?\n", "utf-8"
    )
    payload = '{"session_id": "s1", "hook_event_name": "SessionStart", "source": "startup"}'
    (folder / "payload.json").write_text(payload, "utf-8")
    shutil.copytree(vault, folder / ".memory_agent" / "vault")
    cards = tuple(Given(ref, "vault", None) for ref in ("D_0001", "F_0001", "I_0001"))
    data = cohort_data(Cohort("01M8REXWA2XCAX9P", cards))
    Ledger(folder / ".memory_agent" / "ledger").append("inject", **data)
    assert shell("memory index").returncode == 0
    assert shell("memory-import 笔记.db 笔记").returncode == 0
    handoff = "--kind handoff --project orchid-gateway --title 换班 --body 发布停在第二步，等证书换好再继续。"
    assert shell(f"memory capture {handoff}").returncode == 0
    return shell


@pytest.mark.skipif(os.name != "posix", reason="the examples are for a POSIX shell")
@pytest.mark.parametrize(
    "line",
    dict.fromkeys(
        line
        for title in COMMANDS
        for line in examples(title)
        # Those two run until they are stopped; their own tests do that.
        if not line.startswith(("memory serve", "memory mcp"))
        and title.removeprefix("memory ") not in CHANGES
        and not title.startswith("memory client")
    ),
)
def test_examples_work(user, line):
    result = user(line)
    receipt = line.startswith("memory context") and "--json" not in line
    assert (result.returncode, bool(result.stderr)) == (0, receipt), result
    assert result.stdout


@pytest.mark.skipif(os.name != "posix", reason="the examples are for a POSIX shell")
def test_examples_of_changes_work_one_after_the_other(user):
    for name in CHANGES:
        for line in examples(f"memory {name}"):
            # Nobody knows when, and so where, the next user moves a card to the trash.
            if "--restore .trash" in line:
                line = (
                    "memory trash --restore " + user("memory trash").stdout.split(" ", 1)[1].strip()
                )
            result = user(line)
            assert (result.returncode, result.stderr) == (0, ""), result
            assert result.stdout or "--max-chars" in line, line


@pytest.mark.skipif(os.name != "posix", reason="the examples are for a POSIX shell")
def test_examples_of_clients_work_one_after_the_other(user):
    for title in COMMANDS:
        for line in examples(title) if title.startswith("memory client") else ():
            if line.startswith("memory client verify"):
                # It needs a client; tests/clients has tests of it.
                continue
            result = user(line)
            assert (result.returncode, result.stderr) == (0, ""), result
            assert result.stdout
