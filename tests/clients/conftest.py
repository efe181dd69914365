"""A home folder of nobody: no test of a client may touch that of whoever runs it."""

from pathlib import Path

import pytest

from datasette_memory.clients.install import Clients


@pytest.fixture
def user(tmp_path, monkeypatch) -> Path:
    """The home folder of a user in which nothing is, with a project in it."""
    home = tmp_path / "us er"
    (home / "project" / ".git").mkdir(parents=True)
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(home))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME", "APPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(home / "project")
    return home


@pytest.fixture
def clients(user, tmp_path) -> Clients:
    """The clients of that user, with the memory in another folder."""
    return Clients(tmp_path / "memory")
