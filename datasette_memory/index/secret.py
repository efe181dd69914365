"""The cards that are kept out of the index, in an index of their own that lives in memory."""

import contextlib
from collections.abc import Iterable

from ..errors import MemoryFault
from ..vault.card import parse_card
from ..vault.sources import Source, read, scan
from .connection import sqlite3
from .migrations import migrate
from .rows import INSERT_LINK, card_row, link_rows, secret_path, tag_rows, upsert_sql


def secret_index(connection, sources: Iterable[Source]) -> "sqlite3.Connection":
    """A database in memory, with the schema of the index, of the secret cards of `sources`.

    `connection` is the index: it knows, hashed, which files to read. Row ids are negative there,
    so that nobody takes one for a row of the index.
    """
    memory = sqlite3.connect(":memory:", isolation_level=None)
    migrate(memory)
    id = 0
    for source in sources:
        hashed = {
            path
            for (path,) in connection.execute(
                "select path from files where source = ? and card_id is null "
                "and sha256 is not null",
                [source.name],
            )
        }
        with contextlib.suppress(MemoryFault):
            for file in scan(source)[0] if hashed else ():
                if secret_path(source.name, file.path) not in hashed:
                    continue
                with contextlib.suppress(OSError):
                    card = parse_card(read(file, source), file.path)
                    id -= 1
                    row = card_row(card, id, source.name, file.path, file.mtime_ns)
                    memory.execute(upsert_sql(row), row)
                    memory.executemany("insert into tags values (?, ?)", tag_rows(card, id))
                    memory.executemany(INSERT_LINK, link_rows(card, id, file.path))
                    memory.execute(
                        "update cards set superseded_by = ? where id = ?", (card.superseded_by, id)
                    )
    return memory
