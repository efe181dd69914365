"""The tokens of a text, by hand and as a whole."""

import sys
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datasette_memory.text.normalise import _pieces, normalise
from datasette_memory.text.tokenise import TOKENIZER_VERSION, Token, index_text, tokens

CHARACTERS = (
    "abzAZ019_ -.'/\\:<\n\t\x00阿里云龍繁\U00020bb7のカか\u3099ーガｶﾞ가\u1100\u1161\u11a8"
    "éeß\u0301\u0323\u0345\u200b\u00ad\ufe0f\U000e0100①ﬁ㍿㏂㎒İΐΣςǅ\u0e01\u0e47\u0e33\u0915\u0940"
    "，。…‗（）·─→\U0001f600\U00010330\U00011038\U00016d67\ud800\udfff"
)
TEXTS = st.text(st.sampled_from(CHARACTERS) | st.characters(exclude_categories=()), max_size=60)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("", ""),
        ("  \n ，。！ ", ""),
        ("阿里云", "阿里 里云 云"),
        ("重跑gen后", "重跑 跑 gen 后"),
        ("云", "云"),
        ("云 云", "云 云"),
        ("第1章", "第 1 章"),
        ("阿里云，部署。", "阿里 里云 云 部署 署"),
        # Kana and Han are one run; the katakana middle dot divides.
        ("東京へ行く", "东京 京へ へ行 行く く"),
        ("データ・ベース", "デー ータ タ ベー ース ス"),
        ("한국어 검색", "한국 국어 어 검색 색"),
        ("\u1112\u1161\u11ab\u1100\u116e\u11a8", "한국 국"),
        ("か\u3099っこう", "がっ っこ こう う"),
        ("ｶﾞｰﾄﾞ", "ガー ード ド"),
        ("ＡＰＩ１２", "api12"),
        ("資料庫", "资料 料库 库"),
        ("\U00020bb7野家", "\U00020bb7野 野家 家"),
        ("\U00020000\U0002a6d6", "\U00020000\U0002a6d6 \U0002a6d6"),
        # Compatibility forms become the plain ones, but for a dozen that have none.
        ("\uf900\ufa1e\ufa0e", "岂羽 羽\ufa0e \ufa0e"),
        ("ㄅㄆㄇ", "ㄅㄆ ㄆㄇ ㄇ"),
        ("々〆〇", "々〆 〆〇 〇"),
        ("Café CAFE\u0301 naïve", "café café naïve"),
        ("Straße ΣΟΦΟΣ", "strasse σοφοσ"),
        ("getUserById", "getuserbyid get user by id"),
        ("a getUserById b setX", "a getuserbyid b setx get user by id set x"),
        ("HTTPServer", "httpserver http server"),
        ("macOS", "macos mac os"),
        ("Server SERVER x2Y", "server server x2y x2 y"),
        ("parseHTML5Now", "parsehtml5now parse html5 now"),
        ("v1.2.3 8765 0x1f ２０２６", "v1 2 3 8765 0x1f 2026"),
        ("snake_case __init__", "snake case init"),
        ("it's ecs-prod-02 C:\\bin", "it s ecs prod 02 c bin"),
        ("ok 😀 done 👩\u200d💻", "ok done"),
        ("部署😀完成", "部署 署 完成 成"),
        ("zero\u200bwidth 阿里\u200b云", "zerowidth 阿里 里云 云"),
        ("co\u00adoperate 阿\u00ad里", "cooperate 阿里 里"),
        ("葛\U000e0100城", "葛城 城"),
        ("हिन्दी में", "हिन्दी में"),
        ("ภาษาไทย น\u0e49\u0e33", "ภาษาไทย น\u0e49\u0e4d\u0e32"),
        ("עברית العَرَبِيّة", "עברית العَرَبِيّة"),
        ("Привет МИР", "привет мир"),
        ("a\u0301b q\u0301\u0323", "áb q\u0323\u0301"),
        ("a\ud800b\x00c", "a b c"),
    ],
)
def test_tokens_by_hand(text, expected):
    assert index_text(text) == expected
    assert [token.text for token in tokens(text)] == expected.split()


@pytest.mark.parametrize(
    "text, expected",
    [
        ("阿里云", [("阿里", 0, 2), ("里云", 1, 3), ("云", 2, 3)]),
        ("①龍", [("1", 0, 1), ("龙", 1, 2)]),
        ("ｶﾞ龍 e\u0301x", [("ガ龙", 0, 3), ("龙", 2, 3), ("éx", 4, 7)]),
        ("㍿x", [("株式", 0, 1), ("式会", 0, 1), ("会社", 0, 1), ("社", 0, 1), ("x", 1, 2)]),
        (
            "a getUserId",
            [("a", 0, 1), ("getuserid", 2, 11), ("get", 2, 5), ("user", 5, 9), ("id", 9, 11)],
        ),
        ("é MyＡpp", [("é", 0, 1), ("myapp", 2, 7), ("my", 2, 4), ("app", 4, 7)]),
        ("\u200bx\u00ady", [("xy", 1, 4)]),
    ],
)
def test_offsets_by_hand(text, expected):
    assert list(tokens(text)) == [Token(*row) for row in expected]


def test_version_of_the_first_release():
    assert TOKENIZER_VERSION == "1"


@settings(max_examples=3000, deadline=None)
@given(TEXTS)
def test_index_text_is_the_tokens_joined(text):
    assert index_text(text) == " ".join(token.text for token in tokens(text))


def test_index_text_is_the_tokens_joined_around_every_character():
    # Not one by one where thousands are alike: Han, syllables, private use, unassigned.
    alike = 0
    for i in range(sys.maxunicode + 1):
        character = chr(i)
        category = unicodedata.category(character)
        if category in ("Cn", "Co", "Cs") or (category == "Lo" and i > 0x3400):
            alike += 1
            if alike % 500:
                continue
        text = f"a{character}b云{character}里 aB{character} {character}"
        assert index_text(text) == " ".join(token.text for token in tokens(text)), hex(i)


@settings(max_examples=2000, deadline=None)
@given(TEXTS)
def test_offsets_are_in_order(text):
    found = list(tokens(text))
    places = [(token.start, token.end) for token in found]
    assert all(0 <= start < end <= len(text) for start, end in places)
    # The words and pairs, and behind them the parts of camelCase words: two rising rows.
    falls = sum(a > b for a, b in zip(places, places[1:]))
    assert falls <= 1


@settings(max_examples=2000, deadline=None)
@given(TEXTS)
def test_a_token_is_in_its_place_of_the_original(text):
    for token in tokens(text):
        place = text[token.start : token.end]
        normal = normalise(place)
        assert token.text in normal.casefold()
        if all(len(piece) == len(normalise(piece)) == 1 for piece in _pieces(place)):
            # Nothing came together and nothing was taken apart: the place is the token's alone.
            assert token.text == normal.casefold()


@settings(max_examples=1000, deadline=None)
@given(TEXTS)
def test_tokens_hold_no_space_and_are_folded(text):
    for token in tokens(text):
        assert token.text.split() == [token.text]
        assert token.text == token.text.casefold()


@settings(max_examples=1000, deadline=None)
@given(st.text(st.sampled_from("阿里云龙のガ가"), min_size=1, max_size=20))
def test_a_run_gives_every_pair_and_its_last_character(run):
    words = [run[i : i + 2] for i in range(len(run) - 1)] + [run[-1]]
    assert index_text(run) == " ".join(words)
    assert index_text(f"a{run}b") == " ".join(["a", *words, "b"])


MANY = 2_000_000


@pytest.mark.parametrize(
    "text, expected",
    [
        ("a" * MANY, "a" * MANY),
        ("aA" * (MANY // 2), "a" * MANY + " a" + " aa" * (MANY // 2 - 1) + " a"),
        ("云" * (MANY // 3), "云云 " * (MANY // 3 - 1) + "云"),
        ("q\u0301" * (MANY // 3), "q\u0301" * (MANY // 3)),
        ("a\u200b" * (MANY // 4), "a" * (MANY // 4)),
        ("a" + " " * MANY + "b", "a b"),
        ("a-" * (MANY // 2), " ".join("a" * (MANY // 2))),
        ("(" * MANY + "x", "x"),
    ],
    ids=lambda value: ascii(value[:6]),
)
def test_two_megabytes_of_one_thing(text, expected):
    same = index_text(text) == expected
    assert same  # and no comparison of megabytes in the report
