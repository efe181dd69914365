"""A card that may answer a question, with all that ranking, firewall and pack have to know of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

#: So much of a text is held; the rest is read when somebody asks for it.
MAX_BODY = 20_000


@dataclass(frozen=True, slots=True)
class Candidate:
    """What was found, and what is known about it.

    `score` is that of the last stage that changed it. `matched` is the tier, `coverage` the share
    of the terms that it holds, `held` says which. `lexical_rank` and `vector_rank` count from 1;
    None where the card was not on that list. `body` is cut at MAX_BODY characters, `length` is
    that of the whole. `origin` says how it came in: `recall`, or the stage that added it.
    """

    id: int
    ref: str
    path: str
    source: str
    title: str
    kind: str
    score: float
    matched: str = "any"
    coverage: float = 0.0
    held: tuple[bool, ...] = ()
    lexical_rank: int | None = None
    vector_rank: int | None = None
    origin: str = "recall"
    # The card.
    project: str | None = None
    tags: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    summary: str = ""
    body: str = ""
    length: int = 0
    created: str | None = None
    updated: str | None = None
    valid_from: str | None = None
    valid_until: str | None = None
    ttl: int | None = None
    priority: int = 0
    confidence: float = 0.7
    sensitivity: str = "internal"
    superseded_by: str | None = None
    version: int = 1
    refs: Mapping[str, object] = field(default_factory=dict)
    # Its use: `gain` is within -1 and 1.
    reads: int = 0
    last_read: str | None = None
    support: int = 0
    contradict: int = 0
    gain: float = 0.0


def named(candidate: Candidate) -> dict[str, object]:
    """What a surface names a card by."""
    return {
        name: getattr(candidate, name) for name in ("ref", "id", "source", "path", "title", "kind")
    }
