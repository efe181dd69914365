"""TOML: our tables stand between marks at the end, so nothing else is touched."""

import json
import re
import tomllib
from collections.abc import Callable, Iterator

from . import marks_edit
from .splice import EditFault, Put, Splice, Taken, insert, merged


def parse(text: str) -> dict:
    """The data of the text. Raises EditFault when it does not parse."""
    try:
        return tomllib.loads(text.removeprefix("\ufeff").replace("\r\n", "\n"))
    except (ValueError, RecursionError) as error:
        raise EditFault(f"{error}") from error


def additions(text: str, tree: dict) -> list[Splice]:
    """What to insert so that the tables of `tree` are in the text; each `Put` of it is a table.

    Raises EditFault when the text does not parse, or cannot take a table at its end, and Taken when
    the name holds something else.
    """
    before = parse(text)
    lines = []
    for path, values in _tables(tree):
        present = before
        for name in path:
            present = present.get(name) if isinstance(present, dict) else None
        if present == dict(values):
            continue
        if present is not None:
            raise Taken(f"{'.'.join(path)} is there already, and is somebody else's")
        lines.append(f"[{'.'.join(map(_key, path))}]")
        lines += [f"{_key(key)} = {_value(value)}" for key, value in values.items()]
    if not lines:
        return []
    splices = marks_edit.additions(text, "\n".join(lines), "hash")
    try:
        after = parse(insert(text, splices))
    except EditFault:
        after = None
    if after != merged(before, tree):
        tables = " and ".join(tree)
        raise EditFault(f"{tables} is written on one line, to which no table can be added")
    return splices


def _tables(tree: dict, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Put]]:
    for key, value in tree.items():
        if isinstance(value, Put):
            yield (*path, key), value
        else:
            yield from _tables(value, (*path, key))


def without(text: str, place: str, ours: Callable[[str, object], bool]) -> str:
    """The text without our block, or without the tables of `place` that are ours.

    Raises EditFault when the text does not parse.
    """
    parse(text)
    text = marks_edit.without(text, "hash")
    holder = parse(text).get(place, {})
    for name, value in holder.items() if isinstance(holder, dict) else ():
        if ours(name, value):
            quoted = rf"(?:{re.escape(_key(name))}|{re.escape(json.dumps(name))})"
            header = rf"^[ \t]*\[[ \t]*{re.escape(place)}[ \t]*\.[ \t]*{quoted}[ \t]*(?:\..*)?\]"
            cut = re.sub(rf"{header}[^\n]*\n?(?:(?![ \t]*\[)[^\n]*(?:\n|\Z))*?(?=^[ \t]*\[|\Z)", "",
                         text, flags=re.M)  # fmt: skip
            if name in parse(cut).get(place, {}):
                raise EditFault(f"{place}.{name} cannot be taken out; remove it by hand")
            text = cut
    return text


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _value(key)


def _value(value: object) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
