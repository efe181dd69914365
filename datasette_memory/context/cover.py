"""Whether some cards answer a question at all: what they hold of its terms.

A question is about its strong terms: names that look like no ordinary word. Where it has none, the
share of all that its terms are worth has to do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ..text.count import TermCounter
from ..text.importance import COMMON_WORDS, weights
from ..text.lazy import lazy
from ..text.normalise import normalise
from ..text.query import Term, parse
from ..text.tokenise import CJK_RUN, camel_parts

if TYPE_CHECKING:
    from ..search.candidate import Candidate
    from ..search.question import Question

#: Terms that weigh less than this are in any question; a card that holds no other has no match.
CONTENT_WEIGHT = 0.4

#: What a missing pair of Chinese characters counts: each word has two of them, its own and the
#: one that leads on to the next.
MISSING_PAIR = 0.5

# Words that name no thing: who writes Chinese says them in English.
_GENERIC = frozenset(
    "agent api app bug bugs build case check client code commit config context data debug demo "
    "deploy doc docs email error file files fix hello hi id info install issue issues key list log "
    "logs memory merge model name new note notes ok old plan please pls pr project prompt release "
    "repo review run server set setup step steps table task tasks team test tests thanks todo token "
    "tokens type update use user users value version vs warning work "
    "january february march april may june july august september october november december "
    "monday tuesday wednesday thursday friday saturday sunday".split()
)
# As the query joins words, in a text without Chinese.
_PART = lazy(r"[^\W_]+")
_LETTERS_OR_DIGITS = lazy(r"[^\W\d_]+|\d+")
_SPELLED = lazy(rf"{_PART.pattern}(?:(?:[-._/\\'’]|:[/\\])+{_PART.pattern})*")
# Three plain words in a row are English beside Chinese, and no name among it.
_CLAUSE = lazy(r"\b[a-z]+(?: [a-z]+){2,}\b")
_SENTENCE_STARTS = lazy(r"(?:^|[.!?:;。！？：；\n\"“(（])\s*$")
_AMOUNT = lazy(
    r"[\d.]+(?:st|nd|rd|th|x|k|m|g|kb|mb|gb|tb|ms|s|sec|h|min|d|w|px)?"
    r"|(?:(?:19|20)\d\d)?[qhw]\d\d?",  # 2026Q3
    re.IGNORECASE,
)
_MEASURES = frozenset("字个個条條行次天元年月日号號人张張块塊页頁篇万萬千百亿億分秒小份种種倍步%")


def strong_terms(question: Question) -> tuple[int, ...]:
    """The numbers of the question's terms that look like names, in order.

    A name has signs or digits inside, is camelCase or a version, or is a longer number that is no
    year and counts nothing; it is a Latin word among Chinese, unless it
    stands in a clause of its own; or, in other text, a word with a
    capital that does not begin a sentence. Words that name no thing (`bug`, `review`) are none.
    """
    text = normalise(question.text)
    numbers = {term: number for number, term in enumerate(question.terms)}
    other = CJK_RUN.sub(lambda run: " " * len(run.group()), text)
    pieces = list(_SPELLED.finditer(other))
    words = [match.group() for match in pieces if match.group().casefold() not in COMMON_WORDS]
    among_chinese = len(words) <= sum(map(_is_chinese, question.terms))
    among_chinese = among_chinese and not _CLAUSE.search(other)
    capitals = sum(word[0].isupper() for word in words)
    told_by_capitals = any(map(str.islower, text)) and (2 * capitals <= len(words) or capitals == 1)
    found = set()
    for match in pieces:
        word = match.group()
        if _is_identifier(word, text[match.end() : match.end() + 2]) or (
            _is_word(word)
            and (
                among_chinese
                or told_by_capitals
                and word[0].isupper()
                and (word.isupper() or not _SENTENCE_STARTS.search(text[: match.start()]))
            )
        ):
            found.update(numbers[term] for term in parse(word) if term in numbers)
    return tuple(sorted(found))


def _is_identifier(word: str, behind: str) -> bool:
    parts = _PART.findall(word)
    signs = set(word) - set("".join(parts))
    if "'" in signs or "’" in signs or all(len(part) == 1 and part.isalpha() for part in parts):
        return False
    digits = any(character.isdigit() for character in word)
    letters = any(character.isalpha() for character in word)
    if digits and not letters and not signs:
        year = len(word) == 4 and word[:2] in ("19", "20")
        return len(word) > 2 and not year and not _MEASURES & set(behind.strip()[:1])
    if digits and not letters:
        return signs == {"."} and not _MEASURES & set(behind.strip()[:1])
    if digits:
        return not _AMOUNT.fullmatch(word)
    return bool(signs & set("_.\\:")) or word.count("/") > 1 or bool(camel_parts(word))


def _is_word(word: str) -> bool:
    folded = word.casefold()
    return (
        len(word) > 1
        and "'" not in word
        and "’" not in word
        and any(map(str.isalpha, word))
        and not _AMOUNT.fullmatch(word)
        and folded not in COMMON_WORDS
        and folded not in _GENERIC
    )


def held(candidate: Candidate, question: Question) -> Sequence[bool]:
    """Which terms of the question a card holds, in its text, title, summary, keywords, aliases,
    tags and project."""
    if candidate.matched in ("all", "all-prefix"):
        return (True,) * len(question.terms)
    if len(candidate.held) == len(question.terms):
        return candidate.held
    counts = TermCounter(question.terms).count(*_texts(candidate))
    return [count > 0 for count in counts]


def lacking(
    question: Question, strong: Sequence[int], candidates: Iterable[Candidate]
) -> tuple[int, ...]:
    """Those of the `strong` terms that none of the cards holds, in whatever place, its path and its
    refs included, as the beginning of a longer word, or written together or apart: `gpt4`, `GPT-4`.
    """
    missing = set(strong)
    counter = None
    for candidate in candidates:
        missing -= {number for number, has in enumerate(held(candidate, question)) if has}
        if not missing:
            break
        counter = counter or TermCounter(
            tuple(map(_loose, question.terms)), range(len(question.terms))
        )
        counts = counter.count(*_texts(candidate), candidate.path, *_strings(candidate.refs))
        missing = {number for number in missing if not counts[number]}
    return tuple(sorted(missing))


def _loose(term: Term) -> Term:
    """The term, or what it would be with its parts written together, or apart; of a long path its
    last two parts, the name of the file."""
    tokens = term.phrases[0]
    if len(tokens) == 1:
        others = [tuple(_LETTERS_OR_DIGITS.findall(tokens[0]))]
    else:
        others = [("".join(tokens),)]
        if len(tokens) > 3 and not any(map(str.isdigit, tokens)):
            others.append(tokens[-2:])
    return Term((*term.phrases, *filter(None, others)), term.open, term.extensible)


def has_content(holds: Sequence[bool], question: Question) -> bool:
    """Whether some cards hold more of a question than words that any question has."""
    told = weights(question.terms)
    if max(told, default=0) < CONTENT_WEIGHT:
        return any(holds)
    return any(has and weight >= CONTENT_WEIGHT for has, weight in zip(holds, told))


def share(holds: Sequence[bool], question: Question) -> float:
    """The share of the question's worth that is held, 0 to 1: sum of the worth of the terms that
    are held, by that and the worth of those that are missing.

    A missing pair of Chinese characters counts MISSING_PAIR, and nothing where both its characters
    belong to pairs that are held or that any question has: `库备` in `数据库备份`.
    """
    told = weights(question.terms)
    number_of = {term.phrases[0][0]: n for n, term in enumerate(question.terms)}
    between: set[int] = set()
    for run in CJK_RUN.findall(normalise(question.text)):
        pairs = [number_of.get(run[at : at + 2]) for at in range(len(run) - 1)]
        known = [n is not None and (holds[n] or told[n] < CONTENT_WEIGHT) for n in pairs]
        between.update(
            n
            for at, n in enumerate(pairs)
            if n is not None and any(known[max(0, at - 1) : at]) and any(known[at + 1 : at + 2])
        )
    has = lacks = 0.0
    for number, (term, value) in enumerate(zip(question.terms, question.worth)):
        if holds[number]:
            has += value
        elif number not in between:
            lacks += value * (MISSING_PAIR if _is_chinese(term) else 1)
    return has / (has + lacks) if has + lacks else 1.0


def together(candidates: Iterable[Candidate], question: Question) -> list[bool]:
    """Which terms of the question at least one of the cards holds."""
    found = [False] * len(question.terms)
    for candidate in candidates:
        found = [a or b for a, b in zip(found, held(candidate, question))]
    return found


def _is_chinese(term: Term) -> bool:
    return bool(CJK_RUN.match(term.phrases[0][0]))


def _texts(candidate: Candidate) -> tuple[str, ...]:
    return (
        candidate.title,
        *candidate.keywords,
        *candidate.aliases,
        *candidate.tags,
        candidate.project or "",
        candidate.summary,
        candidate.body,
    )


def _strings(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return []
    return [text for one in value for text in _strings(one)]
