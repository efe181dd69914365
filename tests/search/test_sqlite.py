"""The search itself: which cards, in which order, called what, and what is said about them."""

import json
from datetime import datetime, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datasette_memory.search.filters import Filters
from datasette_memory.search.searcher import clamp
from datasette_memory.search.sqlite import is_expired


def found(result) -> list[tuple[str, str]]:
    return [(hit.path.removesuffix(".md"), hit.matched) for hit in result.hits]


WORKSHOP = {
    "sqlite.md": "# 数据库\n\n索引放在 sqlite3 里，装了 requests 库。",
    "key.md": "# 免密登录\n\n登录使用私钥 ~/.ssh/id_ed25519，不用密码。",
    "server.md": "# 阿里云服务器\n\necs-prod-02 在杭州，版本 v1.2.3。",
    "code.md": "# Batch\n\ngetUserById is called once for each row.",
    "words.md": "# 运维\n\n词云 分词 快照 记忆",
}


@pytest.mark.parametrize(
    "query, expected",
    [
        # Words of two characters, which trigrams cannot find.
        ("运维", [("words", "all")]),
        ("词云", [("words", "all")]),
        ("分词", [("words", "all")]),
        ("快照", [("words", "all")]),
        ("记忆", [("words", "all")]),
        ("阿里云", [("server", "all")]),
        ("私钥", [("key", "all")]),
        # Part of a run that unicode61 takes for one word.
        ("使用私钥", [("key", "all")]),
        # A word that goes on is found by its beginning, and not the other way round.
        ("sqlite", [("sqlite", "all-prefix")]),
        ("sqlite3", [("sqlite", "all")]),
        ("sqlite3x", []),
        ("ed2551", [("key", "all-prefix")]),
        # An English ending is none of a prefix's business.
        ("request", [("sqlite", "all")]),
        ("calling rows", [("code", "all")]),
        # A single letter is never a prefix.
        ("s", []),
        ("g", []),
        # Names with signs in them are phrases, whole or in part.
        ("ecs-prod", [("server", "all")]),
        ("ecs-prod-02", [("server", "all")]),
        ("prod-ecs", []),
        ("id_ed25519", [("key", "all")]),
        ("id", [("key", "all"), ("code", "all")]),
        ("v1.2.3", [("server", "all")]),
        ("v1.3", []),
        ("~/.ssh/id_ed25519", [("key", "all")]),
        # camelCase by its parts, which memory-agent could not do.
        ("userById", [("code", "all")]),
        ("getUserById", [("code", "all")]),
        ("getuserbyid", [("code", "all")]),
        # A single character is the beginning of a pair.
        ("钥", [("key", "all")]),
        # Several words: all of them first, any of them after.
        ("私钥 登录", [("key", "all")]),
        ("私钥 杭州", [("server", "any"), ("key", "any")]),
        ("getUser 杭州机房", [("code", "any"), ("server", "any")]),
        ("getUse 杭州", [("code", "any-prefix"), ("server", "any")]),
        # What is not there is not there.
        ("向量", []),
        # A question that only shares 装了 with a card is said to.
        ("本地装了什么模型", [("sqlite", "any")]),
    ],
)
def test_the_table_of_tiers(query, expected, make_searcher):
    assert sorted(found(make_searcher(WORKSHOP).search(query))) == sorted(expected)


GREEK = {
    "both.md": "alpha beta",
    "prefix.md": "alphabet betatron",
    "one.md": "alpha " + "filler " * 50,
    "two.md": "beta beta beta",
    "loose.md": "alphabet",
    "none.md": "gamma",
}


def test_cards_that_hold_all_keywords_are_the_whole_answer(make_searcher):
    result = make_searcher(GREEK).search("alpha beta")
    assert (found(result), result.notice) == ([("both", "all")], None)
    less = {path: text for path, text in GREEK.items() if path != "both.md"}
    assert found(make_searcher(less).search("alpha beta")) == [("prefix", "all-prefix")]


NAMED = {
    "title.md": "---\ntitle: 运维值班速查\n---\n电话在第一页。",
    "alias.md": "---\ntitle: 磁盘写满\naliases: [八月事故日志]\n---\n先删压舱文件。",
    "link.md": "先写 [[对象存储迁移方案]]。",
    "mention.md": "忘了就看运维值班速查、八月事故日志。",
    "parts.md": "值班的人速查运维手册；事故日志在八月；迁移对象存储，方案另写。",
}


@pytest.mark.parametrize(
    "query, expected",
    [
        ("运维值班速查", ["title", "mention"]),
        ("八月事故日志", ["alias", "mention"]),
        ("对象存储迁移方案", ["link"]),
    ],
)
def test_who_asks_for_a_card_by_its_name_gets_it_and_who_names_it(make_searcher, query, expected):
    assert found(make_searcher(NAMED).search(query)) == [(one, "all") for one in expected]


def test_what_no_card_is_called_is_asked_as_before(make_searcher):
    less = {path: text for path, text in NAMED.items() if path != "title.md"}
    assert found(make_searcher(less).search("运维值班速查")) == [
        ("mention", "all"),
        ("parts", "any"),
    ]


def test_without_them_any_term_counts_and_prefixes_fill_up(make_searcher):
    less = {path: GREEK[path] for path in ("one.md", "two.md", "loose.md", "none.md")}
    result = make_searcher(less).search("alpha beta")
    # The short card that says it three times is better than the long one that says it once.
    assert found(result) == [("two", "any"), ("one", "any"), ("loose", "any-prefix")]
    assert [round(hit.coverage, 3) for hit in result.hits] == [0.5, 0.5, 0.5]
    assert result.tier == "any"
    assert found(make_searcher(less).search("alpha beta", limit=2)) == found(result)[:2]


def test_a_question_takes_what_holds_most_of_it(make_searcher):
    """Also where a card holds every word of it by accident."""
    searcher = make_searcher(
        {
            "accident.md": "how to restore what is in a backup " + "and other things " * 200,
            "answer.md": "backup backup restore restore: the drill",
            "half.md": "a backup",
            **{f"{number}.md": "how is it in what to do a thing" for number in range(20)},
        }
    )
    result = searcher.search("how to restore what is in a backup")
    assert found(result)[0] == ("answer", "any")
    assert sorted(found(result)[1:3]) == [("accident", "all"), ("half", "any")]
    assert result.tier == "all"


def test_without_an_exact_hit_the_first_tier_with_one_is_named(make_searcher):
    searcher = make_searcher({"a.md": "alpha", "b.md": "beta"})
    assert searcher.search("alpha beta").tier == "any"
    assert searcher.search("alph").tier == "all-prefix"
    assert searcher.search("gamma").tier is None


@pytest.mark.parametrize(
    "limit, hits", [(0, 1), (-1, 1), (1, 1), (5, 5), (20, 20), (21, 20), (10**9, 20)]
)
def test_the_limit_is_clamped(limit, hits, make_searcher):
    searcher = make_searcher({f"{number}.md": "willow" for number in range(25)})
    assert len(searcher.search("willow", limit=limit).hits) == hits
    assert clamp(limit) == hits


def test_equal_cards_keep_their_order(make_searcher):
    searcher = make_searcher({f"{number:02}.md": "willow" for number in range(30)})
    first = found(searcher.search("willow", limit=20))
    assert len(set(first)) == 20
    assert first == [(f"{number:02}", "all") for number in range(20)]
    assert found(searcher.search("willow", limit=7)) == first[:7]


SUPERSESSION = {
    "new.md": "---\nid: D_0002\nsupersedes: D_0001\n---\nwillow in short, at length and in general",
    "old.md": "---\nid: D_0001\n---\nwillow",
    "older.md": "---\nid: D_0000\nsuperseded_by: D_0001\n---\nwillow willow",
    "other.md": "poplar",
}


def test_superseded_cards_are_left_out_counted_and_shown_on_demand(make_searcher):
    searcher = make_searcher(SUPERSESSION)
    result = searcher.search("willow")
    assert found(result) == [("new", "all")]
    assert result.notice == "2 superseded cards are left out."
    result = searcher.search("willow", superseded=True)
    assert sorted(found(result)) == [("new", "all"), ("old", "all"), ("older", "all")]
    assert result.notice is None
    assert {hit.ref: hit.superseded_by for hit in result.hits} == {
        "D_0002": None, "D_0001": "D_0002", "D_0000": "D_0001",
    }  # fmt: skip


def test_one_of_them_is_one_card(make_searcher):
    result = make_searcher(SUPERSESSION).search("willow", filters=Filters(source="notes"), limit=1)
    assert result.notice == "2 superseded cards are left out."
    result = make_searcher({"a.md": "---\nsuperseded_by: x\n---\nwillow"}).search("willow")
    assert (result.hits, result.tier) == ((), None)
    assert result.notice == "1 superseded card is left out."


COVERAGE = {
    "title.md": "---\ntitle: alpha\n---\nbeta",
    "lists.md": "---\ntags: [alpha]\nkeywords: [beta]\naliases: [gamma]\nproject: delta\n---\n",
    "summary.md": "---\nsummary: alpha and beta\n---\nnothing",
    "ending.md": "alphas",
    "prefix.md": "alphabet",
}


@pytest.mark.parametrize(
    "query, path, coverage",
    [
        # Of alpha, beta, zulu the card holds two.
        ("alpha beta zulu", "title", 2 / 3),
        ("alpha beta zulu", "lists", 2 / 3),
        ("alpha beta gamma delta zulu", "lists", 4 / 5),
        ("alpha beta zulu", "summary", 2 / 3),
        ("alpha zulu yankee", "ending", 1 / 3),
        ("alpha zulu", "prefix", 1 / 2),
        ("alpha alpha ALPHA zulu", "title", 1 / 2),
        # 阿里 里云 云服 服务 务器: two of five pairs.
        ("阿里云服务器", "chinese", 2 / 5),
    ],
)
def test_coverage(query, path, coverage, make_searcher):
    searcher = make_searcher(COVERAGE | {"chinese.md": "阿里云"})
    hits = {hit.path: hit for hit in searcher.search(query, limit=20).hits}
    assert hits[f"{path}.md"].coverage == pytest.approx(coverage)
    assert hits[f"{path}.md"].matched.startswith("any")


NOTICES = {
    "one.md": "alpha one",
    "two.md": "alpha beta two",
    "three.md": "alpha beta gamma three",
}


@pytest.mark.parametrize(
    "query, notice",
    [
        ("alpha", None),
        (
            "alpha zulu",
            "Low confidence: no card holds every term; these hold 50 % of them. "
            "Names and identifiers find more than whole questions.",
        ),
        (
            "alpha beta zulu",
            "Low confidence: no card holds every term; these hold 33 to 67 % of them. "
            "Names and identifiers find more than whole questions.",
        ),
        ("alpha beta", None),
        (
            "alpha beta gamma three",
            "Low confidence in 2 of 3 hits: they hold only 25 to 50 % of the terms.",
        ),
        ("", "The query holds no letter or digit to search for."),
        ("?!* 。，", "The query holds no letter or digit to search for."),
        ("zulu", None),
        (
            "three " + " ".join(f"w{number}" for number in range(100)),
            "Low confidence: no card holds every term; these hold 2 % of them. "
            "Names and identifiers find more than whole questions. "
            "The query is long: its first 64 different terms count.",
        ),
    ],
)
def test_what_has_to_be_said(query, notice, make_searcher):
    assert make_searcher(NOTICES).search(query).notice == notice


@pytest.mark.parametrize(
    "front, body, query, snippet, marked",
    [
        # From the body, where the body has it.
        ("title: willow", "one willow tree", "willow", "one willow tree", ["willow"]),
        ("summary: a willow", "one willow tree", "willow", "one willow tree", ["willow"]),
        # From a summary of the author's own, where the body has it not.
        ("summary: a willow", "one tree", "willow", "a willow", ["willow"]),
        # The beginning of the body, where a title or a list has it.
        ("title: willow", "one tree", "willow", "one tree", []),
        ("tags: [willow]", "one tree", "willow", "one tree", []),
        # Without a body what there is.
        ("title: willow tree", "", "willow", "willow tree", ["willow"]),
        ("title: willow\nsummary: in short", "", "willow", "in short", []),
        ("title: 阿里云服务器", "", "阿里云", "阿里云服务器", ["阿里云"]),
        # As it was written, and not as it is indexed.
        ("", "登录使用私鑰，\n\n  见 `ID_ed25519`。", "私钥 id_ed25519",
         "登录使用私鑰， 见 `ID_ed25519`。", ["私鑰", "ID_ed25519"]),
    ],
)  # fmt: skip
def test_snippets(front, body, query, snippet, marked, make_searcher):
    searcher = make_searcher({"a.md": f"---\n{front}\n---\n{body}" if front else body})
    (hit,) = searcher.search(query).hits
    assert hit.snippet == snippet
    assert [hit.snippet[start:end] for start, end in hit.highlights] == marked


def test_a_snippet_is_cut_around_the_densest_matches_of_a_long_text(make_searcher):
    far = "willow " + "填充的句子。" * 300
    searcher = make_searcher({"a.md": far + "此处 willow 与 poplar 并立。" + "其余。" * 300})
    (hit,) = searcher.search("willow poplar").hits
    assert "willow 与 poplar 并立" in hit.snippet
    assert hit.snippet.startswith("…") and hit.snippet.endswith("…")
    assert len(hit.snippet) < 150


def test_a_hit_is_the_same_object_everywhere(make_searcher):
    text = "---\nid: F_0001\ntitle: <b>端口</b>\nttl: 1\ncreated: 2020-01-01\n---\n<i>8765</i> 端口"
    result = make_searcher({"12-Facts/端口.md": text}).search("8765")
    (hit,) = result.hits
    found = result.to_dict()
    score = found["hits"][0].pop("score")
    assert score == round(hit.score, 4)
    assert found == {
        "query": "8765",
        "tier": "all",
        "count": 1,
        "hits": [
            {
                "id": 1,
                "ref": "F_0001",
                "path": "12-Facts/端口.md",
                "title": "<b>端口</b>",
                "kind": "fact",
                "source": "notes",
                "matched": "all",
                "coverage": 1.0,
                "snippet": "<i>8765</i> 端口",
                "highlights": [[3, 7]],
                "expired": True,
                "superseded_by": None,
            }
        ],
        "notice": None,
    }
    json.dumps(found)
    assert hit.html() == "&lt;i&gt;<b>8765</b>&lt;/i&gt; 端口"


NOW = datetime(2026, 10, 1, 12, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    "created, ttl, valid_until, expired",
    [
        (None, None, None, False),
        ("2026-01-01", None, None, False),
        # A date lasts to its end, a moment does not.
        (None, None, "2026-09-30", True),
        (None, None, "2026-10-01", False),
        (None, None, "2026-10-01T12:00:00+00:00", True),
        (None, None, "2026-10-01T12:00:01+00:00", False),
        (None, None, "2026-10-01T19:59:00+08:00", True),
        (None, None, "2026-10-01T20:01:00+08:00", False),
        (None, None, "2026-10-01T12:00:01", False),
        # So many days after it was made.
        ("2026-09-30T12:00:00+00:00", 1, None, True),
        ("2026-09-30T12:00:01+00:00", 1, None, False),
        ("2026-10-01T12:00:00Z", 0, None, True),
        ("2026-09-01", 30, None, True),
        ("2026-09-02", 30, None, False),
        ("2026-09-30T12:00:01+00:00", 1, "2026-12-31", False),
        ("2026-09-30T12:00:00+00:00", 1, "2026-12-31", True),
        ("2026-09-30T12:00:00+00:00", 1_000_000, "2020-01-01", True),
        # What is no date never passes, and no date is too far away.
        (None, 1, "soon", False),
        ("once", 1, None, False),
        ("0001-01-01T00:00:00+14:00", 1, None, True),
        (None, None, "9999-12-31T23:59:59-14:00", False),
        (None, None, "9999-12-31", False),
        ("9999-12-31", 1_000_000, None, False),
    ],
)
def test_expiry(created, ttl, valid_until, expired):
    assert is_expired(created, ttl, valid_until, NOW) is expired


def test_expired_cards_are_marked_and_stay_where_they_are(make_searcher):
    searcher = make_searcher(
        {
            "past.md": "---\nvalid_until: 2020-01-01\n---\nwillow",
            "brief.md": "---\ncreated: 2020-01-01\nttl: 30\n---\nwillow",
            "good.md": "---\nvalid_until: 2999-01-01\n---\nwillow",
        }
    )
    assert {hit.path: hit.expired for hit in searcher.search("willow").hits} == {
        "past.md": True, "brief.md": True, "good.md": False,
    }  # fmt: skip


def test_tags_and_projects_are_searched_too(make_searcher):
    searcher = make_searcher(
        {"a.md": "---\ntags: [高可用]\naliases: [HA plan]\nproject: swallow\n---\n#内联标签"}
    )
    for query in ("高可用", "HA plan", "swallow", "内联标签"):
        assert found(searcher.search(query)) == [("a", "all")]


def test_a_summary_from_the_body_is_not_counted_twice(make_searcher):
    searcher = make_searcher(
        {"own.md": "---\nsummary: willow\n---\nwillow", "taken.md": "willow\n\nmore"}
    )
    rows = searcher.connection.execute(
        "select path, summary_tokens from cards join cards_fts on cards.id = cards_fts.rowid "
        "order by path"
    ).fetchall()
    assert rows == [("own.md", "willow"), ("taken.md", "")]


@pytest.fixture(scope="module")
def one_card():
    from datasette_memory.index.connection import sqlite3
    from datasette_memory.index.migrations import migrate
    from datasette_memory.search.sqlite import SQLiteSearcher

    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate(connection)
    connection.execute(
        "insert into cards (ref, title, kind, source, path, body, summary) values "
        "('N_0001', 'a 阿里云 getUserById', 'note', 'notes', 'a.md', ?, '')",
        ["NEAR AND OR NOT 阿里云 x-y.z C:\\Tools\\bin getUserById \U0001f600 é"],
    )
    yield SQLiteSearcher(connection)
    connection.close()


hostile = st.text() | st.lists(
    st.sampled_from(
        ['"', "*", "NEAR(", "AND", "OR", "NOT", ":", "^", "(", ")", "-", "\0", "\ud800", "阿", "里",
         "title:", "a", "{", "}", "+", "C:\\", "\U0001f600", " ", "getUser", "''", "--", "%", "\u0301"]
    )
).map("".join)  # fmt: skip


@settings(max_examples=300, deadline=None, derandomize=True)
@given(query=hostile, limit=st.integers(-(10**12), 10**12))
def test_no_query_is_an_error(one_card, query, limit):
    result = one_card.search(query, limit=limit)
    assert len(result.hits) <= 1
    for hit in result.hits:
        assert 0 <= hit.coverage <= 1
        ends = [0, *(edge for span in hit.highlights for edge in span), len(hit.snippet)]
        assert ends == sorted(ends)


@pytest.mark.parametrize(
    "query", ["x" * 100_000, "阿里云" * 20_000, '"' * 20_000, "a-" * 20_000, "NEAR(" * 5_000, "\0"]
)
def test_no_query_is_too_long(one_card, query):
    one_card.search(query)
