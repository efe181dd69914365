"""`memory_search()` for a database that is known by its path."""

import contextlib
from pathlib import Path

from datasette_memory.errors import MemoryFault
from datasette_memory.index.connection import connect_read
from datasette_memory.search.functions import register


def search(path: str, *arguments: object) -> str:
    """The value of `memory_search(*arguments)` in the index at `path`.

    Raises ValueError, with a line for the user, when there is no index.
    """
    if not path:
        raise ValueError("this database holds no memory index")
    try:
        with contextlib.closing(connect_read(Path(path))) as connection:
            register(connection)
            marks = ", ".join("?" * len(arguments))
            sql = f"select memory_search({marks})"
            return connection.execute(sql, arguments).fetchone()[0]
    except MemoryFault as fault:
        raise ValueError(str(fault)) from fault
