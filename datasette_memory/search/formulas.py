"""The formulas of ranking: numbers in, numbers out.

Those of the Agent Memory Hub document, unless another source is named.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

#: The constant of reciprocal rank fusion.
RRF_K = 60

#: What decay leaves of a score, at least and at most.
LEAST_DECAY, MOST_DECAY = 0.01, 1.35

#: What feedback multiplies a score by, at least and at most.
LEAST_VALUE, MOST_VALUE = 0.25, 2.0


def clamp(value: float, low: float, high: float) -> float:
    """`value` within `low` and `high`."""
    return max(low, min(high, value))


def fused(ranks: Iterable[int | None], k: int = RRF_K) -> float:
    """Sum of 1 / (k + rank) over the lists that a card is on; ranks count from 1.

    G. Cormack, C. Clarke and S. Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and
    individual Rank Learning Methods", SIGIR 2009.
    """
    return sum(1 / (k + rank) for rank in ranks if rank is not None)


def phrased(score: float, phi: float) -> float:
    """max(s, 1 + phi): what a card says of itself outweighs any fused rank. As it was for phi 0."""
    return max(score, 1 + phi) if phi > 0 else score


def retention(days: float, half_life: float) -> float:
    """0.5 ^ (days / half-life): 1 for what is new or yet to come."""
    return 0.5 ** (max(0.0, days) / half_life)


def access_factor(reads: int) -> float:
    """1 + min(0.35, 0.08 ln(1 + reads))."""
    return 1 + min(0.35, math.log1p(max(0, reads)) * 0.08)


def support_factor(support: int) -> float:
    """1 + min(0.18, 0.03 support)."""
    return 1 + min(0.18, support * 0.03)


def gain_factor(gain: float) -> float:
    """1 + (0.12 gain within -0.15 and 0.15)."""
    return 1 + clamp(gain * 0.12, -0.15, 0.15)


def contradiction_factor(contradict: int) -> float:
    """1 - min(0.45, 0.08 contradict)."""
    return 1 - min(0.45, contradict * 0.08)


def decay_coefficient(
    days: float, half_life: float, *, reads: int = 0, support: int = 0, gain: float = 0.0,
    contradict: int = 0,
) -> float:  # fmt: skip
    """What is left of a card after `days`: retention times the factors of access, support, gain
    and contradiction, within 0.01 and 1.35."""
    return clamp(
        retention(days, half_life)
        * access_factor(reads)
        * support_factor(support)
        * gain_factor(gain)
        * contradiction_factor(contradict),
        LEAST_DECAY,
        MOST_DECAY,
    )


def decayed(score: float, confidence: float, coefficient: float, weight: float = 1.0) -> float:
    """s (confidence coefficient) ^ weight. The document has the weight 1; with less the age of a
    card says less against how well it answers."""
    return score * (confidence * coefficient) ** weight


def feedback_value(support: int, contradict: int, gain: float) -> float:
    """1 + 0.03 support - 0.10 contradict + 0.50 gain, within 0.25 and 2.0."""
    return clamp(unbounded_value(support, contradict, gain), LEAST_VALUE, MOST_VALUE)


def unbounded_value(support: int, contradict: int, gain: float) -> float:
    """What feedback makes of a card, before it is held within bounds; see `feedback_value`."""
    return 1 + 0.03 * support - 0.10 * contradict + 0.50 * gain


def marginal(relevance: float, similarity: float, lam: float) -> float:
    """lambda relevance - (1 - lambda) similarity, this to what was chosen before.

    J. Carbonell and J. Goldstein, "The Use of MMR, Diversity-Based Reranking for Reordering
    Documents and Producing Summaries", SIGIR 1998.
    """
    return lam * relevance - (1 - lam) * similarity


def neighbour_score(score: float, depth: int, gamma: float) -> float:
    """s gamma ^ depth: what a card gets from one that is `depth` links away."""
    return score * gamma**depth
