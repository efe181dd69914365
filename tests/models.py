"""A model of vectors for tests: it knows three things, in two languages."""

import numpy

from datasette_memory.index import embedder

CACHE, BACKUP, CAT = range(3)
WORDS = {"cache": CACHE, "缓存": CACHE, "backup": BACKUP, "备份": BACKUP, "cat": CAT, "猫": CAT}


class Model:
    """A text is where its known words are, each counted once; one without is far from them all."""

    dimensions = 4

    def __init__(self, name: str = "tiny 1") -> None:
        self.name = name
        self.texts: list[str] = []

    def embed(self, texts):
        self.texts += texts
        vectors = numpy.zeros((len(texts), 4), dtype=numpy.float32)
        for vector, text in zip(vectors, texts):
            for word, axis in WORDS.items():
                if word in text.casefold():
                    vector[axis] = 1
            if not vector.any():
                vector[3] = 1
        return vectors / numpy.linalg.norm(vectors, axis=1, keepdims=True)


def install(monkeypatch, model) -> None:
    """Let `model` be the one that is installed; None for none."""
    name = model and model.name
    monkeypatch.setattr("datasette_memory.index.embedder.installed", lambda: name)
    monkeypatch.setattr("datasette_memory.index.vectors.installed", lambda: name)
    monkeypatch.setattr("datasette_memory.index.embedder.load", lambda: model)
    assert embedder.installed() == name
