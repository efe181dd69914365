"""Cards that say nearly the same: found among many, whatever all of them share."""

import random

import pytest

from datasette_memory.index.connection import connect_write
from datasette_memory.index.migrations import migrate
from datasette_memory.index.near import near
from datasette_memory.index.single import index_card
from datasette_memory.text.similar import jaccard

# A thousand words, of which the first are far more common than the last.
WORDS = [f"{a}{b}{c}" for a in "bcdfghklmn" for b in "aeiou" for c in "bdfgklmnprstvwxzqjch"]
CHINESE = [chr(0x4E00 + number * 7) for number in range(600)]


def text(pick: random.Random, count: int = 120) -> str:
    half = [WORDS[min(int(pick.expovariate(1 / 120)), 999)] for _ in range(count // 2)]
    other = [CHINESE[min(int(pick.expovariate(1 / 90)), 599)] for _ in range(count)]
    return " ".join(half) + "\n" + "".join(other)


@pytest.fixture(scope="module")
def thousand(tmp_path_factory):
    """An index of a thousand cards, by which few words are rare, and their texts."""
    connection = connect_write(tmp_path_factory.mktemp("near") / "memory.db")
    migrate(connection)
    connection.execute("pragma synchronous = off")
    connection.execute(
        "insert into sources (name, root, exclude, max_bytes) values ('vault', '/', '[]', 1)"
    )
    pick = random.Random(1)
    texts = []
    for number in range(1000):
        body = text(pick)
        texts.append(body)
        data = f"---\nid: N_{number:04}\ntitle: Card {number}\n---\n{body}\n".encode()
        index_card(connection, "vault", f"{number}.md", data, 0)
    # Sixty that differ by a word or two: no word of theirs is rare.
    daily = "the pumps ran all night " + text(random.Random(2), 80)
    for number in range(60):
        data = f"---\nid: D_{number:04}\ntitle: Daily {number}\n---\n{daily} day{number}\n".encode()
        index_card(connection, "vault", f"daily-{number}.md", data, 0)
    yield connection, texts, daily
    connection.close()


def changed(body: str, share: float, pick: random.Random) -> str:
    """The text with a share of its words and characters replaced by others."""
    words, characters = body.split("\n")
    words = [pick.choice(WORDS) if pick.random() < share else word for word in words.split()]
    characters = [pick.choice(CHINESE) if pick.random() < share / 2 else c for c in characters]
    return " ".join(words) + "\n" + "".join(characters)


def test_near_duplicates_are_found_among_a_thousand(thousand):
    connection, texts, _ = thousand
    pick = random.Random(3)
    tried = 0
    for number in range(0, 1000, 5):
        nearly = changed(texts[number], 0.07, pick)
        if jaccard(nearly, texts[number]) < 0.8:
            continue
        tried += 1
        assert f"{number}.md" in [path for _, path, *_ in near(connection, nearly, 10)]
    assert tried > 100


def test_at_most_so_many_are_given(thousand):
    connection, texts, _ = thousand
    for limit in (0, 1, 10):
        assert len(near(connection, texts[0], limit)) <= limit


def test_one_of_many_that_say_the_same(thousand):
    connection, _, daily = thousand
    paths = [path for _, path, *_ in near(connection, f"{daily} day99", 10)]
    assert any(path.startswith("daily-") for path in paths)


def test_a_text_without_words_has_no_neighbours(thousand):
    connection, *_ = thousand
    for nothing in ("", "!!! ???", "，。"):
        assert near(connection, nothing, 10) == []


def test_words_that_nobody_has_lead_nowhere(thousand):
    connection, *_ = thousand
    assert near(connection, " ".join(f"unheard{n}of" for n in range(50)), 10) == []


def test_any_length(thousand):
    connection, texts, _ = thousand
    words = texts[7].split()
    for count in range(1, 40):
        near(connection, " ".join(words[:count]), 10)
