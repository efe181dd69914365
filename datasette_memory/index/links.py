"""Which card a link means, and which cards are superseded.

Every name that a card answers to is kept, hashed, in the table `names`, and every name under
which a link looks for its target beside the link. So a change is worked out from the links that
it can touch, and gives what working out all of them would.
"""

import hashlib
import json
import posixpath
from collections.abc import Iterable

from ..vault.names import name_key

# How well a name fits, best first. A ref is what a relation is meant to hold; a path and a file
# name are what a wikilink holds; titles and aliases are what people write instead.
_REF, _PATH, _STEM, TITLE, _ALIAS = range(5)

_SUFFIXES = (".md", ".markdown", ".mdown", ".mkd")


def fold(name: str) -> str:
    """The form in which names are compared: without case and Unicode form, trimmed."""
    return name_key(name).strip()


def hashed_name(name: str) -> int:
    """A name as a number of 63 bits, for the table `names`."""
    digest = hashlib.blake2b(fold(name).encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def card_names(
    id: int, ref: str, path: str, title: str, aliases: Iterable[str]
) -> list[tuple[int, int, int]]:
    """The rows `(key, rank, card_id)` of `names` for a card: the best rank of each name."""
    root = posixpath.splitext(path)[0]
    ranks: dict[int, int] = {}
    for name, rank in (
        (ref, _REF),
        (path, _PATH),
        (root, _PATH),
        (posixpath.basename(path), _STEM),
        (posixpath.basename(root), _STEM),
        (title, TITLE),
        *((alias, _ALIAS) for alias in aliases),
    ):
        ranks.setdefault(hashed_name(name), rank)
    return [(key, rank, id) for key, rank in ranks.items()]


def link_keys(target: str, path: str) -> tuple[int, int | None]:
    """The names under which the target of a link in the card at `path` is looked for.

    A Markdown link is relative to its card, or to the root if it begins with a slash; a wikilink
    is relative to the root of its source. Where the two differ, the first is that of the card.
    """
    if target.startswith("/"):
        return hashed_name(target.lstrip("/")), None
    if "/" in target or target.casefold().endswith(_SUFFIXES):
        joined = posixpath.normpath(posixpath.join(posixpath.dirname(path), target.strip()))
        if fold(joined) != fold(target):
            return hashed_name(joined), hashed_name(target)
    return hashed_name(target), None


def resolve(connection) -> None:
    """Work out every link and every supersession anew. Runs in the caller's transaction."""
    _resolve(connection, connection.execute(_LINKS.format(where="1")).fetchall())


def resolve_around(connection, ids: Iterable[int], keys: Iterable[int]) -> None:
    """Work out the links that may have changed with the cards `ids`, and supersession.

    `keys` are the names that these cards answered to before, or answer to now.
    """
    ids, keys = json.dumps(list(ids)), json.dumps(list(keys))
    rows: dict[tuple, tuple] = {}
    for where, parameter in (
        ("links.card_id in (select value from json_each(?))", ids),
        ("links.target_id in (select value from json_each(?))", ids),
        ("links.key in (select value from json_each(?))", keys),
        ("links.other_key in (select value from json_each(?))", keys),
    ):
        for row in connection.execute(_LINKS.format(where=where), [parameter]):
            rows[row[:4]] = row
    _resolve(connection, list(rows.values()))


_LINKS = (
    "select links.card_id, links.type, links.target, links.origin, links.target_id, "
    "links.key, links.other_key, cards.source "
    "from links join cards on cards.id = links.card_id where {where}"
)

# Within one rank, a card of the same source; of those with the same ref the one that was created
# first, as for `read.find_cards`; then the first by source and path.
BEST = (
    "select names.card_id from names join cards on cards.id = names.card_id "
    "where names.key = ? order by names.rank, cards.source is not ?, "
    f"iif(names.rank = {_REF}, coalesce(julianday(cards.created), 1e9), 0), "
    "cards.source, cards.path limit 1"
)


def _resolve(connection, links: list[tuple]) -> None:
    known: dict[tuple, int | None] = {}

    def best(key: int | None, source: str) -> int | None:
        if key is None:
            return None
        if (key, source) not in known:
            row = connection.execute(BEST, (key, source)).fetchone()
            known[key, source] = row and row[0]
        return known[key, source]

    changes = []
    for card_id, type, target, origin, target_id, key, other_key, source in links:
        found = best(key, source) or best(other_key, source)
        if found != target_id:
            changes.append((found, card_id, type, target, origin))
    connection.executemany(
        "update links set target_id = ? "
        "where card_id = ? and type = ? and target = ? and origin = ?",
        changes,
    )
    connection.execute(_SUPERSEDED)


# A card says itself what replaced it, or the card that replaced it does.
_SUPERSEDED = """
with replaced (id, ref) as (
    select card_id, coalesce((select ref from cards where id = target_id), target)
    from links where type = 'superseded_by' and target_id is not card_id
    union all
    select links.target_id, cards.ref from links join cards on cards.id = links.card_id
    where links.type = 'supersedes' and links.target_id is not null
      and links.target_id is not links.card_id
),
latest (id, ref) as materialized (select id, max(ref) from replaced group by id)
update cards set superseded_by = (select ref from latest where latest.id = cards.id)
where id in (select id from latest union select id from cards where superseded_by is not null)
  and superseded_by is not (select ref from latest where latest.id = cards.id)
"""
