"""What an answer of `Memory.context` is held against: the expectations of its case."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from datasette_memory.text.secrets import find_secrets

from .cases import QUIET, REFUSED, Case, as_list, excluded_keys
from .vault import Placed

DEPTH = 10

BLOCK, INJECT, RECALL, MRR = "block", "inject", "recall@10", "mrr"
INCLUDE, EXCLUDE, PACK = "firewall-include", "firewall-exclude", "pack-reversible"
METRICS = (BLOCK, INJECT, RECALL, MRR, INCLUDE, EXCLUDE, PACK)

_INCLUDE = ("include", "include_any", "views", "flags", "unflagged", "order")
_EXCLUDE = ("exclude", "masked", "refused", "empty")


@dataclass(slots=True)
class Judgement:
    """The marks of a case, 0 to 1 by metric, and a line for each thing that is wrong."""

    marks: dict[str, float] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


def judge(case: Case, answer: Mapping[str, Any], cards: Mapping[str, Placed]) -> Judgement:
    """Hold the dict of a `Context` against what `case` expects of it."""
    done = Judgement()
    expect = case.expect
    answer = _Answer(answer, cards)
    wrong = [] if answer.open is expect["open"] else [f"open is {answer.open}"]
    if not expect["open"] and answer.items:
        wrong.append(f"a stopped turn gave {list(answer.items)}")
    _mark(done, INJECT if expect["open"] else BLOCK, wrong)
    if target := expect.get("target"):
        places = [answer.ranks[key] for key in target if key in answer.ranks]
        best = min(places, default=None)
        within = best is not None and best <= DEPTH
        done.marks[RECALL] = float(within)
        done.marks[MRR] = 1 / best if best else 0.0
        if best != 1:
            done.wrong.append(f"{RECALL if not within else MRR}: {target} is at place {best}")
    if any(expect.get(name) for name in _INCLUDE):
        _mark(done, INCLUDE, _not_included(expect, answer))
    if any(expect.get(name) for name in _EXCLUDE):
        _mark(done, EXCLUDE, _not_excluded(expect, answer))
    if wrong := _forbidden(answer, cards):
        _mark(done, EXCLUDE, wrong)
    return done


class _Answer:
    """The answer, with cards by key."""

    def __init__(self, answer: Mapping[str, Any], cards: Mapping[str, Placed]) -> None:
        keys = {(one.ref, one.path): key for key, one in cards.items()}

        def by_key(entries: list) -> dict[str, Mapping]:
            named = {}
            for entry in entries:
                name = keys.get((entry["ref"], entry["path"]), f"?{entry['ref']}")
                named.setdefault(name, entry)
            return named

        self.open = answer["open"]
        self.text = str(answer["text"] or "")
        self.refused = (answer["refused"] or {}).get("code")
        self.items = by_key(answer["items"])
        self.left_out = {key: one["code"] for key, one in by_key(answer["left_out"]).items()}
        self.ranks = {key: n for n, key in enumerate(by_key(answer["candidates"]), 1)}
        #: All that can be read in the answer.
        self.shown = "\n".join([self.text, *(str(item["text"]) for item in answer["items"])])

    def absent(self, key: str) -> str:
        """Why a card is not in the pack, for a line about it."""
        if self.refused:
            return f"everything was refused: {self.refused}"
        if key in self.left_out:
            return f"left out: {self.left_out[key]}"
        return "no candidate" if key not in self.ranks else "not in the pack"


def _mark(done: Judgement, metric: str, wrong: list[str]) -> None:
    done.marks[metric] = float(not wrong)
    done.wrong += [f"{metric}: {line}" for line in wrong]


def _not_included(expect: Mapping, answer: _Answer) -> list[str]:
    items = answer.items
    wrong = [f"{key} is missing ({answer.absent(key)})" for key in expect.get("include", ())
             if key not in items]  # fmt: skip
    for group in expect.get("include_any", ()):
        if not any(key in items for key in group):
            wrong.append(f"none of {group} is there ({answer.absent(group[0])})")
    for key, views in expect.get("views", {}).items():
        if key not in items:
            wrong.append(f"{key} is missing ({answer.absent(key)})")
        elif items[key]["view"] not in as_list(views):
            wrong.append(f"{key} is shown as {items[key]['view']}, not {views}")
    for key, flags in expect.get("flags", {}).items():
        if key not in items:
            wrong.append(f"{key} is missing ({answer.absent(key)})")
            continue
        got = items[key]["flags"]
        for flag in flags:
            if not any(one == flag or one.startswith(f"{flag}:") for one in got):
                wrong.append(f"{key} is not flagged {flag!r} but {list(got)}")
    for key, flags in expect.get("unflagged", {}).items():
        got = items[key]["flags"] if key in items else ()
        wrong += [f"{key} is flagged {one!r}" for one in got if one.split(":")[0] in flags]
    wanted = expect.get("order", ())
    places = [list(items).index(key) if key in items else None for key in wanted]
    if None in places or places != sorted(places):
        wrong.append(f"the order of {wanted} is {places}")
    return wrong


def _forbidden(answer: _Answer, cards: Mapping[str, Placed]) -> list[str]:
    """What no answer may hold, whatever was asked."""
    wrong = [f"{key} is given" for key in answer.items if key in cards and cards[key].barred]
    for key, card in cards.items():
        if card.credential and card.credential in answer.shown:
            wrong.append(f"the credential of {key} can be read")
    return wrong


def _not_excluded(expect: Mapping, answer: _Answer) -> list[str]:
    wrong = []
    for one in expect.get("exclude", ()):
        keys, codes = excluded_keys(one), as_list(one["code"])
        out = [key for key in keys if _is_out(key, codes, answer)]
        count = one.get("count", len(keys))
        if len(out) < count:
            came = {key: "given" if key in answer.items else answer.absent(key) for key in keys}
            wrong.append(f"{codes} should leave out {count} of {came}")
    if expect.get("refused") and (answer.refused != REFUSED or answer.items):
        wrong.append(f"refused is {answer.refused}, given are {list(answer.items)}")
    if expect.get("empty") and answer.items:
        wrong.append(f"given are {list(answer.items)}")
    return wrong


def _is_out(key: str, codes: list[str], answer: _Answer) -> bool:
    if key in answer.items:
        return False
    quiet = not QUIET.isdisjoint(codes)
    if key in answer.left_out:
        return answer.left_out[key] in codes or "filter" in codes
    return quiet


def lost_of(body: str, shown: str) -> str | None:
    """The first line of `body` that a detail view does not show, in order; None if it shows all.

    A line with a credential is masked in the view, so it is not looked for; a fence may set
    something before and after a line.
    """
    findings = find_secrets(body)
    at, start = 0, 0
    for line in body.splitlines(keepends=True):
        end = start + len(line)
        masked = any(one.start < end and start < one.end for one in findings)
        start = end
        if masked or not line.strip():
            continue
        found = shown.find(line.strip(), at)
        if found < 0:
            return line.strip()
        at = found + len(line.strip())
    return None
