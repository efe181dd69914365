"""YAML frontmatter: where it ends, what its keys are called, and its values as text.

What counts as frontmatter
--------------------------
The first line is exactly `---` (blanks may follow), and a later line is exactly `---` or `...`.
Without a closing line the whole text is body. What stands between the two is frontmatter when

1. it is empty, or holds nothing but comments; or
2. its first line is `key:` with a key of the table `SYNONYMS`, spelt as there, whatever YAML
   says about the rest; or
3. it is at most 64 KiB and a YAML mapping, unless it reads like prose: none of its keys is
   known, and a blank line or a `#` line comes before the first or a "key" is longer than
   four words; or
4. it is at most 64 KiB, not valid YAML or refused, its first line is `key:`, and more than
   half of its unindented lines are keys or list items.

Anything else is two horizontal rules with text between them, and stays in the body.

Values
------
Only events of the YAML parser are read, one after the other, so that no depth of nesting can
exhaust a stack, and anchors, aliases and tags are met before anything could be made of them.
A scalar is the text that was written; a quoted or block scalar is a `Quoted` (a str), so that
`resolve` can tell `"null"` from `null`.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Any

import yaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)
from yaml.parser import Parser
from yaml.reader import Reader
from yaml.scanner import Scanner

try:
    from yaml.cyaml import CParser
except ImportError:  # PyYAML without libyaml
    CParser = None


class PythonParser(Reader, Scanner, Parser):
    """PyYAML's own parser: slower than libyaml, and the same to `load`."""

    def __init__(self, stream: str) -> None:
        Reader.__init__(self, stream)
        Scanner.__init__(self)
        Parser.__init__(self)


#: libyaml where it is there, else PyYAML itself.
EventParser = CParser or PythonParser

MAX_BYTES = 64 * 1024
MAX_DEPTH = 20
MAX_FAULTS = 20

# Canonical key -> names that other programs use for it, the first of them counts most.
# Case, `_`, `-` and blanks make no difference: `createdAt`, `created-at` and "Created at" are
# all `created_at`.
SYNONYMS: dict[str, tuple[str, ...]] = {
    "id": ("ref",),
    "title": ("name", "标题"),
    "kind": ("type", "类型"),
    "summary": ("description", "abstract", "excerpt", "tldr", "摘要"),
    "tags": ("tag", "标签"),
    "keywords": ("keyword", "关键词", "关键字"),
    "aliases": ("alias", "别名"),
    "project": ("project_name", "project_id", "项目"),
    "agent": ("agent_name", "agent_id"),
    "session": ("session_id",),
    "created": (
        "created_at",
        "date_created",
        "created_on",
        "created_time",
        "creation_date",
        "create_time",
        "date",
        "pub_date",
        "publish_date",
        "创建时间",
        "创建日期",
        "日期",
    ),
    "updated": (
        "updated_at",
        "date_updated",
        "updated_on",
        "update_time",
        "last_updated",
        "modified",
        "modified_at",
        "date_modified",
        "last_modified",
        "last_modified_at",
        "lastmod",
        "更新时间",
        "更新日期",
        "修改时间",
    ),
    "confidence": ("置信度",),
    "sensitivity": ("敏感度",),
    "priority": ("优先级",),
    "ttl": ("ttl_days",),
    "valid_from": ("valid_since",),
    "valid_until": ("valid_to", "expires", "expires_at", "expiry_date"),
    "relations": ("relation",),
    "superseded_by": ("replaced_by",),
    "refs": (),
    "version": ("update_version",),
    # Relations that may also stand as keys of their own.
    "supersedes": ("replaces",),
    "caused_by": (),
    "implements": (),
    "refers_to": (),
}

_SQUEEZE = str.maketrans("", "", "_- ")


def _squeeze(key: str) -> str:
    return key.casefold().translate(_SQUEEZE)


_EXACT = {name for key, names in SYNONYMS.items() for name in (key, *names)}
_NAMES = {
    _squeeze(name): (key, rank)
    for key, names in SYNONYMS.items()
    for rank, name in enumerate((key, *names))
}


@lru_cache(maxsize=4096)
def canonical(key: str) -> tuple[str, int] | None:
    """The canonical key that `key` stands for and its rank (0 is the canonical name itself,
    higher ranks give way to lower ones), or None for a key that is not known."""
    return _NAMES.get(_squeeze(key))


class Quoted(str):
    """A scalar that was quoted or a block, and is text whatever it looks like."""

    __slots__ = ()


class Refused(Exception):
    """YAML that is valid and not wanted; `str()` is the fault's line."""


_OPENING = re.compile(r"---[ \t]*\n")
_CLOSING = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.MULTILINE)
_FILLING = re.compile(r"(?:[ \t]*(?:#.*)?\n)*[ \t]*(?:#.*\Z)?")
_KEY = re.compile(
    r"""(?:"([^"\n]{1,200})"|'([^'\n]{1,200})'|([^\s:#"'{}\[\]&*!|>%@`,?-][^:\n]{0,199}?))"""
    r"[ \t]*:(?=[ \t\n]|\Z)"
)
_ITEM = re.compile(r"-(?:[ \t]|\Z)|[\]}]")


def split(text: str) -> tuple[str | None, str]:
    """Part `text` (line ends already `\\n`, no BOM) into frontmatter and body.

    Returns (the YAML between the rules or None, the body). The module's text has the rule.
    """
    opening = _OPENING.match(text)
    if opening is None:
        return None, text
    closing = _CLOSING.search(text, opening.end())
    if closing is None:
        return None, text
    block = text[opening.end() : closing.start()]
    if not _is_frontmatter(block):
        return None, text
    return block, text[closing.end() :]


def looks_unclosed(text: str) -> bool:
    """Whether `text` opens with a rule and a known key, so that a closing rule may be missing."""
    opening = _OPENING.match(text)
    return opening is not None and _first_key(text, opening.end()) in _EXACT


def _first_key(text: str, start: int = 0) -> str | None:
    found = _KEY.match(text, _first_content(text, start))
    return next(filter(None, found.groups()), None) if found else None


def _first_content(text: str, start: int = 0) -> int:
    filling = _FILLING.match(text, start)
    return filling.end() if filling else start


def _is_frontmatter(block: str) -> bool:
    key = _first_key(block)
    if key in _EXACT:
        return True
    first = _first_content(block)
    if first == len(block):
        return True
    if _too_large(block) or (key is None and block[first] not in "{?"):
        return False
    try:
        value, _ = _parse(block)
    except (yaml.YAMLError, Refused, ValueError, OverflowError):
        return key is not None and _mostly_keys(block)
    if not isinstance(value, dict):
        return False
    if any(canonical(name) for name in value):
        return True
    gap = "\n" in block[:first]
    return not gap and all(len(name) <= 64 and len(name.split()) <= 4 for name in value)


def _mostly_keys(block: str) -> bool:
    keys = lines = 0
    for line in block.split("\n"):
        if line and line[0] not in " \t#":
            lines += 1
            keys += bool(_KEY.match(line) or _ITEM.match(line))
    return keys * 2 > lines


def _too_large(text: str) -> bool:
    size = len(text)
    if size * 4 > MAX_BYTES and not text.isascii():
        size = len(text.encode("utf-8", "replace"))
    return size > MAX_BYTES


def load(text: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Read the YAML mapping in `text`, the frontmatter that `split` returned.

    Returns (keys and values, faults). Values are str (`Quoted` where quoted), lists and dicts
    of these; `resolve` makes numbers of them. A mapping that cannot be read is empty, and its
    one fault says why. Lines are counted from the file's opening rule. Never raises.
    """
    if _too_large(text):
        return {}, ("frontmatter is larger than 64 KiB: not read",)
    try:
        value, faults = _parse(text)
    except Refused as refused:
        return {}, (str(refused),)
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        spaced = _TABS.sub(lambda tabs: tabs[0].replace("\t", "  "), text)
        if spaced != text:
            try:
                value, faults = _parse(spaced)
            except Refused as refused:
                return {}, (str(refused),)
            except (yaml.YAMLError, ValueError, OverflowError):
                return {}, (_describe(error),)
            faults.insert(0, "tabs in the frontmatter are read as two blanks each")
        else:
            return {}, (_describe(error),)
    if value is None or value == "":
        return {}, ()
    if not isinstance(value, dict):
        return {}, ("frontmatter is not a mapping of keys to values: not read",)
    return value, tuple(faults[:MAX_FAULTS])


_TABS = re.compile(r"(?:^|(?<=[:-]))[ \t]+", re.MULTILINE)


def _describe(error: Exception) -> str:
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "cannot be read"
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    line = f"line {mark.line + 2}: " if mark is not None else ""
    return f"frontmatter is not valid YAML: {line}{' '.join(str(problem).split())[:200]}"


_NO_KEY = object()
_BAD_KEY = object()
TEXT_TAGS = frozenset({"!", "tag:yaml.org,2002:str"})
_SCALAR_TAGS = frozenset(
    f"tag:yaml.org,2002:{name}" for name in ("int", "float", "bool", "null", "timestamp")
)
_COLLECTION_TAGS = frozenset({"!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"})
_ANCHORS = "YAML anchors and aliases are refused: frontmatter not read"


def _parse(text: str) -> tuple[Any, list[str]]:
    """One YAML document as dicts, lists and str, and its faults.

    Raises Refused for anchors, aliases, merge keys, foreign tags and deep nesting,
    yaml.YAMLError (with the C parser) or ValueError (with the Python one) for bad YAML.
    """
    faults: list[str] = []
    # Only an escape can bring a NUL or half a surrogate pair into a value.
    escapes = "\\" in text
    stack: list[tuple[Any, Any]] = []
    current: Any = None
    key: Any = _NO_KEY
    root: Any = None
    documents = 0
    parser = EventParser(text)
    try:
        next_event = parser.get_event
        while True:
            event = next_event()
            kind = type(event)
            if kind is ScalarEvent:
                if event.anchor is not None:
                    raise Refused(_ANCHORS)
                value: Any = event.value
                if escapes:
                    value = UNSAFE.sub("", value)
                tag = event.tag
                if tag is None:
                    if not event.implicit[0]:
                        value = Quoted(value)
                elif tag in TEXT_TAGS:
                    value = Quoted(value)
                elif tag not in _SCALAR_TAGS:
                    raise Refused(_refused_tag(tag))
            elif kind is MappingStartEvent or kind is SequenceStartEvent:
                if event.anchor is not None:
                    raise Refused(_ANCHORS)
                if event.tag is not None and event.tag not in _COLLECTION_TAGS:
                    raise Refused(_refused_tag(event.tag))
                if len(stack) >= MAX_DEPTH:
                    raise Refused(f"frontmatter is nested deeper than {MAX_DEPTH}: not read")
                stack.append((current, key))
                current = {} if kind is MappingStartEvent else []
                key = _NO_KEY
                continue
            elif kind is MappingEndEvent or kind is SequenceEndEvent:
                value = current
                current, key = stack.pop()
            elif kind is AliasEvent:
                raise Refused(_ANCHORS)
            elif kind is DocumentStartEvent:
                documents += 1
                if documents > 1:
                    raise Refused("frontmatter holds more than one YAML document: not read")
                continue
            elif kind is StreamEndEvent:
                return root, faults
            else:
                continue

            if current is None:
                root = value
            elif type(current) is list:
                current.append(value)
            elif key is _NO_KEY:
                if not isinstance(value, str):
                    faults.append("a key that is not text is left out, with its value")
                    key = _BAD_KEY
                elif value == "<<" and type(value) is str:
                    raise Refused("YAML merge keys are refused: frontmatter not read")
                else:
                    key = value
            else:
                if key is not _BAD_KEY:
                    if key in current:
                        faults.append(f"duplicate key {key[:60]!r}: the last one counts")
                    current[str(key)] = value
                key = _NO_KEY
    finally:
        parser.dispose()


def _refused_tag(tag: str) -> str:
    return f"YAML tag {tag[:60]!r} is refused: frontmatter not read"


UNSAFE = re.compile("[\0\ud800-\udfff]")
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})")
# As PyYAML has it: `1e5` and `12345e7` are text, which suits the hash of a commit.
_FLOAT = re.compile(r"(?:[-+]?[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+][0-9]{1,3})?")


def is_null(value: Any) -> bool:
    """Whether a value of `load` is YAML's null: nothing, `~` or an unquoted `null`."""
    return type(value) is str and value in _NULLS


def resolve(value: Any) -> Any:
    """A value of `load` as JSON would have it: unquoted null, true, false, whole numbers of at
    most 18 digits and finite decimals with a point become themselves, everything else stays text (dates,
    `yes`, `0x1F`, `007`). Dicts and lists are resolved item by item."""
    kind = type(value)
    if kind is str:
        if value in _NULLS:
            return None
        if value in _BOOLS:
            return _BOOLS[value]
        if _INT.fullmatch(value):
            return int(value)
        if _FLOAT.fullmatch(value):
            number = float(value)
            return number if math.isfinite(number) else value
        return value
    if kind is dict:
        return {key: resolve(item) for key, item in value.items()}
    if kind is list:
        return [resolve(item) for item in value]
    return str(value)
