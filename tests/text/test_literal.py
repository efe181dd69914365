"""Words as they were typed."""

import pytest

from datasette_memory.text.literal import folded, holds, pieces


@pytest.mark.parametrize(
    "text, query, expected",
    [
        ("Word embedding", "embedding", True),
        ("an embedded word", "embedding", False),
        ("two requests", "request", True),
        ("getUserById(1)", "userById", True),
        ("八月和九月十四日", "八月十四日", False),
        ("臺北的網路", "网路 台北", True),
        ("index.db, WAL", "index.db-wal", False),
        ("７月２８日", "7月28日", True),
        ("Café à Zürich", "cafe zurich", True),
        ("cafe", "Café", True),
        ("がぎ", "かき", False),
        ("한국어", "한국", True),
        ("the host key, host-keys", "hostKey", True),
        ("host with a key", "hostKey", False),
        ("anything", "", True),
    ],
)
def test_what_a_text_holds(text, query, expected):
    assert holds(folded(text), pieces(query)) is expected


@pytest.mark.parametrize(
    "text, expected",
    [
        ("the user by id", True),
        ("getUserById(1)", True),
        ("user_by_id", True),
        ("a user found by its id", False),
    ],
)
def test_words_that_belong_together(text, expected):
    assert holds(folded(text), pieces("user by id", together=True)) is expected
