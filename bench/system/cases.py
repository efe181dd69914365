"""The cases of the system gate, as they stand in `cases.json` and `held_back.json`."""

import json
import re
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

CASES = Path(__file__).with_name("cases.json")
HELD_BACK = Path(__file__).with_name("held_back.json")

#: Why a card is left out: the codes of the firewall.
CODES = (
    "sensitivity", "superseded", "needs-review", "no-match", "very-low-confidence",
    "negative-feedback", "no-source", "stale", "temporal-mismatch", "duplicate", "given-already",
    "item-limit", "token-budget",
)  # fmt: skip
#: The whole set is refused.
REFUSED = "strong-terms-missing"
#: A filter that was asked for took the card out.
FILTER = "filter"
#: What may never become a candidate, so that no receipt names it. A secret card is not in the index.
QUIET = frozenset({"superseded", "sensitivity", "no-match", FILTER})

#: What `Memory.context` takes beside prompt, project, session and budget.
OPTIONS = ("limit", "kind", "tags", "exclude_tags", "since", "source", "sensitivities")
#: What may be expected; see Case.
EXPECTED = (
    "open", "target", "include", "include_any", "exclude", "views", "flags", "unflagged", "order",
    "masked", "refused", "empty",
)  # fmt: skip

_YEAR = re.compile(r"\{year:(-?\d+)\}")


@dataclass(frozen=True, slots=True)
class Case:
    """A prompt, how it is asked, and what has to come of it.

    `before` are prompts of the same session, asked first. In `expect`:

    - `open`: what the gate decides;
    - `target`: one of these is among the first ten candidates, before the firewall;
    - `include`, `include_any`: these are in the pack, one of each group is;
    - `exclude`: `{key, code}` is left out for it (a list: for one of them), `{keys, count, code}` so
      many of them are; `filter` stands for whatever the caller asked to be filtered by;
    - `views`, `flags`, `unflagged`: what an included card is shown as, flagged with, and not;
    - `order`: these come in this order in the pack;
    - `masked`: the credentials of these are nowhere in the answer;
    - `refused`: the firewall refuses the whole set; `empty`: nothing is given.
    """

    id: str
    group: str
    prompt: str
    expect: Mapping[str, object]
    project: str | None = None
    session: str | None = None
    budget: int | None = None
    options: Mapping[str, object] = field(default_factory=dict)
    before: tuple[str, ...] = ()

    def asked(self, now: datetime) -> str:
        """The prompt; `{year:-700}` in it is the year of 700 days ago."""
        return _YEAR.sub(lambda m: str((now + timedelta(days=int(m[1]))).year), self.prompt)

    def codes(self) -> list[str]:
        """The codes that cards are expected to be left out for."""
        found = [code for one in self.expect.get("exclude", ()) for code in as_list(one["code"])]
        return [*found, REFUSED] if self.expect.get("refused") else found

    def keys(self) -> list[str]:
        """Every card that is named."""
        plain = ("target", "include", "order", "masked", "views", "flags", "unflagged")
        found = [key for name in plain for key in self.expect.get(name, ())]
        found += [key for group in self.expect.get("include_any", ()) for key in group]
        return found + [key for one in self.expect.get("exclude", ()) for key in excluded_keys(one)]


def as_list(value: object) -> list:
    """A value that may be a list, as one."""
    return list(value) if isinstance(value, list) else [value]


def excluded_keys(one: Mapping) -> list[str]:
    """The cards that an entry of `exclude` is about."""
    return one["keys"] if "keys" in one else [one["key"]]


def load(path: Path) -> list[Case]:
    """The cases in a file. Raises ValueError, with what is wrong, when it is none of ours."""
    cases = []
    for number, entry in enumerate(json.loads(Path(path).read_text("utf-8")), 1):
        try:
            cases.append(Case(**(entry | {"before": tuple(entry.get("before", ()))})))
        except TypeError as error:
            raise ValueError(f"{path}: case {number}: {error}") from None
    return cases


def faults(cases: list[Case], known: Container[str]) -> list[str]:
    """What is wrong with the cases themselves: a line each."""
    found = []
    ids: set[str] = set()
    asked: set[tuple] = set()
    for case in cases:
        how = (case.prompt.casefold(), case.project, case.session, case.budget,
               json.dumps(case.options, sort_keys=True), case.before)  # fmt: skip
        found += [
            f"{case.id}: no card has the key {key!r}" for key in case.keys() if key not in known
        ]
        found += [f"{case.id}: {name!r} cannot be expected" for name in case.expect
                  if name not in EXPECTED]  # fmt: skip
        found += [
            f"{case.id}: {name!r} is no option" for name in case.options if name not in OPTIONS
        ]
        found += [f"{case.id}: no code is {code!r}" for code in case.codes()
                  if code not in (*CODES, REFUSED, FILTER)]  # fmt: skip
        if not isinstance(case.expect.get("open"), bool):
            found.append(f"{case.id}: expect.open is neither true nor false")
        if case.id in ids:
            found.append(f"{case.id}: there are two of this id")
        if how in asked:
            found.append(f"{case.id}: the same is asked twice: {case.prompt}")
        ids.add(case.id)
        asked.add(how)
    return found
