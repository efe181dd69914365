"""The public retrieval sets, and the figures by which answers to them are judged.

A set is a folder with `docs.jsonl` (`id`, `title`, `text`, perhaps `group`) and `queries.jsonl`
(`id`, `text`, `relevant`, perhaps `group`). A query of a group is answered within its group.
"""

import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Document:
    """A text to be found."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Query:
    """A question with the ids of the documents that answer it."""

    text: str
    relevant: frozenset[str]


@dataclass(slots=True)
class Group:
    """Documents, and the queries that are answered within them."""

    documents: list[Document] = field(default_factory=list)
    queries: list[Query] = field(default_factory=list)


def names(folder: Path) -> list[str]:
    """The sets in a folder."""
    return sorted(path.parent.name for path in folder.glob("*/queries.jsonl"))


def load(folder: Path, name: str) -> list[Group]:
    """A set as its groups; one, when it names none."""
    groups: dict[str, Group] = {}
    for row in _rows(folder / name / "docs.jsonl"):
        document = Document(row["id"], row.get("title") or "", row["text"])
        groups.setdefault(row.get("group", ""), Group()).documents.append(document)
    for row in _rows(folder / name / "queries.jsonl"):
        query = Query(row["text"], frozenset(row["relevant"]))
        groups[row.get("group", "")].queries.append(query)
    return list(groups.values())


def _rows(path: Path) -> list[dict]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a method gave to a query, best first, in so many milliseconds of CPU."""

    query: Query
    found: Sequence[str]
    ms: float


FIGURES = ("nDCG@10", "R@1", "R@5", "R@10", "MRR@10", "empty", "p50 ms", "p95 ms")


def figures(answers: Sequence[Answer]) -> dict[str, float]:
    """`FIGURES` over all answers; times in milliseconds, `empty` is a share."""
    times = sorted(answer.ms for answer in answers)
    return {
        "nDCG@10": statistics.fmean(
            ndcg(answer.found, answer.query.relevant) for answer in answers
        ),
        **{
            f"R@{k}": statistics.fmean(
                len(answer.query.relevant & set(answer.found[:k])) / len(answer.query.relevant)
                for answer in answers
            )
            for k in (1, 5, 10)
        },
        "MRR@10": statistics.fmean(
            next(
                (
                    1 / at
                    for at, id in enumerate(answer.found[:10], 1)
                    if id in answer.query.relevant
                ),
                0.0,
            )
            for answer in answers
        ),
        "empty": sum(not answer.found for answer in answers) / len(answers),
        "p50 ms": statistics.median(times),
        "p95 ms": times[min(len(times) - 1, int(len(times) * 0.95))],
    }


def ndcg(found: Sequence[str], relevant: frozenset[str], k: int = 10) -> float:
    """Normalised discounted cumulative gain with gains of 0 and 1 (Järvelin and Kekäläinen, 2002)."""
    gain = sum(1 / math.log2(at + 1) for at, id in enumerate(found[:k], 1) if id in relevant)
    return gain / sum(1 / math.log2(at + 1) for at in range(1, min(k, len(relevant)) + 1))
