"""Which cards are read for a question."""

import pytest

from datasette_memory.search import recall
from datasette_memory.search.filters import Filters
from datasette_memory.search.recall import Recall
from datasette_memory.text.query import parse


@pytest.fixture
def cards():
    """Every second card says often, every tenth seldom, one rare."""
    texts = {}
    for number in range(100):
        words = ["filler", "often" * (number % 2 == 0), "seldom" * (number % 10 == 3)]
        texts[f"{number:03}.md"] = " ".join([*words, "rare" * (number == 50)])
    return texts


def test_what_a_term_reaches(make_searcher, cards):
    look = Recall(make_searcher(cards).connection, *Filters().sql())
    reaches = [look.reach(term) for term in parse("rare seldom often rar nothing s")]
    assert [(reach.cards, reach.prefix) for reach in reaches] == [
        (1, False), (10, False), (50, False), (1, True), (0, True), (0, False),
    ]  # fmt: skip


def test_a_common_term_is_estimated(make_searcher, cards, monkeypatch):
    monkeypatch.setattr(recall, "_PROBE", 10)
    look = Recall(make_searcher(cards).connection, *Filters().sql())
    # Ten of them stand within 19 cards at either end of 100: 2 * 10 * 100 / 38 = 52.6.
    assert look.reach(parse("often")[0]).cards == 53
    assert look.reach(parse("filler")[0]).cards == 100


def test_the_rarest_are_taken_within_the_budget(make_searcher, cards, monkeypatch):
    look = Recall(make_searcher(cards).connection, *Filters().sql())
    terms = parse("often seldom rare")
    reaches = [look.reach(term) for term in terms]
    worth = recall.worth_of(reaches, [1.0] * 3, 100)
    assert worth == sorted(worth)
    everything = look.candidates(reaches, worth)
    assert len(everything) == 60
    monkeypatch.setattr(recall, "BUDGET", 12)
    assert sorted(look.candidates(reaches, worth)) == [4, 14, 24, 34, 44, 51, 54, 64, 74, 84, 94]
    # One that is common is better than none.
    assert len(look.candidates(reaches[:1], worth[:1])) == 50


def test_many_terms_are_added_up(make_searcher, monkeypatch):
    words = "alpha beta gamma delta epsilon zeta".split()
    texts = {f"{number}.md": " ".join(words[number:]) for number in range(6)}
    monkeypatch.setattr(recall, "CANDIDATES", 3)
    look = Recall(make_searcher(texts).connection, *Filters().sql())
    reaches = [look.reach(term) for term in parse(" ".join(words))]
    worth = recall.worth_of(reaches, [1.0] * 6, 6)
    assert look.candidates(reaches, worth) == [1, 2, 3]


def test_filters_hold_for_what_is_read(make_searcher):
    texts = {f"{number}.md": "alpha beta gamma delta epsilon" for number in range(40)}
    chosen = {"a.md": "alpha beta gamma delta epsilon"}
    searcher = make_searcher({"notes": texts, "other": chosen})
    for query in ("alpha beta gamma delta epsilon", "what about alpha", "alpha"):
        result = searcher.search(query, filters=Filters(source="other"))
        assert [hit.source for hit in result.hits] == ["other"]
        assert searcher.search(query, filters=Filters(project="none")).hits == ()
