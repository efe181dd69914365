"""What a hit has of a query."""

import pytest

from datasette_memory.search.tiers import first, tier_of


@pytest.mark.parametrize(
    "counts, prefixes, tier",
    [
        ([1, 3], [False, False], "all"),
        ([1, 3], [False, True], "all-prefix"),
        ([1, 0], [False, False], "any"),
        ([1, 0], [False, True], "any"),
        ([0, 2], [False, True], "any-prefix"),
        ([1, 2, 0], [False, True, False], "any"),
        ([0.5], [False], "all"),
    ],
)
def test_the_tier_of_a_card(counts, prefixes, tier):
    assert tier_of(counts, prefixes) == tier


def test_the_first_tier():
    assert first(["any", "all-prefix", "any-prefix"]) == "all-prefix"
    assert first([]) is None
