"""Each stage of ranking, and what holds for all of them."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datasette_memory.search import stages
from datasette_memory.search.filters import Filters
from datasette_memory.search.lookup import Lookup
from datasette_memory.search.pipeline import run
from datasette_memory.search.stages import STAGES

from .made import NOW, ago, ask, card, scores

PLAIN = ask("备份")


def ids(hits) -> list[int]:
    return [one.id for one in hits]


# Fusion


def test_the_mix_keeps_the_order_and_makes_the_best_one():
    hits = stages.mix([card(1, 8.0), card(2, 8.0), card(3, 2.0)], PLAIN)
    assert scores(hits) == {1: 1.0, 2: 1.0, 3: 0.25}
    assert stages.mix([], PLAIN) == []
    assert scores(stages.mix([card(1, 0.0)], PLAIN)) == {1: 0.0}


def test_ranks_put_first_what_is_on_both_lists():
    hits = [card(1, lexical_rank=1), card(2, lexical_rank=2, vector_rank=1), card(3, vector_rank=2)]
    assert ids(stages.rrf(hits, PLAIN)) == [2, 1, 3]


# Names


@pytest.mark.parametrize(
    "fields, phi",
    [
        # All of two terms, and the whole title.
        ({"title": "备份"}, 2.0),
        ({"title": "x", "aliases": ("备份",)}, 2.0),
        # A tag holds them; it counts 0.3. A project too.
        ({"tags": ("备份",)}, 1.3),
        ({"tags": ("备份",), "project": "备份"}, 1.6),
        ({"summary": "每天备份"}, 1.0),
        ({"keywords": ("备份",)}, 1.0),
        # The body says nothing here.
        ({"body": "备份"}, 0.0),
    ],
)
def test_how_far_a_question_names_a_card(fields, phi):
    assert stages.phrase(card(1, **fields), PLAIN) == pytest.approx(phi)


def test_a_card_that_holds_less_than_half_in_its_names_is_not_named():
    question = ask("备份 恢复 演练")
    assert stages.phrase(card(1, title="备份", tags=("备份",)), question) == 0
    # Two of three terms, and both tags stand in the question.
    named = card(1, title="x", tags=("备份", "恢复"))
    assert stages.phrase(named, question) == pytest.approx(2 / 3 + 0.6)


# How things stand


@pytest.mark.parametrize(
    "text",
    [
        "备份现在怎么跑的", "网关迁移目前到哪一步", "索引重建的进度", "限流还在用 Redis 吗",
        "最新的端口表", "what is the current port", "is the gateway still down", "deploy status",
        "Latest numbers of the ingest", "这条结论过期了吗",
    ],
)  # fmt: skip
def test_questions_about_how_things_stand(text):
    assert stages.asks_for_status(ask(text))


@pytest.mark.parametrize(
    "text",
    ["备份脚本放在哪里", "who wrote the nowhere module", "currents of the river", "distills"],
)
def test_other_questions(text):
    assert not stages.asks_for_status(ask(text))


STATES = {
    "handoff.md": f"---\nkind: handoff\nupdated: {ago(2)}\n---\n# 值班交接\n\n网关迁到一半。",
    "old.md": f"---\nkind: handoff\nupdated: {ago(90)}\n---\n# 春天的交接\n\n网关还没动。",
    "private.md": f"---\nkind: signal\nupdated: {ago(1)}\nsensitivity: private\n---\n# 告警\n\n磁盘。",
    "plan.md": "# 网关迁移方案\n\n网关迁移分三步。",
}


def lookup(searcher, **filters) -> Lookup:
    return Lookup(searcher.connection, Filters(**filters))


def test_a_question_about_how_things_stand_gets_the_latest_states(make_searcher):
    searcher = make_searcher(STATES)
    found = searcher.candidates("网关迁移方案")
    question = dataclasses.replace(found.question(NOW), text="网关迁移方案现在到哪了")
    allowed = lookup(searcher, sensitivities=("public", "internal"))
    plan = [one for one in found.candidates if one.path == "plan.md"]
    hits = stages.status_supplement(plan, question, allowed)
    assert [(one.path, one.origin) for one in hits] == [
        ("plan.md", "recall"),
        ("handoff.md", "status"),
    ]
    assert stages.status_supplement(plan, found.question(NOW), allowed) == plan


def test_a_state_that_was_found_is_lifted():
    question = ask("网关现在怎样")
    hits = [card(1, 1.0), card(2, 0.6, kind="handoff"), card(3, 0.6, kind="signal", ttl=0)]

    class Nothing:
        def latest(self, kinds, limit):
            return []

        def load(self, known):
            return []

    found = stages.status_supplement(hits, question, Nothing())
    assert scores(found) == {2: pytest.approx(1.1), 1: 1.0, 3: 0.6}
    assert ids(found) == [2, 1, 3]


def test_runtime_cards_rise_only_where_they_are_asked_for():
    hits = [
        card(1, 1.0),
        card(2, 0.95, tags=("runtime-state", "网关")),
        card(3, 0.94, tags=("网关",)),
    ]
    assert ids(stages.runtime_boost(hits, ask("网关现在怎样"))) == [2, 1, 3]
    assert stages.runtime_boost(hits, ask("网关怎样部署")) == hits


# Value


def test_of_two_that_answer_as_well_the_newer_and_the_surer_comes_first():
    hits = [card(1, updated=ago(400), created=ago(400)), card(2, confidence=0.4), card(3)]
    assert ids(stages.decay(hits, PLAIN)) == [3, 2, 1]


def test_a_much_better_answer_stays_first_however_old():
    hits = [card(1, 1.0, kind="signal", updated=ago(4000), created=ago(4000)), card(2, 0.6)]
    assert ids(stages.decay(hits, PLAIN)) == [1, 2]


def test_age_counts_from_the_last_read_or_update():
    one = card(1, created=ago(100), updated=ago(50))
    assert stages.age(one, PLAIN) == pytest.approx(50)
    assert stages.age(dataclasses.replace(one, last_read=ago(3)), PLAIN) == pytest.approx(3)
    assert stages.age(card(1, created=ago(-5), updated=None), PLAIN) == 0
    assert stages.age(card(1, created="soon", updated=None), PLAIN) == 0


def test_half_lives_are_those_of_the_kinds():
    kinds = {"decision": 90, "fact": 60, "episode": 30, "signal": 7, "knowledge": 180, "爱好": 60}
    assert {kind: stages.half_life(card(1, kind=kind)) for kind in kinds} == kinds


def test_what_was_adopted_rises_and_what_was_rejected_falls():
    hits = [card(1, 1.0, contradict=3, gain=-0.3), card(2, 0.9), card(3, 0.8, support=3, gain=0.3)]
    # 1 - 0.3 - 0.15, 1, 1 + 0.09 + 0.15
    assert scores(stages.feedback(hits, PLAIN)) == {
        3: pytest.approx(0.992),
        2: 0.9,
        1: pytest.approx(0.55),
    }


# Filters


@pytest.mark.parametrize(
    "fields, stale",
    [
        ({"kind": "signal", "updated": ago(13)}, False),
        ({"kind": "signal", "updated": ago(15)}, True),
        ({"kind": "handoff", "valid_until": ago(1)}, True),
        ({"kind": "handoff", "ttl": 3, "created": ago(4)}, True),
        ({"kind": "handoff", "tags": ("过期",)}, True),
        ({"kind": "fact", "tags": ("Runtime State",), "updated": ago(15)}, True),
        ({"kind": "fact", "tags": ("runtime-state",), "updated": ago(13)}, False),
        # What is no state does not pass.
        ({"kind": "decision", "updated": ago(4000)}, False),
        ({"kind": "knowledge", "tags": ("runtime",), "updated": ago(4000)}, False),
    ],
)
def test_states_that_have_passed(fields, stale):
    assert bool(stages.is_stale(card(1, **fields), PLAIN)) is stale


def test_runtime_states_go_and_handoffs_are_left_to_the_firewall():
    hits = [
        card(1, kind="signal", updated=ago(90)),
        card(2, tags=("runtime-state",), ttl=0),
        card(3),
    ]
    assert ids(stages.stale_state(hits, PLAIN)) == [1, 3]


def test_replaced_and_secret_cards_go():
    hits = [card(1, superseded_by="K_0003"), card(2, sensitivity="secret"), card(3)]
    assert ids(stages.supersession(hits, PLAIN)) == [3]


# Diversity and expansion


def test_what_says_the_same_again_waits():
    same = "每天凌晨三点把数据库备份到第二台机器"
    hits = [card(1, 1.0, title="a", body=same), card(2, 0.9, title="a", body=same),
            card(3, 0.8, title="b", body="恢复演练每个季度做一次")]  # fmt: skip
    found = stages.mmr(hits, PLAIN)
    assert ids(found) == [1, 3, 2]
    # 0.7 of the relevance; the second says the same as the first: 0.7 * 0.9 - 0.3 * 1
    assert scores(found)[1] == pytest.approx(0.7)
    assert scores(found)[2] == pytest.approx(0.33)
    assert ids(stages.mmr(hits, PLAIN, lam=1.0)) == [1, 2, 3]


LINKED = {
    "a.md": "---\nid: K_0001\n---\n# 备份策略\n\n见 [[验证记录]] 与 [[旧方案]]。",
    "b.md": "---\nid: K_0002\n---\n# 验证记录\n\n演练一次通过，下一步看 [[远处]]。",
    "c.md": "---\nid: K_0003\nsuperseded_by: K_0001\n---\n# 旧方案\n\n磁带。",
    "d.md": "---\nid: K_0004\n---\n# 远处\n\n两步之外。",
    "e.md": "---\nid: K_0005\ntags: [draft]\n---\n# 草稿\n\n引用 [[备份策略]]。",
}


def test_links_of_the_best_bring_in_their_neighbours(make_searcher):
    searcher = make_searcher(LINKED)
    found = searcher.candidates("备份策略")
    first = [one for one in found.candidates if one.path == "a.md"]
    question = found.question(NOW)
    hits = stages.graph(first, question, lookup(searcher))
    assert [(one.path, one.origin) for one in hits[1:]] == [("b.md", "graph"), ("e.md", "graph")]
    assert hits[1].score == pytest.approx(first[0].score * 0.5)
    hits = stages.graph(first, question, lookup(searcher, exclude_tags=("draft",)))
    assert [one.path for one in hits] == ["a.md", "b.md"]
    assert stages.graph(first, question, lookup(searcher, sensitivities=())) == first


# The table


def test_the_table_names_each_stage_once_and_says_why():
    names = [stage.name for stage in STAGES]
    assert len(names) == len(set(names))
    assert all(stage.why for stage in STAGES)
    # What is yet to come has its place, and is off.
    assert [stage.name for stage in STAGES if stage.function is None] == ["rerank", "hopfield"]
    assert not any(stage.on for stage in STAGES if stage.function is None)


# What holds for all of them


KINDS = st.sampled_from(["note", "decision", "signal", "handoff", "爱好"])
TAGS = st.lists(st.sampled_from(["runtime-state", "备份", "stale", "x"]), max_size=2, unique=True)
CARDS = st.lists(
    st.builds(
        dict,
        score=st.floats(0, 50),
        kind=KINDS,
        tags=TAGS.map(tuple),
        title=st.sampled_from(["备份", "现在", "note", ""]),
        body=st.sampled_from(["每天备份", "恢复演练", ""]),
        confidence=st.floats(0, 1),
        updated=st.sampled_from([ago(0), ago(30), ago(900), None, "soon"]),
        support=st.integers(0, 40),
        contradict=st.integers(0, 40),
        gain=st.floats(-1, 1),
        reads=st.integers(0, 500),
        lexical_rank=st.none() | st.integers(1, 30),
        vector_rank=st.none() | st.integers(1, 30),
        superseded_by=st.sampled_from([None, None, "K_1"]),
        sensitivity=st.sampled_from(["public", "internal", "private", "secret"]),
    ),
    max_size=8,
)
QUERIES = st.sampled_from(["备份", "备份现在怎样", "status of the backup", "?", ""])


@given(cards=CARDS, query=QUERIES)
@settings(max_examples=150, deadline=None)
def test_no_stage_invents_a_card_and_all_keep_the_order_of_scores(cards, query):
    best_first = sorted(cards, key=lambda fields: -fields["score"])
    hits = [card(number, **fields) for number, fields in enumerate(best_first, 1)]
    question = ask(query)
    for stage in STAGES:
        if stage.function is None or stage.looks_up and stage.reason is None:
            continue
        after = stage.function(hits, question)
        assert set(ids(after)) <= set(ids(hits)), stage.name
        assert len(set(ids(after))) == len(after), stage.name
        values = [one.score for one in after]
        assert values == sorted(values, reverse=True), stage.name


@given(cards=CARDS, query=QUERIES, names=st.sets(st.sampled_from([one.name for one in STAGES])))
@settings(max_examples=100, deadline=None)
def test_replaced_and_secret_cards_never_come_through(cards, query, names):
    hits = [card(number, **fields) for number, fields in enumerate(cards, 1)]
    after, _ = run(hits, ask(query), names | {"supersession"})
    assert not [one for one in after if one.superseded_by or one.sensitivity == "secret"]
