"""Changes to cards: the file first, then the ledger, then the index.

The file is the truth. When the ledger or the index cannot follow, the change stands, and the
answer says so; the next change, or the next `index`, brings the index up to date.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from . import durable
from .errors import MemoryFault, NotFound
from .home import Home
from .index import named, numbers
from .index.connection import sqlite3
from .index.kept import KeptOpen
from .index.rows import file_time
from .known import Found, Known
from .ledger.events import cleaned
from .ledger.writer import Ledger
from .sources import VAULT
from .text.secrets import find_personal, find_secrets
from .text.similar import weight
from .vault.card import MAX_WORD, SENSITIVITIES, Card, parse_card
from .vault.compose import new_text, one_line
from .vault.kinds import DEFAULT_KIND, by_name
from .vault.writer import Vault, text_of

if TYPE_CHECKING:
    from .evidence.store import EvidenceStore

#: The surfaces that no secret card reaches: to them it is as if there were none.
SERVERS = ("mcp", "api")

#: A body that says less than this is no memory; see `text.similar.weight`.
MIN_WEIGHT = 20

_TOO_LITTLE = (
    f"the body says too little: under {MIN_WEIGHT} characters, a Chinese one counting as two"
)
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
    of the vault (`lock.vault_lock`). `queued` is when the change was asked for, if it had to wait;
    see `known.Known` for the rest.
    """

    def __init__(
        self,
        home: Home,
        by: Mapping[str, str | None],
        follow: Callable[[], bool] = lambda: False,
        queued: str | None = None,
        whole: bool = True,
        kept: KeptOpen | None = None,
    ) -> None:
        self.home = home
        self.by = dict(by)
        self.queued = queued
        self.vault = Vault(home.vault)
        self.ledger = Ledger(home.home / "ledger")
        secrets = self.by.get("surface") not in SERVERS
        self.known = Known(home, self.vault, self.ledger, follow, whole, kept, secrets)
        #: Whether the ledger holds all that was done.
        self.recorded = True

    @functools.cached_property
    def evidence(self) -> EvidenceStore:
        """The earlier texts and the long originals."""
        from .evidence.store import EvidenceStore

        return EvidenceStore(self.home.home / "evidence")

    def __enter__(self) -> Changes:
        self.known.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.known.close()

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
            self.known.lose_index(error)
            return self._capture(change, new, on_conflict, replaces)

    def _capture(
        self, change: Change, new: NewCard, on_conflict: str, replaces: str | None
    ) -> Change:
        title, kind = new.title, new.kind or DEFAULT_KIND
        relations = [
            {"type": relation_type(type), "target": self.known.target(reference)}
            for type, reference in new.relates
        ]
        namesakes = self.known.namesakes(title)
        same = [one for one in namesakes if one.card.body.strip("\n") == new.body]
        if same:
            wanted = _readable(_text(new, numbers.reference("M", 0), relations))
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
        change.ref = self.known.number((by_name(kind) or by_name("misc")).prefix)
        change.version = 1
        text = _text(new, change.ref, relations)
        data, card = text.encode(), _readable(text)
        if new.raw is not None:
            record = self.evidence.put(
                new.raw,
                kind="raw",
                origin=change.ref,
                session=new.session,
                sensitivity=card.sensitivity,
            )
            change.evidence = record.sha256
        taken = self.known.taken()
        with durable.side_by_side():
            change.path = self.vault.create(text, kind, title, taken)
            secret = _mark(card.sensitivity == "secret")
            self._record(change, "created", sha256=_sha256(data), **secret)
            # Before the card itself is there to be found.
            change.similar = self.known.similar(title, new.body) or None
            self._index_one(change, data, card)
        return change

    def supersede(
        self, reference: str, new: NewCard, *, on_conflict: str = "suffix",
        reject_secrets: bool = False,
    ) -> Change:  # fmt: skip
        """Write the card that replaces another; both are linked, the old one stays readable. What
        replaces a secret card is one, unless `new` says otherwise."""
        old = self.known.find(reference, secret=True)
        target = str(old["ref"])
        secret = "secret" if old["sensitivity"] == "secret" else None
        new = replace(
            new,
            kind=new.kind or str(old["kind"]),
            project=new.project or old["project"],
            sensitivity=new.sensitivity or secret,
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
            with self._following(change):
                self.known.project()
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
        card = self.known.own(reference)
        if late := self._overtaken(card):
            return late
        change = self._edit(card, changes, body, "updated", bump=True)
        change.secrets_found, change.personal_found = found.secrets_found, found.personal_found
        change.warnings = found.warnings
        return change

    def restore_version(self, reference: str, version: int) -> Change:
        """Make the text of an earlier version the present one, under a new version number."""
        card = self.known.own(reference)
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
        number = self._version(card, parse_card(data, str(card["path"]))) + 1
        from .vault.revise import updated_text

        then = {"version": number, "updated": _now(), "id": card["ref"]}
        if created := parse_card(data, str(card["path"])).created:
            then["created"] = created
        text = updated_text(old_text, then)
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
        card = self.known.find(reference, secret=True)
        try:
            target = self.known.target(target)
        except NotFound:
            # A link to a card that is gone has to go too, under the name that it has.
            if not remove:
                raise
        if target == card["ref"] and not remove:
            raise MemoryFault(f"{target} cannot be linked with itself", "name another card")
        if not remove and self.known.replaces(str(card["ref"]), type, target):
            raise MemoryFault(
                f"{card['ref']} and {target} would replace each other",
                "take the other link away first: `memory related` shows it",
            )
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
        if card["id"] is None:
            raise MemoryFault(
                f"{card['ref']} is secret, and {card['source']!r} is only read",
                "the ledger would tell of it: write the link into the file itself",
            )
        origins = named.link_origins(self.known.index, card["id"], type, target)
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
        with self._following(change):
            self.known.project()
            change.indexed = True
        return change

    def forget(self, reference: str) -> Change:
        """Move a card to the trash of the vault."""
        card = self.known.own(reference)
        change = Change("trashed", card["id"], card["ref"], card["path"])
        secret = card["sensitivity"] == "secret"
        change.trash_path = self.vault.trash(str(card["path"]))
        self._record(
            change, "trashed", **({} if secret else {"trash": change.trash_path}), **_mark(secret)
        )
        with self._following(change):
            self.known.take_out(str(change.path), self.recorded)
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
        # Its reads come back with it.
        with self._following(change):
            self.known.project()
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
        version = self._version(card, old)
        if text.encode() == before:
            return Change("unchanged", card["id"], card["ref"], path, True, version)
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
                change, kind, before=record.sha256, version_before=self._version(card, old),
                version=version, sha256=sha256, **data,
            )  # fmt: skip
            self._index_one(change, text.encode())
        return change

    def _version(self, card: Mapping[str, object], text: Card) -> int:
        """Which version of a card the text is. Where its `version` is a word of somebody else,
        as 1.4.2, that stays in the file, and the ledger counts."""
        if "version" not in text.extra:
            return text.version
        return 1 + sum(one["kind"] == "updated" for one in self.versions(card))

    def _parsed(self, card: Mapping[str, object]) -> Card:
        path = str(card["path"])
        return parse_card(self.vault.read(path), path)

    # Inside: ledger and index

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

    def _index_one(self, change: Change, data: bytes, card: Card | None = None) -> None:
        """Put the file that holds `data` now into the index; it reads as `card`."""
        with self._following(change):
            change.id = self.known.put(str(change.path), data, card, self.recorded)
            change.indexed = change.id is not None
            if not change.indexed:
                change.hint = "a secret card stays out of the index; `memory show` reads its file"

    @contextlib.contextmanager
    def _following(self, change: Change) -> Iterator[None]:
        """The index is brought in step inside; when it cannot be, `change` says so."""
        try:
            yield
        except (sqlite3.Error, MemoryFault, OSError) as error:
            change.warn(self.known.behind(error))


def relation_type(text: str) -> str:
    """The type of a relation as it is written: one word. Raises MemoryFault."""
    type = "_".join(one_line(text).split())
    if not type or len(type) > MAX_WORD:
        raise MemoryFault(
            "the type of the link is empty" if not type else "the type of the link is too long",
            "as in: memory link D_0001 caused_by X_0002",
        )
    return type


def _text(new: NewCard, ref: str, relations: list[dict[str, str]]) -> str:
    """The text of a new card."""
    now = _now()
    front: dict[str, Any] = {"id": ref, "title": new.title}
    front |= {name: getattr(new, name) for name in _FRONTMATTER}
    front["kind"] = new.kind or DEFAULT_KIND
    front |= {"created": now, "updated": now, "relations": relations}
    if new.raw is not None:
        front["refs"] = {"evidence": [_sha256(cleaned(new.raw).encode())]}
    return new_text(front, new.body + "\n")


def _unchanged(change: Change, same: Found, new: NewCard, wanted: Card) -> Change:
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
