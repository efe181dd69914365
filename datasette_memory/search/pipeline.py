"""The stages one after the other, and a trace of what each of them did."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from .filters import Filters
from .stages import DEFAULT, STAGES
from .trace import Trace

if TYPE_CHECKING:
    from ..index.connection import sqlite3
    from .candidate import Candidate
    from .question import Question


def run(
    candidates: list[Candidate],
    question: Question,
    stages: Iterable[str] = DEFAULT,
    *,
    connection: sqlite3.Connection | None = None,
    filters: Filters = Filters(),
) -> tuple[list[Candidate], Trace]:
    """The candidates as the named stages leave them, best first, and the trace.

    Stages run in the order of the table. Those that look into the index or the files need its
    `connection`, and add only what passes `filters`. Without it the files are not asked, and
    nothing is added. Raises ValueError for a name that is none.
    """
    names = frozenset(stages)
    if unknown := names.difference(stage.name for stage in STAGES):
        raise ValueError(f"no such stage: {', '.join(sorted(unknown))}")
    lookup = None
    if connection is not None:
        from .lookup import Lookup

        lookup = Lookup(connection, filters)
    trace = Trace(question, candidates, lookup)
    hits = list(candidates)
    for stage in STAGES:
        if stage.name not in names or stage.function is None:
            continue
        if stage.looks_up:
            # One that removes works without; one that adds has nothing to add.
            if lookup is None and stage.reason is None:
                continue
            after = stage.function(hits, question, lookup)
        else:
            after = stage.function(hits, question)
        trace.add(stage, hits, after)
        hits = after
    return hits, trace
