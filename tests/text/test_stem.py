"""What FTS5 really keeps of our tokens, by its own vocabulary table."""

import itertools
import sqlite3
import sys
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datasette_memory.text.query import parse
from datasette_memory.text.stem import MOST_CHANGED, index_key, other_endings
from datasette_memory.text.tokenise import FTS5_TOKENIZE, index_text, tokens


def kept_by_fts5(texts: list[str]) -> list[list[bytes]]:
    """The terms that FTS5 makes of each text, in order."""
    connection = sqlite3.connect(":memory:")
    connection.text_factory = bytes  # the stemmer may cut a character in two
    connection.execute(f'create virtual table f using fts5(a, tokenize="{FTS5_TOKENIZE}")')
    connection.execute("create virtual table v using fts5vocab(f, instance)")
    connection.executemany("insert into f (rowid, a) values (?, ?)", enumerate(texts))
    terms: list[list[bytes]] = [[] for _ in texts]
    for document, term in connection.execute("select doc, term from v order by doc, offset"):
        terms[document].append(term)
    connection.close()
    return terms


def key(token: str) -> bytes:
    return index_key(token).encode("utf-8", "surrogateescape")


def differing(words: list[str]) -> list[tuple[str, list[bytes], bytes]]:
    """Those words of which FTS5 does not keep exactly their index key."""
    kept = kept_by_fts5(words)
    return [(w, terms, key(w)) for w, terms in zip(words, kept) if terms != [key(w)]]


# From Porter's paper and from Martin Porter's remarks on his own program.
@pytest.mark.parametrize(
    "word, stem",
    [
        ("caresses", "caress"),
        ("ponies", "poni"),
        ("caress", "caress"),
        ("cats", "cat"),
        ("feed", "feed"),
        ("agreed", "agre"),
        ("plastered", "plaster"),
        ("bled", "bled"),
        ("motoring", "motor"),
        ("sing", "sing"),
        ("conflated", "conflat"),
        ("sized", "size"),
        ("hopping", "hop"),
        ("falling", "fall"),
        ("filing", "file"),
        ("happy", "happi"),
        ("sky", "sky"),
        ("relational", "relat"),
        ("vietnamization", "vietnam"),
        ("hopefulness", "hope"),
        ("electrical", "electr"),
        ("adoption", "adopt"),
        ("probate", "probat"),
        ("rate", "rate"),
        ("controll", "control"),
        ("roll", "roll"),
        ("possibly", "possibl"),
        ("archaeology", "archaeolog"),
    ],
)
def test_porter_by_the_paper(word, stem):
    assert index_key(word) == stem


@pytest.mark.parametrize(
    "token, kept",
    [
        ("阿里", "阿里"),
        ("が", "が"),
        ("café", "cafe"),
        ("naïve", "naiv"),
        ("cafés", "cafe"),
        ("q\u0301", "q"),
        ("q\u0305", "q\u0305"),  # unicode61 does not count an overline as a diacritic
        ("ộ", "ộ"),  # nor takes off two at once
        ("łódź", "łodz"),
        ("हिन्दी", "हिन्दी"),
        ("й", "й"),
        ("8765", "8765"),
        ("as", "as"),
        ("sses", "sse"),
        ("ies", "ie"),
        ("ing", "ing"),
        ("", ""),
    ],
)
def test_keys_by_hand(token, kept):
    assert index_key(token) == kept
    if token:
        assert kept_by_fts5([token]) == [[kept.encode()]]


SUFFIXES = (
    "s ss es sses ies ed eed ing y e ee ll al ational tional enci anci izer logi bli alli entli eli "
    "ousli ization ation ator alism iveness fulness ousness aliti iviti biliti icate ative alize "
    "iciti ical ful ness ance ence er ic able ible ant ement ment ent ion sion tion ou ism ate iti "
    "ous ive ize ability ably ingly edly ying ation ations bility ogy y's"
).split()
STEMS = (
    "a y b s oy ay by cr tr ee aa st sky yo tree oats hop hopp fall fil fizz troubl siz conflat "
    "agre relat condition vale digit radic analog vile vietnam predic oper feud deci sens form "
    "tripl electr hope good reviv allow infer air adjust irrit replac depend adopt homo commun "
    "activ angular effect bowdl prob ceas contr roll kubernet cluster deploy queri index snippet "
    "x1 2 café straß łódź ру αβ की 里"
).split()


def test_porter_over_stems_and_suffixes():
    words = {stem + suffix for stem in STEMS for suffix in ["", *SUFFIXES]}
    words |= {a + b + c for a, b, c in itertools.product(STEMS[:20], SUFFIXES, SUFFIXES)}
    found = sorted({token.text for word in words for token in tokens(word)})
    assert len(found) > 50_000
    assert differing(found) == []


def test_porter_over_all_short_words():
    # Every word of up to five letters over two vowels, y, two consonants that double or end a
    # rule, and the letters of -ed, -ing, -s.
    words = ["".join(w) for n in range(1, 6) for w in itertools.product("aeyslngd", repeat=n)]
    assert differing(words) == []


@pytest.mark.parametrize("size", [2, 3, *range(55, 66), 100])
@pytest.mark.parametrize("filling", ["b", "é", "ł", "阿"])
def test_porter_stops_at_a_length_in_bytes(size, filling):
    # é loses its accent first and counts one byte, ł two.
    words = [filling * (size // width) + "aling" for width in (1, 2, 3)]
    words += ["x" + word for word in words] + ["xx" + word for word in words]
    assert differing(sorted(set(words))) == []


def test_a_very_long_token_is_cut():
    words = ["a" * 32767 + "s", "a" * 32768, "a" * 32769, "a" * 100_000, "q" + "й" * 20_000]
    assert differing(words) == []
    assert index_key("a" * 40_000) == index_key("a" * 50_000)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=12), max_size=60))
def test_porter_over_any_ascii_words(words):
    assert differing(words) == []


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.builds(
            "".join,
            st.lists(
                st.sampled_from([*"aeiouybcdlstxéñłжα\u0e33\u1041\u0301\u0323", *SUFFIXES]),
                min_size=1,
                max_size=8,
            ),
        ),
        max_size=40,
    )
)
def test_porter_over_words_with_letters_of_other_scripts(words):
    assert differing([token.text for word in words for token in tokens(word)]) == []


def test_fts5_makes_one_token_of_each_character():
    characters = [chr(i) for i in range(sys.maxunicode + 1)]
    letters = [c for c in characters if c.isalnum() or unicodedata.category(c)[0] == "M"]
    found = sorted({t.text for c in letters for text in (c, f"q{c}") for t in tokens(text)})
    assert len(found) > 100_000
    assert differing(found) == []


@settings(max_examples=400, deadline=None)
@given(st.lists(st.text(max_size=60), max_size=10))
def test_fts5_keeps_the_keys_of_a_text_in_order(texts):
    kept = kept_by_fts5([index_text(text) for text in texts])
    assert kept == [[key(token.text) for token in tokens(text)] for text in texts]


def test_how_far_a_stem_strays_from_its_word():
    # matches.find() passes over words that do not begin like a key.
    words = {"".join(w) for w in itertools.product(STEMS, SUFFIXES, ["", *SUFFIXES])}
    words |= {"".join(w) for n in range(1, 6) for w in itertools.product("aeyslngd", repeat=n)}
    for word in words:
        if word.isascii() and word.isalnum():
            stored = index_key(word)
            assert word.startswith(stored[: max(1, len(stored) - MOST_CHANGED)]), word


# What is typed before a word is finished.
WORDS = (
    "configuration tokenizer tokenization embedding organizational generalization relational "
    "happiness hopefully rollback restoring deployments dependency possibilities conditional "
    "effectiveness adjustable irritant replacement adoption communism activate formalize "
    "decisiveness sensibility vietnamization operator triplicate formative electrical goodness "
    "revival allowance inference airliner gyroscopic defensible homologous bowdlerize plotted"
).split()


def test_a_word_is_found_by_any_beginning_of_four_letters():
    connection = sqlite3.connect(":memory:")
    connection.execute(f'create virtual table f using fts5(a, tokenize="{FTS5_TOKENIZE}")')
    connection.executemany("insert into f values (?)", [(index_text(word),) for word in WORDS])
    missed = []
    for number, word in enumerate(WORDS, 1):
        for end in range(4, len(word) + 1):
            (term,) = parse(word[:end])
            match = term.expression(prefix=True)
            sql = "select rowid from f where a match ?"
            if (number,) not in connection.execute(sql, [match]).fetchall():
                missed.append((word, word[:end], match))
    assert missed == []


def test_other_endings_by_hand():
    def keys(beginning):
        return {index_key(word) for word in other_endings(beginning)}

    assert "configur" in keys("configurati") and "token" in keys("tokeni")
    assert "embed" in keys("embeddi") and "possibl" in keys("possibilit")
    assert all(word.startswith("configurati") for word in other_endings("configurati"))
    for finished in ("backup", "search", "index", "query", "配置", "ab", ""):
        assert other_endings(finished) == ()
