"""Fields and body as the text of a card: YAML that every reader reads back the same.

A text stands plain only where no version of YAML could take it for anything else, otherwise in
quotes on one line; lists and mappings stand in blocks, and inside a line only where asked for.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

from ..errors import MemoryFault

#: The keys of a card in the order in which they are written; others follow.
KEYS = (
    "id",
    "title",
    "kind",
    "summary",
    "tags",
    "keywords",
    "aliases",
    "project",
    "agent",
    "session",
    "created",
    "updated",
    "confidence",
    "sensitivity",
    "priority",
    "ttl",
    "valid_from",
    "valid_until",
    "relations",
    "supersedes",
    "caused_by",
    "implements",
    "refers_to",
    "superseded_by",
    "refs",
    "version",
)
#: What a reader takes where nothing is written, and which is therefore left out.
DEFAULTS = {"confidence": 0.7, "sensitivity": "internal", "priority": 0, "version": 1}
TIMES = frozenset({"created", "updated", "valid_from", "valid_until"})
_LINES = frozenset(KEYS) - {"relations", "refs", "confidence", "priority", "ttl", "version"}

# The reader's limits; a test holds them equal to those of `frontmatter`.
MAX_BYTES = 64 * 1024
MAX_DEPTH = 20
# YAML wants the colon of a key within 1,024 characters; escapes may take ten for one.
_MAX_KEY = 100


def new_text(fields: Mapping[str, Any], body: str) -> str:
    """The text of a new card: frontmatter, and `body` right behind it.

    `fields` maps the design's keys (and any other, kept after them in the given order) to text,
    numbers, lists, mappings, dates or None; relations are `{type, target}` mappings or objects
    with these attributes. Defaults, None and what is empty are left out; texts of one line become
    one line. Line ends of the body become `\\n`, NULs go, a lone surrogate becomes U+FFFD.
    Raises MemoryFault for a value that YAML cannot hold and for frontmatter that is too large or
    too deep to be read again.
    """
    known = [(key, clean(key, fields[key])) for key in KEYS if key in fields]
    others = [(key, value) for key, value in fields.items() if key not in _ORDER]
    lines: list[str] = []
    for key, value in known:
        if not is_empty(value) and value != DEFAULTS.get(key):
            lines += entry(key, value)
    for key, value in others:
        lines += entry(key, clean(key, value))
    front = "".join(f"{line}\n" for line in lines)
    check_size(front)
    if others and not _opens_with_known_key(lines):
        _check_recognised(front)
    return f"---\n{front}---\n{clean_body(body)}"


_ORDER = {key: number for number, key in enumerate(KEYS)}


def _opens_with_known_key(lines: list[str]) -> bool:
    return lines[0].partition(":")[0] in _ORDER


def _check_recognised(front: str) -> None:
    """Without a known key, frontmatter may read like prose between two rules."""
    from .frontmatter import split

    if split(f"---\n{front}---\n")[0] != front:
        raise MemoryFault(
            "frontmatter without a known key would be read as body", "give the card a title"
        )


def check_size(front: str) -> None:
    """Raise MemoryFault when the YAML `front` is larger than what is read again."""
    if len(front) * 4 > MAX_BYTES and len(front.encode("utf-8", "replace")) > MAX_BYTES:
        raise MemoryFault(
            "the card's frontmatter would be larger than 64 KiB",
            "keep keys short and put the long text into the body",
        )


_LINE_ENDS = re.compile("\r\n?")
_SURROGATES = re.compile("[\ud800-\udfff]")


def clean_body(body: str) -> str:
    """`body` as it is read again: `\\n` line ends, no NUL, U+FFFD for a lone surrogate."""
    if "\r" in body:
        body = _LINE_ENDS.sub("\n", body)
    if "\0" in body:
        body = body.replace("\0", "")
    return body if body.isascii() else _SURROGATES.sub("\ufffd", body)


# --- values --------------------------------------------------------------------------------

_CONTROL = re.compile("[\0-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")


def one_line(text: str) -> str:
    """`text` with control characters and line ends as blanks, and none around it."""
    return (text if text.isprintable() else _CONTROL.sub(" ", text)).strip()


def clean(key: str, value: Any) -> Any:
    """The value of a key as it will be written: plain lists, dicts, text, numbers, None.

    Raises MemoryFault for a key or value that YAML cannot hold.
    """
    if key in _LINES:
        return _clean_lines(value)
    if key == "relations":
        return [_clean_relation(item) for item in value or ()]
    if key == "refs" and isinstance(value, Mapping):
        return _plain({name: items for name, items in value.items() if not is_empty(items)})
    if key not in _ORDER and _plain_key(key) != key:
        raise MemoryFault(f"the key {key!r} cannot be written")
    return _plain(value)


def _clean_lines(value: Any) -> Any:
    if isinstance(value, str):
        return one_line(value)
    if isinstance(value, (list, tuple)):
        items = [one_line(item) if isinstance(item, str) else _plain(item, 2) for item in value]
        return [item for item in items if not is_empty(item)]
    return _plain(value)


_COMMAS = re.compile("[,，、\n]")


def _clean_relation(relation: Any) -> dict[str, Any]:
    if isinstance(relation, Mapping):
        name, target = relation.get("type"), relation.get("target")
    else:
        name, target = getattr(relation, "type", None), getattr(relation, "target", None)
    name, target = _clean_lines(name), _clean_lines(target)
    if is_empty(name) or is_empty(target):
        raise MemoryFault(
            "a relation needs a type and a target", "give both, like supersedes:D_0001"
        )
    if isinstance(target, str) and _COMMAS.search(target):
        # A text with commas can be read as several targets, the item of a list is one.
        target = [target]
    return {"type": name, "target": target}


def _plain(value: Any, depth: int = 1) -> Any:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return _SURROGATES.sub("", value).replace("\0", "")
    if isinstance(value, (date, datetime)):
        return value.isoformat()
    if depth >= MAX_DEPTH:
        # The frontmatter itself is the first mapping.
        raise MemoryFault(f"frontmatter cannot be nested deeper than {MAX_DEPTH}")
    if isinstance(value, Mapping):
        return {_plain_key(key): _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, depth + 1) for item in value]
    raise MemoryFault(
        f"frontmatter cannot hold a {type(value).__name__}",
        "give text, a number, a list or a mapping",
    )


def _plain_key(key: Any) -> str:
    if not isinstance(key, str) or not 0 < len(key) <= _MAX_KEY:
        raise MemoryFault(f"a key of the frontmatter must be text of 1 to {_MAX_KEY} characters")
    return _plain(key)


def is_empty(value: Any) -> bool:
    """Whether a value says nothing: None, "", [], {}."""
    return value is None or (isinstance(value, (str, list, dict)) and not value)


# --- YAML ----------------------------------------------------------------------------------

# A letter first, no sign that YAML knows but dashes inside words, single blanks.
_SIGNS = r"[\w./+()'%$（）“”‘’《》「」【】、，。；：！？…—–·-]"
_SAFE = re.compile(rf"[^\W\d_]{_SIGNS}*(?: {_SIGNS}+)*")
# What some version or reader of YAML takes for null, a truth value or a merge.
_WORDS = frozenset("null true false yes no on off y n none nan inf".split())
_ISO = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(?:T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?(?:Z|[+-][0-9]{2}:[0-9]{2})?)?"
)
# What a YAML stream may not hold, what ends a line, and what nobody would see in a diff.
_ESCAPED = re.compile(
    '["\\\\\0-\x1f\x7f-\xa0\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff'
    "\ufff0-\uffff\U000e0000-\U000e0fff]"
)
_NAMED = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\xa0": "\\_"}


def entry(key: str, value: Any, indent: int = 0) -> list[str]:
    """The lines of `key: value`, `indent` blanks in; lists and mappings as blocks."""
    blanks = " " * indent
    name = scalar(key)
    if isinstance(value, (list, dict)) and value:
        return [f"{blanks}{name}:", *_block(value, indent + 2)]
    written = inline(value, time=key in TIMES)
    return [f"{blanks}{name}: {written}"]


def item(value: Any, indent: int = 0) -> list[str]:
    """The lines of `- value`, `indent` blanks in."""
    return _block([value], indent)


def _block(value: Any, indent: int) -> list[str]:
    if isinstance(value, dict):
        return [line for key, item in value.items() for line in entry(key, item, indent)]
    lines: list[str] = []
    for item in value:
        if isinstance(item, (list, dict)) and item:
            first, *rest = _block(item, indent + 2)
            lines += [f"{' ' * indent}- {first[indent + 2 :]}", *rest]
        else:
            lines.append(f"{' ' * indent}- {inline(item)}")
    return lines


def inline(value: Any, *, time: bool = False) -> str:
    """A value on one line, fit for flow context too. `time` lets an ISO 8601 time stand plain."""
    if isinstance(value, str):
        if time and _ISO.fullmatch(value) and _is_time(value):
            return value
        return scalar(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, list):
        return f"[{', '.join(map(inline, value))}]"
    return f"{{{', '.join(f'{scalar(key)}: {inline(item)}' for key, item in value.items())}}}"


def scalar(text: str) -> str:
    """A text, plain or quoted, on one line."""
    if _SAFE.fullmatch(text) and text.lower() not in _WORDS:
        return text
    escaped = _ESCAPED.findall(text)
    if not escaped:
        return f'"{text}"'
    if all(sign in '"\\' for sign in escaped):
        # A path or a quotation is easier to read without escapes.
        return "'" + text.replace("'", "''") + "'"
    return '"' + _ESCAPED.sub(_escape, text) + '"'


def _escape(found: re.Match[str]) -> str:
    sign = found[0]
    code = ord(sign)
    if sign in _NAMED:
        return _NAMED[sign]
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _is_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _float(number: float) -> str:
    if not math.isfinite(number):
        return ".nan" if math.isnan(number) else ".inf" if number > 0 else "-.inf"
    text = repr(number)
    # YAML 1.1 wants a point, and a sign of the exponent.
    return text if "." in text else text.replace("e", ".0e")
