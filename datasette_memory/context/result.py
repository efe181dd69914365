"""What a question is given, and everything that was decided on the way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..search.candidate import named

if TYPE_CHECKING:
    from ..search.candidate import Candidate
    from ..search.trace import Trace
    from .firewall import Reason
    from .gate import Decision
    from .pack import Pack

#: A question is told back so far, in characters.
_QUESTION = 300


@dataclass(frozen=True, slots=True)
class Context:
    """The answer to `Memory.context`.

    `pack` is None where the gate is closed. `candidates` are the cards as they were ranked before
    the firewall. `cohort` names what was given, for feedback; None when nothing was, or nothing
    was recorded. `notice` says what has to be known of the search.
    """

    question: str
    decision: Decision
    budget: int
    pack: Pack | None = None
    cohort: str | None = None
    refused: Reason | None = None
    candidates: tuple[Candidate, ...] = ()
    notice: str | None = None
    trace: Trace | None = field(default=None, repr=False)

    @property
    def text(self) -> str:
        """What goes into a prompt; empty when nothing does."""
        return self.pack.text if self.pack else ""

    def why_nothing(self) -> str:
        """Why no card was given, though the gate is open and the set was not refused."""
        if self.pack and self.pack.left_out:
            return "every card that was found was left out."
        return "no card answers."

    def to_dict(self) -> dict[str, Any]:
        """The object that every surface returns; `explain` only where it was asked for."""
        items = self.pack.items if self.pack else ()
        left_out = self.pack.left_out if self.pack else ()
        told: dict[str, Any] = {
            "question": self.question[:_QUESTION],
            "open": self.decision.open,
            "reasons": list(self.decision.reasons),
            "anchors": list(self.decision.anchors),
            "cohort": self.cohort,
            "text": self.text,
            "tokens": self.pack.tokens if self.pack else 0,
            "budget": self.budget,
            "refused": self.refused
            and {"code": self.refused.code, "reason": self.refused.sentence},
            "items": [
                {
                    **_told(one.candidate),
                    "view": one.view,
                    "tokens": one.tokens,
                    "text": one.text,
                    "call": one.call,
                    "flags": list(one.flags),
                }
                for one in items
            ],
            "left_out": [
                {
                    **_told(one.candidate),
                    "code": one.reasons[0].code,
                    "reason": " ".join(reason.sentence for reason in one.reasons),
                }
                for one in left_out
            ],
            "candidates": [
                {
                    "ref": one.ref,
                    "source": one.source,
                    "path": one.path,
                    "rank": rank,
                    "score": round(one.score, 4),
                }
                for rank, one in enumerate(self.candidates, 1)
            ],
            "notice": self.notice,
        }
        if self.trace is not None:
            told["explain"] = self.trace.to_dict()
        return told


def _told(candidate: Candidate) -> dict[str, Any]:
    """What a card is named by, its title as it may be shown."""
    from .quote import masked

    return {**named(candidate), "title": masked(candidate.title)}
