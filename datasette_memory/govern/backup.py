"""Backups of a memory while others write to it, and bringing them back."""

import contextlib
import errno
import hashlib
import os
import shutil
import stat as modes
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import IO

from .. import __version__, durable
from ..errors import MemoryFault
from ..home import Home, write_config
from ..index import audit
from ..index.connection import (
    NoIndex,
    connect_any,
    connect_write,
    translated,
)
from ..index.lock import write_lock
from ..index.migrations import migrate
from ..index.project import project
from ..index.rebuild import rebuild
from ..index.sync import SyncResult, sync
from ..sources import VAULT, configured
from ..vault.sources import Source, open_regular
from .archive import (
    FOLDERS,
    MANIFEST,
    PACKED,
    Contents,
    Entry,
    FolderWriter,
    PackedWriter,
    Sink,
    chunks,
    inspect,
    is_packed,
    read,
    sync_file,
    sync_tree,
)

__all__ = ["Report", "backup", "restore"]

_BACKUP, _RESTORE = "backup-", "restore-"
# Seconds after which what another machine left unfinished belongs to nobody.
_FORSAKEN = 24 * 3600.0

_TRIES = 3
_LISTINGS = 5
_CHUNK = 1 << 20
_OTHER_KINDS = (".zip", ".tar", ".gz", ".bz2", ".xz", ".zst", ".7z", ".tbz", ".txz")


@dataclass(slots=True)
class Report:
    """What a backup or a restore did.

    `path` is the archive, or the home; `counts` the number of files of each part; `sources` are
    named and not copied. `left_out` are files of the home that could not be copied, with the
    reason. `moved_aside` is where a restore put what was there, `index` what became of the index.
    """

    path: str
    files: int
    bytes: int
    counts: dict[str, int]
    sources: list[dict[str, str]] = field(default_factory=list)
    left_out: list[dict[str, str]] = field(default_factory=list)
    moved_aside: list[str] = field(default_factory=list)
    index: str = ""
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether all of it was copied."""
        return not self.left_out

    def to_dict(self) -> dict[str, object]:
        """The object that every surface returns."""
        return {"ok": self.ok} | asdict(self) | {"seconds": round(self.seconds, 3)}


def backup(home: Home, destination: str | Path) -> Report:
    """Copy vault, ledger, evidence, pending changes, settings and index to `destination`.

    That is a new folder, or a packed file when its name ends in `.tar.gz` or `.tgz`. It gets its
    name when all of it is on disk and was read again and found right; nothing is overwritten.
    Others may write meanwhile: each file is copied once, and its hash is that of the copy; a
    ledger ends with a whole line; a card that is moved meanwhile may be in it under both paths.
    Sources are not copied: they belong to somebody else, and are named. Raises MemoryFault.
    """
    begun = time.monotonic()
    destination = Path(destination).expanduser().absolute()
    packed = is_packed(destination)
    _check_destination(home, destination, packed)
    try:
        durable.make_folder(destination.parent)
        _sweep([destination.parent], _BACKUP)
        temporary = destination.parent / durable.temporary_name(_BACKUP)
        writer = PackedWriter(temporary) if packed else FolderWriter(temporary)
        try:
            work = _Backup(home, writer)
            work.run()
            writer.finish()
            if inspect(temporary, packed).dump() != work.contents.dump():
                raise MemoryFault(f"{destination} did not keep what was written to it")
            _give_name(temporary, destination)
        except BaseException:
            writer.abandon()
            _remove(temporary)
            raise
    except OSError as error:
        raise _not_written(destination, error) from error
    return _report(destination, work.contents, begun, len(work.contents.links),
                   index=work.index, notes=work.notes)  # fmt: skip


def _report(path: Path, contents: Contents, begun: float, links: int, **rest) -> Report:
    return Report(
        path=str(path),
        files=len(contents.entries) + links,
        bytes=contents.bytes,
        counts=contents.counts(),
        sources=contents.sources,
        left_out=contents.left_out,
        seconds=time.monotonic() - begun,
        **rest,
    )


def _give_name(temporary: Path, destination: Path) -> None:
    try:
        durable.move(temporary, destination)
    except FileExistsError as error:
        raise _taken(destination) from error
    except OSError as error:
        if os.path.lexists(temporary):
            raise
        raise MemoryFault(
            f"{destination} is written and whole, but may not outlive a power cut: "
            f"{error.strerror or error}",
            "check the disk, and make another",
        ) from error


def _check_destination(home: Home, destination: Path, packed: bool) -> None:
    if os.path.lexists(destination):
        raise _taken(destination)
    if not packed and destination.name.lower().endswith(_OTHER_KINDS):
        raise MemoryFault(
            f"a backup is a folder or a {' or '.join(PACKED)}, not {destination.name}",
            "choose another name",
        )
    real = Path(os.path.realpath(destination))
    inside = {"the vault": home.vault} | {f"the {name}": home.home / name for name in FOLDERS}
    # A source that cannot be understood is no reason to go without a backup.
    with contextlib.suppress(MemoryFault):
        inside |= {f"the source {one.name!r}": Path(one.root) for one in configured(home)}
    for name, folder in inside.items():
        if real.is_relative_to(os.path.realpath(folder)):
            raise MemoryFault(f"{destination} lies inside {name}", "choose a place outside it")
    if not any(path.exists() for path in (home.vault, home.home / "ledger", home.db)):
        raise MemoryFault(f"there is nothing to back up in {home.home}", "check --home")


def _taken(destination: Path) -> MemoryFault:
    return MemoryFault(f"{destination} is there already", "nothing is overwritten: choose another")


def _not_written(path: Path, error: OSError) -> MemoryFault:
    why = error.strerror or str(error)
    if error.errno in (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", -1)):
        hint = "free some space, or choose another disk; nothing is left of it"
    else:
        hint = "check its folder and the permissions; nothing is left of it"
    return MemoryFault(f"{path} cannot be written: {why}", hint)


def unfinished(folders: Iterable[Path], what: str = _RESTORE) -> Iterator[tuple[Path, bool]]:
    """What restores have prepared in these folders, and whether nobody goes on with it."""
    for folder in folders:
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.startswith(durable.TEMPORARY + what):
                    yield Path(entry.path), durable.forsaken(entry, _FORSAKEN)


def _sweep(folders: Iterable[Path], what: str) -> list[str]:
    """Remove what backups or restores left that were killed; a line for each that may go on."""
    notes = []
    for path, forsaken in unfinished(folders, what):
        if forsaken:
            _remove(path)
        else:
            notes.append(f"{path} was left alone: another {what[:-1]} may be at work on it")
    return notes


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()


class _Backup:
    """One run through a home."""

    def __init__(self, home: Home, writer: FolderWriter | PackedWriter) -> None:
        self.home = home
        self.writer = writer
        created = datetime.now(timezone.utc).isoformat(timespec="seconds")
        self.contents = Contents(__version__, created, str(home.home))
        self.index = ""
        self.notes: list[str] = []

    def run(self) -> None:
        """Copy everything, the manifest last."""
        # A pending change goes away when its card is written, a card when it is in the trash, an
        # event comes when its evidence is there: in this order nothing falls between.
        places = {name: self.home.home / name for name in FOLDERS} | {"vault": self.home.vault}
        for name in FOLDERS:
            self._copy_folder(name, places[name])
        for name in ("config.json", "bench_queries.json"):
            if (self.home.home / name).exists():
                self._copy_file(name, self.home.home / name)
        self._copy_index()
        with contextlib.suppress(MemoryFault):
            self.contents.sources = [
                {"name": one.name, "root": one.root} for one in configured(self.home)
            ]
        raw = self.contents.dump()
        self.writer.add(MANIFEST, lambda out: _copied_bytes(MANIFEST, raw, out))

    def _copy_folder(self, name: str, root: Path) -> None:
        done: set[str] = set()
        # What is moved while the folder is walked through turns up when it is listed again.
        for _ in range(_LISTINGS):
            found = [item for item in self._listed(name, root) if item[0] not in done]
            if not found:
                return
            for path, full in found:
                done.add(path)
                if os.path.islink(full):
                    self._note_link(path, full)
                else:
                    self._copy_file(path, full)

    def _listed(self, name: str, root: Path) -> Iterator[tuple[str, Path]]:
        """`(path in the archive, real path)` of all but folders and unfinished files."""

        def note(error: OSError) -> None:
            if not isinstance(error, FileNotFoundError):
                self._leave_out(f"{name}/{os.path.relpath(error.filename, root)}", error)

        root = Path(os.path.realpath(root))
        for folder, folders, names in os.walk(root, onerror=note):
            folders.sort()
            links = [one for one in folders if os.path.islink(os.path.join(folder, one))]
            for one in sorted(names + links):
                if not one.startswith(durable.TEMPORARY):
                    full = Path(folder, one)
                    yield f"{name}/{full.relative_to(root).as_posix()}", full

    def _copy_file(self, path: str, full: Path) -> None:
        by_lines = path.startswith("ledger/")
        try:
            entry = self.writer.add(path, lambda out: self._copied(path, full, by_lines, out))
        except _Unreadable as error:
            # Moved or trashed since it was listed: it is found again where it went.
            if not isinstance(error.cause, FileNotFoundError):
                self._leave_out(path, error.cause)
        else:
            self.contents.entries[path] = entry

    def _copied(self, path: str, full: Path, by_lines: bool, out: IO[bytes]) -> Entry:
        """Copy one file, and once more when it was written to meanwhile."""
        entry = None
        for attempt in range(_TRIES):
            if attempt:
                out.seek(0)
                out.truncate()
            with _reading():
                file = open_regular(full)
            with file:
                with _reading():
                    before = os.fstat(file.fileno())
                    size = _whole_lines(file, before.st_size) if by_lines else before.st_size
                    file.seek(0)
                entry = _copied_stream(path, file, size, before, out)
                with _reading():
                    after = os.fstat(file.fileno())
            if by_lines:
                if size < before.st_size:
                    self.notes.append(f"{path}: a last line without an end was left out")
                break
            same = (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns)
            if same and entry.size == size:
                break
        return entry

    def _note_link(self, path: str, full: Path) -> None:
        try:
            self.contents.links.append((path, os.readlink(full)))
        except FileNotFoundError:
            pass
        except OSError as error:
            self._leave_out(path, error)

    def _leave_out(self, path: str, error: OSError) -> None:
        place = {"path": path, "reason": (error.strerror or type(error).__name__).lower()}
        if place not in self.contents.left_out:
            self.contents.left_out.append(place)

    def _copy_index(self) -> None:
        """The index by SQLite's own means, which see one state of it whatever is written."""
        place = self.writer.path
        # The folder is closed to others, as the copy of the index has to be.
        with tempfile.TemporaryDirectory(prefix=f"{place.name}-", dir=place.parent) as folder:
            copy = Path(folder, "memory.db")
            try:
                with contextlib.closing(connect_any(self.home.db)) as connection:
                    with translated(self.home.db), audit.copied(connection, copy) as made:
                        _check(made)
                status = self.home.db.stat()
            except NoIndex:
                self.index = "there is none"
                return
            except MemoryFault as error:
                # It is what is written that has no room.
                if any(word in str(error) for word in ("no space", "the disk failed")):
                    why = str(error.__cause__ or error)
                    raise MemoryFault(
                        f"{place.parent} cannot take a copy of the index: {why}",
                        "free some space, or choose another disk; nothing is left of it",
                    ) from error
                self.index = f"left out: {error}; a restore builds it anew"
                return
            self._copy_file("memory.db", copy)
        if entry := self.contents.entries.get("memory.db"):
            mode = modes.S_IMODE(status.st_mode) & 0o777
            entry = replace(entry, mode=mode, mtime_ns=status.st_mtime_ns)
            self.contents.entries["memory.db"] = entry
            self.index = "copied"


class _Unreadable(Exception):
    """A file of the home that cannot be read, as against a backup that cannot be written."""

    def __init__(self, cause: OSError) -> None:
        super().__init__(str(cause))
        self.cause = cause


@contextlib.contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _Unreadable(error) from error


def _copied_stream(
    path: str, file: IO[bytes], size: int, status: os.stat_result, out: IO[bytes]
) -> Entry:
    """Copy up to `size` bytes; the entry tells what was copied."""
    digest, copied = hashlib.sha256(), 0
    while copied < size:
        with _reading():
            chunk = file.read(min(_CHUNK, size - copied))
        if not chunk:
            break
        digest.update(chunk)
        out.write(chunk)
        copied += len(chunk)
    mode = modes.S_IMODE(status.st_mode) & 0o777
    return Entry(path, copied, digest.hexdigest(), status.st_mtime_ns, mode)


def _copied_bytes(path: str, raw: bytes, out: IO[bytes]) -> Entry:
    out.write(raw)
    return Entry(path, len(raw), hashlib.sha256(raw).hexdigest(), time.time_ns(), 0o600)


def _whole_lines(file: IO[bytes], size: int) -> int:
    """The number of bytes up to the end of the last whole line."""
    end = size
    while end:
        begin = max(0, end - _CHUNK)
        file.seek(begin)
        part = file.read(end - begin)
        if (at := part.rfind(b"\n")) >= 0:
            return begin + at + 1
        end = begin
    return 0


def _check(connection) -> None:
    """Raise MemoryFault when the index is damaged."""
    if wrong := audit.quick_check(connection):
        raise MemoryFault(f"the index is damaged ({wrong[0]})")


# Restoring


def restore(archive: str | Path, home: Home, *, force: bool = False) -> Report:
    """Bring a backup back into a home that is empty, or is not there yet.

    The whole archive is read and checked first. With `force` a home that holds something is moved
    aside, to the name and the time with `before-restore` between; nothing is ever deleted. The
    vault and the index go where an option or the environment says, else where the settings in
    the archive say if that is inside the home, else to their usual places in it; `config.json`
    then says no other. The index is brought up to date with the files, or built anew from them.
    Raises MemoryFault, and then all is as it was.
    """
    begun = time.monotonic()
    archive = Path(archive).expanduser().absolute()
    contents = inspect(archive)
    work = _Restore(archive, contents, _target(home, contents))
    work.notes += _sweep({staged.parent for staged in work.staged.values()}, _RESTORE)
    aside = work.in_the_way()
    if aside and not force:
        raise MemoryFault(
            f"{aside[0]} is not empty", "restore to another --home, or move it aside with --force"
        )
    try:
        work.stage()
        work.place(aside)
    except OSError as error:
        raise _not_written(Path(error.filename or work.home.home), error) from error
    finally:
        work.clear_away()
    index = _bring_up(work.home, work.notes)
    return _report(work.home.home, contents, begun, work.links, index=index, notes=work.notes,
                   moved_aside=[str(path) for path in work.moved])  # fmt: skip


def _target(home: Home, contents: Contents) -> Home:
    """Where things are once they are restored."""

    root = Path(os.path.realpath(home.home))

    def place(name: str, usual: str) -> Path:
        if home.decided.get(name) not in (None, "default", "config.json"):
            return Path(os.path.realpath(getattr(home, name)))
        path = _stated(contents.config, name, root)
        return path if path and path != root and path.is_relative_to(root) else root / usual

    sources = contents.config.get("sources")
    sources = sources if isinstance(sources, list) else []
    return replace(
        home,
        home=root,
        db=place("db", "memory.db"),
        vault=place("vault", "vault"),
        sources=tuple(one for one in sources if isinstance(one, dict) and "path" in one),
    )


def _stated(config: dict, name: str, root: Path) -> Path | None:
    """The place that `config.json` states for the vault or the index."""
    stated = config.get(name)
    if not isinstance(stated, str) or not stated:
        return None
    return Path(os.path.normpath(root / Path(stated).expanduser()))


class _Restore:
    """One archive on its way into a home."""

    def __init__(self, archive: Path, contents: Contents, home: Home) -> None:
        self.archive = archive
        self.contents = contents
        self.home = home
        self.links = 0
        self.notes: list[str] = []
        self.moved: list[Path] = []
        name = durable.temporary_name(_RESTORE)
        self.targets = [home.home]
        self.targets += [one for one in (home.vault, home.db) if not _is_below(one, home.home)]
        # What is restored is prepared beside its place, to get there in one step. A disk that is
        # mounted there is another one than that around it, so that it has to be inside.
        self.staged = {
            one: one / name if os.path.ismount(one) else one.with_name(f"{name}-{one.name}")
            for one in self.targets
        }

    def in_the_way(self) -> list[Path]:
        """What would be overwritten."""
        found = []
        for target in self.targets:
            if target.is_dir() and not target.is_symlink():
                with os.scandir(target) as entries:
                    if any(entries):
                        found.append(target)
            elif os.path.lexists(target):
                found.append(target)
        return found

    def _place_of(self, path: str) -> Path:
        """Where a file of the archive is prepared."""
        part, _, rest = path.partition("/")
        place = {"vault": self.home.vault, "memory.db": self.home.db}.get(
            part, self.home.home / part
        )
        for target in reversed(self.targets):
            if _is_below(place, target):
                return self.staged[target] / place.relative_to(target) / rest
        raise AssertionError(path)

    def stage(self) -> None:
        """Write everything beside its place, on disk when this returns. Raises OSError."""
        for target in self.targets:
            durable.make_folder(target.parent)
            free = shutil.disk_usage(target.parent).free
            if self.contents.bytes > free:
                raise MemoryFault(
                    f"the backup needs {self.contents.bytes / 1e6:,.1f} MB, and "
                    f"{target.parent} has {free / 1e6:,.1f} MB free",
                    "nothing was changed; free some space",
                )
        durable.system.mkdir(self.staged[self.home.home], 0o700)
        missing = set(self.contents.entries)
        for name, stream in read(self.archive):
            if name != MANIFEST:
                self._stage_file(name, stream)
                missing.remove(name)
        if missing:
            raise self._changed()
        self._stage_links()
        self._settle_config()
        for staged in self.staged.values():
            if staged.is_dir():
                sync_tree(staged)
            elif staged.exists():
                sync_file(staged)

    def _stage_file(self, name: str, stream: IO[bytes]) -> None:
        entry = self.contents.entries.get(name)
        if entry is None:
            raise self._changed()
        full = self._place_of(name)
        durable.make_folder(full.parent)
        digest = hashlib.sha256()
        with Sink(full) as sink:
            for chunk in chunks(self.archive, stream):
                digest.update(chunk)
                sink.write(chunk)
        if digest.hexdigest() != entry.sha256:
            raise self._changed()
        os.chmod(full, entry.mode | 0o400)
        # Cards without a date have that of their file.
        os.utime(full, ns=(entry.mtime_ns, entry.mtime_ns))

    def _changed(self) -> MemoryFault:
        return MemoryFault(f"{self.archive} was changed while it was read", "try again")

    def _stage_links(self) -> None:
        """Make the links that stay inside the vault; the others are named."""
        for path, target in self.contents.links:
            parts = path.split("/")
            inside = os.path.normpath("/".join([*parts[:-1], target]))
            safe = (
                parts[0] == "vault"
                and len(parts) > 1
                and not {"", ".", ".."} & set(parts)
                and "\0" not in path + target
                and not os.path.isabs(target)
                and inside.startswith("vault/")
                and os.name != "nt"
            )
            full = self._place_of(path) if safe else None
            if full is not None:
                durable.make_folder(full.parent)
                # A link that was made before this one may lead elsewhere.
                safe = os.path.realpath(full.parent) == str(full.parent)
            if full is None or not safe or os.path.lexists(full):
                self.notes.append(f"the link {path} was left out: it leads to {target}")
                continue
            os.symlink(target, full)
            self.links += 1

    def _settle_config(self) -> None:
        """Let `config.json` not send anybody to where the vault and the index once were."""
        config = dict(self.contents.config)
        for name in ("db", "vault"):
            path = _stated(config, name, self.home.home)
            if path and path != getattr(self.home, name):
                stated = config.pop(name)
                self.notes.append(
                    f"config.json said {name}: {stated}; it is in its usual place now"
                )
        if config != self.contents.config:
            write_config(self._place_of("config.json"), config)

    def place(self, aside: list[Path]) -> None:
        """Give everything its name. What was there is moved aside, and back if that fails."""
        stamp = datetime.now(timezone.utc).strftime("%Y%m%d-%H%M%S")
        done: list[tuple[Path, Path]] = []

        def move(old: Path, new: Path) -> None:
            # Noted before: it may fail when the file has its new name already.
            done.append((old, new))
            durable.move(old, new)

        try:
            for path in aside:
                self._move_aside(path, stamp, move)
            for target, staged in self.staged.items():
                if staged.parent == target:
                    for name in sorted(os.listdir(staged)):
                        move(staged / name, target / name)
                elif staged.exists():
                    if target.is_dir():
                        os.rmdir(target)
                    move(staged, target)
        except BaseException:
            for old, new in reversed(done):
                if os.path.lexists(new) and not os.path.lexists(old):
                    with contextlib.suppress(OSError):
                        durable.move(new, old)
            raise

    def _move_aside(self, path: Path, stamp: str, move: Callable[[Path, Path], None]) -> None:
        if self.staged[path].parent == path:
            kept = path / f"before-restore-{stamp}"
            names = [name for name in os.listdir(path) if name != self.staged[path].name]
            for name in sorted(names):
                move(path / name, kept / name)
        else:
            kept = path.with_name(f"{path.name}.before-restore-{stamp}")
            move(path, kept)
            for suffix in ("-wal", "-shm") if path == self.home.db else ():
                if os.path.lexists(f"{path}{suffix}"):
                    move(Path(f"{path}{suffix}"), Path(f"{kept}{suffix}"))
        self.moved.append(kept)

    def clear_away(self) -> None:
        """Remove what was prepared and did not get its name."""
        for staged in self.staged.values():
            _remove(staged)


def _is_below(path: Path, folder: Path) -> bool:
    return path == folder or path.is_relative_to(folder)


def _bring_up(home: Home, notes: list[str]) -> str:
    """Bring the index in step with the files; says what it took."""
    sources = [Source(VAULT, str(home.vault))] if home.vault.is_dir() else []
    try:
        sources += configured(home)
    except MemoryFault as error:
        notes.append(error.error)
    there = home.db.exists()
    try:
        with write_lock(home.db):
            try:
                result = _in_step(home, sources)
                done = "checked" if there else "built from the files"
            except MemoryFault:
                result = rebuild(home.db, sources)
                result.notes += _in_step(home, sources).notes
                done = "built anew from the files"
    except MemoryFault as error:
        notes.append(f"the index could not be brought up to date: {error.error}")
        return "as it was; run `memory index`"
    notes += result.notes
    changes = result.added + result.updated + result.moved + result.removed
    return f"{done}, {changes} cards changed" if there and done == "checked" else done


def _in_step(home: Home, sources: list[Source]) -> SyncResult:
    result = SyncResult()
    with contextlib.closing(connect_write(home.db)) as connection, translated(home.db):
        _check(connection)
        migrate(connection)
        for source in sources:
            try:
                found = sync(connection, [source])
            except MemoryFault as error:
                # Somebody else's folder, which this machine need not have.
                result.notes.append(error.error)
                continue
            for name in ("added", "updated", "moved", "removed"):
                setattr(result, name, getattr(result, name) + getattr(found, name))
            result.notes += found.notes
        # The ledger of the archive may end before the one that the index had seen.
        audit.forget_ledger(connection)
        result.notes += project(connection, home.home / "ledger", cards_changed=True)
    return result
