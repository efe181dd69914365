"""The cases of the system gate are sound, its home is what they take it to be, and it can fail."""

import json
from collections import Counter
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from bench.system.__main__ import Gate, figures
from bench.system.cases import CASES, CODES, HELD_BACK, REFUSED, Case, faults, load
from bench.system.judge import BLOCK, EXCLUDE, INCLUDE, INJECT, MRR, PACK, RECALL, judge, lost_of
from bench.system.vault import BREAK, CARDS, Placed, build, definitions

NOW = datetime(2026, 11, 30, 12, tzinfo=timezone(timedelta(hours=8)))


@pytest.fixture(scope="module")
def known():
    return {card["key"] for card in definitions()}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return build(tmp_path_factory.mktemp("system"), NOW)


def test_there_are_as_many_cases_as_were_asked_for():
    cases, held = load(CASES), load(HELD_BACK)
    groups = Counter(case.group for case in cases)
    assert len(cases) >= 240 and len(held) == 60
    assert groups["block"] >= 50 and groups["inject"] >= 60 and groups["inject-zh"] == 24
    assert {case.group for case in held} <= set(groups)


def test_no_case_is_wrong_in_itself_or_asked_twice(known):
    assert faults(load(CASES) + load(HELD_BACK), known) == []


def test_every_code_has_several_cases_and_one_that_is_held_back():
    several = Counter(code for case in load(CASES) for code in set(case.codes()))
    held = {code for case in load(HELD_BACK) for code in case.codes()}
    for code in (*CODES, REFUSED):
        assert several[code] >= 4, code
        assert code in held, code


def test_the_plain_chinese_questions_are_plain_chinese_questions():
    for case in load(CASES):
        if case.group == "inject-zh":
            assert case.prompt.endswith("？") and not any(c.isascii() for c in case.prompt)


@pytest.mark.parametrize(
    "change, fault",
    [
        ({"expect": {"open": True, "include": ["nobody"]}}, "no card has the key 'nobody'"),
        ({"expect": {"open": True, "includes": []}}, "'includes' cannot be expected"),
        ({"expect": {}}, "expect.open"),
        ({"options": {"colour": 1}}, "'colour' is no option"),
        (
            {"expect": {"open": True, "exclude": [{"key": "g-ssh", "code": "ugly"}]}},
            "no code is 'ugly'",
        ),
    ],
)
def test_a_wrong_case_is_told(known, change, fault):
    case = {"id": "a", "group": "inject", "prompt": "x", "expect": {"open": True}} | change
    (line,) = faults([Case(**case)], known)
    assert fault in line
    assert len(faults([Case(**case)] * 2, known)) >= 4  # the same id, and the same prompt


def test_a_misspelt_key_of_a_case_is_told(tmp_path):
    file = tmp_path / "cases.json"
    file.write_text('[{"id": "a", "group": "b", "promt": "c", "expect": {}}]', "utf-8")
    with pytest.raises(ValueError, match="case 1.*promt"):
        load(file)


def test_no_credential_stands_whole_in_the_file():
    text = CARDS.read_text("utf-8")
    made_up = [card["credential"] for card in definitions() if "credential" in card]
    assert len(made_up) == 4 and not any(value in text for value in made_up)
    for card in definitions():
        assert card.get("credential", "") in card["body"]
        assert BREAK not in card["body"]


def test_the_home_holds_every_card_as_it_was_meant(home):
    memory, cards = home
    secret = {card["key"] for card in definitions() if card.get("sensitivity") == "secret"}
    assert 150 <= len(cards) and memory.count() == len(cards) - len(secret)
    for key in cards.keys() - secret:
        shown = memory.show(cards[key].ref, full=True)
        assert shown.card["path"] == cards[key].path
        assert shown.window.text.strip("\n") == cards[key].text.strip("\n")
    old = memory.show(cards["sp-gray-old"].ref).card
    assert old["superseded_by"] == cards["sp-gray-new"].ref
    signal = memory.show(cards["st-sig-pay"].ref).card
    assert datetime.fromisoformat(str(signal["updated"])) == NOW - timedelta(days=90)
    future = memory.show(cards["tm-future"].ref).card
    assert datetime.fromisoformat(str(future["valid_from"])) > NOW


def test_the_ledger_of_the_home_says_who_was_captured_and_judged(home):
    memory, cards = home
    events = [
        json.loads(line)
        for file in (memory.home.home / "ledger").glob("*.jsonl")
        for line in file.read_text("utf-8").splitlines()
    ]
    created = {event["path"] for event in events if event["kind"] == "created"}
    assert cards["xq-retry"].path in created
    assert cards["ns-torque"].path not in created and cards["ns-src-fact"].path not in created
    judged = Counter(
        (event["path"], event["verdict"]) for event in events if event["kind"] == "feedback"
    )
    assert judged[cards["nf-cache"].path, "rejected"] == 9
    assert judged[cards["nf-mild"].path, "adopted"] == 6


# How an answer is judged

A, B, C = (
    Placed(key, f"N_000{n}", "vault", f"17-Notes/{key}.md", f"\nbody of {key}\n", value, barred)
    for n, (key, value, barred) in enumerate([("a", None, False), ("b", "hunter2-x", False),
                                              ("c", None, True)])
)  # fmt: skip
CARDS_OF = {"a": A, "b": B, "c": C}


def named(card, **more):
    return {"ref": card.ref, "path": card.path, "source": "vault", "title": card.key} | more


def answer(open=True, items=(), left_out=(), candidates=(), refused=None):
    given = [
        named(card, view="overview", text=f"text of {card.key}", flags=["masked:password"], tokens=9,
              call=f"memory show {card.ref}")
        for card in items
    ]  # fmt: skip
    return {
        "open": open, "text": "pack", "tokens": 9, "budget": 100, "items": given,
        "refused": {"code": refused, "reason": ""} if refused else None,
        "left_out": [named(card, code=code, reason="") for card, code in left_out],
        "candidates": [named(card, rank=n, score=1.0) for n, card in enumerate(candidates, 1)],
    }  # fmt: skip


def marks(expect, given):
    return judge(Case("x", "g", "p", expect), given, CARDS_OF).marks


@pytest.mark.parametrize(
    "expect, given, metric, mark",
    [
        ({"open": False}, answer(open=False), BLOCK, 1),
        ({"open": False}, answer(open=True), BLOCK, 0),
        ({"open": False}, answer(open=False, items=[A]), BLOCK, 0),
        ({"open": True}, answer(open=False), INJECT, 0),
        ({"open": True, "target": ["a"]}, answer(candidates=[B, A]), RECALL, 1),
        ({"open": True, "target": ["a"]}, answer(candidates=[B, A]), MRR, 0.5),
        ({"open": True, "target": ["a"]}, answer(candidates=[B]), RECALL, 0),
        ({"open": True, "include": ["a"]}, answer(items=[B, A]), INCLUDE, 1),
        ({"open": True, "include": ["a"]}, answer(items=[B]), INCLUDE, 0),
        ({"open": True, "include_any": [["a", "b"]]}, answer(items=[B]), INCLUDE, 1),
        ({"open": True, "views": {"a": ["locator"]}}, answer(items=[A]), INCLUDE, 0),
        ({"open": True, "views": {"a": ["locator", "overview"]}}, answer(items=[A]), INCLUDE, 1),
        ({"open": True, "flags": {"a": ["masked"]}}, answer(items=[A]), INCLUDE, 1),
        ({"open": True, "flags": {"a": ["instructions"]}}, answer(items=[A]), INCLUDE, 0),
        ({"open": True, "unflagged": {"a": ["masked"]}}, answer(items=[A]), INCLUDE, 0),
        ({"open": True, "order": ["a", "b"]}, answer(items=[A, B]), INCLUDE, 1),
        ({"open": True, "order": ["a", "b"]}, answer(items=[B, A]), INCLUDE, 0),
        ({"open": True, "refused": True}, answer(refused=REFUSED), EXCLUDE, 1),
        ({"open": True, "refused": True}, answer(), EXCLUDE, 0),
        ({"open": True, "empty": True}, answer(items=[A]), EXCLUDE, 0),
        # A card that another replaced, whatever was expected.
        ({"open": True, "include": ["c"]}, answer(items=[C]), EXCLUDE, 0),
    ],
)
def test_marks(expect, given, metric, mark):
    assert marks(expect, given)[metric] == mark


@pytest.mark.parametrize(
    "left_out, code, mark",
    [
        ([(A, "stale")], "stale", 1),
        ([(A, "no-source")], "stale", 0),
        ([(A, "no-source")], ["stale", "no-source"], 1),
        ([], "stale", 0),  # never a candidate, so that the rule was not tried
        ([], "superseded", 1),
        ([], "filter", 1),
    ],
)
def test_a_card_is_left_out_for_the_right_reason(left_out, code, mark):
    expect = {"open": True, "exclude": [{"key": "a", "code": code}]}
    assert marks(expect, answer(left_out=left_out))[EXCLUDE] == mark
    assert marks(expect, answer(items=[A]))[EXCLUDE] == 0


def test_so_many_of_several_cards_are_left_out():
    expect = {"open": True, "exclude": [{"keys": ["a", "b"], "count": 1, "code": "duplicate"}]}
    assert marks(expect, answer(items=[B], left_out=[(A, "duplicate")]))[EXCLUDE] == 1
    assert marks(expect, answer(items=[A, B]))[EXCLUDE] == 0


def test_a_credential_may_be_read_nowhere():
    given = answer(items=[A])
    given["text"] = "the word is hunter2-x"
    assert marks({"open": True, "masked": ["b"]}, answer(items=[A]))[EXCLUDE] == 1
    assert marks({"open": True}, given)[EXCLUDE] == 0


def test_a_detail_has_every_line_but_those_with_a_credential():
    body = "one\n\n密码：Vq8mTz3#Lw6p\nthree\n"
    assert lost_of(body, "> one\n> 密码：[masked]\n> three") is None
    assert lost_of(body, "> one\n> 密码：[masked]") == "three"
    assert lost_of(body, "three\none") == "three"


def test_means_are_of_the_cases_that_have_a_mark():
    one = judge(Case("x", "g", "p", {"open": True}), answer(), CARDS_OF)
    two = judge(Case("x", "g", "p", {"open": True}), answer(open=False), CARDS_OF)
    found = figures([one, two])
    assert found[INJECT] == 0.5 and found[BLOCK] is None


# Following a pack back to its cards


class Given:
    """An answer of `Memory.context`, made up."""

    def __init__(self, item, **more):
        self.item, self.more = item, more

    def to_dict(self):
        text = f"{self.item['ref']} {self.item['call']}"
        given = answer() | {"items": [self.item], "text": text}
        return given | self.more


def pack_mark(home, monkeypatch, item, **more):
    memory, cards = home
    monkeypatch.setenv("MEMORY_AGENT_HOME", str(memory.home.home))
    monkeypatch.setattr(memory, "context", lambda prompt, **how: Given(item, **more), raising=False)
    gate = Gate(memory, cards, NOW)
    judged, came = gate.ask(Case("x", "g", "p", {"open": True}))
    gate.follow(judged, came)
    return judged.marks[PACK]


def item_of(card, **more):
    return named(card, kind="note", view="locator", text="t", tokens=9, flags=[],
                 call=f"memory show {card.ref} --full", source=card.source) | more  # fmt: skip


def test_an_item_leads_back_to_the_full_text(home, monkeypatch):
    card = home[1]["xq-retry"]
    assert pack_mark(home, monkeypatch, item_of(card)) == 1
    foreign = home[1]["ns-src-fact"]
    assert pack_mark(home, monkeypatch, item_of(foreign)) == 1
    detail = item_of(card, view="detail", text=f"> {card.text.strip()}")
    assert pack_mark(home, monkeypatch, detail) == 1


@pytest.mark.parametrize(
    "change, more",
    [
        ({"view": "detail", "text": "half of it"}, {}),
        ({"call": "memory show X_9999"}, {}),
        ({"call": "rm -r /nowhere"}, {}),
        ({"ref": "D_0002"}, {}),
        ({}, {"tokens": 101}),
        ({}, {"text": "nothing about it"}),
    ],
)
def test_what_is_not_reversible_is_marked(home, monkeypatch, change, more):
    item = item_of(home[1]["xq-retry"]) | change
    assert pack_mark(home, monkeypatch, item, **more) < 1


def test_the_files_are_one_case_or_card_a_line():
    for file in (CASES, HELD_BACK, CARDS):
        lines = Path(file).read_text("utf-8").splitlines()
        assert len(lines) == len(json.loads(Path(file).read_text("utf-8"))) + 2
