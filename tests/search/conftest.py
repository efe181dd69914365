"""An index of a few cards, in memory, and a search over it."""

import contextlib
import itertools
import os

import pytest

from datasette_memory.index.connection import sqlite3
from datasette_memory.index.migrations import migrate
from datasette_memory.index.sync import sync
from datasette_memory.search.sqlite import SQLiteSearcher
from datasette_memory.vault.sources import Source


@pytest.fixture
def make_searcher(tmp_path):
    """`make_searcher({path: text})`, or `{source: {path: text}}`: a searcher over those cards."""
    with contextlib.ExitStack() as stack:
        places = (tmp_path / str(number) for number in itertools.count())

        def make(cards: dict) -> SQLiteSearcher:
            place = next(places)
            sources = cards if isinstance(next(iter(cards.values())), dict) else {"notes": cards}
            for name, texts in sources.items():
                for path, text in texts.items():
                    file = place / name / path
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_text(text, encoding="utf-8")
                    os.utime(file, (1_767_225_600, 1_767_225_600))  # 2026-01-01T00:00:00Z
            connection = sqlite3.connect(":memory:", isolation_level=None)
            stack.callback(connection.close)
            migrate(connection)
            sync(connection, [Source(name, str(place / name)) for name in sources])
            return SQLiteSearcher(connection)

        yield make
