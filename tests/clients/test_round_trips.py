"""Install and uninstall on files of the kinds that people have: every byte comes back."""

import json
import os
import tomllib
from pathlib import Path

import pytest
import yaml

from datasette_memory.errors import MemoryFault

from . import configs

PLACES = {
    "claude-code": (".claude.json", [configs.STRICT]),
    "gemini-cli": (".gemini/settings.json", [configs.STRICT, configs.COMMENTED]),
    "opencode": (".config/opencode/opencode.json", [configs.COMMENTED]),
    "openclaw": (".openclaw/openclaw.json", [configs.COMMENTED, configs.FIVE]),
    "codex": (".codex/config.toml", [configs.TOML]),
    "continue": (".continue/config.yaml", [configs.YAML]),
}
CASES = [
    pytest.param(name, path, data, id=f"{name}: {kind}")
    for name, (path, groups) in PLACES.items()
    for group in groups
    for kind, data in group.items()
]
CASES += [
    pytest.param("claude-code", ".claude/settings.json", data, id=f"claude hooks: {kind}")
    for kind, data in configs.STRICT.items()
    if not kind.startswith("2 MB")
]
CASES += [
    pytest.param("claude-code", ".claude/CLAUDE.md", data, id=f"rules: {kind}")
    for kind, data in configs.MARKDOWN.items()
]


def put(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def snapshot(folder: Path) -> dict[str, object]:
    """Every folder, link and file below, with mode and bytes."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = os.readlink(path)
        else:
            found[name] = (path.stat().st_mode, path.read_bytes() if path.is_file() else None)
    return found


def test_there_are_enough_of_them():
    groups = (configs.STRICT, configs.COMMENTED, configs.FIVE, configs.TOML, configs.YAML)
    assert sum(map(len, groups)) >= 60


@pytest.mark.parametrize(("name", "place", "data"), CASES)
def test_every_byte_comes_back(clients, user, name, place, data):
    path = put(user / place, data)
    before = snapshot(user)
    clients.install(name)
    written = path.read_bytes()
    assert written != data
    if b"\r\n" in data:
        assert written.count(b"\r\n") == written.count(b"\n")
    # Nothing but insertions: what was there is there, in its order.
    rest = iter(written)
    if len(data) < 10_000:
        assert all(byte in rest for byte in data)
    assert not any(one.changes for one in clients.install(name).changes)
    assert path.read_bytes() == written
    clients.uninstall(name)
    assert snapshot(user) == before


@pytest.mark.parametrize(("name", "place", "data"), CASES)
def test_without_the_manifest_ours_goes_and_the_rest_stays(clients, user, name, place, data):
    path = put(user / place, data)
    clients.install(name)
    (clients.folder / f"{name}.json").unlink()
    assert not any(one.changes for one in clients.install(name).changes)
    clients.uninstall(name)
    left = path.read_text("utf-8")
    assert "datasette-memory" not in left and "--client" not in left
    assert "bin/memory" not in left and "memory-hooks" not in left
    if data.strip(b"\xef\xbb\xbf \r\n") and len(data) < 10_000:
        rest = iter(path.read_bytes())
        assert all(byte in rest for byte in data)


@pytest.mark.parametrize(
    ("place", "data", "name"),
    [
        pytest.param(place, data, name, id=f"{name}: {kind}")
        for name, place, kinds in (
            ("claude-code", ".claude.json", "json"),
            ("codex", ".codex/config.toml", "toml"),
            ("continue", ".continue/config.yaml", "yaml"),
        )
        for kind, data in configs.BROKEN[kinds].items()
    ],
)
def test_what_does_not_parse_is_refused_and_nothing_is_written(clients, user, place, data, name):
    put(user / place, data)
    before = snapshot(user)
    with pytest.raises(MemoryFault) as caught:
        clients.install(name)
    assert str(user / place) in caught.value.error and caught.value.hint
    assert "\n" not in caught.value.error
    assert snapshot(user) == before
    assert not clients.folder.exists()


def test_the_server_is_where_the_client_looks_for_it(clients, user):
    put(user / ".claude.json", configs.STRICT["other servers"])
    put(user / ".codex/config.toml", configs.TOML["other servers"])
    put(user / ".continue/config.yaml", configs.YAML["other servers"])
    for name in ("claude-code", "codex", "continue"):
        clients.install(name)
    claude = json.loads((user / ".claude.json").read_bytes())["mcpServers"]
    assert list(claude) == ["git", "files", "memory"]
    assert claude["memory"]["type"] == "stdio" and claude["memory"]["args"] == ["mcp"]
    codex = tomllib.loads((user / ".codex/config.toml").read_text())
    assert list(codex["mcp_servers"]) == ["git", "memory"] and codex["tui"] == {"x": 1}
    assert codex["mcp_servers"]["memory"]["args"] == ["mcp"]
    servers = yaml.safe_load((user / ".continue/config.yaml").read_text())["mcpServers"]
    assert [one["name"] for one in servers] == ["git", "memory"]
    for command in (claude["memory"], codex["mcp_servers"]["memory"], servers[1]):
        assert os.path.isabs(command["command"]) and os.access(command["command"], os.X_OK)


def test_of_two_keys_of_one_name_the_last_gets_it(clients, user):
    path = put(user / ".claude.json", configs.STRICT["duplicate keys"])
    clients.install("claude-code")
    assert sorted(json.loads(path.read_bytes())["mcpServers"]) == ["b", "memory"]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'{"a":1}', '{"a":1,"mcp":{"memory":E}}'),
        (b'{"a": 1}\n', '{"a": 1, "mcp": {"memory": E}}\n'),
        (b'{\n\t"a": 1\n}', '{\n\t"a": 1,\n\t"mcp": {\n\t\t"memory": E\n\t}\n}'),
        (b'{\n  "a": 1, // x\n}', '{\n  "a": 1, // x\n  "mcp": {\n    "memory": E\n  },\n}'),
        (b'{\n  "a": 1 // x\n}', '{\n  "mcp": {\n    "memory": E\n  },\n  "a": 1 // x\n}'),
        (b'{\r\n  "mcp": {}\r\n}', '{\r\n  "mcp": {\r\n    "memory": E\r\n  }\r\n}'),
    ],
)
def test_the_style_of_the_file_is_kept(data, expected):
    from datasette_memory.clients import json_edit
    from datasette_memory.clients.splice import insert

    text = data.decode()
    splices = json_edit.additions(text, {"mcp": {"memory": "E"}}, "jsonc")
    assert insert(text, splices) == expected.replace("E", '"E"')
