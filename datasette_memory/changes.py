"""Changes to cards: the file first, then the ledger, then the index.

The file is the truth. When the ledger or the index cannot follow, the change stands, and the
answer says so; the next `index` brings both up to date.
"""

import contextlib
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from .errors import Ambiguous, MemoryFault, NotFound
from .evidence.store import EvidenceStore
from .home import Home
from .index import numbers, read
from .index.connection import connect_write, sqlite3, transaction
from .index.links import fold, hashed_name
from .index.near import near
from .index.schema import is_current
from .index.single import index_card, unindex_card
from .ledger.writer import Ledger
from .sources import VAULT
from .text.secrets import find_personal, find_secrets
from .text.similar import NEAR_DUPLICATE, jaccard, weight
from .vault.card import Card, parse_card
from .vault.compose import new_text
from .vault.kinds import DEFAULT_KIND, by_name
from .vault.revise import updated_text
from .vault.sources import Source, scan
from .vault.sources import read as read_file
from .vault.writer import Vault, text_of

#: A body that says less than this is no memory; see `text.similar.weight`.
MIN_WEIGHT = 20

#: Near-duplicates are looked for among so many of the best hits.
SIMILAR_HITS = 10


@dataclass(frozen=True, slots=True)
class NewCard:
    """What a new card says. `relates` are `(type, reference)`; `raw` is a long original."""

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
    follow; `warning` then says why.
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

    def to_dict(self) -> dict[str, object]:
        """The object that every surface returns."""
        always = ("status", "id", "ref", "path", "indexed")
        found = {one.name: getattr(self, one.name) for one in fields(self)}
        return {
            key: value for key, value in found.items() if key in always or value not in (None, [])
        }


class Changes:
    """The changes of one memory, made by `by`: `{surface, agent, session}`.

    The caller holds the lock of the vault (`lock.vault_lock`).
    """

    def __init__(self, home: Home, by: Mapping[str, str | None]) -> None:
        self.home = home
        self.by = dict(by)
        self.vault = Vault(home.vault)
        self.ledger = Ledger(home.home / "ledger")
        self.evidence = EvidenceStore(home.home / "evidence")

    # New cards

    def capture(
        self, new: NewCard, *, on_conflict: str = "suffix", reject_secrets: bool = False
    ) -> Change:
        """Write a new card and index it; see `Memory.capture` for the cases."""
        title = " ".join(new.title.split())
        body = new.body.strip("\n")
        if not title:
            return Change("rejected", reason="the title is empty")
        if weight(body) < MIN_WEIGHT:
            return Change(
                "rejected",
                reason=f"the body says too little: under {MIN_WEIGHT} characters, a Chinese one "
                "counting as two",
            )
        change = Change("created")
        _look_for_secrets(
            change, {"title": title, "summary": new.summary, "body": body, "raw": new.raw}
        )
        if reject_secrets and change.secrets_found:
            change.status, change.reason = "rejected", "it holds what looks like a credential"
            return change
        with self._index(change) as connection:
            relations = [
                {"type": type, "target": self._target(connection, reference)}
                for type, reference in new.relates
            ]
            namesakes = self._namesakes(connection, title)
            same = [one for one in namesakes if one.card.body.strip("\n") == body]
            if same:
                return self._unchanged(change, same[0], new)
            if namesakes:
                change.conflict = True
                change.existing_path = namesakes[0].path
                change.collision_paths = [one.path for one in namesakes]
                if on_conflict == "reject":
                    change.status = "conflict"
                    change.reason = "another card has this title and another body"
                    change.hint = "update that card, supersede it, or choose another title"
                    return change
            change.similar = self._similar(connection, title, body) or None
            kind = new.kind or DEFAULT_KIND
            known = by_name(kind)
            change.ref = self._number(connection, (known or by_name("misc")).prefix)
            now = _now()
            front: dict[str, Any] = {"id": change.ref, "title": title}
            front |= {name: getattr(new, name) for name in _FRONTMATTER}
            front |= {"kind": kind, "created": now, "updated": now, "relations": relations}
            if new.raw is not None:
                record = self.evidence.put(
                    new.raw,
                    kind="raw",
                    origin=change.ref,
                    session=new.session,
                    sensitivity=new.sensitivity or "internal",
                )
                change.evidence = record.sha256
                front["refs"] = {"evidence": [record.sha256]}
            change.version = 1
            text = new_text(front, body + "\n")
            change.path = self.vault.create(text, kind, title, self._taken(connection))
            self._record(change, "created", sha256=_sha256(text.encode()))
            self._index_one(connection, change)
        return change

    def _unchanged(self, change: Change, same: "_Found", new: NewCard) -> Change:
        change.status, change.ref, change.path = "unchanged", same.ref, same.path
        change.id, change.version, change.indexed = same.id, same.card.version, same.id is not None
        card = same.card
        asked = {name: getattr(new, name) for name in _FRONTMATTER if getattr(new, name)}
        asked.pop("agent", None)
        asked.pop("session", None)
        change.metadata_differs = (
            any(getattr(card, name) != value for name, value in asked.items()) or None
        )
        return change

    def supersede(
        self, reference: str, new: NewCard, *, on_conflict: str = "suffix",
        reject_secrets: bool = False,
    ) -> Change:  # fmt: skip
        """Write the card that replaces another; both are linked, the old one stays readable."""
        with self._index(None) as connection:
            old = self._find(connection, reference)
        target = str(old["ref"])
        new = replace(
            new,
            kind=new.kind or str(old["kind"]),
            project=new.project or old["project"],
            relates=(("supersedes", target), *new.relates),
        )
        change = self.capture(new, on_conflict=on_conflict, reject_secrets=reject_secrets)
        if change.status != "created":
            return change
        change.status, change.supersedes = "superseded", target
        if old["source"] == VAULT:
            try:
                marked = self._edit(
                    old, {"superseded_by": change.ref}, None, "superseded", replaced_by=change.ref
                )
                change.warning = change.warning or marked.warning
            except (OSError, MemoryFault) as error:
                # The new card says it too, and that is enough for the index.
                change.warnings.append(f"{target} could not be marked: {error}")
        else:
            self._record_link("linked", old, "superseded_by", change.ref)
            change.warnings.append(
                f"{old['source']} is read-only: that {target} is replaced stands in the ledger"
            )
        return change

    # Cards that are there

    def update(
        self, reference: str, changes: Mapping[str, Any], body: str | None,
        *, reject_secrets: bool = False,
    ) -> Change:  # fmt: skip
        """Correct a card: the same reference, `version` + 1, the earlier text kept in evidence."""
        found = Change("updated")
        _look_for_secrets(
            found,
            {"title": changes.get("title"), "summary": changes.get("summary"), "body": body},
        )
        if reject_secrets and found.secrets_found:
            found.status, found.reason = "rejected", "it holds what looks like a credential"
            return found
        if body is not None and weight(body) < MIN_WEIGHT:
            return Change(
                "rejected",
                reason=f"the body says too little: under {MIN_WEIGHT} characters, a Chinese one "
                "counting as two",
            )
        with self._index(None) as connection:
            card = self._own(connection, reference)
        change = self._edit(card, changes, body, "updated", bump=True)
        change.secrets_found, change.personal_found = found.secrets_found, found.personal_found
        change.warnings = found.warnings
        return change

    def restore_version(self, reference: str, version: int) -> Change:
        """Make the text of an earlier version the present one, under a new version number."""
        with self._index(None) as connection:
            card = self._own(connection, reference)
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
        text = updated_text(old_text, {"version": number, "updated": _now(), "id": card["ref"]})
        return self._replace(card, data, text, number, "updated", {"restores": version})

    def versions(self, card: Mapping[str, object]) -> list[dict[str, object]]:
        """The earlier texts of a card: `{version, sha256, t, by}`, the oldest first."""
        from .ledger.reader import merge

        found = []
        for event, _ in merge(self.home.home / "ledger"):
            if event.ref == card["ref"] and event.source == VAULT and "before" in event.data:
                found.append(
                    {
                        "version": event.data.get("version_before"),
                        "sha256": event.data["before"],
                        "t": event.t,
                        "kind": event.kind,
                        "by": event.by,
                    }
                )
        return found

    def link(self, reference: str, type: str, target: str, *, remove: bool = False) -> Change:
        """Add or take away a relation. On a card of a read-only source it stands in the ledger."""
        kind = "unlinked" if remove else "linked"
        type = "_".join(type.split())
        if not type:
            raise MemoryFault(
                "the type of the link is empty", "as in: memory link D_1 caused_by X_2"
            )
        with self._index(None) as connection:
            card = self._find(connection, reference)
            try:
                target = self._target(connection, target)
            except NotFound:
                # A link to a card that is gone has to go too, under the name that it has.
                if not remove:
                    raise
        if card["source"] != VAULT:
            here = [
                row for row in card["relations"] if (row["type"], row["target"]) == (type, target)
            ]
            if bool(here) != remove:
                return Change("unchanged", card["id"], card["ref"], card["path"], True)
            self._record_link(kind, card, type, target)
            change = Change(kind, card["id"], card["ref"], card["path"])
            change.warnings.append(f"{card['source']} is read-only: the link stands in the ledger")
            change.indexed = self._project(change)
            return change
        relations = [
            {"type": relation.type, "target": relation.target}
            for relation in self._parsed(card).relations
        ]
        one = {"type": type, "target": target}
        if (one in relations) != remove:
            return Change("unchanged", card["id"], card["ref"], card["path"], True)
        relations = [row for row in relations if row != one] if remove else [*relations, one]
        return self._edit(card, {"relations": relations}, None, kind, type=type, target=target)

    def forget(self, reference: str) -> Change:
        """Move a card to the trash of the vault."""
        change = Change("trashed")
        with self._index(change) as connection:
            card = self._own(connection, reference)
            change.id, change.ref, change.path = card["id"], card["ref"], card["path"]
            change.trash_path = self.vault.trash(str(card["path"]))
            self._record(change, "trashed", trash=change.trash_path)
            self._unindex_one(connection, change)
        change.hint = f"memory trash --restore {change.trash_path}"
        return change

    def restore(self, trash_path: str) -> Change:
        """Bring a card back from the trash."""
        change = Change("restored")
        change.path = self.vault.restore(trash_path)
        data = self.vault.read(change.path)
        change.ref = parse_card(data, change.path).ref
        self._record(change, "restored", trash=trash_path)
        with self._index(change) as connection:
            self._index_one(connection, change)
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
        path = str(card["path"])
        before = self.vault.read(path)
        old = parse_card(before, path)
        if body is not None:
            body = body.strip("\n") + "\n"
            if body.strip("\n") == old.body.strip("\n"):
                body = None
        text = updated_text(text_of(before, path), changes, body)
        if text.encode() == before:
            return Change("unchanged", card["id"], card["ref"], path, True, old.version)
        version = old.version
        if bump:
            version += 1
            text = updated_text(text, {"version": version, "updated": _now()})
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
        old = parse_card(before, path)
        record = self.evidence.put(
            before, kind="version", origin=change.ref, sensitivity=old.sensitivity
        )
        sha256 = self.vault.replace(path, text, record.sha256)
        self._record(
            change, kind, before=record.sha256, version_before=old.version, version=version,
            sha256=sha256, **data,
        )  # fmt: skip
        with self._index(change) as connection:
            self._index_one(connection, change)
        return change

    def _parsed(self, card: Mapping[str, object]) -> Card:
        path = str(card["path"])
        return parse_card(self.vault.read(path), path)

    # Inside: ledger

    def _record(self, change: Change, kind: str, **data: Any) -> None:
        try:
            self.ledger.append(
                kind, ref=change.ref, source=VAULT, path=change.path, by=self.by, **data
            )
        except OSError as error:
            change.warning = f"the ledger could not be written: {error.strerror}"

    def _record_link(self, kind: str, card: Mapping[str, Any], type: str, target: str) -> None:
        self.ledger.append(
            kind, ref=card["ref"], source=card["source"], path=card["path"], by=self.by,
            type=type, target=target, origin="ledger",
        )  # fmt: skip

    # Inside: index

    @contextlib.contextmanager
    def _index(self, change: Change | None) -> Iterator["sqlite3.Connection | None"]:
        """The index, brought to the present schema; None with a warning if it cannot be opened.

        Without a `change` to warn in, what is wrong is raised.
        """
        connection = None
        try:
            connection = connect_write(self.home.db)
            if not is_current(connection):
                from .index.migrations import migrate

                migrate(connection)
            else:
                from .index.functions import register

                register(connection)
        except (MemoryFault, sqlite3.Error) as error:
            if connection is not None:
                connection.close()
            if change is None:
                raise
            change.warning = f"the index could not follow: {error}"
            connection = None
        try:
            yield connection
        finally:
            if connection is not None:
                connection.close()

    def _index_one(self, connection, change: Change) -> None:
        if connection is None:
            return
        path = str(change.path)
        with self._following(change):
            data = self.vault.read(path)
            mtime_ns = (self.vault.root / path).stat().st_mtime_ns
            change.id = index_card(connection, VAULT, path, data, mtime_ns)
            change.indexed = change.id is not None
            if not change.indexed:
                change.hint = "a secret card stays out of the index; `memory show` reads its file"

    def _unindex_one(self, connection, change: Change) -> None:
        if connection is None:
            return
        with self._following(change):
            unindex_card(connection, VAULT, str(change.path))
            change.indexed = True

    @contextlib.contextmanager
    def _following(self, change: Change) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            change.warning = f"the index could not follow: {error}; `memory index` mends it"

    def _project(self, change: Change) -> bool:
        from .index.project import project

        with self._index(change) as connection:
            if connection is None:
                return False
            with self._following(change):
                project(connection, self.home.home / "ledger")
                return True
        return False

    def _find(self, connection, reference: str) -> dict[str, Any]:
        """The card that `reference` means, as `read.card` gives it."""
        ids = read.find_cards(connection, reference, read.roots(connection))
        if not ids:
            raise NotFound(
                f"no card answers to {reference!r}",
                "give a ref, a row id, a path or an exact title; `memory search` finds them",
            )
        if len(ids) > 1:
            raise Ambiguous(
                f"{len(ids)} cards answer to {reference!r}", read.titles(connection, ids)
            )
        return read.card(connection, ids[0])

    def _own(self, connection, reference: str) -> dict[str, Any]:
        card = self._find(connection, reference)
        if card["source"] != VAULT:
            raise MemoryFault(
                f"{card['ref']} belongs to the source {card['source']!r}, which is only read",
                f"supersede it with a card of your own: memory supersede {card['ref']} ...",
            )
        return card

    def _target(self, connection, reference: str) -> str:
        """The reference to write for the target of a relation. Raises NotFound."""
        if connection is None:
            raise MemoryFault(
                "relations need the index, to see that their target exists", "run `memory index`"
            )
        return str(self._find(connection, reference)["ref"])

    def _namesakes(self, connection, title: str) -> "list[_Found]":
        """The cards of the vault with an equal title."""
        if connection is None:
            return [one for one in self._files() if fold(one.card.title) == fold(title)]
        rows = connection.execute(
            "select cards.id, cards.path, cards.ref from names "
            "join cards on cards.id = names.card_id "
            "where names.key = ? and cards.source = ? order by cards.path",
            (hashed_name(title), VAULT),
        ).fetchall()
        found = []
        for id, path, ref in rows:
            with contextlib.suppress(NotFound):
                card = parse_card(self.vault.read(path), path)
                if fold(card.title) == fold(title):
                    found.append(_Found(path, ref, card, id))
        return found

    def _files(self) -> "Iterator[_Found]":
        """Every card of the vault, read: what to do without an index."""
        source = Source(VAULT, str(self.home.vault))
        if not self.home.vault.is_dir():
            return
        for file in scan(source)[0]:
            with contextlib.suppress(OSError):
                card = parse_card(read_file(file, source), file.path)
                yield _Found(file.path, card.ref or "", card, None)

    def _number(self, connection, prefix: str) -> str:
        if connection is not None:
            with transaction(connection):
                return numbers.take(connection, prefix)
        from .ledger.reader import read as read_ledger

        refs = [one.ref for one in self._files()]
        refs += [str(event.ref) for event, _ in read_ledger(self.home.home / "ledger")]
        refs += trashed_refs(self.vault)
        return numbers.reference(prefix, numbers.highest(prefix, refs) + 1)

    def _taken(self, connection):
        if connection is None:
            return None

        def taken(key: str) -> bool:
            row = connection.execute(
                "select 1 from names join cards on cards.id = names.card_id "
                "where names.key = ? and cards.source = ? limit 1",
                (hashed_name(key), VAULT),
            ).fetchone()
            return row is not None

        return taken

    def _similar(self, connection, title: str, body: str) -> list[dict[str, object]]:
        """The cards that say nearly the same, with their scores, the most alike first."""
        if connection is None:
            return []
        found = []
        for ref, path, other_title, other_body in near(connection, body, SIMILAR_HITS):
            score = jaccard(f"{title}\n{body}", f"{other_title}\n{other_body}")
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
