"""What every stage did to every card: its score, its place, and why it is in or out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .candidate import Candidate
    from .lookup import Lookup
    from .question import Question
    from .stages import Stage

INCLUDED, DEMOTED, EXCLUDED = "included", "demoted", "excluded"


class Removed(NamedTuple):
    """A card that a stage took out, and why."""

    candidate: Candidate
    stage: str
    reason: str


class Trace:
    """Keeps the lists between the stages; what is told of them is worked out when it is asked for.

    `judge` adds what came after the stages: firewall and pack.
    """

    def __init__(
        self, question: Question, candidates: Sequence[Candidate], lookup: Lookup | None = None
    ) -> None:
        self.question = question
        self._first = list(candidates)
        self._lookup = lookup
        self._steps: list[tuple[Stage, Sequence[Candidate], Sequence[Candidate]]] = []
        self._verdicts: dict[int, tuple[str, str]] = {}

    def add(self, stage: Stage, before: Sequence[Candidate], after: Sequence[Candidate]) -> None:
        """Note what a stage was given and what it gave."""
        self._steps.append((stage, before, after))

    def judge(self, id: int, outcome: str, reason: str = "") -> None:
        """Note what became of a card in the end: included, demoted or excluded, and why."""
        self._verdicts[id] = outcome, reason

    def removed(self) -> list[Removed]:
        """The cards that stages took out, in their order."""
        found = []
        for stage, before, after in self._steps:
            left = {one.id for one in after}
            for one in before:
                if one.id not in left:
                    found.append(Removed(one, stage.name, self._why(stage, one)))
        return found

    def _why(self, stage: Stage, one: Candidate) -> str:
        if stage.reason is None:
            return ""
        if stage.looks_up:
            return stage.reason(one, self.question, self._lookup) or ""
        return stage.reason(one, self.question) or ""

    def to_dict(self) -> dict[str, Any]:
        """`{terms, stages, candidates}`: the terms with what each is worth, the table of stages,
        and for each card its ranks and what each stage did to it, in the order of the end."""
        from .stages import STAGES

        ran = {stage.name for stage, *_ in self._steps}
        return {
            "terms": [
                {"term": term.name, "worth": round(worth, 4)}
                for term, worth in zip(self.question.terms, self.question.worth)
            ],
            "stages": [
                {"name": stage.name, "on": stage.name in ran, "why": stage.why} for stage in STAGES
            ],
            "candidates": self._rows(),
        }

    def _rows(self) -> list[dict[str, Any]]:
        removed = {one.candidate.id: one for one in self.removed()}
        last = self._steps[-1][2] if self._steps else self._first
        cards: dict[int, Candidate] = {one.id: one for one in self._first}
        for _, _, after in self._steps:
            for one in after:
                cards.setdefault(one.id, one)
        places = [(stage, _places(before), _places(after)) for stage, before, after in self._steps]
        first, final = _places(self._first), _places(last)
        end = [one.id for one in last] + list(removed)
        rows = []
        for id in dict.fromkeys(end):
            one = cards[id]
            place = first.get(id)
            stages = []
            for stage, before, after in places:
                if id not in before and id not in after:
                    continue
                was, now = before.get(id), after.get(id)
                note = self._why(stage, one) if now is None else ""
                if now is not None and stage.note and was is not None:
                    note = stage.note(one, self.question)
                stages.append(
                    {
                        "name": stage.name,
                        "score_before": was and round(was[1], 6),
                        "score": now and round(now[1], 6),
                        "place_before": was and was[0],
                        "place": now and now[0],
                        "note": note,
                    }
                )
            rows.append(
                {
                    "id": id,
                    "ref": one.ref,
                    "title": one.title,
                    "source": one.source,
                    "path": one.path,
                    "kind": one.kind,
                    "origin": one.origin,
                    "matched": one.matched if one.origin == "recall" else None,
                    "coverage": round(one.coverage, 3),
                    "held": list(one.held),
                    "lexical_rank": one.lexical_rank,
                    "vector_rank": one.vector_rank,
                    "score": place and round(place[1], 6),
                    "place": place and place[0],
                    "stages": stages,
                    "final_score": round(final[id][1], 6) if id in final else None,
                    "final_place": final[id][0] if id in final else None,
                    **self._outcome(id, removed.get(id)),
                }
            )
        return rows

    def _outcome(self, id: int, removed: Removed | None) -> dict[str, str]:
        if removed:
            return {"outcome": EXCLUDED, "reason": f"{removed.stage}: {removed.reason}"}
        outcome, reason = self._verdicts.get(id, (INCLUDED, ""))
        return {"outcome": outcome, "reason": reason}

    def table(self) -> str:
        """The same for people, a line a card: score by score, and what became of it."""
        return table(self.to_dict())


def _places(hits: Sequence[Candidate]) -> dict[int, tuple[int, float]]:
    """Place, from 1, and score of each."""
    return {one.id: (place, one.score) for place, one in enumerate(hits, 1)}


# So much of a title is shown, in columns.
_TITLE = 28


def table(told: dict[str, Any]) -> str:
    """The object of `Trace.to_dict` as a table for people."""
    names = [stage["name"] for stage in told["stages"] if _changes(told, stage["name"])]
    head = ["#", "ref", "title", "words", "vector", "tier", "score", *names, "outcome"]
    rows = [head]
    notes = []
    for row in told["candidates"]:
        steps = {step["name"]: step for step in row["stages"]}
        cells = [
            str(row["final_place"] or "-"),
            row["ref"],
            _cut(row["title"]),
            str(row["lexical_rank"] or "-"),
            str(row["vector_rank"] or "-"),
            row["matched"] or f"+{row['origin']}",
            _number(row["score"]),
        ]
        cells += [_step(steps.get(name)) for name in names]
        rows.append([*cells, row["outcome"] + (f": {row['reason']}" if row["reason"] else "")])
        told_of = [f"{step['name']}: {step['note']}" for step in row["stages"] if step["note"]]
        if told_of and row["outcome"] != EXCLUDED:
            notes.append(f"{row['ref']}  {'; '.join(told_of)}")
    worth = ", ".join(f"{one['term']} {one['worth']:.2f}" for one in told["terms"])
    return "\n".join([*_lines(rows), "", *notes, f"terms and their worth: {worth or 'none'}"])


def _changes(told: dict[str, Any], name: str) -> bool:
    """Whether a stage gave any card another score; what it took out is told as the outcome."""
    steps = [step for row in told["candidates"] for step in row["stages"] if step["name"] == name]
    return any(step["score"] not in (None, step["score_before"]) for step in steps)


def _lines(rows: list[list[str]]) -> list[str]:
    from ..text.width import pad, width

    widths = [max(map(width, column)) for column in zip(*rows)]
    return ["  ".join(pad(cell, size) for cell, size in zip(row, widths)).rstrip() for row in rows]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _step(step: dict[str, Any] | None) -> str:
    """The score after a stage, and how many places a card went up or down."""
    if step is None:
        return ""
    if step["score"] is None:
        return "out"
    if step["place_before"] is None:
        return f"{step['score']:.4f} new"
    moved = step["place_before"] - step["place"]
    return _number(step["score"]) + (f" {'↑' if moved > 0 else '↓'}{abs(moved)}" if moved else "")


def _cut(text: str) -> str:
    from ..text.width import fit

    return fit(" ".join(text.split()), _TITLE)
