"""What is asked, as stages, firewall and pack need it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ..text.query import Term


@dataclass(frozen=True, slots=True)
class Question:
    """A question and its terms; `worth` is what each term is worth in this index (weight times
    idf). `now` is aware of its time zone. `project` is the one that it is asked in, if told."""

    text: str
    terms: tuple[Term, ...]
    worth: tuple[float, ...]
    now: datetime
    project: str | None = None
