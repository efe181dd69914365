"""What became of each card in a plain search."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from .filters import Filters
from .hits import SearchResult
from .pipeline import run
from .searcher import clamp
from .sqlite import SQLiteSearcher
from .trace import EXCLUDED

if TYPE_CHECKING:
    from ..index.connection import sqlite3

# What plain search does. It believes the index, and leaves the files alone.
_STAGES = ("mix", "supersession")


def explain_search(
    connection: sqlite3.Connection,
    result: SearchResult,
    filters: Filters,
    limit: int,
    superseded: bool,
) -> SearchResult:
    """The result with its explanation: a line for each hit, for the cards that come after, and for
    the superseded ones that were left out. It is the search again, with more places."""
    limit = clamp(limit)
    recalled = SQLiteSearcher(connection).candidates(
        result.query, filters, superseded=True, few=limit
    )
    asked = recalled.question(datetime.now(timezone.utc))
    stages = _STAGES[:1] if superseded else _STAGES
    ranked, trace = run(recalled.candidates, asked, stages)
    given = {hit.id for hit in result.hits}
    for one in ranked:
        if one.id not in given:
            trace.judge(one.id, EXCLUDED, f"beyond the limit of {limit}")
    return replace(result, explain=trace.to_dict())
