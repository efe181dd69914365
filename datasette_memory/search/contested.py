"""Which cards another card contradicts."""

import json
from collections.abc import Iterable

# Both ends of the link are in doubt, until one of them is superseded.
_CONTESTED = """
select links.card_id, links.target_id from links
join cards as one on one.id = links.card_id
join cards as other on other.id = links.target_id
where links.type in ('contradicts', 'contradicted_by') and links.card_id is not links.target_id
and one.superseded_by is null and other.superseded_by is null
and {end} in (select value from json_each(?))
"""


def contested(connection, ids: Iterable[int]) -> set[int]:
    """Those of the cards `ids` that contradict another card or are contradicted by one, by a relation
    `contradicts` or `contradicted_by` of either; superseded cards settle nothing and count for none.
    """
    asked = set(ids)
    wanted = json.dumps(sorted(asked))
    found: set[int] = set()
    for end in ("links.card_id", "links.target_id"):
        for pair in connection.execute(_CONTESTED.format(end=end), [wanted]):
            found.update(pair)
    return found & asked
