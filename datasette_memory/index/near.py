"""Cards that may say nearly the same as a text, found at a cost that does not grow with the index.

An OR of all words would read half the index, and a phrase the whole list of its commonest word.
What tells texts apart are words that few cards have: to see that a word is one of those takes
a few rows, however large the index is.
"""

from collections import Counter
from collections.abc import Iterator
from math import gcd

from ..text.tokenise import index_text

# A word is rare when no more cards have it.
_RARE = 50

# So many rare words are looked for, among so many words at the most, here and there in the text.
_RARE_WORDS = 4
_WORDS = 64

# Where many cards say the same, their words are not rare, but whole runs of them stand in all those
# cards: so many runs of so many words are asked for, among so many of the latest cards.
_RUNS = 2
_RUN = 5
_LATEST = 2_000
_ENOUGH = 20


def near(connection, text: str, limit: int) -> list[tuple[str, str, str, str]]:
    """`(ref, path, title, body)` of the cards that share most with `text`, at most `limit`.

    What shares less than half of the rare words is left out: a near-duplicate has most of them.
    """
    found = []
    for id in _candidates(connection, index_text(text).split())[:limit]:
        row = connection.execute(
            "select ref, path, title, body from cards where id = ?", (id,)
        ).fetchone()
        if row:
            found.append(row)
    return found


def _candidates(connection, tokens: list[str]) -> list[int]:
    """The row ids of what may be a near-duplicate, the likeliest first."""
    if not tokens:
        return []
    shared: Counter[int] = Counter()
    weight: Counter[int] = Counter()
    rare = 0
    for token in _scattered(list(dict.fromkeys(tokens)), _WORDS):
        ids = connection.execute(
            "select rowid from cards_fts where cards_fts match ? limit ?",
            (f'"{token}"', _RARE + 1),
        ).fetchall()
        if 0 < len(ids) <= _RARE:
            rare += 1
            for (id,) in ids:
                shared[id] += 1
                weight[id] += 1 / len(ids)
            if rare == _RARE_WORDS:
                break
    likely = [id for id, count in shared.items() if 2 * count >= rare]
    likely.sort(key=lambda id: (-shared[id], -weight[id]))
    runs: Counter[int] = Counter()
    last = connection.execute("select max(id) from cards").fetchone()[0] or 0
    for start in _spread(range(max(1, len(tokens) - _RUN + 1)), _RUNS):
        phrase = " ".join(tokens[start : start + _RUN])
        runs.update(
            id
            for (id,) in connection.execute(
                "select rowid from cards_fts where cards_fts match ? and rowid > ? limit ?",
                (f'"{phrase}"', last - _LATEST, _ENOUGH),
            )
        )
    return list(dict.fromkeys([*likely, *(id for id, _ in runs.most_common())]))


def _scattered(items: list[str], count: int) -> Iterator[str]:
    """At most `count` of the items; the first few are already spread over all of them."""
    size = len(items)
    # Steps of the golden ratio fall between those before.
    step = next(n for n in range(max(1, int(size * 0.618)), size + 1) if gcd(n, size) == 1)
    for number in range(min(count, size)):
        yield items[number * step % size]


def _spread(items: range, count: int) -> list[int]:
    """`count` of the items, evenly spread, or all when there are fewer."""
    if len(items) <= count:
        return list(items)
    return [items[(len(items) - 1) * number // (count - 1)] for number in range(count)]
