"""Edits as insertions into a text, so that whatever is not inserted keeps its bytes."""

from collections.abc import Iterable
from dataclasses import dataclass


class EditFault(ValueError):
    """A text that cannot be edited without harm; `str()` says why, with the line where known."""


class Taken(EditFault):
    """The place is taken by something that somebody else has written."""


@dataclass(frozen=True, slots=True)
class Splice:
    """`text`, to stand at the character offset `at` of the text before the edit."""

    at: int
    text: str


class Put(dict):
    """A value to set whole under its key, where a plain dict is merged key by key."""


def insert(text: str, splices: Iterable[Splice]) -> str:
    """The text with all the splices in it."""
    parts, at = [], 0
    for one in sorted(splices, key=lambda one: one.at):
        parts += text[at : one.at], one.text
        at = one.at
    return "".join([*parts, text[at:]])


def undo(text: str, inserted: Iterable[str]) -> str | None:
    """The text without what was inserted; None unless each piece stands in it exactly once."""
    for piece in inserted:
        if text.count(piece) != 1:
            return None
        text = text.replace(piece, "")
    return text


def undo_at(text: str, splices: Iterable[Splice]) -> str | None:
    """The text before `insert`, when it is what `insert` gave; None when a piece is not there."""
    splices = sorted(splices, key=lambda one: one.at)
    parts, at, shift = [], 0, 0
    for one in splices:
        start = one.at + shift
        if text[start : start + len(one.text)] != one.text:
            return None
        parts.append(text[at:start])
        at = start + len(one.text)
        shift += len(one.text)
    return "".join([*parts, text[at:]])


def merged(value: object, tree: object) -> object:
    """`value` with the additions of `tree` in it, as plain data.

    Within `tree` a dict is merged key by key, a list is appended, and a `Put` is set.
    """
    if isinstance(tree, Put):
        return dict(tree)
    if isinstance(tree, dict):
        result = dict(value) if isinstance(value, dict) else {}
        for key, addition in tree.items():
            result[key] = merged(result.get(key), addition)
        return result
    if isinstance(tree, list):
        return [*(value if isinstance(value, list) else []), *tree]
    return tree


def newline_of(text: str) -> str:
    """The line end that the text uses."""
    return "\r\n" if "\r\n" in text else "\n"
