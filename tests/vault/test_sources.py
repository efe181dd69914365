import os
import sys
import unicodedata
from dataclasses import replace
from pathlib import Path

import pytest

from datasette_memory.errors import MemoryFault
from datasette_memory.vault.sources import FileStat, Skipped, Source, read, scan

posix = pytest.mark.skipif(os.name == "nt", reason="needs POSIX files")
NFC = unicodedata.normalize("NFC", "Zürich")
NFD = unicodedata.normalize("NFD", "Zürich")


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


def write(root: Path, *names: str, text: str = "x") -> None:
    for name in names:
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def paths(root, **options):
    files, _ = scan(Source("s", str(root), **options))
    return [file.path for file in files]


def skipped(root, **options):
    _, passed_over = scan(Source("s", str(root), **options))
    return {item.path: item.reason for item in passed_over}


def state(root):
    """Every name below `root` with what a write would change."""
    return {
        os.path.join(folder, name): (
            (status := os.lstat(os.path.join(folder, name))).st_mtime_ns,
            status.st_ctime_ns,
            status.st_size,
            status.st_mode,
        )
        for folder, folders, names in os.walk(root)
        for name in [".", *folders, *names]
    }


def test_files_are_listed_by_path(root):
    write(root, "b.md", "a.md", "a/z.md", "a/b/c.md", "Z.md", "a-b.md")
    assert paths(root) == ["Z.md", "a-b.md", "a.md", "a/b/c.md", "a/z.md", "b.md"]
    assert skipped(root) == {}


def test_a_file_is_told_by_path_place_time_and_size(root):
    write(root, "日记/笔记 📌.md", text="汉字")
    file = root / "日记" / "笔记 📌.md"
    os.utime(file, ns=(1, 1_700_000_000_123_456_700))
    [found], _ = scan(Source("s", str(root)))
    assert found.path == "日记/笔记 📌.md"
    assert os.path.samefile(found.full, file)
    assert found.mtime_ns == os.stat(file).st_mtime_ns
    assert found.size == 6


def test_only_markdown_names(root):
    write(root, "a.md", "b.MD", "c.Markdown", "d.mdown", "e.mkd")
    write(root, "f.txt", "g.md.bak", "md", "h.mdx", "i.markdown2", "folder.md/j.txt")
    assert paths(root) == ["a.md", "b.MD", "c.Markdown", "d.mdown", "e.mkd"]
    assert skipped(root) == {}


def test_a_folder_may_be_called_like_a_file(root):
    write(root, "folder.md/a.md")
    assert paths(root) == ["folder.md/a.md"]


def test_hidden_names_and_node_modules_are_left_out_without_a_word(root):
    write(root, ".a.md", ".git/b.md", ".obsidian/c.md", "d/.e/f.md")
    write(root, "node_modules/g.md", "d/node_modules/h/i.md", "d/j.md")
    assert paths(root) == ["d/j.md"]
    assert skipped(root) == {}


def test_a_hidden_or_module_folder_may_be_the_root(tmp_path):
    for name in (".hidden", "node_modules"):
        write(tmp_path / name, "a.md")
        assert paths(tmp_path / name) == ["a.md"]


def test_an_empty_folder(root):
    assert scan(Source("s", str(root))) == ([], [])


def test_deep_folders_need_no_recursion(root):
    write(root, "d/" * 200 + "a.md")
    frame, depth = sys._getframe(), 0
    while frame:
        frame, depth = frame.f_back, depth + 1
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(depth + 100)
    try:
        assert paths(root) == ["d/" * 200 + "a.md"]
    finally:
        sys.setrecursionlimit(limit)


# --- exclude -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("exclude", "left"),
    [
        (("drafts/",), ["a.md", "a.tmp.md", "x/b.md"]),
        (("/drafts",), ["a.md", "a.tmp.md", "x/b.md", "x/drafts/c.md"]),
        (("*.tmp.md",), ["a.md", "drafts/d.md", "x/b.md", "x/drafts/c.md"]),
        (("*.md", "!a.md"), ["a.md"]),
        (("x/**", "!x/b.md"), ["a.md", "a.tmp.md", "drafts/d.md", "x/b.md"]),
        (("x/**", "!x/drafts/c.md"), ["a.md", "a.tmp.md", "drafts/d.md"]),
        (("x/", "!x/b.md"), ["a.md", "a.tmp.md", "drafts/d.md"]),
        (("# a comment", "", "a.md"), ["a.tmp.md", "drafts/d.md", "x/b.md", "x/drafts/c.md"]),
        (("*",), []),
    ],
)
def test_exclude_patterns_are_those_of_gitignore(root, exclude, left):
    write(root, "a.md", "a.tmp.md", "drafts/d.md", "x/b.md", "x/drafts/c.md")
    assert paths(root, exclude=exclude) == left
    assert skipped(root, exclude=exclude) == {}


def test_an_excluded_folder_is_not_even_opened(root, monkeypatch):
    write(root, "a.md", "drafts/deep/d.md")
    opened = []
    real = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: opened.append(path) or real(path))
    assert paths(root, exclude=("drafts/",)) == ["a.md"]
    assert [os.path.basename(path) for path in opened] == ["root"]


def test_patterns_match_names_in_any_unicode_form(root):
    write(root, f"{NFD}/a.md", "b.md")
    assert paths(root, exclude=(NFC + "/",)) == ["b.md"]
    assert paths(root, exclude=(NFD + "/",)) == ["b.md"]


def test_a_pattern_that_is_none_is_a_fault(root):
    with pytest.raises(MemoryFault, match=r"source s: exclude pattern '!' is not valid"):
        scan(Source("s", str(root), exclude=("fine", "!")))
    with pytest.raises(MemoryFault, match=r"\[z-a\]"):
        scan(Source("s", str(root), exclude=("[z-a]",)))


def test_pathspec_is_imported_only_for_patterns(root):
    import subprocess

    code = (
        "import sys; from datasette_memory.vault.sources import Source, scan;"
        f"scan(Source('s', {str(root)!r})); assert 'pathspec' not in sys.modules;"
        f"scan(Source('s', {str(root)!r}, ('x',))); assert 'pathspec' in sys.modules"
    )
    here = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", code], check=True, cwd=here)


# --- size ----------------------------------------------------------------------------------


def test_large_files_are_told(root):
    write(root, "fits.md", text="x" * 100)
    write(root, "large.md", text="x" * 101)
    assert paths(root, max_bytes=100) == ["fits.md"]
    assert skipped(root, max_bytes=100) == {"large.md": "larger than 100 bytes (101 bytes)"}


def test_the_limit_is_two_mebibytes(root):
    write(root, "large.md", text="x" * (2 * 1024 * 1024 + 1))
    write(root, "fits.md", text="x" * (2 * 1024 * 1024))
    assert paths(root) == ["fits.md"]
    assert skipped(root) == {"large.md": "larger than 2 MiB (2 MiB)"}


# --- names ---------------------------------------------------------------------------------


@posix
def test_paths_are_nfc_whatever_the_disk_says(root):
    write(root, f"{NFD}/{NFD}.md", "plain/a.md")
    files, passed_over = scan(Source("s", str(root)))
    assert [file.path for file in files] == [f"{NFC}/{NFC}.md", "plain/a.md"]
    assert read(files[0], Source("s", str(root))) == b"x"
    assert passed_over == []


@posix
@pytest.mark.skipif(sys.platform == "darwin", reason="the disk takes both names for one")
def test_two_names_that_are_one_in_nfc(root):
    write(root, f"{NFC}.md", f"{NFD}.md", f"{NFC}/a.md", f"{NFD}/a.md", f"{NFD}/b.md")
    # The Kelvin sign is K in NFC.
    write(root, "\u212a.md", "K.md")
    files, passed_over = scan(Source("s", str(root)))
    assert [file.path for file in files] == ["K.md", f"{NFC}.md", f"{NFC}/a.md", f"{NFC}/b.md"]
    assert [item.path for item in passed_over] == ["K.md", f"{NFC}.md", f"{NFC}/a.md"]
    assert {item.reason for item in passed_over} == {
        "another file has the same name in Unicode's NFC form"
    }


@pytest.mark.skipif(sys.platform != "linux", reason="such names exist on Linux only")
def test_names_that_are_not_utf8_are_told(root):
    base = os.fsencode(root)
    os.mkdir(base + b"/caf\xe9")
    for name in (b"/na\xefve.md", b"/na\xefve.txt", b"/caf\xe9/a.md", b"/good.md"):
        with open(base + name, "wb") as file:
            file.write(b"x")
    assert paths(root) == ["good.md"]
    assert skipped(root) == {
        "caf\\udce9": "name is not valid UTF-8",
        "na\\udcefve.md": "name is not valid UTF-8",
    }


# --- links ---------------------------------------------------------------------------------


@posix
def test_links_are_followed_inside_the_source_only(root, tmp_path):
    write(tmp_path / "outside", "secret.md")
    write(root, "a.md", "sub/b.md")
    (root / "in.md").symlink_to("a.md")
    (root / "out.md").symlink_to(tmp_path / "outside" / "secret.md")
    write(root, ".drafts/c.md")
    (root / "in").symlink_to(".drafts")
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "up").symlink_to("..")
    (root / "lost.md").symlink_to("nowhere.md")
    (root / "lost").symlink_to("nowhere")
    files, passed_over = scan(Source("s", str(root)))
    assert [file.path for file in files] == ["a.md", "in.md", "in/c.md", "sub/b.md"]
    assert {item.path: item.reason for item in passed_over} == {
        "out.md": "link leads out of the source",
        "out": "link leads out of the source",
        "up": "link leads out of the source",
        "lost.md": "link leads nowhere: no such file or directory",
    }
    by_path = {file.path: file for file in files}
    real = os.path.realpath(root)
    assert by_path["in.md"].full == os.path.join(real, "a.md")
    assert by_path["in/c.md"].full == os.path.join(real, ".drafts", "c.md")


@posix
def test_a_folder_is_read_once(root):
    write(root, "sub/b.md", "sub/deep/c.md", ".hidden/d.md", ".hidden/deep/e.md", "drafts/f.md")
    # By its own path, whatever stands before that in the alphabet.
    (root / "a").symlink_to("sub")
    (root / "z").symlink_to("sub/deep")
    # By the first link where its own path is left out, and no part of it again.
    (root / "m-2").symlink_to(".hidden")
    (root / "m-1").symlink_to(".hidden")
    (root / "m-0").symlink_to(".hidden/deep")
    (root / "n").symlink_to("drafts")
    assert paths(root, exclude=("/drafts/",)) == [
        "m-0/e.md", "m-1/d.md", "n/f.md", "sub/b.md", "sub/deep/c.md",
    ]  # fmt: skip
    assert skipped(root, exclude=("/drafts/",)) == {
        "a": "folder that is indexed as sub",
        "z": "folder that is indexed as sub/deep",
        "m-1/deep": "folder that is indexed as m-0",
        "m-2": "folder that is indexed as m-1",
    }


@posix
def test_a_folder_beside_with_a_longer_name_is_outside(root, tmp_path):
    write(tmp_path / "root-2", "a.md")
    (root / "b.md").symlink_to(tmp_path / "root-2" / "a.md")
    assert paths(root) == []
    assert skipped(root) == {"b.md": "link leads out of the source"}


@posix
def test_a_link_in_two_steps_counts_by_where_it_ends(root, tmp_path):
    write(tmp_path, "outside.md")
    write(root, "a.md")
    (tmp_path / "back.md").symlink_to(root / "a.md")
    (root / "through.md").symlink_to(tmp_path / "back.md")
    (root / ".step.md").symlink_to(tmp_path / "outside.md")
    (root / "two.md").symlink_to(".step.md")
    assert paths(root) == ["a.md", "through.md"]
    assert skipped(root) == {"two.md": "link leads out of the source"}


@posix
def test_a_link_is_judged_by_its_own_name_and_leads_to_hidden_places(root):
    write(root, ".hidden/a.md", "text.txt", "b.md")
    (root / "shown").symlink_to(".hidden")
    (root / ".dot.md").symlink_to("b.md")
    (root / "c.md").symlink_to("text.txt")
    (root / "d.txt").symlink_to("b.md")
    (root / "node_modules").symlink_to(".hidden")
    assert paths(root) == ["b.md", "c.md", "shown/a.md"]
    assert skipped(root) == {}


@posix
def test_cycles_end(root):
    write(root, "a/x.md", "b/y.md")
    (root / "a" / "self").symlink_to(".")
    (root / "a" / "top").symlink_to("..")
    (root / "a" / "other").symlink_to("../b")
    (root / "b" / "other").symlink_to("../a")
    (root / "loop.md").symlink_to("loop.md")
    files, passed_over = scan(Source("s", str(root)))
    assert [file.path for file in files] == ["a/x.md", "b/y.md"]
    reasons = {item.path: item.reason for item in passed_over}
    assert reasons.pop("loop.md").startswith("link leads nowhere")
    assert reasons == {
        "a/self": "folder that is indexed as a",
        "a/top": "folder that is indexed as .",
        "a/other": "folder that is indexed as b",
        "b/other": "folder that is indexed as a",
    }


@posix
def test_folders_that_link_to_each_other_do_not_multiply(root):
    names = [f"f{number}" for number in range(12)]
    for name in names:
        write(root, f"{name}/{name}.md")
        for other in names:
            if other != name:
                (root / name / other).symlink_to(f"../{other}")
    files, _ = scan(Source("s", str(root)))
    assert {f"{name}/{name}.md" for name in names} == {file.path for file in files}
    assert len(files) == len(names)


@posix
def test_links_may_be_excluded(root):
    write(root, "a/b.md")
    (root / "link").symlink_to("a")
    assert paths(root, exclude=("link",)) == ["a/b.md"]
    assert paths(root, exclude=("link/",)) == ["a/b.md"]
    assert paths(root, exclude=("link/b.md",)) == ["a/b.md"]


@posix
def test_the_root_may_be_a_link(root, tmp_path):
    write(root, "a.md", "b/c.md")
    (root / "in").symlink_to("b")
    (tmp_path / "alias").symlink_to(root)
    (root / "in.md").symlink_to("a.md")
    assert paths(tmp_path / "alias") == ["a.md", "b/c.md", "in.md"]


# --- what is no file -----------------------------------------------------------------------


@posix
def test_pipes_and_sockets_are_told_and_never_opened(root):
    import socket

    write(root, "a.md")
    os.mkfifo(root / "pipe.md")
    os.mkfifo(root / "pipe.txt")
    (root / "link.md").symlink_to("pipe.md")
    server = socket.socket(socket.AF_UNIX)
    here = os.getcwd()
    try:
        os.chdir(root)  # a socket's address is short
        server.bind("socket.md")
    finally:
        os.chdir(here)
        server.close()
    assert paths(root) == ["a.md"]
    assert skipped(root) == {
        "pipe.md": "not a regular file",
        "link.md": "not a regular file",
        "socket.md": "not a regular file",
    }


def failing_scandir(monkeypatch, name):
    """Let the folder called `name` be unreadable, also for the superuser."""
    real = os.scandir

    def scandir(path):
        if os.path.basename(path) == name:
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)


def test_a_folder_that_cannot_be_read_is_told(root, monkeypatch):
    write(root, "a.md", "shut/b.md", "z/c.md")
    failing_scandir(monkeypatch, "shut")
    assert paths(root) == ["a.md", "z/c.md"]
    assert skipped(root) == {"shut": "folder cannot be read: permission denied"}


# --- the root ------------------------------------------------------------------------------


def test_one_file_is_a_source(root):
    write(root, "one note.MD", "other.md", text="four")
    [file], passed_over = scan(Source("s", str(root / "one note.MD")))
    assert (file.path, file.size, passed_over) == ("one note.MD", 4, [])
    assert read(file, Source("s", str(root))) == b"four"


def test_one_file_beyond_the_limit(root):
    write(root, "a.md", text="four")
    assert scan(Source("s", str(root / "a.md"), max_bytes=3)) == (
        [],
        [Skipped("a.md", "larger than 3 bytes (4 bytes)")],
    )


@posix
def test_one_pipe_is_told(root):
    os.mkfifo(root / "pipe.md")
    assert scan(Source("s", str(root / "pipe.md"))) == (
        [],
        [Skipped("pipe.md", "not a regular file")],
    )


def test_a_root_that_is_missing_or_no_markdown(root, monkeypatch):
    with pytest.raises(MemoryFault, match=r"^source s: .*gone does not exist$") as fault:
        scan(Source("s", str(root / "gone")))
    assert fault.value.hint
    write(root, "a.txt")
    with pytest.raises(MemoryFault, match=r"neither a folder nor a Markdown file$"):
        scan(Source("s", str(root / "a.txt")))
    with pytest.raises(MemoryFault, match=r"a\.txt/b.* cannot be read|does not exist"):
        scan(Source("s", str(root / "a.txt" / "b")))
    failing_scandir(monkeypatch, "root")
    with pytest.raises(MemoryFault, match=r"cannot be read: permission denied$"):
        scan(Source("s", str(root)))


# --- read ----------------------------------------------------------------------------------


def test_bytes_are_read_as_they_are(root):
    data = bytes(range(256)) * 1000 + b"\r\n\x1a"
    (root / "a.md").write_bytes(data)
    source = Source("s", str(root))
    [file], _ = scan(source)
    assert read(file, source) == data
    (root / "a.md").write_bytes(b"")
    [empty], _ = scan(source)
    assert read(empty, source) == read(file, source) == b""


def test_a_file_that_changed_since_the_scan(root):
    write(root, "a.md", text="short")
    source = Source("s", str(root), max_bytes=100_000)
    [file], _ = scan(source)
    write(root, "a.md", text="y" * 100_000)
    assert read(file, source) == b"y" * 100_000
    write(root, "a.md", text="y" * 100_001)
    with pytest.raises(OSError, match="larger than"):
        read(file, source)
    os.remove(root / "a.md")
    with pytest.raises(FileNotFoundError):
        read(file, source)


@posix
def test_what_took_the_place_of_a_file_is_not_read(root, tmp_path):
    write(tmp_path, "outside.md", text="secret")
    write(root, "a.md", "b.md", "c.md")
    source = Source("s", str(root))
    files, _ = scan(source)
    for file in files:
        os.remove(file.full)
    os.mkfifo(root / "a.md")
    (root / "b.md").symlink_to(tmp_path / "outside.md")
    (root / "c.md").mkdir()
    for file in files:
        with pytest.raises(OSError):
            read(file, source)


def test_a_source_is_never_written_to(root):
    write(root, "a.md", "b/c.md", f"{NFD}.md", text="---\ntitle: A\n---\nBody")
    before = state(root)
    source = Source("s", str(root), exclude=("x",))
    files, _ = scan(source)
    for file in files:
        read(file, source)
    assert state(root) == before


def test_the_values_are_plain_and_cannot_be_changed():
    file = FileStat("a", "/a", 1, 2)
    assert replace(file, size=3) == FileStat("a", "/a", 1, 3)
    with pytest.raises(AttributeError):
        file.size = 4
