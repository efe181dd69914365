"""What the documentation says is run: its SQL, its Python, its links; and both READMEs agree."""

import contextlib
import io
import json
import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from datasette_memory.ledger.cohort import Cohort, Given, cohort_data
from datasette_memory.ledger.writer import Ledger
from datasette_memory.memory import Memory
from datasette_memory.search.functions import register
from datasette_memory.text.tokenise import index_text

ROOT = Path(__file__).parent.parent
DOCS = [ROOT / "README.md", ROOT / "README.zh.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text("utf-8"), re.M | re.S)


def prose(path: Path) -> str:
    return re.sub(r"^```.*?^```", "", path.read_text("utf-8"), flags=re.M | re.S)


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("docs")
    memory = Memory(str(folder), db=str(folder / "memory.db"))
    memory.import_paths([str(ROOT / "examples" / "vault")])
    # One of them was given to an agent.
    card = memory.show("D_0001").card
    given = Given(card["ref"], card["source"], card["path"])
    Ledger(folder / "ledger").append("inject", **cohort_data(Cohort("01M8REXWA2XCAX9P", (given,))))
    memory.index()
    return folder / "memory.db"


@pytest.mark.parametrize(
    "sql",
    [
        statement
        for path in DOCS
        for block in blocks(path, "sql")
        for statement in block.split(";")
        if statement.strip()
    ],
)
def test_the_sql_of_the_documentation_runs_and_finds_something(index, sql):
    with contextlib.closing(sqlite3.connect(index)) as connection:
        register(connection)
        rows = connection.execute(sql).fetchall()
    assert rows or "integrity-check" in sql


@pytest.mark.parametrize("path", DOCS[:2], ids=lambda path: path.name)
def test_the_python_of_the_readme_runs(path, tmp_path, monkeypatch):
    monkeypatch.setenv("MEMORY_AGENT_HOME", str(tmp_path))
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    (code,) = blocks(path, "python")
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, str(path), "exec"), {})
    # Three hits, then the text of the card that replaced the two older ways to limit rates.
    lines = out.getvalue().splitlines()
    assert [line.split()[-1] for line in lines[:3]] == ["all"] * 3
    assert "**决定**：令牌桶放进 Redis 7" in out.getvalue()


@pytest.mark.asyncio
@pytest.mark.parametrize("path", [*DOCS[:2], ROOT / "docs" / "mcp.md"], ids=lambda path: path.name)
async def test_the_sessions_of_an_agent_go_as_they_are_shown(path, tmp_path):
    Memory(str(tmp_path)).import_paths([str(ROOT / "examples" / "vault")])
    (session,) = [block for block in blocks(path, "text") if block.startswith("> memory_")]
    asked = re.findall(r"^> (\w+) (.*)\n((?:(?!> ).*\n)+)", session, re.M)
    assert len(asked) == session.count("> memory_")
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "memory_cli", "mcp", "--home", str(tmp_path)]
    )
    with open(os.devnull, "w") as nowhere:
        async with Client(stdio_client(server, nowhere)) as client:
            for tool, arguments, shown in asked:
                result = await client.call_tool(tool, json.loads(arguments))
                assert result.content[0].text.rstrip() == shown.rstrip()


def test_the_tools_in_the_documentation_are_those_that_there_are():
    done = subprocess.run(
        [sys.executable, "-m", "cogapp", "--check", "docs/mcp.md"], cwd=ROOT, capture_output=True
    )
    assert done.returncode == 0, "run `make docs`: " + done.stdout.decode()


def test_the_token_table_of_the_search_page():
    text = (ROOT / "docs" / "search.md").read_text("utf-8")
    table = re.search(r"\| text \| tokens \|\n.*?\n\n", text, re.S)[0]
    rows = re.findall(r"^\| `(.+?)` \| `(.+?)` \|$", table, re.M)
    assert len(rows) == 6
    for written, tokens in rows:
        assert index_text(written) == tokens


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.name)
def test_every_link_to_a_file_leads_somewhere(path):
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", prose(path))
    for target in targets:
        assert (path.parent / target).exists(), target


def test_the_two_readmes_say_the_same():
    english, chinese = DOCS[:2]

    def shape(path):
        lines = path.read_text("utf-8").splitlines()
        return [re.match("#+", line)[0] for line in lines if re.match("#+ ", line)]

    def commands(path):
        code = re.findall(r"^```\w*\n(.*?)^```", path.read_text("utf-8"), re.M | re.S)
        return [
            [re.sub(r"\s+#.*| FOLDER| 文件夹", "", line) for line in block.splitlines()]
            for block in code
        ]

    def links(path):
        return sorted(re.findall(r"\]\(([^)]+)\)", path.read_text("utf-8")))

    assert shape(english) == shape(chinese)
    assert commands(english) == commands(chinese)
    assert [t for t in links(english) if t != "README.zh.md"] == [
        t for t in links(chinese) if t != "README.md"
    ]
