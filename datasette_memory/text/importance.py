"""How much each term of a query says: what it weighs in the order of the hits.

Words that any question holds (`what`, `什么`) tell nothing about the answer, and pairs of Chinese
characters across a particle (`的功`) little. Left out altogether they are missed when nothing else
is there; with a small weight they only break ties. Figures in `bench/README.md`.
"""

from .query import Term
from .tokenise import CJK_RUN

#: Words that weigh `_COMMON`: English function words, Chinese question words as pairs.
COMMON_WORDS = frozenset(
    "a about an and any are as at be been but by can could did do does for from had has have he "
    "her him his how i if in into is it its may me might must my no not of on or our she should "
    "so such than that the their them then there these they this those to us was we were what "
    "when where which who whom whose why will with would you your".split()
)
QUESTION_PAIRS = frozenset(
    "什么 么是 是什 哪些 哪个 哪里 哪一 哪年 哪位 怎么 么样 怎样 如何 何时 何处 为什 为何 几个 多少 多大 多久 "
    "是多 谁是 是谁 有哪 是哪 是否 能否 可以 请问 么时".split()
)
_PARTICLES = frozenset("的了是在和与及或吗呢吧啊把被对从到由于为以其这那之也就都很")

_COMMON = 0.1
_PARTICLE = 0.5
# Kana alone is mostly grammar, beside a Han character mostly an ending.
_KANA, _HALF_KANA = 0.4, 0.6
# Among Chinese, what is written in Latin letters is mostly the name of the thing.
_NAME = 2.0

#: So many terms at the most are keywords, and so many words among them; more are a question.
KEYWORDS, KEYWORD_WORDS = 4, 3

#: So many at the most are in a name that is asked for as a whole.
NAME = 12


def weights(terms: tuple[Term, ...]) -> tuple[float, ...]:
    """The weight of each term, 1 for an ordinary one."""
    chinese = [bool(CJK_RUN.match(term.phrases[0][0])) for term in terms]
    mixed = any(chinese) and not all(chinese)
    return tuple(
        _pair_weight(term.phrases[0][0]) if cjk else _word_weight(term) * (_NAME if mixed else 1.0)
        for term, cjk in zip(terms, chinese)
    )


def are_keywords(terms: tuple[Term, ...]) -> bool:
    """Whether the terms are names of something, not a question about it: cards that hold them all
    are then the answer, and others are noise. `user by id` is a name with a common word inside."""
    words = sum(not CJK_RUN.match(term.phrases[0][0]) for term in terms)
    if not 0 < len(terms) <= KEYWORDS or words > KEYWORD_WORDS:
        return False
    told = weights(terms)
    if len(terms) == words:
        told = (told[0], told[-1])
    return min(told) >= _PARTICLE


def are_together(terms: tuple[Term, ...]) -> bool:
    """Whether there is a common word among keywords, so that they stand side by side."""
    return min(weights(terms), default=1) < _PARTICLE


def may_be_name(terms: tuple[Term, ...]) -> bool:
    """Whether the terms, though too many for keywords, could be what a card is called."""
    return 0 < len(terms) <= NAME and min(weights(terms)) >= _PARTICLE


def are_plain(terms: tuple[Term, ...]) -> bool:
    """Whether no term is grammar, in whole or in part. A particle may stand in a name (`到期`), but
    where it does, a card has to hold the keywords as they were typed."""
    return min(weights(terms), default=0) >= 1


def _word_weight(term: Term) -> float:
    return _COMMON if term.phrases[0][0] in COMMON_WORDS and len(term.phrases[0]) == 1 else 1.0


def _pair_weight(pair: str) -> float:
    if pair in QUESTION_PAIRS:
        return _COMMON
    if len(pair) < 2:
        return 1.0
    kana = sum("\u3041" <= character <= "\u309f" for character in pair)
    if kana:
        return _KANA if kana == 2 else _HALF_KANA
    return _PARTICLE if not _PARTICLES.isdisjoint(pair) else 1.0
