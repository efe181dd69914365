"""Whether a text holds the words of a query as they were typed.

The index calls more things equal: English endings, words with signs between them, pairs of
characters wherever they stand. Where some cards hold keywords as they were typed, the others only
happen to match.
"""

import unicodedata

from .lazy import lazy
from .normalise import normalise
from .tokenise import camel_parts

_LATIN_WITH_MARK = lazy("[\u00c0-\u024f\u1e00-\u1eff]")


def folded(text: str) -> str:
    """A text in the form in which `holds` compares: normalised, without case and without the
    diacritics of Latin letters."""
    folded = normalise(text).casefold()
    return _LATIN_WITH_MARK.sub(lambda found: unicodedata.normalize("NFD", found[0])[0], folded)


def pieces(query: str, together: bool = False) -> tuple[tuple[str, ...], ...]:
    """What stands between the spaces of a query, folded; each with its other spellings: `hostKey`
    is `host key`, `host_key` and `host-key` as well. With `together` the query is one piece, and
    `user by id` is `userById` too."""
    found = []
    words = normalise(query).split()
    for piece in [" ".join(words)] if together else words:
        parts = words if together else [part for _, part in camel_parts(piece)]
        spelt = [sign.join(parts) for sign in " _-"] if parts else []
        if together:
            spelt.append("".join(words))
        found.append(tuple(folded(one) for one in (piece, *spelt)))
    return tuple(dict.fromkeys(found))


def holds(text: str, pieces: tuple[tuple[str, ...], ...]) -> bool:
    """Whether a folded text holds every piece in one of its spellings, be it within a word."""
    return all(any(spelling in text for spelling in piece) for piece in pieces)
