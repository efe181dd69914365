"""Candidates and questions made by hand."""

from datetime import datetime, timezone

import pytest

from datasette_memory.search.candidate import Candidate
from datasette_memory.search.question import Question
from datasette_memory.text.count import TermCounter
from datasette_memory.text.importance import weights
from datasette_memory.text.query import parse

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=timezone.utc)


@pytest.fixture
def ask():
    """`ask(text, idf=3.0)`: the question, each term of it worth its weight times `idf`, or times
    `rare[first token]`."""

    def make(text: str, idf: float = 3.0, rare: dict[str, float] | None = None, **fields):
        terms = parse(text)
        worth = tuple(
            weight * (rare or {}).get(term.phrases[0][0], idf)
            for term, weight in zip(terms, weights(terms))
        )
        return Question(text, terms, worth, fields.pop("now", NOW), **fields)

    return make


@pytest.fixture
def card():
    """`card(question, number, body, ...)`: a candidate as recall would give it."""

    def make(
        question: Question | None, number: int = 1, body: str = "备份每天凌晨三点跑。", **fields
    ):
        values = {
            "id": number, "ref": f"K_{number:04}", "path": f"03-Knowledge/{number}.md",
            "source": "notes", "title": f"卡片 {number}", "kind": "knowledge",
            "score": 10.0 - number, "body": body, "length": len(body),
            "created": "2026-11-01T08:00:00+00:00", "updated": "2026-11-01T08:00:00+00:00",
        } | fields  # fmt: skip
        if question and "held" not in fields and values.get("origin", "recall") == "recall":
            texts = (
                values["title"], *values.get("keywords", ()), *values.get("aliases", ()),
                *values.get("tags", ()), values.get("summary", ""), values["body"],
            )  # fmt: skip
            values["held"] = tuple(map(bool, TermCounter(question.terms).count(*texts)))
        return Candidate(**values)

    return make
