"""How much of their wording two texts share."""

from .tokenise import CJK_RUN, index_text

#: From here on two texts say the same thing twice.
NEAR_DUPLICATE = 0.8


def jaccard(a: str, b: str) -> float:
    """The share of the tokens of both texts that both hold: |A ∩ B| / |A ∪ B|, 0..1.

    P. Jaccard, "The distribution of the flora in the alpine zone", New Phytologist 11, 1912.
    """
    return overlap(wording(a), wording(b))


def wording(text: str) -> frozenset[str]:
    """The tokens of a text, for `overlap`: who compares many texts makes them once."""
    return frozenset(index_text(text).split())


def overlap(first: frozenset[str], second: frozenset[str]) -> float:
    """`jaccard` of two texts of which the `wording` is known."""
    both = len(first & second)
    together = len(first) + len(second) - both
    return both / together if together else 0.0


def weight(text: str) -> int:
    """How much a text says, in characters: a Han character, kana or syllable counts as two.

    White space around it does not count.
    """
    text = text.strip()
    return len(text) + sum(len(run) for run in CJK_RUN.findall(text))
