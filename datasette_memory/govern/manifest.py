"""What a source holds, to the byte: proof that nothing in it was changed."""

import errno
import hashlib
import os
import stat as modes
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from operator import itemgetter

from ..errors import MemoryFault
from ..vault.sources import Source, open_regular

_NAMED = 1_000


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
        unreadable = [{"path": path, "reason": why} for path, why in self.unreadable]
        return asdict(self) | {"unreadable": unreadable}


def manifest(source: Source) -> Manifest:
    """Read every file of `source`, hidden and excluded ones too; nothing is written anywhere.

    Raises MemoryFault when the root is missing or cannot be read.
    """
    digest = hashlib.sha256()
    files = size = 0
    unreadable: list[tuple[str, str]] = []
    for path, full, error in _files(source):
        try:
            if error:
                raise error
            files += 1
            kind, number, sha256 = _entry(full)
        except OSError as reason:
            digest.update(b"u - - %b\0" % path)
            if len(unreadable) < _NAMED:
                unreadable.append((path.decode("utf-8", "backslashreplace"), _why(reason)))
            continue
        if kind == b"f":
            size += number
        text = b"%o" % number if kind == b"s" else b"%d" % number
        digest.update(b"%b %b %b %b\0" % (kind, text, sha256, path))
    return Manifest(source.name, source.root, files, size, digest.hexdigest(), tuple(unreadable))


_File = tuple[bytes, bytes, OSError | None]


def _files(source: Source) -> Iterable[_File]:
    """`(path, real path, None)` of all that is no folder, in the order of the paths as bytes.

    A folder that cannot be listed comes in their midst, with the error.
    """
    root = os.fsencode(os.path.realpath(source.root))
    try:
        if not modes.S_ISDIR(os.stat(root).st_mode):
            return [(os.fsencode(os.path.basename(source.root)), root, None)]
        os.listdir(root)
    except OSError as error:
        raise MemoryFault(
            f"source {source.name}: {source.root} cannot be read: {_why(error)}",
            "check the path and its permissions, or mount the disk that holds it",
        ) from error
    found: list[_File] = []

    def note(full: bytes, error: OSError | None = None) -> None:
        path = os.path.relpath(full, root).replace(os.fsencode(os.sep), b"/")
        found.append((path, full, error))

    for folder, folders, names in os.walk(root, onerror=lambda e: note(e.filename, e)):
        links = [name for name in folders if _is_link(os.path.join(folder, name))]
        folders[:] = [name for name in folders if name not in links]
        for name in names + links:
            note(os.path.join(folder, name))
    return sorted(found, key=itemgetter(0))


def _is_link(folder: bytes) -> bool:
    """Whether it is another's folder under this name: a link, or on Windows a junction."""
    try:
        status = os.lstat(folder)
    except OSError:
        return False
    kind = getattr(status, "st_file_attributes", 0) & modes.FILE_ATTRIBUTE_REPARSE_POINT
    return modes.S_ISLNK(status.st_mode) or bool(kind)


def _entry(full: bytes) -> tuple[bytes, int, bytes]:
    """The kind, number and hash of a file, as in `Manifest`. Raises OSError."""
    status = os.lstat(full)
    if modes.S_ISREG(status.st_mode):
        with open_regular(full, quietly=True) as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            return b"f", file.tell(), sha256.encode()
    try:
        target = os.fsencode(os.readlink(full))
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return b"s", modes.S_IFMT(status.st_mode), b"-"
    return b"l", len(target), hashlib.sha256(target).hexdigest().encode()


def _why(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()
