"""Queries, by hand and against a real FTS5 table."""

import re
import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datasette_memory.text.normalise import normalise
from datasette_memory.text.query import (
    MAX_CHARACTERS,
    MAX_TERMS,
    NOTHING,
    TIERS,
    Term,
    expression,
    expressions,
    parse,
)
from datasette_memory.text.tokenise import FTS5_TOKENIZE, index_text, tokens


class Index:
    """An FTS5 table made like the real one, in memory."""

    def __init__(self, *documents: str) -> None:
        self.connection = sqlite3.connect(":memory:")
        self.connection.execute(f'create virtual table f using fts5(a, tokenize="{FTS5_TOKENIZE}")')
        self.fill(*documents)

    def fill(self, *documents: str) -> None:
        self.connection.execute("delete from f")
        rows = [(number, index_text(text)) for number, text in enumerate(documents)]
        self.connection.executemany("insert into f (rowid, a) values (?, ?)", rows)

    def hits(self, query: str, tier: str) -> set[int]:
        match = expression(parse(query), tier)
        rows = self.connection.execute("select rowid from f where f match ?", (match,))
        return {number for (number,) in rows}


INDEX = Index(
    "阿里云部署 getUserById ecs-prod-02",
    "NEAR AND OR NOT title deploy running v1.2.3",
    "café 東京タワー한국어 C:\\bin it's",
)


@pytest.mark.parametrize(
    "query, terms",
    [
        ("", []),
        ('，。！* " ( ) 😀', []),
        ("云", [Term((("云",),), open=True)]),
        ("阿里云", [Term((("阿里",),)), Term((("里云",),))]),
        ("Deploy", [Term((("deploy",),), extensible=True)]),
        ("deploy DEPLOY ｄｅｐｌｏｙ", [Term((("deploy",),), extensible=True)]),
        ("C", [Term((("c",),))]),
        ("q\u0301", [Term((("q\u0301",),))]),  # FTS5 takes the accent off, and one letter is left
        ("ecs-prod-02", [Term((("ecs", "prod", "02"),), extensible=True)]),
        ("v1.2.3", [Term((("v1", "2", "3"),))]),
        ("a_b", [Term((("a", "b"),))]),
        ("src/app.py", [Term((("src", "app", "py"),), extensible=True)]),
        ("C:\\bin", [Term((("c", "bin"),), extensible=True)]),
        ("https://a.example", [Term((("https", "a", "example"),), extensible=True)]),
        ("it’s", [Term((("it", "s"),))]),
        ("userById", [Term((("userbyid",), ("user", "by", "id")), extensible=True)]),
        ("getX", [Term((("getx",), ("get", "x")), extensible=True)]),
        ("a: b", [Term((("a",),)), Term((("b",),))]),
        ("-foo- .bar.", [Term((("foo",),), extensible=True), Term((("bar",),), extensible=True)]),
        (
            "重跑gen后",
            [Term((("重跑",),)), Term((("gen",),), extensible=True), Term((("后",),), open=True)],
        ),
        ("資料", [Term((("资料",),))]),
        ("a and b", [Term((("a",),)), Term((("and",),), extensible=True), Term((("b",),))]),
    ],
)
def test_terms_by_hand(query, terms):
    assert list(parse(query)) == terms


@pytest.mark.parametrize("mark", ["…", "．", "：/", "\uff3f", "／", "\u2024"])
def test_what_joins_words_does_not_hang_on_the_rest_of_the_query(mark):
    # NFKC makes ASCII of each of these, and an ellipsis three stops.
    joined = parse(f"foo{mark}bar")
    assert joined == parse(f"foo{mark}bar ①")[:-1]
    assert [term.phrases for term in joined] == [(("foo", "bar"),)]


@pytest.mark.parametrize(
    "query, tier, match",
    [
        ("阿里云", "all", '"阿里" AND "里云"'),
        ("阿里云", "any", '"阿里" OR "里云"'),
        ("云", "all", '"云"*'),
        ("deploy C 云", "all-prefix", '("deploy"* OR "deployment") AND "c" AND "云"*'),
        ("deploy C", "any-prefix", '("deploy"* OR "deployment") OR "c"'),
        ("ecs-prod", "all-prefix", '"ecs prod"*'),
        ("userById", "all", '("userbyid" OR "user by id")'),
        ("userById x", "all-prefix", '("userbyid"* OR "user by id"*) AND "x"'),
        ("getX", "any-prefix", '("getx"* OR "get x")'),
        ("!", "all", NOTHING),
    ],
)
def test_expressions_by_hand(query, tier, match):
    assert expression(parse(query), tier) == match


def test_a_tier_that_repeats_is_left_out():
    assert list(expressions(parse("deploy 部署"))) == ["all", "all-prefix", "any", "any-prefix"]
    assert list(expressions(parse("deploy"))) == ["all", "all-prefix"]
    assert list(expressions(parse("阿里云"))) == ["all", "any"]
    assert list(expressions(parse("云"))) == ["all"]
    assert expressions(parse("?!")) == {}


def test_unknown_tier():
    with pytest.raises(ValueError, match="no such tier: 'most'; tiers are all, all-prefix, any"):
        expression(parse("a"), "most")


@pytest.mark.parametrize(
    "query, number",
    [
        ("阿里云", 0),
        ("里云部", 0),
        ("云", 0),
        ("署", 0),
        ("userById", 0),
        ("UserById", 0),
        ("user by id", 0),
        ("user_by_id", 0),
        ("getuserbyid", 0),
        ("prod-02", 0),
        ("ecs/prod", 0),
        ("run", 1),
        ("NEAR AND", 1),
        ("v1.2", 1),
        ("CAFE", 2),
        ("café", 2),
        ("cafe\u0301", 2),
        ("东京", 2),
        ("ﾀﾜｰ", 2),
        ("한국", 2),
        ("\u1112\u1161\u11ab\u1100\u116e\u11a8", 2),
        ("c:\\BIN", 2),
        ("It’s", 2),
    ],
)
def test_finds_at_all(query, number):
    assert INDEX.hits(query, "all") == {number}


@pytest.mark.parametrize(
    "query, tiers",
    [
        ("部阿", set()),
        ("阿里 deploy", {"any", "any-prefix"}),
        ("dep", {"all-prefix", "any-prefix"}),
        ("deploy tit", {"all-prefix", "any", "any-prefix"}),
        ("prod-ecs", set()),
        ("d", set()),
    ],
)
def test_finds_at_no_other_tier(query, tiers):
    assert {tier for tier in TIERS if INDEX.hits(query, tier)} == tiers


HOSTILE = [
    *"\"'*^:(){}+-,;|&!?<>=~`@#$%\\/.[]_",
    "",
    " ",
    '"""',
    '"a',
    'a"b" OR "c',
    '""',
    "NEAR",
    "NEAR(",
    "NEAR(a b, 2)",
    "NEAR/3",
    "AND",
    "OR",
    "NOT",
    "a AND",
    "NOT a",
    "AND OR NOT",
    "a OR OR b",
    "title:x",
    "{title body}:x",
    "-title:x",
    "- title : x",
    "f : x",
    "^a",
    "a*",
    "*a",
    "a**",
    "(",
    "(a",
    "a)",
    ")(",
    "((((a))))",
    "a + b",
    "a +",
    "{}",
    "\x00",
    "a\x00b",
    "\ud800",
    "a\udfffb",
    "\ud83d\ude00",
    "😀",
    "👩\u200d💻",
    "\u200b",
    "\ufeff",
    "\u0301",
    "\u3099",
    "\u1161",
    "'; drop table f; --",
    "%s {0} $x ?1 :y @z",
    "%",
    "\u2028\u2029\x85\x1f\x7f",
    "．．．",
    "-" * 50,
    "\u3000" * 50,
    "\uffff\U0010ffff\ue000",
]
LONG = {
    "letters": "a" * 10_000,
    "words": "deploy " * 1_500,
    "distinct words": " ".join(f"w{i}" for i in range(2_000)),
    "distinct camels": " ".join(f"getThing{i}Now" for i in range(1_000)),
    "phrase": "a-" * 5_000,
    "camel parts": "aB" * 5_000,
    "Han": "阿里云" * 3_334,
    "distinct Han": "".join(map(chr, range(0x4E00, 0x4E00 + 10_000))),
    "marks": "a" + "\u0301\u0323" * 5_000,
    "quotes": '"' * 10_000,
    "parentheses": "(" * 5_000 + ")" * 5_000,
    "NEAR": "NEAR(" * 2_000,
    "expanding": "\ufdfa" * 10_000,
    "colons": "a" + ":/" * 5_000,
    "million letters": "a" * 1_000_000,
    "million Han": "云" * 1_000_000,
    "million quotes": '"a' * 500_000,
    "million joiners": "a" + "-" * 999_999,
    "million surrogates": "\ud800" * 1_000_000,
    "four bytes each": "\U00020bb7" * 10_000,
}


@pytest.mark.parametrize("query", HOSTILE, ids=ascii)
@pytest.mark.parametrize("tier", TIERS)
def test_no_query_is_a_syntax_error(query, tier):
    INDEX.hits(query, tier)


@pytest.mark.parametrize("query", LONG.values(), ids=LONG)
@pytest.mark.parametrize("tier", TIERS)
def test_no_long_query_is_a_syntax_error(query, tier):
    assert len(parse(query)) <= MAX_TERMS
    INDEX.hits(query, tier)


OPERATORS = st.sampled_from(
    ['"', "*", "NEAR(", " AND ", " OR ", "NOT ", ":", "^", "(", ")", "\x00"]
)
PIECES = OPERATORS | st.text(max_size=6) | st.characters(exclude_categories=())
QUERIES = st.lists(PIECES, max_size=20).map("".join)


@settings(max_examples=1500, deadline=None)
@given(QUERIES, st.sampled_from(TIERS))
def test_no_text_is_a_syntax_error(query, tier):
    INDEX.hits(query, tier)


@settings(max_examples=500, deadline=None)
@given(QUERIES)
def test_a_query_without_letters_finds_nothing(query):
    if not index_text(query):
        assert parse(query) == ()
        assert INDEX.hits(query, "any-prefix") == set()


def test_a_long_query_is_cut():
    assert parse("云" * MAX_CHARACTERS + " deploy") == parse("云云")
    assert len(parse(" ".join(f"w{i}" for i in range(100)))) == MAX_TERMS
    terms = parse("".join(map(chr, range(0x4E00, 0x4E00 + 200))))
    assert [term.phrases[0][0] for term in terms[:2]] == ["一丁", "丁丂"]
    assert len(terms) == MAX_TERMS


SMALL = st.text(st.sampled_from("abB1é -.'/_阿里云の，龍龙"), max_size=24)


@settings(max_examples=800, deadline=None)
@given(st.lists(SMALL, min_size=1, max_size=5), SMALL)
def test_a_looser_tier_finds_no_less(documents, query):
    index = INDEX_OF_SMALL
    index.fill(*documents)
    hits = {tier: index.hits(query, tier) for tier in TIERS}
    assert hits["all"] <= hits["all-prefix"] <= hits["any-prefix"]
    assert hits["all"] <= hits["any"] <= hits["any-prefix"]


INDEX_OF_SMALL = Index()

# Characters that normalise one by one, so that a piece of the text means the same alone.
WORDY = "abgtGXY019é ß-._/'\\\n阿里云龍龙繁體のカ가나\U00020bb7，。"


@settings(max_examples=800, deadline=None)
@given(st.text(st.sampled_from(WORDY), min_size=1, max_size=40))
def test_round_trip_of_words(text):
    """Where a token's place in a document normalises to just the token, that place is a query
    that finds the document at tier `all`: every word, every part of a camelCase word, every pair
    of Han, kana and Hangul, and each of these characters alone."""
    INDEX_OF_SMALL.fill(text)
    for token in tokens(text):
        query = text[token.start : token.end]
        assert normalise(query).casefold() == token.text
        assert INDEX_OF_SMALL.hits(query, "all") == {0}, query
    for character in text:
        if character.isalpha() and character > "\u3000":
            assert INDEX_OF_SMALL.hits(character, "all") == {0}, character


@settings(max_examples=1000, deadline=None)
@given(st.text(st.characters() | st.sampled_from(WORDY), max_size=40))
def test_round_trip_of_any_word(text):
    """The same for any text: a place that holds more than the token (a ligature) is left out."""
    INDEX_OF_SMALL.fill(text)
    for token in tokens(text):
        query = text[token.start : token.end]
        if normalise(query).casefold() == token.text:
            assert INDEX_OF_SMALL.hits(query, "all") == {0}, query


@settings(max_examples=800, deadline=None)
@given(st.text(st.sampled_from(WORDY), max_size=40), st.data())
def test_round_trip_of_chinese(text, data):
    """Any two or more characters that stand side by side in a run of Han, kana and Hangul find
    the document at tier `all`."""
    runs = re.findall("[阿里云龍龙繁體のカ가나\U00020bb7]{2,}", text)
    INDEX_OF_SMALL.fill(text)
    for run in runs:
        size = data.draw(st.integers(2, len(run)))
        start = data.draw(st.integers(0, len(run) - size))
        assert INDEX_OF_SMALL.hits(run[start : start + size], "all") == {0}


@settings(max_examples=800, deadline=None)
@given(st.text(st.sampled_from("abAB12-._/'\\ ，云"), max_size=40))
def test_round_trip_of_compounds(text):
    """Words joined by - . _ / \\ ' find their document at tier `all`, in whole and in any piece
    that begins and ends with a word."""
    INDEX_OF_SMALL.fill(text)
    for compound in re.findall(r"[a-zA-Z0-9]+(?:[-._/'\\]+[a-zA-Z0-9]+)+", text):
        assert INDEX_OF_SMALL.hits(compound, "all") == {0}, compound
        for cut in re.finditer(r"[-._/'\\]+(?=[a-zA-Z0-9])", compound):
            assert INDEX_OF_SMALL.hits(compound[cut.end() :], "all") == {0}, compound


@settings(max_examples=500, deadline=None)
@given(st.lists(st.sampled_from(["get", "User", "By", "Id", "2", "HTTP"]), min_size=2, max_size=6))
def test_round_trip_of_camel_tails(words):
    """A camelCase word is found by any row of its parts, written as one word or with joiners."""
    name = "".join(words)
    parts = [token.text for token in tokens(name)][1:]
    INDEX_OF_SMALL.fill(f"x {name} 云 y")
    for start in range(len(parts)):
        for end in range(start + 1, len(parts) + 1):
            row = parts[start:end]
            camel = row[0] + "".join(part.capitalize() for part in row[1:])
            assert INDEX_OF_SMALL.hits("_".join(row), "all") == {0}
            assert INDEX_OF_SMALL.hits(" ".join(row), "all") == {0}
            if all(part.isalpha() for part in row):
                assert INDEX_OF_SMALL.hits(camel, "all") == {0}, camel
