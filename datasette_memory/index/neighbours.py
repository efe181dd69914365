"""The cards on the other ends of a card's links."""

from dataclasses import dataclass

_LINKS = """
select 1, links.type, links.target, other.id, other.title
from links left join cards as other on other.id = links.target_id
where links.card_id = :id
union
select 0, links.type, null, other.id, other.title
from links join cards as other on other.id = links.card_id
where links.target_id = :id and links.card_id != :id
order by 1 desc, 2, 3, 4
"""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """One link of a card: `outgoing` with its `target` as written there, or incoming with None.

    `card_id` and `title` are those of the card at the other end, None when there is no such card.
    """

    outgoing: bool
    type: str
    target: str | None
    card_id: int | None
    title: str | None


def neighbours(connection, card_id: int) -> list[Neighbour]:
    """All links of the card with that row id, outgoing first; none for an unknown one."""
    rows = connection.execute(_LINKS, {"id": card_id})
    return [Neighbour(bool(row[0]), *row[1:]) for row in rows]
