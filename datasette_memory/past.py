"""How things were on an earlier day: from the ledger, which knows when, and the evidence, which
knows what. A change that somebody made with an editor is in neither."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta, timezone
from pathlib import Path

from .errors import MemoryFault
from .evidence.store import EvidenceStore
from .ledger.reader import merge
from .sources import VAULT


def parse_day(text: str) -> datetime:
    """The moment that a date means: its end, in the zone of this machine; or the time stated.

    Raises MemoryFault when it is no date.
    """
    text = text.strip()
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise MemoryFault(
            f"{text!r} is no date", "write 2026-09-30, or 2026-09-30T08:00+08:00"
        ) from None
    if len(text) <= 10:
        moment = datetime.combine(moment.date(), time.min) + timedelta(days=1, microseconds=-1)
    return moment if moment.tzinfo else moment.astimezone()


def event_time(moment: datetime) -> str:
    """A moment as events have it: UTC with milliseconds."""
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


@dataclass(frozen=True, slots=True)
class Past:
    """What the vault held at `moment`, where it differs from now; cards by their ref.

    `texts` are hashes into the evidence; `later` are cards that were not there yet.
    """

    moment: datetime
    texts: dict[str, str] = field(default_factory=dict)
    later: frozenset[str] = frozenset()

    def text(self, ref: str, evidence: EvidenceStore) -> str | None:
        """The whole file of the card as it was, or None when it is as it was."""
        sha256 = self.texts.get(ref)
        return evidence.get(sha256) if sha256 else None

    def was_there(self, card: Mapping[str, object]) -> bool:
        """Whether the card existed, by the ledger, or else by its own `created`."""
        if card["ref"] in self.later:
            return False
        created = str(card["created"] or "")
        try:
            moment = datetime.fromisoformat(created)
        except ValueError:
            return True
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=timezone.utc)
        return moment <= self.moment


def look_back(ledger: Path, moment: datetime) -> Past:
    """What was different at `moment`."""
    stamp = event_time(moment)
    texts: dict[str, str] = {}
    later: set[str] = set()
    for event, _ in merge(ledger):
        if event.t <= stamp or event.source != VAULT or not event.ref:
            continue
        if event.kind == "created":
            later.add(event.ref)
        elif "before" in event.data:
            texts.setdefault(event.ref, str(event.data["before"]))
    return Past(moment, texts, frozenset(later))
