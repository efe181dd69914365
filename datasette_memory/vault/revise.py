"""A change to the text of a card that leaves every other byte where it is.

The YAML parser tells where each key and value stands; what changes is spliced in there, and
nothing else is written anew. The result is read back before it is handed out: what does not read
as exactly the old card with exactly the changes is refused.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import MemoryFault
from .compose import (
    DEFAULTS,
    KEYS,
    TIMES,
    check_size,
    clean,
    clean_body,
    entry,
    inline,
    is_empty,
    item,
)

_ORDER = {key: number for number, key in enumerate(KEYS)}
_REMOVED = object()
_HINT = "edit the file by hand, or write its frontmatter as plain 'key: value' lines"

Edit = tuple[int, int, str]


class _Unsure(Exception):
    """A place is written in a way that these edits do not know."""


def updated_text(old: str, changes: Mapping[str, Any], body: str | None = None) -> str:
    """The text `old` of a card with `changes` to its frontmatter and, unless None, a new `body`.

    `changes` maps the design's keys, or other keys exactly as the card spells them, to new values
    (as `new_text` takes them); None or "" removes a key. A key that the card calls by a synonym
    is changed under that name. `relations` is the whole list that the card shall have, wherever
    it keeps them. What is equal already is not touched. A card without frontmatter gets one.
    Comments, order, quotes, line ends, a byte order mark and the other keys stay as they are.
    Raises MemoryFault where the frontmatter cannot be read or edited safely.
    """
    from . import frontmatter

    wanted = {key: clean(key, value) for key, value in changes.items()}
    raw = old.lstrip("\ufeff")
    text, places = _normalised(raw)
    block, old_body = frontmatter.split(text)
    body_at = len(text) - len(old_body)
    new_body = old_body if body is None else clean_body(body)
    last: list[Edit] = []
    if new_body != old_body:
        glue = "\n" if body_at and text[body_at - 1] != "\n" and new_body else ""
        last.append((body_at, len(text), glue + new_body))

    before: dict[str, Any] = {}
    if block is None:
        if frontmatter.looks_unclosed(text):
            raise MemoryFault("the card's frontmatter has no closing line '---'", "close it first")
        after = _plan(before, wanted)
        attempts = iter([_new_front(after, new_body if last else "")])
    else:
        root = _read(block)
        before = root.value if root else {}
        after = _plan(before, wanted)
        attempts = _attempts(block, text.index("\n") + 1, root, after)

    for edits in attempts:
        if not edits and not last:
            return old
        result = old[: len(old) - len(raw)] + _applied(raw, len(text), places, edits + last)
        if _reads_as(result, before, after, new_body):
            return result
    raise MemoryFault("the card's frontmatter is written in a way that cannot be edited", _HINT)


def _new_front(changes: dict[str, Any], new_body: str) -> list[Edit]:
    """Frontmatter for a card that has none; an empty one keeps `new_body` from being taken for it."""
    lines = [line for key in sorted(changes, key=_order) for line in entry(key, changes[key])]
    front = "".join(f"{line}\n" for line in lines)
    check_size(front)
    return [(0, 0, f"---\n{front}---\n")] if front or new_body.startswith("---") else []


def _order(key: str) -> int:
    return _ORDER.get(key, len(KEYS))


def _attempts(
    block: str, start: int, root: _Node | None, changes: dict[str, Any]
) -> Iterator[list[Edit]]:
    """Edits to the text, first those that keep most, then those that replace whole values."""
    for fine in (True, False):
        editor = _Editor(block, fine)
        try:
            editor.root(root, changes)
            changed = _spliced(block, editor.edits)
        except _Unsure:
            continue
        check_size(changed)
        yield [(start + a, start + z, new) for a, z, new in editor.edits]


# --- text as it stands on disk --------------------------------------------------------------

_FOLDED = re.compile("\r\n?|\0")


def _normalised(raw: str) -> tuple[str, list[int]]:
    """`raw` as `card.decode` leaves it, and the places in it where a character was taken out."""
    if "\r" not in raw and "\0" not in raw:
        return raw, []
    places: list[int] = []
    parts: list[str] = []
    done = length = 0
    for found in _FOLDED.finditer(raw):
        parts.append(raw[done : found.start()])
        length += found.start() - done
        done = found.end()
        if found[0] != "\r":
            places.append(length)
        if found[0] != "\0":
            parts.append("\n")
            length += 1
    parts.append(raw[done:])
    return "".join(parts), places


def _applied(raw: str, length: int, places: list[int], edits: list[Edit]) -> str:
    """`raw` with edits whose places are those of its normalised text of `length` characters."""
    found = re.search("\r\n?|\n", raw)
    newline = found[0] if found else "\n"

    def place(at: int) -> int:
        return len(raw) if at == length else at + bisect_left(places, at)

    return _spliced(raw, [(place(a), place(z), new.replace("\n", newline)) for a, z, new in edits])


def _spliced(text: str, edits: list[Edit]) -> str:
    parts: list[str] = []
    done = 0
    for start, end, new in sorted(edits, key=_place):
        if start < done:
            raise _Unsure
        parts += (text[done:start], new)
        done = end
    parts.append(text[done:])
    return "".join(parts)


def _place(edit: Edit) -> tuple[int, int]:
    return edit[0], edit[1]


def _reads_as(text: str, before: dict[str, Any], changes: dict[str, Any], body: str) -> bool:
    """Whether `text` is the card `before` with exactly these changes."""
    from . import frontmatter

    block, found_body = frontmatter.split(_normalised(text.lstrip("\ufeff"))[0])
    if found_body != body:
        return False
    found = frontmatter.load(block)[0] if block is not None else {}
    kept = [key for key in before if changes.get(key) is not _REMOVED]
    added = {key for key in changes if key not in before}
    if [key for key in found if key not in added] != kept or not added <= found.keys():
        return False
    return all(
        _same(value, changes[key], key in _ORDER or _known(key))
        if key in changes
        else _identical(value, before[key])
        for key, value in found.items()
    )


# --- what changes --------------------------------------------------------------------------


def _known(key: str) -> bool:
    from .frontmatter import canonical

    return canonical(key) is not None


def _plan(mapping: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """The changes by the card's own names for the keys; `_REMOVED` for what goes."""
    if isinstance(wanted.get("relations"), list):
        wanted = _with_relations(mapping, wanted)
    plan: dict[str, Any] = {}
    for key, value in wanted.items():
        known = key in _ORDER
        names = _names(mapping, key) if known else [key] if key in mapping else []
        if value is None or value == "":
            # With one name gone the next one would count.
            plan.update({name: _REMOVED for name in names if not known or _says(mapping[name])})
        elif not names:
            if not is_empty(value) and value != DEFAULTS.get(key):
                plan[key] = value
        elif not _same(mapping[names[0]], value, known):
            plan[names[0]] = value
    return plan


def _names(mapping: dict[str, Any], key: str) -> list[str]:
    """The keys of `mapping` that stand for the known key `key`, the one that counts first."""
    from .frontmatter import canonical

    found = []
    for name, value in mapping.items():
        known = canonical(name)
        if known and known[0] == key:
            found.append((not _says(value), known[1], len(found), name))
    return [name for *_, name in sorted(found)]


def _says(value: Any) -> bool:
    from .frontmatter import is_null

    return not is_null(value) and value != ""


def _with_relations(mapping: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """`wanted` with its relations parted among the places where the card keeps them.

    A relation stands in the list `relations` or under a key of its own, and in several spellings;
    one that stays is left as it is written.
    """
    from .card import RELATION_KEYS, _relations
    from .frontmatter import resolve

    shall = dict.fromkeys(_relations({"relations": wanted["relations"]}, []))
    wanted = dict(wanted)
    held = set()
    for key in RELATION_KEYS:
        names = [name for name in _names(mapping, key) if _says(mapping[name])]
        if not names or key in wanted:
            continue
        found = _relations({key: mapping[names[0]]}, [])
        kept = [relation for relation in found if relation in shall]
        held.update(kept)
        if len(kept) < len(found):
            wanted[key] = [relation.target for relation in kept] or None

    names = [name for name in _names(mapping, "relations") if _says(mapping[name])]
    old = mapping[names[0]] if names else []
    items = []
    for written in old if isinstance(old, list) else [old]:
        found = _relations({"relations": [written]}, [])
        if all(relation in shall for relation in found):
            items.append(resolve(written))
            held.update(found)
    kept_all = names and len(items) == (len(old) if isinstance(old, list) else 1)
    fresh = [relation for relation in shall if relation not in held]
    if kept_all and not fresh:
        del wanted["relations"]
    else:
        items += clean("relations", fresh)
        wanted["relations"] = items
    return wanted


def _identical(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_identical(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_identical, one, other))
    return one == other


def _same(old: Any, new: Any, textual: bool) -> bool:
    """Whether the value `old` that was read is what writing `new` gives.

    Where a key is `textual` its values are read as text, quoted or not.
    """
    from .frontmatter import is_null, resolve

    if isinstance(new, dict):
        return (
            isinstance(old, dict)
            and old.keys() == new.keys()
            and all(_same(old[key], new[key], textual) for key in new)
        )
    if isinstance(new, list):
        return (
            isinstance(old, list)
            and len(old) == len(new)
            and all(_same(one, other, textual) for one, other in zip(old, new))
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
class _Node:
    """A value and its place in the YAML: characters from `start` to `end`, and in `tail` where
    the first line after it begins. `items` holds children, of a mapping keys and values in turn."""

    start: int
    end: int
    tail: int
    value: Any
    flow: bool = False
    items: list[_Node] = field(default_factory=list)

    def pairs(self) -> list[tuple[_Node, _Node]]:
        return list(zip(self.items[::2], self.items[1::2]))


def _read(block: str) -> _Node | None:
    """The mapping in `block` with its places, or None where there is none.

    Raises MemoryFault when it cannot be read, or only with a repair.
    """
    import yaml

    from . import frontmatter

    mapping, faults = frontmatter.load(block)
    if faults and not mapping:
        raise MemoryFault(f"the card cannot be changed: {faults[0]}", "mend it by hand first")
    try:
        root = _nodes(block)
    except (yaml.YAMLError, ValueError) as error:
        raise MemoryFault(
            "the card cannot be changed: there are tabs in its frontmatter",
            "write two blanks for each",
        ) from error
    if root is None:
        return None
    if not _identical(root.value, mapping):
        raise MemoryFault("the card's frontmatter is written in a way that cannot be edited", _HINT)
    return root


def _nodes(block: str) -> _Node | None:
    from yaml import events

    from . import frontmatter

    parser = frontmatter._Parser(block)
    stack: list[_Node] = []
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
                stack.append(_Node(start, end, 0, value, bool(event.flow_style)))
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


def _leaf(block: str, start: int, end: int, event: Any) -> _Node:
    from .frontmatter import _TEXT_TAGS, _UNSAFE, Quoted

    value = _UNSAFE.sub("", event.value)
    if event.tag in _TEXT_TAGS or (event.tag is None and not event.implicit[0]):
        value = Quoted(value)
    tail = None
    if event.style in ("|", ">"):
        written = block[start:end]
        if "+" in written.partition("\n")[0]:
            tail = end
        end = start + len(_BLANK_END.sub("", written))
    return _Node(start, end, tail or _next_line(block, end), value)


def _next_line(text: str, at: int) -> int:
    return text.find("\n", at) + 1 or len(text)


# --- edits ---------------------------------------------------------------------------------

_COLON = re.compile(r"[ \t]*:")


class _Editor:
    """Collects edits to `text`; when not `fine`, a list or mapping that changes is replaced."""

    def __init__(self, text: str, fine: bool) -> None:
        self.text = text
        self.fine = fine
        self.edits: list[Edit] = []

    def root(self, node: _Node | None, changes: dict[str, Any]) -> None:
        if node is not None:
            self.mapping(node, changes, top=True)
        else:
            for key in sorted(changes, key=_order):
                self.lines(len(self.text), entry(key, changes[key]))

    def lines(self, at: int, lines: list[str]) -> None:
        self.edits.append((at, at, "".join(f"{line}\n" for line in lines)))

    def line_of(self, at: int) -> int:
        """Where the line begins on which what starts at `at` is the first thing."""
        start = self.text.rfind("\n", 0, at) + 1
        if self.text[start:at].strip(" "):
            raise _Unsure
        return start

    def column(self, node: _Node) -> int:
        return node.start - self.line_of(node.start)

    def mapping(self, node: _Node, changes: dict[str, Any], top: bool = False) -> None:
        pairs = node.pairs()
        # Of a key that is written twice, the last one counts.
        latest = {_name(key): number for number, (key, _) in enumerate(pairs)}
        kept = []
        for number, (key, value) in enumerate(pairs):
            new = changes.get(_name(key), value)
            kept.append(new is not _REMOVED)
            if new is not _REMOVED and new is not value and latest[_name(key)] == number:
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
        for key in sorted(added, key=_order):
            at = _place_of(key, pairs) if top else pairs[-1][1].tail
            self.lines(at, entry(key, changes[key], self.column(pairs[0][0])))

    def change(self, key: _Node, value: _Node, new: Any, flow: bool) -> None:
        """Replace the value of one key."""
        colon = _COLON.match(self.text, key.end)
        if colon is None:
            raise _Unsure
        behind = colon.end()
        old = value.value
        if self.fine and old and new and type(old) is type(new):
            if isinstance(old, list):
                return self.sequence(value, new)
            if isinstance(old, dict):
                gone = {name: _REMOVED for name in old if name not in new}
                fresh = {
                    name: item
                    for name, item in new.items()
                    if name not in old or not _same(old[name], item, True)
                }
                return self.mapping(value, gone | fresh)
        as_block = isinstance(new, (list, dict)) and bool(new) and not flow
        lines = entry("x", new, 0 if flow else self.column(key))[1:] if as_block else []
        in_block = isinstance(old, (list, dict)) and not value.flow
        if in_block and self.fine:
            # Line by line, so that comments beside the key and between the lines stay.
            first = self.line_of(value.start)
            if first < behind:
                raise _Unsure
            if not as_block:
                self.edits.append((behind, behind, f" {inline(new)}"))
            self.edits.append((first, value.tail, "".join(f"{line}\n" for line in lines)))
        elif in_block:
            written = "".join(f"\n{line}" for line in lines) if as_block else f" {inline(new)}"
            self.edits.append((behind, value.end, written))
        elif as_block and not _says(old):
            self.edits.append((behind, value.end, ""))
            self.lines(_next_line(self.text, value.end), lines)
        else:
            start = behind if value.start == value.end else value.start
            blank = " " if start == behind else ""
            self.edits.append((start, value.end, blank + inline(new, time=_is_time(key.value))))

    def sequence(self, node: _Node, new: list[Any]) -> None:
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

    def dash_line(self, child: _Node, column: int, above: int) -> int:
        """Where the line begins that holds the dash of a list's item."""
        start = self.text.rfind("\n", 0, child.start) + 1
        while start > above or above == 0:
            if self.text[start : start + column].strip(" ") == "":
                if self.text[start + column : start + column + 1] == "-":
                    return start
            if start == 0:
                break
            start = self.text.rfind("\n", 0, start - 1) + 1
        raise _Unsure

    def flow(
        self,
        node: _Node,
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


def _name(key: _Node) -> str:
    """The key as text; a list or mapping as a key has no name."""
    return str(key.value) if isinstance(key.value, str) else ""


def _is_time(key: str) -> bool:
    from .frontmatter import canonical

    known = canonical(key)
    return known is not None and known[0] in TIMES


def _place_of(key: str, pairs: list[tuple[_Node, _Node]]) -> int:
    """Where the line of a new known key goes: behind the key that comes before it in the design's
    order; behind all for other keys."""
    from .frontmatter import canonical

    if key not in _ORDER:
        return pairs[-1][1].tail
    best, at = -1, 0
    for written, value in pairs:
        known = canonical(_name(written))
        number = _ORDER[known[0]] if known else -1
        if best <= number < _ORDER[key] and number >= 0:
            best, at = number, value.tail
    return at


def _matched(old: list[Any], new: list[Any]) -> tuple[list[bool], dict[int, list[Any]]]:
    """Which items of `old` stay, and what is new, by the number of the old item before it."""
    kept = [False] * len(old)
    added: dict[int, list[Any]] = {}
    head = 0
    while head < min(len(old), len(new)) and _same(old[head], new[head], True):
        kept[head] = True
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and _same(old[-1 - tail], new[-1 - tail], True):
        tail += 1
        kept[-tail] = True
    at = head
    before = head - 1
    for value in new[head : len(new) - tail]:
        for number in range(at, min(len(old) - tail, at + 500)):
            if _same(old[number], value, True):
                kept[number] = True
                before = number
                at = number + 1
                break
        else:
            added.setdefault(before, []).append(value)
    return kept, added
