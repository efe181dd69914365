"""The rule by which tiers make one list, on lists written by hand."""

import pytest

from datasette_memory.search.tiers import Candidate, fill

TIERS = {"all": "1", "all-prefix": "2", "any": "3", "any-prefix": "4"}


class Statements:
    """Lists of rows for each expression, and what was asked of them."""

    def __init__(self, **rows: list) -> None:
        self.rows = {
            match: [
                row if isinstance(row, Candidate) else Candidate(row, 10.0 - at, None)
                for at, row in enumerate(rows.get(f"t{match}", []))
            ]
            for match in TIERS.values()
        }
        self.asked: list[tuple[str, int]] = []

    def __call__(self, match: str, count: int) -> list[Candidate]:
        self.asked.append((match, count))
        return self.rows[match][:count]


def old(id: int) -> Candidate:
    return Candidate(id, 5.0, "D_0009")


def filled(statements, limit=5, superseded=False):
    hits, left_out = fill(TIERS, statements, limit, superseded)
    return [(hit.id, hit.tier) for hit in hits], left_out


def test_the_best_tier_comes_first_and_the_others_fill_up():
    statements = Statements(t1=[7, 3], t2=[3, 7, 5], t3=[9, 7, 3, 5], t4=[9, 1, 2, 4, 3])
    assert filled(statements) == (
        [(7, "all"), (3, "all"), (5, "all-prefix"), (9, "any"), (1, "any-prefix")],
        0,
    )


def test_nothing_more_is_asked_when_the_list_is_full():
    statements = Statements(t1=[1, 2, 3], t2=[4], t3=[5])
    assert filled(statements, limit=3) == ([(1, "all"), (2, "all"), (3, "all")], 0)
    assert statements.asked == [("1", 3)]


def test_the_order_within_a_tier_is_that_of_the_statement():
    statements = Statements(t3=[Candidate(4, 1.5, None), Candidate(2, 1.5, None)])
    hits, _ = fill(TIERS, statements, 5, False)
    assert [(hit.id, hit.score, hit.tier) for hit in hits] == [(4, 1.5, "any"), (2, 1.5, "any")]


def test_superseded_cards_are_left_out_and_counted():
    statements = Statements(t1=[old(1), 2], t3=[old(1), 2, old(3), 4])
    assert filled(statements) == ([(2, "all"), (4, "any")], 2)
    assert filled(statements, superseded=True) == (
        [(1, "all"), (2, "all"), (3, "any"), (4, "any")],
        0,
    )


def test_those_behind_the_last_hit_are_not_counted():
    statements = Statements(t1=[1, 2, old(3)])
    assert filled(statements, limit=2) == ([(1, "all"), (2, "all")], 0)


def test_more_is_asked_while_superseded_cards_take_the_places():
    statements = Statements(t1=[*map(old, range(1, 30)), 99])
    assert filled(statements, limit=1) == ([(99, "all")], 29)
    assert statements.asked == [("1", 1), ("1", 2), ("1", 4), ("1", 8), ("1", 16), ("1", 32)]


def test_more_is_asked_because_rows_of_earlier_tiers_come_again():
    statements = Statements(t1=[1, 2], t3=[1, 2, 3, 4, 5])
    assert filled(statements, limit=3)[0] == [(1, "all"), (2, "all"), (3, "any")]
    assert statements.asked == [("1", 3), ("2", 3), ("3", 3)]


@pytest.mark.parametrize("limit", [1, 5, 20])
def test_no_tier_no_hit(limit):
    assert fill({}, Statements(), limit, False) == ([], 0)
    assert filled(Statements(), limit) == ([], 0)
