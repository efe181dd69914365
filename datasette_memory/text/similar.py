"""How much of their wording two texts share."""

from .tokenise import CJK_RUN, index_text

#: From here on two texts say the same thing twice.
NEAR_DUPLICATE = 0.8


def jaccard(a: str, b: str) -> float:
    """The share of the tokens of both texts that both hold: |A ∩ B| / |A ∪ B|, 0..1.

    P. Jaccard, "The distribution of the flora in the alpine zone", New Phytologist 11, 1912.
    """
    first, second = set(index_text(a).split()), set(index_text(b).split())
    together = first | second
    return len(first & second) / len(together) if together else 0.0


def weight(text: str) -> int:
    """How much a text says, in characters: a Han character, kana or syllable counts as two.

    White space around it does not count.
    """
    text = text.strip()
    return len(text) + sum(len(run) for run in CJK_RUN.findall(text))
