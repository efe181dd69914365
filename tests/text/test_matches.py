"""Where the terms of a query stand: against the tokens, and against FTS5."""

import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datasette_memory.text.matches import MOST_PLACES, Match, find
from datasette_memory.text.query import Term, parse
from datasette_memory.text.snippet import coverage
from datasette_memory.text.stem import index_key, other_endings
from datasette_memory.text.tokenise import FTS5_TOKENIZE, Token, index_text, tokens


@pytest.mark.parametrize(
    "text, query, places",
    [
        ("", "a", []),
        ("阿里云", "", []),
        ("阿里云", "阿里云", [(0, 2, 0), (1, 3, 1)]),
        ("阿里 里云", "阿里云", [(0, 2, 0), (3, 5, 1)]),
        ("云上云", "云", [(0, 1, 0), (2, 3, 0)]),
        ("哈哈哈", "哈哈", [(0, 2, 0), (1, 3, 0)]),
        ("龍門 龙门", "龍", [(0, 1, 0), (3, 4, 0)]),
        ("Connected connections connect's", "connecting", [(0, 9, 0), (10, 21, 0), (22, 29, 0)]),
        ("index indexes indices reindex", "index", [(0, 5, 0), (6, 13, 0)]),
        ("a ab", "a", [(0, 1, 0)]),
        ("ab abc abd", "ab", [(0, 2, 0), (3, 6, 0), (7, 10, 0)]),
        ("Café CAFES cafe\u0301", "cafe", [(0, 4, 0), (5, 10, 0), (11, 16, 0)]),
        ("ＡＰＩ api", "api", [(0, 3, 0), (4, 7, 0)]),
        ("x① ㍿", "x1 会社", [(0, 2, 0), (3, 4, 1)]),
        ("ecs-prod-02 ecs/prod", "ecs-prod", [(0, 8, 0), (12, 20, 0)]),
        ("ecs 云 prod", "ecs-prod", []),
        ("ecs-production", "ecs-prod", [(0, 14, 0)]),
        ("ecsx-prod", "ecs-prod", []),
        ("getUserById", "user", [(3, 7, 0)]),
        ("getUserById", "userById", [(3, 11, 0)]),
        ("getUserById", "user_by", [(3, 9, 0)]),
        ("getUserById", "getUserById", [(0, 11, 0)]),
        ("getUserById", "get", [(0, 3, 0), (0, 11, 0)]),
        ("HTTPServer", "server http", [(0, 4, 1), (0, 10, 1), (4, 10, 0)]),
        # In the index the parts follow the last word and each other.
        ("getUser Now setName", "user-set", [(3, 7, 0), (12, 15, 0)]),
        ("getUser x", "x-get", [(0, 3, 0), (8, 9, 0)]),
        ("getUser 云", "getuser-get", []),
        ("getUser", "getuser-get", [(0, 3, 0), (0, 7, 0)]),
        ("Ünder getÜ über", "uber", [(11, 15, 0)]),
        ("x éaB", "ea", [(2, 4, 0), (2, 5, 0)]),
    ],
)  # fmt: skip
def test_places_by_hand(text, query, places):
    assert find(text, parse(query)) == [Match(*place) for place in places]


def test_only_the_first_places_count():
    text = "ab 云 " * (MOST_PLACES + 5)
    found = find(text, parse("云 ab"))
    assert len(found) == 2 * MOST_PLACES
    assert found[-2:] == [(5 * MOST_PLACES - 5, 5 * MOST_PLACES - 3, 1), (5 * MOST_PLACES - 2, 5 * MOST_PLACES - 1, 0)]  # fmt: skip


def reference(text: str, terms: tuple[Term, ...]) -> list[Match]:
    """What `find` has to give, worked out from every token of the text."""
    found = list(tokens(text))
    keys = [index_key(token.text) for token in found]
    # The parts of camelCase words start where a token stands before its forerunner.
    places = [(token.start, token.end) for token in found]
    count = next((i for i in range(1, len(places)) if places[i] < places[i - 1]), len(places))
    matches: set[Match] = set()
    for number, term in enumerate(terms):
        for phrase in term.phrases:
            wanted = [index_key(word) for word in phrase]
            last = wanted[-1]
            prefix = term.open or (term.extensible and len(last) > 1)
            for at in range(len(keys) - len(wanted) + 1):
                run = keys[at : at + len(wanted)]
                ends = run[-1].startswith(last) if prefix else run[-1] == last
                ends = ends or prefix and run[-1] in map(index_key, other_endings(phrase[-1]))
                if not ends or run[:-1] != wanted[:-1]:
                    continue
                if term.open:
                    matches.add(Match(found[at].start, found[at].start + 1, number))
                else:
                    for start, end in pieces(found, at, at + len(wanted), count):
                        matches.add(Match(start, end, number))
    return sorted(matches)


def pieces(found: list[Token], first: int, end: int, count: int) -> list[tuple[int, int]]:
    """The tokens from `first` to `end` as one place each time they are neighbours in the text."""
    spans: list[list[int]] = []
    for at in range(first, end):
        token = found[at]
        together = at < count or (at > count and found[at - 1].end == token.start)
        if spans and together:
            spans[-1][1] = token.end
        else:
            spans.append([token.start, token.end])
    return [(start, end) for start, end in spans]


# Few characters, so that documents and queries have much in common; each normalises alone.
DENSE = st.text(st.sampled_from("abAB1é -_.，云里龍Ａ"), max_size=30)
WORDS = st.lists(
    st.sampled_from(
        "get User Id HTTP ing ed s es index relational possibility possible -  . _ / ' : :/ 阿里 云 の 2 "
        "café Straße ЖУК жуки ł x".split(" ")
    ),
    max_size=14,
).map("".join)


@settings(max_examples=3000, deadline=None)
@given(DENSE, DENSE)
def test_find_is_its_specification(text, query):
    terms = parse(query)
    assert find(text, terms) == reference(text, terms)


@settings(max_examples=2000, deadline=None)
@given(WORDS, WORDS)
def test_find_is_its_specification_with_endings(text, query):
    terms = parse(query)
    assert find(text, terms) == reference(text, terms)


@settings(max_examples=1000, deadline=None)
@given(st.text(max_size=40), st.text(max_size=20))
def test_places_lie_in_the_text(text, query):
    terms = parse(query + text[:10])
    found = find(text, terms)
    assert found == sorted(set(found))
    assert all(0 <= match.start < match.end <= len(text) for match in found)


CONNECTION = sqlite3.connect(":memory:")
CONNECTION.execute(f'create virtual table f using fts5(a, tokenize="{FTS5_TOKENIZE}")')


def share_by_fts5(text: str, terms: tuple[Term, ...]) -> float:
    """The share of the terms, each as the prefix tiers ask it, for which FTS5 finds the text."""
    CONNECTION.execute("delete from f")
    CONNECTION.execute("insert into f values (?)", (index_text(text),))
    sql = "select count(*) from f where f match ?"
    held = [CONNECTION.execute(sql, (term.expression(True),)).fetchone()[0] for term in terms]
    return sum(held) / len(terms) if terms else 0.0


@settings(max_examples=1500, deadline=None)
@given(DENSE, DENSE)
def test_coverage_is_what_fts5_says(text, query):
    terms = parse(query)
    assert coverage([text], terms) == share_by_fts5(text, terms)


@settings(max_examples=1500, deadline=None)
@given(WORDS, WORDS)
def test_coverage_is_what_fts5_says_with_endings(text, query):
    terms = parse(query)
    assert coverage([text], terms) == share_by_fts5(text, terms)


@settings(max_examples=1000, deadline=None)
@given(st.lists(st.text(max_size=8), max_size=5), st.text(max_size=8), st.data())
def test_coverage_is_what_fts5_says_of_any_text(words, other, data):
    text = " ".join(words)
    query = " ".join([*data.draw(st.lists(st.sampled_from(words or [""]), max_size=3)), other])
    terms = parse(query)
    assert coverage([text], terms) == share_by_fts5(text, terms)


@pytest.mark.parametrize(
    "texts, query, share",
    [
        ([], "a", 0),
        (["a"], "", 0),
        (["alpha", "beta 云"], "alpha beta 云", 1),
        (["alpha", "beta 云"], "alpha gamma", 0.5),
        (["阿里云"], "阿里 里云 云部 部署", 0.5),
        (["getUserById"], "user-by get-id", 0.5),
    ],
)
def test_coverage_by_hand(texts, query, share):
    assert coverage(texts, parse(query)) == share


MANY = 2_000_000


@pytest.mark.parametrize(
    "text, query, count",
    [
        ("a" * MANY, "a", 0),
        ("a" * MANY, "aa", 1),
        ("a " * (MANY // 2), "a", MOST_PLACES),
        # A phrase that fits everywhere but for its end.
        ("a-" * (MANY // 2), "a-" * 600 + "b", 0),
        ("a-" * (MANY // 2), "a-" * 4_999 + "a", MOST_PLACES),
        ("云" * (MANY // 3), "云云", MOST_PLACES),
        ("Ab" * (MANY // 2), "abAbAc", 0),
        ("a" + "\u0301\u0323" * (MANY // 4), "a", 1),
        ("ｶﾞ" * (MANY // 6), "ガガ", MOST_PLACES),
        (" " * MANY, "a", 0),
        ("<script" * (MANY // 7), "script", MOST_PLACES),
    ],
    ids=lambda value: ascii(value[:8]) if isinstance(value, str) else "",
)
def test_two_megabytes_of_one_thing(text, query, count):
    assert len(find(text, parse(query))) == count
