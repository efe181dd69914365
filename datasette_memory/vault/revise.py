"""A change to the text of a card that leaves every other byte where it is.

The YAML parser tells where each key and value stands; what changes is spliced in there, and
nothing else is written anew. The result is read back before it is handed out: what does not read
as exactly the old card with exactly the changes is refused.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import Any

from ..errors import MemoryFault
from .compose import DEFAULTS, check_size, clean, clean_body, entry, is_empty
from .splice import (
    ORDER,
    REMOVED,
    Edit,
    Editor,
    Node,
    Unsure,
    identical,
    nodes,
    order_of,
    same,
    says,
    spliced,
)

_HINT = "edit the file by hand, or write its frontmatter as plain 'key: value' lines"


def updated_text(old: str, changes: Mapping[str, Any], body: str | None = None) -> str:
    """The text `old` of a card with `changes` to its frontmatter and, unless None, a new `body`.

    `changes` maps the design's keys, or other keys exactly as the card spells them, to new values
    (as `new_text` takes them); None or "" removes a key. A key that the card calls by a synonym
    is changed under that name. `relations` is the whole list that the card shall have, wherever
    it keeps them. What is equal already is not touched, nor a `version` that is a word or number
    of somebody else's. A card without frontmatter gets one.
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
    lines = [line for key in sorted(changes, key=order_of) for line in entry(key, changes[key])]
    front = "".join(f"{line}\n" for line in lines)
    check_size(front)
    return [(0, 0, f"---\n{front}---\n")] if front or new_body.startswith("---") else []


def _attempts(
    block: str, start: int, root: Node | None, changes: dict[str, Any]
) -> Iterator[list[Edit]]:
    """Edits to the text, first those that keep most, then those that replace whole values."""
    for fine in (True, False):
        editor = Editor(block, fine)
        try:
            editor.root(root, changes)
            changed = spliced(block, editor.edits)
        except Unsure:
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

    return spliced(raw, [(place(a), place(z), new.replace("\n", newline)) for a, z, new in edits])


def _reads_as(text: str, before: dict[str, Any], changes: dict[str, Any], body: str) -> bool:
    """Whether `text` is the card `before` with exactly these changes."""
    from . import frontmatter

    block, found_body = frontmatter.split(_normalised(text.lstrip("\ufeff"))[0])
    if found_body != body:
        return False
    found = frontmatter.load(block)[0] if block is not None else {}
    kept = [key for key in before if changes.get(key) is not REMOVED]
    added = {key for key in changes if key not in before}
    if [key for key in found if key not in added] != kept or not added <= found.keys():
        return False
    return all(
        same(value, changes[key], _known(key)) if key in changes else identical(value, before[key])
        for key, value in found.items()
    )


# --- what changes --------------------------------------------------------------------------


def _known(key: str) -> bool:
    from .frontmatter import canonical

    return canonical(key) is not None


def _plan(mapping: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """The changes by the card's own names for the keys; `REMOVED` for what goes."""
    if isinstance(wanted.get("relations"), list):
        wanted = _with_relations(mapping, wanted)
    plan: dict[str, Any] = {}
    for key, value in wanted.items():
        known = key in ORDER
        names = _names(mapping, key) if known else [key] if key in mapping else []
        if value is None or value == "":
            # With one name gone the next one would count.
            plan.update({name: REMOVED for name in names if not known or says(mapping[name])})
        elif key == "version" and names and _is_a_word(mapping[names[0]]):
            continue
        elif not names:
            if not is_empty(value) and value != DEFAULTS.get(key):
                plan[key] = value
        elif not same(mapping[names[0]], value, known):
            plan[names[0]] = value
    return plan


def _is_a_word(value: Any) -> bool:
    """Whether a version is none of ours: `1.4.2`, `experimental`, which the reader keeps too."""
    from .card import WHOLE

    return says(value) and not (isinstance(value, str) and WHOLE.fullmatch(value.strip()))


def _names(mapping: dict[str, Any], key: str) -> list[str]:
    """The keys of `mapping` that stand for the known key `key`, the one that counts first."""
    from .frontmatter import canonical

    found = []
    for name, value in mapping.items():
        known = canonical(name)
        if known and known[0] == key:
            found.append((not says(value), known[1], len(found), name))
    return [name for *_, name in sorted(found)]


def _with_relations(mapping: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """`wanted` with its relations parted among the places where the card keeps them.

    A relation stands in the list `relations` or under a key of its own, and in several spellings;
    one that stays is left as it is written.
    """
    from .card import RELATION_KEYS, relations_in
    from .frontmatter import resolve

    shall = dict.fromkeys(relations_in({"relations": wanted["relations"]}, []))
    wanted = dict(wanted)
    held = set()
    for key in RELATION_KEYS:
        names = [name for name in _names(mapping, key) if says(mapping[name])]
        if not names or key in wanted:
            continue
        found = relations_in({key: mapping[names[0]]}, [])
        kept = [relation for relation in found if relation in shall]
        held.update(kept)
        if len(kept) < len(found):
            wanted[key] = [relation.target for relation in kept] or None

    names = [name for name in _names(mapping, "relations") if says(mapping[name])]
    old = mapping[names[0]] if names else []
    items = []
    for written in old if isinstance(old, list) else [old]:
        found = relations_in({"relations": [written]}, [])
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


def _read(block: str) -> Node | None:
    """The mapping in `block` with its places, or None where there is none.

    Raises MemoryFault when it cannot be read, or only with a repair.
    """
    import yaml

    from . import frontmatter

    mapping, faults = frontmatter.load(block)
    if faults and not mapping:
        raise MemoryFault(f"the card cannot be changed: {faults[0]}", "mend it by hand first")
    try:
        root = nodes(block)
    except (yaml.YAMLError, ValueError) as error:
        raise MemoryFault(
            "the card cannot be changed: there are tabs in its frontmatter",
            "write two blanks for each",
        ) from error
    if root is None:
        return None
    if not identical(root.value, mapping):
        raise MemoryFault("the card's frontmatter is written in a way that cannot be edited", _HINT)
    return root
