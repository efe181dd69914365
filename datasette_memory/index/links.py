"""Which card a link means, and which cards are superseded: worked out anew after every change."""

import json
import posixpath
import unicodedata

# How well a name fits, best first. A ref is what a relation is meant to hold; a path and a file
# name are what a wikilink holds; titles and aliases are what people write instead.
_REF, _PATH, _STEM, _TITLE, _ALIAS = range(5)


def resolve(connection) -> None:
    """Set `links.target_id` and `cards.superseded_by` from what the index holds now.

    A link means the card whose ref, path, file name, title or alias it names, in this order;
    within one order, a card of the same source, then the first by path. Runs inside the
    caller's transaction.
    """
    if not connection.execute("select exists (select 1 from links)").fetchone()[0]:
        connection.execute(
            "update cards set superseded_by = null where superseded_by is not null"
        )
        return
    links = connection.execute(
        "select links.card_id, links.type, links.target, links.origin, links.target_id, "
        "cards.source, cards.path from links join cards on cards.id = links.card_id"
    ).fetchall()
    wanted = {name for link in links for name in _names(link[2], link[6])}
    candidates = _candidates(connection, wanted)
    changes = []
    for card_id, type, target, origin, target_id, source, path in links:
        found = _best(candidates, _names(target, path), source)
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
latest (id, ref) as (select id, max(ref) from replaced group by id)
update cards set superseded_by = (select ref from latest where latest.id = cards.id)
where superseded_by is not (select ref from latest where latest.id = cards.id)
"""


def _names(target: str, path: str) -> list[str]:
    """The forms under which the target of a link in the card at `path` is looked for."""
    name = _fold(target)
    names = [name]
    if "/" in name or name.endswith(_SUFFIXES):
        # A Markdown link is relative to its card, a wikilink to the source's root.
        joined = posixpath.normpath(posixpath.join(posixpath.dirname(_fold(path)), name))
        names = [joined, name] if joined != name else names
    return names


_SUFFIXES = (".md", ".markdown", ".mdown", ".mkd")


def _candidates(connection, wanted: set[str]) -> dict[str, list[tuple[int, str, str, int]]]:
    """For each wanted name the cards that answer to it, as `(order, source, path, id)`."""
    found: dict[str, list[tuple[int, str, str, int]]] = {}
    for id, ref, source, path, title, aliases in connection.execute(
        "select id, ref, source, path, title, aliases from cards"
    ):
        folded = _fold(path)
        root = posixpath.splitext(folded)[0]
        answers = {
            _fold(title): _TITLE,
            posixpath.basename(root): _STEM,
            posixpath.basename(folded): _STEM,
            root: _PATH,
            folded: _PATH,
            _fold(ref): _REF,
        }
        if aliases != "[]":
            for alias in json.loads(aliases):
                answers.setdefault(_fold(alias), _ALIAS)
        for name in answers.keys() & wanted:
            found.setdefault(name, []).append((answers[name], source, path, id))
    return found


def _best(candidates, names: list[str], source: str) -> int | None:
    for name in names:
        cards = candidates.get(name)
        if cards:
            return min(cards, key=lambda card: (card[0], card[1] != source, card[2]))[3]
    return None


def _fold(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold().strip()
