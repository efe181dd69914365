"""Where keys and values stand in the YAML of a card, and edits to those places alone.

The marks of the YAML parser give the places; an edit replaces some characters by others, and what
no edit covers stays byte for byte. `revise` decides what to change and checks the outcome.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from .compose import KEYS, TIMES, entry, inline, item

ORDER = {key: number for number, key in enumerate(KEYS)}
REMOVED = object()
"""Stands for the new value of a key that is to go."""

Edit = tuple[int, int, str]
"""Start, end and replacement, in characters."""


class Unsure(Exception):
    """A place is written in a way that these edits do not know."""


def spliced(text: str, edits: list[Edit]) -> str:
    """`text` after all edits, each placed in `text` as it is. Raises Unsure when two overlap."""
    parts: list[str] = []
    done = 0
    for start, end, new in sorted(edits, key=_place):
        if start < done:
            raise Unsure
        parts += (text[done:start], new)
        done = end
    parts.append(text[done:])
    return "".join(parts)


def _place(edit: Edit) -> tuple[int, int]:
    return edit[0], edit[1]


def order_of(key: str) -> int:
    """The rank of a key in the design's order; unknown keys come last."""
    return ORDER.get(key, len(KEYS))


# --- values --------------------------------------------------------------------------------


def says(value: Any) -> bool:
    """Whether a value of `frontmatter.load` counts as written: neither null nor empty text."""
    from .frontmatter import is_null

    return not is_null(value) and value != ""


def identical(one: Any, other: Any) -> bool:
    """Whether two values of `frontmatter.load` are equal, quoted text to quoted text alone."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(identical(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(identical, one, other))
    return one == other


def same(old: Any, new: Any, textual: bool) -> bool:
    """Whether the value `old` that was read is what writing `new` gives.

    Where a key is `textual` its values are read as text, quoted or not.
    """
    from .frontmatter import is_null, resolve

    if isinstance(new, dict):
        return (
            isinstance(old, dict)
            and old.keys() == new.keys()
            and all(same(old[key], new[key], textual) for key in new)
        )
    if isinstance(new, list):
        return (
            isinstance(old, list)
            and len(old) == len(new)
            and all(same(one, other, textual) for one, other in zip(old, new))
        )
    if not isinstance(old, str):
        return False
    if new is None:
        return is_null(old)
    if isinstance(new, str):
        is_text = not is_null(old) if textual else isinstance(resolve(old), str)
        return is_text and str(old) == new
    if type(old) is str and old == inline(new):
        return True
    number = resolve(old)
    return number == new and isinstance(number, bool) == isinstance(new, bool)


# --- where it stands -----------------------------------------------------------------------


@dataclass(slots=True)
class Node:
    """A value and its place in the YAML: characters from `start` to `end`, and in `tail` where
    the first line after it begins. `items` holds children, of a mapping keys and values in turn."""

    start: int
    end: int
    tail: int
    value: Any
    flow: bool = False
    items: list[Node] = field(default_factory=list)

    def pairs(self) -> list[tuple[Node, Node]]:
        return list(zip(self.items[::2], self.items[1::2]))


def nodes(block: str) -> Node | None:
    """The value in the YAML `block` with the places of all its parts, None where there is none.

    Values are those of `frontmatter.load`, which has to accept the block first: nothing is refused
    here. Raises yaml.YAMLError, or ValueError, for bad YAML.
    """
    from yaml import events

    from . import frontmatter

    parser = frontmatter.EventParser(block)
    stack: list[Node] = []
    try:
        while True:
            event = parser.get_event()
            kind = type(event)
            if kind is events.StreamEndEvent:
                return None
            start, end = event.start_mark.index, event.end_mark.index
            if kind is events.ScalarEvent:
                node = _leaf(block, start, end, event)
            elif kind is events.MappingStartEvent or kind is events.SequenceStartEvent:
                value: Any = {} if kind is events.MappingStartEvent else []
                stack.append(Node(start, end, 0, value, bool(event.flow_style)))
                continue
            elif kind is events.MappingEndEvent or kind is events.SequenceEndEvent:
                node = stack.pop()
                if node.flow:
                    node.end, node.tail = end, _next_line(block, end)
                else:
                    # The parser finds the end of a block at what follows it.
                    node.end, node.tail = node.items[-1].end, node.items[-1].tail
                if isinstance(node.value, list):
                    node.value = [child.value for child in node.items]
                else:
                    node.value = {
                        str(key.value): value.value
                        for key, value in node.pairs()
                        if isinstance(key.value, str)
                    }
            else:
                continue
            if not stack:
                return node
            stack[-1].items.append(node)
    finally:
        parser.dispose()


_BLANK_END = re.compile(r"\n[ \t\n]*\Z")


def _leaf(block: str, start: int, end: int, event: Any) -> Node:
    from .frontmatter import TEXT_TAGS, UNSAFE, Quoted

    value = UNSAFE.sub("", event.value)
    if event.tag in TEXT_TAGS or (event.tag is None and not event.implicit[0]):
        value = Quoted(value)
    tail = None
    if event.style in ("|", ">"):
        written = block[start:end]
        if "+" in written.partition("\n")[0]:
            tail = end
        end = start + len(_BLANK_END.sub("", written))
    return Node(start, end, tail or _next_line(block, end), value)


def _next_line(text: str, at: int) -> int:
    return text.find("\n", at) + 1 or len(text)


# --- edits ---------------------------------------------------------------------------------

_COLON = re.compile(r"[ \t]*:")


class Editor:
    """Collects edits to `text`; when not `fine`, a list or mapping that changes is replaced.

    Its methods raise Unsure.
    """

    def __init__(self, text: str, fine: bool) -> None:
        self.text = text
        self.fine = fine
        self.edits: list[Edit] = []

    def root(self, node: Node | None, changes: dict[str, Any]) -> None:
        """Change the whole block: values by their keys as written, or `REMOVED`."""
        if node is not None:
            self.mapping(node, changes, top=True)
        else:
            for key in sorted(changes, key=order_of):
                self.lines(len(self.text), entry(key, changes[key]))

    def lines(self, at: int, lines: list[str]) -> None:
        self.edits.append((at, at, "".join(f"{line}\n" for line in lines)))

    def line_of(self, at: int) -> int:
        """Where the line begins on which what starts at `at` is the first thing."""
        start = self.text.rfind("\n", 0, at) + 1
        if self.text[start:at].strip(" "):
            raise Unsure
        return start

    def column(self, node: Node) -> int:
        return node.start - self.line_of(node.start)

    def mapping(self, node: Node, changes: dict[str, Any], top: bool = False) -> None:
        pairs = node.pairs()
        # Of a key that is written twice, the last one counts.
        latest = {_name(key): number for number, (key, _) in enumerate(pairs)}
        kept = []
        for number, (key, value) in enumerate(pairs):
            new = changes.get(_name(key), value)
            kept.append(new is not REMOVED)
            if new is not REMOVED and new is not value and latest[_name(key)] == number:
                self.change(key, value, new, node.flow)
        added = [key for key in changes if key not in latest]
        if node.flow:
            spans = [(key.start, value.end) for key, value in pairs]
            news = [f"{inline(key)}: {inline(changes[key])}" for key in added]
            self.flow(node, "{}", spans, kept, {len(pairs) - 1: news})
            return
        for (key, value), stays in zip(pairs, kept):
            if not stays:
                # What follows must not become part of a block of text above: a comment parts them.
                start = self.line_of(key.start)
                rest = "" if self.fine else self.text[start : key.start] + "#\n"
                self.edits.append((start, value.tail, rest))
        for key in sorted(added, key=order_of):
            at = _place_of(key, pairs) if top else pairs[-1][1].tail
            self.lines(at, entry(key, changes[key], self.column(pairs[0][0])))

    def change(self, key: Node, value: Node, new: Any, flow: bool) -> None:
        """Replace the value of one key."""
        colon = _COLON.match(self.text, key.end)
        if colon is None:
            raise Unsure
        behind = colon.end()
        old = value.value
        if self.fine and old and new and type(old) is type(new):
            if isinstance(old, list):
                return self.sequence(value, new)
            if isinstance(old, dict):
                gone = {name: REMOVED for name in old if name not in new}
                fresh = {
                    name: item
                    for name, item in new.items()
                    if name not in old or not same(old[name], item, True)
                }
                return self.mapping(value, gone | fresh)
        as_block = isinstance(new, (list, dict)) and bool(new) and not flow
        lines = entry("x", new, 0 if flow else self.column(key))[1:] if as_block else []
        in_block = isinstance(old, (list, dict)) and not value.flow
        if in_block and self.fine:
            # Line by line, so that comments beside the key and between the lines stay.
            first = self.line_of(value.start)
            if first < behind:
                raise Unsure
            if not as_block:
                self.edits.append((behind, behind, f" {inline(new)}"))
            self.edits.append((first, value.tail, "".join(f"{line}\n" for line in lines)))
        elif in_block:
            written = "".join(f"\n{line}" for line in lines) if as_block else f" {inline(new)}"
            self.edits.append((behind, value.end, written))
        elif as_block and not says(old):
            self.edits.append((behind, value.end, ""))
            self.lines(_next_line(self.text, value.end), lines)
        else:
            start = behind if value.start == value.end else value.start
            blank = " " if start == behind else ""
            self.edits.append((start, value.end, blank + inline(new, time=_is_time(key.value))))

    def sequence(self, node: Node, new: list[Any]) -> None:
        """Remove and insert items; those that stay keep their lines."""
        kept, added = _matched([child.value for child in node.items], new)
        if node.flow:
            spans = [(child.start, child.end) for child in node.items]
            self.flow(
                node, "[]", spans, kept, {at: [*map(inline, new)] for at, new in added.items()}
            )
            return
        column = self.column(node)
        starts = []
        above = 0
        for child in node.items:
            starts.append(self.dash_line(child, column, above))
            above = child.end
        for child, start, stays in zip(node.items, starts, kept):
            if not stays:
                self.edits.append((start, child.tail, ""))
        in_line = isinstance(node.items[-1].value, (list, dict)) and node.items[-1].flow
        for number, values in added.items():
            at = starts[0] if number < 0 else node.items[number].tail
            for value in values:
                blanks = " " * column
                self.lines(at, [f"{blanks}- {inline(value)}"] if in_line else item(value, column))

    def dash_line(self, child: Node, column: int, above: int) -> int:
        """Where the line begins that holds the dash of a list's item."""
        start = self.text.rfind("\n", 0, child.start) + 1
        while start > above or above == 0:
            if self.text[start : start + column].strip(" ") == "":
                if self.text[start + column : start + column + 1] == "-":
                    return start
            if start == 0:
                break
            start = self.text.rfind("\n", 0, start - 1) + 1
        raise Unsure

    def flow(
        self,
        node: Node,
        brackets: str,
        spans: list[tuple[int, int]],
        kept: list[bool],
        added: dict[int, list[str]],
    ) -> None:
        """Remove and insert what commas part; `added` maps the child before, or -1, to texts."""
        if True not in kept:
            texts = ", ".join(text for texts in added.values() for text in texts)
            self.edits.append((node.start, node.end, brackets[0] + texts + brackets[1]))
            return
        first = kept.index(True)
        self.edits.append((spans[0][0], spans[first][0], ""))
        for number in range(first + 1, len(spans)):
            if not kept[number]:
                self.edits.append((spans[number - 1][1], spans[number][1], ""))
        for number, texts in added.items():
            if number < first:
                at, text = spans[first][0], "".join(f"{text}, " for text in texts)
            else:
                at, text = spans[number][1], "".join(f", {text}" for text in texts)
            self.edits.append((at, at, text))


def _name(key: Node) -> str:
    """The key as text; a list or mapping as a key has no name."""
    return str(key.value) if isinstance(key.value, str) else ""


def _is_time(key: str) -> bool:
    from .frontmatter import canonical

    known = canonical(key)
    return known is not None and known[0] in TIMES


def _place_of(key: str, pairs: list[tuple[Node, Node]]) -> int:
    """Where the line of a new known key goes: behind the key that comes before it in the design's
    order; behind all for other keys."""
    from .frontmatter import canonical

    if key not in ORDER:
        return pairs[-1][1].tail
    best, at = -1, 0
    for written, value in pairs:
        known = canonical(_name(written))
        number = ORDER[known[0]] if known else -1
        if best <= number < ORDER[key] and number >= 0:
            best, at = number, value.tail
    return at


def _matched(old: list[Any], new: list[Any]) -> tuple[list[bool], dict[int, list[Any]]]:
    """Which items of `old` stay, and what is new, by the number of the old item before it."""
    kept = [False] * len(old)
    added: dict[int, list[Any]] = {}
    head = 0
    while head < min(len(old), len(new)) and same(old[head], new[head], True):
        kept[head] = True
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and same(old[-1 - tail], new[-1 - tail], True):
        tail += 1
        kept[-tail] = True
    at = head
    before = head - 1
    for value in new[head : len(new) - tail]:
        for number in range(at, min(len(old) - tail, at + 500)):
            if same(old[number], value, True):
                kept[number] = True
                before = number
                at = number + 1
                break
        else:
            added.setdefault(before, []).append(value)
    return kept, added
