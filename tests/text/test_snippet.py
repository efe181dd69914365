"""The passage that answers best, cut from the original."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datasette_memory.text.matches import find
from datasette_memory.text.query import parse
from datasette_memory.text.snippet import WIDTH, Snippet, cut, snippet


def marked(shown: Snippet) -> str:
    """The snippet with its highlights in brackets."""
    text = shown.text
    for start, end in reversed(shown.highlights):
        text = f"{text[:start]}[{text[start:end]}]{text[end:]}"
    return text


def columns(text: str) -> int:
    """The width of a text by Unicode's own table."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


@pytest.mark.parametrize(
    "text, query, shown",
    [
        ("", "a", ""),
        ("", "", ""),
        ("   \n\t ", "a", ""),
        ("nothing here", "云", "nothing here"),
        ("nothing here", "", "nothing here"),
        ("\n\n   nothing\n\n here  \n", "云", "nothing here"),
        ("部署到阿里云上", "阿里云", "部署到[阿里云]上"),
        ("阿里 里云", "阿里云", "[阿里] [里云]"),
        ("资料庫与資料库", "資料庫", "[资料庫]与[資料库]"),
        ("云计算在云上", "云", "[云]计算在[云]上"),
        ("call getUserById now", "user by", "call get[UserBy]Id now"),
        ("call getUserById now", "getUserById", "call [getUserById] now"),
        ("on ecs-prod-02, now", "ecs-prod", "on [ecs-prod]-02, now"),
        ("ecs -\n  prod", "ecs-prod", "[ecs - prod]"),
        ("Running  \n\n runs\ttwice", "run twice", "[Running] [runs] [twice]"),
        ("ＡＰＩ ｶﾞｰﾄﾞ e\u0301te\u0301", "api ガード été", "[ＡＰＩ] [ｶﾞｰﾄﾞ] [e\u0301te\u0301]"),
        ("a\x00b 云", "b", "a\x00[b] 云"),
        ("she said … yes", "yes", "she said … [yes]"),
    ],
)
def test_by_hand(text, query, shown):
    assert marked(snippet(text, parse(query))) == shown


FILLER = "lorem ipsum dolor sit amet " * 40


@pytest.mark.parametrize(
    "text, query, shown",
    [
        # 8 columns, 2 of them the match's: of the other 6 a third in front, the rest behind, and
        # no word in two.
        ("0123 5 ab 89 12 45", "ab", "…5 [ab] 89…"),
        ("0123 56 ab 89 12 45", "ab", "…[ab] 89…"),
        ("ab 3456 8901 3456", "ab", "[ab] 3456…"),
        ("0123 5678 ab", "ab", "…5678 [ab]"),
        ("一二三四五六七八九", "五", "…四[五]六七…"),
        # A match that is too long is cut as well.
        ("abcdefghijkl", "abcdefghijkl", "[abcdefgh]…"),
        ("一二三四五六", "一二三四五六", "[一二三四]…"),
    ],
)
def test_widths_by_hand(text, query, shown):
    assert marked(snippet(text, parse(query), width=8)) == shown


def test_a_word_too_long_to_spare_is_cut():
    shown = snippet("x" * 50 + " ab", parse("ab"), width=30)
    assert marked(shown) == "…" + "x" * 27 + " [ab]"


def test_the_densest_place_wins():
    text = f"alpha {FILLER} alpha then beta {FILLER} alpha beta gamma {FILLER} beta"
    assert "[alpha] [beta] [gamma]" in marked(snippet(text, parse("alpha beta gamma")))
    assert "[alpha] then [beta]" in marked(snippet(text, parse("alpha beta")))


def test_more_matches_win_where_the_terms_are_equally_many():
    text = f"alpha beta {FILLER} alpha beta alpha {FILLER} alpha alpha alpha alpha"
    assert "[alpha] [beta] [alpha]" in marked(snippet(text, parse("alpha beta")))


def test_the_first_of_equals_wins():
    text = f"one alpha {FILLER} two alpha {FILLER}"
    assert marked(snippet(text, parse("alpha"))).startswith("one [alpha] lorem")


def test_terms_farther_apart_than_the_width_are_not_together():
    # 一 takes two columns: 60 of them between the two terms leave no room in 100 columns.
    text = "阿里" + "一" * 60 + "部署" + "一" * 5 + "部署"
    shown = marked(snippet(text, parse("阿里 部署"), width=100))
    assert shown.count("[") == 2 and "[部署]" in shown


def test_long_white_space_takes_no_room():
    text = "alpha" + " " * 300 + "beta\n" + "\n" * 300 + "gamma"
    assert marked(snippet(text, parse("alpha beta gamma"))) == "[alpha] [beta] [gamma]"
    assert snippet("\n" * 5000 + "first words", ()).text == "first words"


def test_every_occurrence_in_the_passage_is_marked():
    assert marked(snippet("云 a 云 b 云", parse("云"))) == "[云] a [云] b [云]"


def test_html():
    text = "<script>alert('x') & \"getUser\"</script> <b>user</b>"
    assert snippet(text, parse("user b")).html() == (
        "&lt;script&gt;alert(&#x27;x&#x27;) &amp; &quot;get<b>User</b>&quot;&lt;/script&gt; "
        "&lt;<b>b</b>&gt;<b>user</b>&lt;/<b>b</b>&gt;"
    )
    assert snippet("", ()).html() == ""
    # A match may hold what has to be escaped: a joiner does not count where words meet.
    assert snippet("it's", parse("it's")).html() == "<b>it&#x27;s</b>"


def test_cut_takes_the_matches_of_find():
    text = f"{FILLER} 阿里云 {FILLER}"
    terms = parse("阿里云")
    assert cut(text, find(text, terms)) == snippet(text, terms)


TEXTS = st.lists(
    st.sampled_from(
        "阿里 云 部署 重 の 龍 a ab getUserById HTTPServer ecs-prod-02 v1.2 é <b> & longwordwithoutend , 。"
        " - . _".split(" ")
        + [" ", "\n", "  \n\t ", "x" * 40]
    ),
    max_size=60,
).map("".join)
QUERIES = st.lists(
    st.sampled_from("阿里云 云 部 龙 a ab user by-id http ecs prod-02 1.2 e b long x".split()),
    max_size=5,
).map(" ".join)


@settings(max_examples=3000, deadline=None)
@given(TEXTS, QUERIES, st.sampled_from([6, 20, 50, WIDTH]))
def test_claims_about_any_snippet(text, query, width):
    terms = parse(query)
    shown = snippet(text, terms, width)
    whole = " ".join(text.split())

    # Cut from the original, white space folded, an ellipsis exactly where something is left out.
    core = shown.text.removeprefix("…").removesuffix("…")
    assert core in whole
    assert core == core.strip()
    if shown.text == core:
        assert core == whole
    if not shown.text.startswith("…"):
        assert whole.startswith(core)
    if not shown.text.endswith("…"):
        assert whole.endswith(core)
    if core:
        assert (core != whole) == ("…" in shown.text)

    # No wider than asked, but for the ellipses.
    assert columns(core) <= width

    # In order, apart, inside; each stands in the original.
    edges = [edge for span in shown.highlights for edge in span]
    assert edges == sorted(set(edges))
    assert not edges or (0 <= edges[0] and edges[-1] <= len(shown.text))
    for start, end in shown.highlights:
        piece = shown.text[start:end]
        assert piece == piece.strip() and piece in whole
        assert "…" not in piece

    # There is one exactly if a term stands in the text.
    assert bool(shown.highlights) == bool(find(text, terms))

    # And the markup takes nothing away.
    html = shown.html()
    assert html.count("<b>") == html.count("</b>") == len(shown.highlights)


@settings(max_examples=1500, deadline=None)
@given(st.text(max_size=80), st.text(max_size=10), st.integers(1, 40))
def test_any_text_at_all(text, query, width):
    shown = snippet(text, parse(query + " " + text[10:14]), width)
    edges = [edge for span in shown.highlights for edge in span]
    assert edges == sorted(set(edges))
    assert not edges or (0 <= edges[0] and edges[-1] <= len(shown.text))
    assert len(shown.text) <= width + 2


@settings(max_examples=500, deadline=None)
@given(st.text(st.sampled_from("阿里云部署"), min_size=2, max_size=60))
def test_overlapping_pairs_are_one_highlight(run):
    shown = snippet(run, parse(run))
    assert shown == Snippet(run, ((0, len(run)),))


MANY = 2_000_000


@pytest.mark.parametrize(
    "text, query, shown",
    [
        ("a" * MANY, "b", "a" * 140 + "…"),
        ("a" * MANY, "aa", "[" + "a" * 140 + "]…"),
        ("aA" * (MANY // 2), "aa", "[" + "aA" * 70 + "]…"),
        ("云" * (MANY // 3), "云云", "[" + "云" * 70 + "]…"),
        ("q" + "\u0301" * (MANY // 2), "q", "[q" + "\u0301" * 139 + "]…"),
        (" " * MANY, "a", ""),
        (" " * MANY + "a", "a", "[a]"),
        ("a" + " " * MANY + "b", "a-b", "[a]…"),
        ("(" * MANY, "a", "(" * 140 + "…"),
        ("<b " * (MANY // 3) + "云", "云", "…" + ("<b " * 46) + "[云]"),
        ("a " * (MANY // 2) + "b", "b", "…" + "a " * 69 + "[b]"),
        ("\n" * MANY + "云 " * 10, "x", "云 " * 9 + "云"),
    ],
    ids=lambda value: ascii(value[:8]),
)
def test_two_megabytes_of_one_thing(text, query, shown):
    assert marked(snippet(text, parse(query))) == shown


def test_a_huge_text_with_one_answer():
    text = f"{'lorem ipsum ' * 80_000} the gateway 网关 restarts {'dolor 阿里 ' * 80_000}"
    shown = marked(snippet(text, parse("gateway 网关")))
    assert "ipsum the [gateway] [网关] restarts dolor" in shown
