"""The search over the SQLite index.

Keywords, and what a card is called, are answered by the cards that hold all of it, and by nothing
else: FTS5 ranks those. A question, and keywords that no card holds together, are answered by the
cards that hold most of what is rare in them: `recall` finds them, `scoring` puts them in order,
`tiers` says what each is.
"""

import json
import time
from collections.abc import Sequence

from ..index.connection import sqlite3
from ..index.links import TITLE, hashed_name
from ..index.schema import FTS_COLUMNS
from ..text.count import TermCounter
from ..text.importance import are_keywords, are_plain, are_together, may_be_name, weights
from ..text.literal import folded, holds, pieces
from ..text.matches import find
from ..text.query import Term, expression, parse
from ..text.snippet import Snippet, cut, snippet
from ..text.times import is_expired
from . import cards
from .filters import Filters
from .hits import Hit, SearchResult
from .notice import notice_of
from .ranked import Found, Ranked, in_order, named_first, ranks, without_superseded
from .recall import CANDIDATES, Reach, Recall, worth_of
from .recalled import Recalled
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

#: So many cards that hold keywords are put in order at the most.
WHOLE = 10_000

#: So many candidates ranking has to choose from.
POOL = 30

# Words are asked as prefixes when there are fewer cards than this without, however many are wanted.
_FEW = 10

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
        found = self._find(query, terms, filters, limit, superseded, limit)
        hits = tuple(self._hit(row, terms) for row in found.cards)
        notice = notice_of(query, terms, hits, found)
        if filters.as_of:
            then = f"The cards that held at {filters.as_of}, ranked by their present text."
            notice = f"{then} {notice}" if notice else then
        return SearchResult(query, first([hit.matched for hit in hits]), hits, notice)

    def candidates(
        self,
        query: str,
        filters: Filters = Filters(),
        limit: int = POOL,
        superseded: bool = False,
        few: int = _FEW,
    ) -> Recalled:
        """The cards that `search` would give, in its order, as ranking, firewall and pack need
        them; up to `limit`, of those that hold keywords up to LOOKED_AT. Words are asked as
        prefixes too where there are fewer than `few`, which is the limit in `search`. Raises
        MemoryFault for a filter that cannot be understood.

        A score is that of the search, but never above that of a card that stands before: a card
        that is called as the query has the best one, and one that holds words only as their
        beginnings none that is better than that of a card that holds the words.
        """
        terms = parse(query)
        found = self._find(query, terms, filters, limit, superseded, min(limit, few))
        worth = found.worth or self.worth(terms)
        shown = {one.id for one in found.cards}
        lexical = ranks(id for id in found.by_words if id in shown)
        nearest = sorted(found.near, key=lambda id: -found.near[id])
        vector = ranks(id for id in nearest if id in shown and found.near[id])
        known = {}
        best = max((one.score for one in found.cards), default=0.0)
        least = best
        for one in found.cards:
            least = best if one.id in found.named else min(least, one.score)
            known[one.id] = {
                "score": least,
                "matched": one.tier,
                "coverage": one.coverage,
                "held": one.held or (True,) * len(terms),
                "lexical_rank": lexical.get(one.id),
                "vector_rank": vector.get(one.id),
            }
        notice = notice_of(query, terms, (), found)
        loaded = cards.load(self.connection, known)
        return Recalled(query, loaded, terms, worth, notice, found.left_out)

    def ranking(self, query: str, filters: Filters = Filters(), few: int = _FEW) -> Found:
        """All cards that a search ranks, superseded ones too, best first; `few` as of `candidates`.
        For keywords the first `WHOLE`."""
        return self._find(query, parse(query), filters, WHOLE, True, few)

    def alone(self, query: str, id: int) -> Ranked | None:
        """A card as a question would rank it if it read this one; None if it holds no term."""
        terms = parse(query)
        recall = Recall(self.connection, "1", [])
        reaches = [recall.reach(term) for term in terms]
        found, *_ = self._read(recall, terms, reaches, [id])
        return found[0] if found else None

    def _find(
        self, query: str, terms: tuple[Term, ...], filters: Filters, limit: int, superseded: bool,
        few: int,
    ) -> Found:  # fmt: skip
        """The answer to a query; with fewer than `few` cards words are asked as prefixes too."""
        where = filters.sql()
        if filters.nothing_allowed() or not terms:
            return Found([])
        if where[0] != "1" and not self._any(where):
            return Found([], said="No card meets the conditions.")
        if are_keywords(terms) or may_be_name(terms) and self._is_name(query):
            found = self._exact(query, terms, where, limit, superseded, few)
            if found.cards:
                return found
        scored, cut_short, worth = self._scored(terms, where, few)
        near = nearness(self.connection, query, where, [one.id for one in scored])
        named = self._named(query, scored)
        ranked = named_first(scored, named)
        by_words = [one.id for one in ranked]
        if near.values:
            blended = self._blended(scored, near.values, terms)
            named = self._named(query, blended)
            ranked = named_first(blended, named)
        shown, left_out = without_superseded(ranked, limit, superseded)
        return Found(shown, left_out, cut_short, near.notice, by_words, near.values, named, worth)

    def _any(self, where: tuple[str, list]) -> bool:
        """Whether there is a card at all that meets the conditions."""
        sql = f"select exists (select 1 from cards where {where[0]})"
        return bool(self.connection.execute(sql, where[1]).fetchone()[0])

    def worth(self, terms: tuple[Term, ...]) -> tuple[float, ...]:
        """What each term is worth in this index."""
        recall = Recall(self.connection, "1", [])
        reaches = [recall.reach(term) for term in terms]
        return tuple(worth_of(reaches, weights(terms), totals(self.connection).cards))

    def _exact(
        self, query: str, terms: tuple[Term, ...], where: tuple[str, list], limit: int,
        superseded: bool, few: int,
    ) -> Found:  # fmt: skip
        """The cards that hold every keyword, or else every keyword as a prefix. Where some hold
        them as they were typed, those. `few` are enough, and at the most there are `limit`."""
        conditions, parameters = where
        statement = _EXACT.format(conditions=conditions)
        doubled = [term for term, weight in zip(terms, weights(terms)) if weight > 1]
        typed = pieces(query, are_together(terms))
        plain = are_keywords(terms) and are_plain(terms)
        for tier in ("all", "all-prefix"):
            # A term that weighs twice is asked twice.
            match = expression((*terms, *doubled), tier)
            wanted = max(few, LOOKED_AT)
            while True:
                rows = self.connection.execute(statement, [match, *parameters, wanted]).fetchall()
                literal = self._holding([id for id, *_ in rows], typed)
                found = [
                    Ranked(id, value, tier, 1.0, by)
                    for id, value, by in rows
                    if id in literal or not literal and plain
                ]
                named = self._named(query, found)
                ranked = named_first(found, named)
                shown, left_out = without_superseded(ranked, limit, superseded)
                if len(shown) >= few or len(rows) < wanted:
                    break
                wanted *= 4
            if found:
                return Found(shown, left_out, by_words=[one.id for one in ranked], named=named)
        return Found([])

    def _holding(self, ids: list[int], typed: tuple[tuple[str, ...], ...]) -> set[int]:
        """Those of the cards that hold the query as it was typed."""
        rows = self.connection.execute(_WHOLE, [json.dumps(ids)])
        return {id for id, text in rows if holds(folded(text), typed)}

    def _is_name(self, query: str) -> bool:
        """Whether a card has the query as its title or alias, or a link has it as its target."""
        return bool(self.connection.execute(_IS_NAME, [hashed_name(query)]).fetchone()[0])

    def _named(self, query: str, found: list[Ranked]) -> frozenset[int]:
        """Those of the cards that have the query as their title or alias."""
        key = hashed_name(query)
        rows = self.connection.execute(_NAMED, [key, json.dumps([one.id for one in found])])
        return frozenset(id for (id,) in rows)

    def _scored(
        self, terms: tuple[Term, ...], where: tuple[str, list], few: int
    ) -> tuple[list[Ranked], bool, tuple[float, ...]]:
        """The cards that answer best, by score; then, if they are few, those that hold terms only
        as prefixes. Whether time ran out; and what each term is worth."""
        recall = Recall(self.connection, *where)
        reaches = [recall.reach(term) for term in terms]
        found, cut_short, worth = self._read(recall, terms, reaches)
        if len(found) < few and not cut_short:
            longer = [
                recall.reach_prefix(term) if term.extensible else reach
                for term, reach in zip(terms, reaches)
            ]
            if longer != reaches:
                known = {one.id for one in found}
                more, cut_short, _ = self._read(recall, terms, longer)
                found += [one for one in more if one.id not in known]
        return found, cut_short, worth

    def _read(
        self, recall: Recall, terms: tuple[Term, ...], reaches: Sequence[Reach],
        ids: Sequence[int] | None = None,
    ) -> tuple[list[Ranked], bool, tuple[float, ...]]:  # fmt: skip
        """The candidates, or the cards `ids`, with their scores, best first; whether time ran out; what each term is
        worth."""
        until = time.monotonic() + PATIENCE
        size = totals(self.connection)
        worth = tuple(worth_of(reaches, weights(terms), size.cards))
        ids = recall.candidates(reaches, worth) if ids is None else ids
        prefixes = [reach.prefix for reach in reaches]
        counter = TermCounter(terms, [n for n, prefix in enumerate(prefixes) if prefix])
        tokens = lengths(self.connection, ids)
        found = []
        rows = self.connection.execute(_TEXTS, [json.dumps(ids)])
        for number, (id, superseded_by, *texts, body, characters) in enumerate(rows):
            if number >= CANDIDATES // 10 and time.monotonic() > until:
                return in_order(found), True, worth
            if characters > READ:
                more = characters / READ
                pairs = zip(counter.count(*texts), counter.count(body))
                counts = [outside + inside * more for outside, inside in pairs]
            else:
                counts = counter.count(*texts, body)
            held = tuple(map(bool, counts))
            if any(held):
                found.append(
                    Ranked(
                        id,
                        score(counts, worth, tokens.get(id, 0), size.average),
                        tier_of(counts, prefixes),
                        sum(held) / len(terms),
                        superseded_by,
                        share(counts, worth),
                        held,
                    )
                )
        return in_order(found), False, worth

    def _blended(
        self, scored: list[Ranked], near: dict[int, float], terms: tuple[Term, ...]
    ) -> list[Ranked]:
        """The cards by words and vectors together, best first."""
        best = max((one.score for one in scored), default=0.0)
        part = scored[0].share if scored else 0.0
        known = {one.id for one in scored}
        found = scored + self._near_alone([id for id in near if id not in known], terms)
        return in_order(
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
            held = tuple(map(bool, counts))
            tier = tier_of(counts, [False] * len(terms)) if any(held) else VECTOR
            found.append(Ranked(id, 0.0, tier, sum(held) / len(terms), superseded_by, held=held))
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
