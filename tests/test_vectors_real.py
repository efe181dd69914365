"""The model of the extra `vectors` itself: it is there, works without a network, and means something.

`make test-vectors` runs these.
"""

import socket
import subprocess
import sys

import numpy
import pytest

from datasette_memory.index import embedder
from datasette_memory.memory import Memory

pytestmark = pytest.mark.vectors


def test_it_gives_unit_vectors_whatever_the_text():
    model = embedder.load()
    assert model.name == embedder.installed()
    texts = ["缓存", "", "cache", "\n", "🙂", "x" * 5_000, "\ud7ff\u0000"]
    vectors = embedder.embed(texts)
    assert vectors.shape == (len(texts), 512)
    # Alone or among others, a text has one vector.
    assert numpy.allclose(embedder.embed(["cache"])[0], vectors[2], atol=1e-4)


def test_the_same_in_another_language_is_nearer_than_another_thing():
    cat, mao, backup, beifen = embedder.embed(
        [
            "The cat sleeps on the sofa.",
            "猫在沙发上睡觉。",
            "The database is backed up at night.",
            "数据库每天晚上备份。",
        ],
    )
    assert min(cat @ mao, backup @ beifen) > max(cat @ backup, cat @ beifen, mao @ beifen) + 0.2


def test_it_opens_no_connection(monkeypatch):
    def refuse(*_):
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    embedder.load.cache_clear()
    embedder.embed(["猫"])


def test_a_chinese_question_finds_an_english_card(tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    cards = {
        "backup": "The full database dump starts at two in the morning.",
        "coffee": "Descale the coffee machine once a month with citric acid.",
        "cat": "The cat gets its shots every spring. She hates the basket.",
        "lease": "The deposit is two months of rent and comes back after the inspection.",
    }
    for name, text in cards.items():
        (folder / f"{name}.md").write_text(f"# {name}\n\n{text}\n", "utf-8")
    command = [sys.executable, "-c", "from memory_cli.main import main; main()"]
    home = ["--home", str(tmp_path / "home")]
    memory = Memory(home[1])
    assert memory.import_paths([str(folder)]).vectors == 4
    for question, name in [
        ("咖啡机多久除一次水垢？", "coffee"),
        ("猫什么时候打疫苗？", "cat"),
        ("租房的押金是几个月房租？", "lease"),
    ]:
        done = subprocess.run([*command, *home, "search", question], capture_output=True)
        first = done.stdout.decode().splitlines()
        assert done.returncode == 0 and f"{name}.md" in "\n".join(first[:3]), done
        assert "vector" in "\n".join(first[:3])
        assert memory.search(question).hits[0].path == f"{name}.md"
