"""What a search engine behind the memory has to do."""

from typing import Protocol

from .filters import Filters
from .hits import SearchResult

#: How many hits there are unless told, and at the most.
DEFAULT_LIMIT = 5
MAX_LIMIT = 20


class Searcher(Protocol):
    """Finds cards. `sqlite.SQLiteSearcher` is the one that is always there.

    Tokens come from `text.tokenise` alone, so that every engine calls the same things equal. The
    contract is the set of hits and the tier of each; scores of two engines are not comparable.
    """

    def search(
        self,
        query: str,
        *,
        limit: int = DEFAULT_LIMIT,
        filters: Filters = Filters(),
        superseded: bool = False,
    ) -> SearchResult:
        """The best hits for `query`, best first; never raises for any query string."""
        ...


def clamp(limit: int) -> int:
    """`limit` within 1 and `MAX_LIMIT`, whatever a caller asks for."""
    return max(1, min(MAX_LIMIT, limit))
