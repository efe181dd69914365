import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datasette_memory.context.gate import LONGEST, MOST, Decision, decide
from datasette_memory.text.normalise import normalise


def turns(name):
    lines = (Path(__file__).parent / f"gate_{name}.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("%%")]


STOPPED, QUESTIONS, INSTRUCTIONS = turns("stopped"), turns("questions"), turns("instructions")
EVERY = STOPPED + QUESTIONS + INSTRUCTIONS


def test_turns_without_a_subject_are_stopped_and_others_are_not():
    assert [turn for turn in STOPPED if decide(turn).open] == []
    assert [turn for turn in QUESTIONS + INSTRUCTIONS if not decide(turn).open] == []


def test_questions_need_no_question_mark():
    assert [q for q in QUESTIONS if not decide(q.rstrip("?？")).open] == []
    assert [q for q in STOPPED if decide(q + "？").open] == []


@pytest.mark.parametrize(
    ("turn", "anchor"),
    [
        ("继续 query_signal.py", "file:query_signal.py"),
        ("继续query_signal.py", "file:query_signal.py"),
        ("看看README.zh.md", "file:README.zh.md"),
        ("继续写部署手册.md", "file:继续写部署手册.md"),
        ("ok, .env", "file:.env"),
        ("ok...and", None),
        ("go on with src/memory/context", "path:src/memory/context"),
        ("继续 ~/notes/today", "path:~/notes/today"),
        (r"打开 C:\work\notes", r"path:C:\work\notes"),
        ("yes/no", None),
        ("this and/or that", None),
        ("/help", None),
        ("继续 memory_context", "identifier:memory_context"),
        ("改一下 getMemory", "identifier:getMemory"),
        ("go on with context.pack", "module:context.pack"),
        ("用 v2", "version:v2"),
        ("改成 2.3.1", "version:2.3.1"),
        ("1.5", None),
        ("#42 继续", "issue:#42"),
        ("2026-11-30", "date:2026-11-30"),
        ("1234.56", None),
        ("选 #1", None),
        ("24/7", None),
        ("看一下 https://example.com", "address:https://example.com"),
        ("“记忆”那个", "quote:记忆"),
        ('继续 "context"', "quote:context"),
        ("他说“好的”", None),
        ("看下 `go on`", None),
        ("看下 `run()`", "code:run()"),
        ("BM25", "domain:bm25"),
        ("召回鏈路", "domain:召回链路"),
    ],
)
def test_what_opens_by_its_shape(turn, anchor):
    decision = decide(turn)
    assert decision.open == (anchor is not None)
    assert anchor is None or anchor in decision.anchors


def test_a_weak_word_counts_in_a_question_only():
    assert decide("昨天做了什么").open
    assert not decide("昨天").open
    assert decide("how do we commit").open
    assert not decide("go ahead and commit").open


def test_what_a_stopped_turn_held_is_told():
    assert decide("提交一下 memory") == Decision(
        False, ("It holds general words only: 提交, memory.",), (), ("提交", "memory")
    )
    assert decide("继续").terms == ()
    assert decide("继续").reasons == ("It holds nothing to search for.",)
    assert decide("  \n").reasons == ("It is empty.",)


def test_the_reasons_of_an_open_turn():
    assert decide("继续 query_signal.py").reasons == ("It names a file: query_signal.py.",)
    assert decide("私钥在哪").reasons == ("It asks about: 私钥.",)
    assert decide("kubernetes").reasons == ("It speaks of: kubernetes.",)


def test_what_the_index_knows_opens_what_nothing_else_does():
    asked = []

    def known(prompt):
        asked.append(prompt)
        return [("project", "大小"), ("tag", "memory"), ("title", "继续")]

    decision = decide("大小 memory", known)
    assert decision == Decision(
        True, ("The index knows the project 大小.",), ("project:大小",), ("memory",)
    )
    assert asked == ["大小 memory"]


def test_a_card_called_like_an_empty_turn_does_not_let_it_in():
    assert not decide("memory", lambda prompt: [("tag", "memory")]).open
    assert decide("记忆 上下文", lambda prompt: [("title", "记忆 上下文")]).open


@pytest.mark.parametrize("turn", ["继续", "好的，谢谢", "私钥在哪", "query_signal.py", ""])
def test_the_index_is_not_asked_in_vain(turn):
    def known(prompt):
        raise AssertionError("asked")

    decide(turn, known)


@pytest.mark.parametrize("turn", EVERY)
def test_case_width_and_script_make_no_difference(turn):
    wide = "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in turn)
    for other in (turn.upper(), turn.lower(), turn.title(), wide, normalise(turn), f" {turn} 👍\n"):
        assert decide(other).open == decide(turn).open, other


# Character by character, as OpenCC's table has it.
SIMPLE_TO_TRADITIONAL = str.maketrans(
    "继续么这个为谢说细点长觉错对让还没问题么开", "繼續麼這個為謝說細點長覺錯對讓還沒問題麼開"
)


@pytest.mark.parametrize("turn", STOPPED)
def test_traditional_turns_are_stopped_too(turn):
    assert not decide(turn.translate(SIMPLE_TO_TRADITIONAL)).open


@pytest.mark.parametrize("turn", STOPPED)
@pytest.mark.parametrize("name", ["query_signal.py", "memory.md", "README.zh.md"])
def test_a_file_name_opens_what_was_stopped(turn, name):
    for together in (f"{turn} {name}", f"{name} {turn}", f"{turn}，{name}"):
        assert decide(together).open


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_stays_open_in_the_middle_of_small_talk(question):
    assert decide(f"好的，谢谢。{question} thanks!").open


PROMPTS = st.one_of(
    st.text(),
    st.text(alphabet='继续好的改 go.py/_`"“”#v1?？\n'),
    st.lists(st.sampled_from(EVERY)).map(" ".join),
)


@given(PROMPTS)
def test_any_prompt_is_decided(prompt):
    decision = decide(prompt, lambda text: [("title", text)])
    assert isinstance(decision.open, bool) and decision.reasons
    assert all(reason.endswith(".") for reason in decision.reasons)
    assert len(decision.anchors) <= MOST and len(decision.terms) <= MOST


@settings(max_examples=30)
@given(PROMPTS, st.integers(1, 20_000))
def test_nothing_grows_with_the_prompt(prompt, times):
    decision = decide((prompt * times)[:200_000])
    assert len(decision.anchors) <= MOST and len(decision.terms) <= MOST
    assert all(len(word) <= LONGEST + 20 for word in decision.anchors + decision.terms)


def test_a_long_prompt_is_read_at_both_ends():
    assert not decide("好的 " * 50_000).open
    assert decide("私钥在哪 " + "好的 " * 50_000).open
    assert decide("好的 " * 50_000 + "私钥在哪").open


def test_the_gate_is_light():
    code = (
        "import sys; from datasette_memory.context.gate import decide; decide('go on'); "
        "print(sorted({'sqlite3', 'click', 'asyncio', 'typing', 'datasette_memory.text.normalise'} "
        "& set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_plain_stopped_turn_loads_no_tables():
    code = (
        "import sys; from datasette_memory.context.gate import decide\n"
        "assert not decide('好的，继续吧').open\n"
        "print('datasette_memory.text.normalise' in sys.modules)\n"
        "assert not decide('繼續').open\n"
        "print('datasette_memory.text.normalise' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


@given(
    st.lists(st.sampled_from(["好的", "ok", "．", ".", "go", "／", "/", "＿", "_", "继续", "next"]))
)
def test_width_makes_no_difference_to_what_stands_together(pieces):
    prompt = "".join(pieces)
    narrow = prompt.translate({ord("．"): ".", ord("／"): "/", ord("＿"): "_"})
    assert decide(prompt).open == decide(narrow).open
