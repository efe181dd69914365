"""The writing half of `Memory`: one change at a time, queued when it cannot be made now."""

# What writing needs is imported where it is used: reading must not pay for it.
from __future__ import annotations

import contextlib
import errno
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from .errors import MemoryFault
from .home import Home

if TYPE_CHECKING:
    from .changes import Change, NewCard
    from .index.lock import Turn
    from .known import Known
    from .pending import Pending, Replay

#: What `update` may change beside the body.
EDITABLE = (
    "title", "kind", "summary", "tags", "keywords", "aliases", "project", "confidence",
    "sensitivity", "priority", "ttl", "valid_from", "valid_until",
)  # fmt: skip


class Writing:
    """Changes to the cards of `home.vault`; see `Memory`, which is this and the reading half.

    Every method gives a `Change` (its `status` says what happened), and raises MemoryFault when
    nothing could be done and nothing could be kept for later. `by` names who asks: `{surface,
    agent, session}`.
    """

    home: Home
    # Whose turn it is to change cards, and the thread that has it.
    _turn: tuple[int, Turn] | None = None

    def index(self, **options: Any):
        """See `Memory.index`."""
        raise NotImplementedError

    def _on_moved(self):
        """See `Memory`."""
        raise NotImplementedError

    def capture(
        self,
        title: str,
        body: str,
        *,
        relates: Iterable[tuple[str, str]] = (),
        on_conflict: str = "suffix",
        reject_secrets: bool = False,
        by: Mapping[str, str | None] | None = None,
        **fields: Any,
    ) -> Change:
        """Write a new card into the vault, and index that card alone.

        `fields` are those of `changes.NewCard`: kind, summary, tags, project, raw, ... The same
        title and body as any card of the vault is `unchanged`. The same title with another body
        is saved beside it with `conflict`, or refused with `on_conflict="reject"`. What looks
        like a credential is reported, or refused with `reject_secrets`. A body that says next to
        nothing is `rejected`.
        """
        arguments = {
            "new": _new_card(title=title, body=body, relates=relates, **fields),
            "on_conflict": _on_conflict(on_conflict),
            "reject_secrets": reject_secrets,
        }
        return self._change("capture", arguments, by)

    def supersede(
        self,
        reference: str,
        title: str,
        body: str,
        *,
        relates: Iterable[tuple[str, str]] = (),
        on_conflict: str = "suffix",
        reject_secrets: bool = False,
        by: Mapping[str, str | None] | None = None,
        **fields: Any,
    ) -> Change:
        """Write a card that replaces another, because the fact has changed. Takes what `capture`
        takes; kind and project are those of the old card unless given."""
        arguments = {
            "reference": reference,
            "new": _new_card(title=title, body=body, relates=relates, **fields),
            "on_conflict": _on_conflict(on_conflict),
            "reject_secrets": reject_secrets,
        }
        return self._change("supersede", arguments, by)

    def update(
        self,
        reference: str,
        *,
        body: str | None = None,
        reject_secrets: bool = False,
        by: Mapping[str, str | None] | None = None,
        **changes: Any,
    ) -> Change:
        """Correct a card: the same reference, `version` + 1, the earlier text kept in evidence.

        `changes` are those of `EDITABLE`; None or an empty value takes a field away.
        """
        if unknown := sorted(changes.keys() - set(EDITABLE)):
            raise MemoryFault(
                f"{unknown[0]!r} cannot be updated", f"what can: body, {', '.join(EDITABLE)}"
            )
        if body is None and not changes:
            raise MemoryFault("there is nothing to update", "give a new body, title, tags, ...")
        from .fields import body_of, checked

        arguments = {
            "reference": reference,
            "changes": checked(changes),
            "body": None if body is None else body_of(body),
            "reject_secrets": reject_secrets,
        }
        return self._change("update", arguments, by)

    def link(
        self, reference: str, type: str, target: str, *, by: Mapping[str, str | None] | None = None
    ) -> Change:
        """Add the relation `type` from one card to another."""
        return self._change("link", {"reference": reference, "type": type, "target": target}, by)

    def unlink(
        self, reference: str, type: str, target: str, *, by: Mapping[str, str | None] | None = None
    ) -> Change:
        """Take a relation away."""
        arguments = {"reference": reference, "type": type, "target": target, "remove": True}
        return self._change("link", arguments, by)

    def forget(self, reference: str, *, by: Mapping[str, str | None] | None = None) -> Change:
        """Move a card to the trash of the vault; `restore` brings it back."""
        return self._change("forget", {"reference": reference}, by)

    def trashed(self) -> list[dict[str, object]]:
        """What is in the trash, the latest first: `{trash_path, path, trashed}`."""
        from .vault.writer import Vault

        return [
            {
                "trash_path": item.trash_path,
                "path": item.path,
                "trashed": item.when.isoformat(timespec="seconds"),
            }
            for item in Vault(self.home.vault).trashed()
        ]

    def restore(self, trash_path: str, *, by: Mapping[str, str | None] | None = None) -> Change:
        """Bring a card back from the trash."""
        return self._change("restore", {"trash_path": trash_path}, by)

    def restore_version(
        self, reference: str, version: int, *, by: Mapping[str, str | None] | None = None
    ) -> Change:
        """Make an earlier text of a card its present one, under a new version number."""
        return self._change("restore_version", {"reference": reference, "version": version}, by)

    def sync_pending(self) -> Replay:
        """Make the changes of this vault that could not be made before, the oldest first."""
        from .index.lock import pending_lock
        from .pending import Replay, places_of

        pending = self._pending()
        if not pending.paths():
            return Replay()

        def perform(change: str, arguments: dict[str, Any], t: str) -> dict[str, object]:
            given = {key: value for key, value in arguments.items() if key != "by"}
            return self._perform(change, given, arguments.get("by"), t).to_dict()

        with pending_lock(self.home.home):
            return pending.replay(perform, places_of(self.home)["vault"])

    # Inside

    def _pending(self) -> Pending:
        from .pending import Pending

        return Pending(self.home.home / "pending")

    def _change(
        self, change: str, arguments: dict[str, Any], by: Mapping[str, str | None] | None
    ) -> Change:
        """Make a change now, or keep it for later when the system does not let it."""
        from .changes import Change

        try:
            return self._perform(change, arguments, by)
        except OSError as error:
            reason = f"{error.filename or self.home.vault}: {error.strerror or error}"
            if error.errno in _STAYS and not os.path.isdir(self.home.vault):
                raise MemoryFault(
                    f"nothing was written, there can be no vault: {reason}",
                    "that will not pass by itself: move away what stands there, or name another "
                    "place with --home or --vault",
                ) from error
            arguments = arguments | {"by": dict(by or {})}
            if "new" in arguments:
                arguments["new"] = asdict(arguments["new"])
            try:
                from .pending import places_of

                kept = self._pending().add(change, arguments, reason, places_of(self.home))
            except OSError as second:
                raise MemoryFault(
                    f"nothing could be written: {reason}; nor kept for later: "
                    f"{second.strerror or second}",
                    "free some space or mend the permissions, and do it again: it is lost",
                ) from error
            result = Change("pending", reason=reason, pending_path=str(kept))
            result.hint = "memory sync-pending makes it when that is mended"
            if self.home.decided["vault"] == "option":
                result.hint += f", with --vault {self.home.vault}"
            return result

    def _perform(
        self,
        change: str,
        arguments: Mapping[str, Any],
        by: Mapping[str, str | None] | None,
        queued: str | None = None,
    ) -> Change:
        """Make a change; `queued` is when it was asked for, if it had to wait."""
        from . import durable
        from .changes import Changes
        from .index.connection import sqlite3
        from .index.kept import KeptOpen

        arguments = dict(arguments)
        if isinstance(arguments.get("new"), dict):
            arguments["new"] = _new_card(**arguments["new"])
        if change not in _CHANGES:
            raise MemoryFault(f"{change!r} is no change that is known here")
        home = self.home.home
        durable.make_folder(home)
        # An import that was cut short holds no lock and leaves no mark; the folder is a small one.
        durable.sweep(home)
        with self._alone(self._recover) as turn:
            durable.make_folder(self.home.vault)
            kept = self.__dict__.setdefault("_kept_open", KeptOpen())
            changes = Changes(self.home, by or {}, self._follow_vault, queued, turn.whole, kept)
            try:
                with changes:
                    if (by or {}).get("surface") in SERVERS:
                        _only_shown(changes.known, arguments)
                    return getattr(changes, change)(**arguments)
            except sqlite3.Error as error:
                raise changes.known.refusal(error) from error
            finally:
                turn.whole = turn.whole and changes.recorded

    def _follow_vault(self) -> bool:
        """Bring the index in step with the vault; False when another import does not let us, or
        the index is out of order."""
        from .index import numbers
        from .index.connection import connect_write, transaction, translated
        from .index.lock import write_lock
        from .index.migrations import migrate
        from .index.sync import sync
        from .known import trashed_refs
        from .sources import VAULT
        from .vault.sources import Source
        from .vault.writer import Vault

        db = self.home.db
        try:
            with write_lock(db, patience=FOLLOW_PATIENCE), translated(db):
                with contextlib.closing(connect_write(db)) as connection:
                    migrate(connection)
                    vault = Source(VAULT, str(self.home.vault))
                    sync(connection, [vault], on_moved=self._on_moved())
                    with transaction(connection):
                        numbers.refresh(connection, trashed_refs(Vault(self.home.vault)))
        except MemoryFault:
            return False
        return True

    def _recover(self) -> bool:
        """Take away what changes left that were cut short, and see what they did."""
        self._sweep()
        return self._follow_vault()

    def _sweep(self) -> bool:
        """Remove the temporary files of writers that died."""
        from . import durable

        home = self.home.home
        for folder in (self.home.vault, home / "evidence", home / "pending"):
            durable.sweep(folder, deep=True)
        durable.sweep(home / "ledger")
        return True

    @contextlib.contextmanager
    def _alone(self, clean: Callable[[], bool]) -> Iterator[Turn]:
        """Keep others from changing cards; within a change it is so already. `clean` is called
        first when an earlier change was cut short."""
        from .index.lock import vault_lock

        mine = self._turn
        if mine is not None and mine[0] == threading.get_ident():
            yield mine[1]
            return
        with vault_lock(self.home.home, clean) as turn:
            self._turn = threading.get_ident(), turn
            try:
                yield turn
            finally:
                self._turn = None

    def _tidy(self) -> None:
        """What `index` does first: sweep, unless a change is going on just now."""
        from . import durable
        from .index import lock

        home = self.home.home
        durable.sweep(home)
        if lock.was_cut_short(home):
            with contextlib.suppress(OSError), lock.vault_lock(home, self._sweep, patience=0):
                pass


_CHANGES = frozenset(
    {"capture", "supersede", "update", "link", "forget", "restore", "restore_version"}
)


#: The surfaces that no secret card reaches.
SERVERS = ("mcp", "api")


def _only_shown(known: Known, arguments: Mapping[str, Any]) -> None:
    """Raise NotFound when a change would touch, or lead to, a card that is kept out of the index."""
    new = arguments.get("new")
    asked = [arguments.get("reference"), *(target for _, target in (new.relates if new else ()))]
    if not arguments.get("remove"):
        # A link to a card that is gone can be taken away.
        asked.append(arguments.get("target"))
    for reference in asked:
        if reference is not None:
            known.find(reference)


# What does not pass by itself, as a full disk, a read-only one or a lock may: a file where a folder
# should be, a link that leads to itself, a name that no disk takes.
_STAYS = frozenset({errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG})

#: How long a change waits for an import, in seconds, when the index has not seen the vault.
FOLLOW_PATIENCE = 1.0


def _new_card(
    *, title: str, body: str, relates: Iterable[Iterable[str]] = (), raw: str | None = None,
    **fields: Any,
) -> NewCard:  # fmt: skip
    """A NewCard from what a caller or a pending record gives; raises MemoryFault for what is no
    field of it, and for a value that no card can have."""
    from .changes import NewCard
    from .fields import body_of, checked

    given = {name: value for name, value in checked(fields).items() if value is not None}
    if unknown := sorted(given.keys() - set(NewCard.__slots__)):
        raise MemoryFault(
            f"a card has no {unknown[0]!r}", f"it has: {', '.join(NewCard.__slots__)}"
        )
    return NewCard(
        title=checked({"title": title})["title"] or "",
        body=body_of(body),
        relates=tuple((str(type), str(target)) for type, target in relates),
        raw=raw,
        **given,
    )


def _on_conflict(word: str) -> str:
    if word not in ("suffix", "reject"):
        raise MemoryFault(f"on_conflict is suffix or reject, not {word!r}")
    return word
