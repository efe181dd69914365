"""The stages of ranking, each a function from hits to hits, and the table that switches them.

A stage takes the candidates, best first, and the question, and gives them again: with other scores
and in their order, without some of them, or with cards of the index added. One that looks into
index or files takes a `Lookup` too. Formulas stand in `formulas`; those of which no other source is
named are of the Agent Memory Hub document.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..text.lazy import lazy
from ..text.literal import folded
from ..text.similar import overlap, wording
from ..text.tags import STALE_TAGS, fold_tag
from ..text.times import days_since, is_expired
from ..vault.kinds import STALE_AFTER, by_name
from . import formulas

if TYPE_CHECKING:
    from .candidate import Candidate
    from .lookup import Lookup
    from .question import Question

Hits = list["Candidate"]

#: The half-life in days of a kind that nobody knows.
HALF_LIFE = 60

#: How much age and confidence say against how well a card answers; the document has 1.
DECAY_WEIGHT = 0.1

#: What whole names of a card in a question count: its title or an alias, a tag or its project.
NAME_PHRASE, TAG_PHRASE = 1.0, 0.3

#: A card has to hold such a share of what the terms are worth in its names for these to count.
LEAST_PHRASE = 0.5

#: So many recent states are added, and a state gets such a share of the best score.
STATES, STATE_SHARE = 3, 0.5

#: What a runtime or status card gets, as a share of the best score.
RUNTIME_BOOST = 0.1

#: How much relevance counts against diversity, and how much of a text is compared.
MMR_LAMBDA, MMR_CHARACTERS = 0.7, 2_000

#: From so many of the best hits links are followed, so far; each link leaves so much of a score.
GRAPH_FROM, GRAPH_DEPTH, GRAPH_GAMMA = 3, 1, 0.5

STATE_KINDS = ("handoff", "signal")

# Tags, as `fold_tag` gives them, of what tells how something runs at the moment.
_RUNTIME_TAGS = frozenset("runtime-state runtime-status adapter-state 运行状态 运行时状态".split())

_STATUS = lazy(
    "现在|目前|当前|眼下|进度|进展|状态|还在|还没|是否还|最新|最近|交接|过期|到哪|怎么样了|"
    r"\b(?:current(?:ly)?|now(?:adays)?|status|still|latest|progress|ongoing|outdated|stale|"
    r"up[ -]to[ -]date|hand(?:off|over)s?|at the moment|so far)\b",
    re.IGNORECASE,
)


def ordered(hits: Iterable[Candidate]) -> Hits:
    """The hits by score; those of the same score stay as they are."""
    return sorted(hits, key=lambda one: -one.score)


# Fusion


def mix(hits: Hits, question: Question) -> Hits:
    """s / best s: the scores of plain search, 1 for the best, in the order of plain search.

    With vectors these are the convex mix of words and vectors of `vectors.blend` already.
    """
    best = max((one.score for one in hits), default=0.0)
    return [replace(one, score=one.score / best) for one in hits] if best > 0 else hits


def rrf(hits: Hits, question: Question) -> Hits:
    """s = sum of 1 / (60 + rank) over the lists by words and by vectors (Cormack et al., 2009)."""
    return ordered(
        replace(one, score=formulas.fused((one.lexical_rank, one.vector_rank))) for one in hits
    )


# Relevance


def phrase(one: Candidate, question: Question) -> float:
    """phi: how far a question names a card, 0 if it does not.

    The share of what the terms are worth that stands in title, aliases, keywords, tags, project and
    summary (0 below LEAST_PHRASE), and 1 when the question holds the whole title or an alias, 0.3
    for each tag and for the project that it holds.
    """
    from ..text.count import TermCounter

    whole = sum(question.worth)
    names = (one.title, *one.aliases)
    marks = (*one.tags, *filter(None, (one.project,)))
    texts = (*names, *one.keywords, *marks, one.summary)
    counts = TermCounter(question.terms).count("\n".join(texts))
    held = sum(worth for count, worth in zip(counts, question.worth) if count)
    if not whole or held / whole < LEAST_PHRASE:
        return 0.0
    asked = folded(question.text)
    phi = held / whole
    if any(_stands(name, asked) for name in names):
        phi += NAME_PHRASE
    return phi + TAG_PHRASE * sum(_stands(mark, asked) for mark in marks)


def metadata_phrase(hits: Hits, question: Question) -> Hits:
    """s = max(s, 1 + phi), phi as of `phrase`."""
    return ordered(
        replace(one, score=formulas.phrased(one.score, phrase(one, question))) for one in hits
    )


def _stands(name: str, asked: str) -> bool:
    """Whether a name of more than one character stands in a folded question."""
    name = folded(name.strip())
    return len(name) > 1 and name in asked


def asks_for_status(question: Question) -> bool:
    """Whether a question is about how things stand: 现在, 进度, still, latest, ..."""
    return _STATUS.search(question.text) is not None


def status_supplement(hits: Hits, question: Question, lookup: Lookup) -> Hits:
    """s = s + 0.5 best s for handoffs and signals, and the latest three of them added with 0.5 of
    the best: how things stand is told by them. Only where a question asks for that, and only by
    those that are not stale."""
    if not asks_for_status(question):
        return hits
    best = max((one.score for one in hits), default=0.0) or 1.0
    have = {one.id for one in hits}
    latest = [id for id in lookup.latest(STATE_KINDS, STATES + len(have)) if id not in have]
    known = {
        id: {
            "score": STATE_SHARE * best,
            "origin": "status",
            "held": (False,) * len(question.terms),
        }
        for id in latest[:STATES]
    }
    added = [one for one in lookup.load(known) if not is_stale(one, question)]
    lifted = [
        replace(one, score=one.score + STATE_SHARE * best)
        if one.kind in STATE_KINDS and not is_stale(one, question)
        else one
        for one in hits
    ]
    return ordered([*lifted, *added])


# Value


def half_life(one: Candidate) -> int:
    """That of its kind in days; HALF_LIFE for a kind that nobody knows."""
    kind = by_name(one.kind)
    return kind.half_life_days if kind else HALF_LIFE


def age(one: Candidate, question: Question) -> float:
    """Days since a card was read, updated or created last; 0 if that is to come, or not known."""
    told = (days_since(text, question.now) for text in (one.last_read, one.updated, one.created))
    return max(0.0, min((days for days in told if days is not None), default=0.0))


def coefficient(one: Candidate, question: Question) -> float:
    """The decay coefficient of a card; see `formulas.decay_coefficient`."""
    return formulas.decay_coefficient(
        age(one, question), half_life(one), reads=one.reads, support=one.support, gain=one.gain,
        contradict=one.contradict,
    )  # fmt: skip


def decay(hits: Hits, question: Question, weight: float = DECAY_WEIGHT) -> Hits:
    """s = s (confidence 0.5^(days / half-life) access support gain contradiction) ^ weight, all but
    confidence within 0.01 and 1.35. The document has the weight 1."""
    return ordered(
        replace(
            one,
            score=formulas.decayed(one.score, one.confidence, coefficient(one, question), weight),
        )
        for one in hits
    )


def value(one: Candidate) -> float:
    """What feedback multiplies the score of a card by; see `formulas.feedback_value`."""
    return formulas.feedback_value(one.support, one.contradict, one.gain)


def feedback(hits: Hits, question: Question) -> Hits:
    """s = s (1 + 0.03 support - 0.10 contradict + 0.50 gain, within 0.25 and 2.0)."""
    return ordered(
        replace(one, score=one.score * value(one)) if value(one) != 1 else one for one in hits
    )


def runtime_boost(hits: Hits, question: Question) -> Hits:
    """s = s + 0.1 best s, where a question asks how things stand, and a card is tagged as telling of
    a runtime state and has a tag that stands in the question."""
    if not asks_for_status(question):
        return hits
    best = max((one.score for one in hits), default=0.0)
    asked = folded(question.text)
    return ordered(
        replace(one, score=one.score + RUNTIME_BOOST * best)
        if tells_runtime(one) and any(_stands(tag, asked) for tag in one.tags)
        else one
        for one in hits
    )


def tells_runtime(one: Candidate) -> bool:
    """Whether a card is tagged as telling how something runs at the moment."""
    return not _RUNTIME_TAGS.isdisjoint(map(fold_tag, one.tags))


# Filters


def is_stale(one: Candidate, question: Question) -> str | None:
    """Why a card tells of a state that has passed, or None.

    A handoff, a signal, and what is tagged as a runtime state: its time has passed, it is tagged as
    stale, or two half-lives have gone since it was updated (those of a signal for a runtime state).
    """
    if one.kind not in STATE_KINDS and not tells_runtime(one):
        return None
    if is_expired(one.created, one.ttl, one.valid_until, question.now):
        return "its time has passed"
    if not STALE_TAGS.isdisjoint(map(fold_tag, one.tags)):
        return "it is tagged as stale"
    life = half_life(one)
    if one.kind not in STATE_KINDS:
        life = min(life, half_life(replace(one, kind="signal")))
    days = days_since(one.updated or one.created, question.now)
    if days is not None and days > STALE_AFTER * life:
        return f"it tells of a state of {days:.0f} days ago"
    return None


def stale_state(hits: Hits, question: Question) -> Hits:
    """Without runtime states that have passed; handoffs and signals are left to the firewall, which
    knows whether a question is about the past."""
    return [one for one in hits if stale_state_reason(one, question) is None]


def stale_state_reason(one: Candidate, question: Question) -> str | None:
    """Why `stale_state` removes a card, or None."""
    return None if one.kind in STATE_KINDS else is_stale(one, question)


def supersession(hits: Hits, question: Question, lookup: Lookup | None = None) -> Hits:
    """Without cards that another replaced or that are secret. Where a file has changed since the
    index read it, the file decides, of its sensitivity, confidence and tags too; one that is gone is
    out."""
    told = lookup.written(one.id for one in hits) if lookup else {}
    return [
        _as_written(one, told.get(one.id))
        for one in hits
        if _replaced(one, told.get(one.id)) is None
    ]


def _as_written(one: Candidate, written: Any) -> Candidate:
    if written is None:
        return one
    return replace(
        one,
        sensitivity=written.sensitivity,
        confidence=written.confidence,
        tags=written.tags,
    )


def supersession_reason(
    one: Candidate, question: Question, lookup: Lookup | None = None
) -> str | None:
    """Why `supersession` removes a card, or None."""
    return _replaced(one, lookup.written([one.id]).get(one.id) if lookup else None)


def _replaced(one: Candidate, written: Any) -> str | None:
    if one.sensitivity == "secret":
        return "it is secret"
    if one.superseded_by:
        return f"it is superseded by {one.superseded_by}"
    if written is None:
        return None
    if written.gone:
        return "its file is gone"
    if written.secret:
        return "its file says that it is secret"
    if written.superseded_by:
        return f"its file says that it is superseded by {written.superseded_by}"
    return None


# Diversity and expansion


def mmr(hits: Hits, question: Question, lam: float = MMR_LAMBDA) -> Hits:
    """Takes one after the other the card with the greatest 0.7 s / best s - 0.3 similarity, which
    is the greatest share of wording with one that was taken before (Carbonell and Goldstein, 1998;
    Jaccard, 1912). That is its score then."""
    best = max((one.score for one in hits), default=0.0)
    if best <= 0:
        return hits
    words = {
        one.id: wording(f"{one.title}\n{one.summary}\n{one.body[:MMR_CHARACTERS]}") for one in hits
    }
    near = dict.fromkeys(words, 0.0)
    left, chosen = list(hits), []
    while left:
        marks = [formulas.marginal(one.score / best, near[one.id], lam) for one in left]
        at = max(range(len(left)), key=marks.__getitem__)
        taken = left.pop(at)
        chosen.append(replace(taken, score=marks[at]))
        for one in left:
            near[one.id] = max(near[one.id], overlap(words[one.id], words[taken.id]))
    return chosen


def graph(hits: Hits, question: Question, lookup: Lookup) -> Hits:
    """Adds the cards one link away from the best three: s = s 0.5 ^ depth, the greatest of several."""
    have = {one.id for one in hits}
    scores: dict[int, float] = {}
    for one in hits[:GRAPH_FROM]:
        for id, depth in lookup.around(one.id, GRAPH_DEPTH):
            if id not in have:
                score = formulas.neighbour_score(one.score, depth, GRAPH_GAMMA)
                scores[id] = max(score, scores.get(id, score))
    known = {
        id: {"score": score, "origin": "graph", "held": (False,) * len(question.terms)}
        for id, score in scores.items()
    }
    return ordered([*hits, *lookup.load(known)])


# The table


@dataclass(frozen=True, slots=True)
class Stage:
    """A line of the table. `function` is None for one that is yet to come; `looks_up` says that it
    takes a `Lookup`; `reason` tells why it removes a card, `note` what it saw in one."""

    name: str
    function: Callable[..., Hits] | None
    on: bool
    why: str
    looks_up: bool = False
    reason: Callable[..., str | None] | None = None
    note: Callable[[Candidate, Question], str] | None = None


def _phrase_note(one: Candidate, question: Question) -> str:
    phi = phrase(one, question)
    return f"phrase {phi:.2f}" if phi else ""


def _decay_note(one: Candidate, question: Question) -> str:
    return (
        f"confidence {one.confidence:.2f}, coefficient {coefficient(one, question):.2f} "
        f"({age(one, question):.0f} days, half-life {half_life(one)})"
    )


def _feedback_note(one: Candidate, question: Question) -> str:
    if value(one) == 1:
        return ""
    return f"times {value(one):.2f} ({one.support} for it, {one.contradict} against)"


_NO_SUCH_SET = "no set that is measured has such questions"

#: In the order in which they run.
STAGES: tuple[Stage, ...] = (
    Stage("mix", mix, True, "the order of plain search; the best has 1"),
    Stage(
        "rrf", rrf, False,
        "changes nothing without vectors; with them it hurts (locomo_session 0.79 to 0.67)",
    ),
    Stage(
        "metadata-phrase", metadata_phrase, False,
        "lowers nDCG@10 of dureader from 0.732 to 0.730: names count in search already",
        note=_phrase_note,
    ),
    Stage("status", status_supplement, False, _NO_SUCH_SET, looks_up=True),
    Stage("rerank", None, False, "place for a cross-encoder, which is yet to come"),
    Stage(
        "decay", decay, True,
        "of two that answer as well the newer and surer comes first; with a tenth of the weight",
        note=_decay_note,
    ),
    Stage(
        "feedback", feedback, True, "what was adopted rises, what was rejected falls",
        note=_feedback_note,
    ),
    Stage("runtime", runtime_boost, False, _NO_SUCH_SET),
    Stage(
        "stale-state", stale_state, True, "a state that has passed answers nothing",
        reason=stale_state_reason,
    ),
    Stage(
        "supersession", supersession, True, "a replaced card never comes back, even from an index "
        "that lags behind the files", looks_up=True, reason=supersession_reason,
    ),
    Stage(
        "mmr", mmr, False,
        "lowers nDCG@10 of dureader from 0.732 to 0.726; duplicates are the firewall's",
    ),
    Stage("hopfield", None, False, "place for expansion over vectors, which is yet to come"),
    Stage("graph", graph, False, "no set that is measured has links", looks_up=True),
)  # fmt: skip

#: What runs unless told otherwise.
DEFAULT: tuple[str, ...] = tuple(stage.name for stage in STAGES if stage.on)
