"""The five candidates of the Agent Memory Hub document ("样例得分链路"), through the real stages.

The document gives ranks, confidence, coefficients and multipliers. The feedback follows from the
multipliers, the age from coefficient and half-life, the names from phi.
"""

import math

import pytest

from datasette_memory.search import stages
from datasette_memory.search.filters import Filters
from datasette_memory.search.stages import decay, feedback, metadata_phrase, rrf, supersession

from .made import ago, ask, card, scores

A, B, C, D, E = 1, 2, 3, 4, 5

QUESTION = ask("README 深度叙事 二次打磨 AMH 预览 都做了什么")
NOT_ASKED = {"title": "another thing"}


def old(coefficient: float, half_life: float, factor: float = 1.0) -> str:
    """When a card was written of which so much is left, if feedback counts `factor`."""
    return ago(-half_life * math.log2(coefficient / factor))


@pytest.fixture
def recalled():
    return [
        # phi = 2.60: it holds every term (1), the question its title (1), a tag and the project (0.6)
        card(
            A, kind="artifact", confidence=0.70, lexical_rank=1, vector_rank=2, support=4,
            updated=old(0.96, 60, 1.12), created=ago(400), title="README 深度叙事",
            summary="二次打磨 预览 都做了什么", tags=("二次打磨",), project="AMH",
        ),
        card(
            E, kind="signal", confidence=0.55, lexical_rank=2, vector_rank=4, contradict=1,
            updated=old(0.41, 7, 0.92), created=ago(400), superseded_by="A_0001",
            # phi = 1.90: every term, and three tags of 0.3
            title="旧 note", summary="深度叙事 AMH 都做了什么", tags=("README", "预览", "二次打磨"),
        ),
        card(
            B, kind="episode", confidence=0.75, lexical_rank=3, vector_rank=1, support=1,
            updated=old(0.90, 30, 1.03), created=ago(400), **NOT_ASKED,
        ),
        card(
            C, kind="fact", confidence=0.85, lexical_rank=5, updated=old(0.98, 60),
            created=ago(400), **NOT_ASKED,
        ),
    ]  # fmt: skip


def near(**values: float):
    """The published numbers, to four decimals."""
    names = {"A": A, "B": B, "C": C, "E": E}
    return {names[name]: pytest.approx(value, abs=5e-5) for name, value in values.items()}


def test_every_number_of_the_walkthrough(recalled):
    hits = rrf(recalled, QUESTION)
    assert scores(hits) == near(A=0.03252, B=0.03226, C=0.01538, E=0.03175)
    hits = metadata_phrase(hits, QUESTION)
    assert scores(hits) == near(A=3.60000, B=0.03226, C=0.01538, E=2.90000)
    hits = decay(hits, QUESTION, weight=1.0)
    assert scores(hits) == near(A=2.41920, B=0.02178, C=0.01282, E=0.65395)
    hits = feedback(hits, QUESTION)
    assert scores(hits) == near(A=2.70950, B=0.02243, C=0.01282, E=0.58856)
    assert [one.id for one in hits] == [A, E, B, C]
    assert [one.id for one in supersession(hits, QUESTION)] == [A, B, C]


def test_the_factors_are_the_published_ones(recalled):
    published = {A: (0.96, 1.12), B: (0.90, 1.03), C: (0.98, 1.00), E: (0.41, 0.90)}
    for one in recalled:
        assert (stages.coefficient(one, QUESTION), stages.value(one)) == pytest.approx(
            published[one.id], abs=1e-4
        )


def test_a_card_of_another_project_is_no_candidate(make_searcher):
    searcher = make_searcher(
        {
            "a.md": "---\nproject: agent-memory-hub\n---\n# README 二次打磨\n\n都做了",
            "d.md": "---\nproject: RewindDesktop\n---\n# README 二次打磨\n\nLinux package 发布链路",
        }
    )
    found = searcher.candidates("README 二次打磨", Filters(project="agent-memory-hub"))
    assert [one.path for one in found.candidates] == ["a.md"]
