"""The search over the SQLite index: four tiers of FTS5 statements, ranked by bm25."""

from datetime import datetime, timezone

from ..index.connection import sqlite3
from ..text.matches import find
from ..text.query import MAX_CHARACTERS, MAX_TERMS, Term, expressions, parse
from ..text.snippet import Snippet, cut, snippet
from .filters import Filters
from .hits import Hit, SearchResult
from .searcher import DEFAULT_LIMIT, clamp
from .tiers import Candidate, Ranked, fill

_FIRST = """
select cards_fts.rowid, -cards_fts.rank, cards.superseded_by
from cards_fts join cards on cards.id = cards_fts.rowid
where cards_fts match ? and {conditions} order by rank limit ?
"""

_CARD = """
select ref, path, title, kind, source, summary, keywords, aliases, tags, project, body, created,
    ttl, valid_until
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
        """See `Searcher.search`. Runs one statement for each tier that it needs.

        Raises MemoryFault for a filter that cannot be understood.
        """
        limit = clamp(limit)
        terms = parse(query)
        conditions, parameters = filters.sql()
        statement = _FIRST.format(conditions=conditions)

        def run(match: str, count: int) -> list[Candidate]:
            rows = self.connection.execute(statement, [match, *parameters, count])
            return [Candidate(*row) for row in rows]

        ranked, left_out = fill(expressions(terms), run, limit, superseded)
        hits = tuple(self._hit(row, terms) for row in ranked)
        tier = hits[0].matched if hits else None
        notice = _notice(query, terms, hits, left_out)
        if filters.as_of:
            then = f"The cards that held at {filters.as_of}, ranked by their present text."
            notice = f"{then} {notice}" if notice else then
        return SearchResult(query, tier, hits, notice)

    def _hit(self, ranked: Ranked, terms: tuple[Term, ...]) -> Hit:
        row = self.connection.execute(_CARD, [ranked.id]).fetchone()
        ref, path, title, kind, source, summary, *lists, body, created, ttl, valid_until = row
        in_body = find(body, terms)
        in_summary = find(summary, terms) if not in_body else []
        shown = cut(summary, in_summary) if in_summary else cut(body, in_body)
        if ranked.tier.startswith("all"):
            coverage = 1.0
        else:
            held = {match.term for match in in_body}
            for text in (title, summary, *(text for text in lists if text)):
                if len(held) == len(terms):
                    break
                held.update(match.term for match in find(text, terms))
            coverage = len(held) / len(terms)
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
            coverage=coverage,
            snippet=shown.text,
            highlights=shown.highlights,
            expired=is_expired(created, ttl, valid_until),
            superseded_by=ranked.superseded_by,
        )


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
    query: str, terms: tuple[Term, ...], hits: tuple[Hit, ...], left_out: int
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
                f"Low confidence from hit {len(hits) - len(loose) + 1} on: those hold only "
                f"{share} of the terms."
            )
    if left_out:
        cards = "1 superseded card is" if left_out == 1 else f"{left_out} superseded cards are"
        sentences.append(f"{cards} left out.")
    if len(terms) == MAX_TERMS or len(query) > MAX_CHARACTERS:
        sentences.append(f"The query is long: its first {len(terms)} different terms count.")
    return " ".join(sentences) or None
