"""Where things are: option, environment, config.json, default."""

import json
import os
from pathlib import Path

import pytest

from datasette_memory.errors import MemoryFault
from datasette_memory.home import read_config, resolve, write_config


def test_the_default_is_in_the_home_of_the_user(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    home = resolve()
    assert home.home == tmp_path / ".memory_agent"
    assert home.db == tmp_path / ".memory_agent" / "memory.db"
    assert home.vault == tmp_path / ".memory_agent" / "vault"
    assert home.decided == {"home": "default", "db": "default", "vault": "default"}
    assert home.sources == ()
    assert not home.home.exists()


def test_an_option_comes_before_the_environment_and_this_before_config(tmp_path, monkeypatch):
    write_config(tmp_path / "config.json", {"db": "c.db", "vault": "c"})
    monkeypatch.chdir(tmp_path)
    assert resolve(str(tmp_path)).db == tmp_path / "c.db"
    assert resolve(str(tmp_path)).decided == {
        "home": "option", "db": "config.json", "vault": "config.json",
    }  # fmt: skip
    monkeypatch.setenv("MEMORY_AGENT_HOME", str(tmp_path))
    monkeypatch.setenv("MEMORY_AGENT_DB", "e.db")
    monkeypatch.setenv("MEMORY_AGENT_VAULT", "e")
    home = resolve()
    assert (home.home, home.db, home.vault) == (tmp_path, tmp_path / "e.db", tmp_path / "e")
    assert home.decided == {
        "home": "MEMORY_AGENT_HOME", "db": "MEMORY_AGENT_DB", "vault": "MEMORY_AGENT_VAULT",
    }  # fmt: skip
    home = resolve("h", "o.db", "o")
    assert (home.home, home.db, home.vault) == (tmp_path / "h", tmp_path / "o.db", tmp_path / "o")
    assert set(home.decided.values()) == {"option"}


def test_an_empty_variable_is_none(tmp_path, monkeypatch):
    monkeypatch.setenv("MEMORY_AGENT_DB", "")
    assert resolve(str(tmp_path)).decided["db"] == "default"


def test_relative_paths_in_config_are_relative_to_the_home(tmp_path, monkeypatch):
    write_config(tmp_path / "config.json", {"db": "sub/x.db", "vault": "../笔记"})
    monkeypatch.chdir("/")
    home = resolve(str(tmp_path))
    assert home.db == tmp_path / "sub" / "x.db"
    assert os.path.normpath(home.vault) == str(tmp_path.parent / "笔记")


def test_a_tilde_is_replaced_wherever_it_comes_from(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    write_config(tmp_path / "h" / "config.json", {"vault": "~/v"})
    home = resolve("~/h", "~/x.db")
    assert (home.home, home.db, home.vault) == (
        tmp_path / "h", tmp_path / "x.db", tmp_path / "v",
    )  # fmt: skip
    # A user that nobody knows is a folder like any other.
    assert resolve("~no-such-user/h").home == Path("~no-such-user/h").absolute()


def test_the_object_of_memory_paths(tmp_path):
    sources = [{"name": "a", "path": "/a", "own": [1]}]
    write_config(tmp_path / "config.json", {"sources": sources})
    found = resolve(str(tmp_path)).to_dict()
    assert found == {
        "home": str(tmp_path),
        "db": str(tmp_path / "memory.db"),
        "vault": str(tmp_path / "vault"),
        "config": str(tmp_path / "config.json"),
        "decided": {"home": "option", "db": "default", "vault": "default"},
        "sources": sources,
    }
    json.dumps(found)


@pytest.mark.parametrize(
    "text, part",
    [
        (b"", "is not valid JSON"),
        (b"{", "is not valid JSON"),
        (b"{'a': 1}", "is not valid JSON"),
        (b"\xff\xfe\x00", "is not valid JSON"),
        (b"[" * 100_000, "is not valid JSON"),
        (b"[]", "must hold a JSON object"),
        (b"null", "must hold a JSON object"),
        (b'{"db": 1}', "'db' must be a path in quotes"),
        (b'{"db": null}', "'db' must be a path in quotes"),
        (b'{"vault": ["a"]}', "'vault' must be a path in quotes"),
        (b'{"sources": {}}', "'sources' must be a list"),
        (b'{"sources": null}', "'sources' must be a list"),
        (b'{"sources": ["/a"]}', "'sources' must be a list"),
        (b'{"sources": [{"name": "a"}]}', "'sources' must be a list"),
        (b'{"sources": [{"path": "/a", "name": 1}]}', "'sources' must be a list"),
    ],
)
def test_a_broken_config_is_one_line_that_names_it(text, part, tmp_path):
    path = tmp_path / "config.json"
    path.write_bytes(text)
    with pytest.raises(MemoryFault) as caught:
        resolve(str(tmp_path))
    assert str(path) in caught.value.error and part in caught.value.error
    assert "\n" not in caught.value.error and caught.value.hint
    assert path.read_bytes() == text


def test_a_config_with_a_byte_order_mark_is_read(tmp_path):
    (tmp_path / "config.json").write_bytes('\ufeff{"db": "笔记.db"}'.encode())
    assert resolve(str(tmp_path)).db == tmp_path / "笔记.db"


def test_a_config_that_is_a_folder(tmp_path):
    (tmp_path / "config.json").mkdir()
    with pytest.raises(MemoryFault, match="cannot be read"):
        resolve(str(tmp_path))
    with pytest.raises(MemoryFault, match="cannot be written"):
        write_config(tmp_path / "config.json", {})


def test_a_home_that_is_a_file_has_no_config(tmp_path):
    (tmp_path / "home").write_text("x")
    assert read_config(tmp_path / "home" / "config.json") == {}
    with pytest.raises(MemoryFault, match="cannot be written"):
        write_config(tmp_path / "home" / "config.json", {})


def test_what_is_written_is_read_again_and_can_be_read_by_people(tmp_path):
    config = {"own": {"深": [1, None]}, "sources": [{"name": "笔记", "path": "/n"}], "db": "a.db"}
    path = tmp_path / "new" / "config.json"
    write_config(path, config)
    assert read_config(path) == config
    assert list(read_config(path)) == ["own", "sources", "db"]
    assert "笔记" in path.read_text("utf-8") and path.read_text("utf-8").endswith("}\n")
    assert [file.name for file in path.parent.iterdir()] == ["config.json"]


@pytest.mark.skipif(os.name == "nt", reason="needs links")
def test_a_config_that_is_a_link_stays_one(tmp_path):
    (tmp_path / "dotfiles.json").write_text("{}")
    (tmp_path / "config.json").symlink_to(tmp_path / "dotfiles.json")
    write_config(tmp_path / "config.json", {"db": "a.db"})
    assert (tmp_path / "config.json").is_symlink()
    assert json.loads((tmp_path / "dotfiles.json").read_text()) == {"db": "a.db"}
