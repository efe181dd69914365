"""What an agent is given, by Python, by command, over MCP and by the API: one answer, one receipt."""

import importlib.util
import json
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from datasette_memory.memory import Memory
from memory_cli.serve import command, find_metadata


def _load(name):
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


agents, homes, serving = _load("agents"), _load("homes"), _load("serving")

NOW = datetime.now(timezone.utc)


def ago(days: float) -> str:
    return (NOW - timedelta(days=days)).isoformat(timespec="seconds")


GATEWAY = "网关监听 8765 端口，备份任务在凌晨两点半，日志写到 /var/log/gateway。"
QUESTION = "网关监听哪个端口，备份任务几点跑？"


@pytest.fixture
def place():
    with homes.place() as folder:
        yield folder


@pytest.fixture
def memory(place) -> Memory:
    """Seven cards: the port of the gateway, what it replaced, and cards that nobody may be given."""
    memory = Memory(str(place / "home"))
    old = memory.capture(
        "网关端口旧约定", "网关监听 8000 端口，没有备份任务，早就不用了。", kind="fact"
    )
    memory.supersede(old.ref, "网关端口约定", GATEWAY, tags=["网关"])
    memory.capture(
        "网关私密端口", "网关监听 9999 端口，备份任务另说，这是私下的约定。", sensitivity="private"
    )
    memory.capture(
        "网关保密端口", "网关监听 7777 端口，备份任务保密，谁也不许看。", sensitivity="secret"
    )
    memory.capture("月饼采购", "中秋节的月饼买三十盒，送到前台，找行政报销。", kind="note")
    memory.capture("How we deploy", "We deploy the uploader with a canary of five percent.")
    return memory


def refs(given) -> list[str]:
    return [item.candidate.title for item in given.pack.items]


def codes(given) -> dict[str, str]:
    return {one.candidate.title: one.reasons[-1].code for one in given.pack.left_out}


# What is given


def test_the_card_that_answers_is_given_and_no_other(memory):
    given = memory.context(QUESTION)
    assert refs(given) == ["网关端口约定"]
    assert "> 网关监听 8765 端口" in given.text and given.pack.tokens <= given.budget == 1500
    assert codes(given)["网关私密端口"] == "sensitivity"
    for hidden in ("8000", "9999", "7777", "月饼"):
        assert hidden not in given.text
    private = memory.context(QUESTION, sensitivities=["public", "internal", "private"])
    assert set(refs(private)) == {"网关端口约定", "网关私密端口"}


def test_a_turn_that_says_too_little_is_stopped_before_the_index_is_opened(tmp_path):
    nowhere = Memory(str(tmp_path / "none"))
    given = nowhere.context("继续")
    assert (given.decision.open, given.text, given.pack) == (False, "", None)
    assert not (tmp_path / "none").exists()


def test_a_stopped_turn_with_real_terms_is_a_gap(memory):
    memory.context("好的")
    assert homes.events(memory.home.home, "gap") == []
    memory.context("代码")
    (gap,) = homes.events(memory.home.home, "gap")
    assert gap["query"] == "代码"


def test_nothing_that_is_asked_stands_in_the_ledger(memory):
    memory.context(QUESTION, session="s1")
    memory.context("登录页的按钮为什么不见了")
    events = homes.events(memory.home.home, "inject", "gap")
    assert [event["kind"] for event in events][0] == "inject"
    text = json.dumps(events, ensure_ascii=False)
    assert QUESTION not in text and "8765" not in text and "几点跑" not in text


def test_an_injection_is_a_cohort_in_the_ledger(memory):
    given = memory.context(QUESTION, project=None, session="s1", by={"surface": "cli"})
    (event,) = homes.events(memory.home.home, "inject")
    assert event["cohort"] == given.cohort and given.cohort in given.text
    assert event["by"] == {"surface": "cli", "agent": None, "session": "s1"}
    assert [card["ref"] for card in event["cards"]] == [given.pack.items[0].candidate.ref]
    assert event["tokens"] == given.pack.tokens and event["left_out"]["sensitivity"] == 1


def test_a_preview_records_nothing(memory):
    before = homes.digest(memory.home.home / "ledger")
    given = memory.context(QUESTION, record=False, explain=True)
    assert given.text and given.cohort is None
    memory.context("代码", record=False)
    assert homes.digest(memory.home.home / "ledger") == before


def test_a_session_is_not_given_the_same_again(memory):
    first = memory.context(QUESTION, session="s1")
    assert refs(first) == ["网关端口约定"]
    again = memory.context(QUESTION, session="s1")
    assert (refs(again), codes(again)["网关端口约定"]) == ([], "given-already")
    assert refs(memory.context(QUESTION, session="s2")) == ["网关端口约定"]
    assert refs(memory.context(QUESTION)) == ["网关端口约定"]
    # What has changed since is news.
    memory.update(first.pack.items[0].candidate.ref, body=GATEWAY + "另有健康检查。")
    assert refs(memory.context(QUESTION, session="s1")) == ["网关端口约定"]


def test_after_its_session_was_shortened_it_may_be_given_again(memory):
    memory.context(QUESTION, session="s1")
    memory.tell_runtime({"surface": "hook", "session": "s1"}, event="post-compact", forgets=True)
    assert refs(memory.context(QUESTION, session="s1")) == ["网关端口约定"]


def test_the_file_decides_whether_a_card_is_replaced(memory):
    card = memory.context(QUESTION).pack.items[0].candidate
    path = memory.home.vault / card.path
    text = path.read_text("utf-8")
    path.write_text(text.replace("\n---\n", "\nsuperseded_by: F_0099\n---\n", 1), "utf-8")
    given = memory.context(QUESTION)
    assert (refs(given), codes(given)["网关端口约定"]) == ([], "superseded")
    path.write_text(text.replace("\n---\n", "\nsensitivity: secret\n---\n", 1), "utf-8")
    given = memory.context(QUESTION, explain=True)
    assert refs(given) == [] and "网关端口约定" not in codes(given)


def test_feedback_decides_what_is_given_next_time(memory):
    ref = memory.context(QUESTION).pack.items[0].candidate.ref
    for _ in range(3):
        cohort = memory.context(QUESTION).cohort
        told = memory.feedback(cohort, rejected=[ref])
        assert told["rejected"] == [ref]
    given = memory.context(QUESTION)
    assert (refs(given), codes(given)["网关端口约定"]) == ([], "negative-feedback")


@pytest.mark.parametrize("budget", [1, 40, 120, 200, 400, 5000])
def test_a_budget_holds_for_all_of_it(memory, budget):
    for number in range(6):
        memory.capture(
            f"网关端口备忘 {number}", f"{GATEWAY}第 {number} 次值班记下。" * (1 + number * 9)
        )
    given = memory.context(QUESTION, budget=budget)
    assert given.pack.tokens <= budget
    assert bool(given.text) == bool(given.pack.items)
    for item in given.pack.items:
        # Each view leads back to the identical full text.
        assert (
            memory.show(item.candidate.ref, full=True).window.text
            == memory.show(str(item.candidate.id), full=True).window.text
        )
        assert item.call == f"memory show {item.candidate.ref}" and item.call in given.text


WORDS = [
    "网关",
    "监听",
    "端口",
    "备份任务",
    "几点",
    "约定",
    "私下",
    "保密",
    "8000",
    "9999",
    "7777",
    "what",
    "?",
]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join))
def test_nothing_replaced_or_secret_comes_through_whatever_is_asked(memory, question):
    given = memory.context(question, superseded=True, record=False, explain=True)
    assert {"网关端口旧约定", "网关保密端口"}.isdisjoint(refs(given) if given.pack else ())
    told = json.dumps(given.to_dict() | {"question": "", "explain": {}}, ensure_ascii=False)
    assert "监听 7777 端口" not in told and "监听 8000" not in given.text


# The brief


def test_a_brief_tells_what_is_open(memory):
    assert memory.brief().text == ""
    memory.capture(
        "发布停在第二步", "证书换好再继续发布，别动灰度比例。", kind="handoff", project="网关"
    )
    memory.capture("采用滚动发布", "停机窗口没有了，所以采用滚动发布，每批一台。", kind="decision")
    used = memory.context("月饼买多少盒").pack.items[0].candidate.ref
    memory.show(used)
    told = memory.brief().to_dict()
    assert [(one["name"], [card["title"] for card in one["cards"]]) for one in told["sections"]] == [
        ("handoffs", ["发布停在第二步"]), ("signals", []), ("decisions", ["采用滚动发布"]),
        ("top", ["月饼采购"]),
    ]  # fmt: skip
    assert [
        one["name"] for one in memory.brief(project="网关").to_dict()["sections"] if one["cards"]
    ] == ["handoffs"]
    assert memory.brief(budget=60).tokens <= 60


# One answer on all surfaces


def said(told: dict) -> list[tuple[str, str]]:
    return [(item["ref"], item["view"]) for item in told["items"]]


@pytest.mark.asyncio
async def test_all_surfaces_give_the_same(memory, serve, free_port):
    home = memory.home.home
    expected = said(memory.context(QUESTION, record=False).to_dict())
    assert len(expected) == 1
    done = homes.command(home, "context", QUESTION, "--json")
    assert done.returncode == 0 and said(json.loads(done.stdout)) == expected
    async with agents.over_stdio(home) as client:
        answer = await client.call_tool("memory_context", {"question": QUESTION})
        told = answer.structured_content
        assert said(told) == expected and told["cohort"] in told["text"]
        assert answer.content[0].text.startswith(told["text"])
        assert f"memory_get with id {expected[0][0]}" in told["text"]
        verdict = await client.call_tool(
            "memory_feedback", {"cohort": told["cohort"], "adopted": expected[0][0]}
        )
        assert verdict.structured_content["adopted"] == [expected[0][0]]
        stopped = await client.call_tool("memory_context", {"question": "继续"})
        assert not stopped.is_error and stopped.structured_content["text"] == ""
    argv = command(
        memory.db, port=free_port, host="127.0.0.1", open_browser=False, metadata=find_metadata(),
        root=True,
    )  # fmt: skip
    with serve(argv, free_port, serving.environment(home)) as url:
        nobody, root = serving.Client(url), serving.Client(url, actor="root")
        before = len(homes.events(home, "inject"))
        status, told = nobody.get("/-/memory/context.json", q=QUESTION, explain="true")
        assert (status, said(told), told["cohort"]) == (200, expected, None)
        outcomes = {row["title"]: row["outcome"] for row in told["explain"]["candidates"]}
        assert (outcomes["网关端口约定"], outcomes["网关私密端口"]) == ("included", "excluded")
        assert len(homes.events(home, "inject")) == before
        status, told = nobody.post("/-/memory/context", q=QUESTION, session="s9", tags=[])
        assert (status, said(told)) == (200, expected)
        event = homes.events(home, "inject")[-1]
        assert (event["cohort"], event["by"]["surface"]) == (told["cohort"], "api")
        status, _ = nobody.post("/-/memory/feedback", cohort=told["cohort"], adopted=[])
        assert status == 403
        status, told = root.post(
            "/-/memory/feedback", cohort=told["cohort"], rejected=[expected[0][0]]
        )
        assert (status, told["rejected"]) == (200, [expected[0][0]])
        assert root.post("/-/memory/feedback", cohort="01NOSUCH", adopted=["F_0001"])[0] == 404
        status, told = nobody.get("/-/memory/why-not.json", q="月饼", ref=expected[0][0])
        assert status == 200 and told["ref"] == expected[0][0]
        assert nobody.get("/-/memory/context.json", q=QUESTION, sensitivity="secret")[0] == 400
        status, told = nobody.get("/-/memory/brief.json")
        assert status == 200 and [one["name"] for one in told["sections"]] == [
            "handoffs", "signals", "decisions", "top",
        ]  # fmt: skip


def test_the_command_gives_text_for_a_prompt_and_a_receipt(memory):
    home = memory.home.home
    done = homes.command(home, "context", QUESTION)
    assert done.returncode == 0
    (event,) = homes.events(home, "inject")
    assert (
        done.stdout.startswith("Memory from earlier work, cohort ")
        and event["cohort"] in done.stdout
    )
    assert done.stderr.startswith("given: 1 card, ") and event["cohort"] in done.stderr
    assert "left out: " in done.stderr and "sensitivity" in done.stderr
    stopped = homes.command(home, "context", "ok go on")
    assert (stopped.returncode, stopped.stdout) == (1, "")
    assert stopped.stderr == "nothing given: It holds nothing to search for.\n"
    explained = homes.command(home, "context", "-", "--explain", "--dry-run", stdin=QUESTION)
    assert explained.returncode == 0 and "nothing recorded" in explained.stderr
    assert "excluded: It is private" in explained.stdout
    assert len(homes.events(home, "inject")) == 1
    nothing = homes.command(home, "context", "登录页的按钮为什么不见了")
    assert (nothing.returncode, nothing.stdout) == (1, "")


# What a trial by hand has found


def test_the_brief_asks_the_files_too(memory):
    memory.capture("发布停在第二步", "证书换好再继续发布，别动灰度比例。", kind="handoff")
    assert "发布停在第二步" in memory.brief().text
    (path,) = (memory.home.vault / "16-Handoffs").glob("*.md")
    text = path.read_text("utf-8")
    path.write_text(text.replace("\n---\n", "\nsensitivity: secret\n---\n", 1), "utf-8")
    assert memory.brief().text == ""
    path.write_text(text.replace("\n---\n", "\nsuperseded_by: H_0009\n---\n", 1), "utf-8")
    assert memory.brief().text == ""


def test_a_card_that_its_file_calls_private_is_not_given(memory):
    card = memory.context(QUESTION).pack.items[0].candidate
    path = memory.home.vault / card.path
    text = path.read_text("utf-8")
    path.write_text(text.replace("\n---\n", "\nsensitivity: private\n---\n", 1), "utf-8")
    assert codes(memory.context(QUESTION))["网关端口约定"] == "sensitivity"


@pytest.mark.parametrize(
    "prompt, secret",
    [
        ("mysql -u root -pS3cretPw9 -h zebra.internal", "s3cretpw9"),
        ("斑马数据库 postgres://u:s3cr3tpw@zebra.example/x 连不上", "s3cr3tpw"),
        ("我的密码是 hunter2sEcret9，斑马登不上", "hunter2"),
        ("斑马的手机号 13812345678 是谁的", "13812345678"),
    ],
)
def test_a_gap_holds_no_credential(memory, prompt, secret):
    memory.context(prompt)
    told = json.dumps(homes.events(memory.home.home, "gap"), ensure_ascii=False).casefold()
    assert secret not in told


def test_a_limit_refuses_nothing(memory):
    memory.capture("网关钥匙", "网关钥匙的说明放在前台，谁值班谁拿，用完归还。")
    question = "网关监听哪个端口，备份任务几点跑，日志写到哪里？"
    assert memory.context(question, limit=1).refused is None
    assert refs(memory.context(question, limit=1)) == ["网关端口约定"]


def test_a_cohort_that_no_ledger_tells_of_is_not_named(memory):
    memory.home.home.joinpath("ledger").rename(memory.home.home / "kept")
    memory.home.home.joinpath("ledger").write_text("in the way")
    given = memory.context("中秋节的月饼买多少盒？")
    assert given.cohort is None and "cohort none:" in given.text


def test_the_call_reads_the_same_memory(memory, place):
    done = homes.command(place / "other", "context", QUESTION, "--home", str(memory.home.home))
    ref = homes.events(memory.home.home, "inject")[0]["cards"][0]["ref"]
    assert f"memory --home {memory.home.home} show {ref}" in done.stdout


def test_what_was_left_out_is_not_said_to_be_missing(memory):
    memory.context(QUESTION, session="s1")
    again = homes.command(memory.home.home, "context", QUESTION, "--session", "s1")
    assert again.stderr.startswith("nothing given: every card that was found was left out.")
    nothing = homes.command(memory.home.home, "context", "斑马的条纹有几道")
    assert nothing.stderr.startswith("nothing given: no card answers.")
