"""The cards that a new session should know of, by section."""

from __future__ import annotations

from datetime import datetime

from ..index.read import storable
from ..text.tags import STALE_TAGS, fold_tag
from ..text.times import days_since, is_expired
from ..vault.kinds import DEFAULT_KIND, STALE_AFTER, by_name
from .candidate import Candidate
from .cards import load

HANDOFFS, SIGNALS, DECISIONS, TOP = "handoffs", "signals", "decisions", "top"

#: So many cards of a section are given at the most.
LIMIT = 10

#: Decisions are recent for so many days.
RECENT_DAYS = 90

# So many cards of a section are looked at.
_LOOKED_AT = 300

# Tags, as `fold_tag` gives them.
_DONE = frozenset(("done", "closed", "完成", "已完成"))

_BY_DATE = """
select id from cards where kind = ? and julianday(coalesce(updated, created)) >= julianday(?) - ?
and {conditions} order by priority desc, julianday(coalesce(updated, created)) desc, id limit ?
"""

_BY_USE = """
select cards.id from card_stats join cards on cards.id = card_stats.card_id
where card_stats.reads + card_stats.support > 0 and cards.kind not in ('handoff', 'signal')
and {conditions} order by card_stats.reads + card_stats.support desc, cards.id limit ?
"""


def sections(
    connection,
    *,
    now: datetime,
    project: str | None = None,
    private: bool = False,
    limit: int = LIMIT,
) -> list[tuple[str, list[Candidate]]]:
    """The open handoffs, the live signals, the recent decisions and the cards that are used most,
    the first of each first; `project` narrows all of them.

    A handoff or signal is out when two of its half-lives have passed since its update, or its tags
    say that it is done or stale. Superseded, secret and expired cards are out, and private ones
    unless asked for. Each candidate has the origin `brief`.
    """
    allowed = "'public', 'internal'" + (", 'private'" if private else "")
    conditions = f"superseded_by is null and sensitivity in ({allowed})"
    parameters: list[object] = []
    if project:
        conditions += " and project = ? collate nocase"
        parameters.append(storable(project))
    by_date = _BY_DATE.format(conditions=conditions)
    found: list[tuple[str, list[Candidate]]] = []
    for name, kind, days, ending in (
        (HANDOFFS, "handoff", None, _DONE | STALE_TAGS),
        (SIGNALS, "signal", None, _DONE | STALE_TAGS),
        (DECISIONS, "decision", RECENT_DAYS, frozenset()),
    ):
        if days is None:
            days = STALE_AFTER * _half_life(kind)
        asked = [kind, now.isoformat(), days, *parameters, _LOOKED_AT]
        cards = _held(_cards(connection, by_date, asked), now)
        living = [one for one in cards if ending.isdisjoint(map(fold_tag, one.tags))]
        found.append((name, living[:limit]))
    by_use = _BY_USE.format(conditions=conditions)
    used = _held(_cards(connection, by_use, [*parameters, _LOOKED_AT]), now)
    used.sort(key=lambda one: -use(one, now))
    found.append((TOP, used[:limit]))
    return found


def use(one: Candidate, now: datetime) -> float:
    """How much a card is in use: (reads + support) 0.5 ^ (days since the last read, or else the
    update, / half-life of its kind). The decay is that of the Agent Memory Hub document, "Decay"."""
    days = days_since(one.last_read or one.updated or one.created, now) or 0.0
    return (one.reads + one.support) * 0.5 ** (max(0.0, days) / _half_life(one.kind))


def _half_life(kind: str) -> int:
    found = by_name(kind) or by_name(DEFAULT_KIND)
    assert found
    return found.half_life_days


def _held(cards: list[Candidate], now: datetime) -> list[Candidate]:
    return [one for one in cards if not is_expired(one.created, one.ttl, one.valid_until, now)]


def _cards(connection, statement: str, parameters: list[object]) -> list[Candidate]:
    known = {"score": 0.0, "matched": "all", "origin": "brief"}
    return load(connection, {id: known for (id,) in connection.execute(statement, parameters)})
