"""What a source holds, to the byte: proof that nothing in it was changed."""

import errno
import hashlib
import os
import stat as modes
from collections.abc import Iterator
from dataclasses import dataclass

from ..errors import MemoryFault
from ..vault.sources import Source

_CHUNK = 1 << 20
_NAMED = 1_000

_WINDOWS = os.name == "nt"
_READ = os.O_RDONLY
for _name in ("O_BINARY", "O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY"):
    _READ |= getattr(os, _name, 0)
# Reading then leaves the time of the last access alone. Only the owner may ask for that.
_QUIETLY = getattr(os, "O_NOATIME", 0)


@dataclass(frozen=True, slots=True)
class Manifest:
    """All files of a source, whatever they are, as one hash.

    `files` counts all that is no folder, `bytes` those of the regular files. `sha256` is over an
    entry for each, by path as bytes, with `/` between folders, ended with NUL::

        f <size> <sha256> <path>    a regular file: its bytes
        l <size> <sha256> <path>    a symbolic link: the text of its target
        s <type> - <path>           a pipe, socket or device: its type in octal, as `stat` has it
        u - - <path>                a file or folder that cannot be read

    `unreadable` are the first 1,000 of the last kind, as `(path, reason)`.
    """

    name: str
    root: str
    files: int
    bytes: int
    sha256: str
    unreadable: tuple[tuple[str, str], ...] = ()

    def to_dict(self) -> dict[str, object]:
        """The object that every surface returns."""
        return {
            "name": self.name,
            "root": self.root,
            "files": self.files,
            "bytes": self.bytes,
            "sha256": self.sha256,
            "unreadable": [{"path": path, "reason": why} for path, why in self.unreadable],
        }


def manifest(source: Source) -> Manifest:
    """Read every file of `source`, hidden and excluded ones too; nothing is written anywhere.

    Raises MemoryFault when the root is missing or cannot be read.
    """
    digest = hashlib.sha256()
    files = size = 0
    unreadable: list[tuple[str, str]] = []
    for path, full, error in _files(source):
        entry = None
        if error is None:
            files += 1
            try:
                kind, number, sha256 = entry = _entry(full)
            except OSError as reason:
                error = reason
        if entry is None:
            digest.update(b"u - - %b\0" % path)
            if len(unreadable) < _NAMED:
                shown = path.decode("utf-8", "backslashreplace")
                unreadable.append((shown, _why(error)))
            continue
        if kind == b"f":
            size += number
        text = b"%o" % number if kind == b"s" else b"%d" % number
        digest.update(b"%b %b %b %b\0" % (kind, text, sha256, path))
    return Manifest(source.name, source.root, files, size, digest.hexdigest(), tuple(unreadable))


_File = tuple[bytes, bytes, OSError | None]


def _files(source: Source) -> Iterator[_File]:
    """`(path, real path, None)` of all that is no folder, in the order of the paths as bytes.

    A folder that cannot be listed comes in their midst, with the error.
    """
    root = os.path.realpath(source.root)
    try:
        if not modes.S_ISDIR(os.stat(root).st_mode):
            yield os.fsencode(os.path.basename(source.root)), os.fsencode(root), None
            return
        entries = _listed(os.fsencode(root))
    except OSError as error:
        raise MemoryFault(
            f"source {source.name}: {source.root} cannot be read: {_why(error)}",
            "check the path and its permissions, or mount the disk that holds it",
        ) from error
    # The folders on the way down to where the walk is, each with what is left of it.
    stack = [(b"", entries)]
    while stack:
        prefix, entries = stack[-1]
        entry = next(entries, None)
        if entry is None:
            stack.pop()
            continue
        path = prefix + entry.name
        if not _is_folder(entry):
            yield path, entry.path, None
            continue
        try:
            stack.append((path + b"/", _listed(entry.path)))
        except OSError as error:
            yield path, entry.path, error


def _listed(folder: bytes) -> Iterator[os.DirEntry]:
    """The entries such that a walk in their order meets all paths in the order of their bytes."""
    with os.scandir(folder) as entries:
        return iter(sorted(entries, key=lambda e: e.name + b"/" if _is_folder(e) else e.name))


def _is_folder(entry: os.DirEntry) -> bool:
    try:
        if not entry.is_dir(follow_symlinks=False):
            return False
        if _WINDOWS:
            # A junction is a link, and `is_symlink` does not tell.
            status = entry.stat(follow_symlinks=False)
            return not status.st_file_attributes & modes.FILE_ATTRIBUTE_REPARSE_POINT
    except OSError:
        return False
    return True


def _entry(full: bytes) -> tuple[bytes, int, bytes]:
    """The kind, number and hash of a file, as in `Manifest`. Raises OSError."""
    status = os.lstat(full)
    if modes.S_ISREG(status.st_mode):
        return b"f", *_hashed(full)
    try:
        target = os.fsencode(os.readlink(full))
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return b"s", modes.S_IFMT(status.st_mode), b"-"
    return b"l", len(target), hashlib.sha256(target).hexdigest().encode()


def _hashed(full: bytes) -> tuple[int, bytes]:
    digest = hashlib.sha256()
    size = 0
    with open(_open(full), "rb", buffering=0) as file:
        if not modes.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a regular file any more")
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
    return size, digest.hexdigest().encode()


def _open(full: bytes) -> int:
    if _QUIETLY:
        try:
            return os.open(full, _READ | _QUIETLY)
        except PermissionError:
            pass
    return os.open(full, _READ)


def _why(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()
