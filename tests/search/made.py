"""Candidates and questions made by hand."""

from datetime import datetime, timedelta, timezone

from datasette_memory.search.candidate import Candidate
from datasette_memory.search.question import Question
from datasette_memory.text.query import parse

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=timezone.utc)


def ago(days: float) -> str:
    """The moment so many days before NOW."""
    return (NOW - timedelta(days=days)).isoformat()


def ask(text: str, *, project: str | None = None) -> Question:
    """A question of which every term is worth 1."""
    terms = parse(text)
    return Question(text, terms, (1.0,) * len(terms), NOW, project)


def card(number: int, score: float = 1.0, **fields) -> Candidate:
    """A new card with full confidence, as recall would give it."""
    known = {
        "id": number, "ref": f"K_{number:04}", "path": f"{number}.md", "source": "notes",
        "title": f"card {number}", "kind": "knowledge", "confidence": 1.0, "created": ago(0),
        "updated": ago(0), "score": score,
    }  # fmt: skip
    return Candidate(**(known | fields))


def scores(hits) -> dict[int, float]:
    return {one.id: one.score for one in hits}
