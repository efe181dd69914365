"""A backup as a folder or a packed file: how it is laid out, written, and read with distrust.

::

    vault/...  ledger/...  evidence/...  pending/...     as in the home
    config.json  bench_queries.json  memory.db
    manifest.json                                        what all that is; the last file
"""

import contextlib
import gzip
import hashlib
import io
import json
import os
import tarfile
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from .. import durable
from ..errors import MemoryFault
from ..vault.sources import open_regular

FORMAT = 1
MANIFEST = "manifest.json"
FOLDERS = ("pending", "ledger", "vault", "evidence")
FILES = ("config.json", "bench_queries.json", "memory.db")

PACKED = (".tar.gz", ".tgz")

#: More than anybody has; an archive that states it is hostile or broken.
MAX_FILE = 1 << 40
MAX_FILES = 5_000_000
MAX_MANIFEST = 256 << 20
# What a reader of tar files may ask for at once; their headers are small.
_MAX_READ = 4 << 20

# Seconds to wait for all disks, before each file is asked for by itself.
_PATIENCE = 10.0

_CHUNK = 1 << 20
_SPOOLED = 8 << 20
_BINARY = getattr(os, "O_BINARY", 0)

_BROKEN = (
    tarfile.TarError,
    zlib.error,
    EOFError,
    ValueError,
    OverflowError,
    RecursionError,
    MemoryError,
)


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of an archive. `path` is POSIX and relative, `size` counts bytes, `mtime_ns`
    nanoseconds since 1970, `mode` holds the permissions."""

    path: str
    size: int
    sha256: str
    mtime_ns: int
    mode: int


@dataclass(slots=True)
class Contents:
    """What an archive holds: its manifest, read and believed.

    `links` are symbolic links of the vault, `(path, target)`; `sources` are named and not held;
    `left_out` names the path and the reason of what could not be copied; `config` is that of the home.
    """

    version: str
    created: str
    home: str
    entries: dict[str, Entry] = field(default_factory=dict)
    links: list[tuple[str, str]] = field(default_factory=list)
    sources: list[dict[str, str]] = field(default_factory=list)
    left_out: list[dict[str, str]] = field(default_factory=list)
    config: dict[str, Any] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        return sum(entry.size for entry in self.entries.values())

    def counts(self) -> dict[str, int]:
        """The number of files by part, `vault`, `ledger`, `memory.db`, ..."""
        found: dict[str, int] = {}
        for path in self.entries:
            part = path.partition("/")[0]
            found[part] = found.get(part, 0) + 1
        return found

    def dump(self) -> bytes:
        """The manifest."""
        record = {
            "format": FORMAT,
            "version": self.version,
            "created": self.created,
            "home": self.home,
            "counts": self.counts(),
            "bytes": self.bytes,
            "sources": self.sources,
            "left_out": self.left_out,
            "links": [{"path": path, "target": target} for path, target in self.links],
            "files": [asdict(entry) for entry in self.entries.values()],
        }
        return json.dumps(record, indent=1).encode("ascii") + b"\n"


# Writing


class Sink(io.FileIO):
    """A new file, written through `durable.system`."""

    def __init__(self, path: str | Path) -> None:
        super().__init__(
            path, "x+", opener=lambda path, flags: durable.system.open(path, flags, 0o600)
        )

    def write(self, data) -> int:
        rest = memoryview(data).cast("B")
        size = len(rest)
        while rest:
            rest = rest[durable.system.write(self.fileno(), rest) :]
        return size

    def truncate(self, size: int | None = None) -> int:
        size = self.tell() if size is None else size
        durable.system.truncate(self.fileno(), size)
        return size


Copy = Callable[[IO[bytes]], Entry]
"""Writes a file into what it is given, from its start, and tells what it was."""


class FolderWriter:
    """Writes an archive as a folder at `path`, which must not exist."""

    def __init__(self, path: Path) -> None:
        self.path = path
        durable.system.mkdir(path, 0o700)

    def add(self, name: str, copy: Copy) -> Entry:
        """Write one file. Raises OSError; nothing is left of it then."""
        full = self.path / name
        durable.make_folder(full.parent)
        try:
            sink = Sink(full)
        except FileExistsError as error:
            raise MemoryFault(
                f"{self.path.parent} takes {_show(name)} for the name of another file",
                "it does not tell upper from lower case: make a .tar.gz, which does",
            ) from error
        try:
            with sink:
                entry = copy(sink)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(full)
            raise
        os.utime(full, ns=(entry.mtime_ns, entry.mtime_ns))
        return entry

    def finish(self) -> None:
        """Make it last. Raises OSError."""
        sync_tree(self.path)

    def abandon(self) -> None:
        """Let go of what is open; what was written stays."""


def sync_tree(root: Path) -> None:
    """Have every file and folder from `root` down on disk. Raises OSError.

    All at the end, and asked for at once first: file by file it may take ten times as long.
    """
    if hasattr(os, "sync"):
        # It waits for other disks too, of which one may not answer.
        asking = threading.Thread(target=os.sync, daemon=True)
        asking.start()
        asking.join(_PATIENCE)
    for folder, _, names in os.walk(root, topdown=False):
        for name in names:
            full = os.path.join(folder, name)
            if not os.path.islink(full):
                sync_file(full)
        durable.sync_folder(folder)


def sync_file(path: str | Path) -> None:
    """Have the file on disk. Raises OSError."""
    # Windows syncs what may be written alone.
    descriptor = os.open(path, os.O_RDWR | _BINARY if os.name == "nt" else os.O_RDONLY)
    try:
        durable.system.fsync(descriptor)
    finally:
        os.close(descriptor)


class PackedWriter:
    """Writes an archive as a `.tar.gz` at `path`, which must not exist."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._sink = Sink(path)
        # One write for many small pieces; a level that a large index can be packed with.
        self._buffer = io.BufferedWriter(self._sink, _CHUNK)
        self._gzip = gzip.GzipFile("", "wb", 6, self._buffer, mtime=0)
        self._tar = tarfile.open(fileobj=self._gzip, mode="w", format=tarfile.PAX_FORMAT)

    def add(self, name: str, copy: Copy) -> Entry:
        """Write one file. Raises OSError."""
        # Its size stands before it, and is known when it was copied.
        with tempfile.SpooledTemporaryFile(_SPOOLED, dir=self.path.parent) as spool:
            entry = copy(spool)
            spool.seek(0)
            info = tarfile.TarInfo(name)
            info.size, info.mode = entry.size, entry.mode
            info.mtime = max(0, entry.mtime_ns // 1_000_000_000)
            self._tar.addfile(info, spool)
        return entry

    def finish(self) -> None:
        """Make it last. Raises OSError."""
        self._tar.close()
        self._gzip.close()
        self._buffer.flush()
        durable.system.fsync(self._sink.fileno())
        self._buffer.close()

    def abandon(self) -> None:
        """Let go of what is open; what was written stays."""
        self._sink.close()


# Reading


def is_packed(path: Path) -> bool:
    """Whether an archive of that name is a packed file."""
    return path.name.lower().endswith(PACKED)


def inspect(path: Path, packed: bool | None = None) -> Contents:
    """Read a whole archive and check every file of it against the manifest; writes nothing.

    Raises MemoryFault when the archive is no archive, is damaged, or holds anything that is not
    in its manifest, or that could lead out of the home.
    """
    found: dict[str, tuple[int, str]] = {}
    kept: dict[str, bytes] = {}
    for name, stream in read(path, packed):
        digest, size = hashlib.sha256(), 0
        part = io.BytesIO() if name in (MANIFEST, "config.json") else None
        for chunk in chunks(path, stream):
            digest.update(chunk)
            size += len(chunk)
            if part is not None and size <= MAX_MANIFEST:
                part.write(chunk)
        found[name] = size, digest.hexdigest()
        if part is not None:
            kept[name] = part.getvalue()
    if MANIFEST not in found:
        raise _fault(path, "it has no manifest: it is no backup, or was cut short")
    if found.pop(MANIFEST)[0] > MAX_MANIFEST:
        raise _fault(path, "its manifest is too large")
    contents = _parsed(path, kept[MANIFEST])
    for name, entry in contents.entries.items():
        if name not in found:
            raise _fault(path, f"{_show(name)} is missing")
        if found.pop(name) != (entry.size, entry.sha256):
            raise _fault(path, f"{_show(name)} is not what it was")
    if found:
        raise _fault(path, f"{_show(min(found))} is not in its manifest")
    if config := kept.get("config.json"):
        with contextlib.suppress(ValueError, RecursionError):
            config = json.loads(config.decode("utf-8-sig"))
            contents.config = config if isinstance(config, dict) else {}
    return contents


def read(path: Path, packed: bool | None = None) -> Iterator[tuple[str, IO[bytes]]]:
    """Each file of an archive with its bytes, to be read before the next is asked for.

    Raises MemoryFault for anything that is no plain file under a plain name.
    """
    seen: set[str] = set()
    if packed is None:
        packed = not path.is_dir()
    with _translated(path):
        for name, stream in _packed(path) if packed else _folder(path):
            check_name(path, name)
            if name in seen:
                raise _fault(path, f"{_show(name)} is in it twice")
            seen.add(name)
            if len(seen) > MAX_FILES:
                raise _fault(path, f"it holds more than {MAX_FILES:,} files")
            yield name, stream


def chunks(path: Path, stream: IO[bytes]) -> Iterator[bytes]:
    """The bytes of a file that `read` gave. Raises MemoryFault when the archive is damaged."""
    with _translated(path):
        while chunk := stream.read(_CHUNK):
            yield chunk


def check_name(archive: Path, name: str) -> None:
    """Raise MemoryFault unless `name` is a place that a backup has: relative, and inside."""
    parts = name.split("/")
    plain = all(part not in ("", ".", "..") and "\0" not in part for part in parts)
    if os.name == "nt" and plain:
        plain = not any(sign in name for sign in '\\:*?"<>|') and not any(
            part[-1] in ". " for part in parts
        )
    known = parts[0] in FOLDERS if len(parts) > 1 else name in (*FILES, MANIFEST)
    if not plain or not known:
        raise _fault(archive, f"{_show(name)} has no place in a backup", hostile=True)


def _folder(root: Path) -> Iterator[tuple[str, IO[bytes]]]:
    stack = [""]
    while stack:
        prefix = stack.pop()
        with os.scandir(root / prefix) as entries:
            listed = sorted(entries, key=lambda entry: entry.name, reverse=True)
        for entry in listed:
            name = prefix + entry.name
            if entry.is_dir(follow_symlinks=False):
                stack.append(name + "/")
            elif not entry.is_file(follow_symlinks=False):
                raise _fault(root, f"{_show(name)} is no plain file", hostile=True)
            else:
                with open_regular(entry.path) as file:
                    yield name, file


def _packed(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    with gzip.open(path, "rb") as unpacked:
        bounded = _Bounded(unpacked)
        with tarfile.open(fileobj=bounded, mode="r:", errors="surrogateescape") as tar:
            while member := tar.next():
                # Its list of members would grow with the archive.
                tar.members.clear()
                check_name(path, member.name)
                if not member.isreg() or member.issparse():
                    raise _fault(path, f"{_show(member.name)} is no plain file", hostile=True)
                if not 0 <= member.size <= MAX_FILE:
                    raise _fault(path, f"{_show(member.name)} states an absurd size", hostile=True)
                stream = tar.extractfile(member)
                yield member.name, stream
                while stream.read(_CHUNK):
                    pass
                if stream.tell() != member.size:
                    raise EOFError
        # The checksum of the packed file stands at its very end.
        while rest := unpacked.read(_CHUNK):
            if rest.strip(b"\0"):
                raise _fault(path, "something stands behind its end", hostile=True)


class _Bounded:
    """A stream that nobody may read at once what fills the memory."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.tell = stream.tell

    def seekable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _MAX_READ:
            raise tarfile.ReadError("a header is too large")
        return self._stream.read(size)

    def seek(self, offset: int) -> int:
        if offset < self.tell():
            raise tarfile.ReadError("not in order")
        return self._stream.seek(offset)


def _parsed(path: Path, raw: bytes) -> Contents:
    """The manifest. Raises MemoryFault when it is none."""
    try:
        record = json.loads(raw.decode("utf-8"))
        if record["format"] != FORMAT:
            raise MemoryFault(
                f"{path} is a backup of another version ({_show(record['format'])})",
                "restore it with the version that it names, or a later one",
            )
        contents = Contents(
            version=str(record["version"]),
            created=str(record["created"]),
            home=str(record["home"]),
            sources=[_texts(one, "name", "root") for one in record["sources"]],
            left_out=[_texts(one, "path", "reason") for one in record["left_out"]],
            links=[(str(one["path"]), str(one["target"])) for one in record["links"]],
        )
        for one in record["files"]:
            entry = Entry(
                path=str(one["path"]),
                size=int(one["size"]),
                sha256=str(one["sha256"]),
                mtime_ns=int(one["mtime_ns"]),
                mode=int(one["mode"]) & 0o777,
            )
            contents.entries[entry.path] = entry
        if len(contents.entries) != len(record["files"]):
            raise ValueError
    except MemoryFault:
        raise
    except (ValueError, KeyError, TypeError, RecursionError, MemoryError) as error:
        raise _fault(path, "its manifest cannot be understood") from error
    return contents


def _texts(record: dict, *keys: str) -> dict[str, str]:
    return {key: str(record[key]) for key in keys}


@contextlib.contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except MemoryFault:
        raise
    except FileNotFoundError as error:
        raise MemoryFault(f"there is no backup at {path}", "check the path") from error
    except gzip.BadGzipFile as error:
        raise _fault(path, "it is no .tar.gz, or is damaged") from error
    except OSError as error:
        raise MemoryFault(
            f"{error.filename or path} cannot be read: {error.strerror or error}",
            "check the path and its permissions",
        ) from error
    except _BROKEN as error:
        why = "it is cut short" if isinstance(error, EOFError) else "it is damaged"
        raise _fault(path, why) from error


def _fault(path: Path, why: str, hostile: bool = False) -> MemoryFault:
    hint = "do not use it unless you know where it comes from" if hostile else "use another backup"
    return MemoryFault(f"the backup {path} cannot be used: {why}", f"nothing was changed; {hint}")


def _show(value: object) -> str:
    shown = ascii(value) if not str(value).isprintable() else repr(value)
    return shown if len(shown) <= 120 else f"{shown[:117]}..."
