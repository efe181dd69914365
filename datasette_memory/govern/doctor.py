"""What may be wrong with a memory, a line and a remedy each. Nothing is changed."""

import contextlib
import hashlib
import os
import random
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

from .. import home as homes
from ..durable import TEMPORARY
from ..errors import MemoryFault
from ..home import Home
from ..index import audit
from ..index.connection import NoIndex, connect_read, sqlite3, translated
from ..index.rows import secret_path
from ..index.schema import SCHEMA_VERSION, missing_triggers
from ..ledger.reader import read as read_ledger
from ..pending import Pending
from ..sources import VAULT, configured
from ..text.tokenise import TOKENIZER_VERSION
from ..vault.sources import Source, read, scan
from . import evidence
from .backup import unfinished

OK, WARNING, ERROR = "ok", "warning", "error"

#: The oldest SQLite that the index works with.
SQLITE_MINIMUM = (3, 40)

#: What is looked at, at the most, so that the doctor is quick in a large memory.
MAX_CHANGED_READ = 1_000
MAX_EVENTS = 200_000
EVIDENCE_SAMPLE = 200
EVIDENCE_BYTES = 64_000_000
MAX_ENTRIES = 200_000
MAX_INDEX = 100_000_000

#: Bytes that should be free; and as much again as the index, to build it anew.
MIN_FREE = 100_000_000

#: Seconds after which a temporary file belongs to nobody who is still writing.
_LEFT_OVER = 60.0
_NAMED = 3


@dataclass(frozen=True, slots=True)
class Check:
    """One finding. `level` is `ok`, `warning` or `error`, and `ok` whether it is the first;
    `what` and `remedy` are a line each, the remedy empty when all is well."""

    name: str
    ok: bool
    level: str
    what: str
    remedy: str = ""

    def to_dict(self) -> dict[str, object]:
        """The object that every surface returns."""
        return asdict(self)


def checks(home: Home) -> list[Check]:
    """Every check of `CHECKS`, in that order. Never raises: what cannot be checked is an error."""
    found: list[Check] = []
    for name, check in CHECKS:
        try:
            found += check(home)
        except MemoryFault as error:
            found.append(_wrong(name, error.error, error.hint or "mend that first"))
        except Exception as error:
            what = f"cannot be checked: {error or type(error).__name__}"
            found.append(_wrong(name, _line(what), "mend that first, then ask again"))
    return found


def examine(
    home: str | None = None, db: str | None = None, vault: str | None = None
) -> list[Check]:
    """`checks` of the home that `home.resolve` finds; never raises either.

    When `config.json` cannot be understood that is the first finding, and the others are made as
    if there were none.
    """
    try:
        try:
            return checks(homes.resolve(home, db, vault))
        except MemoryFault as error:
            broken = _wrong("config.json", error.error, error.hint or "mend it by hand")
        rest = checks(homes.resolve(home, db, vault, config={}))
    except Exception as error:
        return [_wrong("paths", _line(f"cannot be found: {error}"), "name them with --home")]
    return [broken, *(check for check in rest if check.name != "config.json")]


def _fine(name: str, what: str) -> Check:
    return Check(name, True, OK, what)


def _odd(name: str, what: str, remedy: str) -> Check:
    return Check(name, False, WARNING, what, remedy)


def _wrong(name: str, what: str, remedy: str) -> Check:
    return Check(name, False, ERROR, what, remedy)


def _line(text: str) -> str:
    return " ".join(text.split())[:500]


def _some(items: Iterable[object], count: int | None = None) -> str:
    """The first few, and how many more there are."""
    items = list(items)
    count = len(items) if count is None else count
    named = ", ".join(map(str, items[:_NAMED]))
    return f"{named} and {count - _NAMED} more" if count > _NAMED else named


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


# Where things are


def _config(home: Home) -> Iterator[Check]:
    homes.read_config(home.config)
    configured(home)
    if home.config.exists():
        yield _fine("config.json", f"{home.config} is valid")
    else:
        yield _fine("config.json", "there is none: the defaults are in force")


def _paths(home: Home) -> Iterator[Check]:
    yield _place("home", home.home, "the first card makes it: memory capture")
    yield _place("vault", home.vault, f"the first card makes it, or: mkdir -p {home.vault}")
    if home.db.parent != home.home:
        yield _place("index folder", home.db.parent, "`memory index` makes it")


def _place(name: str, folder: Path, remedy: str) -> Check:
    if not folder.exists():
        return _odd(name, f"{folder} does not exist", remedy)
    if not folder.is_dir():
        return _wrong(name, f"{folder} is not a folder", "move it away, or name another place")
    missing = [
        what
        for what, mode in (("read", os.R_OK), ("entered", os.X_OK), ("written", os.W_OK))
        if not os.access(folder, mode)
    ]
    if missing:
        remedy = "check the permissions, and whether the disk is mounted read-only"
        return _wrong(name, f"{folder} cannot be {' or '.join(missing)}", remedy)
    return _fine(name, f"{folder} can be read and written")


def _space(home: Home) -> Iterator[Check]:
    index = home.db.stat().st_size if home.db.exists() else 0
    needed = max(MIN_FREE, index)
    disks = {
        os.stat(folder).st_dev: folder
        for folder in map(_existing, (home.db.parent, home.vault, home.home))
    }
    for folder in disks.values():
        free = shutil.disk_usage(folder).free
        what = f"{free / 1e6:,.0f} MB free in {folder}"
        if free < needed:
            remedy = f"free some: {needed / 1e6:,.0f} MB let the index be built anew"
            yield (_wrong if free < MIN_FREE / 10 else _odd)("disk space", what, remedy)
        else:
            yield _fine("disk space", what)


def _existing(folder: Path) -> Path:
    """The folder, or the nearest above it that is there."""
    return next((one for one in (folder, *folder.parents) if one.is_dir()), folder)


def _left_over(home: Home) -> Iterator[Check]:
    roots = [home.home, home.vault] + ([] if home.db.parent == home.home else [home.db.parent])
    found = list(islice(_temporary(roots), 1_000))
    # A restore prepares its files beside the place that they get, or inside it.
    places = dict.fromkeys(
        folder for place in (home.home, home.vault, home.db) for folder in (place, place.parent)
    )
    found += [path for path, forsaken in unfinished(places) if forsaken]
    if found:
        yield _odd(
            "temporary files",
            f"{_plural(len(found), 'unfinished file')} left by a program that died: {_some(found)}",
            "delete them; nothing is in them that was finished",
        )
    else:
        yield _fine("temporary files", "none are left over")
    if kept := sorted(home.db.parent.glob(f"{home.db.name}.damaged*")):
        yield _odd(
            "damaged indexes",
            f"kept when the index was built anew: {_some(path.name for path in kept)}",
            f"delete them when you miss nothing; they are in {home.db.parent}",
        )


def _temporary(roots: list[Path]) -> Iterator[Path]:
    seen = 0
    done: set[str] = set()
    for root in roots:
        for folder, folders, names in os.walk(root):
            if (real := os.path.realpath(folder)) in done:
                folders.clear()
                continue
            done.add(real)
            seen += len(names)
            if seen > MAX_ENTRIES:
                return
            for name in names:
                if name.startswith(TEMPORARY):
                    path = Path(folder, name)
                    with contextlib.suppress(OSError):
                        if abs(time.time() - path.lstat().st_mtime) > _LEFT_OVER:
                            yield path


# SQLite and the index


def _sqlite(home: Home) -> Iterator[Check]:
    version = sqlite3.sqlite_version
    if tuple(int(part) for part in version.split(".")[:2]) < SQLITE_MINIMUM:
        least = ".".join(map(str, SQLITE_MINIMUM))
        remedy = "use a newer Python, or: pip install pysqlite3-binary"
        yield _wrong("SQLite", f"version {version} is older than {least}", remedy)
        return
    try:
        with contextlib.closing(sqlite3.connect(":memory:")) as connection:
            connection.execute("create virtual table words using fts5(text)")
    except sqlite3.Error:
        remedy = "use another Python, or: pip install pysqlite3-binary"
        yield _wrong("SQLite", f"version {version} was built without FTS5", remedy)
    else:
        yield _fine("SQLite", f"version {version}, with FTS5")


def _opens(home: Home) -> Iterator[Check]:
    name = "index"
    try:
        connection = connect_read(home.db)
    except NoIndex as error:
        yield _odd(name, error.error, error.hint)
        return
    except UnicodeError:
        yield _wrong(name, f"{home.db} is damaged", "memory verify --repair")
        return
    with contextlib.closing(connection), translated(home.db):
        schema = audit.meta(connection, "schema_version")
        tokens = audit.meta(connection, "tokenizer_version")
        if schema != SCHEMA_VERSION or tokens != TOKENIZER_VERSION:
            what = f"{home.db} was built by another version of this program"
            yield _odd(name, what, "memory index")
        elif lost := missing_triggers(connection):
            what = f"{home.db} lacks triggers: {', '.join(lost)}"
            yield _wrong(name, what, "memory index, which makes them again")
        elif (found := _whole(home, connection)).ok and not os.access(home.db, os.W_OK):
            yield _wrong(name, f"{home.db} cannot be written", "check its permissions")
        else:
            yield found


def _whole(home: Home, connection) -> Check:
    """Whether the index is damaged, by SQLite's and FTS5's own checks, if that is quickly seen."""
    what = f"{home.db} opens, {_plural(audit.count_cards(connection), 'card')}"
    if home.db.stat().st_size > MAX_INDEX:
        return _fine("index", f"{what}; too large to be checked here: see `memory verify --deep`")
    with audit.copied(connection) as copy:
        wrong = audit.integrity_check(copy)
        if not wrong and not audit.full_text_is_in_step(copy):
            wrong = ["its full text is not that of its cards"]
    if wrong:
        return _wrong("index", _line(f"{home.db} is damaged: {wrong[0]}"), "memory verify --repair")
    return _fine("index", what)


def _of_index(check: Callable[[Home, "sqlite3.Connection"], Iterable[Check]]):
    """The check of an index that can be opened; of one that cannot `_opens` tells."""

    def run(home: Home) -> Iterator[Check]:
        try:
            connection = connect_read(home.db)
        except (MemoryFault, UnicodeError):
            return
        with contextlib.closing(connection), translated(home.db):
            yield from check(home, connection)

    return run


def _sources_of(home: Home) -> list[Source]:
    vault = [Source(VAULT, str(home.vault))] if home.vault.is_dir() else []
    return [*vault, *configured(home)]


def _sources(home: Home) -> Iterator[Check]:
    sources = configured(home)
    gone = [f"{one.name} ({one.root})" for one in sources if not os.path.exists(one.root)]
    if gone:
        yield _odd(
            "sources",
            f"missing: {_some(gone)}; their cards stay in the index",
            "mount the disk that holds them, or take them out of config.json",
        )
    elif sources:
        yield _fine("sources", f"{_plural(len(sources), 'source')}, and all are there")


@_of_index
def _age(home: Home, connection) -> Iterator[Check]:
    changed: dict[str, int] = {"new": 0, "changed": 0, "gone": 0}
    to_read = MAX_CHANGED_READ
    for source in _sources_of(home):
        known = audit.known_files(connection, source.name)
        with contextlib.suppress(MemoryFault):
            to_read = _count_changes(source, known, changed, to_read)
    last = audit.last_import(connection)
    when = f"since {last}" if last else "ever"
    if any(changed.values()):
        counts = ", ".join(f"{count} {what}" for what, count in changed.items() if count)
        yield _odd("age of the index", f"files {when}: {counts}", "memory index")
    else:
        yield _fine("age of the index", f"no file has changed {when}")


def _count_changes(
    source: Source,
    known: dict[str, tuple[int, int, str | None]],
    changed: dict[str, int],
    to_read: int,
) -> int:
    """Count what differs from the files that the index knows; gives how many may yet be read."""
    files, skipped = scan(source)
    for file in files:
        key = file.path if file.path in known else secret_path(source.name, file.path)
        row = known.pop(key, None)
        if row is None:
            changed["new"] += 1
        elif row[:2] != (file.mtime_ns, file.size):
            # The time alone says little: a card that was just written has none in the index.
            if to_read > 0:
                to_read -= 1
                with contextlib.suppress(OSError):
                    if hashlib.sha256(read(file, source)).hexdigest() == row[2]:
                        continue
            changed["changed"] += 1
    unread = tuple(one.path for one in skipped)
    below = tuple(f"{path}/" for path in unread)
    # A source that is suddenly empty keeps its cards, and so do folders that cannot be read.
    if files:
        changed["gone"] += sum(not (path in unread or path.startswith(below)) for path in known)
    return to_read


@_of_index
def _faulty(home: Home, connection) -> Iterator[Check]:
    count, first = audit.faults(connection, _NAMED)
    if count:
        named = [f"{source}/{path} ({fault})" for source, path, fault in first]
        yield _odd(
            "files",
            _line(f"{_plural(count, 'file')} with a fault: {_some(named, count)}"),
            "mend them; all of them: select * from file_faults",
        )
    else:
        yield _fine("files", "every file could be read without a fault")


@_of_index
def _duplicates(home: Home, connection) -> Iterator[Check]:
    if found := audit.duplicate_refs(connection, 100):
        named = [
            f"{ref} ({_plural(count, 'card')} of {source}: {first}, {last})"
            for source, ref, count, first, last in found
        ]
        yield _odd(
            "references",
            f"given to several cards: {_some(named)}",
            "the card created first keeps it; give the others an `id` of their own",
        )
    else:
        yield _fine("references", "no two cards of a source have the same")


@_of_index
def _raw_texts(home: Home, connection) -> Iterator[Check]:
    named = (
        (sha256, f"a raw text of {ref}")
        for source, ref, sha256 in audit.raw_texts(connection)
        if source == VAULT
    )
    yield from _gone(home, named)


# What stands beside the index


def _pending(home: Home) -> Iterator[Check]:
    pending = Pending(home.home / "pending")
    if waiting := pending.paths():
        what = f"{_plural(len(waiting), 'change')} could not be made yet"
        yield _odd("pending", what, "memory sync-pending")
    else:
        yield _fine("pending", "no change waits to be made")
    if dead := pending.dead():
        what = f"{_plural(len(dead), 'change')} failed too often and were laid aside"
        remedy = f"each holds its reason: {dead[0].parent}; move one up a folder to try it again"
        yield _wrong("pending", what, remedy)


def _ledger(home: Home) -> Iterator[Check]:
    folder = home.home / "ledger"
    reading = read_ledger(folder)
    count, earlier = 0, []
    for event, _ in islice(reading, MAX_EVENTS):
        count += 1
        earlier += evidence.earlier_text(event)
    if reading.faults:
        named = [
            f"{one.file}:{one.line} {one.reason}" if one.line else f"{one.file} {one.reason}"
            for one in reading.faults
        ]
        what = f"{_plural(len(named), 'line')} cannot be read and are passed over: {_some(named)}"
        yield _odd("ledger", _line(what), f"nothing else is lost; the files are in {folder}")
    else:
        more = " at least" if count == MAX_EVENTS else ""
        yield _fine("ledger", f"{_plural(count, 'event')}{more}, every line whole")
    yield from _gone(home, earlier)


def _gone(home: Home, named: Iterable[evidence.Named]) -> Iterator[Check]:
    if gone := list(evidence.missing(home.home / "evidence", named)):
        what = f"{_plural(len(gone), 'text')} of {home.home / 'evidence'}: {_some(gone)}"
        yield _wrong("evidence", what, "put the folder back from a backup")


def _evidence(home: Home) -> Iterator[Check]:
    folder = home.home / "evidence"
    known = list(islice(evidence.texts(folder), MAX_ENTRIES))
    sample = random.sample(known, min(EVIDENCE_SAMPLE, len(known)))
    faults: list[str] = []
    looked_at = size = 0
    for sha256, path in sample:
        if size > EVIDENCE_BYTES:
            break
        with contextlib.suppress(OSError):
            size += path.stat().st_size
        looked_at += 1
        if fault := evidence.fault_of(folder, sha256, path):
            faults.append(fault)
    if faults:
        yield _wrong(
            "evidence",
            f"{len(faults)} of {looked_at} texts looked at: {_some(faults)}",
            "put them back from a backup; `memory verify --deep` looks at all",
        )
    else:
        whole = "all are what they were" if looked_at == len(known) else "a sample is whole"
        yield _fine("evidence", f"{_plural(len(known), 'text')}, {looked_at} looked at: {whole}")


#: Each gives what it found of a home; another part of the project adds its own at the end.
CHECKS: tuple[tuple[str, Callable[[Home], Iterable[Check]]], ...] = (
    ("config.json", _config),
    ("paths", _paths),
    ("disk space", _space),
    ("SQLite", _sqlite),
    ("index", _opens),
    ("sources", _sources),
    ("age of the index", _age),
    ("files", _faulty),
    ("references", _duplicates),
    ("evidence", _raw_texts),
    ("pending", _pending),
    ("ledger", _ledger),
    ("evidence", _evidence),
    ("temporary files", _left_over),
)
