"""What recall gives to ranking."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from ..text.query import Term
from .candidate import Candidate
from .question import Question


class Recalled(NamedTuple):
    """The cards that may answer `query`, in the order of plain search. `worth` is what each of
    `terms` is worth in this index; `left_out` counts the superseded cards that would be among
    them, `notice` says what there is to know of the search."""

    query: str
    candidates: list[Candidate]
    terms: tuple[Term, ...]
    worth: tuple[float, ...]
    notice: str | None
    left_out: int = 0

    def question(self, now: datetime, project: str | None = None) -> Question:
        """What was asked, for stages, firewall and pack; `now` is aware of its time zone."""
        return Question(self.query, self.terms, self.worth, now, project)
