"""What a search gives: hits, and what has to be said about them."""

from dataclasses import dataclass, field
from typing import Any

from ..text.snippet import Snippet


@dataclass(frozen=True, slots=True)
class Hit:
    """A card that was found. `snippet` is plain text, `highlights` are `(start, end)` in it.

    `score` is the negated bm25 of the tier's own statement: larger is better, and comparable
    within one tier only. `matched` is the tier that found the card. `coverage` is the share of
    the query's terms that it holds. `expired` says that its time has passed.
    """

    id: int
    ref: str
    path: str
    title: str
    kind: str
    source: str
    score: float
    matched: str
    coverage: float
    snippet: str
    highlights: tuple[tuple[int, int], ...]
    expired: bool = False
    superseded_by: str | None = None

    def html(self) -> str:
        """The snippet escaped for HTML, matches in `<b>`."""
        return Snippet(self.snippet, self.highlights).html()

    def to_dict(self) -> dict[str, object]:
        """The hit as every surface shows it."""
        return {
            "id": self.id,
            "ref": self.ref,
            "path": self.path,
            "title": self.title,
            "kind": self.kind,
            "source": self.source,
            "score": round(self.score, 4),
            "matched": self.matched,
            "coverage": round(self.coverage, 3),
            "snippet": self.snippet,
            "highlights": [list(span) for span in self.highlights],
            "expired": self.expired,
            "superseded_by": self.superseded_by,
        }


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The answer to a query; `tier` is the first tier that gave hits, or None. `explain` is the
    object of a `Trace`, where it was asked for."""

    query: str
    tier: str | None
    hits: tuple[Hit, ...]
    notice: str | None = None
    explain: dict[str, Any] | None = field(default=None, compare=False, repr=False)

    def to_dict(self) -> dict[str, object]:
        """The object that every surface returns."""
        told = {
            "query": self.query,
            "tier": self.tier,
            "count": len(self.hits),
            "hits": [hit.to_dict() for hit in self.hits],
            "notice": self.notice,
        }
        return told if self.explain is None else told | {"explain": self.explain}
