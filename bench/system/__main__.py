"""The system gate: `python -m bench.system`.

Builds a home from `cards.json` in a temporary folder, asks `Memory.context` every case, and prints
one line: how many turns were stopped and let through as they should be, whether the card that is
meant is among the first ten candidates and at which place, whether the firewall keeps and leaves out
what its rules say, and whether every item of a pack leads back to the identical full text. Exit code
1 below the thresholds. `held_back.json` holds more cases, which nothing is tuned by.
"""

import argparse
import json
import os
import shlex
import sys
import tempfile
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from datasette_memory.errors import MemoryFault
from datasette_memory.memory import Memory
from memory_cli.main import cli

from .cases import CASES, Case, faults, load
from .judge import METRICS, MRR, PACK, Judgement, judge, lost_of
from .vault import Placed, build

#: The least that a metric has to reach.
LEAST = {metric: 0.99 if metric == MRR else 1.0 for metric in METRICS}
#: So many characters of a body must be in what a call prints.
_GIST = 20


class Gate:
    """Asks the cases of one home, and follows what comes back to its full text."""

    def __init__(self, memory: Memory, cards: Mapping[str, Placed], now: datetime) -> None:
        self.memory = memory
        self.cards = cards
        self.now = now
        self._by_place = {(one.source, one.path): one for one in cards.values()}
        self._followed: dict[tuple[str, str], str | None] = {}

    def ask(self, case: Case) -> tuple[Judgement, dict[str, Any]]:
        """Ask a case; what to think of the answer, and the answer. A fault is all wrong."""
        how = {"budget": case.budget, "project": case.project, "session": case.session}
        how |= {name: tuple(value) if isinstance(value, list) else value
                for name, value in case.options.items()}  # fmt: skip
        kept = case.session is not None
        try:
            for earlier in case.before:
                self.memory.context(earlier, **how, record=kept)
            answer = self.memory.context(case.asked(self.now), **how, record=kept).to_dict()
        except MemoryFault as error:
            return Judgement(dict.fromkeys(METRICS, 0.0), [f"fault: {error}"]), {}
        return judge(case, answer, self.cards), answer

    def follow(self, done: Judgement, answer: Mapping[str, Any]) -> None:
        """Mark whether a pack is what it says, and leads back to the cards. This reads cards, which
        counts: no case is asked afterwards."""
        if not answer:
            return
        wrong = self._frame(answer)
        marks = [0.0] if wrong else []
        for item in answer["items"]:
            fault = self._follow(item)
            marks.append(float(fault is None))
            if fault:
                wrong.append(f"{item['ref']}: {fault}")
        if marks:
            done.marks[PACK] = sum(marks) / len(marks)
        done.wrong += [f"{PACK}: {line}" for line in wrong]

    def _frame(self, answer: Mapping[str, Any]) -> list[str]:
        """What is wrong with a pack as a whole."""
        wrong = []
        text = answer["text"] or ""
        if answer["tokens"] > answer["budget"]:
            wrong.append(f"{answer['tokens']} tokens in a budget of {answer['budget']}")
        for item in answer["items"]:
            if item["ref"] not in text:
                wrong.append(f"the text does not name {item['ref']}")
            if item["view"] != "detail" and item["call"] not in text:
                wrong.append(f"the text does not say how to read {item['ref']}")
        return wrong

    def _follow(self, item: Mapping[str, Any]) -> str | None:
        """Why an item does not lead back to the text of its card; None when it does."""
        card = self._by_place.get((item["source"], item["path"]))
        if card is None:
            return f"no such card was written: {item['source']}/{item['path']}"
        if item["view"] == "detail" and (line := lost_of(card.text, item["text"])):
            return f"the detail has lost {line!r}"
        asked = item["ref"], item["call"]
        if asked not in self._followed:
            self._followed[asked] = self._read(card, *asked)
        return self._followed[asked]

    def _read(self, card: Placed, ref: str, call: str) -> str | None:
        try:
            shown = self.memory.show(ref, full=True)
        except MemoryFault as error:
            return f"show: {error}"
        if (shown.card["source"], shown.card["path"]) != (card.source, card.path):
            return f"its ref opens {shown.card['path']}"
        if shown.window.text.strip("\n") != card.text.strip("\n"):
            return "show gives another text"
        words = shlex.split(call)
        if words[:1] != ["memory"]:
            return f"the call is no command: {call}"
        result = CliRunner().invoke(cli, words[1:], prog_name="memory")
        if result.exit_code or card.text.strip()[:_GIST] not in result.output:
            return f"{call}: exit code {result.exit_code}, {result.output[:80]!r}"
        return None


def measure(cases: list[Case]) -> tuple[list[tuple[Case, Judgement, dict]], int]:
    """Ask all cases in one new home; gives them with what came, and the number of its cards."""
    # What has a session adds to the ledger, and may not change what the others see.
    asked = sorted(cases, key=lambda case: case.session is not None)
    now = datetime.now().astimezone()
    with tempfile.TemporaryDirectory(prefix="memory-system-") as folder:
        memory, cards = build(Path(folder), now)
        if wrong := faults(cases, cards):
            raise ValueError("\n".join(wrong))
        # The calls of a pack are made as they stand.
        os.environ["MEMORY_AGENT_HOME"] = str(memory.home.home)
        gate = Gate(memory, cards, now)
        done = [(case, *gate.ask(case)) for case in asked]
        for _, judged, answer in done:
            gate.follow(judged, answer)
    return done, len(cards)


def figures(judged: list[Judgement]) -> dict[str, float | None]:
    """The mean of every metric; None where no case has a mark."""
    means = {}
    for metric in METRICS:
        marks = [one.marks[metric] for one in judged if metric in one.marks]
        means[metric] = sum(marks) / len(marks) if marks else None
    return means


def main() -> int:
    """Ask, print, and say by the exit code whether the gate is passed."""
    parser = argparse.ArgumentParser(prog="python -m bench.system", description=__doc__)
    parser.add_argument("--cases", type=Path, default=CASES, help="the file of the cases")
    parser.add_argument("--only", help="cases whose id or group begins so")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    parser.add_argument("--verbose", action="store_true", help="with what came of failing cases")
    for metric, least in LEAST.items():
        parser.add_argument(f"--min-{metric}", type=float, default=least, dest=metric)
    options = parser.parse_args()
    try:
        cases = load(options.cases)
        if options.only:
            cases = [c for c in cases if c.id.startswith(options.only) or c.group == options.only]
        done, items = measure(cases)
    except (OSError, ValueError) as error:
        print(f"The cases cannot be asked: {error}", file=sys.stderr)
        return 2
    found = figures([judged for _, judged, _ in done])
    passed = all(
        value is None or value >= getattr(options, metric) for metric, value in found.items()
    )
    failing = [entry for entry in done if entry[1].wrong]
    if options.json:
        told = [{"id": case.id, "group": case.group, "prompt": case.prompt, "wrong": one.wrong}
                for case, one, _ in failing]  # fmt: skip
        report = {"cases": len(cases), "items": items, **found, "passed": passed, "failing": told}
        print(json.dumps(report, ensure_ascii=False, indent=1))
        return not passed
    for case, one, answer in failing:
        print(f"{case.id} ({case.group}) {case.prompt}")
        print(*(f"    {line}" for line in one.wrong), sep="\n")
        if options.verbose:
            print(*(f"    | {line}" for line in came(answer)), sep="\n")
    shown = (
        f"{name}={'-' if value is None else format(value, '.3f')}" for name, value in found.items()
    )
    print(f"system cases={len(cases)} items={items}", *shown)
    print("PASS" if passed else "FAIL")
    return not passed


def came(answer: Mapping[str, Any]) -> list[str]:
    """What an answer was, for whoever looks into a failing case."""
    if not answer:
        return ["no answer"]
    lines = [f"open {answer['open']}: {', '.join(map(str, answer['reasons']))}",
             f"refused {answer['refused']}, {answer['tokens']} of {answer['budget']} tokens"]  # fmt: skip
    lines += [f"{n} {one['ref']} {one['path']} {one['score']:.4f}"
              for n, one in enumerate(answer["candidates"][:10], 1)]  # fmt: skip
    lines += [f"given {one['ref']} as {one['view']}, {one['tokens']} tokens, {list(one['flags'])}"
              for one in answer["items"]]  # fmt: skip
    return lines + [f"left out {one['ref']} {one['title']}: {one['code']} ({one['reason']})"
                    for one in answer["left_out"]]  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
