"""Install, uninstall and doctor, where others edit too, files are odd, and things go wrong."""

import json
import os
import shlex
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from datasette_memory import durable
from datasette_memory.clients import records, targets
from datasette_memory.clients.install import Clients
from datasette_memory.errors import MemoryFault, PlaceTaken

from .test_round_trips import put, snapshot

WRITTEN = [one.name for one in records.RECORDS if one.level != records.DOCS_ONLY]
NAMES = (
    "claude-code codex gemini-cli qwen-code opencode copilot cline continue openclaw cursor vscode "
    "qoder goose hermes windsurf zed kiro"
).split()


def test_the_clients_are_all_there():
    assert sorted(records.BY_NAME) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scope", ["user", "project"])
def test_on_an_empty_home_nothing_is_left(clients, user, name, scope):
    before = snapshot(user)
    if scope not in records.BY_NAME[name].server.paths:
        with pytest.raises(MemoryFault, match="scope project"):
            clients.install(name, scope)
        return
    report = clients.install(name, scope)
    if name in WRITTEN:
        assert snapshot(user) != before and not report.paste
        assert clients.doctor(name)[0]["name"] == "program"
        assert not [one for one in clients.doctor(name) if one["level"] == "error"]
    else:
        assert snapshot(user) == before
        assert any("memory" in one["text"] and one["path"] for one in report.paste)
    clients.uninstall(name)
    assert snapshot(user) == before
    assert not clients.folder.exists()


def test_a_dry_run_shows_the_change_and_makes_none(clients, user):
    put(user / ".claude.json", b'{\n  "a": 1\n}\n')
    before = snapshot(user)
    report = clients.install("claude-code", dry_run=True)
    diffs = {one["path"]: one["diff"] for one in report.to_dict()["files"]}
    diff = diffs[str(user / ".claude.json")]
    assert '-  "a": 1\n+  "a": 1,\n+  "mcpServers": {\n' in diff
    assert diffs[str(user / ".claude" / "CLAUDE.md")].startswith("--- /dev/null\n")
    assert snapshot(user) == before and not clients.folder.exists()
    clients.install("claude-code")
    before = snapshot(user)
    report = clients.uninstall("claude-code", dry_run=True)
    assert all(one.changes for one in report.changes)
    assert snapshot(user) == before


def test_what_others_wrote_since_stays(clients, user):
    path = put(user / ".claude.json", b'{"mcpServers": {}}\n')
    rules = put(user / ".claude/CLAUDE.md", b"Be brief.\n")
    clients.install("claude-code")
    # The client writes the whole file anew, and the user adds to the rules before and behind.
    data = json.loads(path.read_bytes())
    data["mcpServers"]["git"] = {"command": "g"}
    data["numStartups"] = 3
    path.write_text(json.dumps(data, indent=1))
    rules.write_text("# Mine\n" + rules.read_text() + "\nAnd kind.\n")
    settings = json.loads((user / ".claude/settings.json").read_bytes())
    settings["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": "say done"}]})
    (user / ".claude/settings.json").write_text(json.dumps(settings))
    assert not any(one.changes for one in clients.install("claude-code").changes)
    clients.uninstall("claude-code")
    assert json.loads(path.read_bytes()) == {
        "mcpServers": {"git": {"command": "g"}},
        "numStartups": 3,
    }
    assert rules.read_text() == "# Mine\nBe brief.\n\nAnd kind.\n"
    assert json.loads((user / ".claude/settings.json").read_bytes()) == {
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}
    }
    # What was there before the uninstall is kept, as somebody's work is in it.
    copies = [one.read_bytes() for one in (clients.folder / "backups").rglob("*") if one.is_file()]
    assert any(b"say done" in one and b"--client" in one for one in copies)


def test_an_edit_elsewhere_in_the_text_leaves_its_bytes(clients, user):
    path = put(user / ".gemini/settings.json", b'{\n  // one\n  "a": 1,\n  "hooks": {},\n}\n')
    clients.install("gemini-cli")
    text = path.read_text()
    path.write_text(text.replace("// one", "// one and two").replace('"a": 1', '"a":   2'))
    clients.uninstall("gemini-cli")
    assert path.read_bytes() == b'{\n  // one and two\n  "a":   2,\n  "hooks": {},\n}\n'


def test_codex_tables_that_follow_ours_stay(clients, user):
    path = put(user / ".codex/config.toml", b"a = 1\n")
    clients.install("codex")
    path.write_text(path.read_text() + '[projects."/x"]\ntrust_level = "trusted"\n')
    clients.uninstall("codex")
    assert path.read_text() == 'a = 1\n[projects."/x"]\ntrust_level = "trusted"\n'


def test_a_codex_table_without_its_marks_goes(clients, user):
    path = put(user / ".codex/config.toml", b"a = 1\n")
    clients.install("codex")
    lines = [one for one in path.read_text().splitlines() if not one.startswith("#")]
    path.write_text("\n".join([*lines, "[tui]", "b = 2", ""]))
    clients.uninstall("codex")
    assert tomllib.loads(path.read_text()) == {"a": 1, "tui": {"b": 2}}


def test_somebody_elses_server_of_our_name_is_not_touched(clients, user):
    other = {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"]}
    put(user / ".claude.json", json.dumps({"mcpServers": {"memory": other}}).encode())
    put(user / ".codex/config.toml", b'[mcp_servers.memory]\ncommand = "npx"\n')
    put(user / ".continue/config.yaml", b"mcpServers:\n  - name: memory\n    command: npx\n")
    before = snapshot(user)
    for name in ("claude-code", "codex", "continue"):
        with pytest.raises(PlaceTaken, match="somebody else's"):
            clients.install(name)
        clients.uninstall(name)
    assert snapshot(user) == before


def test_somebody_elses_command_and_hook_are_left(clients, user):
    mine = put(user / ".claude/commands/remember.md", b"my own\n")
    hook = put(user / ".cline/hooks/TaskStart", b"#!/bin/sh\necho mine\n")
    report = clients.install("claude-code")
    assert [one.note for one in report.changes if one.note] == [
        f"{mine} is somebody else's and is left as it is"
    ]
    clients.install("cline")
    assert (user / ".cline/hooks/TaskComplete").exists()
    clients.uninstall("claude-code")
    clients.uninstall("cline")
    assert mine.read_bytes() == b"my own\n" and hook.read_bytes() == b"#!/bin/sh\necho mine\n"


def test_a_file_of_ours_that_was_edited_goes_and_a_copy_is_kept(clients, user):
    clients.install("claude-code")
    skill = user / ".claude/skills/remember/SKILL.md"
    skill.write_text(skill.read_text() + "\nmy line\n")
    report = clients.uninstall("claude-code")
    assert not skill.exists()
    note = next(one.note for one in report.changes if one.path == skill)
    assert "my line" in Path(note.rpartition("a copy: ")[2]).read_text()


@pytest.mark.skipif(os.name == "nt", reason="links need a right of their own there")
def test_a_link_stays_a_link(clients, user):
    real = put(user / "dotfiles/claude.json", b'{"a": 1}\n')
    (user / ".claude.json").symlink_to(real)
    real.chmod(0o640)
    (user / ".claude").mkdir()
    (user / ".claude/settings.json").symlink_to(user / "dotfiles/settings.json")
    before = snapshot(user)
    clients.install("claude-code")
    assert (user / ".claude.json").is_symlink() and b"mcpServers" in real.read_bytes()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert (user / "dotfiles/settings.json").exists()
    clients.uninstall("claude-code")
    assert snapshot(user) == before


def test_a_read_only_file_is_refused_before_anything_is_written(clients, user):
    path = put(user / ".claude.json", b'{"a": 1}\n')
    path.chmod(0o444)
    before = snapshot(user)
    with pytest.raises(MemoryFault, match="read-only") as caught:
        clients.install("claude-code")
    assert caught.value.hint
    assert snapshot(user) == before


def test_a_file_that_is_too_large_is_refused(clients, user):
    put(user / ".claude.json", b'{"a": "' + b"x" * (17 << 20) + b'"}')
    with pytest.raises(MemoryFault, match="larger than 16 MB"):
        clients.install("claude-code")


def test_a_full_disk_midway_is_taken_back(clients, user, monkeypatch):
    put(user / ".claude/settings.json", b'{"a": 1}\n')
    put(user / ".claude.json", b'{"b": 2}\n')
    before = snapshot(user)
    real = durable.system.replace

    def replace(source, target):
        if str(target) == str(user / ".claude.json"):
            raise OSError(28, "No space left on device")
        return real(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(durable.system, "replace", replace)
        with pytest.raises(MemoryFault, match="No space left"):
            clients.install("claude-code")
    assert snapshot(user) != before
    clients.uninstall("claude-code")
    assert snapshot(user) == before


def test_another_home_and_an_older_entry(clients, user, tmp_path):
    path = put(user / ".claude.json", b'{\n  "a": 1\n}\n')
    clients.install("claude-code")
    moved = Clients(tmp_path / "memory", ["--home", "/my notes/memory"])
    assert [one["level"] for one in moved.doctor("claude-code")].count("error") == 2
    report = moved.install("claude-code")
    assert sorted(one.path.name for one in report.changes if one.changes) == [
        ".claude.json",
        "settings.json",
    ]
    entry = json.loads(path.read_bytes())["mcpServers"]["memory"]
    assert entry["args"] == ["mcp", "--home", "/my notes/memory"]
    hooks = json.loads((user / ".claude/settings.json").read_bytes())["hooks"]
    assert len(hooks["Stop"]) == 1
    words = shlex.split(hooks["Stop"][0]["hooks"][0]["command"])
    assert words[1:] == [*("hook", "stop", "--client", "claude-code", "--home", "/my notes/memory")]
    moved.uninstall("claude-code")
    assert path.read_bytes() == b'{\n  "a": 1\n}\n'


def test_folders_that_the_environment_moves(user, tmp_path, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(user / "cc"))
    monkeypatch.setenv("CODEX_HOME", str(user / "cx"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(user / "xdg"))
    clients = Clients(tmp_path / "memory")
    for name in ("claude-code", "codex", "opencode"):
        clients.install(name)
    for path in (
        "cc/.claude.json",
        "cc/settings.json",
        "cx/config.toml",
        "xdg/opencode/opencode.json",
    ):
        assert (user / path).exists()
    assert not (user / ".claude").exists() and not (user / ".codex").exists()


def test_of_two_files_the_one_that_is_there_is_edited(clients, user):
    path = put(user / ".config/opencode/opencode.jsonc", b"{ /* mine */ }\n")
    clients.install("opencode")
    assert b"memory" in path.read_bytes()
    assert not (user / ".config/opencode/opencode.json").exists()


def test_the_scope_of_a_project_is_this_project(clients, user):
    clients.install("claude-code")
    clients.install("claude-code", "project")
    project = user / "project"
    assert (project / ".mcp.json").exists() and (project / ".claude/settings.local.json").exists()
    clients.uninstall("claude-code", "project")
    assert sorted(one.name for one in project.iterdir()) == [".git"]
    assert (user / ".claude.json").exists()
    clients.uninstall("claude-code")
    assert not (user / ".claude.json").exists()


def test_a_file_that_two_clients_share_stays_while_one_needs_it(clients, user):
    project = user / "project"
    put(project / "AGENTS.md", b"Be brief.\n")
    before = snapshot(user)
    for first, second in (("codex", "opencode"), ("opencode", "codex")):
        clients.install(first, "project")
        clients.install(second, "project")
        clients.uninstall(first)
        assert "memory_search" in (project / "AGENTS.md").read_text()
        assert not [
            one for one in clients.doctor(second) if "AGENTS" in one["what"] and one["remedy"]
        ]
        clients.uninstall(second)
        assert snapshot(user) == before
    clients.install("claude-code", "project")
    clients.install("copilot", "project")
    clients.uninstall("claude-code")
    assert "memory" in json.loads((project / ".mcp.json").read_bytes())["mcpServers"]
    clients.uninstall("copilot")
    assert snapshot(user) == before and not clients.folder.exists()


def test_all_that_was_written_is_found_again(clients, user):
    before = snapshot(user)
    for name in WRITTEN:
        clients.install(name)
    assert sorted(clients.with_something()) == sorted(WRITTEN)
    assert [one["name"] for one in clients.overview() if one["installed"]] == WRITTEN
    for name in clients.with_something():
        clients.uninstall(name)
    assert snapshot(user) == before


@pytest.mark.skipif(os.name == "nt", reason="scripts of the shell")
def test_every_hook_calls_the_program_by_its_whole_path(clients, user, monkeypatch):
    monkeypatch.setattr(targets, "program", lambda: ["/opt/my tools/memory"])
    monkeypatch.setattr("datasette_memory.clients.install.program", targets.program)
    for name in WRITTEN:
        clients.install(name)
    for name, file in (("claude-code", ".claude/settings.json"), ("codex", ".codex/hooks.json"),
                       ("gemini-cli", ".gemini/settings.json"), ("qwen-code", ".qwen/settings.json")):  # fmt: skip
        hooks = json.loads((user / file).read_bytes())["hooks"]
        for event, told in records.BY_NAME[name].hooks.events.items():
            words = shlex.split(hooks[event][0]["hooks"][0]["command"])
            assert words == ["/opt/my tools/memory", "hook", told, "--client", name]
    copilot = json.loads((user / ".copilot/hooks/memory.json").read_bytes())
    one = copilot["hooks"]["userPromptSubmitted"][0]
    assert copilot["version"] == 1
    assert shlex.split(one["bash"])[:3] == ["/opt/my tools/memory", "hook", "prompt"]
    assert one["powershell"].startswith("& '/opt/my tools/memory' 'hook' 'prompt'")
    script = user / ".cline/hooks/UserPromptSubmit"
    assert os.access(script, os.X_OK)
    assert "exec '/opt/my tools/memory' hook prompt --client cline\n" in script.read_text()


def test_on_windows_the_program_is_quoted_for_cmd_and_bash(monkeypatch):
    words = [r"C:\Program Files\m\memory.exe", "hook", "stop", "--home", r"D:\my notes"]
    with monkeypatch.context() as patch:
        patch.setattr(targets.os, "name", "nt")
        line = targets.line(words)
    assert line == r'"C:\Program Files\m\memory.exe" hook stop --home "D:\my notes"'
    assert targets.is_server({"command": words[0], "args": ["mcp"]})
    assert not targets.is_server({"command": "npx", "args": ["server-memory", "mcp"]})


def test_the_level_comes_from_evidence_and_falls_with_another_version(clients):
    record = records.BY_NAME["claude-code"]
    put(
        clients.folder / "evidence/claude-code.json",
        b'{"verified": true, "version": "2.1.332", "date": "2026-12-01T10:00:00Z"}',
    )
    assert clients.level(record, "2.1.332") == ("verified", "2026-12-01")
    assert clients.level(record, "2.2.0") == ("install-ready", "2026-12-01")
    # A program that is gone, or says no version, is not known to be the one that was seen.
    assert clients.level(record, "") == ("install-ready", "2026-12-01")
    assert clients.level(records.BY_NAME["codex"], "0.171.0") == ("install-ready", "")


def memory(user, *words):
    environment = {**os.environ, "HOME": str(user), "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        [sys.executable, "-m", "memory_cli", *words], cwd=user / "project", env=environment,
        capture_output=True, text=True,
    )  # fmt: skip


def test_the_commands(user):
    put(user / ".claude.json", b'{"a": 1}\n')
    before = snapshot(user)
    shown = memory(user, "client", "list", "--json")
    assert [one["name"] for one in json.loads(shown.stdout)["clients"]][:2] == [
        "claude-code",
        "codex",
    ]
    assert memory(user, "client", "doctor", "claude-code").returncode == 1
    dry = memory(user, "client", "install", "claude-code", "--dry-run")
    assert dry.returncode == 0 and '+{"a": 1, "mcpServers": ' in dry.stdout
    assert snapshot(user) == before
    done = memory(user, "client", "install", "claude-code", "--json")
    assert json.loads(done.stdout)["changed"] is True
    again = memory(user, "client", "install", "claude-code", "--json")
    assert json.loads(again.stdout)["changed"] is False
    assert memory(user, "client", "doctor", "claude-code").returncode == 0
    assert "claude-code  install-ready  installed" in memory(user, "client", "list").stdout
    assert memory(user, "client", "uninstall", "--all").returncode == 0
    assert snapshot(user) == before


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["install", "emacs"], 2, "there is no client 'emacs'; one of: claude-code, codex"),
        (["install", "cline", "--scope", "project"], 2, "Cline has no file of scope project"),
        (["uninstall"], 2, "name one client, or give --all"),
        (["install", "codex"], 3, "config.toml: mcp_servers.memory is there already"),
        (["install", "gemini-cli"], 2, "settings.json cannot be edited: line 1: it ends too early"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(user, words, code, said):
    put(user / ".codex/config.toml", b'[mcp_servers.memory]\ncommand = "x"\n')
    put(user / ".gemini/settings.json", b'{"a": [')
    result = memory(user, "client", *words)
    assert result.returncode == code
    assert said in result.stderr and result.stderr.count("\n") == 1


CODEX = """#!{python}
import json, sys, tomllib
home = {home!r}
hooks = json.load(open(home + "/.codex/hooks.json"))["hooks"]
state = tomllib.load(open(home + "/.codex/config.toml", "rb")).get("hooks", {{}}).get("state", {{}})
assert sys.argv[1:] == ["app-server"]
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "hooks/list":
        found = []
        for number, (event, groups) in enumerate(hooks.items()):
            for group in groups:
                command = group["hooks"][0]["command"]
                key = home + "/.codex/hooks.json:" + event + ":0:0"
                found.append({{"key": key, "command": command, "currentHash": "sha256:" + str(number),
                              "trustStatus": "trusted" if key in state else "untrusted"}})
        print(json.dumps({{"id": 2, "result": {{"data": [{{"hooks": found}}]}}}}), flush=True)
    elif "id" in asked:
        print(json.dumps({{"id": asked["id"], "result": {{}}}}), flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="scripts of the shell")
def test_trust_is_written_only_when_asked_for(clients, user, tmp_path, monkeypatch):
    config = put(user / ".codex/config.toml", b"a = 1\n")
    put(
        user / ".codex/hooks.json", b'{"hooks": {"Interrupt": [{"hooks": [{"command": "say x"}]}]}}'
    )
    before = snapshot(user)
    script = put(
        tmp_path / "bin/codex", CODEX.format(python=sys.executable, home=str(user)).encode()
    )
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(script.parent))
    clients.install("codex")
    assert "hooks" not in tomllib.loads(config.read_text())
    clients.install("codex", trust=True)
    state = tomllib.loads(config.read_text())["hooks"]["state"]
    # Those of others, as the one of Interrupt, are approved by nobody but the user.
    assert len(state) == len(records.BY_NAME["codex"].hooks.events)
    assert state[f"{user}/.codex/hooks.json:SessionStart:0:0"] == {"trusted_hash": "sha256:1"}
    written = config.read_bytes()
    assert not any(one.changes for one in clients.install("codex").changes)
    clients.install("codex", trust=True)
    assert config.read_bytes() == written
    clients.uninstall("codex")
    assert snapshot(user) == before


def test_trust_without_codex_or_for_another_client(clients, user, monkeypatch):
    monkeypatch.setenv("PATH", str(user))
    with pytest.raises(MemoryFault, match="not on the PATH"):
        clients.install("codex", trust=True)
    with pytest.raises(MemoryFault, match="asks for no approval"):
        clients.install("claude-code", trust=True)
    # Codex reads approvals in the user's file alone: in that of a project they would do nothing.
    before = snapshot(user)
    with pytest.raises(MemoryFault, match="in the user's own file"):
        clients.install("codex", "project", trust=True)
    assert snapshot(user) == before
