"""The plugin of sqlite-utils: `sqlite-utils memory-import`, and the SQL functions."""

import contextlib
import gc
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from datasette_memory.search.functions import register
from memory_cli import sqlite_utils_plugin
from memory_cli.import_command import import_command

ROOT = Path(__file__).resolve().parent.parent
SAMPLE = ROOT / "examples" / "vault"

# The plugin is registered by hand where the package is not installed, as it is in a checkout.
PROGRAM = """
import sys
from sqlite_utils.plugins import pm
from sqlite_utils import cli
from memory_cli import sqlite_utils_plugin
if not pm.is_registered(sqlite_utils_plugin):
    pm.register(sqlite_utils_plugin)
    sqlite_utils_plugin.register_commands(cli.cli)
cli.cli(prog_name="sqlite-utils")
"""


def sqlite_utils(*args: str, cwd=None) -> subprocess.CompletedProcess:
    env = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_")}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *args], capture_output=True, encoding="utf-8", cwd=cwd,
        env=env | {"PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}, timeout=60,
    )  # fmt: skip


@pytest.fixture
def prepared(index_file):
    """A connection to an index, with nothing but what the plugin gives it."""
    with contextlib.closing(sqlite3.connect(index_file())) as connection:
        sqlite_utils_plugin.prepare_connection(connection)
        yield connection


def test_the_command_is_that_of_memory_import():
    class Group:
        def add_command(self, command):
            self.command = command

    group = Group()
    sqlite_utils_plugin.register_commands(group)
    assert group.command is import_command


def test_an_import_from_sqlite_utils(tmp_path):
    result = sqlite_utils("memory-import", "m.db", str(SAMPLE), "--json", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert json.loads(result.stdout)["added"] == 63
    result = sqlite_utils("memory-import", "m.db", "nowhere", cwd=tmp_path)
    assert result.returncode == 2
    assert result.stderr == "Error: there is no folder or file nowhere; check the path\n"
    result = sqlite_utils("memory-import", "m.db", "nowhere", "--json", cwd=tmp_path)
    assert json.loads(result.stdout)["ok"] is False
    result = sqlite_utils("memory-import", "--jsom", cwd=tmp_path)
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)


def test_functions_in_sqlite_utils(index_file):
    db = str(index_file())
    result = sqlite_utils(db, "select memory_match('阿里云', 1) as m")
    assert json.loads(result.stdout) == [{"m": '"阿里" AND "里云"'}]
    result = sqlite_utils(
        db,
        "select ref from cards join cards_fts on cards.id = cards_fts.rowid "
        "where cards_fts match memory_match(:q, 'all') order by rank",
        *("-p", "q", "监听 备份"),
    )
    assert json.loads(result.stdout) == [{"ref": "F_0001"}]


def test_the_triggers_work_in_sqlite_utils(index_file):
    db = str(index_file())
    change = "update cards set title = '新的标题' where ref = 'F_0001'"
    assert sqlite_utils("query", db, change).returncode == 0
    found = "select value ->> 'ref' as ref from json_each(memory_search('新的标题', 1))"
    assert json.loads(sqlite_utils(db, found).stdout) == [{"ref": "F_0001"}]


class Recorder:
    """What `create_function` was called with."""

    def __init__(self):
        self.made = {}

    def create_function(self, name, arity, function, deterministic=False):
        self.made[name, arity] = deterministic


def test_the_functions_are_those_of_the_project():
    recorder = Recorder()
    register(recorder)
    listed = {(name, arity): pure for name, arity, pure in sqlite_utils_plugin.FUNCTIONS}
    assert listed == recorder.made


@pytest.mark.parametrize(
    "sql",
    [
        "select memory_tokens('重跑gen后 getUserById')",
        "select memory_tokens(null)",
        "select memory_match('端口 ecs-prod', 'any-prefix')",
        "select memory_snippet('网关 <b> 监听', '监听')",
        "select memory_coverage('网关监听', '监听 备份')",
        "select memory_search('全文检索')",
        "select memory_search('端口', 1)",
        "select memory_search(null, null)",
    ],
)
def test_each_function_gives_what_the_project_gives(prepared, index_file, sql):
    with contextlib.closing(sqlite3.connect(index_file("other.db"))) as connection:
        register(connection)
        expected = connection.execute(sql).fetchall()
    assert expected[0][0] is not None
    assert prepared.execute(sql).fetchall() == expected


def test_errors_are_errors_of_sql(prepared):
    with pytest.raises(sqlite3.OperationalError):
        prepared.execute("select memory_match('x', 9)")
    with contextlib.closing(sqlite3.connect(":memory:")) as empty:
        sqlite_utils_plugin.prepare_connection(empty)
        with pytest.raises(sqlite3.OperationalError):
            empty.execute("select memory_search('x')")


def test_a_connection_that_nobody_holds_is_closed(index_file):
    # A function that held its connection would keep the file open until Python ends.
    path = str(index_file())
    connection = sqlite3.connect(path)
    sqlite_utils_plugin.prepare_connection(connection)
    connection.execute("select memory_search('端口')").fetchall()
    opened = ("/proc/self/fd", "/dev/fd")
    folder = next((name for name in opened if os.path.isdir(name)), None)
    del connection
    gc.collect()
    if folder:
        links = [os.path.join(folder, name) for name in os.listdir(folder)]
        assert path not in [os.path.realpath(link) for link in links]
    else:
        os.remove(path)  # Windows removes no open file.


def test_loading_the_plugin_loads_nothing_of_the_index():
    script = (
        "import sys, sqlite3, sqlite_utils.cli\n"
        "before = set(sys.modules)\n"
        "from memory_cli import sqlite_utils_plugin as plugin\n"
        "plugin.register_commands(sqlite_utils.cli.cli)\n"
        "plugin.prepare_connection(sqlite3.connect(':memory:'))\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    # So that sqlite-utils loads no plugin by itself.
    script = "import sys; sys._called_from_test = True\n" + script
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=env, check=True
    )
    loaded = set(result.stdout.split())
    assert "memory_cli.import_command" in loaded
    ours = {name for name in loaded if name.startswith("datasette_memory")}
    assert ours == {"datasette_memory", "datasette_memory.errors"}
    assert not loaded & {"datasette", "yaml", "filelock", "pathspec"}
