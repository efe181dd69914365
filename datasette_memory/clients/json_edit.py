"""JSON, JSON with comments and JSON5, edited in place: only what is added or removed changes.

A library that keeps comments (json-five) takes a minute for a file of 2 MB, and a client's state
file is of that size; here a scan tells where each value stands, and the text is cut there.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from .splice import EditFault, Put, Splice, Taken, merged, newline_of

DEPTH = 200
"""Values nested deeper are refused."""

_SPACE = {
    "json": re.compile(r"[ \t\r\n]*"),
    "jsonc": re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.S),
    "json5": re.compile(r"(?:[\s\ufeff]+|//[^\r\n\u2028\u2029]*|/\*.*?\*/)*", re.S),
}
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.S)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_STRING5 = re.compile(
    r'"(?:[^"\\\r\n]|\\(?:\r\n|.))*"' + "|" + r"'(?:[^'\\\r\n]|\\(?:\r\n|.))*'", re.S
)
_SCALAR = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null")
_SCALAR5 = re.compile(
    r"[+-]?(?:0[xX][0-9a-fA-F]+|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|Infinity|NaN)"
    r"|true|false|null"
)
_NAME5 = re.compile(r"[^\W\d][\w$]*|\$[\w$]*")
_WORD_GOES_ON = re.compile(r"[\w$.]")
_ESCAPE5 = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(\r\n|.))", re.S)
_LETTERS5 = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "0": "\0"}


@dataclass(slots=True)
class Node:
    """A value and where it stands: `text[start:end]`. `value` is its content when a scalar."""

    kind: str
    start: int
    end: int = 0
    value: object = None
    members: list["Member"] = field(default_factory=list)

    def get(self, key: str) -> "Node | None":
        """The value under a key: the last of several, as the clients take it."""
        found = [one.node for one in self.members if one.key == key]
        return found[-1] if found and self.kind == "object" else None

    def plain(self) -> object:
        """The value as dicts, lists and scalars."""
        if self.kind == "object":
            return {one.key: one.node.plain() for one in self.members}
        if self.kind == "array":
            return [one.node.plain() for one in self.members]
        return self.value


@dataclass(slots=True)
class Member:
    """A member of an object or an array, from `start`; `comma` is the offset behind its comma."""

    key: str | None
    start: int
    node: Node
    comma: int | None = None


def parse(text: str, flavour: str) -> Node | None:
    """The value of the text, None when it holds none. Raises EditFault when it does not parse.

    `flavour` is `json`, `jsonc` (comments and trailing commas) or `json5`. A byte order mark may
    stand at the start.
    """
    reader = _Reader(text, flavour)
    at = reader.skip(1 if text.startswith("\ufeff") else 0)
    if at == len(text):
        return None
    node = reader.value(at, 0)
    end = reader.skip(node.end)
    if end != len(text):
        raise reader.fault(end, "something follows the end of the value")
    return node


class _Reader:
    def __init__(self, text: str, flavour: str) -> None:
        self.text, self.five, self.strict = text, flavour == "json5", flavour == "json"
        self.space = _SPACE[flavour]
        self.string = _STRING5 if self.five else _STRING
        self.scalar = _SCALAR5 if self.five else _SCALAR

    def skip(self, at: int) -> int:
        return self.space.match(self.text, at).end()

    def fault(self, at: int, what: str) -> EditFault:
        line = self.text.count("\n", 0, at) + 1
        if at >= len(self.text):
            what = "it ends too early, as if half written"
        elif self.strict and self.text[at] == "/":
            what = "a comment, which the client does not read in this file"
        elif self.strict and self.text[at] in "}]":
            what = "a comma before the end, which the client does not read in this file"
        return EditFault(f"line {line}: {what}")

    def value(self, at: int, depth: int) -> Node:
        text = self.text
        if depth > DEPTH:
            raise self.fault(at, f"values are nested more than {DEPTH} deep")
        mark = text[at : at + 1]
        if mark and mark in "{[":
            return self.container(at, depth)
        if mark and mark in "\"'" and (found := self.string.match(text, at)):
            return Node("scalar", at, found.end(), self.content(found[0]))
        found = self.scalar.match(text, at)
        if not found or _WORD_GOES_ON.match(text, found.end()):
            raise self.fault(at, "a value was expected")
        return Node("scalar", at, found.end(), self.number(found[0]))

    def container(self, at: int, depth: int) -> Node:
        text = self.text
        kind, close = ("object", "}") if text[at] == "{" else ("array", "]")
        node = Node(kind, at)
        at = self.skip(at + 1)
        while text[at : at + 1] != close:
            start, key = at, None
            if kind == "object":
                key, at = self.key(at)
                at = self.skip(at)
                if text[at : at + 1] != ":":
                    raise self.fault(at, "a colon was expected")
                at = self.skip(at + 1)
            member = Member(key, start, self.value(at, depth + 1))
            node.members.append(member)
            at = self.skip(member.node.end)
            if text[at : at + 1] == ",":
                member.comma = at + 1
                at = self.skip(at + 1)
                if self.strict and text[at : at + 1] == close:
                    raise self.fault(at, "")
            elif text[at : at + 1] != close:
                raise self.fault(at, f"a comma or {close} was expected")
        node.end = at + 1
        return node

    def key(self, at: int) -> tuple[str, int]:
        found = self.string.match(self.text, at)
        if found:
            return str(self.content(found[0])), found.end()
        found = _NAME5.match(self.text, at) if self.five else None
        if not found:
            raise self.fault(at, "a key in quotes was expected")
        return found[0], found.end()

    def content(self, raw: str) -> str:
        if not self.five:
            return json.loads(raw)

        def character(found: re.Match[str]) -> str:
            if code := found[1] or found[2]:
                return chr(int(code, 16))
            return "" if found[3] in ("\n", "\r", "\r\n") else _LETTERS5.get(found[3], found[3])

        text = _ESCAPE5.sub(character, raw[1:-1])
        # Two escapes that make one character.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")

    def number(self, raw: str) -> object:
        try:
            return json.loads(raw)
        except ValueError:
            # A number of JSON5 alone. It is only compared, never written.
            return raw


def additions(text: str, tree: dict, flavour: str) -> list[Splice]:
    """What to insert so that `tree` is in the text; nothing where a `Put` is there already.

    A dict of `tree` is merged into the object under its key, a list appended to the array, and a
    `Put` set. Raises EditFault when the text does not parse, Taken when a key of a `Put` holds
    something else, or a value is not the object or array that it has to be.
    """
    root = parse(text, flavour)
    newline = newline_of(text)
    if root is None:
        lead = newline if text.strip("\ufeff \t\r\n") and not text.endswith("\n") else ""
        body = json.dumps(merged(None, tree), indent=2, ensure_ascii=False)
        return [Splice(len(text), lead + body.replace("\n", newline) + newline)]
    return list(_Writer(text, root, newline).into(root, tree, ()))


class _Writer:
    def __init__(self, text: str, root: Node, newline: str) -> None:
        self.text, self.newline = text, newline
        self.inline = bool(root.members) and not re.search(
            r"[\r\n]", text[root.start : root.members[0].start]
        )
        self.unit = "  "
        self.colon = ": "
        if root.members:
            first = root.members[0]
            self.unit = self.indent(first.start)[len(self.indent(root.start)) :] or self.unit
            between = text[first.start : first.node.start]
            if self.inline and first.key is not None and between.endswith(":"):
                self.colon = ":"

    def indent(self, at: int) -> str:
        """The white space that the line of `at` begins with."""
        start = self.text.rfind("\n", 0, at) + 1
        return re.compile(r"[ \t]*").match(self.text, start)[0]

    def into(self, node: Node, tree: object, path: tuple[str, ...]) -> Iterator[Splice]:
        name = ".".join(path) or "the whole"
        if isinstance(tree, list):
            if node.kind != "array":
                raise Taken(f"{name} is not a list")
            yield from self.append(node, [(None, one) for one in tree])
            return
        if node.kind != "object":
            raise Taken(f"{name} is not an object")
        new = []
        for key, addition in tree.items():
            found = node.get(key)
            if found is None:
                new.append((key, merged(None, addition)))
            elif isinstance(addition, (dict, list)) and not isinstance(addition, Put):
                yield from self.into(found, addition, (*path, key))
            elif found.plain() != merged(None, addition):
                raise Taken(f"{'.'.join((*path, key))} is there already, and is somebody else's")
        yield from self.append(node, new)

    def append(self, node: Node, new: list[tuple[str | None, object]]) -> Iterator[Splice]:
        """One insertion without a break, so that it can be found and taken out again."""
        if not new:
            return
        text = self.text
        if not node.members:
            yield self.fill(node, new)
            return
        first, last = node.members[0], node.members[-1]
        lines = re.search(r"[\r\n]", text[node.start : first.start])
        indent = self.indent(first.start) if lines else None
        rows = [self.row(key, value, indent) for key, value in new]
        gap = self.newline + indent if lines else " " if self.colon == ": " else ""
        if last.comma is not None:
            # A trailing comma, and perhaps a comment behind it on the same line.
            rest = re.compile(r"[ \t]*(?://[^\r\n]*|/\*[^\r\n]*?\*/)?").match(text, last.comma)
            if not lines and rest[0].lstrip().startswith("//"):
                gap = self.newline + self.indent(last.start)
            yield Splice(rest.end(), "".join(f"{gap}{row}," for row in rows))
        elif _COMMENT.search(text, last.node.end, node.end - 1):
            # Behind the last value stands a comment that belongs to it: go before the first.
            yield Splice(first.start, "".join(f"{row},{gap or ''}" for row in rows))
        else:
            yield Splice(last.node.end, "".join(f",{gap}{row}" for row in rows))

    def fill(self, node: Node, new: list[tuple[str | None, object]]) -> Splice:
        text, close = self.text, node.end - 1
        if self.inline and not re.search(r"[\r\n]", text[node.start : node.end]):
            gap = ", " if self.colon == ": " else ","
            return Splice(close, gap.join(self.row(key, value, None) for key, value in new))
        outer = self.indent(node.start)
        indent = outer + self.unit
        rows = ",".join(self.newline + indent + self.row(key, value, indent) for key, value in new)
        at = node.start + 1
        for comment in _COMMENT.finditer(text, at, close):
            at = comment.end()
        ends = "" if re.search(r"[\r\n]", text[at:close]) else self.newline + outer
        return Splice(at, rows + ends)

    def row(self, key: str | None, value: object, indent: str | None) -> str:
        """A member as text; on one line when `indent` is None."""
        if indent is None:
            comma = ", " if self.colon == ": " else ","
            body = json.dumps(value, ensure_ascii=False, separators=(comma, self.colon))
        else:
            body = json.dumps(value, ensure_ascii=False, indent=self.unit)
            body = body.replace("\n", self.newline + indent)
        if key is None:
            return body
        return json.dumps(key, ensure_ascii=False) + self.colon + body


Ours = Callable[[tuple[str, ...], object], bool]
"""Whether the value at a path is ours; a path names array elements by the array's own path."""


def without(text: str, flavour: str, places: list[tuple[str, ...]], ours: Ours) -> str:
    """The text without the members that are ours, each with its comma.

    `places` are the paths of the containers to look in; `*` stands for any key. What is empty
    afterwards stays. Raises EditFault when the text does not parse.
    """
    while True:
        root = parse(text, flavour)
        cut = root and next(_cuts(text, root, places, ours), None)
        if not cut:
            return text
        text = cut


def without_empty(text: str, flavour: str, paths: list[tuple[str, ...]]) -> str:
    """The text without those objects and arrays at `paths`, deepest first, that are empty."""
    for path in sorted(paths, key=len, reverse=True):
        root = parse(text, flavour)
        if root is None:
            return text
        for holder in _at(root, path[:-1]):
            found = holder.get(path[-1])
            if found is not None and found.kind != "scalar" and not found.members:
                index = max(i for i, one in enumerate(holder.members) if one.key == path[-1])
                text = _cut(text, holder, index)
    return text


def missing(text: str, tree: dict, flavour: str) -> list[tuple[str, ...]]:
    """The paths of the objects and arrays that `additions` would have to make."""
    root = parse(text, flavour)

    def walk(node: Node | None, part: object, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        if not isinstance(part, (dict, list)) or isinstance(part, Put):
            return
        if node is None and path:
            yield path
        if isinstance(part, dict):
            for key, addition in part.items():
                yield from walk(node.get(key) if node else None, addition, (*path, key))

    return list(walk(root, tree, ()))


def _at(node: Node, path: tuple[str, ...]) -> Iterator[Node]:
    if not path:
        yield node
    elif node.kind == "object":
        for key in {one.key for one in node.members} if path[0] == "*" else {path[0]}:
            if found := node.get(key):
                yield from _at(found, path[1:])


def _cuts(text: str, root: Node, places: list[tuple[str, ...]], ours: Ours) -> Iterator[str]:
    for place in places:
        for holder in _at(root, place):
            for index, member in enumerate(holder.members):
                path = place if member.key is None else (*place, member.key)
                if ours(path, member.node.plain()):
                    yield _cut(text, holder, index)


def _cut(text: str, holder: Node, index: int) -> str:
    member, start = holder.members[index], holder.start + 1
    previous = holder.members[index - 1] if index else None
    if previous:
        start = previous.comma
    for comment in _COMMENT.finditer(text, start, member.start):
        start = comment.end()
    if member.comma is not None:
        return text[:start] + text[member.comma :]
    rest = text[member.node.end :]
    if previous:
        return text[: previous.comma - 1] + text[previous.comma : start] + rest
    return text[:start] + rest
