"""The command line: what each command prints, and how it ends."""

import json
import os
import shlex
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from memory_cli.import_command import import_command, split
from memory_cli.main import cli

ROOT = Path(__file__).resolve().parent.parent
SAMPLE = ROOT / "examples" / "vault"
MEMORY = [sys.executable, "-m", "memory_cli"]
IMPORT = [sys.executable, "-c", "from memory_cli.main import import_main; import_main()"]


def environment(**more: str) -> dict[str, str]:
    """The environment of a user who has set nothing, with `more`."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MEMORY_", "PYTHON", "LC_", "LANG", "NO_COLOR"))
    }
    return kept | {"PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8"} | more


def run(argv, *, stdin: bytes = b"", cwd=None, **more: str) -> subprocess.CompletedProcess:
    """Run a process; its output in bytes."""
    return subprocess.run(
        argv, input=stdin, capture_output=True, env=environment(**more), cwd=cwd, timeout=120
    )


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    """No test sees the memory of whoever runs it."""
    for name in ("MEMORY_AGENT_DB", "MEMORY_AGENT_VAULT", "NO_COLOR", "MEMORY_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MEMORY_AGENT_HOME", str(tmp_path / "home"))


@pytest.fixture
def invoke():
    """Run a command in this process; stdout and stderr are kept apart."""
    runner = CliRunner()

    def call(*args: str, command=cli, **options):
        return runner.invoke(command, [str(arg) for arg in args], **options)

    return call


@pytest.fixture
def db(index_file) -> str:
    """An index of the six cards of conftest.py."""
    return str(index_file())


# Search


def test_search_prints_hits_best_first(invoke, db):
    result = invoke("search", "--db", db, "全文检索", "二元组")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "1. 全文检索用二元组"
    assert lines[1].startswith("   D_0001 · decision · ")
    assert lines[1].endswith("/09-Decisions/全文检索.md · all")
    assert result.stderr == ""


def test_search_as_json_is_one_object(invoke, db):
    result = invoke("search", "--db", db, "全文检索", "--json")
    answer = json.loads(result.stdout)
    assert list(answer) == ["query", "tier", "count", "hits", "notice"]
    assert answer["query"] == "全文检索"
    assert answer["hits"][0]["ref"] == "D_0001"
    assert result.stdout.count("\n") == 1
    assert "全文检索" in result.stdout, "not escaped"


def test_loose_hits_show_their_coverage_and_the_notice(invoke, db):
    # Of the three terms 端口, zebra and giraffe the card holds one.
    result = invoke("search", "--db", db, "端口 zebra giraffe")
    assert " · any 33 %" in result.stdout
    assert "Low confidence" in result.stdout


def test_search_without_a_hit_ends_with_1(invoke, db):
    result = invoke("search", "--db", db, "kangaroo")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "No card answers 'kangaroo'.\n"
    result = invoke("search", "--db", db, "kangaroo", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["count"] == 0


def test_a_superseded_card_is_left_out_with_a_word(invoke, db):
    result = invoke("search", "--db", db, "外部服务")
    assert result.exit_code == 1
    assert "1 superseded card is left out" in result.stderr
    result = invoke("search", "--db", db, "外部服务", "--superseded")
    assert result.exit_code == 0
    assert "superseded by D_0001" in result.stdout


def refs(result) -> list[str]:
    return [hit["ref"] for hit in json.loads(result.stdout)["hits"]]


def test_filters(invoke, db):
    def found(*options):
        return refs(invoke("search", "--db", db, "--json", "检索 端口 limiting", *options))

    assert sorted(found()) == ["C_0001", "D_0001", "F_0001"]
    assert found("--kind", "fact") == ["F_0001"]
    assert found("--project", "swallow") == ["C_0001"]
    assert found("--since", "2026-02-25") == ["D_0001"]
    assert found("--tag", "检索", "--tag", "sqlite") == ["D_0001"]
    assert found("--tag", "检索", "--tag", "运维") == []
    assert found("--tags", "检索,SQLite") == ["D_0001"]
    assert found("--tags", "检索， SQLite,") == ["D_0001"]
    assert found("--tags", "检索", "--tag", "运维") == []
    assert found("--source", "nowhere") == []
    assert len(found("-n", "1")) == 1
    assert len(found("--limit", "2")) == 2


def test_a_limit_out_of_range_is_clamped(invoke, db):
    assert len(refs(invoke("search", "--db", db, "--json", "检索和端口", "-n", "-7"))) == 1
    assert len(refs(invoke("search", "--db", db, "--json", "检索和端口", "-n", "999"))) == 2


def test_a_query_from_stdin(db):
    # The byte order mark is what PowerShell puts before piped text.
    for text in ("网关 备份\n", "\ufeff网关 备份\r\n", "网关 备份"):
        result = run([*MEMORY, "search", "--db", db, "--json", "-"], stdin=text.encode())
        assert json.loads(result.stdout)["query"] == "网关 备份"
        assert refs(result) == ["F_0001"]


def test_a_dash_among_other_words_is_a_word(invoke, db):
    result = invoke("search", "--db", db, "--json", "端口", "-")
    assert json.loads(result.stdout)["query"] == "端口 -"


def test_a_query_that_begins_with_a_dash(invoke, db):
    result = invoke("search", "--db", db, "--json", "--", "-端口", "--json")
    assert json.loads(result.stdout)["query"] == "-端口 --json"
    result = invoke("search", "--db", db, "-x")
    assert result.exit_code == 2
    assert "memory search -- " in result.stderr


@pytest.mark.parametrize(
    "query",
    ['"', "*", "NEAR(", "a AND", "title:", "^", "(((", "🙂", "-- 'x", "%s{0}", "\\", "x" * 12000],
)
def test_no_query_is_an_error(invoke, db, query):
    result = invoke("search", "--db", db, "--json", "--", query)
    assert result.exit_code in (0, 1)
    assert json.loads(result.stdout)["query"] == query


# Options before and after the command


@pytest.mark.parametrize("before", [True, False])
def test_options_stand_before_or_after(invoke, db, before):
    options = ["--db", db, "--json"]
    words = [*options, "search", "网关"] if before else ["search", "网关", *options]
    assert refs(invoke(*words)) == ["F_0001"]


def test_after_wins(invoke, tmp_path):
    result = invoke(
        "--home", tmp_path / "a", "--db", tmp_path / "b", "--vault", tmp_path / "c",
        "paths", "--home", tmp_path / "d", "--db", tmp_path / "e", "--json",
    )  # fmt: skip
    answer = json.loads(result.stdout)
    assert answer["home"] == str(tmp_path / "d")
    assert answer["db"] == str(tmp_path / "e")
    assert answer["vault"] == str(tmp_path / "c")
    assert answer["decided"] == {"home": "option", "db": "option", "vault": "option"}


def test_an_empty_option_is_refused(invoke):
    # What `--db "$UNSET"` gives. The home's index must not stand in for it.
    result = invoke("search", "x", "--db", "")
    assert result.exit_code == 2
    assert "--db" in result.stderr and "empty" in result.stderr


def test_the_environment_comes_after_options(invoke, tmp_path, monkeypatch):
    monkeypatch.setenv("MEMORY_AGENT_DB", str(tmp_path / "other.db"))
    assert f"db      {tmp_path / 'other.db'} (from MEMORY_AGENT_DB" in invoke("paths").stdout
    answer = json.loads(invoke("paths", "--db", tmp_path / "x.db", "--json").stdout)
    assert answer["db"] == str(tmp_path / "x.db")


# Show


def test_show_has_a_header_and_the_text(invoke, db):
    result = invoke("show", "--db", db, "D_0001")
    assert result.exit_code == 0
    head, text = result.stdout.split("\n\n", 1)
    lines = head.splitlines()
    assert lines[0] == "全文检索用二元组"
    assert lines[1].startswith("D_0001 · decision · ")
    assert "project 燕子" in lines[2] and "updated 2026-03-01" in lines[2]
    assert lines[3] == "tags 检索, SQLite"
    assert "supersedes D_0002 (全文检索用外部服务)" in lines
    assert "caused by I_0404 (no such card)" in lines
    assert text.startswith("FTS5 自带的分词器")
    assert 'query = "<全文>"\n' in text


def test_show_says_what_replaced_a_card(invoke, db):
    assert "superseded by D_0001\n" in invoke("show", "--db", db, "D_0002").stdout


def test_a_ref_may_be_a_row_id_a_path_or_a_title(invoke, db):
    def ref(reference):
        return json.loads(invoke("show", "--db", db, "--json", reference).stdout)["ref"]

    assert ref("12-Facts/端口约定.md") == "F_0001"
    assert ref("端口约定") == "F_0001"
    assert ref("f_0001") == "F_0001"
    row = json.loads(invoke("show", "--db", db, "--json", "F_0001").stdout)["id"]
    assert ref(str(row)) == "F_0001"


LONG = "17-Notes/long.md"


def windows(invoke, db, *options):
    return json.loads(invoke("show", "--db", db, "--json", LONG, *options).stdout)


def test_a_window_says_what_is_left_and_how_to_go_on(invoke, db):
    length = windows(invoke, db)["length"]
    result = invoke("show", "--db", db, LONG, "--max-chars", "1000")
    last, command = result.stdout.splitlines()[-2:]
    assert (
        last == f"1,000 of {length:,} characters shown, {length - 1000:,} left; next offset 1000:"
    )
    program, *words = shlex.split(command)
    assert program == "memory"
    following = invoke(*words, "--json")
    assert json.loads(following.stdout)["offset"] == 1000
    assert json.loads(following.stdout)["returned"] == 1000


def test_windows_make_up_the_whole_text(invoke, db):
    whole = windows(invoke, db, "--full")
    assert whole["text"].count("甲乙丙丁戊己庚辛。") == 400
    assert windows(invoke, db, "--max-chars", "0")["text"] == whole["text"]
    parts, offset = [], 0
    while offset is not None:
        window = windows(invoke, db, "--max-chars", "999", "--offset", str(offset))
        parts.append(window["text"])
        offset = window["next_offset"]
    assert len(parts) == 4
    assert "".join(parts) == whole["text"]


def test_the_last_window_says_that_nothing_is_left(invoke, db):
    length = windows(invoke, db)["length"]
    result = invoke("show", "--db", db, LONG, "--offset", "3000")
    assert f"The end: characters 3,000 to {length:,} shown, 0 left." in result.stdout
    result = invoke("show", "--db", db, LONG, "--offset", "99999")
    assert result.exit_code == 0
    assert f"Nothing left: the text has {length:,} characters." in result.stdout


@pytest.mark.parametrize("option", ["--offset", "--max-chars"])
def test_a_negative_window_is_refused(invoke, db, option):
    assert invoke("show", "--db", db, LONG, option, "-1").exit_code == 2


def test_the_command_to_go_on_is_exact(invoke, tmp_path):
    folder = tmp_path / "it's"
    folder.mkdir()
    (folder / "-dash's.md").write_text("a" * 50, encoding="utf-8")
    home = str(tmp_path / "a home")
    assert invoke(str(folder), "--home", home, command=import_command).exit_code == 0
    result = invoke("--home", home, "show", "--max-chars", "20", "--", "-dash's.md")
    words = shlex.split(result.stdout.splitlines()[-1])
    again = json.loads(invoke("--json", *words[1:]).stdout)
    assert (again["text"], again["offset"], again["next_offset"]) == ("a" * 20, 20, 40)


def test_a_card_that_is_not_there(invoke, db):
    result = invoke("show", "--db", db, "Z_9999")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: no card answers to 'Z_9999'; ")
    result = invoke("show", "--db", db, "Z_9999", "--json")
    assert result.exit_code == 1
    answer = json.loads(result.stdout)
    assert answer["ok"] is False
    assert "Z_9999" in answer["error"] and "memory search" in answer["hint"]


def test_an_ambiguous_reference_lists_the_candidates(invoke, tmp_path):
    folder = tmp_path / "notes"
    for name in ("a", "b"):
        (folder / name).mkdir(parents=True)
        (folder / name / "x.md").write_text("# 同名\n\n" + name, encoding="utf-8")
    db = str(tmp_path / "m.db")
    invoke(db, str(folder), command=import_command)
    result = invoke("show", "--db", db, "同名")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "notes/a/x.md" in result.stderr and "notes/b/x.md" in result.stderr
    answer = json.loads(invoke("show", "--db", db, "同名", "--json").stdout)
    assert answer["ok"] is False and len(answer["candidates"]) == 2


def test_a_secret_card_is_shown_and_searched_from_its_file(invoke, tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "s.md").write_text(
        "---\nid: F_0009\nsensitivity: secret\n---\n保险柜 4711\n", "utf-8"
    )
    (folder / "p.md").write_text("---\nid: F_0010\n---\n保险柜在哪里\n", "utf-8")
    db = str(tmp_path / "m.db")
    imported = invoke(db, str(folder), command=import_command)
    assert "1 added" in imported.stdout
    assert "1 secret (kept out of the index)" in imported.stdout
    assert b"4711" not in (tmp_path / "m.db").read_bytes()
    assert refs(invoke("search", "--db", db, "--json", "保险柜")) == ["F_0010"]
    assert refs(invoke("search", "--db", db, "--json", "保险柜", "--secret")) == ["F_0009"]
    result = invoke("show", "--db", db, "F_0009")
    assert "保险柜 4711" in result.stdout
    assert " · secret" in result.stdout


# Stats and paths


def test_stats(invoke, db):
    result = invoke("stats", "--db", db)
    assert "cards        6, 1 of them superseded" in result.stdout
    assert "decision 2" in result.stdout
    answer = json.loads(invoke("stats", "--db", db, "--json").stdout)
    assert answer["cards"] == 6
    assert answer["by_kind"]["decision"] == 2
    assert answer["index_bytes"] == os.path.getsize(db)


def test_paths_need_nothing_to_be_there(invoke, tmp_path):
    result = invoke("paths")
    assert result.exit_code == 0
    assert str(tmp_path / "home" / "memory.db") in result.stdout
    assert result.stdout.count("not there yet") == 4
    assert not (tmp_path / "home").exists(), "nothing is created"


# Import and index


def test_import_tells_what_it_did(invoke, tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    for name in ("a", "b", "c"):
        (folder / f"{name}.md").write_text(f"# {name}\n\n{name * 30}", encoding="utf-8")
    db = str(tmp_path / "m.db")
    result = invoke(db, str(folder), command=import_command)
    assert result.stdout.startswith("3 added, 0 updated, 0 moved, 0 removed, 0 unchanged")
    assert f"index: {db}" in result.stdout
    (folder / "a.md").write_text("# a\n\nchanged", encoding="utf-8")
    (folder / "b.md").rename(folder / "z.md")
    (folder / "c.md").unlink()
    (folder / "d.md").write_text("# d", encoding="utf-8")
    answer = json.loads(invoke(db, str(folder), "--json", command=import_command).stdout)
    del answer["seconds"], answer["vectors"]
    assert answer == {
        "added": 1, "updated": 1, "moved": 1, "removed": 1, "unchanged": 0, "secret": 0,
        "skipped": [], "faults": [], "notes": [],
    }  # fmt: skip


def test_skipped_files_are_grouped_and_named(invoke, tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "ok.md").write_text("# ok", encoding="utf-8")
    for number in range(5):
        (folder / f"big{number}.md").write_text("x" * 200, encoding="utf-8")
    (folder / "broken.md").write_text("---\ntitle: [\n---\ntext\n", encoding="utf-8")
    db = str(tmp_path / "m.db")
    result = invoke(db, str(folder), "--max-bytes", "100", command=import_command)
    assert result.exit_code == 0, "a part that fails is no failure"
    assert "5 files skipped, not in the index:" in result.stdout
    for number in range(3):
        assert f"    notes/big{number}.md\n" in result.stdout
    assert "big3" not in result.stdout
    assert "and 2 more (--json names them)" in result.stdout
    assert "1 file with a fault, indexed as well as can be:" in result.stdout
    assert "    notes/broken.md" in result.stdout
    assert "2 added" in result.stdout


def test_exclude_and_name(invoke, tmp_path):
    folder = tmp_path / "notes"
    (folder / "草稿").mkdir(parents=True)
    (folder / "草稿" / "x.md").write_text("# x", encoding="utf-8")
    (folder / "y.tmp.md").write_text("# y", encoding="utf-8")
    (folder / "z.md").write_text("# z", encoding="utf-8")
    db = str(tmp_path / "m.db")
    result = invoke(
        db, str(folder), "--exclude", "草稿/", "--exclude", "*.tmp.md", "--name", "笔记",
        command=import_command,
    )  # fmt: skip
    assert "1 added" in result.stdout
    stats = json.loads(invoke("stats", "--db", db, "--json").stdout)
    assert stats["by_source"] == {"笔记": 1}


def test_an_empty_folder_is_mentioned(invoke, tmp_path):
    (tmp_path / "empty").mkdir()
    db = tmp_path / "m.db"
    result = invoke(str(db), str(tmp_path / "empty"), command=import_command)
    assert result.exit_code == 0
    assert "No Markdown file was found" in result.stdout


def test_quiet_is_quiet(invoke, tmp_path):
    db = str(tmp_path / "m.db")
    result = invoke(db, str(SAMPLE), "--quiet", command=import_command)
    assert (result.exit_code, result.output) == (0, "")


def test_the_home_index_remembers_its_sources(invoke, tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.md").write_text("# 第一\n", encoding="utf-8")
    assert invoke(str(folder), command=import_command).exit_code == 0
    (folder / "b.md").write_text("# 第二\n", encoding="utf-8")
    result = invoke("index", "--json")
    assert json.loads(result.stdout)["added"] == 1
    assert json.loads(invoke("index", "--rebuild", "--json").stdout)["added"] == 2
    assert refs(invoke("search", "--json", "第二"))


def test_which_argument_is_the_database(tmp_path, monkeypatch, db):
    monkeypatch.chdir(tmp_path)
    os.rename(db, "index")
    (tmp_path / "notes.md").write_text("x", encoding="utf-8")
    assert split(["a.db", "notes"]) == ("a.db", ["notes"])
    assert split(["a.SQLite3", "notes"]) == ("a.SQLite3", ["notes"])
    assert split(["a.sqlite"]) == ("a.sqlite", [])
    assert split(["index", "notes"]) == ("index", ["notes"])
    assert split(["notes.md", "other"]) == (None, ["notes.md", "other"])
    assert split(["notes"]) == (None, ["notes"])


def test_the_database_stands_first(invoke, db, tmp_path):
    result = invoke(str(tmp_path), db, command=import_command)
    assert result.exit_code == 2
    assert "stands first" in result.stderr


def test_two_databases_are_refused(invoke, tmp_path):
    result = invoke("a.db", str(tmp_path), "--db", "b.db", command=import_command)
    assert result.exit_code == 2
    assert "two databases" in result.stderr


def test_a_database_alone_is_not_enough(invoke):
    result = invoke("a.db", command=import_command)
    assert result.exit_code == 2
    assert "PATH is missing" in result.stderr


# No card at all


def test_without_an_index_the_next_commands_are_named(invoke, tmp_path):
    for command in (["search", "x"], ["show", "x"], ["stats"], ["serve"]):
        result = invoke(*command)
        assert (result.exit_code, result.stdout) == (2, "")
        assert "there is no index" in result.stderr
        assert "  memory-import FOLDER" in result.stderr
        assert "  memory index" in result.stderr


def test_the_next_commands_are_for_the_same_memory(invoke, tmp_path):
    home = str(tmp_path / "an other")
    result = invoke("search", "x", "--home", home)
    assert f"  memory-import --home '{home}' FOLDER" in result.stderr
    assert f"  memory --home '{home}' index" in result.stderr


def test_an_empty_index_is_no_result(invoke, tmp_path):
    (tmp_path / "home" / "vault").mkdir(parents=True)
    assert invoke("index").exit_code == 0
    result = invoke("search", "x")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "holds no card" in result.stderr
    assert "memory-import FOLDER" in result.stderr and "memory index" in result.stderr
    result = invoke("search", "x", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["count"] == 0


# Wrong command lines


@pytest.mark.parametrize(
    "args",
    [
        ["search"],
        ["search", "x", "--limit", "many"],
        ["search", "x", "--since", "yesterday"],
        ["show"],
        ["show", "a", "b"],
        ["show", "x", "--offset", "far"],
        ["serve", "--port", "70000"],
        ["nonsense"],
        ["--nonsense", "search", "x"],
        ["--home"],
    ],
)
def test_a_wrong_command_line_ends_with_2(invoke, db, args):
    result = invoke("--db", db, *args)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    answer = json.loads(invoke("--db", db, "--json", *args).stdout)
    assert answer["ok"] is False and answer["error"]
    if "--home" not in args:
        assert json.loads(invoke("--db", db, *args, "--json").stdout)["ok"] is False


def test_a_near_name_is_suggested(invoke):
    assert "'search'" in invoke("serch", "x").stderr
    assert "memory-import FOLDER" in invoke("import", "x").stderr


def test_without_a_command_there_is_help(invoke):
    result = invoke()
    assert result.exit_code == 2
    assert "Usage: " in result.output
    assert json.loads(invoke("--json").stdout)["ok"] is False


# Unforeseen errors


@pytest.mark.parametrize("debug", [False, True])
def test_an_unexpected_exception_is_one_line(invoke, db, monkeypatch, debug):
    if debug:
        monkeypatch.setenv("MEMORY_DEBUG", "1")
    monkeypatch.setattr("datasette_memory.search.sqlite.parse", lambda query: [][1])
    result = invoke("search", "--db", db, "x")
    assert result.exit_code == 2
    line = result.stderr.splitlines()[-1]
    assert line.startswith("Error: unexpected IndexError: list index out of range; please report")
    assert ("Traceback" in result.stderr) is debug
    assert (result.stderr.count("\n") == 1) is not debug
    answer = json.loads(invoke("search", "--db", db, "x", "--json").stdout)
    assert answer["ok"] is False and "IndexError" in answer["error"]


# Hostile text

ESCAPES = "\x1b]0;owned\x07\x1b[31m红\x1b[0m\x9b2J\x08\x7f\u202eevil\rCR"


def test_no_control_character_reaches_people(invoke, tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    title = json.dumps("红\x1b[31m\u202etitle\x9b2J\nnewline")
    path = folder / ("a\x1b[2Jb.md" if os.name == "posix" else "ab.md")
    path.write_bytes(f'---\ntitle: {title}\ntags: ["t\x85ag"]\n---\n红字 {ESCAPES}\n'.encode())
    db = str(tmp_path / "m.db")
    imported = invoke(db, str(folder), command=import_command, color=True)
    found = invoke("search", "--db", db, "红字", "--superseded", color=True)
    ref = refs(invoke("search", "--db", db, "红字", "--json"))[0]
    shown = invoke("show", "--db", db, ref, color=True)
    missing = invoke("show", "--db", db, f"no {ESCAPES}", color=True)
    usage = invoke("search", "--db", db, "x", "--limit", ESCAPES, color=True)
    none = invoke("search", "--db", db, f"kangaroo{ESCAPES}", "--kind", "x", color=True)
    for result in (imported, found, shown, missing, usage, none):
        assert result.output
        for character in result.output:
            assert character in "\n\t" or (
                ord(character) >= 32 and not 0x7F <= ord(character) <= 0x9F
            ), ascii(result.output)
        assert "\u202e" not in result.output
    assert "\\x1b[31m" in shown.stdout
    assert "\\x1b" in none.stderr
    # JSON has the text as it is, and nothing raw either.
    text = invoke("show", "--db", db, ref, "--json").stdout
    assert "\x1b[31m红" in json.loads(text)["text"]
    assert not any(0x7F <= ord(c) <= 0x9F or ord(c) < 32 for c in text.rstrip("\n"))


# Real processes: encodings, pipes, lazy imports


@pytest.mark.parametrize(
    "locale",
    [
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "cp1252"},
        {"PYTHONIOENCODING": "ascii:strict"},
        {"PYTHONIOENCODING": "utf-8"},
    ],
)
def test_output_survives_every_encoding(db, locale):
    result = run([*MEMORY, "search", "--db", db, "--json", "全文检索"], **locale)
    assert (result.returncode, result.stderr) == (0, b"")
    answer = json.loads(result.stdout.decode("utf-8"))
    assert answer["query"] == "全文检索"
    assert answer["hits"][0]["title"] == "全文检索用二元组"
    for command in (["search", "--db", db, "全文检索"], ["show", "--db", db, "D_0001"], ["--help"]):
        result = run([*MEMORY, *command], **locale)
        assert (result.returncode, result.stderr) == (0, b"")
        assert any(word in result.stdout.decode("utf-8") for word in ("二元组", "阿里云"))
    result = run([*MEMORY, "show", "--db", db, "没有这张卡"], **locale)
    assert result.returncode == 1
    assert "没有这张卡" in result.stderr.decode("utf-8")


@pytest.mark.skipif(os.name != "posix", reason="names are Unicode there")
def test_chinese_in_a_locale_without_chinese(tmp_path):
    locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    home = tmp_path / "家"
    raw, notes = tmp_path / "原文.txt", tmp_path / "笔记"
    raw.write_text("通话的原文", "utf-8")
    notes.mkdir()
    (notes / "备忘.md").write_text("# 备忘\n\n每周五交周报。\n", "utf-8")

    def memory(*arguments, stdin="", argv=MEMORY):
        result = run([*argv, "--home", str(home), *arguments], stdin=stdin.encode(), **locale)
        assert (result.returncode, result.stderr) == (0, b""), result.stderr.decode()
        return result.stdout.decode("utf-8")

    memory(
        "capture", "--title", "站点根目录", "--body", "站点根目录在 /srv/www/orchid。", "--kind",
        "fact", "--tags", "网络", "--agent", "审查", "--raw", str(raw),
    )  # fmt: skip
    memory(
        "capture", "--title", "日志", "--relates", "相关:站点根目录",
        stdin="站点的日志在 /var/log/orchid，每天凌晨轮转。",
    )  # fmt: skip
    card = home / "vault" / "12-Facts" / "站点根目录.md"
    text = card.read_text("utf-8")
    assert "title: 站点根目录\n" in text and "  - 网络\n" in text and "agent: 审查\n" in text
    assert text.endswith("---\n站点根目录在 /srv/www/orchid。\n")
    memory("update", "站点根目录", "--summary", "在哪里")
    memory(str(notes), argv=IMPORT)
    assert memory("search", "周报").startswith("1. 备忘\n")
    assert "站点根目录在 /srv" in memory("show", "站点根目录")
    assert memory("raw", "F_0001") == "通话的原文\n"
    assert "by 审查" in memory("history", "F_0001") and "日志" in memory("related", "F_0001")
    assert str(home) in memory("paths")
    gone = memory("forget", "日志").splitlines()[0].split("  ")[2]
    assert gone == "17-Notes/日志.md"
    assert "17-Notes/日志.md" in memory("trash")
    assert "(2 cards compared)" in memory("verify")


def test_an_encoding_that_knows_chinese_is_kept(db):
    result = run([*MEMORY, "show", "--db", db, "D_0001"], PYTHONIOENCODING="gbk")
    assert result.stdout.decode("gbk").startswith("全文检索用二元组")
    result = run([*MEMORY, "show", "--db", db, "D_0001", "--json"], PYTHONIOENCODING="gbk")
    assert json.loads(result.stdout.decode("utf-8"))["title"] == "全文检索用二元组"


@pytest.mark.skipif(os.name != "posix", reason="arguments are no bytes there")
def test_arguments_that_are_no_utf8(db):
    for command in ("search", "show"):
        result = run([*MEMORY, command, "--db", db, "--json", b"\xff\xfe \x80"])
        assert result.returncode == 1
        json.loads(result.stdout.decode("utf-8"))
        assert b"Traceback" not in result.stderr and b"unexpected" not in result.stderr


@pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell")
def test_a_reader_that_leaves_is_no_error(db):
    # head ends after the first line; the show has far more to say than a pipe holds.
    show = shlex.join([*MEMORY, "show", "--db", db, LONG, "--full"])
    for command in (show, f"{show} --json", shlex.join([*MEMORY, "search", "--db", db, "端口"])):
        result = run(
            ["bash", "-c", f"set -o pipefail; {command} | head -c 1; echo ${{PIPESTATUS[0]}} >&2"]
        )
        assert result.stderr.decode().split() == ["0"]
    # Nobody reads at all.
    result = run(["bash", "-c", f"{show} | true; echo ${{PIPESTATUS[0]}} >&2"])
    assert result.stderr.decode().split() == ["0"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("json_option", [[], ["--json"]])
def test_a_full_disk_under_the_output(db, json_option):
    with open("/dev/full", "wb") as full:
        result = subprocess.run(
            [*MEMORY, "show", "--db", db, "D_0001", *json_option],
            stdout=full, stderr=subprocess.PIPE, env=environment(), timeout=60,
        )  # fmt: skip
    assert result.returncode == 2
    lines = result.stderr.decode().splitlines()
    assert len(lines) == 1 and "cannot be written" in lines[0]


HEAVY = {"sqlite_utils", "datasette", "yaml", "filelock", "pathspec", "markdown_it", "nh3", "mcp"}


@pytest.mark.parametrize(
    "args",
    [
        ["--help"],
        ["--version"],
        ["search", "--help"],
        ["paths"],
        ["search", "全文检索"],
        ["search", "kangaroo"],
        ["context", "全文检索怎么做", "--dry-run"],
        ["show", "D_0001"],
        ["stats"],
    ],
)
def test_the_light_path_loads_nothing_heavy(db, args):
    script = (
        "import sys\n"
        "from memory_cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(*sorted(sys.modules), file=sys.stderr)"
    )
    result = run([sys.executable, "-c", script, "--db", db, *args])
    loaded = set(result.stderr.decode().splitlines()[-1].split())
    assert "click" in loaded
    assert not loaded & HEAVY
    if "--help" in args or "--version" in args:
        assert "datasette_memory.memory" not in loaded
        assert "json" not in loaded and "dataclasses" not in loaded


def test_imports_load_what_the_command_needs(db, tmp_path):
    # The same look at sys.modules finds the heavy ones where they are used.
    script = (
        "import sys\n"
        "from memory_cli.main import import_main\n"
        "try: import_main()\n"
        "except SystemExit: pass\n"
        "print(*sorted(sys.modules), file=sys.stderr)"
    )
    result = run([sys.executable, "-c", script, str(tmp_path / "m.db"), str(SAMPLE)])
    assert "sqlite_utils" in result.stderr.decode().splitlines()[-1].split()


def test_nothing_in_a_pipe_but_the_summary(tmp_path):
    result = run([*IMPORT, str(tmp_path / "m.db"), str(SAMPLE)])
    assert result.stderr == b""
    assert result.stdout.startswith(b"63 added")


def test_two_imports_at_once_wait_for_each_other(tmp_path):
    from filelock import FileLock

    db = tmp_path / "m.db"
    lock = FileLock(tmp_path / ".m.db.lock")
    lock.acquire()
    process = subprocess.Popen(
        [*IMPORT, str(db), str(SAMPLE)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(),
    )  # fmt: skip
    try:
        assert process.stderr.readline() == b"another import is running; waiting\n"
        assert process.poll() is None
        lock.release()
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0
    assert out.startswith(b"63 added")
    assert err == b""


def test_files_of_a_source_are_never_touched(tmp_path):
    before = {path: path.stat() for path in SAMPLE.rglob("*")}
    for words in (["m.db", str(SAMPLE)], ["m.db", str(SAMPLE), "--rebuild"]):
        assert run([*IMPORT, *words], cwd=tmp_path).returncode == 0
    after = {path: path.stat() for path in SAMPLE.rglob("*")}
    kept = ("st_mtime_ns", "st_size", "st_ino", "st_mode")
    assert before.keys() == after.keys()
    for path in before:
        for name in kept:
            assert getattr(before[path], name) == getattr(after[path], name)
    assert all(stat.S_IMODE(found.st_mode) for found in after.values())
