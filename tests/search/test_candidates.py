"""What recall gives to ranking: the answer of plain search, with all that is known of each card."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datasette_memory.search.candidate import MAX_BODY
from datasette_memory.search.filters import Filters
from datasette_memory.search.pipeline import run
from datasette_memory.search.stages import DEFAULT, STAGES

from .made import NOW

CARDS = {
    "named.md": "---\ntitle: 备份\n---\n只有名字。",
    "often.md": "# 恢复演练\n\n备份 备份 备份 备份，恢复备份。",
    "once.md": "# 端口\n\n备份端口 8012。",
    "old.md": "---\nsuperseded_by: K_0009\n---\n# 备份旧法\n\n备份 备份 备份",
    "long.md": "# 长文\n\n" + "备份策略说明。" * 6_000,
    "word.md": "# Tools\n\nbackups of sqlite3 and requests",
}


@pytest.mark.parametrize(
    "query",
    ["备份", "备份 端口", "备份到哪个端口去了", "sqlite", "how are backups of sqlite made", "无"],
)
@pytest.mark.parametrize("superseded", [False, True])
def test_the_order_is_that_of_the_search(query, superseded, make_searcher):
    searcher = make_searcher(CARDS)
    hits = searcher.search(query, limit=10, superseded=superseded).hits
    found = searcher.candidates(query, superseded=superseded).candidates
    assert [one.id for one in found] == [hit.id for hit in hits]
    assert [(one.matched, one.coverage) for one in found] == [
        (hit.matched, hit.coverage) for hit in hits
    ]
    scores = [one.score for one in found]
    assert scores == sorted(scores, reverse=True)
    assert [one.lexical_rank for one in found] == list(range(1, len(found) + 1))
    assert all(one.vector_rank is None for one in found)


def test_what_is_known_of_a_card(make_searcher):
    searcher = make_searcher(
        {
            "a.md": "---\nid: D_0007\ntitle: 备份\nkind: decision\nsummary: 每天一次\ntags: [运维, db]\n"
            "keywords: [快照]\naliases: [backup]\nproject: infra\nconfidence: 0.9\nttl: 30\n"
            "sensitivity: public\npriority: 2\nversion: 3\ncreated: 2026-11-01\n"
            "updated: 2026-11-02T08:00:00+08:00\nvalid_from: 2026-10-01\nvalid_until: 2027-01-01\n"
            "refs: {files: [a.py]}\n---\n每天备份。"
        }
    )
    searcher.connection.execute(
        "insert into card_stats (card_id, reads, last_read, support, contradict, gain) "
        "values (1, 4, '2026-11-20T08:00:00.000Z', 2, 1, 0.1)"
    )
    (one,) = searcher.candidates("备份").candidates
    assert (one.ref, one.path, one.source, one.title) == ("D_0007", "a.md", "notes", "备份")
    assert (one.kind, one.project, one.summary) == ("decision", "infra", "每天一次")
    assert (one.tags, one.keywords, one.aliases) == (("运维", "db"), ("快照",), ("backup",))
    assert (one.confidence, one.sensitivity, one.priority, one.ttl) == (0.9, "public", 2, 30)
    assert (one.created, one.updated) == ("2026-11-01", "2026-11-02T08:00:00+08:00")
    assert (one.valid_from, one.valid_until) == ("2026-10-01", "2027-01-01")
    assert (one.version, one.refs, one.superseded_by) == (3, {"files": ["a.py"]}, None)
    assert (one.reads, one.last_read) == (4, "2026-11-20T08:00:00.000Z")
    assert (one.support, one.contradict, one.gain) == (2, 1, 0.1)
    assert (one.body.strip(), one.origin) == ("每天备份。", "recall")


def test_a_long_body_is_cut_and_its_length_told(make_searcher):
    found = make_searcher(CARDS).candidates("备份 策略").candidates
    (one,) = [one for one in found if one.path == "long.md"]
    assert len(one.body) == MAX_BODY
    assert one.length >= 42_000


def test_which_terms_a_card_holds_and_what_each_is_worth(make_searcher):
    found = make_searcher(CARDS).candidates("备份到哪个端口去了")
    assert [term.name for term in found.terms] == [
        "备份", "份到", "到哪", "哪个", "个端", "端口", "口去", "去了",
    ]  # fmt: skip
    (one,) = [one for one in found.candidates if one.path == "once.md"]
    assert one.held == (True, False, False, False, False, True, False, False)
    assert one.coverage == 0.25
    # Five of six cards hold 备份, one 端口: what is rare is worth more.
    assert 0 < found.worth[0] < found.worth[5]
    question = found.question(NOW, "infra")
    assert (question.text, question.terms, question.worth) == (
        "备份到哪个端口去了", found.terms, found.worth,
    )  # fmt: skip
    assert (question.now, question.project) == (NOW, "infra")


def test_keywords_are_worth_something_too(make_searcher):
    found = make_searcher(CARDS).candidates("备份 端口")
    assert [one.held for one in found.candidates] == [(True, True)]
    assert 0 < found.worth[0] < found.worth[1]


def test_left_out_cards_are_counted(make_searcher):
    found = make_searcher(CARDS).candidates("备份")
    assert found.left_out == 1
    assert "1 superseded card is left out." in found.notice


def test_so_many_at_the_most(make_searcher):
    searcher = make_searcher({f"{number}.md": f"备份 {number}" for number in range(40)})
    assert len(searcher.candidates("备份在哪一台机器上").candidates) == 30
    # Of those that hold keywords fewer are looked at.
    assert len(searcher.candidates("备份").candidates) == 20
    assert len(searcher.candidates("备份", limit=3).candidates) == 3


@pytest.mark.parametrize("query", ["", "?!", "。。"])
def test_nothing_asked_is_nothing_found(query, make_searcher):
    found = make_searcher(CARDS).candidates(query)
    assert (found.candidates, found.terms, found.worth) == ([], (), ())


SECRETIVE = {
    "public.md": "---\nsensitivity: public\ntags: [db]\n---\n备份一。",
    "internal.md": "---\ntags: [db, Draft]\n---\n备份二。",
    "private.md": "---\nsensitivity: private\nkind: decision\n---\n备份三。",
    "secret.md": "---\nsensitivity: secret\n---\n备份四。",
}


@pytest.mark.parametrize(
    "filters, paths",
    [
        (Filters(), {"public.md", "internal.md", "private.md"}),
        (Filters(sensitivities=("public", "internal")), {"public.md", "internal.md"}),
        (Filters(sensitivities=("PRIVATE",)), {"private.md"}),
        (Filters(sensitivities=("secret",)), set()),
        (Filters(sensitivities=()), set()),
        (Filters(kinds=("decision", "policy")), {"private.md"}),
        (Filters(kinds=()), set()),
        (Filters(exclude_tags=("draft",)), {"public.md", "private.md"}),
        (Filters(exclude_tags=("#db",)), {"private.md"}),
        (Filters(exclude_tags=("draft", "nothing"), tags=("db",)), {"public.md"}),
        (Filters(project="nowhere"), set()),
    ],
)
@pytest.mark.parametrize("query", ["备份", "备份写在哪里了"])
def test_filters(filters, paths, query, make_searcher):
    searcher = make_searcher(SECRETIVE)
    assert {one.path for one in searcher.candidates(query, filters).candidates} == paths
    assert {hit.path for hit in searcher.search(query, filters=filters).hits} == paths


@pytest.mark.parametrize("filters", [Filters(sensitivities=()), Filters(project="nowhere")])
def test_where_nothing_is_allowed_the_index_is_not_asked(filters, make_searcher):
    searcher = make_searcher(SECRETIVE)
    asked = []
    searcher.connection.set_trace_callback(asked.append)
    assert searcher.candidates("备份写在哪里了", filters).candidates == []
    searcher.connection.set_trace_callback(None)
    # What the terms are worth is told all the same, by what each reaches in the whole index.
    assert not [sql for sql in asked if "nowhere" in sql and "match" in sql.lower()]


HIDDEN = {
    "new.md": "---\nid: D_0001\n---\n# 备份 backup\n\n每天备份到 nas-01。",
    "old.md": "---\nid: D_0002\nsuperseded_by: D_0001\n---\n# 备份 backup\n\n每周备份到 nas-00。",
    "secret.md": "---\nid: D_0003\nsensitivity: secret\n---\n# 备份 backup\n\n口令在 nas-02。",
    "link.md": "# 旧方案\n\n见 [[D_0002]] 与 [[D_0003]]。备份现在怎么样了。",
}


def test_whatever_is_asked_nothing_superseded_or_secret_comes_through(make_searcher):
    searcher = make_searcher(HIDDEN)
    every_stage = [stage.name for stage in STAGES]

    @given(
        query=st.lists(
            st.sampled_from(
                ["备份", "backup", "nas-00", "nas-02", "口令", "现在", "D_0002", "每周"]
            )
            | st.text(max_size=8),
            max_size=5,
        ).map(" ".join),
        superseded=st.booleans(),
        stages=st.sampled_from([DEFAULT, every_stage]),
    )
    @settings(max_examples=80, deadline=None)
    def check(query, superseded, stages):
        found = searcher.candidates(query, superseded=superseded)
        ranked, _ = run(
            found.candidates, found.question(NOW), stages, connection=searcher.connection
        )
        assert {one.path for one in ranked} <= {"new.md", "link.md"}

    check()
