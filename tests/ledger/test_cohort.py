"""What was given, as the ledger keeps it: it always fits, and what others wrote is understood."""

import dataclasses
import json
import re

from hypothesis import given
from hypothesis import strategies as st

from datasette_memory.ledger.cohort import Cohort, Given, cohort_data, new_cohort, parse_cohort
from datasette_memory.ledger.events import MAX_LINE, parse
from datasette_memory.ledger.writer import Ledger

CARD = Given("D_0001", "vault", "09-Decisions/缓存.md", "overview", 84, 3, "0badcafe")
COHORT = Cohort("01M8REXWA2XCAX9P", (CARD,), 120, 1200, {"duplicate": 2}, "燕子")


def test_what_stands_in_the_event():
    assert cohort_data(COHORT) == {
        "cohort": "01M8REXWA2XCAX9P",
        "cards": [
            {
                "ref": "D_0001", "source": "vault", "path": "09-Decisions/缓存.md",
                "view": "overview", "tokens": 84, "version": 3, "mark": "0badcafe",
            }
        ],
        "tokens": 120, "budget": 1200, "left_out": {"duplicate": 2}, "project": "燕子",
    }  # fmt: skip


def test_it_comes_back_as_it_was(tmp_path):
    event = Ledger(tmp_path).append("inject", **cohort_data(COHORT))
    [file] = tmp_path.glob("*.jsonl")
    assert parse_cohort(parse(file.read_bytes()).data) == parse_cohort(event.data) == COHORT


def test_ids_are_short_sort_by_time_and_are_not_made_twice():
    made = [new_cohort() for _ in range(2000)]
    assert len(set(made)) == 2000
    assert all(re.fullmatch("[0-9A-HJKMNP-TV-Z]{16}", one) for one in made)
    # The first ten characters are the time.
    assert [one[:10] for one in made] == sorted(one[:10] for one in made)


_texts = st.text(st.characters(), max_size=30).map(lambda text: text * 80)
_cards = st.builds(Given, _texts, _texts, _texts, tokens=st.integers(0, 10**6))


@given(
    st.lists(_cards, max_size=40),
    st.dictionaries(_texts, st.integers(1, 9), max_size=90),
    _texts,
)
def test_a_pack_of_any_size_fits_into_a_line(tmp_path_factory, cards, left_out, project):
    cohort = Cohort("01M8REXWA2XCAX9P", tuple(cards), 1, 2, left_out, project)
    data = cohort_data(cohort)
    event = Ledger(tmp_path_factory.mktemp("ledger")).append("inject", sync=False, **data)
    told = parse_cohort(event.data)
    # Of each card it is known that it was given; the first ones are named.
    lost = sum(not card.ref for card in told.cards)
    assert len(told.cards) + told.more == len(cards) and not lost


def test_the_largest_that_can_be():
    """Four bytes a character, no room for a second ... of 8 KB each there is room for four."""
    card = dataclasses.replace(CARD, path="𠀀" * 2000)
    data = cohort_data(dataclasses.replace(COHORT, cards=(card,) * 9))
    assert (len(data["cards"]), data["more"]) == (4, 5)
    assert len(json.dumps(data, ensure_ascii=False).encode()) < MAX_LINE


def test_a_path_that_is_too_long_is_left_out_and_the_ref_stays():
    data = cohort_data(
        dataclasses.replace(COHORT, cards=(dataclasses.replace(CARD, path="a" * 2001),))
    )
    [card] = parse_cohort(data).cards
    assert (card.ref, card.source, card.path) == ("D_0001", "vault", None)


def test_what_others_wrote_is_understood_as_far_as_it_can_be():
    data = {
        "cohort": "of another kind",
        "cards": [
            {"ref": "D_0001"},
            {"ref": "D_0002", "source": 7, "path": ["x"], "view": None, "tokens": -1,
             "version": True, "mark": 5, "colour": "blue"},
            {"path": "no ref.md"}, "no object", None,
        ],
        "tokens": "many", "left_out": {"stale": 2, "odd": "two"}, "project": 3, "weather": {},
    }  # fmt: skip
    assert parse_cohort(data) == Cohort(
        "of another kind",
        (Given("D_0001", None, None), Given("D_0002", None, None)),
        left_out={"stale": 2},
    )
    for odd in ({}, {"cohort": None}, {"cohort": 7}, {"cohort": ""}):
        assert parse_cohort(odd) is None
    assert parse_cohort({"cohort": "x", "cards": {}, "left_out": []}) == Cohort(
        "x", (), left_out={}
    )
