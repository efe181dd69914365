import hashlib
import os
import shutil
import socket
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasette_memory.errors import MemoryFault
from datasette_memory.govern.manifest import manifest
from datasette_memory.vault.sources import Source

posix = pytest.mark.skipif(os.name == "nt", reason="needs POSIX files")


@pytest.fixture
def root(tmp_path):
    """A folder with files that a sort by names and one by paths would put in another order."""
    root = tmp_path / "root"
    for name, data in {
        "a/b.md": b"one",
        "a-b.md": b"two",
        "a.md": b"",
        ".hidden/x": b"\0\xff",
        "中文/笔记.md": "你好".encode(),
        "node_modules/skipped.md": b"three",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    return root


def of(root, **options):
    return manifest(Source("notes", str(root), **options))


def test_the_hash_is_that_of_the_documented_entries(root):
    entries = sorted(
        (path.relative_to(root).as_posix().encode(), path.read_bytes())
        for path in root.rglob("*")
        if path.is_file()
    )
    text = b"".join(
        b"f %d %b %b\0" % (len(data), hashlib.sha256(data).hexdigest().encode(), path)
        for path, data in entries
    )
    found = of(root)
    assert found.sha256 == hashlib.sha256(text).hexdigest()
    assert (found.name, found.root) == ("notes", str(root))
    assert (found.files, found.bytes) == (6, 3 + 3 + 0 + 2 + 6 + 5)
    assert found.unreadable == ()


@posix
@pytest.mark.skipif(not shutil.which("sha256sum"), reason="needs coreutils")
def test_a_shell_gives_the_same_hash(root):
    script = (
        "cd \"$1\"; find . -type f -printf '%P\\0' | LC_ALL=C sort -z | "
        "while IFS= read -r -d '' p; do printf 'f %s %s %s\\0' \"$(stat -c %s \"$p\")\" "
        '"$(sha256sum < "$p" | cut -c1-64)" "$p"; done | sha256sum | cut -c1-64'
    )
    out = subprocess.run(["bash", "-c", script, "-", str(root)], capture_output=True, text=True)
    assert out.stdout.strip() == of(root).sha256


def test_patterns_and_limits_hide_nothing(root):
    assert of(root, exclude=("a*", "中文/"), max_bytes=1).sha256 == of(root).sha256


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "a.md").write_bytes(b"x"),
        lambda root: (root / "a/b.md").write_bytes(b"onE"),
        lambda root: (root / ".hidden/x").write_bytes(b"\0\xfe"),
        lambda root: (root / "a.md").rename(root / "A.md"),
        lambda root: (root / "a/b.md").rename(root / "b.md"),
        lambda root: (root / "a.md").unlink(),
        lambda root: (root / "node_modules/new").write_bytes(b""),
        lambda root: (root / "中文/.new.md").write_bytes(b"x"),
    ],
)
def test_any_change_of_a_byte_a_name_or_a_file_shows(root, change):
    before = of(root).sha256
    change(root)
    assert of(root).sha256 != before


@given(
    files=st.dictionaries(
        st.sampled_from(["a", "b", "a/c", "a-c", "d/e/f"]), st.binary(max_size=8), min_size=1
    ),
    other=st.dictionaries(
        st.sampled_from(["a", "b", "a/c", "a-c", "d/e/f"]), st.binary(max_size=8), min_size=1
    ),
)
def test_hashes_are_equal_just_when_the_files_are(tmp_path_factory, files, other):
    def made(files):
        root = tmp_path_factory.mktemp("root")
        kept = {}
        for name, data in files.items():
            if name == "a" and "a/c" in files:
                continue
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(data)
            kept[name] = data
        return kept, of(root).sha256

    (one, one_hash), (two, two_hash) = made(files), made(other)
    assert (one == two) == (one_hash == two_hash)


@posix
def test_links_count_by_their_target_and_are_not_followed(root, tmp_path):
    outside = tmp_path / "outside"
    outside.write_bytes(b"secret")
    (root / "link").symlink_to(outside)
    (root / "loop").symlink_to(root)
    before = of(root)
    assert before.files == 8
    outside.write_bytes(b"changed")
    assert of(root) == before
    (root / "link").unlink()
    (root / "link").symlink_to(tmp_path / "other")
    assert of(root).sha256 != before.sha256
    # The text of a link is not taken for the contents of a file.
    (root / "link").unlink()
    (root / "link").write_text(str(tmp_path / "other"))
    assert of(root).sha256 != before.sha256


@posix
def test_pipes_and_sockets_are_told_and_not_opened(root):
    before = of(root)
    os.mkfifo(root / "pipe")
    with_pipe = of(root)
    (root / "pipe").unlink()
    assert with_pipe.sha256 != before.sha256
    assert with_pipe.files == before.files + 1
    folder = os.getcwd()
    os.chdir(root)  # The path of a socket is short.
    try:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind("pipe")
            assert of(root).sha256 not in (before.sha256, with_pipe.sha256)
    finally:
        os.chdir(folder)


@posix
def test_names_that_are_no_utf8_count_too(root):
    before = of(root).sha256
    with open(os.path.join(os.fsencode(root), b"\xff.md"), "wb"):
        pass
    assert of(root).sha256 != before


def test_a_source_may_be_one_file(root):
    found = of(root / "a-b.md")
    entry = b"f 3 %b a-b.md\0" % hashlib.sha256(b"two").hexdigest().encode()
    assert found.sha256 == hashlib.sha256(entry).hexdigest()
    assert (found.files, found.bytes) == (1, 3)


def test_an_empty_source_has_a_hash(tmp_path):
    assert of(tmp_path).sha256 == hashlib.sha256(b"").hexdigest()


def test_a_missing_root_is_one_clear_line(tmp_path):
    with pytest.raises(MemoryFault, match="notes: .*missing cannot be read: no such file"):
        of(tmp_path / "missing")


@posix
def test_what_cannot_be_read_is_named_and_shows(public_place, as_nobody):
    (public_place / "open.md").write_bytes(b"x")
    (public_place / "closed.md").write_bytes(b"y")
    (public_place / "folder").mkdir()
    (public_place / "folder" / "z.md").write_bytes(b"z")
    whole = of(public_place)
    os.chmod(public_place / "closed.md", 0)
    os.chmod(public_place / "folder", 0)
    found = as_nobody(lambda: of(public_place))
    assert found.unreadable == (
        ("closed.md", "permission denied"),
        ("folder", "permission denied"),
    )
    assert (found.files, found.bytes) == (2, 1)
    assert found.sha256 != whole.sha256
    assert found.to_dict()["unreadable"][0] == {"path": "closed.md", "reason": "permission denied"}


@posix
def test_an_unprivileged_reader_of_a_read_only_folder_gets_the_same(public_place, as_nobody, state):
    folder = public_place / "folder"
    folder.mkdir()
    (folder / "a.md").write_bytes(b"x")
    os.chmod(folder / "a.md", 0o444)
    os.chmod(folder, 0o555)
    whole, before = of(public_place), state(public_place)
    assert as_nobody(lambda: of(public_place)) == whole
    assert state(public_place) == before


def test_importing_changes_no_manifest(place, state):
    before, times = [of(place.vault), of(place.notes)], state(place.vault, place.notes)
    place.index()
    place.verify(deep=True)
    place.sql("delete from files")
    place.index()
    assert [of(place.vault), of(place.notes)] == before
    assert state(place.vault, place.notes) == times
