"""Which of the cards that were found an agent may see.

Found is not the same as fit to be given. Each rule has a stable code and a sentence for whoever asks
why. Nothing here ranks: cards keep their order, but for those that are demoted, which go behind the
rest.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..search.formulas import unbounded_value
from ..text.similar import NEAR_DUPLICATE, overlap, wording
from ..text.tags import STALE_TAGS, fold_tag
from ..text.times import days_since, is_expired, moment
from ..vault.kinds import STALE_AFTER, by_name
from . import cover
from .periods import asks_for_history, named_days

if TYPE_CHECKING:
    from datetime import datetime

    from ..search.candidate import Candidate
    from ..search.question import Question

INCLUDED, DEMOTED, EXCLUDED = "included", "demoted", "excluded"

# The source that cards are written into. Any other is a folder of files, and each file a source.
_VAULT = "vault"

# Tags, as `fold_tag` gives them.
_REVIEW = frozenset(("needs-review", "requires-review", "待复核", "待审核"))
_CONTESTED = frozenset(("contested", "有争议"))
_RAW = frozenset(("raw", "l0", "transcript", "原始"))

# Kinds that have to say where they come from, and kinds that tell of a state that passes.
_SOURCED = frozenset(("fact", "decision"))
_PASSING = frozenset(("signal", "handoff"))

# What a card says in its `refs` of one that contradicts it.
_CONTRADICTS = ("contradicts", "contradicted_by")


@dataclass(frozen=True, slots=True)
class Policy:
    """Where the rules draw their lines."""

    #: Cards of these may be given. `secret` is never given, even if it stands here.
    sensitivities: frozenset[str] = frozenset(("public", "internal"))
    #: So many cards at the most.
    max_items: int = 8
    #: A card with less than such a share of the best score says nothing to the question. Of five
    #: public sets this leaves out 0 to 3.4 % of the right cards among the first ten, and 3 to 70 %
    #: of the others.
    least_score: float = 0.25
    #: A card with less confidence is left out; a new card has 0.7.
    least_confidence: float = 0.2
    #: A card with less confidence is demoted.
    low_confidence: float = 0.5
    #: So many more rejections than adoptions leave a card out ...
    contradictions: int = 3
    #: ... and so does a `feedback_value` at or below this, the least that ranking goes to ...
    least_value: float = 0.25
    #: ... or a gain at or below this: five rejections without an adoption.
    least_gain: float = -0.5
    #: A signal or handoff is stale when more half-lives of its kind have passed since its update.
    half_lives: float = STALE_AFTER
    #: Two cards that share so much of their wording say the same.
    duplicate: float = NEAR_DUPLICATE
    #: So large a share of the strong terms, by number, has to be held by the cards together. Half:
    #: who asks about a known server and a new tool is better off with what is known of the server.
    least_strong: float = 0.5
    #: Without strong terms: so large a share of what the question is worth. On seven public sets
    #: none of 733 such questions is below 0.3 when its answer is among the first eight cards; of
    #: questions asked of a set about other things mostly a quarter or more are.
    least_share: float = 0.3
    #: And so large a share by one card alone: of 704 such questions of six public sets 3 are below.
    least_best: float = 0.15


@dataclass(frozen=True, slots=True)
class Reason:
    """A rule that bit: its stable `code`, and a sentence that a person understands."""

    code: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a card; without reasons if it is included."""

    candidate: Candidate
    outcome: str
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True)
class Screened:
    """The verdict on each card: included, demoted, excluded, each by rank. `refused` says why
    nothing is given although cards were fit to be."""

    verdicts: tuple[Verdict, ...]
    refused: Reason | None = None

    def shown(self) -> tuple[Verdict, ...]:
        """Those that may be given, in order."""
        return tuple(one for one in self.verdicts if one.outcome != EXCLUDED)


def screen(
    candidates: Sequence[Candidate],
    question: Question,
    policy: Policy = Policy(),
    *,
    sourced: Container[int],
    given: Container[int] = (),
    contested: Container[int] = (),
) -> Screened:
    """Judge cards, the best first, by every rule. Pure; `question.now` is the time.

    `sourced` holds the ids of vault cards that have a source beside their `refs`, such as the
    event of their capture; `given` those that this session has had already; `contested` those that
    another card contradicts.
    """
    asked = _Asked(question)
    excluded: list[tuple[int, Verdict]] = []
    fit: list[tuple[int, Verdict]] = []
    had: list[Candidate] = []
    for place, one in enumerate(candidates):
        against = _against(one, asked, policy, sourced)
        if one.id in given:
            if not against:
                had.append(one)
            against.append(Reason("given-already", "This session has been given it already."))
        if against:
            excluded.append((place, Verdict(one, EXCLUDED, tuple(against))))
        else:
            doubts = _doubts(one, policy, contested)
            fit.append((place, Verdict(one, DEMOTED if doubts else INCLUDED, doubts)))
    fit, far = _near_the_best(fit, had, policy)
    excluded += far
    fit.sort(key=lambda pair: (pair[1].outcome == DEMOTED, pair[0]))
    shown, left = _first_of_each(fit, had, policy)
    # Cards that only the limit keeps out hold what they hold.
    cards = [*had, *(verdict.candidate for _, verdict in fit)]
    refused = _refusal(cards, question, policy) if shown else None
    if refused:
        given_up = {id(verdict) for verdict in shown}
        left += [
            (place, Verdict(verdict.candidate, EXCLUDED, (refused,)))
            for place, verdict in fit
            if id(verdict) in given_up
        ]
        shown = []
    excluded = sorted(excluded + left, key=lambda pair: pair[0])
    return Screened((*shown, *(verdict for _, verdict in excluded)), refused)


class _Asked:
    """A question, and what is worked out of it once."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self.now = question.now
        self.days = named_days(question.text, question.now)
        self.history = asks_for_history(question.text, question.now)


def _against(
    one: Candidate, asked: _Asked, policy: Policy, sourced: Container[int]
) -> list[Reason]:
    """Why a card may not be given, whatever other cards there are."""
    found: list[Reason] = []

    def add(code: str, sentence: str) -> None:
        found.append(Reason(code, sentence))

    tags = frozenset(map(fold_tag, one.tags))
    if one.sensitivity == "secret" or one.sensitivity not in policy.sensitivities:
        allowed = " and ".join(sorted(policy.sensitivities - {"secret"})) or "no"
        add("sensitivity", f"It is {one.sensitivity}, and only {allowed} cards are given.")
    if one.superseded_by is not None:
        add("superseded", f"It is superseded by {one.superseded_by}.")
    if tags & _REVIEW:
        add("needs-review", f"It waits for review: it is tagged {min(tags & _REVIEW)}.")
    if _has_no_match(one, asked.question):
        add("no-match", "It holds nothing of the question but words that any question has.")
    if one.confidence < policy.least_confidence:
        least = f"{policy.least_confidence:g}"
        add("very-low-confidence", f"Its confidence is {one.confidence:g}, below {least}.")
    if complaint := _complaint(one, policy):
        add("negative-feedback", complaint)
    if _has_no_source(one, sourced):
        add("no-source", f"It is a {one.kind} that does not say where it comes from.")
    if stale := _staleness(one, tags, asked, policy):
        add("stale", stale)
    if mismatch := _mismatch(one, asked):
        add("temporal-mismatch", mismatch)
    return found


def _has_no_match(one: Candidate, question: Question) -> bool:
    if one.vector_rank is not None or one.origin != "recall":
        return False
    return not cover.has_content(cover.held(one, question), question)


def _near_the_best(
    fit: list[tuple[int, Verdict]], had: list[Candidate], policy: Policy
) -> tuple[list[tuple[int, Verdict]], list[tuple[int, Verdict]]]:
    """Those that answer about as well as the best that may be given or was, and those that do
    not."""
    best = max((one.score for one in (*had, *(verdict.candidate for _, verdict in fit))), default=0)
    least = policy.least_score * best
    near, far = [], []
    for place, verdict in fit:
        one = verdict.candidate
        if one.score < least and one.vector_rank is None and one.origin == "recall":
            told = "It answers far less of the question than the best card does."
            far.append((place, Verdict(one, EXCLUDED, (Reason("no-match", told),))))
        else:
            near.append((place, verdict))
    return near, far


def _complaint(one: Candidate, policy: Policy) -> str | None:
    if one.contradict - one.support >= policy.contradictions:
        return f"It was rejected {one.contradict} times and adopted {one.support} times."
    if _at_most(one.gain, policy.least_gain):
        return f"It did harm where it was given: its gain is {one.gain:g}."
    value = unbounded_value(one.support, one.contradict, one.gain)
    if _at_most(value, policy.least_value):
        return f"Feedback speaks against it: its value is {value:g}, where 1 is none."
    return None


def _at_most(value: float, limit: float) -> bool:
    """Steps of 0.1 add up to -0.5 only nearly."""
    return value <= limit + 1e-9


def _has_no_source(one: Candidate, sourced: Container[int]) -> bool:
    return (
        one.kind in _SOURCED
        and one.source == _VAULT
        and not any(one.refs.values())
        and one.id not in sourced
    )


def _staleness(one: Candidate, tags: frozenset[str], asked: _Asked, policy: Policy) -> str | None:
    if one.kind not in _PASSING or asked.history:
        return None
    if tags & STALE_TAGS:
        return f"It is a {one.kind} that is tagged {min(tags & STALE_TAGS)}."
    days = days_since(one.updated or one.created, asked.now)
    kind = by_name(one.kind)
    if days is not None and kind and days > policy.half_lives * kind.half_life_days:
        return f"It is a {one.kind} of {int(days)} days ago, and tells of a state that passes."
    return None


def _mismatch(one: Candidate, asked: _Asked) -> str | None:
    if asked.days and one.valid_from and one.valid_until:
        first, last = asked.days
        start, end = one.valid_from[:10], one.valid_until[:10]
        if start <= last and first <= end:
            return None
        return f"It held from {start} to {end}, and the question is about {first} to {last}."
    if asked.history and not asked.days:
        return None
    if is_expired(one.created, one.ttl, one.valid_until, asked.now):
        if one.valid_until and is_expired(None, None, one.valid_until, asked.now):
            return f"It held until {one.valid_until}."
        return f"Its time has passed: it was kept for {one.ttl} days."
    if one.valid_from and _is_to_come(one.valid_from, asked.now):
        return f"It holds from {one.valid_from} on, which is to come."
    return None


def _is_to_come(text: str, now: datetime) -> bool:
    if len(text.strip()) <= 10:
        return moment(text) is not None and text.strip() > now.date().isoformat()
    then = moment(text)
    return then is not None and then > now


def _doubts(one: Candidate, policy: Policy, contested: Container[int]) -> tuple[Reason, ...]:
    """Why a card goes behind the others."""
    found: list[Reason] = []
    tags = frozenset(map(fold_tag, one.tags))
    if 0 < one.contradict >= one.support:
        told = f"It was rejected {one.contradict} times and adopted {one.support} times."
        found.append(Reason("contested", told))
    elif tags & _CONTESTED:
        found.append(Reason("contested", f"It is tagged {min(tags & _CONTESTED)}."))
    elif one.id in contested or any(map(one.refs.get, _CONTRADICTS)):
        found.append(Reason("contested", "Another card contradicts it."))
    if one.confidence < policy.low_confidence:
        low = f"{policy.low_confidence:g}"
        told = f"Its confidence is {one.confidence:g}, below {low}."
        found.append(Reason("low-confidence", told))
    if one.kind == "session" or tags & _RAW:
        found.append(Reason("raw-evidence", "It is raw evidence that nobody has summed up."))
    return tuple(found)


def _first_of_each(
    fit: list[tuple[int, Verdict]], had: list[Candidate], policy: Policy
) -> tuple[list[Verdict], list[tuple[int, Verdict]]]:
    """Those that are given, and those that say what a better one says, or are too many."""
    shown: list[Verdict] = []
    left: list[tuple[int, Verdict]] = []
    known: list[tuple[str, Candidate]] = []
    words: dict[int, frozenset[str]] = {}

    def alike(one: Candidate, other: Candidate) -> bool:
        for card in (one, other):
            if card.id not in words:
                words[card.id] = wording(_text(card))
        return overlap(words[one.id], words[other.id]) >= policy.duplicate

    known = [(f"{one.ref}, which this session has had", one) for one in had]
    for place, verdict in fit:
        one = verdict.candidate
        if len(shown) >= policy.max_items:
            told = f"{policy.max_items} better cards are given, and no more."
            left.append((place, Verdict(one, EXCLUDED, (Reason("item-limit", told),))))
            continue
        twin = next(
            (said for said, other in known if _are_as_long(one, other) and alike(one, other)), None
        )
        if twin:
            told = f"It says nearly the same as {twin}."
            left.append((place, Verdict(one, EXCLUDED, (Reason("duplicate", told),))))
        else:
            shown.append(verdict)
            known.append((one.ref, one))
    return shown, left


def _text(one: Candidate) -> str:
    return f"{one.title}\n{one.body}"


def _are_as_long(one: Candidate, other: Candidate) -> bool:
    """Whether two texts are of a length, more or less: to take a long one apart costs time."""
    first, second = sorted((len(_text(one)), len(_text(other))))
    return second <= 2 * first


def _refusal(cards: Sequence[Candidate], question: Question, policy: Policy) -> Reason | None:
    """Why the cards together do not answer the question."""
    if strong := cover.strong_terms(question):
        missing = cover.lacking(question, strong, cards)
        if len(strong) - len(missing) >= policy.least_strong * len(strong):
            return None
        words = ", ".join(" ".join(question.terms[n].phrases[0]) for n in missing)
        return Reason("strong-terms-missing", f"No card that was found holds: {words}.")
    if any(one.vector_rank is not None for one in cards):
        # Near in meaning, maybe in another language: words cannot tell.
        return None
    part = cover.share(cover.together(cards, question), question)
    best = max((cover.share(cover.held(one, question), question) for one in cards), default=0.0)
    if part >= policy.least_share and best >= policy.least_best:
        return None
    return Reason(
        "strong-terms-missing",
        f"All cards that were found hold only {100 * part:.0f} % of what the question asks.",
    )
