"""Which cards of a source go by a name: what a new card has to be kept apart from."""

from .links import hashed_name
from .rows import secret_path


def cards_named(connection, source: str, name: str) -> list[tuple[int, str, str]]:
    """`(id, path, ref)` of the cards of `source` that have `name` as their ref, path, title, file
    name or alias; and hardly ever another, as names are hashed."""
    # The plus keeps SQLite from walking along all paths of the source.
    return connection.execute(
        "select cards.id, cards.path, cards.ref from names join cards on cards.id = names.card_id "
        "where names.key = ? and +cards.source = ? order by cards.path",
        (hashed_name(name), source),
    ).fetchall()


def is_named(connection, source: str, name: str) -> bool:
    """Whether there is such a card."""
    return bool(cards_named(connection, source, name))


def has_secret(connection, source: str) -> bool:
    """Whether the source has cards that the index knows nothing of but hashes."""
    # In the order of the primary key, so that asking costs nothing where there are none.
    row = connection.execute(
        "select 1 from files where source = ? and path >= 'sha256:' and path < 'sha256;' limit 1",
        (source,),
    ).fetchone()
    return row is not None


def is_secret(connection, source: str, path: str) -> bool:
    """Whether there is such a card at `path`."""
    row = connection.execute(
        "select 1 from files where source = ? and path = ?", (source, secret_path(source, path))
    ).fetchone()
    return row is not None


def link_origins(connection, id: int, type: str, target: str) -> set[str]:
    """Where a link of a card is written: `frontmatter`, `body`, `ledger`."""
    rows = connection.execute(
        "select origin from links where card_id = ? and type = ? and target = ?",
        (id, type, target),
    )
    return {origin for (origin,) in rows}
