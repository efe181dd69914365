"""Which sources a memory has, and what is recorded of them."""

import json
import os
from pathlib import Path

import pytest

from datasette_memory.errors import MemoryFault
from datasette_memory.home import resolve
from datasette_memory.sources import choose, configured, record
from datasette_memory.vault.sources import DEFAULT_MAX_BYTES, Source

posix = pytest.mark.skipif(os.name == "nt", reason="needs links")


@pytest.fixture
def place(tmp_path):
    """Without links on the way, as sources are."""
    return tmp_path.resolve()


@pytest.fixture
def home(place):
    """`home({...})`: the home with that config.json."""

    def make(config=None):
        folder = place / "home"
        folder.mkdir(exist_ok=True)
        if config is not None:
            (folder / "config.json").write_text(json.dumps(config), "utf-8")
        return resolve(str(folder))

    return make


def folders(place, *names: str) -> list[Path]:
    for name in names:
        (place / name).mkdir(parents=True)
    return [place / name for name in names]


def test_configured_sources(place, home):
    found = configured(
        home(
            {
                "sources": [
                    {"name": "a", "path": "/abs/a", "exclude": ["*.tmp.md"], "max_bytes": 9},
                    {"path": "rel/笔记"},
                    {"path": "../笔记", "own": "kept"},
                    {"path": "~/x y"},
                    {"path": "README.md"},
                ]
            }
        )
    )
    assert found == [
        Source("a", "/abs/a", ("*.tmp.md",), 9),
        Source("笔记", str(place / "home" / "rel" / "笔记")),
        Source(f"{place.name}-笔记", str(place / "笔记")),
        Source("x-y", os.path.expanduser("~/x y")),
        Source("README", str(place / "home" / "README.md")),
    ]


def test_a_source_without_a_name_never_takes_that_of_another(home):
    found = configured(home({"sources": [{"path": "/a"}, {"name": "a", "path": "/b"}]}))
    assert [(source.name, source.root) for source in found] == [("a-2", "/a"), ("a", "/b")]


def test_the_name_does_not_depend_on_what_is_there(place, home):
    config = home({"sources": [{"path": str(place / "deep" / "notes.md")}]})
    before = configured(config)
    folders(place, "deep")
    (place / "deep" / "notes.md").write_text("x")
    assert configured(config) == before
    assert before[0].name == "notes"


@pytest.mark.parametrize(
    "sources, part",
    [
        ([{"name": "a", "path": "/a"}, {"name": "a", "path": "/b"}], "two sources are called 'a'"),
        ([{"name": "vault", "path": "/a"}], "two sources are called 'vault'"),
        ([{"name": "a/b", "path": "/a"}], "'a/b' is no name"),
        ([{"path": "/a", "exclude": "*.md"}], "'exclude' of 'a' must be a list"),
        ([{"path": "/a", "exclude": [1]}], "'exclude' of 'a' must be a list"),
        ([{"path": "/a", "max_bytes": 0}], "'max_bytes' of 'a' must be a number"),
        ([{"path": "/a", "max_bytes": "9"}], "'max_bytes' of 'a' must be a number"),
    ],
)
def test_a_source_that_cannot_be_understood(sources, part, home):
    config = home({"sources": sources})
    with pytest.raises(MemoryFault) as caught:
        configured(config)
    assert str(config.config) in caught.value.error and part in caught.value.error


def chosen(place, *paths, known=(), **options) -> dict[str, str]:
    found = choose(paths, known, place / "vault", **options)
    return {source.name: source.root for source in found}


def test_new_sources_are_called_after_their_folders(place):
    a, b, c = folders(place, "notes", "other/notes", "#% 工作")
    assert chosen(place, a, b, c) == {"notes": str(a), "other-notes": str(b), "工作": str(c)}
    (place / "one.md").write_text("x")
    assert chosen(place, place / "one.md") == {"one": str(place / "one.md")}
    assert chosen(place, a, name="mine") == {"mine": str(a)}


def test_a_path_that_is_known_keeps_its_name_and_its_options(place):
    (a,) = folders(place, "notes")
    known = [Source("mine", str(a), ("x/",), 99)]
    assert choose([a], known, place / "vault") == known
    assert choose([a], known, place / "vault", "mine") == known
    assert choose([a], known, place / "vault", None, ("y/",), 5) == [
        Source("mine", str(a), ("y/",), 5)
    ]
    with pytest.raises(MemoryFault, match="is already the source 'mine'"):
        choose([a], known, place / "vault", "other")


def test_the_same_path_twice_is_one_source(place):
    (a,) = folders(place, "notes")
    assert chosen(place, a, a) == {"notes": str(a)}


def test_the_vault_is_the_vault(place):
    (vault,) = folders(place, "vault")
    assert chosen(place, vault) == {"vault": str(vault)}
    with pytest.raises(MemoryFault, match="is already the source 'vault'"):
        chosen(place, vault, name="mine")
    (other,) = folders(place, "other/vault")
    assert chosen(place, other) == {"other-vault": str(other)}
    with pytest.raises(MemoryFault, match="'vault' is already the name of"):
        chosen(place, other, name="vault")


def test_a_name_that_is_taken(place):
    a, b = folders(place, "a", "b")
    with pytest.raises(MemoryFault, match=f"'a' is already the name of {a}"):
        chosen(place, b, known=[Source("a", str(a))], name="a")


@pytest.mark.parametrize("name", ["", " a", "a/b", "a\\b", "a\nb", "\ud800"])
def test_what_is_no_name(name, place):
    (a,) = folders(place, "a")
    with pytest.raises(MemoryFault, match="is no name of a source"):
        chosen(place, a, name=name)


def test_a_name_is_for_one_path(place):
    a, b = folders(place, "a", "b")
    with pytest.raises(MemoryFault, match="--name names one path"):
        chosen(place, a, b, name="x")


def test_a_part_of_a_known_source_is_refused(place):
    a, inner, near = folders(place, "a", "a/b", "ab")
    (inner / "c.md").write_text("x")
    known = [Source("mine", str(a))]
    for path in (inner, inner / "c.md"):
        with pytest.raises(MemoryFault) as caught:
            chosen(place, path, known=known)
        assert f"is part of the source 'mine' ({a})" in caught.value.error
        assert "memory index" in caught.value.hint
        with pytest.raises(MemoryFault, match="is part of the source"):
            chosen(place, a, path)
    assert chosen(place, near, known=known) == {"ab": str(near)}
    (vault,) = folders(place, "vault/17-Notes")
    with pytest.raises(MemoryFault, match="is part of the source 'vault'"):
        chosen(place, vault)


def test_what_is_not_there(place):
    for path in ("none", "no\nne", "x" * 5000, "a\0b"):
        with pytest.raises(MemoryFault) as caught:
            chosen(place, place / path)
        assert "no folder or file" in caught.value.error or "cannot be read" in caught.value.error


def test_relative_paths_and_a_tilde(place, monkeypatch):
    (a,) = folders(place, "notes")
    monkeypatch.chdir(place)
    monkeypatch.setenv("HOME", str(place))
    monkeypatch.setenv("USERPROFILE", str(place))
    for path in ("notes", "./notes", "notes/../notes/", "~/notes"):
        assert chosen(place, Path(path)) == {"notes": str(a)}


@posix
def test_a_link_is_where_it_leads(place):
    (a,) = folders(place, "notes")
    (place / "link").symlink_to(a)
    assert chosen(place, place / "link") == {"notes": str(a)}
    # Also when the known source was written down with the link.
    known = [Source("mine", str(place / "link"))]
    assert chosen(place, a, known=known) == {"mine": str(place / "link")}
    folders(place, "notes/sub")
    with pytest.raises(MemoryFault, match="is part of the source 'mine'"):
        chosen(place, a / "sub", known=known)


def recorded(home) -> dict:
    return json.loads(home.config.read_text("utf-8"))


def test_record_adds_and_keeps_the_rest(place, home):
    config = home(
        {"own": 1, "sources": [{"name": "old", "path": "/old", "note": "mine"}], "db": "x"}
    )
    record(config, [Source("new", "/new"), Source("big", "/big", ("a/", "!a/b.md"), 10)])
    assert recorded(config) == {
        "own": 1,
        "sources": [
            {"name": "old", "path": "/old", "note": "mine"},
            {"name": "new", "path": "/new"},
            {"name": "big", "path": "/big", "exclude": ["a/", "!a/b.md"], "max_bytes": 10},
        ],
        "db": "x",
    }
    assert list(recorded(config)) == ["own", "sources", "db"]


def test_record_changes_an_entry_in_place(home):
    config = home({"sources": [{"name": "a", "path": "~/a", "own": 1}, {"path": "/tmp/b"}]})
    a, b = configured(config)
    record(config, [Source(a.name, a.root, ("x/",), a.max_bytes), b])
    assert recorded(config)["sources"] == [
        {"name": "a", "path": "~/a", "own": 1, "exclude": ["x/"]},
        {"path": "/tmp/b"},
    ]


def test_record_writes_only_what_is_new(home):
    config = home({"sources": [{"path": "/a", "max_bytes": 5}]})
    before = config.config.read_bytes()
    record(config, [*configured(config), Source("vault", "/v")])
    assert config.config.read_bytes() == before
    without = resolve(str(config.home / "none"))
    record(without, [])
    assert not without.config.exists()


def test_a_limit_that_is_the_default_again_is_recorded(home):
    config = home({"sources": [{"name": "a", "path": "/a", "max_bytes": 5}]})
    record(config, [Source("a", "/a", (), DEFAULT_MAX_BYTES)])
    assert configured(resolve(str(config.home)))[0].max_bytes == DEFAULT_MAX_BYTES


def test_a_folder_around_a_source_is_refused(place):
    """Its cards would be found twice, and their references would mean two cards each."""
    (inner,) = folders(place, "notes/inner")
    known = [Source("inner", str(inner))]
    with pytest.raises(MemoryFault, match="holds the source 'inner'"):
        choose([place / "notes"], known, place / "vault")
