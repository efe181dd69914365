"""Each rule of the firewall: a card that it stops, and one that it just lets through."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datasette_memory.context.firewall import Policy, screen
from datasette_memory.search.candidate import Candidate
from datasette_memory.text.similar import jaccard

TEXTS = ("数据库备份每天三点", "网站证书续期步骤", "日志保留七天")


@pytest.fixture
def judge(ask, card):
    """`judge(**fields)`: outcome and codes of a card that answers the question, beside another."""

    def make(
        text: str = "数据库备份", sourced=(), given=(), contested=(), policy=Policy(), **fields
    ):
        question = ask(text)
        one = card(question, 1, **({"body": "数据库备份每天凌晨跑一次。"} | fields))
        found = screen([one], question, policy, sourced=sourced, given=given, contested=contested)
        (verdict,) = found.verdicts
        return (verdict.outcome, *(reason.code for reason in verdict.reasons))

    return make


def test_a_card_that_answers_is_included(judge):
    assert judge() == ("included",)


@pytest.mark.parametrize("sensitivity", ["public", "internal"])
def test_public_and_internal_cards_are_given(judge, sensitivity):
    assert judge(sensitivity=sensitivity) == ("included",)


@pytest.mark.parametrize("sensitivity", ["private", "secret", "top"])
def test_others_are_not(judge, sensitivity):
    assert judge(sensitivity=sensitivity) == ("excluded", "sensitivity")


def test_private_cards_are_given_on_demand_and_secret_ones_never(judge):
    policy = Policy(sensitivities=frozenset(("private", "secret")))
    assert judge(policy=policy, sensitivity="private") == ("included",)
    assert judge(policy=policy, sensitivity="secret") == ("excluded", "sensitivity")


def test_a_superseded_card_is_never_given(judge):
    assert judge(superseded_by="D_0002") == ("excluded", "superseded")
    assert judge("数据库备份的历史", superseded_by="D_0002") == ("excluded", "superseded")


@pytest.mark.parametrize(
    "tag",
    ["needs-review", "Needs_Review", "requires review", "REQUIRES-REVIEW", "ｎｅｅｄｓ－ｒｅｖｉｅｗ",
     "待复核", "待複核", "待审核", "待審核", "#待审核"],
)  # fmt: skip
def test_what_waits_for_review_is_not_given(judge, tag):
    assert judge(tags=("运维", tag)) == ("excluded", "needs-review")


@pytest.mark.parametrize("tag", ["reviewed", "review", "复核", "已审核"])
def test_what_was_reviewed_is(judge, tag):
    assert judge(tags=(tag,)) == ("included",)


def test_a_card_with_nothing_of_the_question_is_no_match(judge):
    assert judge("数据库备份怎么做", body="怎么泡茶") == ("excluded", "no-match")
    assert judge("what is the backup", body="what the tea is", title="Tea") == (
        "excluded", "no-match",
    )  # fmt: skip


def test_one_term_an_alias_or_a_vector_is_a_match(judge):
    # 据库 is no common term; the cards have nothing else of the question.
    assert judge("数据库备份", body="据库", policy=Policy(least_share=0))[0] == "included"
    assert judge("数据库备份", body="茶", aliases=("数据库备份",)) == ("included",)
    assert judge("数据库备份", body="dumps of the store", vector_rank=3) == ("included",)


def test_what_a_stage_has_added_as_related_needs_no_match(ask, card):
    question = ask("数据库备份")
    cards = [
        card(question, 1, "数据库备份每天跑"),
        card(question, 2, "恢复演练的记录", origin="graph"),
        card(question, 3, "泡茶的记录"),
    ]
    found = screen(cards, question, sourced=())
    assert [(v.candidate.id, v.outcome) for v in found.verdicts] == [
        (1, "included"), (2, "included"), (3, "excluded"),
    ]  # fmt: skip


def test_a_question_of_common_words_alone_is_matched_by_them(judge):
    assert judge("how to", body="how to pour tea", title="Tea") == ("included",)


@pytest.mark.parametrize(
    "confidence, verdict",
    [
        (0.19, ("excluded", "very-low-confidence")),
        (0.2, ("demoted", "low-confidence")),
        (0.49, ("demoted", "low-confidence")),
        (0.5, ("included",)),
    ],
)
def test_confidence(judge, confidence, verdict):
    assert judge(confidence=confidence) == verdict


@pytest.mark.parametrize(
    "use, verdict",
    [
        ({"contradict": 3, "gain": -0.3}, ("excluded", "negative-feedback")),
        ({"contradict": 2, "gain": -0.2}, ("demoted", "contested")),
        ({"contradict": 5, "support": 2}, ("excluded", "negative-feedback")),
        ({"contradict": 5, "support": 3}, ("demoted", "contested")),
        ({"gain": -0.5}, ("excluded", "negative-feedback")),
        ({"gain": -0.49}, ("included",)),
        # A gain as five steps of -0.1 leave it.
        ({"gain": -0.1 - 0.1 - 0.1 - 0.1 - 0.1}, ("excluded", "negative-feedback")),
        # 1 + 0.03 * 10 - 0.1 * 11 + 0.5 * 0.1 = 0.25, and with a gain of 0.11 it is 0.255.
        ({"support": 10, "contradict": 11, "gain": 0.1}, ("excluded", "negative-feedback")),
        ({"support": 10, "contradict": 11, "gain": 0.11}, ("demoted", "contested")),
        ({"support": 2, "contradict": 1}, ("included",)),
        ({"support": 2, "contradict": 2}, ("demoted", "contested")),
    ],
)
def test_feedback(judge, use, verdict):
    assert judge(**use) == verdict


@pytest.mark.parametrize("kind", ["fact", "decision"])
def test_a_fact_or_decision_without_any_source_is_not_given(judge, kind):
    where = {"kind": kind, "source": "vault"}
    assert judge(**where) == ("excluded", "no-source")
    assert judge(**where, refs={"files": [], "urls": []}) == ("excluded", "no-source")
    assert judge(**where, refs={"urls": ["https://example.org/"]}) == ("included",)
    assert judge(**where, sourced={1}) == ("included",)
    assert judge(kind=kind, source="notes") == ("included",)


def test_other_kinds_need_no_source(judge):
    assert judge(kind="knowledge", source="vault") == ("included",)


@pytest.mark.parametrize("kind", ["signal", "handoff"])
def test_signals_and_handoffs_go_stale(judge, kind):
    # The half-life is 7 days, and it is noon of 1 December.
    assert judge(kind=kind, updated="2026-11-17T11:59:00+00:00") == ("excluded", "stale")
    assert judge(kind=kind, updated="2026-11-17T12:01:00+00:00") == ("included",)
    assert judge(kind="note", updated="2020-01-01") == ("included",)


@pytest.mark.parametrize("tag", ["stale", "Outdated", "过期", "已過期"])
def test_a_signal_that_is_tagged_stale_is_not_given(judge, tag):
    now = "2026-12-01T10:00:00+00:00"
    assert judge(kind="signal", updated=now, tags=(tag,)) == ("excluded", "stale")
    # 证书过期 is what other cards are about.
    assert judge(kind="knowledge", tags=(tag,)) == ("included",)


@pytest.mark.parametrize("text", ["以前的数据库备份", "数据库备份的历史", "2025 年的数据库备份"])
def test_who_asks_for_the_past_is_given_stale_signals(judge, text):
    old = {"kind": "signal", "updated": "2025-06-01", "body": "以前数据库备份每天跑，历史如此"}
    assert judge(text, **old) == ("included",)


@pytest.mark.parametrize(
    "time, verdict",
    [
        ({"valid_until": "2026-11-30"}, ("excluded", "temporal-mismatch")),
        ({"valid_until": "2026-12-01"}, ("included",)),
        ({"valid_until": "2026-12-01T11:59:00Z"}, ("excluded", "temporal-mismatch")),
        # Created on 1 November at 8: on 1 December at 8 thirty days are over.
        ({"ttl": 30}, ("excluded", "temporal-mismatch")),
        ({"ttl": 31}, ("included",)),
        ({"valid_from": "2026-12-02"}, ("excluded", "temporal-mismatch")),
        ({"valid_from": "2026-12-01"}, ("included",)),
        ({"valid_from": "2026-12-01T12:01:00Z"}, ("excluded", "temporal-mismatch")),
    ],
)
def test_a_card_holds_in_its_time(judge, time, verdict):
    assert judge(**time) == verdict


@pytest.mark.parametrize(
    "text, verdict",
    [
        ("2025 年数据库备份", ("included",)),
        ("2024年数据库备份", ("excluded", "temporal-mismatch")),
        ("去年数据库备份", ("included",)),
        ("2025-06 数据库备份", ("included",)),
        ("2025-07-01 数据库备份", ("excluded", "temporal-mismatch")),
        ("2025年6月30日数据库备份", ("included",)),
        ("数据库备份", ("excluded", "temporal-mismatch")),
    ],
)
def test_a_question_that_names_a_time_is_answered_by_what_held_then(judge, text, verdict):
    policy = Policy(least_share=0)
    held = {"valid_from": "2025-01-01", "valid_until": "2025-06-30"}
    assert judge(text, policy=policy, **held) == verdict


def test_a_card_without_both_ends_is_not_held_against_the_time_asked_for(judge):
    assert judge("2024 年数据库备份", valid_from="2025-01-01", policy=Policy(least_share=0)) == (
        "included",
    )


def test_of_two_that_say_the_same_the_better_one_stays(ask, card):
    question = ask("数据库备份")
    words = [f"word{n}" for n in range(16)]
    same = "数据库备份 " + " ".join(words)
    # 22 tokens: 数据 据库 库备 备份 份, 16 words, the title. With one word changed two such texts
    # share 21 of 23, with four 18 of 26.
    near = same.replace("word15", "other15")
    far = " ".join(["数据库备份", *words[:12], "o1", "o2", "o3", "o4"])
    cards = [card(question, n, body, title="Same") for n, body in enumerate((same, near, far), 1)]
    assert jaccard(f"Same\n{same}", f"Same\n{near}") == pytest.approx(21 / 23)
    assert jaccard(f"Same\n{same}", f"Same\n{far}") == pytest.approx(18 / 26)
    found = screen(cards, question, sourced=())
    assert [(v.candidate.id, v.outcome) for v in found.verdicts] == [
        (1, "included"), (3, "included"), (2, "excluded"),
    ]  # fmt: skip
    assert found.verdicts[2].reasons[0].code == "duplicate"
    assert "K_0001" in found.verdicts[2].reasons[0].sentence


def test_a_demoted_card_never_displaces_an_included_one(ask, card):
    question = ask("数据库备份")
    raw = card(question, 1, "数据库备份每天凌晨跑", title="备份", kind="session")
    fact = card(question, 2, "数据库备份每天凌晨跑", title="备份")
    found = screen([raw, fact], question, sourced=())
    assert [(v.candidate.id, v.outcome) for v in found.verdicts] == [
        (2, "included"), (1, "excluded"),
    ]  # fmt: skip


def test_what_was_given_already_is_not_given_again_nor_what_says_the_same(ask, card):
    question = ask("数据库备份")
    cards = [
        card(question, 1, "数据库备份每天凌晨跑", title="备份"),
        card(question, 2, "数据库备份每天凌晨跑", title="备份"),
        card(question, 3, "数据库备份要演练恢复"),
    ]
    found = screen(cards, question, sourced=(), given={1})
    assert [(v.candidate.id, v.outcome, *(r.code for r in v.reasons)) for v in found.verdicts] == [
        (3, "included"), (1, "excluded", "given-already"), (2, "excluded", "duplicate"),
    ]  # fmt: skip


def test_no_more_cards_than_allowed(ask, card):
    question = ask("数据库备份")
    bodies = ["凌晨", "演练", "磁带", "异地"]
    cards = [card(question, n, f"数据库备份{body}", title=body) for n, body in enumerate(bodies, 1)]
    found = screen(cards, question, Policy(max_items=3), sourced=())
    assert [v.outcome for v in found.verdicts] == ["included"] * 3 + ["excluded"]
    assert found.verdicts[3].reasons[0].code == "item-limit"
    assert len(screen(cards, question, Policy(max_items=4), sourced=()).shown()) == 4


@pytest.mark.parametrize(
    "fields, code",
    [
        ({"tags": ("Contested",)}, "contested"),
        ({"tags": ("有爭議",)}, "contested"),
        ({"refs": {"contradicts": ["D_0007"]}}, "contested"),
        ({"kind": "session"}, "raw-evidence"),
        ({"tags": ("L0",)}, "raw-evidence"),
        ({"tags": ("raw",)}, "raw-evidence"),
        ({"tags": ("transcript",)}, "raw-evidence"),
        ({"tags": ("原始",)}, "raw-evidence"),
    ],
)
def test_what_is_doubtful_goes_behind(ask, card, fields, code):
    question = ask("数据库备份")
    cards = [card(question, 1, "数据库备份每天", **fields), card(question, 2, "备份的数据库清单")]
    found = screen(cards, question, sourced=())
    assert [(v.candidate.id, v.outcome) for v in found.verdicts] == [
        (2, "included"), (1, "demoted"),
    ]  # fmt: skip
    assert [reason.code for reason in found.verdicts[1].reasons] == [code]


def test_a_card_that_another_contradicts_is_contested(judge):
    assert judge(contested={1}) == ("demoted", "contested")


def test_every_reason_is_told(judge):
    assert judge(sensitivity="private", superseded_by="D_0002", tags=("待复核",)) == (
        "excluded", "sensitivity", "superseded", "needs-review",
    )  # fmt: skip


@pytest.mark.parametrize(
    "text, body",
    [
        ("KX-9000 的保修期是多久", "洗衣机的保修期是三年"),
        ("Zephyr 项目的备份策略", "备份策略：每天一次全量"),
        ("为什么 parse_dates 会报错", "解析报错的排查：先看日志"),
        ("getUserById 抛异常", "抛异常时先看日志"),
        ("端口 8081 被谁占用", "端口被占用时用 lsof 看"),
        ("How do we restore Postgres?", "How we restore the mail store from tape"),
    ],
)
def test_a_set_without_the_name_that_is_asked_for_is_refused(ask, card, text, body):
    question = ask(text)
    found = screen([card(question, 1, body, title="卡")], question, sourced=())
    assert found.refused is not None and found.refused.code == "strong-terms-missing"
    assert not found.shown()
    assert found.verdicts[0].reasons == (found.refused,)


@pytest.mark.parametrize(
    "fields",
    [
        {"title": "KX-9000 手册"},
        {"aliases": ("kx-9000",)},
        {"keywords": ("KX 9000",)},
        {"tags": ("KX-9000",)},
        {"path": "products/KX-9000.md"},
        {"refs": {"files": ["docs/kx-9000.pdf"]}},
        {"matched": "all"},
    ],
)
def test_one_card_that_has_the_name_anywhere_is_enough(ask, card, fields):
    question = ask("KX-9000 的保修期是多久")
    cards = [
        card(question, 1, "洗衣机的保修期是三年"),
        card(question, 2, "保修卡在抽屉里", **fields),
    ]
    found = screen(cards, question, sourced=())
    assert found.refused is None
    assert len(found.shown()) == 2


def test_a_name_that_goes_on_in_the_card_is_held(ask, card):
    question = ask("Postgres 怎么备份")
    found = screen([card(question, 1, "PostgreSQL 用 pg_dump 备份")], question, sourced=())
    assert found.refused is None


@pytest.mark.parametrize(
    "text, body", [("GPT-4", "GPT4"), ("gpt4", "GPT-4"), ("mysql8", "MySQL 8")]
)
def test_a_name_may_be_written_together_or_apart(ask, card, text, body):
    question = ask(f"{text} 怎么配置")
    one = card(question, 1, f"{body} 的配置")
    assert screen([one], question, sourced=()).refused is None


def test_the_name_may_be_in_a_card_that_was_given_already(ask, card):
    question = ask("KX-9000 的保修期是多久")
    cards = [card(question, 1, "KX-9000 是洗衣机"), card(question, 2, "洗衣机的保修期是三年")]
    found = screen(cards, question, sourced=(), given={1})
    assert [v.candidate.id for v in found.shown()] == [2]


def test_half_of_several_names_is_enough(ask, card):
    question = ask("用 Zephyr 部署 Orchid 站点")
    one = card(question, 1, "Orchid 站点部署在 /srv/www")
    assert screen([one], question, sourced=()).refused is None
    question = ask("用 Zephyr 和 Helix 部署 Orchid 站点")
    one = card(question, 1, "Orchid 站点部署在 /srv/www")
    assert screen([one], question, sourced=()).refused is not None


def test_a_set_that_holds_next_to_nothing_of_a_question_without_names_is_refused(ask, card):
    # 周末 is held. Missing are 末去 去哪 里吃 吃火 火锅, 9 each, and 哪里, a tenth of 9, all by half:
    # 3 / (3 + 22.5 + 0.45) = 0.116.
    question = ask("周末去哪里吃火锅", idf=9.0, rare={"周末": 3.0})
    found = screen([card(question, 1, "周末不发布")], question, sourced=())
    assert found.refused is not None
    assert "12 %" in found.refused.sentence
    # Two cards together hold 周末, 吃火 and 火锅, and 里吃 leads from 哪里 to 吃火:
    # 9 / (9 + 9 + 0.45) = 0.49.
    question = ask("周末去哪里吃火锅", idf=9.0, rare={"周末": 3.0, "吃火": 3.0, "火锅": 3.0})
    cards = [card(question, 1, "周末不发布"), card(question, 2, "团建吃火锅")]
    assert screen(cards, question, sourced=()).refused is None
    for least, refused in ((0.487, False), (0.489, True)):
        found = screen(cards, question, Policy(least_share=least), sourced=())
        assert bool(found.refused) == refused


def test_a_set_near_by_vector_is_not_refused_for_its_words(ask, card):
    question = ask("how long are snapshots kept", idf=9.0)
    one = card(question, 1, "快照保留七天", vector_rank=1)
    assert screen([one], question, sourced=()).refused is None


def test_nothing_found_is_no_refusal(ask):
    found = screen([], ask("KX-9000"), sourced=())
    assert found.verdicts == () and found.refused is None


@st.composite
def candidates(draw):
    size = draw(st.integers(0, 6))
    return [
        Candidate(
            id=number, ref=f"K_{number:04}", path=f"{number}.md", source="notes",
            title=draw(st.sampled_from(TEXTS)), kind=draw(st.sampled_from(("note", "signal", "fact"))),
            score=1.0, body=draw(st.text(max_size=30)),
            matched=draw(st.sampled_from(("all", "any", "vector"))),
            vector_rank=draw(st.none() | st.just(1)),
            sensitivity=draw(st.sampled_from(("public", "internal", "private", "secret"))),
            superseded_by=draw(st.none() | st.just("D_0009")),
            tags=draw(st.sampled_from(((), ("raw",), ("待复核",)))),
            confidence=draw(st.floats(0, 1)),
        )
        for number in range(size)
    ]  # fmt: skip


@settings(deadline=None, max_examples=150)
@given(
    candidates(),
    st.text(max_size=40) | st.sampled_from(TEXTS),
    st.sets(st.sampled_from(("public", "internal", "private", "secret"))),
)
def test_superseded_and_secret_cards_are_never_given_and_none_is_lost(cards, text, allowed):
    from datetime import datetime, timezone

    from datasette_memory.search.question import Question
    from datasette_memory.text.query import parse

    terms = parse(text)
    now = datetime(2026, 12, 1, tzinfo=timezone.utc)
    question = Question(text, terms, (1.0,) * len(terms), now)
    found = screen(cards, question, Policy(sensitivities=frozenset(allowed)), sourced=())
    assert sorted(v.candidate.id for v in found.verdicts) == list(range(len(cards)))
    for verdict in found.shown():
        assert verdict.candidate.superseded_by is None
        assert verdict.candidate.sensitivity in allowed - {"secret"}
    order = [v.outcome for v in found.verdicts]
    assert order == sorted(order, key=("included", "demoted", "excluded").index)
    assert all(bool(v.reasons) == (v.outcome != "included") for v in found.verdicts)
