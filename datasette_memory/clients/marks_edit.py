"""A block of ours between two marks, at the end of a text: Markdown, TOML."""

import re

from .splice import EditFault, Splice, newline_of

MARKS = {
    "markdown": ("<!-- datasette-memory: start -->", "<!-- datasette-memory: end -->"),
    "hash": ("# datasette-memory: start", "# datasette-memory: end"),
}


def additions(text: str, body: str, style: str) -> list[Splice]:
    """What to insert so that `body` stands at the end, between marks, after an empty line.

    Raises EditFault when a mark stands in the text already.
    """
    start, end = MARKS[style]
    if start in text or end in text:
        raise EditFault(
            f"a mark {start!r} or {end!r} stands alone; remove what is left of the block"
        )
    newline = newline_of(text)
    lead = ""
    if text.strip("\ufeff"):
        lead = newline if text.endswith("\n") else newline * 2
    block = "\n".join([start, body.strip("\n"), end]) + "\n"
    return [Splice(len(text), lead + block.replace("\n", newline))]


def without(text: str, style: str) -> str:
    """The text without our block, and without the empty line before it."""
    start, end = map(re.escape, MARKS[style])
    pattern = rf"(?:\A|(?<=\n)\r?\n|(?<=\n)){start}\r?\n.*?^{end}[ \t]*(?:\r?\n|\Z)"
    return re.sub(pattern, "", text, flags=re.S | re.M)


def body_of(text: str, style: str) -> str | None:
    """What stands between our marks, with plain line ends; None when they are not there."""
    start, end = map(re.escape, MARKS[style])
    found = re.search(rf"^{start}\r?\n(.*?)\r?\n{end}", text, re.S | re.M)
    return found and found[1].replace("\r\n", "\n")
