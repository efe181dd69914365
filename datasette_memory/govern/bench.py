"""How well the search answers the queries of its owner, by a truth that is a file of theirs.

`bench_queries.json` says for each query which cards answer it: by source and path, because row ids
change when an index is built anew, and several, because more than one card may be a right answer.
Nothing of a bench reaches the ledger.
"""

import json
import os
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

from ..durable import write_whole
from ..errors import MemoryFault
from ..index.read import is_replaced
from ..search.hits import SearchResult
from ..search.sqlite import SQLiteSearcher
from ..text.query import TIERS

FILE_NAME = "bench_queries.json"

#: So many hits are looked at.
TOP = 5

#: A figure, and whether more of it is better.
FIGURES = {"first": True, "precision": True, "noise": False}

Search = Callable[[str], SearchResult]


@dataclass(frozen=True, slots=True)
class Query:
    """A query, the group it is counted in, and the cards that answer it, as `source/path`. Without
    any, it is right to find nothing."""

    text: str
    group: str
    acceptable: frozenset[str]


@dataclass(frozen=True, slots=True)
class Answer:
    """What was found for a query: the first `TOP` hits as `source/path`, best first, and the tier."""

    query: Query
    found: tuple[str, ...]
    tier: str | None

    @property
    def first(self) -> float | None:
        """1 when the first hit is acceptable, else 0; None when no card is."""
        if not self.query.acceptable:
            return None
        return float(bool(self.found) and self.found[0] in self.query.acceptable)

    @property
    def precision(self) -> float | None:
        """The acceptable hits as a share of as many as there can be: when two cards are right,
        two hits are all that can be asked for. None when no card is."""
        if not self.query.acceptable:
            return None
        right = len(self.query.acceptable.intersection(self.found))
        return right / min(TOP, len(self.query.acceptable))

    @property
    def noise(self) -> float:
        """The share of the hits that are not acceptable; 0 when there is no hit."""
        return len(self.wrong) / len(self.found) if self.found else 0.0

    @property
    def wrong(self) -> tuple[str, ...]:
        """The hits that are not acceptable."""
        return tuple(place for place in self.found if place not in self.query.acceptable)

    @property
    def lacking(self) -> tuple[str, ...]:
        """The acceptable cards that could have been shown in the place of something else or of
        nothing."""
        right = len(self.query.acceptable.intersection(self.found))
        if right >= min(TOP, len(self.query.acceptable)):
            return ()
        return tuple(sorted(self.query.acceptable.difference(self.found)))

    @property
    def ok(self) -> bool:
        """Whether nothing is to be wished for."""
        return self.first in (None, 1.0) and self.precision in (None, 1.0) and not self.noise

    def to_dict(self) -> dict[str, object]:
        """The answer as every surface shows it."""
        return {
            "query": self.query.text,
            "group": self.query.group,
            "first": self.first,
            "precision": _rounded(self.precision),
            "noise": _rounded(self.noise),
            "tier": self.tier,
            "found": list(self.found),
            "wrong": list(self.wrong),
            "lacking": list(self.lacking),
        }


def figures(answers: Sequence[Answer]) -> dict[str, object]:
    """`queries`, how many of them are `judged` (some card is acceptable), the mean of each of
    `FIGURES` (None without a query that it counts for), and how often each tier was reached."""
    judged = [answer for answer in answers if answer.query.acceptable]
    tiers = Counter(answer.tier for answer in answers)
    return {
        "queries": len(answers),
        "judged": len(judged),
        "first": _mean(answer.first for answer in judged),
        "precision": _mean(answer.precision for answer in judged),
        "noise": _mean(answer.noise for answer in answers),
        "tiers": {tier or "none": tiers[tier] for tier in (*TIERS, None) if tiers[tier]},
    }


@dataclass(slots=True)
class Report:
    """What a bench found. `notes` tell of a truth that may be out of date; `falls` say which
    figures are worse than in the report it was compared with."""

    answers: list[Answer]
    notes: list[str] = field(default_factory=list)
    falls: list[str] = field(default_factory=list)

    @property
    def failing(self) -> list[Answer]:
        """The answers that are not all that they could be."""
        return [answer for answer in self.answers if not answer.ok]

    def groups(self) -> dict[str, dict[str, object]]:
        """The figures of each group, in the order of the file."""
        names = dict.fromkeys(answer.query.group for answer in self.answers)
        return {
            name: figures([answer for answer in self.answers if answer.query.group == name])
            for name in names
        }

    def to_dict(self) -> dict[str, object]:
        """The object that every surface returns, and that `--save` keeps."""
        return {
            "all": figures(self.answers),
            "groups": self.groups(),
            "answers": [answer.to_dict() for answer in self.answers],
            "notes": self.notes,
            "falls": self.falls,
        }

    def lines(self) -> list[str]:
        """The same for people: a table by group, then each query that fails."""
        rows = [*self.groups().items(), ("all", figures(self.answers))]
        lines = ["queries  first hit     P@5  noise@5  group (tiers)"]
        lines += [_row(name, row) for name, row in rows]
        for answer in self.failing:
            asked = " ".join(f"{answer.query.group}: {answer.query.text}".split())
            lines += ["", f"{asked}  ({answer.tier or 'no hit'})"]
            lines += [f"  wrong    {place}" for place in answer.wrong]
            lines += [f"  lacking  {place}" for place in answer.lacking]
        return lines

    def compare(self, earlier: Mapping[str, object]) -> None:
        """Note in `falls` each figure that is worse than in `earlier`, an object of `to_dict`."""
        now = {None: figures(self.answers), **self.groups()}
        then = {None: earlier["all"], **earlier["groups"]}
        for name, row in then.items():
            label = "all" if name is None else f"group {name!r}"
            if name not in now:
                self.notes.append(f"{label} is in the baseline alone, and was not compared")
                continue
            if row["queries"] != now[name]["queries"]:
                self.notes.append(
                    f"{label} had {row['queries']} queries and has {now[name]['queries']}"
                )
            for figure, more in FIGURES.items():
                before, after = row[figure], now[name][figure]
                if None in (before, after) or before == after or (after > before) == more:
                    continue
                self.falls.append(f"{label}: {figure} {before:.1%} -> {after:.1%}")


def run(connection, queries: Iterable[Query]) -> Report:
    """Ask the index behind `connection` every query."""
    searcher = SQLiteSearcher(connection)
    queries = list(queries)
    report = Report(ask(queries, lambda text: searcher.search(text, limit=TOP)))
    for place in sorted({place for query in queries for place in query.acceptable}):
        source, _, path = place.partition("/")
        replaced = is_replaced(connection, source, path)
        if replaced is None:
            report.notes.append(f"no such card in the index: {place}")
        elif replaced:
            report.notes.append(f"never found, because another card replaced it: {place}")
    return report


def ask(queries: Iterable[Query], search: Search) -> list[Answer]:
    """What `search` answers to every query."""
    answers = []
    for query in queries:
        result = search(query.text)
        found = tuple(f"{hit.source}/{hit.path}" for hit in result.hits[:TOP])
        answers.append(Answer(query, found, result.tier))
    return answers


def load(path: Path) -> list[Query]:
    """The queries of a file. Raises MemoryFault when it is not there or cannot be understood."""
    return parse(path, _bytes(path, "draft one with `memory bench --init`, then edit it"))


def parse(path: Path, data: bytes, *, empty: bool = False) -> list[Query]:
    """The queries in `data`, which are the contents of the file at `path`; with `empty` there may be
    none. Raises MemoryFault when they cannot be understood."""
    content = _object(path, data)
    rows = content.get("queries")
    if content.get("version") != 1 or not isinstance(rows, list):
        raise _unlike(path, 'it must be {"version": 1, "queries": [...]}')
    if not rows and not empty:
        raise _unlike(path, "it holds no query")
    return [_query(path, number, row) for number, row in enumerate(rows, 1)]


def dump(queries: Iterable[Query]) -> bytes:
    """The contents of a file of queries: one on each line, to be edited by hand."""
    rows = [
        json.dumps(
            {"group": one.group, "query": one.text, "acceptable": sorted(one.acceptable)},
            ensure_ascii=False,
        )
        for one in queries
    ]
    return ('{"version": 1, "queries": [\n  ' + ",\n  ".join(rows) + "\n]}\n").encode()


def write(path: Path, queries: Sequence[Query]) -> None:
    """Write a new file of queries. Raises MemoryFault when there is one already."""
    try:
        write_whole(path, dump(queries), exclusive=True)
    except FileExistsError:
        raise _exists(path) from None


def refuse_existing(path: Path) -> None:
    """Raise MemoryFault when something is at `path`."""
    if os.path.lexists(path):
        raise _exists(path)


def _exists(path: Path) -> MemoryFault:
    return MemoryFault(f"{path} is there already", "edit it, or move it away to draft another")


def save_report(path: str | Path, report: Report) -> None:
    """Keep a report in a file; what was there is replaced. Raises OSError."""
    text = json.dumps(report.to_dict(), ensure_ascii=False, indent=1)
    write_whole(Path(path), f"{text}\n".encode("utf-8", "backslashreplace"))


def load_report(path: str | Path) -> dict[str, object]:
    """A saved report. Raises MemoryFault when it is not there or is none."""
    path = Path(path)
    content = _object(path, _bytes(path, "save one with `memory bench --save FILE`"))
    groups = content.get("groups")
    rows = [content.get("all"), *(groups.values() if isinstance(groups, dict) else [None])]
    for row in rows:
        if not isinstance(row, dict) or not isinstance(row.get("queries"), int):
            raise _unlike(path, "it is no report of `memory bench --save`")
        for name in FIGURES:
            if name not in row or not isinstance(row[name], (int, float, type(None))):
                raise _unlike(path, f"it lacks the figure {name!r}")
    return content


def _query(path: Path, number: int, row: object) -> Query:
    def need(right: bool, what: str) -> None:
        if not right:
            raise _unlike(path, f"query {number}: {what}")

    need(isinstance(row, dict), "it must be an object")
    text, group, cards = row.get("query"), row.get("group", ""), row.get("acceptable")
    need(isinstance(text, str) and bool(text.strip()), "'query' must be a text")
    need(isinstance(group, str), "'group' must be a text")
    need(isinstance(cards, list), "'acceptable' must be a list of cards, empty when none is right")
    for card in cards:
        named = isinstance(card, str) and 0 < card.find("/") < len(card) - 1
        need(named, f"{card!r} must be source/path: ids change when the index is built anew")
    return Query(text, group, frozenset(unicodedata.normalize("NFC", card) for card in cards))


def _bytes(path: Path, hint: str) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise MemoryFault(f"{path} is not there", hint) from None
    except OSError as error:
        raise MemoryFault(f"{path} cannot be read: {error.strerror}") from error


def _object(path: Path, data: bytes) -> dict:
    try:
        content = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise _unlike(path, f"it is not valid JSON: {error}") from error
    if not isinstance(content, dict):
        raise _unlike(path, "it must hold a JSON object")
    return content


def _unlike(path: Path, what: str) -> MemoryFault:
    return MemoryFault(f"{path}: {what}", "mend it by hand, or move it away")


def _row(name: str, row: Mapping[str, object]) -> str:
    first, precision, noise = (
        "-" if row[figure] is None else f"{row[figure]:.1%}" for figure in FIGURES
    )
    tiers = ", ".join(f"{tier} {count}" for tier, count in row["tiers"].items())
    name = " ".join(name.split())
    return f"{row['queries']:>7}  {first:>9}  {precision:>6}  {noise:>7}  {name} ({tiers})"


def _mean(values: Iterable[float]) -> float | None:
    values = list(values)
    return _rounded(fmean(values)) if values else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
