"""What a session has been given already, and what a cohort was."""

import json

from ..ledger.cohort import Cohort, Given, parse_cohort
from ..ledger.events import cleaned
from .tail import Tail

_DATA = (
    "select t, id, kind, data from events "
    "where kind in ('inject', 'runtime') and session = ? order by t, id"
)
_COHORT = (
    "select t, surface, agent, session, host, line, data from events "
    "where kind in ('inject', 'feedback') and data ->> 'cohort' = ? and kind = 'inject' "
    "order by t, id limit 1"
)


def given_to(connection, tail: Tail, session: str) -> list[Given]:
    """The cards that a session was given, the oldest first; the same one several times, if it was.

    A runtime event that says `forgets` ends what was before: the session was shortened, and the
    model does not have it in front of it any more.
    """
    told = [
        (t, id, kind, json.loads(data))
        for t, id, kind, data in connection.execute(_DATA, [session])
    ]
    needle = json.dumps(session, ensure_ascii=False).encode("utf-8", "replace")
    told += [
        (event.t, event.id, event.kind, event.data)
        for event, *_ in tail.events("inject", "runtime", holding=lambda line: needle in line)
        if event.by["session"] == session
    ]
    found: list[Given] = []
    for _, _, kind, data in sorted(told, key=lambda one: one[:2]):
        if kind == "inject":
            found += (cohort := parse_cohort(data)) and cohort.cards or ()
        elif data.get("forgets") is True:
            found.clear()
    return found


class Told:
    """A cohort as the ledger tells of it: when (`t`), by whom, and in which line of which file."""

    __slots__ = ("cohort", "t", "by", "file", "line")

    def __init__(self, cohort: Cohort, t: str, by: dict, file: str, line: int) -> None:
        self.cohort, self.t, self.by, self.file, self.line = cohort, t, by, file, line


def find_cohort(connection, tail: Tail, id: str) -> Told | None:
    """The cohort with this id; None when no event tells of it."""
    id = cleaned(id)
    for t, surface, agent, session, file, line, data in connection.execute(_COHORT, [id]):
        if cohort := parse_cohort(json.loads(data)):
            by = {"surface": surface, "agent": agent, "session": session}
            return Told(cohort, t, by, file, line)
    needle = json.dumps(id, ensure_ascii=False).encode()
    for event, file, line in tail.events("inject", holding=lambda line: needle in line):
        cohort = parse_cohort(event.data)
        if cohort and cohort.id == id:
            return Told(cohort, event.t, event.by, file, line)
    return None
