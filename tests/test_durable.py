import errno
import importlib.util
import itertools
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasette_memory import durable
from datasette_memory.durable import append_line, make_folder, move, remove, sweep, write_whole

ROOT = Path(__file__).parents[1]
OLD, NEW = b"old " * 3000, b"new " * 5000

posix = pytest.mark.skipif(os.name == "nt", reason="needs POSIX files")


def _load(name):
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


faults = _load("faults")


def tree(folder):
    """Every file below the folder and its bytes; a folder ends in a slash."""
    return {
        path.relative_to(folder).as_posix() + "/" * path.is_dir(): path.is_file()
        and path.read_bytes()
        for path in sorted(folder.rglob("*"))
    }


def python(code, *arguments, **options):
    """Run code in a process of its own that imports nothing but what it names."""
    return subprocess.run(
        [sys.executable, "-S", "-c", code, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "tests")))},
        capture_output=True,
        text=True,
        timeout=60,
        **options,
    )


# What a write leaves


def test_a_new_file_and_its_folders_are_made(tmp_path):
    write_whole(tmp_path / "a" / "b" / "卡片.md", b"x\r\n\x00")
    assert tree(tmp_path) == {"a/": False, "a/b/": False, "a/b/卡片.md": b"x\r\n\x00"}


def test_a_file_is_replaced_whole(tmp_path):
    for data in (OLD, NEW, b""):
        write_whole(tmp_path / "a.md", data)
        assert tree(tmp_path) == {"a.md": data}


def test_a_path_may_be_relative(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_whole(Path("a"), b"1")
    write_whole("b", b"2", exclusive=True)
    append_line("c", b"3")
    move("b", "d")
    remove("a")
    assert tree(tmp_path) == {"c": b"3\n", "d": b"2"}


def test_exclusive_takes_no_name_that_is_taken(tmp_path):
    write_whole(tmp_path / "a.md", OLD, exclusive=True)
    (tmp_path / "folder").mkdir()
    for name in ("a.md", "folder"):
        with pytest.raises(FileExistsError) as caught:
            write_whole(tmp_path / name, NEW, exclusive=True)
        assert caught.value.filename == str(tmp_path / name)
        assert caught.value.filename2 is None
    assert tree(tmp_path) == {"a.md": OLD, "folder/": False}


@posix
def test_exclusive_takes_no_name_of_a_link_to_nothing(tmp_path):
    (tmp_path / "a.md").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError):
        write_whole(tmp_path / "a.md", NEW, exclusive=True)
    assert os.listdir(tmp_path) == ["a.md"]


def test_of_eight_that_want_one_name_one_gets_it(tmp_path):
    code = """if True:
        import sys
        from datasette_memory.durable import write_whole
        sys.stdin.readline()
        try:
            write_whole(sys.argv[1], sys.argv[2].encode() * 1000, exclusive=True)
        except FileExistsError:
            print("taken")
    """
    writers = [
        subprocess.Popen(
            [sys.executable, "-S", "-c", code, str(tmp_path / "card.md"), str(number)],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(8)
    ]
    for writer in writers:
        writer.stdin.write("go\n")
        writer.stdin.flush()
    answers = [writer.communicate(timeout=60)[0] for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * 8
    assert sorted(answers) == [""] + ["taken\n"] * 7
    assert tree(tmp_path) == {"card.md": str(answers.index("")).encode() * 1000}


@posix
def test_permissions_stay(tmp_path):
    write_whole(tmp_path / "a", OLD)
    for mode in (0o600, 0o640, 0o666, 0o777):
        (tmp_path / "a").chmod(mode)
        write_whole(tmp_path / "a", NEW)
        assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == mode
    (tmp_path / "plain").touch()
    write_whole(tmp_path / "b", OLD)
    assert (tmp_path / "b").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_read_only_file_is_not_replaced(tmp_path):
    write_whole(tmp_path / "a", OLD)
    (tmp_path / "a").chmod(0o444)
    with pytest.raises(PermissionError, match="read-only"):
        write_whole(tmp_path / "a", NEW)
    assert tree(tmp_path) == {"a": OLD}
    (tmp_path / "a").chmod(0o644)


@posix
def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "kept").mkdir()
    write_whole(tmp_path / "kept" / "real", OLD)
    (tmp_path / "a").symlink_to("kept/real")
    write_whole(tmp_path / "a", NEW)
    assert (tmp_path / "a").is_symlink()
    assert (tmp_path / "kept" / "real").read_bytes() == NEW
    assert os.listdir(tmp_path / "kept") == ["real"]


@posix
def test_what_is_no_file_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="not a regular file"):
        write_whole(tmp_path / "pipe", NEW)
    with pytest.raises(IsADirectoryError):
        write_whole(tmp_path / "folder", NEW)
    assert sorted(os.listdir(tmp_path)) == ["folder", "pipe"]


def test_a_file_where_a_folder_should_be(tmp_path):
    write_whole(tmp_path / "a", OLD)
    for write in (
        lambda: make_folder(tmp_path / "a"),
        lambda: write_whole(tmp_path / "a" / "b" / "c", NEW, exclusive=True),
        lambda: append_line(tmp_path / "a" / "b", b"x"),
    ):
        with pytest.raises(NotADirectoryError):
            write()
    assert tree(tmp_path) == {"a": OLD}


@posix
def test_without_hard_links_a_name_is_still_not_taken_twice(tmp_path, monkeypatch):
    def link(*_):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(durable.system, "link", link)
    write_whole(tmp_path / "a", OLD, exclusive=True)
    with pytest.raises(FileExistsError):
        write_whole(tmp_path / "a", NEW, exclusive=True)
    assert tree(tmp_path) == {"a": OLD}


@posix
@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP])
def test_a_file_system_that_cannot_sync_folders_will_do(tmp_path, monkeypatch, number):
    real = os.fsync

    def fsync(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(number, os.strerror(number))
        real(descriptor)

    monkeypatch.setattr(durable.system, "fsync", fsync)
    write_whole(tmp_path / "a" / "b", NEW)
    assert tree(tmp_path) == {"a/": False, "a/b": NEW}


@given(old=st.binary(max_size=300), new=st.binary(max_size=300))
def test_what_is_written_is_what_is_there(tmp_path_factory, old, new):
    path = tmp_path_factory.mktemp("any") / "file"
    write_whole(path, old, exclusive=True)
    assert path.read_bytes() == old
    write_whole(path, new)
    assert path.read_bytes() == new


def test_the_order_is_write_sync_name_sync(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(durable, "system", faults.armed(durable.system, None, 0, calls))
    write_whole(tmp_path / "a", NEW, exclusive=True)
    naming = ["rename"] if os.name == "nt" else ["link", "unlink", "fsync"]
    assert calls == ["open", "write", "fsync", *naming]
    calls.clear()
    write_whole(tmp_path / "a", OLD)
    naming = ["replace"] if os.name == "nt" else ["replace", "fsync"]
    assert [name for name in calls if name != "chmod"] == ["open", "write", "fsync", *naming]


def test_nothing_but_the_standard_library_is_imported():
    code = """if True:
        import sys
        before = set(sys.modules)
        import datasette_memory.durable
        new = {name.partition(".")[0] for name in set(sys.modules) - before}
        print(sorted(new - set(sys.stdlib_module_names)))
    """
    assert python(code).stdout == "['datasette_memory']\n"


# Lines


def test_lines_are_added(tmp_path):
    path = tmp_path / "ledger" / "a.jsonl"
    append_line(path, b"1")
    append_line(path, "二".encode(), sync=False)
    append_line(path, b"")
    assert path.read_bytes() == "1\n二\n\n".encode()


def test_a_torn_line_is_ended_first(tmp_path):
    (tmp_path / "a").write_bytes(b'{"whole": 1}\n{"to')
    append_line(tmp_path / "a", b'{"new": 1}')
    assert (tmp_path / "a").read_bytes() == b'{"whole": 1}\n{"to\n{"new": 1}\n'


def test_a_line_holds_no_line_end(tmp_path):
    with pytest.raises(ValueError, match="line end"):
        append_line(tmp_path / "a", b"1\n2")
    assert tree(tmp_path) == {}


@posix
def test_a_lock_that_is_never_given_back_stops_nobody(tmp_path, monkeypatch):
    import fcntl

    monkeypatch.setattr(durable, "_LOCK_PATIENCE", 0.05)
    append_line(tmp_path / "a", b"1")
    with open(tmp_path / "a", "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        append_line(tmp_path / "a", b"2")
    assert (tmp_path / "a").read_bytes() == b"1\n2\n"


# Removing and moving


def test_a_file_is_removed(tmp_path):
    write_whole(tmp_path / "a", OLD)
    remove(tmp_path / "a")
    assert tree(tmp_path) == {}
    with pytest.raises(FileNotFoundError):
        remove(tmp_path / "a")


def test_a_file_is_moved_to_a_folder_that_is_made(tmp_path):
    write_whole(tmp_path / "a", OLD)
    move(tmp_path / "a", tmp_path / ".trash" / "b" / "a")
    assert tree(tmp_path) == {".trash/": False, ".trash/b/": False, ".trash/b/a": OLD}


def test_a_move_takes_no_name_that_is_taken(tmp_path):
    write_whole(tmp_path / "a", OLD)
    write_whole(tmp_path / "b", NEW)
    with pytest.raises(FileExistsError):
        move(tmp_path / "a", tmp_path / "b")
    with pytest.raises(FileNotFoundError):
        move(tmp_path / "missing", tmp_path / "c")
    with pytest.raises(FileNotFoundError):
        move(tmp_path / "missing", tmp_path / "b")
    assert tree(tmp_path) == {"a": OLD, "b": NEW}


@posix
def test_a_move_takes_no_name_of_a_link(tmp_path):
    write_whole(tmp_path / "a", OLD)
    for name, goal in (("to_a", "a"), ("to_nothing", "nothing")):
        (tmp_path / name).symlink_to(goal)
        with pytest.raises(FileExistsError):
            move(tmp_path / "a", tmp_path / name)
    assert sorted(os.listdir(tmp_path)) == ["a", "to_a", "to_nothing"]


def test_a_name_may_change_in_case_alone(tmp_path):
    write_whole(tmp_path / "a.md", OLD)
    move(tmp_path / "a.md", tmp_path / "A.md")
    assert os.listdir(tmp_path) == ["A.md"]


# What the dead leave


def _of_a_dead_process(folder, name=None):
    """A temporary file as a process leaves it that is killed while it writes."""
    code = """if True:
        import sys, faults
        from datasette_memory import durable
        durable.system = faults.armed(durable.system, 2, faults.HALFWAY)
        durable.write_whole(sys.argv[1], b"x" * 100)
    """
    python(code, folder / "never")
    [left] = [path for path in folder.iterdir() if path.name.startswith(durable.TEMPORARY)]
    return left


@posix
def test_what_the_dead_left_is_swept_at_once(tmp_path):
    left = _of_a_dead_process(tmp_path)
    assert left.read_bytes() == b"x" * 50
    write_whole(tmp_path / "a", OLD)
    assert sweep(tmp_path) == 1
    assert tree(tmp_path) == {"a": OLD}
    assert sweep(tmp_path) == 0


def test_what_the_living_write_is_left_alone(tmp_path):
    mine = tmp_path / durable.temporary_name()
    mine.touch()
    assert sweep(tmp_path) == 0
    assert mine.exists()
    os.utime(mine, (time.time() - 2 * durable.OLD,) * 2)
    assert sweep(tmp_path) == 1


@pytest.mark.parametrize("hours", [-2, 2])
def test_what_another_machine_left_goes_by_its_age(tmp_path, hours):
    foreign = tmp_path / ".tmp-00000000-1-abcd"
    for path in (foreign, tmp_path / ".tmp-", tmp_path / ".tmp-你好"):
        path.touch()
    assert sweep(tmp_path) == 0
    os.utime(foreign, (time.time() + hours * 3600,) * 2)
    assert sweep(tmp_path) == 1
    assert not foreign.exists()
    assert sweep(tmp_path, -1) == 2


def test_a_sweep_goes_deep_when_asked(tmp_path):
    for folder in (tmp_path, tmp_path / "a", tmp_path / "a" / "b"):
        folder.mkdir(exist_ok=True)
        (folder / ".tmp-old").touch()
        os.utime(folder / ".tmp-old", (0, 0))
    (tmp_path / "a" / ".tmp-folder").mkdir()
    (tmp_path / "a" / "card.tmp-1").touch()
    assert sweep(tmp_path) == 1
    assert sweep(tmp_path, deep=True) == 2
    assert list(tree(tmp_path)) == ["a/", "a/.tmp-folder/", "a/b/", "a/card.tmp-1"]
    assert sweep(tmp_path / "missing") == 0


# Faults


def _folder_of_its_own(folder):
    (folder / "there").mkdir()
    (folder / "there" / "file").write_bytes(OLD)
    (folder / "there" / "torn").write_bytes(b"1\n{to")


OPERATIONS = {
    "new": lambda d, at: d.write_whole(at / "there" / "new", NEW),
    "new in a new folder": lambda d, at: d.write_whole(at / "a" / "b" / "new", NEW),
    "exclusive": lambda d, at: d.write_whole(at / "there" / "new", NEW, exclusive=True),
    "replace": lambda d, at: d.write_whole(at / "there" / "file", NEW),
    "first line": lambda d, at: d.append_line(at / "there" / "lines", NEW),
    "line after a torn one": lambda d, at: d.append_line(at / "there" / "torn", NEW),
    "move": lambda d, at: d.move(at / "there" / "file", at / "a" / "moved"),
    "remove": lambda d, at: d.remove(at / "there" / "file"),
}
"""Each changes a folder of _folder_of_its_own in the way that OUTCOMES has."""

WHOLE = {"there/file": OLD, "there/torn": b"1\n{to"}
OUTCOMES = {
    "new": {**WHOLE, "there/new": NEW},
    "new in a new folder": {**WHOLE, "a/b/new": NEW},
    "exclusive": {**WHOLE, "there/new": NEW},
    "replace": {**WHOLE, "there/file": NEW},
    "first line": {**WHOLE, "there/lines": NEW + b"\n"},
    "line after a torn one": {**WHOLE, "there/torn": b"1\n{to\n" + NEW + b"\n"},
    "move": {"there/torn": b"1\n{to", "a/moved": OLD},
    "remove": {"there/torn": b"1\n{to"},
}


CHANGED = {
    "new": "there/new",
    "exclusive": "there/new",
    "replace": "there/file",
    "first line": "there/lines",
    "line after a torn one": "there/torn",
}


def files(folder):
    return {name: data for name, data in tree(folder).items() if not name.endswith("/")}


def calls_of(name, folder):
    """The names of the calls that the operation makes."""
    folder.mkdir()
    _folder_of_its_own(folder)
    calls = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(durable, "system", faults.armed(durable.system, None, 0, calls))
        OPERATIONS[name](durable, folder)
    assert files(folder) == OUTCOMES[name]
    return calls


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS])
@pytest.mark.parametrize("name", OPERATIONS)
def test_an_error_at_any_call_loses_nothing_and_leaves_nothing(tmp_path, name, number):
    for at in range(1, len(calls_of(name, tmp_path / "dry")) + 1):
        folder = tmp_path / str(at)
        folder.mkdir()
        _folder_of_its_own(folder)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(durable, "system", faults.armed(durable.system, at, number))
            with pytest.raises(OSError) as caught:
                OPERATIONS[name](durable, folder)
        assert caught.value.errno == number
        if name in CHANGED:
            assert caught.value.filename == str(folder / CHANGED[name])
            assert str(caught.value).count(os.sep + "there" + os.sep) == 1
            assert "None" not in str(caught.value)
        left = files(folder)
        if left.get("there/lines") == b"":
            del left["there/lines"]
        assert left in (WHOLE, OUTCOMES[name]), at


def _killed(name, folder, at, how):
    """Run the operation in a process that is killed at that call."""
    pid = os.fork()
    if not pid:
        try:
            durable.system = faults.armed(durable.system, at, how)
            OPERATIONS[name](durable, folder)
        finally:
            os._exit(1)
    _, status = os.waitpid(pid, 0)
    return os.WIFSIGNALED(status)


@posix
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_kill_at_any_call_leaves_old_or_new(tmp_path, name):
    calls = calls_of(name, tmp_path / "dry")
    moments = (faults.BEFORE, faults.HALFWAY, faults.AFTER)
    for at, how in itertools.product(range(1, len(calls) + 1), moments):
        folder = tmp_path / f"{at}-{how}"
        folder.mkdir()
        _folder_of_its_own(folder)
        assert _killed(name, folder, at, how)
        sweep(folder, deep=True)
        left = files(folder)
        if "line" in name:
            _check_lines(name, left, folder)
        else:
            assert left in (WHOLE, OUTCOMES[name]), (at, how)


def _check_lines(name, left, folder):
    """A line may be torn; what stood before it stands, and the next line is whole."""
    path = "there/lines" if name == "first line" else "there/torn"
    before = WHOLE.get(path, b"")
    assert left.get(path, b"").startswith(before)
    assert OUTCOMES[name][path].startswith(left.get(path, b""))
    append_line(folder / path, b"next")
    lines = (folder / path).read_bytes().split(b"\n")
    assert lines[-2:] == [b"next", b""]
    assert {**left, path: 0} == {**WHOLE, path: 0}


LIMITED = """if True:
    import errno, resource, sys
    from datasette_memory import durable
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
    try:
        getattr(durable, sys.argv[1])(sys.argv[2], b"x" * int(sys.argv[3]))
    except OSError as error:
        print(errno.errorcode[error.errno])
"""


@posix
def test_no_file_may_grow_so_large(tmp_path):
    write_whole(tmp_path / "a", OLD)
    assert python(LIMITED, "write_whole", tmp_path / "a", 20_000).stdout == "EFBIG\n"
    assert tree(tmp_path) == {"a": OLD}


@posix
def test_a_line_that_fits_in_part_is_taken_back(tmp_path):
    (tmp_path / "a").write_bytes(b"y" * 9_989 + b"\n")
    assert python(LIMITED, "append_line", tmp_path / "a", 500).stdout == "EFBIG\n"
    assert (tmp_path / "a").stat().st_size == 9_990
    assert python(LIMITED, "append_line", tmp_path / "a", 9).stdout == ""
    assert (tmp_path / "a").read_bytes()[-11:] == b"\nxxxxxxxxx\n"


# Several waits at once


class Slow:
    """An fsync that takes its time, and notes when it begins and ends."""

    def __init__(self, monkeypatch, error=None):
        self.log, self.error = [], error
        monkeypatch.setattr(durable.system, "fsync", self.fsync)

    def fsync(self, descriptor):
        kind = "folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file"
        self.log.append(f"{kind} begins")
        time.sleep(0.05)
        self.log.append(f"{kind} ends")
        if self.error and kind == "folder":
            raise OSError(self.error, os.strerror(self.error))


@posix
def test_waits_go_on_side_by_side_and_are_over_at_the_end(tmp_path, monkeypatch):
    (tmp_path / "ledger").write_bytes(b"{}\n")
    slow = Slow(monkeypatch)
    with durable.side_by_side():
        write_whole(tmp_path / "a.md", NEW)
        # A file is on disk before it has its name.
        assert slow.log[:2] == ["file begins", "file ends"]
        append_line(tmp_path / "ledger", b"{}")
        assert (tmp_path / "ledger").read_bytes() == b"{}\n{}\n"
        with durable.side_by_side():
            slow.log.append("work")
    assert slow.log.index("work") < slow.log.index("folder ends")
    assert sorted(slow.log[2:]) == [
        "file begins", "file ends", "folder begins", "folder ends", "work",
    ]  # fmt: skip
    assert tree(tmp_path) == {"a.md": NEW, "ledger": b"{}\n{}\n"}
    # By itself, a write waits for itself.
    slow.log.clear()
    write_whole(tmp_path / "b.md", NEW)
    assert slow.log == ["file begins", "file ends", "folder begins", "folder ends"]


@posix
def test_a_wait_that_fails_is_told_at_the_end(tmp_path, monkeypatch):
    Slow(monkeypatch, errno.EIO)
    done = []
    with pytest.raises(OSError) as caught, durable.side_by_side():
        write_whole(tmp_path / "a.md", NEW)
        done.append("work")
    assert (caught.value.errno, done) == (errno.EIO, ["work"])
    # Of two errors the one that came first is told.
    with pytest.raises(ZeroDivisionError), durable.side_by_side():
        write_whole(tmp_path / "b.md", NEW)
        done.append(1 / 0)


@posix
def test_no_file_stays_open(tmp_path):
    before = os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else []
    for number in range(20):
        with durable.side_by_side():
            write_whole(tmp_path / f"{number}.md", NEW)
            append_line(tmp_path / "ledger", b"{}")
    after = os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else []
    assert len(after) == len(before)
