"""`memory_search()` in SQL, beside the functions over text."""

import json

from ..errors import MemoryFault
from ..index.functions import as_text
from ..index.functions import register as register_text_functions
from ..index.schema import is_memory
from .searcher import MAX_LIMIT
from .sqlite import SQLiteSearcher


def register(connection) -> None:
    """Give `connection` every SQL function of the project.

    `memory_search(query, limit)` gives the hits as JSON for `json_each()`, best first; each has
    `html`, the snippet escaped for HTML with the matches in `<b>`.
    """
    register_text_functions(connection)

    def memory_search(query, limit=MAX_LIMIT) -> str:
        if not is_memory(connection):
            raise ValueError("this database holds no memory index")
        try:
            limit = MAX_LIMIT if limit in (None, "") else int(limit)
            result = SQLiteSearcher(connection).search(as_text(query), limit=limit)
        except (MemoryFault, ValueError, OverflowError) as error:
            raise ValueError(str(error)) from error
        hits = [hit.to_dict() | {"html": hit.html()} for hit in result.hits]
        return json.dumps(hits, ensure_ascii=False)

    connection.create_function("memory_search", 1, memory_search)
    connection.create_function("memory_search", 2, memory_search)
