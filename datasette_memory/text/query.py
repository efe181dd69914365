"""A query string in, FTS5 MATCH expressions out: one for each tier.

No query can be a syntax error. Tokens are letters and digits only, each is quoted, and operators
such as `AND`, `NEAR`, `*` or `:` are words or separators like any other.
"""

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from .lazy import lazy
from .normalise import normalise
from .stem import index_key, other_endings
from .tokenise import CJK_RUN, WORD, camel_parts

#: From exact to loose. `all`: every term; `any`: at least one; `-prefix`: words may go on.
TIERS = ("all", "all-prefix", "any", "any-prefix")

#: Matches nothing and is no error: what a query without terms becomes.
NOTHING = '""'

#: Longer queries are cut here: characters read, and distinct terms used.
MAX_CHARACTERS = 10_000
MAX_TERMS = 64

_WORD = lazy(WORD)
# Words held together by these are one term, an adjacent phrase: `ecs-prod`, `v1.2`, `C:\bin`.
_JOINED = lazy(rf"{WORD}(?:(?:[-._/\\'’]|:[/\\])+{WORD})*")

# How a version begins.
_NUMBER = lazy(r"[0-9]+")


@dataclass(frozen=True, slots=True)
class Term:
    """One thing that a card may hold or lack.

    `phrases` are alternatives; each is a sequence of tokens that stand side by side. `open` says
    that the term is asked as a prefix in every tier (a single Han character, kana or syllable);
    `extensible` that the prefix tiers ask it so.
    """

    phrases: tuple[tuple[str, ...], ...]
    open: bool = False
    extensible: bool = False

    @property
    def name(self) -> str:
        """The term as people read it."""
        return " ".join(self.phrases[0])

    def expression(self, prefix: bool) -> str:
        """The term in FTS5's query language."""
        quoted = []
        for phrase in self.phrases:
            longer = prefix and self.extends(phrase)
            quoted.append('"' + " ".join(phrase) + '"' + "*" * (self.open or longer))
            if longer:
                quoted += [f'"{" ".join(one)}"' for one in self.others(phrase)]
        return quoted[0] if len(quoted) == 1 else "(" + " OR ".join(quoted) + ")"

    def extends(self, phrase: tuple[str, ...]) -> bool:
        """Whether the prefix tiers ask `phrase`, one of `phrases`, as a prefix."""
        return self.extensible and _is_prefix(phrase[-1])

    def others(self, phrase: tuple[str, ...]) -> list[tuple[str, ...]]:
        """What the prefix tiers ask beside a `phrase` that they ask as a prefix: its last word may
        go on to one of which the index keeps less."""
        return [(*phrase[:-1], word) for word in other_endings(phrase[-1])]


def parse(query: str) -> tuple[Term, ...]:
    """The distinct terms of a query in order, at most `MAX_TERMS`; empty if it has none.

    A run of Chinese gives its overlapping pairs, each a term; a single character is asked as a
    prefix. Words joined by `-`, `.`, `_`, `/`, `\\`, `:/` or an apostrophe give one phrase. A
    camelCase word may also be met as its parts: `userById` finds `getUserById`. A number of several
    parts may stand behind a `v`: `2.3.1` finds `v2.3.1`.
    """
    terms: dict[Term, None] = {}
    # normalise() may leave punctuation as it is, and that may join words here.
    normal = unicodedata.normalize("NFKC", normalise(query[:MAX_CHARACTERS]))
    for term in _terms(normal):
        terms[term] = None
        if len(terms) >= MAX_TERMS:
            break
    return tuple(terms)


def _terms(normal: str) -> Iterator[Term]:
    for number, piece in enumerate(CJK_RUN.split(normal)):
        if number % 2:
            yield from _pairs(piece)
        else:
            for match in _JOINED.finditer(piece):
                yield _term(match.group())


def _pairs(run: str) -> list[Term]:
    if len(run) == 1:
        return [Term(((run,),), open=True)]
    return [Term(((run[i : i + 2],),)) for i in range(len(run) - 1)]


def _term(piece: str) -> Term:
    words = _WORD.findall(piece)
    phrases = [tuple(word.casefold() for word in words)]
    if len(words) == 1 and (parts := camel_parts(words[0])):
        phrases.append(tuple(part.casefold() for _, part in parts))
    if len(words) > 1 and _NUMBER.fullmatch(phrases[0][0]):
        # 2.3.1 is what v2.3.1 says too; who asks for v2.3.1 means no section of a text.
        phrases.append((f"v{phrases[0][0]}", *phrases[0][1:]))
    return Term(tuple(phrases), extensible=any(_is_prefix(phrase[-1]) for phrase in phrases))


def _is_prefix(token: str) -> bool:
    """Whether a token may be asked as a prefix: one letter would match a tenth of everything."""
    return len(index_key(token)) > 1


def expression(terms: tuple[Term, ...], tier: str) -> str:
    """The MATCH expression of one of `TIERS`.

    Raises ValueError for another tier name. Gives `NOTHING` when there is no term.
    """
    if tier not in TIERS:
        raise ValueError(f"no such tier: {tier!r}; tiers are {', '.join(TIERS)}")
    prefix = tier.endswith("-prefix")
    operator = " AND " if tier.startswith("all") else " OR "
    return operator.join(term.expression(prefix) for term in terms) or NOTHING


def expressions(terms: tuple[Term, ...]) -> dict[str, str]:
    """Tier to MATCH expression, in order, without the tiers that would repeat an earlier one."""
    found: dict[str, str] = {}
    for tier in TIERS:
        match = expression(terms, tier)
        if match != NOTHING and match not in found.values():
            found[tier] = match
    return found
