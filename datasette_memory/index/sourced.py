"""Which cards have the event of their capture: it says where they come from."""

import json
from collections.abc import Iterable

from .tail import Tail, may_name

Card = tuple[int, str, str, str]
"""Row id, source, path and ref."""

_CREATED = """
select wanted.value ->> 0 from json_each(?) as wanted where exists (
    select 1 from events where kind = 'created'
    and source = wanted.value ->> 1 and path = wanted.value ->> 2
) or exists (
    select 1 from events where ref = wanted.value ->> 3
    and +kind = 'created' and +source = wanted.value ->> 1
)
"""


def sourced(connection, tail: Tail, cards: Iterable[Card]) -> set[int]:
    """The ids of those cards that a `created` event tells of, by place or, once moved, by ref."""
    cards = list(cards)
    if not cards:
        return set()
    found = {id for (id,) in connection.execute(_CREATED, [json.dumps(cards)])}
    wanted: dict[tuple[str | None, str | None], list[int]] = {}
    for id, source, path, ref in cards:
        if id not in found:
            wanted.setdefault((source, path), []).append(id)
            wanted.setdefault((source, ref), []).append(id)
    if wanted:
        names = {
            json.dumps(name, ensure_ascii=False).encode("utf-8", "replace") for _, name in wanted
        }
        for event, *_ in tail.events("created", holding=lambda line: may_name(line, names)):
            for name in (event.path, event.ref):
                found.update(wanted.get((event.source, name), ()))
    return found
