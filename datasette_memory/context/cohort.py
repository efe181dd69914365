"""A pack as the ledger remembers it: which cards were given, how much of each, and what was not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING
from zlib import crc32

from ..ledger.cohort import Cohort, Given

if TYPE_CHECKING:
    from ..search.candidate import Candidate
    from .pack import Pack


def cohort_of(pack: Pack, cohort: str, project: str | None = None) -> Cohort:
    """What `pack`, given under the id `cohort`, is to the ledger. Of a card that was left out the
    last reason counts: it is the one that decided."""
    return Cohort(
        cohort,
        tuple(
            Given(
                item.candidate.ref,
                item.candidate.source,
                item.candidate.path,
                item.view,
                item.tokens,
                item.candidate.version,
                mark(item.candidate),
            )
            for item in pack.items
        ),
        pack.tokens,
        pack.budget,
        Counter(verdict.reasons[-1].code for verdict in pack.left_out if verdict.reasons),
        project,
    )


def given_already(given: Iterable[Given], candidates: Iterable[Candidate]) -> set[int]:
    """The ids of those candidates that `given`, the cards that a session has had, the oldest first,
    holds as they are now: in this version, and with this text. A card that was moved is known by
    its ref. A locator says that there is a card, and gives nothing of it; see `told_of`."""
    return _known((one for one in given if one.view != "locator"), candidates)


def told_of(given: Iterable[Given], candidates: Iterable[Candidate]) -> set[int]:
    """The ids of those candidates of which a session has had anything at all, be it a locator."""
    return _known(given, candidates)


def _known(given: Iterable[Given], candidates: Iterable[Candidate]) -> set[int]:
    known = {}
    for one in given:
        known[one.source, one.path] = known[one.source, one.ref] = one
    return {
        candidate.id
        for candidate in candidates
        for one in (
            known.get((candidate.source, candidate.path))
            or known.get((candidate.source, candidate.ref)),
        )
        if one and one.version == candidate.version and one.mark in (None, mark(candidate))
    }


def mark(candidate: Candidate) -> str:
    """8 hex digits over title and text: whoever edits a file by hand counts no version."""
    text = f"{candidate.title}\n{candidate.body}"
    return f"{crc32(text.encode('utf-8', 'replace')):08x}"
