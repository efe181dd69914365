"""How many cards the full-text index has, and how long they are: as FTS5 keeps it for bm25()."""

import json
from collections.abc import Iterable
from typing import NamedTuple

# The record of FTS5's totals, and how it writes numbers: see "Data Structures" in fts5_index.c and
# the varints of SQLite's file format.
_TOTALS = "select block from cards_fts_data where id = 1"
_SIZES = "select id, sz from cards_fts_docsize where id in (select value from json_each(?))"


class Totals(NamedTuple):
    """`cards` there are; `average` is their mean length in tokens, over all columns."""

    cards: int
    average: float


def totals(connection) -> Totals:
    """The totals of the index; zeros when it is empty."""
    row = connection.execute(_TOTALS).fetchone()
    numbers = varints(row[0]) if row else []
    if not numbers or not numbers[0]:
        return Totals(0, 0.0)
    return Totals(numbers[0], sum(numbers[1:]) / numbers[0])


def lengths(connection, ids: Iterable[int]) -> dict[int, int]:
    """The length of each card in tokens, over all columns."""
    rows = connection.execute(_SIZES, [json.dumps(list(ids))])
    return {id: sum(varints(sizes)) for id, sizes in rows}


def varints(data: bytes) -> list[int]:
    """The numbers in a row of SQLite varints: 7 bits a byte, most significant first, the high bit
    set where more follows; all 8 bits of a ninth byte."""
    numbers: list[int] = []
    value = size = 0
    for byte in data:
        size += 1
        if size == 9:
            numbers.append(value << 8 | byte)
            value = size = 0
        elif byte & 0x80:
            value = value << 7 | byte & 0x7F
        else:
            numbers.append(value << 7 | byte)
            value = size = 0
    return numbers
