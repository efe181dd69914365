"""Words and vectors together, with a model that knows three things, in two languages."""

import contextlib
import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

from datasette_memory.index.connection import connect_read, sqlite3
from datasette_memory.memory import Memory
from datasette_memory.search import vectors
from datasette_memory.search.functions import register
from datasette_memory.search.sqlite import SQLiteSearcher

_spec = importlib.util.spec_from_file_location(
    "models", Path(__file__).parents[1].joinpath("models.py")
)
models = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(models)

CARDS = {
    "cache.md": "# Emptying the cache\n\nRun the cleaner at night.",
    "backup.md": "# Nightly backup\n\nIt goes to the other house.",
    "cat.md": "# The cat\n\nShe eats at seven.",
    "lamp.md": "# A lamp\n\nGreen.",
    "zh.md": "# 灯\n\n怎么打开书房里的灯。",
}
QUESTION = "怎么清理很大的缓存？"


@pytest.fixture
def model(monkeypatch):
    model = models.Model()
    models.install(monkeypatch, model)
    return model


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    for path, text in CARDS.items():
        (folder / path).write_text(text, "utf-8")
    return folder


@pytest.fixture
def memory(tmp_path, folder):
    return Memory(str(tmp_path / "home"))


def paths(result) -> list[str]:
    return [hit.path for hit in result.hits]


def answer(memory: Memory, **options) -> list[tuple[str, str, float]]:
    hits = memory.search(QUESTION, **options).hits
    return [(hit.path, hit.matched, hit.coverage) for hit in hits]


def test_a_question_finds_a_card_in_another_language(memory, folder, model):
    memory.import_paths([str(folder)])
    result = memory.search(QUESTION)
    found = {hit.path: hit for hit in result.hits}
    assert found["cache.md"].matched == "vector"
    assert found["cache.md"].coverage == 0
    assert found["cache.md"].highlights == ()
    # It shares words with the question, and is as far from it as cards go.
    assert found["zh.md"].matched == "any"
    assert found["zh.md"].coverage > 0
    assert "hold no term of the query" in result.notice
    assert not {"backup.md", "cat.md", "lamp.md"} & found.keys()


def test_a_card_found_by_its_vector_says_which_words_it_holds(memory, folder, model):
    memory.import_paths([str(folder)])
    result = memory.search("What should I know about the cleaner of 缓存 and what about the moon?")
    assert result.hits[0].path == "cache.md"
    assert result.hits[0].matched == "any"


def test_without_hits_by_words_the_vector_alone_answers(memory, folder, model):
    memory.import_paths([str(folder)])
    result = memory.search("猫")
    assert (paths(result), result.tier) == (["cat.md"], "vector")
    assert result.hits[0].snippet


def test_what_is_near_nothing_finds_nothing(memory, folder, model):
    (folder / "lamp.md").unlink()
    (folder / "zh.md").unlink()
    memory.import_paths([str(folder)])
    assert memory.search("kangaroo").hits == ()


def test_keywords_with_exact_hits_ask_no_model(memory, folder, model):
    memory.import_paths([str(folder)])
    model.texts.clear()
    assert paths(memory.search("cleaner")) == ["cache.md"]
    assert model.texts == []


@pytest.mark.parametrize(
    "other, said",
    [
        (None, "need tiny 1, which is not installed (pip install 'datasette-memory[vectors]')"),
        (models.Model("tiny 2"), "are of tiny 1, and tiny 2 is installed. `memory index`"),
    ],
)
def test_without_its_model_words_alone_answer_and_it_is_said(
    memory, folder, model, monkeypatch, other, said
):
    memory.import_paths([str(folder)])
    models.install(monkeypatch, other)
    assert [path for path, *_ in answer(memory)] == ["zh.md"]
    assert said in memory.search(QUESTION).notice


class Raises(models.Model):
    def embed(self, texts):
        raise OSError("weights.npz is gone")


class Damaged(models.Model):
    def embed(self, texts):
        raise KeyError


class Short(models.Model):
    def embed(self, texts):
        return super().embed(texts)[:, :3]


class Infinite(models.Model):
    def embed(self, texts):
        return super().embed(texts) * numpy.nan


@pytest.mark.parametrize(
    "broken, said",
    [
        (Raises(), "weights.npz is gone"),
        (Damaged(), "fails (KeyError)"),
        (Short(), "gave vectors of shape (1, 3), not (1, 4)"),
        (Infinite(), "have not the length 1"),
    ],
)
def test_a_broken_model_leaves_words(memory, folder, model, monkeypatch, broken, said):
    memory.import_paths([str(folder)])
    models.install(monkeypatch, broken)
    assert [path for path, *_ in answer(memory)] == ["zh.md"]
    assert said in memory.search(QUESTION).notice


def test_an_index_without_vectors_says_nothing_of_them(memory, folder, model, monkeypatch):
    models.install(monkeypatch, None)
    memory.import_paths([str(folder)])
    models.install(monkeypatch, model)
    result = memory.search(QUESTION)
    assert paths(result) == ["zh.md"]
    assert "vector" not in result.notice
    assert model.texts == []


def test_cards_without_a_vector_are_counted(memory, folder, model):
    memory.import_paths([str(folder)])
    assert "no vector yet" not in memory.search(QUESTION).notice
    memory.capture("咖啡", "关于咖啡的一件事，说得足够长，才能记下来。")
    assert "1 card has no vector yet: `memory index` makes it." in memory.search(QUESTION).notice
    memory.index()
    assert "no vector yet" not in memory.search(QUESTION).notice


def test_vectors_that_were_read_earlier_find_no_card_of_today(memory, folder, model):
    memory.import_paths([str(folder)])
    assert ("cache.md", "vector", 0) in answer(memory)
    (folder / "cache.md").write_text("# Nothing\n\nOf it.", "utf-8")
    (folder / "cat.md").unlink()
    with pytest.MonkeyPatch.context() as patch:
        models.install(patch, None)
        memory.import_paths([str(folder)])
    assert [path for path, *_ in answer(memory)] == ["zh.md"]
    assert paths(memory.search("猫")) == []
    memory.import_paths([str(folder)])
    assert [path for path, *_ in answer(memory)] == ["zh.md"]


def test_filters_and_replaced_cards_hold_for_vectors_too(memory, folder, model):
    (folder / "cache.md").write_text(
        "---\nkind: tool\ntags: [ops]\nsuperseded_by: x\n---\n" + CARDS["cache.md"], "utf-8"
    )
    (folder / "new.md").write_text("---\nkind: note\n---\n# Cache again\n\nBetter.", "utf-8")
    memory.import_paths([str(folder)])
    by_vector = {path for path, matched, _ in answer(memory) if matched == "vector"}
    assert by_vector == {"new.md"}
    assert "1 superseded card is left out" in memory.search(QUESTION).notice
    everything = {path for path, *_ in answer(memory, superseded=True)}
    assert everything == {"new.md", "cache.md", "zh.md"}
    assert [path for path, *_ in answer(memory, kind="tool", superseded=True)] == ["cache.md"]
    assert answer(memory, kind="tool") == []
    assert answer(memory, tags=["none"]) == []


def test_sql_gives_the_same(memory, folder, model):
    memory.import_paths([str(folder)])
    connection = sqlite3.connect(memory.db)
    register(connection)
    rows = connection.execute(
        "select value ->> 'path', value ->> 'matched', value ->> 'coverage' "
        "from json_each(memory_search(?, 5))",
        [QUESTION],
    ).fetchall()
    connection.close()
    assert rows == [(path, matched, round(share, 3)) for path, matched, share in answer(memory)]


def test_the_secret_cards_are_searched_by_words(memory, folder, model):
    (folder / "s.md").write_text("---\nsensitivity: secret\n---\n# Cache\n\nzq", "utf-8")
    memory.import_paths([str(folder)])
    assert paths(memory.search("缓存", secret=True)) == []
    assert paths(memory.search("zq", secret=True)) == ["s.md"]


def test_words_count_in_full_from_a_share_on():
    # 0.7 of the words where the best card holds 0.6 of what they are worth, half of that at 0.3,
    # and 0.3 of the vector.
    assert vectors.blend(6, 6, 1.0, 0.0) == pytest.approx(0.7)
    assert vectors.blend(3, 6, 0.6, 1.0) == pytest.approx(0.65)
    assert vectors.blend(6, 6, 0.3, 0.0) == pytest.approx(0.35)
    assert vectors.blend(0, 0, 0.0, 0.5) == pytest.approx(0.15)


LIGHT = """
import sys
from memory_cli.main import main
try: main()
except SystemExit: pass
print("numpy" in sys.modules, file=sys.stderr)
"""


@pytest.mark.parametrize("with_vectors", [True, False])
def test_numpy_is_loaded_for_questions_to_vectors_alone(
    memory, folder, model, monkeypatch, with_vectors
):
    if not with_vectors:
        models.install(monkeypatch, None)
    memory.import_paths([str(folder)])
    commands = [["search", "cleaner"], ["stats"], ["capture", "--title", "T", "-"]]
    if not with_vectors:
        commands.append(["search", QUESTION])
    for command in commands:
        done = subprocess.run(
            [sys.executable, "-c", LIGHT, "--home", str(memory.home.home), *command],
            input=b"some text",
            capture_output=True,
            timeout=120,
        )
        assert done.stderr.decode().splitlines()[-1] == "False", done


def test_candidates_are_ranked_by_words_and_by_vectors(memory, folder, model):
    memory.import_paths([str(folder)])
    with contextlib.closing(connect_read(memory.db)) as connection:
        found = SQLiteSearcher(connection).candidates(QUESTION).candidates
    hits = memory.search(QUESTION).hits
    assert [one.path for one in found] == [hit.path for hit in hits]
    ranks = {one.path: (one.lexical_rank, one.vector_rank) for one in found}
    # Its vector alone has found the one, its words alone the other.
    assert ranks["cache.md"] == (None, 1)
    assert ranks["zh.md"] == (1, None)
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
