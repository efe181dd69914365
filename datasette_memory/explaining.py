"""The explaining part of `Memory`: why a card was not found."""

# What explaining needs is imported where it is used: a search must not pay for it.
from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from .errors import NotFound
from .home import Home

if TYPE_CHECKING:
    from .context.result import Context
    from .index.connection import sqlite3
    from .index.unindexed import Unindexed


class Explaining:
    """Why a search gives a card or does not; see `Memory`."""

    home: Home

    def why_not(
        self,
        query: str,
        reference: str,
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
    ) -> dict[str, Any]:
        """Why the search for `query`, with these filters, does not give the card `reference`: what
        `search.why_not` gives, the card's `id ref title kind source path`, and `stages`: what
        becomes of it in a context, or None where it is no candidate: `{place, removed_by, reason,
        outcome, code}`. `removed_by` is a stage of ranking, `code` a rule of the firewall; `outcome`
        is `given`, `excluded`, or `stopped` where the gate lets no such question in.

        Beside the index it looks into the trash and for files that are not indexed. `secret` lets it
        tell of secret cards. Nothing is recorded. Raises NotFound when no such card is anywhere,
        and Ambiguous.
        """
        from .search.filters import Filters
        from .search.searcher import DEFAULT_LIMIT
        from .search.why_not import why_not

        filters = Filters(
            kind,
            source,
            project,
            tuple(tags),
            since,
            exclude_tags=tuple(exclude_tags),
            sensitivities=None if sensitivities is None else tuple(sensitivities),
        )
        try:
            card = self._found(reference, secret)
        except NotFound as error:
            return {"query": query} | self._elsewhere(reference, secret, error)
        told = {
            name: card[name] for name in ("id", "ref", "title", "kind", "source", "path")
        }  # fmt: skip
        id = int(str(card["id"]))
        if id < 0:
            answer = "It is secret and kept out of the index; `memory search --secret` searches it."
            return {"query": query, **told, "id": None, **_unindexed("secret", answer)}
        with self._reading() as connection:
            found = why_not(
                connection,
                query,
                id,
                filters=filters,
                limit=DEFAULT_LIMIT if limit is None else limit,
                superseded=superseded,
            )
            stages, changed = _stages(connection, query, id, filters, secret)
        if stages and not stages["removed_by"]:
            given = self.context(
                query, kind=kind, source=source, project=project, tags=tags, since=since,
                exclude_tags=exclude_tags, sensitivities=sensitivities, record=False,
            )  # fmt: skip
            stages |= _outcome(given, id)
        if changed:
            found["notes"] = [changed]
            if not found["found"]:
                found["answer"] = f"{changed[0].upper()}{changed[1:]}. {found['answer']}"
        fault = found["fault"]
        if fault and fault.startswith("cannot be read") and not found["found"]:
            old = "the index has its earlier text."
            found |= {
                "reason": "unreadable",
                "answer": f"Its file {fault}; {old} {found['answer']}",
            }
        return {"query": query, **told, **found, "stages": stages}

    def _elsewhere(self, reference: str, secret: bool, error: NotFound) -> dict[str, Any]:
        """What there is of a card that the index does not hold. Raises `error` if there is nothing."""
        from .index.unindexed import find_unindexed

        with self._reading() as connection:
            file = find_unindexed(connection, self._sources(False), reference)
        if file is not None and (secret or not file.secret):
            told = {
                "id": None,
                "ref": file.ref,
                "title": file.title,
                "kind": file.kind,
                "source": file.source,
                "path": file.path,
            }
            return told | _unindexed(*_why_unindexed(file)) | {"fault": file.why or None}
        if trashed := self._in_trash(reference):
            told = dict.fromkeys(("id", "ref", "title", "kind", "source"))
            answer = f"It is in the trash; `memory trash --restore {trashed}` brings it back."
            return told | {"path": trashed} | _unindexed("in-trash", answer)
        raise error

    def context(self, question: str, **options: Any) -> Context:
        """See `Recalling`."""
        raise NotImplementedError

    def _found(self, reference: str, secret: bool) -> dict[str, object]:
        """See `Memory`."""
        raise NotImplementedError

    def _reading(self) -> AbstractContextManager[sqlite3.Connection]:
        """See `Memory`."""
        raise NotImplementedError

    def _in_trash(self, reference: str) -> str | None:
        """See `Memory`."""
        raise NotImplementedError

    def _sources(self, rebuild: bool) -> list:
        """See `Memory`."""
        raise NotImplementedError


def _why_unindexed(file: Unindexed) -> tuple[str, str]:
    """The code and the sentence for a file without a card in the index."""
    if file.secret:
        return "secret", "It is secret and kept out of the index."
    if file.reason == "unreadable":
        return "unreadable", f"Its file {file.why}, so the index has nothing of it."
    if file.reason == "skipped":
        return "skipped", f"Its file is passed over: {file.why}."
    return "not-indexed", "It is new and not in the index yet: run `memory index`."


def _unindexed(reason: str, answer: str) -> dict[str, Any]:
    return {
        "found": False,
        "reason": reason,
        "answer": answer,
        "place": None,
        "ranked": None,
        "limit": None,
        "tier": None,
        "coverage": None,
        "score": None,
        "terms": [],
        "fault": None,
        "notes": [],
        "stages": None,
    }


def _stages(
    connection, query: str, id: int, filters, secret: bool
) -> tuple[dict[str, Any] | None, str | None]:
    """What became of a card in the ranking of governed recall; and what its file says otherwise than
    the index."""
    from datetime import datetime, timezone

    from .search.lookup import Lookup
    from .search.pipeline import run
    from .search.sqlite import SQLiteSearcher

    written = Lookup(connection).written([id]).get(id)
    changed = None
    if written:
        changed = "its file has changed since it was indexed, and `memory index` takes that in"
        if written.gone:
            changed = "its file is gone since it was indexed"
        elif written.superseded_by or written.secret and secret:
            what = "secret" if written.secret else f"superseded by {written.superseded_by}"
            changed = f"its file says that it is {what}, which the index may not know yet"
    recalled = SQLiteSearcher(connection).candidates(query, filters, superseded=True)
    if all(one.id != id for one in recalled.candidates):
        return None, changed
    asked = recalled.question(datetime.now(timezone.utc))
    ranked, trace = run(recalled.candidates, asked, connection=connection, filters=filters)
    for one in trace.removed():
        if one.candidate.id == id:
            reason = one.reason if secret or "secret" not in one.reason else "its file has changed"
            told = {"place": None, "removed_by": one.stage, "reason": reason}
            return told | {"outcome": "excluded", "code": None}, changed
    place = next(place for place, one in enumerate(ranked, 1) if one.id == id)
    return {"place": place, "removed_by": None, "reason": ""}, changed


def _outcome(given: Context, id: int) -> dict[str, Any]:
    """What a context makes of a card that was ranked."""
    if given.pack is None:
        return {"outcome": "stopped", "code": None, "reason": " ".join(given.decision.reasons)}
    for item in given.pack.items:
        if item.candidate.id == id:
            return {"outcome": "given", "code": None, "reason": f"as {item.view}"}
    for verdict in given.pack.left_out:
        if verdict.candidate.id == id:
            told = " ".join(one.sentence for one in verdict.reasons)
            return {"outcome": "excluded", "code": verdict.reasons[-1].code, "reason": told}
    return {"outcome": "excluded", "code": None, "reason": "it is no candidate there"}
