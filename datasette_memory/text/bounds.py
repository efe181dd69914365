"""How many findings of one pattern are told apart."""

from collections.abc import Iterator
from itertools import islice

#: The class of all that stands behind the findings that are told apart, and of what is in between.
MORE = "more"

# So many findings of one pattern are told apart.
_MOST = 1000

_Span = tuple[int, int, str]


def bounded(spans: Iterator[_Span], length: int) -> Iterator[_Span]:
    """The first spans of many, and then one from the next to the end of the text.

    `spans` come in the order of the text: a text of nothing but findings costs no more to look
    through than another, and nothing in it stays unmasked.
    """
    yield from islice(spans, _MOST)
    for start, _, _ in spans:
        yield start, length, MORE
        return
