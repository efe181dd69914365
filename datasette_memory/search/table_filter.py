"""The search box of Datasette's page of `cards`: `?_search=`, and `?_search_title=` for a column.

A filter says which rows are there and leaves their order to the page, so loose hits cannot be
ranked to the end: the first tier that finds anything is the one that counts. The SQL names it, so
that whoever opens the query in Datasette's editor sees what was asked.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..index.schema import FTS_COLUMNS, fts_column
from ..text.query import expressions, parse

_MEANINGS = {
    "all": "every term",
    "all-prefix": "the beginning of every term",
    "any": "any term",
    "any-prefix": "the beginning of any term",
}


@dataclass(slots=True)
class TableFilter:
    """WHERE clauses and their parameters, what they mean in English, and the text of the box."""

    where: list[str] = field(default_factory=list)
    params: dict[str, str] = field(default_factory=dict)
    human: list[str] = field(default_factory=list)
    text: str = ""


class UnknownColumn(ValueError):
    """`?_search_NAME=` with a name that the full-text index does not have."""


def asked(arguments: Mapping[str, str]) -> dict[str, str]:
    """From column to text, each search among the arguments of a URL; column "" is all of them.

    Raises UnknownColumn.
    """
    searches: dict[str, str] = {}
    for key, text in arguments.items():
        column = key.removeprefix("_search").removeprefix("_")
        if not (key == "_search" or key.startswith("_search_")) or not text.strip():
            continue
        if column and column not in FTS_COLUMNS:
            raise UnknownColumn(
                f"Cannot search the column {column!r}, only {', '.join(FTS_COLUMNS)}"
            )
        searches[column] = text
    return searches


def build(connection, searches: Mapping[str, str]) -> TableFilter:
    """The filter for those searches, all of which have to hold.

    The connection needs the functions of `index.functions.register`.
    """
    built = TableFilter(text=searches.get("", ""))
    for column, text in searches.items():
        parameter = f"memory_search_{column}".rstrip("_")
        tier = _first_tier(connection, column, text)
        subject = column or "search"
        if tier is None:
            built.where.append("0")
            built.human.append(f'{subject} "{text}" has no letter or digit to look for')
            continue
        match = _match(column, f"memory_match(:{parameter}, '{tier}')")
        built.where.append(f"id in (select rowid from cards_fts where cards_fts match {match})")
        built.params[parameter] = text
        built.human.append(f'{subject} matches {_MEANINGS[tier]} of "{text}"')
    return built


def _match(column: str, match: str) -> str:
    """SQL for a MATCH expression, limited to a column where one is named."""
    return f"'{fts_column(column)} : (' || {match} || ')'" if column else match


def _first_tier(connection, column: str, text: str) -> str | None:
    """The first tier with a hit, the strictest when there is none, None for a text without terms."""
    tiers = expressions(parse(text))
    sql = f"select 1 from cards_fts where cards_fts match {_match(column, '?')} limit 1"
    for tier, match in tiers.items():
        if connection.execute(sql, (match,)).fetchone():
            return tier
    return next(iter(tiers), None)
