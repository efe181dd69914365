"""One written form, and the way back to the original."""

import re
import sys
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datasette_memory.text.normalise import _pieces, normalise, normalise_with_offsets

# What has met trouble: joiners, marks of several classes, invisible characters, Jamo, kana with
# marks apart, half-width and full-width forms, ligatures, Traditional characters, punctuation.
CHARACTERS = (
    "aeiBZ19_ .,-\n\x00阿里云龍繁𠮷髮か\u3099\u309aガﾊﾟｶﾞ가각\u1100\u1161\u11a8ㅏ\uffc2\u302a\u302e"
    "éñ\u0301\u0323\u0345\u0344\u0f73\u200b\u00ad\ufe0f\U000e0100\ufeff①ﬁ㍿㏂½ⅣＡ１ａＢ，。…：’"
    "İßΐΣςأ\u064bक\u093c\u0958ำ\u0e33ǆ\ud800\udfff\U0001f600\U00016d67\U00016d63"
)
TEXTS = st.text(st.sampled_from(CHARACTERS) | st.characters(exclude_categories=()), max_size=40)


@pytest.mark.parametrize(
    "text, normal",
    [
        ("", ""),
        ("plain ASCII, getUserById", "plain ASCII, getUserById"),
        ("繁體中文", "繁体中文"),
        # Both sides of OpenCC's table go beyond the basic plane.
        ("\U000205e3㑮", "㓆\U0002b748"),
        ("ＡＰＩ　ｖ１．２", "API v1.2"),
        ("ｶﾞｰﾄﾞ", "ガード"),
        ("か\u3099", "が"),
        ("\u1112\u1161\u11ab\u1100\u1173\u11af", "한글"),
        ("e\u0301", "é"),
        ("① ﬁ ㍿ ½", "1 fi 株式会社 1\u20442"),
        ("\uf900\U0002f800", "岂丽"),
        ("soft\u00adhyphen zero\u200bwidth \ufeffbom", "softhyphen zerowidth bom"),
        ("葛\U000e0100城 ☀\ufe0f", "葛城 ☀"),
        # An invisible character keeps no mark from its letter.
        ("e\u200b\u0301", "é"),
        # Marks come in canonical order, whatever stands between.
        ("か\u302a\u3099", "が\u302a"),
    ],
)
def test_normal_form(text, normal):
    assert normalise(text) == normal
    assert normalise_with_offsets(text)[0] == normal


def test_common_punctuation_alone_is_left():
    text = "“阿里云”（一）：好，不好？"
    assert normalise(text) == text


@settings(max_examples=1500, deadline=None)
@given(TEXTS)
def test_both_functions_agree(text):
    assert normalise_with_offsets(text)[0] == normalise(text)


@settings(max_examples=1500, deadline=None)
@given(TEXTS)
def test_pieces_joined_are_the_whole(text):
    pieces = list(_pieces(text))
    assert "".join(pieces) == text
    # Invisible characters join a piece so that they can be dropped; NFKC knows nothing of that.
    visible = re.sub("[\u200b\u00ad\ufe0f\U000e0100\ufeff]", "", text)
    joined = "".join(unicodedata.normalize("NFKC", piece) for piece in _pieces(visible))
    assert joined == unicodedata.normalize("NFKC", visible)


def test_no_composition_of_two_crosses_a_cut():
    for i in range(sys.maxunicode + 1):
        composed = chr(i)
        parts = unicodedata.decomposition(composed).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            text = "".join(chr(int(part, 16)) for part in parts)
            assert list(_pieces(text)) == [text], hex(i)


@settings(max_examples=1500, deadline=None)
@given(TEXTS)
def test_offsets_lead_back_to_what_was_normalised(text):
    normal, offsets = normalise_with_offsets(text)
    last = 0
    for at in range(len(normal)):
        start, end = offsets.start(at), offsets.end(at + 1)
        assert last <= start < end <= len(text)
        assert unicodedata.normalize("NFKC", normal[at]) in _whole_form(text[start:end])
        last = start


def _whole_form(text: str) -> str:
    """NFKC with folding, of a text that may begin with a mark."""
    return normalise(text + "ﬁ")[:-2]


@pytest.mark.parametrize(
    "text, at, place",
    [
        ("x①y", 1, (1, 2)),
        ("㍿y", 2, (0, 1)),
        ("㍿y", 4, (1, 2)),
        ("e\u0301x", 0, (0, 2)),
        ("e\u0301x", 1, (2, 3)),
        ("\u200bab", 0, (1, 2)),
        ("a\u200bb", 0, (0, 2)),
        ("a\u200bb", 1, (2, 3)),
        ("ｶﾞﾊﾟ", 1, (2, 4)),
        ("龍é①龍", 3, (3, 4)),
    ],
)
def test_offsets_by_hand(text, at, place):
    _, offsets = normalise_with_offsets(text)
    assert (offsets.start(at), offsets.end(at + 1)) == place


@pytest.mark.parametrize("marks", ["\u0301", "\u0301\u0323", "\u1161", "\u200b", "\u0f73\u0f71"])
def test_a_million_marks(marks):
    # NFKC sorts marks by insertion: left alone, the second of these takes minutes.
    text = "xa" + marks * (1_000_000 // len(marks)) + "云"
    normal, offsets = normalise_with_offsets(text)
    assert normal == normalise(text)
    assert len(normal) < 1000
    assert offsets.start(len(normal) - 1) == len(text) - 1


@pytest.mark.parametrize("length", [*range(120, 140), *range(250, 262), *range(380, 388)])
@pytest.mark.parametrize("before", ["", "a", "ab" * 64])
def test_long_pieces_are_cut_the_same_by_both(length, before):
    text = before + "\u0301\u0323" * length
    assert normalise_with_offsets(text)[0] == normalise(text)
    assert normalise_with_offsets(text + "x")[0] == normalise(text + "x")


def test_thirty_marks_are_kept():
    # As many as the longest that Unicode's Stream-Safe Text Format allows.
    text = "q" + "\u0301" * 30
    assert normalise(text) == text
