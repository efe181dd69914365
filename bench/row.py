"""A line of the tables that a benchmark prints."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured, beside what, and the bar."""

    what: str
    figure: str
    beside: str
    bar: str
    holds: bool
