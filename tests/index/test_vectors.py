"""The vectors of the cards: who gets one, when it goes, and what a broken model leaves."""

import contextlib
import importlib.util
import struct
from pathlib import Path

import pytest

from datasette_memory.index.connection import connect_read, connect_write
from datasette_memory.index.migrations import migrate
from datasette_memory.index.vectors import BATCH, READ, fill
from datasette_memory.memory import Memory

_spec = importlib.util.spec_from_file_location(
    "models", Path(__file__).parents[1].joinpath("models.py")
)
models = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(models)


@pytest.fixture
def filled(index):
    """`filled(model)`: what `fill` gives on the index."""

    def run(model):
        with contextlib.closing(connect_write(index.path)) as connection:
            migrate(connection)
            return fill(connection, model)

    return run


def vectors(index) -> dict[str, tuple[float, ...] | None]:
    return {
        path: blob and struct.unpack(f"<{len(blob) // 2}e", blob)
        for path, blob in index.query("select path, embedding from cards order by path")
    }


def test_every_card_gets_a_vector(folder, index, filled):
    folder.write("a.md", "# Cache\n\nA backup of it.")
    folder.write("b.md", "---\nsummary: About the cat\n---\n# B\n\nx")
    folder.write("c.md", "# C\n\n" + "x" * READ + " cat")
    index.sync(folder)
    assert vectors(index) == {"a.md": None, "b.md": None, "c.md": None}
    model = models.Model()
    assert filled(model) == (3, None)
    # Cache and backup stand at 45 degrees to both: 0.7071 is 0.70703125 in 16 bits.
    half = 0.70703125
    assert vectors(index) == {
        "a.md": (half, half, 0, 0),
        "b.md": (0, 0, 1, 0),
        "c.md": (0, 0, 0, 1),  # What follows the first 4,000 characters does not count.
    }
    # The first paragraph, of which the summary was taken, is not told twice.
    assert model.texts[0] == "Cache\n# Cache\n\nA backup of it."


def test_only_what_changed_is_made_again(folder, index, filled):
    for number in range(BATCH + 10):
        folder.write(f"{number}.md", f"# {number}\n\ncat")
    index.sync(folder)
    assert filled(models.Model()) == (BATCH + 10, None)
    assert filled(models.Model()) == (0, None)
    folder.write("3.md", "# 3\n\ncache")
    folder.write("new.md", "# New\n\nbackup")
    index.sync(folder)
    assert [path for path, found in vectors(index).items() if found is None] == ["3.md", "new.md"]
    model = models.Model()
    assert filled(model) == (2, None)
    assert len(model.texts) == 2
    assert vectors(index)["3.md"] == (1, 0, 0, 0)


def test_another_model_makes_all_anew(folder, index, filled):
    folder.write("a.md", "# Cat\n\nx")
    index.sync(folder)
    filled(models.Model("tiny 1"))
    assert filled(models.Model("tiny 2")) == (1, None)
    assert index.query("select value from meta where key = 'vector_model'") == [("tiny 2",)]


class Fails(models.Model):
    def embed(self, texts):
        if self.texts:
            raise OSError("out of order")
        return super().embed(texts)


def test_a_model_that_fails_leaves_what_it_made(folder, index, filled):
    for number in range(BATCH + 1):
        folder.write(f"{number}.md", f"# {number}\n\ncat")
    index.sync(folder)
    made, fault = filled(Fails())
    assert made == 0 and "out of order" in fault
    assert list(vectors(index).values()).count(None) == 1
    assert filled(models.Model("tiny 1")) == (1, None)


def test_a_card_that_becomes_secret_leaves_no_vector(folder, index, filled):
    folder.write("a.md", "# A\n\nThe cat and the backup and the cache")
    folder.write("b.md", "# B\n\nThe cat")
    index.sync(folder)
    filled(models.Model())
    blob = index.query("select embedding from cards where path = 'a.md'")[0][0]
    assert blob in everything(index.path)
    folder.write(
        "a.md", "---\nsensitivity: secret\n---\n# A\n\nThe cat and the backup and the cache"
    )
    index.sync(folder)
    assert list(vectors(index)) == ["b.md"]
    assert blob not in everything(index.path)
    model = models.Model()
    assert filled(model) == (0, None) and model.texts == []


def everything(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in path.parent.glob(path.name + "*"))


@pytest.fixture
def memory(tmp_path, monkeypatch):
    models.install(monkeypatch, models.Model())
    return Memory(str(tmp_path / "home"))


def lacking(memory) -> list[str]:
    with contextlib.closing(connect_read(memory.db)) as connection:
        sql = "select title from cards where embedding is null"
        return [title for (title,) in connection.execute(sql)]


def test_a_change_of_one_card_takes_its_vector_away(memory):
    ref = memory.capture("Cat", "Some text that says enough about it.").ref
    memory.capture("Backup", "Another text, and that one is long enough too.")
    memory.index()
    assert lacking(memory) == []
    memory.update(ref, body="Now it tells everything about the cache.")
    assert lacking(memory) == ["Cat"]
    assert memory.index().vectors == 1
    assert lacking(memory) == []


def test_a_rebuild_takes_vectors_along(memory, monkeypatch):
    memory.capture("Cat", "Some text that says enough about it.")
    memory.capture("Backup", "Another text, and that one is long enough too.")
    assert memory.index().vectors == 2
    path = next(memory.home.vault.rglob("*ackup*.md"))
    path.write_text(path.read_text("utf-8").replace("Another", "Whatever"), "utf-8")
    assert memory.index(rebuild=True).vectors == 1
    assert lacking(memory) == []


def test_verify_and_repair_think_nothing_of_vectors(memory):
    memory.capture("Cat", "Some text that says enough about it.")
    memory.index()
    assert memory.verify(deep=True).differences == []
    assert memory.index(rebuild=True).notes == []
    assert memory.verify(deep=True).differences == []


def test_an_index_goes_on_without_its_model(memory, monkeypatch):
    memory.capture("Cat", "Some text that says enough about it.")
    broken = Fails()
    broken.texts = ["used"]
    models.install(monkeypatch, broken)
    result = memory.index()
    assert result.vectors == 0
    assert result.notes == ["the model tiny 1 fails, and cards are without vectors: out of order"]
