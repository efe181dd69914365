"""The score: by hand, and against FTS5's own bm25()."""

import math
import sqlite3

import pytest

from datasette_memory.search.scoring import idf, score
from datasette_memory.search.sizes import lengths, totals, varints
from datasette_memory.text.tokenise import FTS5_TOKENIZE


def test_idf_by_hand():
    # 9 cards, 1 holds it: ln(1 + 8.5 / 1.5) = ln(20 / 3).
    assert idf(9, 1) == pytest.approx(1.8971199848858813)
    # All hold it: ln(1 + 0.5 / 9.5), which is little and above zero.
    assert idf(9, 9) == pytest.approx(0.05129329438755058)
    assert idf(9, 12) == idf(9, 9)


def test_a_score_by_hand():
    # Length 20 of 10 on average: k1 (1 - b + b 2) = 1.2 * 1.75 = 2.1.
    # Held twice, worth 3: 3 * 2 * 2.2 / 4.1 = 3.2195; not held, worth 1.
    # Share 3 of 4: 1 + 0.5 * 0.5625 = 1.28125.
    assert score([2, 0], [3.0, 1.0], 20, 10) == pytest.approx(3 * 4.4 / 4.1 * 1.28125)
    assert score([0, 0], [3.0, 1.0], 20, 10) == 0
    assert score([1], [0.0], 5, 10) == 0


@pytest.fixture
def index():
    """Texts of letters, of which FTS5 knows everything."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute(
        f'create virtual table cards_fts using fts5(a, b, tokenize="{FTS5_TOKENIZE}")'
    )
    texts = [("x y", "z x"), ("y", "y z z w"), ("w", ""), ("", "v v v v"), ("u", "t s r q p")]
    connection.executemany("insert into cards_fts values (?, ?)", texts)
    return connection


def test_sizes_are_those_of_fts5(index):
    assert totals(index) == (5, (4 + 5 + 1 + 4 + 6) / 5)
    assert lengths(index, [1, 2, 5, 77]) == {1: 4, 2: 5, 5: 6}
    index.execute("delete from cards_fts where rowid = 5")
    assert totals(index) == (4, (4 + 5 + 1 + 4) / 4)
    index.execute("delete from cards_fts")
    assert totals(index) == (0, 0.0)


def test_varints_by_the_file_format():
    assert varints(bytes([0x00, 0x7F, 0x81, 0x00, 0x82, 0x01])) == [0, 127, 128, 257]
    assert varints(b"\xff" * 9) == [2**64 - 1]


def test_the_sum_is_that_of_bm25(index):
    """With the idf of FTS5, and every term held, the score is 1.5 times bm25()."""
    cards, average = totals(index)
    counts = {"v": {4: 4}, "u": {5: 1}, "q": {5: 1}}
    for query in ("v", "u AND q"):
        terms = query.split(" AND ")
        worth = [math.log((cards - 1 + 0.5) / (1 + 0.5)) for _ in terms]
        for id, value in index.execute(
            "select rowid, -rank from cards_fts where cards_fts match ?", [query]
        ):
            ours = score(
                [counts[term][id] for term in terms], worth, lengths(index, [id])[id], average
            )
            assert ours == pytest.approx(1.5 * value)
