"""Writes that a crash, a full disk or a kill leaves whole: the old bytes or the new ones.

Every call by which this project changes a file or a folder, SQLite's apart, goes through `system`,
so that one place can be made to fail. Errors are the operating system's own (`OSError`); what to
tell the user is the caller's to say.
"""

import _thread
import contextlib
import errno
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from zlib import crc32

if os.name == "nt":
    import msvcrt
else:
    import fcntl

#: The calls that change a disk. A test replaces one to see what is left when it fails.
system = SimpleNamespace(
    open=os.open,
    write=os.write,
    truncate=os.ftruncate,
    chmod=getattr(os, "fchmod", None),
    fsync=os.fsync,
    replace=os.replace,
    rename=os.rename,
    link=getattr(os, "link", None),
    unlink=os.unlink,
    mkdir=os.mkdir,
    rmdir=os.rmdir,
)

TEMPORARY = ".tmp-"
"""How the name of an unfinished file starts; whoever lists a folder passes it over."""

OLD = 3600.0
"""Seconds after which a temporary file belongs to nobody, whatever its name says."""

_BINARY = getattr(os, "O_BINARY", 0)
# Where a file is locked on Windows: a lock there forbids reading, so it lies past every end.
_LOCKED_BYTE = 0x7FFF_FFF0
_LOCK_PATIENCE = 2.0
# Scanners and indexers on Windows hold a new file open for a moment, and nobody may rename it.
_PAUSES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5) if os.name == "nt" else ()
# What a file system says that cannot sync a folder, make a hard link, lock a file.
_NO_FOLDER_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EBADF}
_NO_LINKS = {errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
_LOCK_HELD = {errno.EACCES, errno.EAGAIN, errno.EDEADLK}


def write_whole(path: Path, data: bytes, *, exclusive: bool = False) -> None:
    """Make `data` the contents of the file at `path`, on disk when this returns.

    A missing folder is made. A file that is replaced keeps its permissions, and a link stays a
    link to the file that is replaced. Raises OSError: FileExistsError when `exclusive` and the
    name is taken, by whatever, and PermissionError when the file that is there is read-only. The
    old contents then stand as they were, unless what failed came after the new ones had the name:
    those stand then, whole, and may not outlive a power cut. No temporary file is left. The error's
    `filename` is the path, at whatever step it came up.
    """
    path = os.fspath(path)
    with _told_of(path):
        _write_whole(path, data, exclusive)


def _write_whole(path: str, data: bytes, exclusive: bool) -> None:
    path, mode = _target(path, exclusive)
    folder = os.path.dirname(path) or "."
    temporary = os.path.join(folder, temporary_name())
    descriptor = _open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        try:
            if mode is not None and system.chmod:
                system.chmod(descriptor, mode)
            _write_all(descriptor, data)
            system.fsync(descriptor)
        finally:
            os.close(descriptor)
        if exclusive:
            _name_anew(temporary, path)
        else:
            _patiently(system.replace, temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            system.unlink(temporary)
        raise
    _wait_for(sync_folder, folder)


def append_line(path: Path, line: bytes, *, sync: bool = True) -> None:
    """Add `line` and a line end to the file, which is made when missing, with its folder.

    One write, whole beside those of other processes. A last line that was never ended is ended
    first. `sync` makes it last through a power cut. Raises OSError, and then nothing was added,
    except when the sync failed; raises ValueError when `line` holds a line end.
    """
    if b"\n" in line:
        raise ValueError("a line must not hold a line end")
    path = os.fspath(path)
    with _told_of(path):
        _append_line(path, line, sync)


def _append_line(path: str, line: bytes, sync: bool) -> None:
    descriptor = _open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
    with contextlib.ExitStack() as stack:
        stack.callback(os.close, descriptor)
        with _locked(descriptor) as alone:
            size = os.fstat(descriptor).st_size
            torn = size > 0 and _byte_at(descriptor, size - 1) != b"\n"
            try:
                _write_all(descriptor, (b"\n" if torn else b"") + line + b"\n")
            except BaseException:
                if alone:
                    with contextlib.suppress(OSError):
                        system.truncate(descriptor, size)
                raise
        if sync:
            stack.pop_all()
            folder = None if size else os.path.dirname(path) or "."
            _wait_for(_sync_and_close, descriptor, folder)


def _sync_and_close(descriptor: int, folder: str | None) -> None:
    try:
        system.fsync(descriptor)
    finally:
        os.close(descriptor)
    if folder is not None:
        sync_folder(folder)


@contextlib.contextmanager
def side_by_side() -> Iterator[None]:
    """What writes inside wait for at their end, they wait for at the end of this, together.

    A disk takes as long for two such waits at once as for one, and work can go on meanwhile. What
    has to reach the disk in a certain order, a file before its name, still does. Raises the
    OSError of a wait that failed.
    """
    if getattr(_waits, "going_on", None) is not None:
        yield
        return
    going_on = _waits.going_on = []
    try:
        yield
    finally:
        _waits.going_on = None
        errors = [error for wait in going_on for error in wait()]
    if errors:
        raise errors[0]


_waits = threading.local()


def _wait_for(call: Callable[..., None], *arguments: object) -> None:
    """Call it; inside `side_by_side` in a thread of its own."""
    going_on = getattr(_waits, "going_on", None)
    if going_on is None:
        return call(*arguments)
    errors: list[OSError] = []
    over = _thread.allocate_lock()
    over.acquire()

    def run() -> None:
        try:
            call(*arguments)
        except OSError as error:
            errors.append(error)
        finally:
            over.release()

    try:
        # A `threading.Thread` would first wait for its own start.
        _thread.start_new_thread(run, ())
    except RuntimeError:  # There are too many.
        return call(*arguments)

    def wait() -> list[OSError]:
        over.acquire()
        return errors

    going_on.append(wait)


def remove(path: Path) -> None:
    """Remove the file, for good when this returns. Raises OSError."""
    path = os.fspath(path)
    _patiently(system.unlink, path)
    sync_folder(os.path.dirname(path) or ".")


def move(source: Path, target: Path) -> None:
    """Give the file another name, in one step; the target's folder is made when missing.

    Raises OSError: FileExistsError when the target's name is taken. Two callers that move to one
    name at the same moment need a lock of their own.
    """
    source, target = os.fspath(source), os.fspath(target)
    # A name that differs in case alone may be the file itself.
    if os.path.lexists(target) and not os.path.samestat(os.lstat(source), os.lstat(target)):
        raise _error(FileExistsError, errno.EEXIST, target)
    folder = os.path.dirname(target) or "."
    make_folder(folder)
    _patiently(system.rename, source, target)
    sync_folder(folder)
    old_folder = os.path.dirname(source) or "."
    if old_folder != folder:
        sync_folder(old_folder)


def make_folder(folder: Path) -> None:
    """Make the folder and those above it where missing, on disk when this returns.

    Raises OSError: NotADirectoryError when something else has the name.
    """
    folder = os.fspath(folder)
    if os.path.isdir(folder):
        return
    parent = os.path.dirname(os.path.abspath(folder))
    if parent == os.path.abspath(folder):
        raise _error(FileNotFoundError, errno.ENOENT, folder)
    make_folder(parent)
    try:
        system.mkdir(folder)
    except FileExistsError:
        if not os.path.isdir(folder):
            raise _error(NotADirectoryError, errno.ENOTDIR, folder) from None
    else:
        sync_folder(parent)


def sync_folder(folder: Path) -> None:
    """Make the names in the folder last through a power cut, where the system knows how.

    Windows does not, and some network folders do not. Raises OSError when it should have worked.
    """
    if os.name == "nt":
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:
        return
    try:
        system.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC:
            raise
    finally:
        os.close(descriptor)


def sweep(folder: Path, older_than_s: float = OLD, *, deep: bool = False) -> int:
    """Remove what writers that died left in the folder, or when `deep` in all below it; how many.

    A temporary file is left alone while its writer may live: the name tells the machine and the
    process. That of another machine, or on Windows, goes when it is older than `older_than_s`
    seconds. What cannot be read or removed is passed over.
    """
    count = 0
    try:
        entries = os.scandir(folder)
    except OSError:
        return 0
    with entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                if entry.name.startswith(TEMPORARY):
                    if entry.is_file(follow_symlinks=False) and forsaken(entry, older_than_s):
                        system.unlink(entry.path)
                        count += 1
                elif deep and entry.is_dir(follow_symlinks=False):
                    count += sweep(entry.path, older_than_s, deep=True)
    return count


def _target(path: str, exclusive: bool) -> tuple[str, int | None]:
    """The file that is to be written, and the permissions of the one that is there."""
    if exclusive:
        return path, None
    try:
        if stat.S_ISLNK((status := os.lstat(path)).st_mode):
            path = os.path.realpath(path)
            status = os.stat(path)
    except FileNotFoundError:
        return path, None
    if stat.S_ISDIR(status.st_mode):
        raise _error(IsADirectoryError, errno.EISDIR, path)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", path)
    if not status.st_mode & 0o222:
        raise PermissionError(errno.EACCES, "the file is read-only", path)
    return path, stat.S_IMODE(status.st_mode)


@contextlib.contextmanager
def _told_of(path: str) -> Iterator[None]:
    """An error tells of the path that the caller knows, not of a temporary file or of none."""
    try:
        yield
    except OSError as error:
        error.filename = path
        if error.filename2 is not None:
            del error.filename2
        raise


def _error(kind: type[OSError], number: int, path: str) -> OSError:
    return kind(number, os.strerror(number), path)


def _open(path: str, flags: int, mode: int | None = None) -> int:
    arguments = (path, flags | _BINARY, 0o666 if mode is None else mode & 0o777)
    try:
        return system.open(*arguments)
    except FileNotFoundError:
        make_folder(os.path.dirname(path) or ".")
        return system.open(*arguments)


def _write_all(descriptor: int, data: bytes) -> None:
    """One write; more only where the system took a part, which then tells what is the matter."""
    rest = memoryview(data)
    while rest:
        rest = rest[system.write(descriptor, rest) :]


def _name_anew(temporary: str, path: str) -> None:
    """Give the file its name, or raise FileExistsError."""
    try:
        if os.name == "nt":
            return _patiently(system.rename, temporary, path)
        system.link(temporary, path)
    except FileExistsError:
        raise _error(FileExistsError, errno.EEXIST, path) from None
    except OSError as error:
        if os.name == "nt" or error.errno not in _NO_LINKS:
            raise
        # No hard links here, as on a memory stick: what is left is to look first.
        if os.path.lexists(path):
            raise _error(FileExistsError, errno.EEXIST, path) from None
        system.rename(temporary, path)
    else:
        system.unlink(temporary)


def _patiently(call: Callable[..., None], *arguments: str) -> None:
    for pause in _PAUSES:
        try:
            return call(*arguments)
        except FileExistsError:
            raise
        except PermissionError:
            time.sleep(pause)
    return call(*arguments)


def _byte_at(descriptor: int, offset: int) -> bytes:
    os.lseek(descriptor, offset, os.SEEK_SET)
    return os.read(descriptor, 1)


@contextlib.contextmanager
def _locked(descriptor: int) -> Iterator[bool]:
    """Keep the other appenders out; gives whether that worked.

    It does not where the file system knows no locks, or the holder was stopped in between. POSIX
    appends stay whole without; Windows seeks and then writes, so there it is an error.
    """
    deadline = time.monotonic() + _LOCK_PATIENCE
    alone = False
    while not alone:
        try:
            _lock(descriptor)
            alone = True
        except OSError as error:
            if error.errno in _LOCK_HELD and time.monotonic() < deadline:
                time.sleep(0.001)
            elif os.name == "nt":
                raise
            else:
                break
    try:
        yield alone
    finally:
        if alone:
            with contextlib.suppress(OSError):
                _unlock(descriptor)


if os.name == "nt":

    def _lock(descriptor: int) -> None:
        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

    def _unlock(descriptor: int) -> None:
        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _unlock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def host_name() -> str:
    """What this machine calls itself; empty when it has no name."""
    return os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")


def _machine() -> str:
    return f"{crc32(host_name().encode('utf-8', 'surrogateescape')):08x}"


def temporary_name(what: str = "") -> str:
    """A new name for what is unfinished; it tells the machine and the process."""
    return f"{TEMPORARY}{what}{_machine()}-{os.getpid()}-{os.urandom(4).hex()}"


def forsaken(entry: os.DirEntry, older_than_s: float = OLD) -> bool:
    """Whether nobody works any more on what has a name of `temporary_name`, as `sweep` tells it.

    Raises OSError.
    """
    pid = entry.name.partition(f"-{_machine()}-")[2].partition("-")[0]
    if os.name != "nt" and pid.isascii() and pid.isdigit() and not _lives(int(pid)):
        return True
    # A date in the future is a sign of a clock that was wrong, and says as little of a live writer.
    return abs(time.time() - entry.stat(follow_symlinks=False).st_mtime) > older_than_s


def _lives(pid: int) -> bool:
    if not 0 < pid < 1 << 31:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
