"""Which files a source holds, and their bytes: the only module of the vault that reads disks.

Nothing here writes, and nothing is opened that is not a regular file inside the source.
"""

from __future__ import annotations

import errno
import os
import re
import stat as modes
import unicodedata
from dataclasses import dataclass
from typing import IO, Any

from ..errors import MemoryFault
from .names import MARKDOWN_SUFFIXES

DEFAULT_MAX_BYTES = 2 * 1024 * 1024
SKIPPED_FOLDERS = frozenset({"node_modules"})


@dataclass(frozen=True, slots=True)
class FileStat:
    """A Markdown file. `path` is POSIX, NFC and relative to the source's root; `full` is the
    real path to open; `mtime_ns` counts nanoseconds since 1970, `size` bytes."""

    path: str
    full: str
    mtime_ns: int
    size: int


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file or folder that was passed over and that its owner may miss; why, in one line."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Source:
    """A folder of Markdown files, or one such file. `root` is absolute; `exclude` holds
    patterns as of `.gitignore`; files of more than `max_bytes` bytes are passed over."""

    name: str
    root: str
    exclude: tuple[str, ...] = ()
    max_bytes: int = DEFAULT_MAX_BYTES


def scan(source: Source) -> tuple[list[FileStat], list[Skipped]]:
    """List the Markdown files of a source and what was passed over, each sorted by path.

    Hidden names, `node_modules`, excluded paths and files that are not Markdown are left out
    without a word. A link is followed where it leads to a file or folder inside the root; a
    folder is read once, under its own path where that is not left out, else under that of the
    first link.
    Raises MemoryFault when the root is missing, unreadable or no Markdown, or when a pattern
    is no pattern.
    """
    root = os.path.realpath(source.root)
    try:
        status = os.stat(root)
    except OSError as error:
        raise _root_fault(source, error) from None
    scanner = _Scanner(root, source)
    if modes.S_ISDIR(status.st_mode):
        scanner.walk()
    elif is_markdown(os.path.basename(source.root)):
        # The name that was given stands, also where it is a link to another.
        scanner.file(_nfc(os.path.basename(source.root)), root, status)
    else:
        raise MemoryFault(
            f"source {source.name}: {source.root} is neither a folder nor a Markdown file",
            "give a folder, or a file that ends in .md",
        )
    return scanner.result()


def read(stat: FileStat, source: Source) -> bytes:
    """The bytes of a file that `scan` listed.

    Raises OSError when it is gone, unreadable, has grown beyond `source.max_bytes` or is no
    regular file any more. A named pipe does not block, a link in its place is not followed.
    """
    with open_regular(stat.full) as file:
        limit = source.max_bytes
        data = file.read(min(stat.size, limit) + 1)
        parts = [data]
        total = len(data)
        while data and total <= limit:
            data = file.read(min(65536, limit + 1 - total))
            parts.append(data)
            total += len(data)
        if total > limit:
            raise OSError(errno.EFBIG, f"larger than {_size(limit)}", stat.full)
        return b"".join(parts)


def open_regular(path: str | bytes | os.PathLike, *, quietly: bool = False) -> IO[bytes]:
    """A regular file, for reading without a buffer; `quietly` leaves the time of the last access
    alone, which the system grants to its owner.

    Raises OSError, also for all else: a named pipe does not block, a link is not followed.
    """
    flags = os.O_RDONLY
    for name in ("O_BINARY", "O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY"):
        flags |= getattr(os, name, 0)
    try:
        descriptor = os.open(path, flags | (getattr(os, "O_NOATIME", 0) if quietly else 0))
    except PermissionError:
        if not quietly:
            raise
        descriptor = os.open(path, flags)
    file = open(descriptor, "rb", buffering=0)
    if not modes.S_ISREG(os.fstat(descriptor).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "not a regular file", path)
    return file


def is_markdown(name: str) -> bool:
    """Whether a file name ends in .md, .markdown, .mdown or .mkd, in any case."""
    return name[-9:].lower().endswith(MARKDOWN_SUFFIXES)


class _Scanner:
    """One walk through one source; see `scan`."""

    def __init__(self, root: str, source: Source) -> None:
        self.root = root
        self.inside = root if root.endswith(os.sep) else root + os.sep
        self.source = source
        self.matcher = _matcher(source)
        self.files: list[FileStat] = []
        self.skipped: list[Skipped] = []
        # (path of the link, the folder where it leads)
        self.links: list[tuple[str, str]] = []
        # The folders that were read, and the path under which.
        self.read: dict[tuple[int, int] | str, str] = {}
        self.renamed = False

    def walk(self) -> None:
        self.folders("", self.root)
        # Links wait until all real folders are read, and lead on in the order of their names: a
        # link that is added gives no card another path.
        while self.links:
            waiting = sorted(self.links)
            self.links = []
            for path, target in waiting:
                self.folders(path, target)

    def folders(self, path: str, real: str) -> None:
        """List the folder `real`, called `path`, and all that is below it but for links. A folder
        that was read under another path is passed over."""
        stack = [(path, real)]
        while stack:
            path, real = stack.pop()
            try:
                status = os.stat(real)
                # Some file systems of Windows number nothing.
                key = (status.st_dev, status.st_ino) if status.st_ino else real
                if (known := self.read.setdefault(key, path)) != path:
                    self.skip(path, f"folder that is indexed as {_printable(known) or '.'}")
                    continue
                with os.scandir(real) as entries:
                    self.entries(entries, path + "/" if path else "", stack)
            except OSError as error:
                if real == self.root:
                    raise _root_fault(self.source, error) from None
                self.skip(path, f"folder cannot be read: {_why(error)}")

    def entries(self, entries: Any, prefix: str, stack: list[tuple[str, str]]) -> None:
        matcher = self.matcher
        files = self.files
        limit = self.source.max_bytes
        for entry in entries:
            name = entry.name
            if name[0] == ".":
                continue
            try:
                link = entry.is_symlink() or (_WINDOWS and _is_reparse_point(entry))
                folder = not link and entry.is_dir(follow_symlinks=False)
                if folder:
                    if name in SKIPPED_FOLDERS:
                        continue
                elif name[-9:].lower().endswith(MARKDOWN_SUFFIXES):
                    pass
                elif not link:
                    continue
                if name.isascii():
                    path = prefix + name
                else:
                    path = prefix + _nfc(name)
                    if not _is_utf8(name):
                        if folder or is_markdown(name):
                            self.skip(path, "name is not valid UTF-8")
                        continue
                    if not self.renamed and not path.endswith(name):
                        self.renamed = True
                if matcher is not None and matcher(path + "/" if folder else path):
                    continue
                if folder:
                    stack.append((path, entry.path))
                elif link:
                    self.link(entry, path)
                else:
                    status = entry.stat(follow_symlinks=False)
                    if modes.S_ISREG(status.st_mode) and status.st_size <= limit:
                        files.append(FileStat(path, entry.path, status.st_mtime_ns, status.st_size))
                    else:
                        self.file(path, entry.path, status)
            except OSError as error:
                self.skip(prefix + _nfc(name), f"cannot be read: {_why(error)}")

    def link(self, entry: Any, path: str) -> None:
        target = os.path.realpath(entry.path)
        try:
            status = os.stat(target)
        except OSError as error:
            if is_markdown(path):
                self.skip(path, f"link leads nowhere: {_why(error)}")
            return
        folder = modes.S_ISDIR(status.st_mode)
        if not folder and not is_markdown(path):
            return
        if folder and (entry.name in SKIPPED_FOLDERS or self.excluded(path + "/")):
            return
        if target != self.root and not target.startswith(self.inside):
            self.skip(path, "link leads out of the source")
        elif folder:
            self.links.append((path, target))
        else:
            self.file(path, target, status)

    def excluded(self, path: str) -> bool:
        return self.matcher is not None and self.matcher(path)

    def file(self, path: str, full: str, status: os.stat_result) -> None:
        if not modes.S_ISREG(status.st_mode):
            self.skip(path, "not a regular file")
        elif status.st_size > self.source.max_bytes:
            limit = _size(self.source.max_bytes)
            self.skip(path, f"larger than {limit} ({_size(status.st_size)})")
        else:
            self.files.append(FileStat(path, full, status.st_mtime_ns, status.st_size))

    def skip(self, path: str, reason: str) -> None:
        self.skipped.append(Skipped(_printable(path), reason))

    def result(self) -> tuple[list[FileStat], list[Skipped]]:
        self.files.sort(key=_path_of)
        if self.renamed:
            self.drop_twins()
        self.skipped.sort(key=_path_of)
        return self.files, self.skipped

    def drop_twins(self) -> None:
        """Keep one of the files whose names differ on disk and are the same in NFC."""
        kept: list[FileStat] = []
        for file in sorted(self.files, key=lambda file: (file.path, file.full)):
            if kept and kept[-1].path == file.path:
                self.skip(file.path, "another file has the same name in Unicode's NFC form")
            else:
                kept.append(file)
        self.files = kept


def _path_of(item: FileStat | Skipped) -> str:
    return item.path


_WINDOWS = os.name == "nt"


def _is_reparse_point(entry: Any) -> bool:
    """Whether a Windows entry is a junction or the like, which `is_symlink` does not tell."""
    attributes = getattr(entry.stat(follow_symlinks=False), "st_file_attributes", 0)
    return bool(attributes & getattr(modes, "FILE_ATTRIBUTE_REPARSE_POINT", 0x400))


def _nfc(name: str) -> str:
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def _is_utf8(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _printable(path: str) -> str:
    """`path` with the bytes that are not UTF-8 written as `\\udcff`."""
    return path.encode("utf-8", "backslashreplace").decode("utf-8")


def _why(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()


def _size(size: int) -> str:
    if size < 1024:
        return f"{size} bytes"
    if size < 1024 * 1024:
        return f"{size / 1024:.4g} KiB"
    return f"{size / (1024 * 1024):.4g} MiB"


def _root_fault(source: Source, error: OSError) -> MemoryFault:
    if isinstance(error, FileNotFoundError):
        return MemoryFault(
            f"source {source.name}: {_printable(source.root)} does not exist",
            "check the path, or mount the disk that holds it",
        )
    return MemoryFault(
        f"source {source.name}: {_printable(source.root)} cannot be read: {_why(error)}",
        "check that you may read this folder",
    )


_ALL_INSIDE = re.compile(r"/\*\*[ \t]*$")


def _matcher(source: Source) -> Any:
    """A function from a relative path (folders end in `/`) to whether it is excluded."""
    if not source.exclude:
        return None
    from pathspec import GitIgnoreSpec

    # To git, `x/**` is all that lies in `x` and not `x` itself, so that a later `!x/y.md` can
    # bring back a file; the library takes the folder too, unless told of a name inside.
    patterns = [_ALL_INSIDE.sub("/**/*", _nfc(pattern)) for pattern in source.exclude]
    for pattern in patterns:
        try:
            GitIgnoreSpec.from_lines([pattern])
        except (ValueError, re.error) as error:
            raise MemoryFault(
                f"source {source.name}: exclude pattern {pattern!r} is not valid: {error}",
                "patterns are written as in .gitignore",
            ) from None
    return GitIgnoreSpec.from_lines(patterns).match_file
