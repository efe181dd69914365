"""What there is when a card is changed: by the index, or else by the files.

The index answers at a cost that does not grow with the vault. Where it cannot be used, or has not
seen all of the vault, the files themselves are read.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from .errors import Ambiguous, MemoryFault, NotFound
from .home import Home
from .index import named, numbers, read, seen
from .index.connection import fault, sqlite3, transaction
from .index.graph import replaces
from .index.kept import KeptOpen
from .index.links import fold
from .index.near import near
from .index.schema import is_current
from .index.single import index_card, unindex_card
from .ledger.writer import Ledger
from .sources import VAULT
from .text.similar import NEAR_DUPLICATE, jaccard
from .vault.card import Card, parse_card
from .vault.kinds import KINDS
from .vault.names import SUFFIX, file_name, numbered
from .vault.sources import Source, scan
from .vault.sources import read as read_file
from .vault.writer import Trashed, Vault

#: Near-duplicates are looked for among so many of the best hits.
SIMILAR_HITS = 10

#: How long a change waits for another that writes into the index, in seconds. It can do without:
#: others may be waiting for the lock of the vault meanwhile.
INDEX_PATIENCE = 5.0

# So many changes that the index missed are made up for one by one; for more the vault is read.
_MISSED = 100

# A title that several cards have is numbered; so far a gap in the numbers is looked over.
_GAP = 3

# SQLite's errors that pass: busy, locked, read-only, I/O, full, cannot be opened.
_PASSING = {
    5: errno.EBUSY, 6: errno.EBUSY, 8: errno.EROFS, 10: errno.EIO, 13: errno.ENOSPC,
    14: errno.EACCES,
}  # fmt: skip

_FOLLOWS = "the next change takes it in, and so does `memory index`"


@dataclass(frozen=True, slots=True)
class Found:
    """A card of the vault with its file read; `id` is its row, if it has one."""

    path: str
    ref: str
    card: Card
    id: int | None


class Known:
    """The cards of the home, and their index, which follows what is changed.

    The caller holds the lock of the vault (`lock.vault_lock`). `follow()` brings the index in step
    with the whole vault, and says whether it could. Unless `whole`, an earlier change was cut
    short, and nobody has looked yet what it did. `kept` holds the index open for the next change.
    Without `secrets`, cards that are kept out of the index are unknown.
    """

    def __init__(
        self,
        home: Home,
        vault: Vault,
        ledger: Ledger,
        follow: Callable[[], bool],
        whole: bool = True,
        kept: KeptOpen | None = None,
        secrets: bool = True,
    ) -> None:
        self.home = home
        self.vault = vault
        self.ledger = ledger
        self._follow = follow
        self._whole = whole
        self._secrets = secrets
        self._kept = KeptOpen() if kept is None else kept
        self._own_index = kept is None
        # None while the index cannot be used, and then why.
        self._connection: sqlite3.Connection | None = None
        self._trouble: MemoryFault | OSError | None = None
        # Whether the index has every card of the vault; if not, the files are read.
        self._complete = False
        # How far the ledger went, and the references in what the index had not seen of it.
        self._ends: dict[str, int] = {}
        self._used: list[str] = []

    def open(self) -> None:
        """Open the index, and make up for what it has missed. Never raises for its sake."""
        try:
            self._open()
        except (MemoryFault, sqlite3.Error) as error:
            self.lose_index(error)

    def close(self) -> None:
        """Leave the index as it was found."""
        if self._own_index or (self._connection is not None and self._connection.in_transaction):
            self._kept.release()
        self._connection = None

    @property
    def index(self) -> sqlite3.Connection:
        """The index, for what cannot do without. Raises MemoryFault, and OSError where waiting
        will help."""
        if self._connection is None:
            raise self._trouble or MemoryFault(f"{self.home.db} cannot be used")
        return self._connection

    def lose_index(self, error: Exception) -> None:
        """Go on without the index."""
        self._trouble = self.refusal(error)
        self._complete = False
        self._connection = None
        self._kept.release()

    def refusal(self, error: Exception) -> MemoryFault | OSError:
        """What an error of the index means: an OSError where it will pass, as a full disk does, so
        that the change can wait for that; else a MemoryFault."""
        cause = error if isinstance(error, (sqlite3.Error, OSError)) else error.__cause__
        told = error if isinstance(error, MemoryFault) else fault(error, self.home.db)
        number = None
        if isinstance(cause, OSError):
            number = cause.errno
        elif isinstance(cause, sqlite3.Error):
            number = _PASSING.get(getattr(cause, "sqlite_errorcode", 0) & 0xFF)
        if number is None:
            return told
        reason = "the index is busy" if number == errno.EBUSY else str(cause)
        if isinstance(cause, OSError):
            reason = cause.strerror or reason
        return OSError(number, reason, str(self.home.db))

    def behind(self, error: Exception) -> str:
        """What to say when the index could not follow a change."""
        refusal = self.refusal(error)
        if isinstance(refusal, OSError):
            return f"the index could not follow: {refusal.strerror or refusal}; {_FOLLOWS}"
        told = f"the index could not follow: {refusal.error}; {refusal.hint}"
        return told if "memory index" in told else f"{told}; then `memory index` takes it in"

    # What there is

    def find(self, reference: str, secret: bool = False) -> dict[str, Any]:
        """The card that `reference` means, as `read.card` gives it; with `secret` also one that is
        kept out of the index. Raises NotFound and Ambiguous."""
        card = self._find(reference, secret)
        if card["source"] == VAULT and not (self.vault.root / card["path"]).exists():
            # Somebody moved it, or took it away.
            self._complete = self._follow()
            card = self._find(reference, secret)
        return card

    def _find(self, reference: str, secret: bool) -> dict[str, Any]:
        connection = self.index
        ids = read.find_cards(connection, reference, read.roots(connection))
        if not ids and secret and self._secrets and read.has_secret(connection):
            from .index.secret import secret_index
            from .index.sync import stored_sources

            hidden = secret_index(connection, stored_sources(connection))
            with contextlib.closing(hidden):
                ids = read.find_cards(hidden, reference)
                return _only(hidden, reference, ids) | {"id": None}
        return _only(connection, reference, ids)

    def own(self, reference: str) -> dict[str, Any]:
        """As `find`, of cards of the vault alone, secret ones too."""
        card = self.find(reference, secret=True)
        if card["source"] != VAULT:
            raise MemoryFault(
                f"{card['ref']} belongs to the source {card['source']!r}, which is only read",
                f"supersede it with a card of your own: memory supersede {card['ref']} ...",
            )
        return card

    def target(self, reference: str) -> str:
        """The reference to write for the target of a relation. Raises NotFound."""
        if self._connection is not None and self._complete:
            return str(self.find(reference, secret=True)["ref"])
        name = fold(reference)
        for one in self._told():
            if one.ref and name in (fold(one.ref), fold(one.path), fold(one.card.title)):
                return one.ref
        if self._connection is not None:
            return str(self.find(reference)["ref"])
        raise NotFound(
            f"no card of the vault answers to {reference!r}, and there is no index of the others",
            "mend the index, or leave the relation out",
        )

    def replaces(self, ref: str, type: str, target: str) -> bool:
        """Whether a link of `type` would close a circle of cards that replace each other."""
        if type not in ("supersedes", "superseded_by") or self._connection is None:
            return False
        newer, older = (ref, target) if type == "supersedes" else (target, ref)
        return replaces(self._connection, older, newer)

    def namesakes(self, title: str) -> list[Found]:
        """The cards of the vault with an equal title. Raises sqlite3.Error."""
        key = fold(title)
        if self._connection is None or not self._complete:
            return [one for one in self._told() if fold(one.card.title) == key]
        rows = named.cards_named(self._connection, VAULT, title)
        rows += [(None, path, None) for path in self._secret_namesakes(title)]
        found = []
        for id, path, ref in sorted(rows, key=lambda row: row[1]):
            with contextlib.suppress(NotFound, OSError):
                card = parse_card(self.vault.read(path), path)
                if fold(card.title) == key:
                    found.append(Found(path, ref or card.ref or "", card, id))
        return found

    def number(self, prefix: str) -> str:
        """The next free reference. The card that gets it takes it: if that is not written, it
        stays free. Raises sqlite3.Error."""
        used = self._used if self._complete else self._all_refs()
        if self._connection is None:
            return numbers.reference(prefix, numbers.highest(prefix, used) + 1)
        return numbers.following(self._connection, prefix, used)

    def taken(self) -> Callable[[str], bool] | None:
        """Says whether a card has a path, by its `name_key`; None when the index does not know."""
        connection = self._connection
        if connection is None or not self._complete:
            return None

        return lambda key: named.is_named(connection, VAULT, key)

    def similar(self, title: str, body: str) -> list[dict[str, object]]:
        """The cards that say nearly the same, with their scores, the most alike first."""
        if self._connection is None:
            return []
        text = f"{title}\n{body}"
        found: list[dict[str, object]] = []
        with contextlib.suppress(sqlite3.Error):
            for ref, path, other_title, other_body in near(self._connection, text, SIMILAR_HITS):
                score = jaccard(text, f"{other_title}\n{other_body}")
                if score >= NEAR_DUPLICATE:
                    found.append({"ref": ref, "path": path, "score": round(score, 3)})
        return sorted(found, key=lambda one: -one["score"])

    # The index follows

    def put(self, path: str, data: bytes, card: Card | None, recorded: bool) -> int | None:
        """Put the file at `path`, which holds `data` now and reads as `card`, into the index; gives
        its row. `recorded` says that the ledger tells of it. Raises MemoryFault, sqlite3.Error and
        OSError."""
        mtime_ns = (self.vault.root / path).stat().st_mtime_ns
        return index_card(self.index, VAULT, path, data, mtime_ns, self._followed(recorded), card)

    def take_out(self, path: str, recorded: bool) -> None:
        """Take the file at `path` out of the index. As `put`."""
        unindex_card(self.index, VAULT, path, self._followed(recorded))

    def project(self) -> None:
        """Let the index follow the ledger. As `put`."""
        from .index.project import project

        project(self.index, self.ledger.folder)

    def _followed(self, recorded: bool) -> dict[str, int] | None:
        """How far the index has followed the ledger with what is written now."""
        if not recorded or not self._complete:
            return None
        return seen.grown_by_us(self._ends, self.ledger.folder, self.ledger.host)

    def _open(self) -> None:
        self._connection = connection = self._kept.connection(self.home.db)
        connection.execute(f"pragma busy_timeout = {int(INDEX_PATIENCE * 1000)}")
        if is_current(connection):
            from .index.functions import register

            register(connection)
        else:
            from .index.migrations import migrate

            migrate(connection)
        has_seen = seen.has_seen(connection, VAULT, str(self.home.vault))
        self._complete = self._whole and (has_seen or self._follow())
        try:
            if not has_seen and not self._complete:
                with transaction(connection):
                    seen.announce(connection, self._source())
            self._catch_up(connection)
        except sqlite3.OperationalError as error:
            # Busy, or the disk is full: it can be read, and the rest is in the files.
            self._complete = False
            self._hurry(error)

    def _catch_up(self, connection: sqlite3.Connection) -> None:
        """Take in what the index missed when it could not be written."""
        growth = seen.growth(connection, self.ledger.folder)
        self._ends = growth.ends
        self._used = [event.ref for event in growth.changes if event.ref]
        paths = dict.fromkeys(
            path
            for event in growth.changes
            if event.source == VAULT
            for path in (event.path, event.data.get("old_path", event.path))
        )
        if len(paths) > _MISSED or None in paths:
            # What is secret has no path in the ledger.
            self._complete = self._follow()
        else:
            for path in paths:
                self._bring(connection, str(path))
        counted = numbers.is_counted(connection)
        if growth.changes or not counted:
            with transaction(connection):
                if not counted:
                    numbers.refresh(connection, trashed_refs(self.vault))
                numbers.keep(connection, self._used)
                seen.follow(connection, self._ends)

    def _bring(self, connection: sqlite3.Connection, path: str) -> None:
        """Bring the index in step with one path of the vault."""
        try:
            data = self.vault.read(path)
            mtime_ns = (self.vault.root / path).stat().st_mtime_ns
        except NotFound:
            unindex_card(connection, VAULT, path)
        except (MemoryFault, OSError):
            self._complete = False
        else:
            index_card(connection, VAULT, path, data, mtime_ns)

    def _hurry(self, error: Exception) -> None:
        """Wait for nobody any more."""
        self._trouble = self.refusal(error)
        if self._connection is not None:
            self._connection.execute("pragma busy_timeout = 0")

    def _secret_namesakes(self, title: str) -> list[str]:
        """The paths of secret cards that were named after this title."""
        if not self._secrets or not named.has_secret(self.index, VAULT):
            return []
        stem, found = file_name(title), []
        for kind in KINDS:
            number = latest = 1
            while number <= latest + _GAP:
                path = f"{kind.folder}/{numbered(stem, number)}{SUFFIX}"
                if named.is_secret(self.index, VAULT, path):
                    found.append(path)
                    latest = number
                number += 1
        return found

    def _source(self) -> Source:
        return Source(VAULT, str(self.home.vault))

    def _files(self) -> Iterator[Found]:
        """Every card of the vault, read: what to do without an index."""
        source = self._source()
        if not self.home.vault.is_dir():
            return
        for file in scan(source)[0]:
            with contextlib.suppress(OSError):
                card = parse_card(read_file(file, source), file.path)
                yield Found(file.path, card.ref or "", card, None)

    def _told(self) -> Iterator[Found]:
        """Those of them that may be known."""
        return (one for one in self._files() if self._secrets or one.card.sensitivity != "secret")

    def _all_refs(self) -> list[str]:
        from .ledger.reader import read as read_ledger

        refs = [one.ref for one in self._files()]
        refs += [str(event.ref) for event, _ in read_ledger(self.ledger.folder)]
        return refs + trashed_refs(self.vault)


def trashed_cards(vault: Vault) -> Iterator[tuple[Trashed, Card]]:
    """The files in the trash with the cards that they are. Raises OSError when it cannot be listed."""
    for item in vault.trashed():
        with contextlib.suppress(OSError):
            data = (vault.root / item.trash_path).read_bytes()
            yield item, parse_card(data, item.path)


def trashed_refs(vault: Vault) -> list[str]:
    """The references of the cards in the trash: they are not given again."""
    return [card.ref for _, card in trashed_cards(vault) if card.ref]


def _only(connection, reference: str, ids: list[int]) -> dict[str, Any]:
    """The card with the one id in `ids`. Raises NotFound and Ambiguous."""
    if not ids:
        raise NotFound(
            f"no card answers to {reference!r}",
            "give a ref, a row id, a path or an exact title; `memory search` finds them",
        )
    if len(ids) > 1:
        raise Ambiguous(f"{len(ids)} cards answer to {reference!r}", read.titles(connection, ids))
    return read.card(connection, ids[0])
