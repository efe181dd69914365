"""The recalling half of `Memory`: what an agent was given, and what came of it."""

# What recalling needs is imported where it is used: a search must not pay for it.
from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING

from .errors import MemoryFault, NotFound
from .home import Home

if TYPE_CHECKING:
    from .context.brief import Brief
    from .context.firewall import Verdict
    from .context.pack import Pack
    from .context.result import Context
    from .index.connection import sqlite3
    from .index.verdicts import Member
    from .search.candidate import Candidate
    from .search.trace import Removed

By = Mapping[str, "str | None"]

#: Tokens that a pack may cost unless told.
DEFAULT_BUDGET = 1_500


class Recalling:
    """Cohorts and the feedback on them; see `Memory`.

    A cohort is the cards that an agent was given at once. Its id stands in what was given.
    """

    home: Home
    untouched: bool

    def context(
        self,
        question: str,
        *,
        budget: int | None = None,
        project: str | None = None,
        session: str | None = None,
        limit: int | None = None,
        kind: str | None = None,
        source: str | None = None,
        tags: Iterable[str] = (),
        exclude_tags: Iterable[str] = (),
        since: str | None = None,
        sensitivities: Iterable[str] | None = None,
        superseded: bool = False,
        record: bool = True,
        explain: bool = False,
        max_chars: int | None = None,
        read: Callable[[Candidate], str] | None = None,
        count: Callable[[str], int] | None = None,
        by: By | None = None,
    ) -> Context:
        """What an agent may see for `question`, packed into `budget` tokens: gate, search, ranking,
        firewall and pack, in this order.

        `limit` is how many cards at the most. `sensitivities` are those that may be given: public
        and internal unless told, secret never. What `session` was given already is not given again.
        `superseded` lets replaced cards into the ranking, so that `explain` shows them; the firewall
        stops them all the same. With `record` the ledger keeps what was given as a cohort, and a
        gap where nothing answered. `read` says how the rest of a card is read: on the command line
        unless told. `count` says what a text costs in tokens: `text.tokens.count` unless told.
        """
        # A turn that is stopped must not pay for what comes after the gate.
        from .context.gate import decide
        from .context.result import Context

        budget = DEFAULT_BUDGET if budget is None else max(1, budget)
        by = dict(by or {}) | ({"session": session} if session else {})
        session = by.get("session")
        decision = decide(question, self._known_in)
        if not decision.open:
            # Most such turns have no term, and cost next to nothing.
            if record and decision.terms:
                self._tell_missed(question, by)
            return Context(question, decision, budget)

        from datetime import datetime, timezone

        from .context import firewall, pack
        from .context.cohort import given_already, told_of
        from .index.given import given_to
        from .index.sourced import sourced
        from .index.tail import Tail
        from .search.contested import contested
        from .search.filters import Filters
        from .search.pipeline import run
        from .search.searcher import clamp
        from .search.sqlite import SQLiteSearcher

        policy = firewall.Policy()
        if limit is not None:
            policy = replace(policy, max_items=clamp(limit))
        if sensitivities is not None:
            policy = replace(policy, sensitivities=frozenset(sensitivities))
        filters = Filters(
            kind, source, project, tuple(tags), since, exclude_tags=tuple(exclude_tags)
        )
        with self._reading() as connection:
            recalled = SQLiteSearcher(connection).candidates(
                question, filters=filters, superseded=superseded
            )
            asked = recalled.question(datetime.now(timezone.utc), project)
            ranked, trace = run(recalled.candidates, asked, connection=connection, filters=filters)
            tail = Tail(connection, self.home.home / "ledger")
            known = sourced(connection, tail, map(_place, ranked))
            given = given_to(connection, tail, session) if session else ()
            doubted = contested(connection, [one.id for one in ranked])
            # Whether a file says so can be asked while the index is open.
            removed = _verdicts(trace.removed())
        screened = firewall.screen(
            ranked,
            asked,
            policy,
            sourced=known,
            given=given_already(given, ranked),
            contested=doubted,
        )
        cohort = self._new_cohort() if record else None
        packed = pack.pack(
            screened,
            asked,
            budget,
            cohort=cohort or "none",
            read=read or pack.cli_call,
            max_chars=max_chars,
            count=count,
            told=told_of(given, ranked),
        )
        if explain:
            for verdict in (*screened.verdicts, *packed.left_out):
                reason = " ".join(one.sentence for one in verdict.reasons)
                trace.judge(verdict.candidate.id, verdict.outcome, reason)
        packed = replace(packed, left_out=(*packed.left_out, *removed))
        if record and not ranked:
            self._tell_missed(question, by)
        recorded = self._record_injection(packed, cohort, by, project)
        if cohort and not recorded:
            # A cohort that no ledger tells of must not be named.
            packed = replace(packed, text=packed.text.replace(cohort, "none", 1), cohort="none")
        return Context(
            question,
            decision,
            budget,
            packed,
            recorded,
            screened.refused,
            tuple(ranked),
            recalled.notice,
            trace if explain else None,
        )

    def _tell_missed(self, question: str, by: By) -> None:
        """Record the terms of a question that nothing was given for, credentials taken out first."""
        from .context.gate import decide
        from .text.secrets import find_personal, find_secrets

        found = sorted(
            (one.start, one.end) for one in (*find_secrets(question), *find_personal(question))
        )
        for start, end in reversed(found):
            question = f"{question[:start]} {question[end:]}"
        if terms := decide(question).terms:
            self._tell_gap(" ".join(terms), by)

    def _known_in(self, text: str) -> list[tuple[str, str]]:
        """What the index knows of a text; nothing where there is no index."""
        from .index.connection import NoIndex
        from .index.phrases import known_in

        with contextlib.suppress(NoIndex), self._reading() as connection:
            return known_in(connection, text)
        return []

    def brief(
        self,
        *,
        project: str | None = None,
        budget: int | None = None,
        max_chars: int | None = None,
        call: str = "memory show REF",
        count: Callable[[str], int] | None = None,
    ) -> Brief:
        """What a new session should know: open handoffs, live signals, recent decisions and the
        cards that were most of use, in at most `budget` tokens. `call` says how a card is read."""
        from datetime import datetime, timezone

        from .context import brief
        from .index.sourced import sourced
        from .index.tail import Tail
        from .search.brief import sections
        from .search.filters import Filters
        from .search.lookup import Lookup
        from .search.question import Question
        from .search.stages import supersession

        now = datetime.now(timezone.utc)
        asked = Question("", (), (), now)
        with self._reading() as connection:
            lookup = Lookup(connection, Filters())
            found = [
                (name, supersession(cards, asked, lookup))
                for name, cards in sections(connection, now=now, project=project)
            ]
            tail = Tail(connection, self.home.home / "ledger")
            known = sourced(connection, tail, [_place(one) for _, cards in found for one in cards])
        return brief.brief(
            found,
            brief.DEFAULT_BUDGET if budget is None else budget,
            now=now,
            sourced=known,
            max_chars=max_chars,
            call=call,
            count=count,
        )

    def cohort(self, cohort: str) -> dict[str, object]:
        """What a cohort was, and the verdicts so far: `{cohort, t, by, project, tokens, budget,
        left_out, more, cards}`, each card with `{ref, title, source, path, view, tokens, version,
        verdict}` as it is now; of one that is gone the ref alone.

        `more` counts cards that the ledger had no room for. Raises NotFound.
        """
        told, found = self._members(cohort)
        cards = [
            {
                "ref": one.ref or one.given.ref,
                "title": one.title,
                "source": one.source,
                "path": one.path,
                "view": one.given.view,
                "tokens": one.given.tokens,
                "version": one.given.version,
                "verdict": one.verdict,
            }
            for one in found
        ]
        return {
            "cohort": told.cohort.id,
            "t": told.t,
            "by": told.by,
            "project": told.cohort.project,
            "tokens": told.cohort.tokens,
            "budget": told.cohort.budget,
            "left_out": dict(told.cohort.left_out or {}),
            "more": told.cohort.more,
            "cards": cards,
        }

    def feedback(
        self,
        cohort: str,
        adopted: Iterable[str] = (),
        rejected: Iterable[str] = (),
        ignored: Iterable[str] = (),
        by: By | None = None,
    ) -> dict[str, object]:
        """Say what came of the cards of a cohort: `{cohort, adopted, rejected, ignored, unchanged}`,
        lists of refs.

        An adopted card gets support + 1 and gain + 0.1, a rejected one contradict + 1 and gain
        - 0.1, an ignored one nothing. The last verdict on a card counts, an earlier one of the same
        cohort is taken back; the same one again is `unchanged`. Nothing is taken for granted of
        cards that are not named. Either all are recorded or, when one of them is none of the
        cohort, none: raises NotFound, Ambiguous, or MemoryFault, which names what the cohort holds.
        """
        asked = {"adopted": adopted, "rejected": rejected, "ignored": ignored}
        asked = {
            verdict: [refs] if isinstance(refs, str) else list(refs)
            for verdict, refs in asked.items()
        }
        if not any(asked.values()):
            raise MemoryFault(
                "there is nothing to record", "name cards that were adopted, rejected or ignored"
            )
        if self.untouched:
            raise MemoryFault(f"{self.home.db} is only read here", "record it where it is written")
        if not self.is_own():
            raise MemoryFault(
                f"feedback on {self.home.db} has no ledger to go to",
                "leave --db out: the home's own index has one",
            )
        told, found = self._members(cohort)
        verdicts: dict[int, tuple[Member, str]] = {}
        with self._reading() as connection:
            for verdict, references in asked.items():
                for reference in references:
                    member = self._member(connection, told.cohort.id, found, reference)
                    _, earlier = verdicts.setdefault(int(member.id or 0), (member, verdict))
                    if earlier != verdict:
                        raise MemoryFault(
                            f"{member.ref} cannot be both {earlier} and {verdict}",
                            "name each card once",
                        )
        result: dict[str, list[str]] = {"adopted": [], "rejected": [], "ignored": []}
        result["unchanged"] = []
        changed = []
        for member, verdict in verdicts.values():
            unchanged = member.verdict == verdict
            result["unchanged" if unchanged else verdict].append(str(member.ref))
            if not unchanged:
                changed.append((member, verdict))
        self._record_verdicts(told.cohort.id, changed, by)
        return {"cohort": told.cohort.id, **result}

    def _new_cohort(self) -> str | None:
        """An id for what is given next; None where no ledger would tell of it."""
        if self.untouched or not self.is_own():
            return None
        from .ledger.cohort import new_cohort

        return new_cohort()

    def _record_injection(
        self, pack: Pack, cohort: str | None, by: By | None = None, project: str | None = None
    ) -> str | None:
        """Put what was given into the ledger, without complaint where that cannot be; gives the
        cohort's id if it is there. A card whose full text was given was read."""
        if cohort is None or not pack.items:
            return None
        from .context.cohort import cohort_of
        from .ledger.cohort import cohort_data

        data = cohort_data(cohort_of(pack, cohort, project))
        if self._tell("inject", by, **data) is None:
            return None
        self._record_reads(
            [
                {"id": one.id, "ref": one.ref, "source": one.source, "path": one.path}
                for one in (item.candidate for item in pack.items if item.view == "detail")
            ],
            by,
        )
        return cohort

    def tell_runtime(self, by: By, **data: object) -> None:
        """Record that a client or a hook did something; `data` holds no word of a prompt."""
        self._tell("runtime", by, **data)

    # Inside

    def _members(self, cohort: str):
        from .index.verdicts import members

        asked = cohort.strip()
        with self._reading() as connection:
            ledger = self.home.home / "ledger"
            # Somebody may have typed it.
            for id in dict.fromkeys((asked, asked.upper())):
                if self.is_own() and (found := members(connection, ledger, id)):
                    return found
        raise NotFound(
            f"nothing was given as the cohort {asked!r}",
            "its id stands in what `memory context` gives; the view `injections` lists all",
        )

    def _member(self, connection, cohort: str, found: list[Member], reference: str) -> Member:
        """The card of the cohort that a reference means."""
        from .index import read

        ids = set(read.find_cards(connection, reference, read.roots(connection)))
        meant = {one.id: one for one in found if one.id in ids}
        if len(meant) == 1:
            return meant.popitem()[1]
        if meant or not ids:
            self._find(connection, reference)
        held = [f"{one.ref} ({one.title})" for one in found if one.ref]
        raise MemoryFault(
            f"{reference!r} is not among the cards of the cohort {cohort}",
            f"it holds {', '.join(held)}" if held else "the index has none of its cards any more",
        )

    def _record_verdicts(
        self, cohort: str, changed: list[tuple[Member, str]], by: By | None
    ) -> None:
        """One event a card, and the figures of these cards at once, where the index lets it."""
        from .durable import side_by_side
        from .index.connection import sqlite3
        from .index.verdicts import count
        from .ledger.writer import Ledger

        if not changed:
            return
        folder = self.home.home / "ledger"
        ledger = Ledger(folder)
        try:
            with side_by_side():
                for one, verdict in changed:
                    ledger.append(
                        "feedback", ref=one.ref, source=one.source, path=one.path,
                        by=dict(by or {}), cohort=cohort, verdict=verdict,
                    )  # fmt: skip
        except OSError as error:
            raise MemoryFault(
                f"the ledger {folder} cannot be written: {error.strerror or error}",
                "make room or mend the permissions, and say it again: what is there already "
                "stays as it is",
            ) from error
        except ValueError as error:
            raise MemoryFault(f"this cannot be recorded: {error}") from error
        with contextlib.suppress(sqlite3.Error, OSError), self._counting() as connection:
            count(connection, folder, [(str(one.source), str(one.path)) for one, _ in changed])

    def is_own(self) -> bool:
        """See `Memory`."""
        raise NotImplementedError

    def _reading(self) -> AbstractContextManager[sqlite3.Connection]:
        """See `Memory`."""
        raise NotImplementedError

    def _counting(self) -> AbstractContextManager[sqlite3.Connection]:
        """See `Memory`."""
        raise NotImplementedError

    def _find(self, connection, reference: str) -> dict[str, object]:
        """See `Memory`."""
        raise NotImplementedError

    def _tell(self, kind: str, by, card=None, **data: object) -> str | None:
        """See `Memory`."""
        raise NotImplementedError

    def _record_reads(self, cards, by) -> None:
        """See `Memory`."""
        raise NotImplementedError


def _place(one: Candidate) -> tuple[int, str, str, str]:
    """A card as `index.sourced` asks for it."""
    return one.id, one.source, one.path, one.ref


def _verdicts(removed: list[Removed]) -> list[Verdict]:
    """What stages took out, as the receipt tells of it; of secret cards not even that."""
    from .context.firewall import EXCLUDED, Reason, Verdict

    codes = {"supersession": "superseded", "stale-state": "stale"}
    return [
        Verdict(one.candidate, EXCLUDED, (Reason(codes.get(one.stage, one.stage), one.reason),))
        for one in removed
        if "secret" not in one.reason
    ]
