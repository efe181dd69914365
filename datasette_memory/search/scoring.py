"""The score of a card for a query: BM25 over weighted terms, and a share for holding them all.

For a term of weight w that n of N cards hold, and that stands f times in a card of l tokens, where
the average is L::

    idf   = ln(1 + (N - n + 0.5) / (n + 0.5))
    part  = w idf f (k1 + 1) / (f + k1 (1 - b + b l / L))
    score = (sum of part) (1 + 0.5 h^2)

h is the share of the sum of all `w idf` that falls to the terms which the card holds. BM25 is that
of S. Robertson and H. Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009),
with the IDF of Lucene, which is above 0 for a term that most cards hold. Evidence for each choice
is in `bench/README.md`.
"""

import math
from collections.abc import Sequence

K1 = 1.2
B = 0.75
ALL_HELD = 0.5


def idf(cards: int, holding: int) -> float:
    """How much a term tells that `holding` of `cards` hold."""
    holding = min(holding, cards)
    return math.log(1 + (cards - holding + 0.5) / (holding + 0.5))


def score(counts: Sequence[float], worth: Sequence[float], length: float, average: float) -> float:
    """The score of a card. `counts` says how often each term stands in it, `worth` is weight times
    idf of each, `length` is that of the card in tokens, `average` that of all cards."""
    norm = K1 * (1 - B + B * length / average) if average else K1
    total = held = whole = 0.0
    for count, value in zip(counts, worth):
        whole += value
        if count:
            total += value * count * (K1 + 1) / (count + norm)
            held += value
    share = held / whole if whole else 0.0
    return total * (1 + ALL_HELD * share * share)


def share(counts: Sequence[float], worth: Sequence[float]) -> float:
    """The share of all that the terms are worth which a card holds, 0 to 1."""
    whole = sum(worth)
    return sum(value for count, value in zip(counts, worth) if count) / whole if whole else 0.0
