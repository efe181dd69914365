"""What the documentation says is run: its SQL, its Python, its links; and both READMEs agree."""

import contextlib
import io
import re
import sqlite3
from pathlib import Path

import pytest

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
