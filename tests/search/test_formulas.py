"""Each formula by numbers worked out by hand, at and beyond its bounds."""

import pytest

from datasette_memory.search import formulas


@pytest.mark.parametrize(
    "ranks, value",
    [
        ((1, 2), 0.03252),  # 1/61 + 1/62
        ((3, 1), 0.03227),  # 1/63 + 1/61
        ((5, None), 0.01538),  # 1/65
        ((None, None), 0.0),
    ],
)
def test_ranks_are_fused(ranks, value):
    assert formulas.fused(ranks) == pytest.approx(value, abs=5e-6)


def test_another_constant():
    assert formulas.fused((1, 3), k=1) == pytest.approx(1 / 2 + 1 / 4)


@pytest.mark.parametrize(
    "score, phi, value",
    [(0.03, 2.6, 3.6), (0.03, 0, 0.03), (5.0, 2.6, 5.0), (0.03, -1, 0.03)],
)
def test_a_name_lifts_a_score_and_never_lowers_it(score, phi, value):
    assert formulas.phrased(score, phi) == pytest.approx(value)


@pytest.mark.parametrize(
    "days, half_life, value", [(0, 60, 1), (60, 60, 0.5), (120, 60, 0.25), (7, 7, 0.5), (-9, 7, 1)]
)
def test_half_is_left_after_each_half_life(days, half_life, value):
    assert formulas.retention(days, half_life) == value


@pytest.mark.parametrize(
    "function, given, value",
    [
        # 0.08 ln 2 = 0.05545; the bound is reached at ln(1 + n) = 4.375, n = 78.4
        (formulas.access_factor, 0, 1.0),
        (formulas.access_factor, 1, 1.05545),
        (formulas.access_factor, 78, 1.34956),
        (formulas.access_factor, 79, 1.35),
        (formulas.access_factor, 10_000, 1.35),
        (formulas.support_factor, 0, 1.0),
        (formulas.support_factor, 5, 1.15),
        (formulas.support_factor, 6, 1.18),
        (formulas.support_factor, 7, 1.18),
        (formulas.gain_factor, 0.5, 1.06),
        (formulas.gain_factor, 1, 1.12),
        (formulas.gain_factor, 1.25, 1.15),
        (formulas.gain_factor, 9, 1.15),
        (formulas.gain_factor, -9, 0.85),
        (formulas.contradiction_factor, 0, 1.0),
        (formulas.contradiction_factor, 5, 0.6),
        (formulas.contradiction_factor, 6, 0.55),
        (formulas.contradiction_factor, 99, 0.55),
    ],
)
def test_factors_and_their_bounds(function, given, value):
    assert function(given) == pytest.approx(value, abs=1e-5)


def test_decay_multiplies_all_factors():
    # 0.5 * 1.05545 * 1.03 * 1.012 * 0.92
    value = formulas.decay_coefficient(60, 60, reads=1, support=1, gain=0.1, contradict=1)
    assert value == pytest.approx(0.50607, abs=1e-5)


def test_decay_has_bounds():
    assert formulas.decay_coefficient(10_000, 7) == 0.01
    # 1.35 * 1.18 * 1.12 = 1.78 of what is new
    assert formulas.decay_coefficient(0, 7, reads=1000, support=9, gain=1) == 1.35


def test_what_decay_leaves_of_a_score():
    assert formulas.decayed(3.6, 0.7, 0.96) == pytest.approx(2.4192)
    assert formulas.decayed(2.0, 0.5, 0.5, weight=0.5) == pytest.approx(1.0)
    assert formulas.decayed(2.0, 0.5, 0.5, weight=0) == 2.0


@pytest.mark.parametrize(
    "support, contradict, gain, value",
    [
        (4, 0, 0, 1.12), (1, 0, 0, 1.03), (0, 1, 0, 0.90), (2, 1, 0.5, 1.21),
        (0, 7, 0, 0.30), (0, 8, 0, 0.25), (0, 3, -0.9, 0.25), (17, 0, 1, 2.0), (40, 0, 1, 2.0),
    ],
)  # fmt: skip
def test_feedback_and_its_bounds(support, contradict, gain, value):
    assert formulas.feedback_value(support, contradict, gain) == pytest.approx(value)


def test_relevance_against_similarity():
    assert formulas.marginal(0.9, 0.5, 0.7) == pytest.approx(0.48)
    assert formulas.marginal(0.9, 0.5, 1.0) == 0.9


def test_a_neighbour_gets_less_with_each_link():
    assert formulas.neighbour_score(0.8, 1, 0.5) == 0.4
    assert formulas.neighbour_score(0.8, 3, 0.5) == pytest.approx(0.1)
