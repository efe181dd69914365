"""Changes to cards: the file first, then the ledger, then the index.

The file is the truth. When the ledger or the index cannot follow, the change stands, and the
answer says so; the next change, or the next `index`, brings the index up to date.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import durable
from .errors import Ambiguous, MemoryFault, NotFound
from .home import Home
from .index import numbers, read, seen
from .index.connection import connect_write, fault, sqlite3, transaction
from .index.links import fold, hashed_name
from .index.near import near
from .index.rows import file_time, secret_path
from .index.schema import is_current
from .index.single import index_card, unindex_card
from .ledger.events import cleaned
from .ledger.writer import Ledger
from .sources import VAULT
from .text.secrets import find_personal, find_secrets
from .text.similar import NEAR_DUPLICATE, jaccard, weight
from .vault.card import DEFAULT_SENSITIVITY, MAX_WORD, SENSITIVITIES, Card, parse_card
from .vault.compose import new_text, one_line
from .vault.kinds import DEFAULT_KIND, KINDS, by_name
from .vault.names import SUFFIX, file_name, numbered
from .vault.sources import Source, scan
from .vault.sources import read as read_file
from .vault.writer import Vault, text_of

if TYPE_CHECKING:
    from .evidence.store import EvidenceStore

#: A body that says less than this is no memory; see `text.similar.weight`.
MIN_WEIGHT = 20

#: Near-duplicates are looked for among so many of the best hits.
SIMILAR_HITS = 10

#: How long a change waits for another that writes into the index, in seconds. It can do without:
#: others may be waiting for the lock of the vault meanwhile.
INDEX_PATIENCE = 5.0

# So many changes that the index missed are made up for one by one; for more the vault is read.
_MISSED = 100

# A title that several cards have is numbered; so far a gap in the numbers is looked over.
_NAMESAKES = 3

# SQLite's errors that pass: busy, locked, read-only, I/O, full, cannot be opened.
_PASSING = {
    5: errno.EBUSY, 6: errno.EBUSY, 8: errno.EROFS, 10: errno.EIO, 13: errno.ENOSPC,
    14: errno.EACCES,
}  # fmt: skip

_TOO_LITTLE = (
    f"the body says too little: under {MIN_WEIGHT} characters, a Chinese one counting as two"
)
_FOLLOWS = "the next change takes it in, and so does `memory index`"
_CREDENTIAL = "it holds what looks like a credential"


@dataclass(frozen=True, slots=True)
class NewCard:
    """What a new card says, in the form of `fields.checked`. `relates` are `(type, reference)`;
    `raw` is a long original."""

    title: str
    body: str
    kind: str | None = None
    summary: str | None = None
    tags: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    project: str | None = None
    agent: str | None = None
    session: str | None = None
    confidence: float | None = None
    sensitivity: str | None = None
    priority: int | None = None
    ttl: int | None = None
    valid_from: str | None = None
    valid_until: str | None = None
    relates: tuple[tuple[str, str], ...] = ()
    raw: str | None = None


#: The fields of a card that are frontmatter under their own name.
_FRONTMATTER = tuple(
    one.name for one in fields(NewCard) if one.name not in ("title", "body", "relates", "raw")
)


@dataclass(slots=True)
class Change:
    """What became of a change; `to_dict` leaves out what there is nothing to say about.

    `status` is `created`, `updated`, `superseded`, `linked`, `unlinked`, `trashed`, `restored`,
    `unchanged`, `pending`, `conflict` or `rejected`. `indexed` is False when the index could not
    follow; `warning` then says why, and what to do.
    """

    status: str
    id: int | None = None
    ref: str | None = None
    path: str | None = None
    indexed: bool = False
    version: int | None = None
    reason: str | None = None
    warning: str | None = None
    conflict: bool | None = None
    existing_path: str | None = None
    collision_paths: list[str] | None = None
    metadata_differs: bool | None = None
    secrets_found: list[dict[str, object]] | None = None
    personal_found: list[dict[str, object]] | None = None
    warnings: list[str] = field(default_factory=list)
    similar: list[dict[str, object]] | None = None
    supersedes: str | None = None
    evidence: str | None = None
    trash_path: str | None = None
    pending_path: str | None = None
    hint: str | None = None

    def warn(self, text: str) -> None:
        """Add to `warning`."""
        self.warning = f"{self.warning}; {text}" if self.warning else text

    def to_dict(self) -> dict[str, object]:
        """The object that every surface returns."""
        always = ("status", "id", "ref", "path", "indexed")
        found = {one.name: getattr(self, one.name) for one in fields(self)}
        return {
            key: value for key, value in found.items() if key in always or value not in (None, [])
        }


class Changes:
    """The changes of one memory, made by `by`: `{surface, agent, session}`.

    A context: it opens the index, and makes up for what that has missed. The caller holds the lock
    of the vault (`lock.vault_lock`). `follow()` brings the index in step with the whole vault, and
    says whether it could. `queued` is when the change was asked for, if it had to wait. Unless
    `whole`, an earlier change was cut short, and nobody has looked yet what it did.
    """

    def __init__(
        self,
        home: Home,
        by: Mapping[str, str | None],
        follow: Callable[[], bool] = lambda: False,
        queued: str | None = None,
        whole: bool = True,
    ) -> None:
        self.home = home
        self.by = dict(by)
        self.queued = queued
        self.vault = Vault(home.vault)
        self.ledger = Ledger(home.home / "ledger")
        #: Whether the ledger holds all that was done.
        self.recorded = True
        self._follow = follow
        # None while the index cannot be used, and then why.
        self._connection: sqlite3.Connection | None = None
        self._trouble: MemoryFault | OSError | None = None
        # Whether the index has every card of the vault; if not, the files are read.
        self._complete = False
        self._whole = whole
        self._ends: dict[str, int] = {}
        self._used: list[str] = []

    @functools.cached_property
    def evidence(self) -> EvidenceStore:
        """The earlier texts and the long originals."""
        from .evidence.store import EvidenceStore

        return EvidenceStore(self.home.home / "evidence")

    def __enter__(self) -> Changes:
        try:
            self._open()
        except (MemoryFault, sqlite3.Error) as error:
            self._lose_index(error)
        return self

    def __exit__(self, *_: object) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # New cards

    def capture(
        self,
        new: NewCard,
        *,
        on_conflict: str = "suffix",
        reject_secrets: bool = False,
        replaces: str | None = None,
    ) -> Change:
        """Write a new card and index it; see `Memory.capture` for the cases.

        `replaces` is the path of a card of the vault that may have the same title.
        """
        if not new.title:
            return Change("rejected", reason="the title is empty")
        if weight(new.body) < MIN_WEIGHT:
            return Change("rejected", reason=_TOO_LITTLE)
        change = Change("created")
        _look_for_secrets(
            change, {"title": new.title, "summary": new.summary, "body": new.body, "raw": new.raw}
        )
        if reject_secrets and change.secrets_found:
            change.status, change.reason = "rejected", _CREDENTIAL
            return change
        try:
            return self._capture(
                replace(change, warnings=[*change.warnings]), new, on_conflict, replaces
            )
        except sqlite3.Error as error:
            # Nothing is written before all questions are asked.
            self._lose_index(error)
            return self._capture(change, new, on_conflict, replaces)

    def _capture(
        self, change: Change, new: NewCard, on_conflict: str, replaces: str | None
    ) -> Change:
        title, body = new.title, new.body
        relations = [
            {"type": relation_type(type), "target": self._target(reference)}
            for type, reference in new.relates
        ]
        kind = new.kind or DEFAULT_KIND
        now = _now()
        front: dict[str, Any] = {"id": numbers.reference("M", 0), "title": title}
        front |= {name: getattr(new, name) for name in _FRONTMATTER}
        front |= {"kind": kind, "created": now, "updated": now, "relations": relations}
        if new.raw is not None:
            front["refs"] = {"evidence": [_sha256(cleaned(new.raw).encode())]}
        wanted = _readable(new_text(front, body + "\n"))
        namesakes = self._namesakes(title)
        same = [one for one in namesakes if one.card.body.strip("\n") == body]
        if same:
            return _unchanged(change, same[0], new, wanted)
        namesakes = [one for one in namesakes if one.path != replaces]
        if namesakes:
            change.conflict = True
            change.existing_path = namesakes[0].path
            change.collision_paths = [one.path for one in namesakes]
            if on_conflict == "reject":
                change.status = "conflict"
                change.reason = "another card has this title and another body"
                change.hint = "update that card, supersede it, or choose another title"
                return change
        front["id"] = change.ref = self._number((by_name(kind) or by_name("misc")).prefix)
        if new.raw is not None:
            record = self.evidence.put(
                new.raw,
                kind="raw",
                origin=change.ref,
                session=new.session,
                sensitivity=new.sensitivity or DEFAULT_SENSITIVITY,
            )
            change.evidence = record.sha256
        change.version = 1
        text = new_text(front, body + "\n")
        taken = self._taken()
        secret = _mark(new.sensitivity == "secret")
        with durable.side_by_side():
            change.path = self.vault.create(text, kind, title, taken)
            self._record(change, "created", sha256=_sha256(text.encode()), **secret)
            # Before the card itself is there to be found.
            change.similar = self._similar(title, body) or None
            self._index_one(change, text.encode())
        return change

    def supersede(
        self, reference: str, new: NewCard, *, on_conflict: str = "suffix",
        reject_secrets: bool = False,
    ) -> Change:  # fmt: skip
        """Write the card that replaces another; both are linked, the old one stays readable."""
        old = self._find(reference)
        target = str(old["ref"])
        new = replace(
            new,
            kind=new.kind or str(old["kind"]),
            project=new.project or old["project"],
            relates=(("supersedes", target), *new.relates),
        )
        ours = old["source"] == VAULT
        change = self.capture(
            new,
            on_conflict=on_conflict,
            reject_secrets=reject_secrets,
            replaces=str(old["path"]) if ours else None,
        )
        if change.status != "created":
            return change
        change.status, change.supersedes = "superseded", target
        if old["superseded_by"]:
            change.warnings.append(
                f"{target} was replaced before, by {old['superseded_by']}, which stays as it is"
            )
        # The new card says it too, and that is enough for the index.
        if ours:
            try:
                marked = self._edit(
                    old, {"superseded_by": change.ref}, None, "superseded", replaced_by=change.ref
                )
                if marked.warning and marked.warning != change.warning:
                    change.warn(marked.warning)
            except (OSError, MemoryFault) as error:
                change.warnings.append(f"{target} could not be marked: {error}")
            return change
        change.warnings.append(
            f"{old['source']} is read-only: that {target} is replaced stands in the ledger"
        )
        try:
            self._record_link("linked", old, "superseded_by", str(change.ref))
            self._project(change)
        except OSError as error:
            change.warnings[-1] = f"{target} could not be marked in the ledger: {error}"
        return change

    # Cards that are there

    def update(
        self, reference: str, changes: Mapping[str, Any], body: str | None,
        *, reject_secrets: bool = False,
    ) -> Change:  # fmt: skip
        """Correct a card: the same reference, `version` + 1, the earlier text kept in evidence.

        `changes` are in the form of `fields.checked`. A change that had to wait is a `conflict` if
        the card was updated after it was asked for.
        """
        found = Change("updated")
        _look_for_secrets(
            found,
            {"title": changes.get("title"), "summary": changes.get("summary"), "body": body},
        )
        if reject_secrets and found.secrets_found:
            found.status, found.reason = "rejected", _CREDENTIAL
            return found
        if body is not None and weight(body) < MIN_WEIGHT:
            return Change("rejected", reason=_TOO_LITTLE)
        card = self._own(reference)
        if late := self._overtaken(card):
            return late
        change = self._edit(card, changes, body, "updated", bump=True)
        change.secrets_found, change.personal_found = found.secrets_found, found.personal_found
        change.warnings = found.warnings
        return change

    def restore_version(self, reference: str, version: int) -> Change:
        """Make the text of an earlier version the present one, under a new version number."""
        card = self._own(reference)
        if late := self._overtaken(card):
            return late
        kept = self.versions(card)
        events = [event for event in kept if event["version"] == version]
        if not events:
            known = ", ".join(dict.fromkeys(str(event["version"]) for event in kept))
            raise NotFound(
                f"{card['ref']} has no earlier version {version}",
                f"there are: {known}" if known else "it was never changed",
            )
        data = self.vault.read(str(card["path"]))
        old_text = self.evidence.get(str(events[-1]["sha256"]))
        number = parse_card(data, str(card["path"])).version + 1
        from .vault.revise import updated_text

        text = updated_text(old_text, {"version": number, "updated": _now(), "id": card["ref"]})
        return self._replace(card, data, text, number, "updated", {"restores": version})

    def versions(self, card: Mapping[str, object]) -> list[dict[str, object]]:
        """The earlier texts of a card: `{version, sha256, t, kind, by}`, the oldest first.

        `t` is when the text was replaced; of a change that had to wait, when it was asked for.
        """
        from .ledger.reader import merge

        found = []
        for event, _ in merge(self.home.home / "ledger"):
            if event.ref == card["ref"] and event.source == VAULT and "before" in event.data:
                found.append(
                    {
                        "version": event.data.get("version_before"),
                        "sha256": event.data["before"],
                        "t": str(event.data.get("queued") or event.t),
                        "kind": event.kind,
                        "by": event.by,
                    }
                )
        return found

    def _overtaken(self, card: Mapping[str, object]) -> Change | None:
        """The answer to a change that waited while the card was updated by another."""
        if self.queued is None or not any(
            version["kind"] == "updated" and str(version["t"]) > self.queued
            for version in self.versions(card)
        ):
            return None
        return Change(
            "conflict",
            card["id"],
            card["ref"],
            card["path"],
            reason=f"{card['ref']} was updated after this was asked for, at {self.queued}",
            hint="look at both texts, and update the card by hand",
        )

    def link(self, reference: str, type: str, target: str, *, remove: bool = False) -> Change:
        """Add or take away a relation. On a card of a read-only source it stands in the ledger."""
        kind = "unlinked" if remove else "linked"
        type = relation_type(type)
        card = self._find(reference)
        try:
            target = self._target(target)
        except NotFound:
            # A link to a card that is gone has to go too, under the name that it has.
            if not remove:
                raise
        if target == card["ref"] and not remove:
            raise MemoryFault(f"{target} cannot be linked with itself", "name another card")
        if card["source"] != VAULT:
            return self._link_foreign(kind, card, type, target)
        relations = [
            {"type": relation.type, "target": relation.target}
            for relation in self._parsed(card).relations
        ]
        one = {"type": type, "target": target}
        if (one in relations) != remove:
            return Change("unchanged", card["id"], card["ref"], card["path"], True)
        relations = [row for row in relations if row != one] if remove else [*relations, one]
        return self._edit(card, {"relations": relations}, None, kind, type=type, target=target)

    def _link_foreign(self, kind: str, card: Mapping[str, Any], type: str, target: str) -> Change:
        origins = {
            origin
            for (origin,) in self._index().execute(
                "select origin from links where card_id = ? and type = ? and target = ?",
                (card["id"], type, target),
            )
        }
        if "frontmatter" in origins and kind == "unlinked":
            raise MemoryFault(
                f"the link stands in {card['path']}, and {card['source']!r} is only read",
                "take it out of that file, and run `memory index`",
            )
        if (kind == "linked") == bool(origins & {"ledger", "frontmatter"}):
            return Change("unchanged", card["id"], card["ref"], card["path"], True)
        self._record_link(kind, card, type, target)
        change = Change(kind, card["id"], card["ref"], card["path"])
        change.warnings.append(f"{card['source']} is read-only: the link stands in the ledger")
        change.indexed = self._project(change)
        return change

    def forget(self, reference: str) -> Change:
        """Move a card to the trash of the vault."""
        card = self._own(reference)
        change = Change("trashed", card["id"], card["ref"], card["path"])
        secret = card["sensitivity"] == "secret"
        change.trash_path = self.vault.trash(str(card["path"]))
        self._record(
            change, "trashed", **({} if secret else {"trash": change.trash_path}), **_mark(secret)
        )
        with self._following(change):
            unindex_card(self._index(), VAULT, str(change.path), self._followed())
            change.indexed = True
        change.hint = f"memory trash --restore {change.trash_path}"
        return change

    def restore(self, trash_path: str) -> Change:
        """Bring a card back from the trash."""
        change = Change("restored")
        change.path = self.vault.restore(trash_path)
        data = self.vault.read(change.path)
        card = parse_card(data, change.path)
        change.ref, change.version = card.ref, card.version
        secret = card.sensitivity == "secret"
        self._record(
            change, "restored", **({} if secret else {"trash": trash_path}), **_mark(secret)
        )
        self._index_one(change, data)
        return change

    # Inside: files

    def _edit(
        self,
        card: Mapping[str, object],
        changes: Mapping[str, Any],
        body: str | None,
        kind: str,
        *,
        bump: bool = False,
        **data: Any,
    ) -> Change:
        """Change the frontmatter, the body or both of a card of the vault."""
        from .vault.revise import updated_text

        path = str(card["path"])
        before = self.vault.read(path)
        old = parse_card(before, path)
        if body is not None and body == old.body.strip("\n"):
            body = None
        text = updated_text(text_of(before, path), changes, None if body is None else body + "\n")
        if text.encode() == before:
            return Change("unchanged", card["id"], card["ref"], path, True, old.version)
        version = old.version
        if bump:
            version += 1
            counted = {"version": version, "updated": _now()}
            if not (old.created or old.updated):
                # Until now the time of the file stood for it, and that changes with the file.
                counted["created"] = file_time((self.vault.root / path).stat().st_mtime_ns)
            text = updated_text(text, counted)
        _readable(text, old.faults)
        return self._replace(card, before, text, version, kind, data)

    def _replace(
        self,
        card: Mapping[str, object],
        before: bytes,
        text: str,
        version: int,
        kind: str,
        data: Mapping[str, Any],
    ) -> Change:
        path = str(card["path"])
        change = Change(kind, None, str(card["ref"]), path, version=version)
        old, new = parse_card(before, path), parse_card(text.encode(), path)
        levels = old.sensitivity, new.sensitivity
        record = self.evidence.put(
            before,
            kind="version",
            origin=change.ref,
            sensitivity=max(levels, key=SENSITIVITIES.index),
        )
        if "secret" in levels:
            data = {**data, "secret": new.sensitivity == "secret"}
        with durable.side_by_side():
            sha256 = self.vault.replace(path, text, record.sha256)
            self._record(
                change, kind, before=record.sha256, version_before=old.version, version=version,
                sha256=sha256, **data,
            )  # fmt: skip
            self._index_one(change, text.encode())
        return change

    def _parsed(self, card: Mapping[str, object]) -> Card:
        path = str(card["path"])
        return parse_card(self.vault.read(path), path)

    # Inside: ledger

    def _record(self, change: Change, kind: str, **data: Any) -> None:
        """Put what was done into the ledger. The path of a secret card tells its title: its place
        is where its reference is."""
        if self.queued is not None:
            data["queued"] = self.queued
        path = None if data.get("secret") else change.path
        try:
            self.ledger.append(kind, ref=change.ref, source=VAULT, path=path, by=self.by, **data)
        except (OSError, ValueError) as error:
            self.recorded = False
            reason = getattr(error, "strerror", None) or error
            change.warn(f"the ledger could not be written: {reason}")

    def _record_link(self, kind: str, card: Mapping[str, Any], type: str, target: str) -> None:
        self.ledger.append(
            kind, ref=card["ref"], source=card["source"], path=card["path"], by=self.by,
            type=type, target=target, origin="ledger",
        )  # fmt: skip

    # Inside: the index

    def _open(self) -> None:
        self._connection = connection = connect_write(self.home.db)
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

    def _lose_index(self, error: Exception) -> None:
        """Go on without the index."""
        self._trouble = self.refusal(error)
        self._complete = False
        if self._connection is not None:
            self._connection.close()
            self._connection = None

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
        return OSError(number, f"the index cannot be used now: {cause}", str(self.home.db))

    def _hurry(self, error: Exception) -> None:
        """Wait for nobody any more."""
        self._trouble = self.refusal(error)
        if self._connection is not None:
            self._connection.execute("pragma busy_timeout = 0")

    def _index(self) -> sqlite3.Connection:
        """The index, for what cannot do without. Raises MemoryFault, and OSError where waiting
        will help."""
        if self._connection is None:
            raise self._trouble or MemoryFault(f"{self.home.db} cannot be used")
        return self._connection

    def _index_one(self, change: Change, data: bytes) -> None:
        """Put the card that holds `data` now into the index."""
        path = str(change.path)
        with self._following(change):
            mtime_ns = (self.vault.root / path).stat().st_mtime_ns
            change.id = index_card(self._index(), VAULT, path, data, mtime_ns, self._followed())
            change.indexed = change.id is not None
            if not change.indexed:
                change.hint = "a secret card stays out of the index; `memory show` reads its file"

    def _followed(self) -> dict[str, int] | None:
        """How far the index has followed the ledger with what is written now."""
        if not self.recorded or not self._complete:
            return None
        return seen.grown_by_us(self._ends, self.ledger.folder, self.ledger.host)

    @contextlib.contextmanager
    def _following(self, change: Change) -> Iterator[None]:
        """The index is brought in step inside; when it cannot be, `change` says so."""
        try:
            yield
        except (sqlite3.Error, MemoryFault, OSError) as error:
            change.warn(_behind(self.refusal(error)))

    def _project(self, change: Change) -> bool:
        from .index.project import project

        with self._following(change):
            project(self._index(), self.ledger.folder)
            return True
        return False

    # Inside: what there is

    def _find(self, reference: str, secret: bool = False) -> dict[str, Any]:
        """The card that `reference` means, as `read.card` gives it; with `secret` also one that is
        kept out of the index. Raises NotFound and Ambiguous."""
        connection = self._index()
        ids = read.find_cards(connection, reference, read.roots(connection))
        if not ids and secret and read.has_secret(connection):
            from .index.secret import secret_index

            hidden = secret_index(connection, [self._source()])
            with contextlib.closing(hidden):
                ids = read.find_cards(hidden, reference)
                return _only(hidden, reference, ids) | {"id": None}
        return _only(connection, reference, ids)

    def _own(self, reference: str) -> dict[str, Any]:
        """As `_find`, of cards of the vault alone, secret ones too."""
        card = self._find(reference, secret=True)
        if card["source"] != VAULT:
            raise MemoryFault(
                f"{card['ref']} belongs to the source {card['source']!r}, which is only read",
                f"supersede it with a card of your own: memory supersede {card['ref']} ...",
            )
        return card

    def _target(self, reference: str) -> str:
        """The reference to write for the target of a relation. Raises NotFound."""
        if self._connection is not None and self._complete:
            return str(self._find(reference)["ref"])
        name = fold(reference)
        for one in self._files():
            if one.ref and name in (fold(one.ref), fold(one.path), fold(one.card.title)):
                return one.ref
        if self._connection is not None:
            return str(self._find(reference)["ref"])
        raise NotFound(
            f"no card of the vault answers to {reference!r}, and there is no index of the others",
            "mend the index, or leave the relation out",
        )

    def _namesakes(self, title: str) -> list[_Found]:
        """The cards of the vault with an equal title."""
        key = fold(title)
        if self._connection is None or not self._complete:
            return [one for one in self._files() if fold(one.card.title) == key]
        # The plus keeps SQLite from walking along all paths of the vault.
        rows = self._connection.execute(
            "select cards.id, cards.path, cards.ref from names "
            "join cards on cards.id = names.card_id "
            "where names.key = ? and +cards.source = ?",
            (hashed_name(title), VAULT),
        ).fetchall()
        rows += [(None, path, None) for path in self._hidden(title)]
        found = []
        for id, path, ref in sorted(rows, key=lambda row: row[1]):
            with contextlib.suppress(NotFound, OSError):
                card = parse_card(self.vault.read(path), path)
                if fold(card.title) == key:
                    found.append(_Found(path, ref or card.ref or "", card, id))
        return found

    def _hidden(self, title: str) -> list[str]:
        """The paths of secret cards that were named after this title."""
        connection = self._index()
        # In the order of the primary key, so that asking costs nothing where there are none.
        if not connection.execute(
            "select 1 from files where source = ? and path >= 'sha256:' and path < 'sha256;' "
            "limit 1",
            (VAULT,),
        ).fetchone():
            return []
        stem, found = file_name(title), []
        for kind in KINDS:
            number = latest = 1
            while number <= latest + _NAMESAKES:
                path = f"{kind.folder}/{numbered(stem, number)}{SUFFIX}"
                if connection.execute(
                    "select 1 from files where source = ? and path = ?",
                    (VAULT, secret_path(VAULT, path)),
                ).fetchone():
                    found.append(path)
                    latest = number
                number += 1
        return found

    def _source(self) -> Source:
        return Source(VAULT, str(self.home.vault))

    def _files(self) -> Iterator[_Found]:
        """Every card of the vault, read: what to do without an index."""
        source = self._source()
        if not self.home.vault.is_dir():
            return
        for file in scan(source)[0]:
            with contextlib.suppress(OSError):
                card = parse_card(read_file(file, source), file.path)
                yield _Found(file.path, card.ref or "", card, None)

    def _number(self, prefix: str) -> str:
        """The next free reference. It is taken by the card that gets it: if that is not written,
        it stays free."""
        used = self._used if self._complete else self._all_refs()
        if self._connection is None:
            return numbers.reference(prefix, numbers.highest(prefix, used) + 1)
        return numbers.following(self._connection, prefix, used)

    def _all_refs(self) -> list[str]:
        from .ledger.reader import read as read_ledger

        refs = [one.ref for one in self._files()]
        refs += [str(event.ref) for event, _ in read_ledger(self.ledger.folder)]
        return refs + trashed_refs(self.vault)

    def _taken(self) -> Callable[[str], bool] | None:
        connection = self._connection
        if connection is None or not self._complete:
            return None

        def taken(key: str) -> bool:
            row = connection.execute(
                "select 1 from names join cards on cards.id = names.card_id "
                "where names.key = ? and +cards.source = ? limit 1",
                (hashed_name(key), VAULT),
            ).fetchone()
            return row is not None

        return taken

    def _similar(self, title: str, body: str) -> list[dict[str, object]]:
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


@dataclass(frozen=True, slots=True)
class _Found:
    """A card of the vault with its file read; `id` is its row, if it has one."""

    path: str
    ref: str
    card: Card
    id: int | None


def relation_type(text: str) -> str:
    """The type of a relation as it is written: one word. Raises MemoryFault."""
    type = "_".join(one_line(text).split())
    if not type or len(type) > MAX_WORD:
        raise MemoryFault(
            "the type of the link is empty" if not type else "the type of the link is too long",
            "as in: memory link D_0001 caused_by X_0002",
        )
    return type


def trashed_refs(vault: Vault) -> list[str]:
    """The references of the cards in the trash: they are not given again."""
    refs = []
    for item in vault.trashed():
        with contextlib.suppress(OSError):
            path = vault.root / item.trash_path
            card = parse_card(Path(path).read_bytes(), item.path)
            if card.ref:
                refs.append(card.ref)
    return refs


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


def _unchanged(change: Change, same: _Found, new: NewCard, wanted: Card) -> Change:
    """The answer when the card `same` says already what `new` does, which would read as `wanted`."""
    card = same.card
    change.status, change.ref, change.path = "unchanged", same.ref or None, same.path
    change.id, change.version, change.indexed = same.id, card.version, same.id is not None
    # Who says it, and when, is not what it says.
    asked = [
        name
        for name in _FRONTMATTER
        if getattr(new, name) not in (None, ()) and name not in ("agent", "session")
    ]
    differs = any(getattr(card, name) != getattr(wanted, name) for name in asked)
    differs = differs or not set(wanted.relations) <= set(card.relations)
    differs = differs or bool(new.raw is not None and card.refs != wanted.refs)
    change.metadata_differs = differs or None
    return change


def _behind(error: MemoryFault | OSError) -> str:
    """What to say when the index could not follow a change."""
    if isinstance(error, OSError):
        if error.errno == errno.EBUSY:
            return f"the index is busy; {_FOLLOWS}"
        return f"the index could not follow: {error.strerror or error}; {_FOLLOWS}"
    told = f"the index could not follow: {error.error}; {error.hint}"
    return told if "memory index" in told else f"{told}; then `memory index` takes it in"


def _readable(text: str, known: Iterable[str] = ()) -> Card:
    """The card that a text is read as. Raises MemoryFault if it holds what nobody understands, but
    for the faults that are `known`."""
    card = parse_card(text.encode("utf-8", "replace"), "")
    found = [one for one in card.faults if one not in known]
    if found:
        raise MemoryFault(f"the card would not be read as it is meant: {found[0]}")
    return card


def _mark(secret: bool) -> dict[str, bool]:
    """What an event says about a secret card."""
    return {"secret": True} if secret else {}


def _look_for_secrets(change: Change, texts: Mapping[str, str | None]) -> None:
    """Note in `change` what looks like a credential or personal data: class, field and span."""
    for name, find, what in (
        ("secrets_found", find_secrets, "looks like a credential"),
        ("personal_found", find_personal, "is personal data"),
    ):
        found = [
            {"kind": one.kind, "field": field, "start": one.start, "end": one.end}
            for field, text in texts.items()
            for one in find(text or "")
        ]
        if found:
            setattr(change, name, found)
            kinds = ", ".join(sorted({str(one["kind"]) for one in found}))
            change.warnings.append(f"something in it {what}: {kinds}")


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _now() -> str:
    """Now, ISO 8601 with the offset of this machine, whole seconds."""
    return datetime.now(timezone.utc).astimezone().isoformat(timespec="seconds")
