"""Queries made from the cards of an index, and how long they take beside bare FTS5.

All times are CPU seconds: a search happens in one thread, and a shared machine has other work to do.
"""

import random
import re
import statistics
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from datasette_memory.index.connection import connect_read
from datasette_memory.memory import Memory
from datasette_memory.search.sqlite import SQLiteSearcher
from datasette_memory.text.query import expression, parse


def queries(index: Path, count: int, seed: int = 3) -> list[str]:
    """Queries of two terms, both from one card, half of them Chinese."""
    pick = random.Random(seed)
    found: list[str] = []
    for body in _bodies(index, pick):
        chinese = re.findall("[\u4e00-\u9fff]{6,}", body)
        english = re.findall("[a-z]{5,}", body)
        if len(found) % 2 and len(chinese) > 2:
            runs = pick.sample(chinese, 2)
            found.append(" ".join(r[(at := pick.randrange(len(r) - 2)) : at + 2] for r in runs))
        elif not len(found) % 2 and len(english) > 10:
            found.append(" ".join(pick.sample(english, 2)))
        if len(found) == count:
            break
    return found


def long_questions(index: Path, count: int, seed: int = 3) -> list[str]:
    """Questions of eight pieces of six characters of one Chinese card: 40 pairs of characters."""
    pick = random.Random(seed)
    found: list[str] = []
    for body in _bodies(index, pick):
        runs = re.findall("[\u4e00-\u9fff]{6,}", body)
        if len(runs) >= 8:
            found.append("，".join(run[:6] for run in pick.sample(runs, 8)))
        if len(found) == count:
            break
    return found


def plain_questions(index: Path, count: int, seed: int = 3) -> list[str]:
    """Questions as people ask them, about words of one card each, half of them Chinese."""
    pick = random.Random(seed)
    found: list[str] = []
    for body in _bodies(index, pick):
        chinese = re.findall("[\u4e00-\u9fff]{8,}", body)
        english = re.findall("[a-z]{5,}", body)
        if len(found) % 2 and len(chinese) > 1:
            found.append(f"{pick.choice(chinese)[:8]}是怎么回事？")
        elif not len(found) % 2 and len(english) > 10:
            found.append(f"how do we handle {' '.join(pick.sample(english, 3))}?")
        if len(found) == count:
            break
    return found


def _bodies(index: Path, pick: random.Random) -> Iterator[str]:
    connection = connect_read(index)
    last = connection.execute("select max(id) from cards").fetchone()[0]
    sql = "select body from cards where id = ?"
    while True:
        yield connection.execute(sql, [pick.randint(1, last)]).fetchone()[0]


def keyword_times(index: Path, count: int = 300) -> tuple[list[float], list[float]]:
    """`Memory.search` and the bare SQL of its statements, on the same queries, alternating."""
    memory = Memory(db=str(index))
    bare = connect_read(index)
    whole: list[float] = []
    raw: list[float] = []
    for query in queries(index, count):
        statements: list[str] = []
        tracing = connect_read(index)
        tracing.set_trace_callback(statements.append)
        SQLiteSearcher(tracing).search(query)
        tracing.close()
        begun = time.process_time()
        for sql in statements:
            bare.execute(sql).fetchall()
        raw.append(time.process_time() - begun)
        begun = time.process_time()
        memory.search(query)
        whole.append(time.process_time() - begun)
    return whole, raw


def question_times(index: Path, count: int = 60) -> tuple[list[float], list[float]]:
    """A search of long questions, and the bare OR of all their pairs by bm25, alternating."""
    connection = connect_read(index)
    sql = "select rowid from cards_fts where cards_fts match ? order by rank limit 10"
    ours: list[float] = []
    bare: list[float] = []
    for query in long_questions(index, count):
        match = expression(parse(query), "any")
        begun = time.process_time()
        connection.execute(sql, [match]).fetchall()
        bare.append(time.process_time() - begun)
        begun = time.process_time()
        SQLiteSearcher(connection).search(query, limit=10)
        ours.append(time.process_time() - begun)
    return ours, bare


def p50_p95(seconds: Sequence[float]) -> tuple[float, float]:
    """The median and the 95th percentile, in milliseconds."""
    cuts = statistics.quantiles(seconds, n=20)
    return cuts[9] * 1000, cuts[18] * 1000
