"""Memory: the one object that every surface calls."""

# What searching needs is imported where it is used: writing must not pay for it.
from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from . import home as homes
from .errors import Ambiguous, MemoryFault, NotFound
from .explaining import Explaining
from .index import read
from .index.connection import (
    Damaged,
    NoDatabase,
    NoIndex,
    check_place,
    connect_read,
    connect_write,
    sqlite3,
    transaction,
    translated,
)
from .index.schema import get_meta, missing_triggers
from .keeping import Keeping
from .recalling import Recalling
from .text.tokenise import TOKENIZER_VERSION
from .text.window import MAX_CHARS, Window, window
from .writing import Writing

if TYPE_CHECKING:
    from .index.kept import KeptReaders
    from .search.hits import SearchResult


@dataclass(frozen=True, slots=True)
class Shown:
    """A card with a window of its text."""

    card: dict[str, object]
    window: Window

    def to_dict(self) -> dict[str, object]:
        """The object that every surface returns."""
        return self.card | self.window.to_dict()


class Memory(Writing, Keeping, Recalling, Explaining):
    """A memory: its index, its vault and its sources.

    ::

        memory = Memory()                      # ~/.memory_agent, or what the environment says
        memory.index()                         # bring the index in step with the files
        memory.search("阿里云 私钥").hits[0].title
        memory.show("D_0001").window.text

    Paths are resolved as `home.resolve` says. Nothing is opened or created before a method needs
    it. Every method raises MemoryFault, with a line for the user, when it cannot do its work.
    """

    def __init__(
        self, home: str | None = None, *, db: str | None = None, vault: str | None = None
    ) -> None:
        self._options = home, db, vault
        self.home = homes.resolve(home, db, vault)
        #: Whether nothing may be written for the sake of reading: no read counted, no gap told,
        #: no trigger restored.
        self.untouched = False
        #: Connections that stay open between reads, for whoever serves many.
        self.readers: KeptReaders | None = None

    @property
    def db(self) -> Path:
        """The index."""
        return self.home.db

    # Reading

    def search(
        self,
        query: str,
        *,
        limit: int | None = None,
        kind: str | None = None,
        source: str | None = None,
        project: str | None = None,
        tags: Iterable[str] = (),
        exclude_tags: Iterable[str] = (),
        sensitivities: Iterable[str] | None = None,
        since: str | None = None,
        superseded: bool = False,
        secret: bool = False,
        as_of: str | None = None,
        explain: bool = False,
        by: Mapping[str, str | None] | None = None,
    ) -> SearchResult:
        """The cards that answer `query`, best first; see `search.sqlite` for the order.

        `limit` is 5 unless given, and clamped to 1..20. `superseded` lets replaced cards in.
        `secret` searches the cards that are kept out of the index, and those alone, by reading
        their files. `as_of` takes the cards that held on a day, replaced ones too, and ranks them
        by their present text. `sensitivities` are those that are allowed; none of them allows
        nothing. `explain` adds what became of each card, and changes nothing. A search that finds
        nothing leaves a gap in the ledger.
        """
        from .search.filters import Filters
        from .search.searcher import DEFAULT_LIMIT
        from .search.sqlite import SQLiteSearcher

        limit = DEFAULT_LIMIT if limit is None else limit
        moment = _day(as_of)
        filters = Filters(
            kind, source, project, tuple(tags), since, moment and moment.isoformat(),
            tuple(exclude_tags), None if sensitivities is None else tuple(sensitivities),
        )  # fmt: skip
        superseded = superseded or moment is not None
        with self._secret_index() if secret else self._reading() as connection:
            result = SQLiteSearcher(connection).search(
                query, limit=limit, filters=filters, superseded=superseded
            )
            if explain:
                from .search.explain import explain_search

                result = explain_search(connection, result, filters, limit, superseded)
            if not result.hits and read.count(connection) == 0:
                return replace(result, notice="The index holds no card.")
        if not result.hits and not secret:
            self._tell_gap(query, by)
        return result

    def show(
        self, reference: str, *, offset: int = 0, max_chars: int = MAX_CHARS, full: bool = False,
        secret: bool = False, as_of: str | None = None,
        by: Mapping[str, str | None] | None = None,
    ) -> Shown:  # fmt: skip
        """A card by ref, row id, path or exact title, and a window of its text.

        Counts as a read. `secret` looks among the cards outside the index when the index has none.
        `as_of` gives the text of that day. Raises NotFound, or Ambiguous when several cards answer.
        """
        card = self._found(reference, secret)
        if as_of is None:
            self._record_read(card, by)
        else:
            card = self._as_of(card, as_of)
            if card["sensitivity"] == "secret" and not secret:
                raise NotFound(f"what {card['ref']} said on {as_of} is secret")
        text = str(card.pop("body"))
        return Shown(card, window(text, offset, max_chars, full))

    def cards(self, ids: Iterable[int]) -> list[dict[str, object]]:
        """What is known about the cards with these row ids, without their text. No read is
        counted: it is for lists, as `search` gives them. An id that has gone is left out."""
        with self._reading() as connection:
            known = read.existing(connection, ids)
            found = [_decoded(read.card(connection, id)) for id in known]
        return [{key: value for key, value in card.items() if key != "body"} for card in found]

    def history(self, reference: str, *, secret: bool = False) -> dict[str, object]:
        """What happened to a card: `{ref, path, version, events}`, the oldest event first.

        An event with `before` has the earlier text in the evidence under that hash;
        `restore_version` brings it back by its `version_before`. `secret` as for `show`.
        """
        from .ledger.reader import merge

        card = self._found(reference, secret)
        events = [
            {"t": event.t, "kind": event.kind, "by": event.by, "path": event.path, **event.data}
            for event, _ in merge(self.home.home / "ledger")
            if event.kind != "read" and event.source == card["source"]
            and (event.ref == card["ref"] or event.path == card["path"])
        ]  # fmt: skip
        return {
            "ref": card["ref"],
            "path": card["path"],
            "title": card["title"],
            "version": card["version"],
            "events": events,
        }

    def raw(
        self, reference: str, *, offset: int = 0, max_chars: int = MAX_CHARS, part: int = 1,
        secret: bool = False, by: Mapping[str, str | None] | None = None,
    ) -> dict[str, object]:  # fmt: skip
        """A window of the long original that is kept beside a card; `part` counts from 1.

        `secret` as for `show`. Raises NotFound when the card has none.
        """
        from .evidence.store import EvidenceStore

        card = self._found(reference, secret)
        kept = card["refs"].get("evidence", []) if isinstance(card["refs"], dict) else []
        kept = [kept] if isinstance(kept, str) else kept
        if not 1 <= part <= len(kept):
            raise NotFound(
                f"{card['ref']} has no raw text" + (f" number {part}" if kept else ""),
                "a card gets one with `memory capture --raw FILE`",
            )
        store = EvidenceStore(self.home.home / "evidence")
        shown = store.window(str(kept[part - 1]), offset, max_chars)
        self._record_read(card, by)
        return {
            "id": card["id"],
            "ref": card["ref"],
            "title": card["title"],
            "sha256": kept[part - 1],
            "part": part,
            "parts": len(kept),
            **shown.to_dict(),
        }

    def related(
        self, reference: str, *, depth: int = 1, as_of: str | None = None, secret: bool = False
    ) -> dict[str, object]:
        """The cards that hang together with one: `{ref, title, depth, count, cards}`.

        Each has the link by which it was reached first: `type`, `outgoing`, and `via`, the card
        before it; `also` are the other links between these two, or None. `as_of` takes the links of that day. `secret` as for `show`; other secret cards
        are not among them.
        """
        from .index import graph

        moment = _day(as_of)
        card = self._found(reference, secret)
        start = int(str(card["id"]))
        with self._reading() as connection:
            edges = None if moment is None else self._edges_then(connection, moment, card, secret)
            if start < 0:
                then = card if as_of is None else self._as_of(card, as_of)
                edges = graph.all_edges(connection) if edges is None else edges
                edges += graph.edges_outside(connection, then)
            found = graph.walk(connection, start, depth, edges)
            cards = []
            for one in found:
                other = read.card(connection, one.id)
                via = card if one.via == start else read.card(connection, one.via)
                cards.append(
                    {
                        "id": one.id,
                        "ref": other["ref"],
                        "title": other["title"],
                        "kind": other["kind"],
                        "source": other["source"],
                        "path": other["path"],
                        "depth": one.depth,
                        "type": one.type,
                        "outgoing": one.outgoing,
                        "via": via["ref"],
                        "also": [
                            {"type": type, "outgoing": outgoing} for type, outgoing in one.also
                        ]
                        or None,
                        "superseded_by": other["superseded_by"],
                    }
                )
        return {
            "ref": card["ref"],
            "title": card["title"],
            "depth": depth,
            "count": len(cards),
            "cards": cards,
        }

    def stats(self) -> read.Stats:
        """Figures of the index."""
        with self._reading() as connection:
            return read.stats(connection, self.db)

    def count(self) -> int:
        """The number of cards in the index."""
        with self._reading() as connection:
            return read.count(connection)

    # Writing

    def index(
        self,
        *,
        rebuild: bool = False,
        progress: Callable[[int, int], None] | None = None,
        waiting: Callable[[], None] | None = None,
    ):
        """Bring the index in step with the vault and every source of `config.json`.

        `rebuild` builds it anew and swaps it in. Gives a `SyncResult`. An index of the home that
        is damaged, or that something else took the place of, is set aside and built anew. A source
        that was taken out of `config.json` leaves the home's index. Another database has sources that no
        `config.json` knows: they stay, and are followed too.
        """

        def plan() -> list:
            self.home = homes.resolve(*self._options)
            sources = self._sources(rebuild)
            if not sources:
                raise MemoryFault(
                    f"there is no vault at {self.home.vault}",
                    f"make it (mkdir -p {self.home.vault}) and put Markdown cards in it, "
                    "or import a folder: memory-import FOLDER",
                )
            return sources

        def finish(connection, sources, result) -> None:
            from .index.sync import drop_sources

            if self.is_own():
                drop_sources(connection, {source.name for source in sources}, result)
                self._follow_ledger(connection, result)

        self._tidy()
        was_empty = self.is_own() and _is_empty(self.db)
        try:
            result = self._sync(plan, finish, rebuild, progress, waiting)
            if was_empty:
                result.notes.insert(0, f"{self.db.name} was empty, and was built from the files")
            return result
        except NoDatabase as error:
            note = self._set_foreign_aside(error, waiting)
            result = self.index(progress=progress, waiting=waiting)
            result.notes.insert(0, note)
            return result
        except Damaged:
            # The sources of another index are known to that index alone.
            if rebuild or not self.is_own():
                raise
        result = self.index(rebuild=True, progress=progress, waiting=waiting)
        result.notes.insert(0, "the index was damaged, and was built anew from the files")
        return result

    def _set_foreign_aside(self, error: NoDatabase, waiting: Callable[[], None] | None) -> str:
        """Give what is no database, and stands where the home has its index, another name; gives
        a line that tells of it.

        Raises MemoryFault where it may have been named by mistake: outside of the home, or in a
        home without cards.
        """
        from .index.connection import connect_any
        from .index.lock import write_lock
        from .index.rebuild import set_aside

        home = self.home.home.resolve()
        if not (self.is_own() and self.db.resolve().is_relative_to(home)):
            raise MemoryFault(
                f"{self.db} is not a database, and lies outside of the home {home}: it stays as it "
                "is",
                "name another file with --db, or move this one away",
            ) from error
        if not self._sources(True):
            raise error
        with write_lock(self.db, waiting):
            try:
                connect_any(self.db).close()
            except NoDatabase:
                kept = set_aside(self.db)
                return (
                    f"{self.db.name} was not a database: it was kept as {kept.name}, and the index "
                    "was built from the files"
                )
        return f"{self.db.name} was not a database, and somebody has mended that meanwhile"

    def import_paths(
        self,
        paths: Iterable[str],
        *,
        name: str | None = None,
        exclude: Iterable[str] = (),
        max_bytes: int | None = None,
        rebuild: bool = False,
        progress: Callable[[int, int], None] | None = None,
        waiting: Callable[[], None] | None = None,
    ):
        """Import folders (or single Markdown files) as sources; again means incrementally.

        On the home's index the sources are recorded in `config.json`, so that `index()` follows
        them. Gives a `SyncResult`. `rebuild` builds the index anew from all of its sources.
        """
        from .sources import choose, record

        paths, exclude = [Path(path) for path in paths], tuple(exclude)

        def plan() -> list:
            self.home = homes.resolve(*self._options)
            known = self._sources(rebuild) if self.is_own() else self._stored_sources(rebuild)
            sources = choose(paths, known, self.home.vault, name, exclude, max_bytes)
            if rebuild:
                names = {source.name for source in sources}
                sources += [source for source in known if source.name not in names]
            return sources

        def finish(connection, sources, result) -> None:
            if self.is_own():
                record(self.home, sources)
                self.home = homes.resolve(*self._options)
                self._follow_ledger(connection, result)

        return self._sync(plan, finish, rebuild, progress, waiting)

    # Inside

    @contextlib.contextmanager
    def _reading(self) -> Iterator["sqlite3.Connection"]:
        opened = self.readers and self.readers.connection(self.db)
        with opened or contextlib.closing(connect_read(self.db)) as connection, translated(self.db):
            if get_meta(connection, "tokenizer_version") != TOKENIZER_VERSION:
                raise MemoryFault(
                    f"{self.db} was built by another version",
                    "bring it up to date with `memory index`",
                )
            if not self.untouched and missing_triggers(connection):
                # Something altered the table; the search would go stale without a word.
                self._restore_triggers()
            # One state of the index for all that is read, whatever is written meanwhile.
            connection.execute("begin")
            yield connection

    def _restore_triggers(self) -> None:
        from .index.functions import register
        from .index.schema import ensure_triggers

        with contextlib.suppress(MemoryFault, sqlite3.Error):
            with contextlib.closing(connect_write(self.db)) as connection:
                register(connection)
                ensure_triggers(connection)

    def _found(self, reference: str, secret: bool) -> dict[str, object]:
        """The card that `reference` means; with `secret` also one that the index does not hold,
        whose row id is below 0. Raises NotFound and Ambiguous."""
        with self._reading() as connection:
            try:
                return self._find(connection, reference)
            except NotFound:
                # Reading the secret cards costs much more than knowing that there are none.
                if not secret or not read.has_secret(connection):
                    raise
        with self._secret_index() as connection:
            return self._find(connection, reference)

    def _find(self, connection, reference: str) -> dict[str, object]:
        from .text.times import is_expired

        ids = read.find_cards(connection, reference, read.roots(connection))
        if not ids:
            hint = "give a ref, a row id, a path or an exact title; `memory search` finds them"
            if trashed := self._in_trash(reference):
                hint = f"it is in the trash, and comes back by `memory trash --restore {trashed}`"
            raise NotFound(f"no card answers to {reference!r}", hint)
        if len(ids) > 1:
            candidates = read.titles(connection, ids)
            raise Ambiguous(f"{len(ids)} cards answer to {reference!r}", candidates)
        card = _decoded(read.card(connection, ids[0]))
        card["expired"] = is_expired(card["created"], card["ttl"], card["valid_until"])
        return card

    def _in_trash(self, reference: str) -> str | None:
        """Where in the trash the card lies that has this ref, path or title; secret ones nowhere."""
        from .index.links import fold
        from .known import trashed_cards
        from .vault.writer import Vault

        name = fold(reference)
        if self.is_own():
            with contextlib.suppress(OSError):
                for item, card in trashed_cards(Vault(self.home.vault)):
                    names = {fold(one) for one in (card.ref or "", item.path, card.title)}
                    if name in names and card.sensitivity != "secret":
                        return item.trash_path
        return None

    def _record_read(self, card: Mapping[str, object], by: Mapping[str, str | None] | None) -> None:
        self._record_reads([card], by)

    def _record_reads(
        self, cards: Iterable[Mapping[str, object]], by: Mapping[str, str | None] | None
    ) -> None:
        """Reads are counted as well as can be; no reader has to wait for it or hear of it. Those
        of secret cards are not: the ledger would tell of them."""
        told = [
            (id, moment)
            for card in cards
            if (id := int(str(card["id"]))) >= 0 and (moment := self._tell("read", by, card))
        ]
        if told:
            with contextlib.suppress(sqlite3.Error, OSError), self._counting() as connection:
                with transaction(connection):
                    for id, moment in told:
                        read.record_read(connection, id, moment)

    @contextlib.contextmanager
    def _counting(self) -> Iterator["sqlite3.Connection"]:
        """To write figures with, soon or not at all. Raises sqlite3.Error."""
        uri = self.db.absolute().as_uri() + "?mode=rw"
        with contextlib.closing(
            sqlite3.connect(uri, uri=True, timeout=0.2, isolation_level=None)
        ) as connection:
            # What a power cut takes is still in the ledger.
            connection.execute("pragma synchronous = normal")
            yield connection

    def _tell_gap(self, words: str, by: Mapping[str, str | None] | None) -> None:
        """Record that nothing was found for these words; credentials among them are masked."""
        self._tell("gap", by, query=_without_secrets(" ".join(words.split())[:200]))

    def _tell(
        self,
        kind: str,
        by: Mapping[str, str | None] | None,
        card: Mapping[str, object] | None = None,
        **data: object,
    ) -> str | None:
        """Put an event into the ledger of the home, without complaint where that cannot be; gives
        its time if it is there. Another index than the home's has no ledger."""
        if self.untouched or not self.is_own():
            return None
        from .ledger.writer import Ledger

        place = {key: str(card[key]) for key in ("ref", "source", "path")} if card else {}
        with contextlib.suppress(OSError, ValueError):
            event = Ledger(self.home.home / "ledger").append(
                kind, by=dict(by or {}), sync=False, **place, **data
            )
            return event.t
        return None

    def _as_of(self, card: dict[str, object], as_of: str) -> dict[str, object]:
        """The card as it was on a day. Raises NotFound when it was not there yet."""
        from .evidence.store import EvidenceStore
        from .index.rows import card_row
        from .past import look_back
        from .vault.card import parse_card

        past = look_back(self.home.home / "ledger", _day(as_of))
        if not past.was_there(card):
            raise NotFound(f"{card['ref']} was not there yet on {as_of}")
        text = past.text(str(card["ref"]), EvidenceStore(self.home.home / "evidence"))
        if text is None:
            return card
        path = str(card["path"])
        old = parse_card(text.encode(), path)
        row = card_row(old, int(str(card["id"])), str(card["source"]), path, 0)
        with self._reading() as connection:
            relations = [
                {
                    "type": one.type,
                    "target": one.target,
                    "title": read.title(connection, one.target),
                }
                for one in old.relations
            ]
        return card | _decoded(row) | {"superseded_by": old.superseded_by, "relations": relations}

    def _edges_then(
        self, connection, moment: datetime, card: Mapping[str, object], secret: bool
    ) -> list:
        """The links between cards as they were at `moment`, without those of texts that were secret
        then, but for `card` itself with `secret`. Raises NotFound when `card` was not there yet."""
        from .evidence.store import EvidenceStore
        from .index import graph
        from .past import event_time, look_back
        from .vault.card import parse_card

        past = look_back(self.home.home / "ledger", moment)
        if not past.was_there(card):
            raise NotFound(f"{card['ref']} was not there yet at {moment.isoformat()}")
        evidence = EvidenceStore(self.home.home / "evidence")
        there, edges = set(), []
        changed = set()
        for id, ref, source, path, created in connection.execute(
            "select id, ref, source, path, created from cards"
        ).fetchall():
            if past.was_there({"ref": ref, "created": created}):
                there.add(id)
            text = past.text(ref, evidence) if source == "vault" else None
            if text is not None:
                changed.add(id)
                then = parse_card(text.encode(), path)
                if then.sensitivity != "secret" or (secret and id == card["id"]):
                    edges += graph.edges_of(connection, then, id, source, path)
        edges += [edge for edge in graph.written_edges(connection) if edge.source not in changed]
        edges += graph.ledger_edges(connection, event_time(moment))
        return [edge for edge in edges if edge.source in there and edge.target in there]

    def is_own(self) -> bool:
        """Whether the index is the one that the home has by itself, under whatever name."""
        return self.db.resolve() == homes.resolve(self._options[0]).db.resolve()

    def _sources(self, rebuild: bool) -> list:
        """The vault, if it is there or once was, and the sources of `config.json`; for another
        index than the home's also those that it knows itself.
        """
        from .sources import VAULT, configured
        from .vault.sources import Source

        stored = {source.name: source for source in self._stored_sources(rebuild)}
        sources = configured(self.home)
        if self.home.vault.is_dir() or VAULT in stored:
            sources.insert(0, Source(VAULT, str(self.home.vault)))
        if self.is_own():
            return sources
        return list(({source.name: source for source in sources} | stored).values())

    def _stored_sources(self, rebuild: bool) -> list:
        """The sources that the index knows; none if there is no index, or a damaged one that is
        to be built anew.
        """
        from .index.sync import stored_sources

        try:
            connection = connect_read(self.db)
            with contextlib.closing(connection), translated(self.db):
                return stored_sources(connection)
        except NoIndex:
            return []
        except (Damaged, NoDatabase):
            if rebuild:
                return []
            raise

    def _while_nobody_changes_cards(self) -> contextlib.AbstractContextManager:
        if self.is_own() and self.home.vault.is_dir():
            return self._alone(self._sweep)
        return contextlib.nullcontext()

    def _on_moved(self):
        """What records that a card moved, so that its reads stay with it; of the home alone."""
        if not self.is_own():
            return None
        from .ledger.writer import Ledger

        ledger = Ledger(self.home.home / "ledger")

        def record(source: str, old_path: str, path: str, ref: str | None) -> None:
            with contextlib.suppress(OSError, ValueError):
                ledger.append("moved", ref=ref, source=source, path=path, old_path=old_path)

        return record

    def _follow_ledger(self, connection, result) -> None:
        """What the ledger, the evidence and the trash add to the index of the home."""
        from .index import numbers
        from .index.project import project, project_evidence
        from .known import trashed_refs
        from .vault.writer import Vault

        ledger = self.home.home / "ledger"
        result.notes += project(connection, ledger, result.changed)
        project_evidence(connection, self.home.home / "evidence")
        trashed: list[str] = []
        try:
            trashed = trashed_refs(Vault(self.home.vault))
        except OSError as error:
            result.notes.append(f"{error.filename} cannot be read: {error.strerror}")
        with transaction(connection):
            numbers.refresh(connection, trashed)

    @contextlib.contextmanager
    def _secret_index(self) -> Iterator["sqlite3.Connection"]:
        from .index.secret import secret_index
        from .index.sync import stored_sources

        with self._reading() as connection:
            secret = secret_index(connection, stored_sources(connection))
        with contextlib.closing(secret):
            yield secret

    def _sync(self, plan, finish, rebuild, progress, waiting):
        """Bring the index in step with the sources that `plan()` gives, and call
        `finish(connection, sources, result)` on it before anybody else may write.
        """
        from .index.lock import write_lock
        from .index.migrations import migrate
        from .index.rebuild import clear_away
        from .index.rebuild import rebuild as build_anew
        from .index.sync import sync
        from .index.vectors import fill

        # Says what is wrong before anything is made or waits. What is right may be another thing
        # when the wait is over.
        check_place(self.db)
        plan()
        if not rebuild:
            connect_write(self.db).close()
        with write_lock(self.db, waiting), translated(self.db):
            sources = plan()
            clear_away(self.db)
            if rebuild:
                result = build_anew(
                    self.db,
                    sources,
                    progress,
                    lambda new, result: finish(new, sources, result),
                    self._while_nobody_changes_cards,
                )
            with contextlib.closing(connect_write(self.db)) as connection:
                if not rebuild:
                    migrate(connection)
                    result = sync(connection, sources, progress, self._on_moved())
                    finish(connection, sources, result)
                result.vectors, fault = fill(connection, progress=progress)
                result.notes += [fault] if fault else []
            return result


def _is_empty(path: Path) -> bool:
    try:
        return path.stat().st_size == 0
    except OSError:
        return False


def _decoded(row: dict[str, object]) -> dict[str, object]:
    """A row of `cards` with its JSON columns as what they hold."""
    columns = ("tags", "keywords", "aliases", "refs", "extra")
    return row | {column: json.loads(str(row[column])) for column in columns}


def _without_secrets(text: str) -> str:
    """A query as the ledger may keep it: what looks like a credential is masked."""
    from .text.secrets import find_personal, find_secrets, mask

    return mask(mask(text, find_secrets(text)), find_personal(text))


def _day(as_of: str | None) -> datetime | None:
    if as_of is None:
        return None
    from .past import parse_day

    return parse_day(as_of)
