"""YAML: an item is added to a list in place, by the marks that the parser gives."""

import json
import re
from collections.abc import Callable

from .marks_edit import MARKS
from .splice import EditFault, Splice, Taken, insert, newline_of


def parse(text: str) -> object:
    """The data of the text, every scalar as a string. Raises EditFault when it does not parse."""
    import yaml

    try:
        return yaml.load(text.removeprefix("\ufeff"), yaml.BaseLoader)
    except (yaml.YAMLError, ValueError, RecursionError, TypeError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 1}: " if mark else ""
        raise EditFault(line + " ".join(str(getattr(error, "problem", error)).split())) from error


def additions(text: str, tree: dict, fresh: str = "") -> list[Splice]:
    """What to insert so that the lists of `tree` (key, items with a name) have its items.

    `fresh` is what a text that holds nothing starts with. Raises EditFault when the text does not
    parse or cannot be added to, Taken when an item of that name is there and is another.
    """
    before = parse(text)
    if before is None:
        before = parse(fresh) or {}
    elif isinstance(before, dict):
        fresh = ""
    else:
        raise Taken("the whole is not a mapping")
    splices, expected = [], dict(before)
    for key, items in tree.items():
        present = before.get(key) or []
        if not isinstance(present, list):
            raise Taken(f"{key} is not a list")
        new = []
        for item in items:
            same = [
                one for one in present if isinstance(one, dict) and one.get("name") == item["name"]
            ]
            if not same:
                new.append(item)
            elif same != [parse(json.dumps(item))]:
                raise Taken(f"{key}: {item['name']} is there already, and is somebody else's")
        if new:
            splices.append(_append(text, key, new, fresh))
            expected[key] = [*present, *map(parse, map(json.dumps, new))]
    try:
        right = not splices or parse(insert(text, splices)) == expected
    except EditFault:
        right = False
    if not right:
        raise EditFault("it is written in a way that cannot be added to in place")
    return splices


def without(text: str, place: str, ours: Callable[[str, object], bool]) -> str:
    """The text without the items of the list `place` that are ours.

    Raises EditFault when the text does not parse, or an item cannot be taken out.
    """
    start, end = map(re.escape, MARKS["hash"])
    parse(text)
    text = re.sub(
        rf"^[ \t]*{start}\r?\n.*?^[ \t]*{end}[ \t]*(?:\r?\n|\Z)", "", text, flags=re.S | re.M
    )
    before = parse(text)
    while True:
        found = _sequence(text, place)
        items = found[1].value if found and hasattr(found[1], "value") else []
        data = before.get(place) if isinstance(before, dict) else None
        index = next(
            (i for i, one in enumerate(data or []) if isinstance(one, dict) and ours(one.get("name", ""), one)),
            None,
        )  # fmt: skip
        if index is None:
            return text
        cut = _cut(text, found[1], items, index)
        rest = [*data[:index], *data[index + 1 :]]
        if (parse(cut).get(place) or []) != rest:
            raise EditFault(f"{place}: an item cannot be taken out; remove it by hand")
        text, before = cut, parse(cut)


def _sequence(text: str, key: str):
    import yaml

    shift = len(text) - len(text.removeprefix("\ufeff"))
    root = yaml.compose(text[shift:], yaml.BaseLoader)
    for name, node in root.value if isinstance(root, yaml.MappingNode) else ():
        if name.value == key:
            return name, node, shift, root
    return (None, None, shift, root) if root is not None else None


def _append(text: str, key: str, items: list[dict], fresh: str) -> Splice:
    newline = newline_of(text)
    found = _sequence(text, key)
    name, node, shift, root = found or (None, None, 0, None)
    if root is not None and root.flow_style:
        raise EditFault("it is written on one line, in braces, which cannot be added to in place")
    if node is None:
        column = root.start_mark.column if root is not None else 0
        at, lines = len(text), [*fresh.splitlines(), f"{' ' * column}{key}:"]
        lines += _lines(items, " " * (column + 2))
    elif isinstance(node.value, str):
        at = _line_end(text, (node.end_mark if node.value else name.end_mark).index + shift)
        lines = _lines(items, " " * (name.start_mark.column + 2))
    elif node.flow_style:
        flow = ", ".join(json.dumps(one, ensure_ascii=False) for one in items)
        if not node.value:
            return Splice(node.end_mark.index + shift - 1, flow)
        return Splice(node.value[-1].end_mark.index + shift, ", " + flow)
    else:
        at = _line_end(text, _last(node).end_mark.index + shift)
        lines = _lines(items, " " * node.start_mark.column)
    block = newline.join(lines)
    if at and text[at - 1] != "\n" and text[:at].strip("\ufeff"):
        return Splice(at, newline + block + ("" if at < len(text) else newline))
    return Splice(at, block + newline)


def _lines(items: list[dict], indent: str) -> list[str]:
    start, end = MARKS["hash"]
    lines = [start]
    for item in items:
        pairs = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in item.items()]
        lines += [("  " if index else "- ") + pair for index, pair in enumerate(pairs)]
    return [indent + line for line in (*lines, end)]


def _last(node):
    """The scalar or flow value that a node ends with; a block's own end lies behind comments."""
    while isinstance(node.value, list) and node.value and not node.flow_style:
        node = node.value[-1]
        node = node[1] if isinstance(node, tuple) else node
    return node


def _line_end(text: str, at: int) -> int:
    """Behind the line that `at` is on, or `at` itself at the start of one."""
    if at and text[at - 1] == "\n":
        return at
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def _cut(text: str, node, items: list, index: int) -> str:
    shift = len(text) - len(text.removeprefix("\ufeff"))
    item = items[index]
    start, end = item.start_mark.index + shift, item.end_mark.index + shift
    if not node.flow_style:
        start = text.rfind("\n", 0, text.rfind("-", 0, start)) + 1
        return text[:start] + text[_line_end(text, _last(item).end_mark.index + shift) :]
    if index + 1 < len(items):
        return text[:start] + text[items[index + 1].start_mark.index + shift :]
    if index:
        start = items[index - 1].end_mark.index + shift
    return text[:start] + text[end:]
