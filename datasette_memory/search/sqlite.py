"""The search over the SQLite index.

Keywords, and what a card is called, are answered by the cards that hold all of it, and by nothing
else: FTS5 ranks those. A question, and keywords that no card holds together, are answered by the
cards that hold most of what is rare in them: `recall` finds them, `scoring` puts them in order,
`tiers` says what each is.
"""

import json
import time
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import NamedTuple

from ..index.connection import sqlite3
from ..index.links import TITLE, hashed_name
from ..index.schema import FTS_COLUMNS
from ..text.count import TermCounter
from ..text.importance import are_keywords, are_plain, are_together, may_be_name, weights
from ..text.literal import folded, holds, pieces
from ..text.matches import find
from ..text.query import MAX_CHARACTERS, MAX_TERMS, Term, expression, parse
from ..text.snippet import Snippet, cut, snippet
from .filters import Filters
from .hits import Hit, SearchResult
from .recall import CANDIDATES, Reach, Recall, worth_of
from .scoring import score, share
from .searcher import DEFAULT_LIMIT, clamp
from .sizes import lengths, totals
from .tiers import VECTOR, first, tier_of
from .vectors import blend, nearness

#: What bm25() multiplies a word by in each column of the full-text index, for keywords: a title
#: tells what a card is about. For questions all columns count the same.
KEYWORD_WEIGHTS = {"title": 2.0, "keywords": 1.0, "summary": 1.0, "body": 1.0}

#: So much of a long card is read to count terms; the rest is taken to be like it.
READ = 8_000

#: A search reads no further card after so many seconds.
PATIENCE = 0.15

# What the full-text index has of a card beside its body.
_HEADS = [sql.format(row="cards.") for name, sql in FTS_COLUMNS.items() if name != "body"]

_EXACT = f"""
select cards_fts.rowid, -cards_fts.rank, cards.superseded_by
from cards_fts join cards on cards.id = cards_fts.rowid
where cards_fts match ? and rank match 'bm25({", ".join(map(str, KEYWORD_WEIGHTS.values()))})'
and {{conditions}} order by rank limit ?
"""

_TEXTS = f"""
select cards.id, cards.superseded_by, {", ".join(_HEADS)},
    substr(cards.body, 1, {READ}), length(cards.body)
from json_each(?) as wanted join cards on cards.id = wanted.value order by wanted.key
"""

#: So many cards are looked at for the keywords as they were typed, and so much of each.
LOOKED_AT, LOOKED_INTO = 20, 100_000

_WHOLE = f"""
select cards.id,
    {" || char(10) || ".join([*_HEADS, f"substr(cards.body, 1, {LOOKED_INTO})"])}
from cards where id in (select value from json_each(?))
"""

# Titles and aliases, as `index.links` ranks them.
_NAMED = (
    f"select card_id from names where key = ? and rank >= {TITLE} "
    "and card_id in (select value from json_each(?))"
)

# Whether a card is called so, or a link asks for a card that is.
_IS_NAME = (
    f"select exists (select 1 from names where key = ?1 and rank >= {TITLE}) "
    "or exists (select 1 from links where key = ?1) "
    "or exists (select 1 from links where other_key = ?1)"
)

_CARD = """
select ref, path, title, kind, source, summary, body, created, ttl, valid_until
from cards where id = ?
"""


class Ranked(NamedTuple):
    """A card that was found, and how: `coverage` is the share of the terms that it holds, `share`
    that of what they are worth."""

    id: int
    score: float
    tier: str
    coverage: float
    superseded_by: str | None
    share: float = 1.0


class SQLiteSearcher:
    """A `Searcher` over an open connection to the index."""

    def __init__(self, connection: "sqlite3.Connection") -> None:
        self.connection = connection

    def search(
        self,
        query: str,
        *,
        limit: int = DEFAULT_LIMIT,
        filters: Filters = Filters(),
        superseded: bool = False,
    ) -> SearchResult:
        """See `Searcher.search`. Raises MemoryFault for a filter that cannot be understood."""
        limit = clamp(limit)
        terms = parse(query)
        where = filters.sql()
        found, left_out, cut_short, said = [], 0, False, None
        if are_keywords(terms) or may_be_name(terms) and self._is_name(query):
            found, left_out = self._exact(query, terms, where, limit, superseded)
        if terms and not found:
            scored, cut_short = self._scored(terms, where, limit)
            near = nearness(self.connection, query, where, [one.id for one in scored])
            if near.values:
                scored = self._blended(scored, near.values, terms)
            said = near.notice
            found, left_out = _shown(self._named_first(query, scored), limit, superseded)
        hits = tuple(self._hit(row, terms) for row in found)
        notice = _notice(query, terms, hits, left_out, cut_short)
        if said:
            notice = f"{notice} {said}" if notice else said
        if filters.as_of:
            then = f"The cards that held at {filters.as_of}, ranked by their present text."
            notice = f"{then} {notice}" if notice else then
        return SearchResult(query, first([hit.matched for hit in hits]), hits, notice)

    def _exact(
        self, query: str, terms: tuple[Term, ...], where: tuple[str, list], limit: int,
        superseded: bool,
    ) -> tuple[list[Ranked], int]:  # fmt: skip
        """The cards that hold every keyword, or else every keyword as a prefix; and how many
        superseded ones would be among them. Where some hold them as they were typed, those."""
        conditions, parameters = where
        statement = _EXACT.format(conditions=conditions)
        doubled = [term for term, weight in zip(terms, weights(terms)) if weight > 1]
        typed = pieces(query, are_together(terms))
        plain = are_keywords(terms) and are_plain(terms)
        for tier in ("all", "all-prefix"):
            # A term that weighs twice is asked twice.
            match = expression((*terms, *doubled), tier)
            wanted = max(limit, LOOKED_AT)
            while True:
                rows = self.connection.execute(statement, [match, *parameters, wanted]).fetchall()
                literal = self._holding([id for id, *_ in rows], typed)
                found = [
                    Ranked(id, value, tier, 1.0, by)
                    for id, value, by in rows
                    if id in literal or not literal and plain
                ]
                shown, left_out = _shown(self._named_first(query, found), limit, superseded)
                if len(shown) == limit or len(rows) < wanted:
                    break
                wanted *= 4
            if found:
                return shown, left_out
        return [], 0

    def _holding(self, ids: list[int], typed: tuple[tuple[str, ...], ...]) -> set[int]:
        """Those of the cards that hold the query as it was typed."""
        rows = self.connection.execute(_WHOLE, [json.dumps(ids)])
        return {id for id, text in rows if holds(folded(text), typed)}

    def _is_name(self, query: str) -> bool:
        """Whether a card has the query as its title or alias, or a link has it as its target."""
        return bool(self.connection.execute(_IS_NAME, [hashed_name(query)]).fetchone()[0])

    def _named_first(self, query: str, found: list[Ranked]) -> list[Ranked]:
        """The list with the cards first that have the query as their title or alias."""
        key = hashed_name(query)
        rows = self.connection.execute(_NAMED, [key, json.dumps([one.id for one in found])])
        named = {id for (id,) in rows}
        return sorted(found, key=lambda one: one.id not in named)

    def _scored(
        self, terms: tuple[Term, ...], where: tuple[str, list], limit: int
    ) -> tuple[list[Ranked], bool]:
        """The cards that answer best, by score; then, if they are few, those that hold terms only
        as prefixes. And whether time ran out."""
        recall = Recall(self.connection, *where)
        reaches = [recall.reach(term) for term in terms]
        found, cut_short = self._read(recall, terms, reaches)
        if len(found) < limit and not cut_short:
            longer = [
                recall.reach_prefix(term) if term.extensible else reach
                for term, reach in zip(terms, reaches)
            ]
            if longer != reaches:
                known = {one.id for one in found}
                more, cut_short = self._read(recall, terms, longer)
                found += [one for one in more if one.id not in known]
        return found, cut_short

    def _read(
        self, recall: Recall, terms: tuple[Term, ...], reaches: Sequence[Reach]
    ) -> tuple[list[Ranked], bool]:
        """The candidates with their scores, best first; and whether time ran out."""
        until = time.monotonic() + PATIENCE
        size = totals(self.connection)
        worth = worth_of(reaches, weights(terms), size.cards)
        ids = recall.candidates(reaches, worth)
        prefixes = [reach.prefix for reach in reaches]
        counter = TermCounter(terms, [n for n, prefix in enumerate(prefixes) if prefix])
        tokens = lengths(self.connection, ids)
        found = []
        rows = self.connection.execute(_TEXTS, [json.dumps(ids)])
        for number, (id, superseded_by, *texts, body, characters) in enumerate(rows):
            if number >= CANDIDATES // 10 and time.monotonic() > until:
                return _in_order(found), True
            if characters > READ:
                more = characters / READ
                pairs = zip(counter.count(*texts), counter.count(body))
                counts = [outside + inside * more for outside, inside in pairs]
            else:
                counts = counter.count(*texts, body)
            held = sum(map(bool, counts))
            if held:
                found.append(
                    Ranked(
                        id,
                        score(counts, worth, tokens.get(id, 0), size.average),
                        tier_of(counts, prefixes),
                        held / len(terms),
                        superseded_by,
                        share(counts, worth),
                    )
                )
        return _in_order(found), False

    def _blended(
        self, scored: list[Ranked], near: dict[int, float], terms: tuple[Term, ...]
    ) -> list[Ranked]:
        """The cards by words and vectors together, best first."""
        best = max((one.score for one in scored), default=0.0)
        part = scored[0].share if scored else 0.0
        known = {one.id for one in scored}
        found = scored + self._near_alone([id for id in near if id not in known], terms)
        return _in_order(
            [
                one._replace(score=blend(one.score, best, part, near.get(one.id, 0.0)))
                for one in found
            ]
        )

    def _near_alone(self, ids: list[int], terms: tuple[Term, ...]) -> list[Ranked]:
        """The cards that only their vectors have found, with what they hold of the terms."""
        counter = TermCounter(terms, [])
        found = []
        for id, superseded_by, *texts, _ in self.connection.execute(_TEXTS, [json.dumps(ids)]):
            counts = counter.count(*texts)
            held = sum(map(bool, counts))
            tier = tier_of(counts, [False] * len(terms)) if held else VECTOR
            found.append(Ranked(id, 0.0, tier, held / len(terms), superseded_by))
        return found

    def _hit(self, ranked: Ranked, terms: tuple[Term, ...]) -> Hit:
        row = self.connection.execute(_CARD, [ranked.id]).fetchone()
        ref, path, title, kind, source, summary, body, created, ttl, valid_until = row
        in_body = find(body, terms)
        in_summary = find(summary, terms) if not in_body else []
        shown = cut(summary, in_summary) if in_summary else cut(body, in_body)
        if not shown.text:
            shown = snippet(title, terms) if not summary else Snippet(summary)
        return Hit(
            id=ranked.id,
            ref=ref,
            path=path,
            title=title,
            kind=kind,
            source=source,
            score=ranked.score,
            matched=ranked.tier,
            coverage=ranked.coverage,
            snippet=shown.text,
            highlights=shown.highlights,
            expired=is_expired(created, ttl, valid_until),
            superseded_by=ranked.superseded_by,
        )


def _shown(found: list[Ranked], limit: int, superseded: bool) -> tuple[list[Ranked], int]:
    """The first of them, and how many superseded ones would be among these."""
    shown: list[Ranked] = []
    left_out = 0
    for one in found:
        if len(shown) == limit:
            break
        if one.superseded_by is None or superseded:
            shown.append(one)
        else:
            left_out += 1
    return shown, left_out


def _in_order(found: list[Ranked]) -> list[Ranked]:
    return sorted(found, key=lambda one: (-one.score, one.id))


def is_expired(
    created: str | None, ttl: int | None, valid_until: str | None, now: datetime | None = None
) -> bool:
    """Whether the time of a card has passed: its `valid_until`, or `ttl` days from `created`.

    A date without a time lasts to its end. A date that is none never passes.
    """
    now = now or datetime.now(timezone.utc)
    if valid_until and (end := _moment(valid_until)):
        days = 1 if len(valid_until.strip()) <= 10 else 0
        if now.timestamp() >= end.timestamp() + days * 86400:
            return True
    if ttl is not None and created and (start := _moment(created)):
        return now.timestamp() >= start.timestamp() + ttl * 86400
    return False


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


def _notice(
    query: str, terms: tuple[Term, ...], hits: tuple[Hit, ...], left_out: int, cut_short: bool
) -> str | None:
    """What a reader has to know before trusting the hits, in sentences, or None."""
    sentences: list[str] = []
    if not terms:
        sentences.append("The query holds no letter or digit to search for.")
    loose = [hit for hit in hits if hit.matched.startswith("any")]
    if loose:
        low, high = (round(100 * f(hit.coverage for hit in loose)) for f in (min, max))
        share = f"{low} %" if low == high else f"{low} to {high} %"
        if len(loose) == len(hits):
            sentences.append(
                f"Low confidence: no card holds every term; these hold {share} of them. "
                "Names and identifiers find more than whole questions."
            )
        else:
            sentences.append(
                f"Low confidence in {len(loose)} of {len(hits)} hits: they hold only {share} of "
                "the terms."
            )
    if by_vector := sum(hit.matched == VECTOR for hit in hits):
        sentences.append(
            f"Low confidence in {by_vector} of {len(hits)} hits: they hold no term of the query, "
            "and are near it by their vectors alone."
        )
    if left_out:
        cards = "1 superseded card is" if left_out == 1 else f"{left_out} superseded cards are"
        sentences.append(f"{cards} left out.")
    if cut_short:
        sentences.append("The search took long and was cut: there may be better cards.")
    if len(terms) == MAX_TERMS or len(query) > MAX_CHARACTERS:
        sentences.append(f"The query is long: its first {len(terms)} different terms count.")
    return " ".join(sentences) or None
