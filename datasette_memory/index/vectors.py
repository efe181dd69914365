"""The vectors of the cards, in `cards.embedding`: 16-bit floats, NULL for a card that has none yet.

Whoever writes the row of a card sets its vector to NULL, so a vector is never that of an earlier
text. `meta` has `vector_model`, whose vectors they are, and `vector_state`, another word each time
vectors were added.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from .connection import transaction
from .embedder import Embedder, ModelFault, embed, installed
from .schema import get_meta, set_meta

if TYPE_CHECKING:
    import numpy

#: So many characters of a body count. Passages of long cards, each with a vector of its own, were
#: measured to find no more; see `bench/README.md`.
READ = 4_000

#: So many cards are one transaction.
BATCH = 64

MODEL, STATE = "vector_model", "vector_state"

# Else every search would read all cards to count those without.
_INDEX = "create index if not exists idx_cards_lacking on cards (id) where embedding is null"

_WANTING = f"""
select id, title, iif(summary_from_body, '', summary), substr(body, 1, {READ})
from cards where embedding is null and id > ? order by id limit {BATCH}
"""

# What was changed meanwhile waits for the next time.
_KEEP = f"""
update cards set embedding = ?1 where id = ?2 and title = ?3
and iif(summary_from_body, '', summary) = ?4 and substr(body, 1, {READ}) = ?5
"""


def fill(
    connection,
    embedder: Embedder | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[int, str | None]:
    """Give a vector to each card that has none, and to all when the model is another than before.

    Without an `embedder` it is the installed one, and without that nothing happens. `progress` is
    called with cards done and to do. Gives how many vectors were made, and what went wrong, if
    anything did. What was cut short goes on from there.
    """
    name = embedder.name if embedder else installed()
    if name is None:
        return 0, None
    same = get_meta(connection, MODEL) == name
    if same:
        count = count_lacking(connection)
    else:
        count = connection.execute("select count(*) from cards").fetchone()[0]
    if not count:
        return 0, None
    try:
        return _fill(connection, name, embedder, count, progress), None
    except ModelFault as fault:
        return 0, f"the model {name} fails, and cards are without vectors: {fault}"


def _fill(connection, name: str, embedder: Embedder | None, count: int, progress) -> int:
    if get_meta(connection, MODEL) != name:
        # First of all, so that a search never takes vectors of one model for those of another.
        with transaction(connection):
            connection.execute("update cards set embedding = null where embedding is not null")
            set_meta(connection, MODEL, name)
            set_meta(connection, STATE, os.urandom(8).hex())
    connection.execute(_INDEX)
    made = last = 0
    while rows := connection.execute(_WANTING, [last]).fetchall():
        last = rows[-1][0]
        texts = ["\n".join(filter(None, texts)) for _, *texts in rows]
        blobs = embed(texts, embedder).astype("float16")
        with transaction(connection):
            for row, blob in zip(rows, blobs):
                made += connection.execute(_KEEP, [blob.tobytes(), *row]).rowcount
            set_meta(connection, STATE, os.urandom(8).hex())
        if progress:
            progress(min(made, count), count)
    return made


def count_lacking(connection) -> int:
    """How many cards have no vector."""
    return connection.execute("select count(*) from cards where embedding is null").fetchone()[0]


def carry_over(old, new) -> None:
    """Take the vectors of one index along into another, for the files that are the same."""
    if not (model := get_meta(old, MODEL)):
        return
    rows = old.execute(
        "select cards.source, cards.path, files.sha256, embedding from cards "
        "join files on files.card_id = cards.id where embedding is not null"
    )
    with transaction(new):
        new.executemany(
            "update cards set embedding = ?4 where source = ?1 and path = ?2 and id = "
            "(select card_id from files where source = ?1 and path = ?2 and sha256 = ?3)",
            rows,
        )
        set_meta(new, MODEL, model)
        set_meta(new, STATE, os.urandom(8).hex())


def read(connection, dimensions: int) -> tuple[numpy.ndarray, numpy.ndarray]:
    """The row ids of all cards with a vector, in order, and their vectors, a 16-bit row each."""
    import numpy

    size = dimensions * 2
    count = connection.execute("select count(*) from cards").fetchone()[0]
    ids = numpy.empty(count, dtype=numpy.int64)
    matrix = numpy.empty((count, dimensions), dtype=numpy.float16)
    at = 0
    rows = connection.execute(
        "select id, embedding from cards where length(embedding) = ? order by id limit ?",
        [size, count],
    )
    for id, blob in rows:
        ids[at] = id
        matrix[at] = numpy.frombuffer(blob, dtype=numpy.float16)
        at += 1
    return ids[:at], matrix[:at]
