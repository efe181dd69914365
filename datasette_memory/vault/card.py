"""A Markdown file as a card: bytes in, one `Card` out, and never an exception."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, timezone
from typing import Any

from . import frontmatter, inline
from .frontmatter import canonical, is_null, resolve
from .kinds import DEFAULT_KIND, by_name, kind_of_folder
from .names import MARKDOWN_SUFFIXES

MAX_TITLE = 500
MAX_SUMMARY = 1000
MAX_WORD = 200
MAX_TTL = 1_000_000
MAX_FAULTS = 30

DEFAULT_CONFIDENCE = 0.7
SENSITIVITIES = ("public", "internal", "private", "secret")
DEFAULT_SENSITIVITY = "internal"
RELATION_KEYS = ("supersedes", "caused_by", "implements", "refers_to")


@dataclass(frozen=True, slots=True)
class Relation:
    """A typed link from the card to `target`, a reference, title or path as written."""

    type: str
    target: str


@dataclass(slots=True)
class Card:
    """One Markdown file as read; see `parse_card`.

    `title` is one line of 1 to 500 characters. `body` is the text without frontmatter, with
    `\\n` line ends. `created`, `updated`, `valid_from` and `valid_until` are ISO 8601 (a date
    alone where no more was written) or None; `ttl` counts days. `extra` holds the keys that
    are not known, as JSON-able values. `faults` are lines for the user.
    """

    title: str
    body: str
    ref: str | None
    kind: str
    summary: str
    summary_from_body: bool
    tags: tuple[str, ...]
    keywords: tuple[str, ...]
    aliases: tuple[str, ...]
    project: str | None
    agent: str | None
    session: str | None
    created: str | None
    updated: str | None
    confidence: float
    sensitivity: str
    priority: int
    ttl: int | None
    valid_from: str | None
    valid_until: str | None
    relations: tuple[Relation, ...]
    wikilinks: tuple[str, ...]
    superseded_by: str | None
    refs: dict[str, Any]
    version: int
    extra: dict[str, Any]
    faults: tuple[str, ...]


def parse_card(data: bytes, path: str) -> Card:
    """Read the bytes of a Markdown file.

    `path` is the file's POSIX path relative to its source: its folders may tell the kind, its
    name is the last resort for a title. Pure; never raises: what cannot be read is left at its
    default, and a line in `faults` says so.
    """
    text, faults = decode(data)
    block, body = frontmatter.split(text)
    fields: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    whole = True
    if block is not None:
        mapping, reading_faults = frontmatter.load(block)
        faults += reading_faults
        whole = bool(mapping) or not reading_faults
        if mapping:
            fields, extra, key_faults = _by_canonical_key(mapping)
            faults += key_faults
    elif text.startswith("---"):
        whole = False
        if frontmatter.looks_unclosed(text):
            faults.append("frontmatter has no closing line '---': read as body")
    get = fields.get

    outline = inline.without_blocks(body)
    prose = inline.without_spans(outline)

    title = _line(get("title"), "title", MAX_TITLE, faults)
    if not title:
        title = _one_line(inline.first_heading(outline) or "", MAX_TITLE) or _file_title(path)
    summary = _line(get("summary"), "summary", MAX_SUMMARY, faults)
    tags = dict.fromkeys(_tags(get("tags"), faults))
    tags.update(dict.fromkeys(inline.inline_tags(prose)))

    if whole:
        sensitivity = _sensitivity(get("sensitivity"), faults)
    else:
        unread = "\n".join(text.split("\n", 40)[:40]) if block is None else block
        sensitivity = _guessed_sensitivity(unread, faults)
    ref = _line(get("id"), "id", MAX_WORD, faults)
    if ref and not _REF.fullmatch(ref):
        faults.append(f"id {_show(ref)} is not a reference like D_0001: left out")
        extra.setdefault("id", ref)
        ref = None
    version = _version(get("version"), extra, faults)
    valid_from = _time(get("valid_from"), "valid_from", faults)
    valid_until = _time(get("valid_until"), "valid_until", faults)
    if valid_from and valid_until and _is_before(valid_until, valid_from):
        faults.append(f"valid_until {valid_until} is before valid_from {valid_from}")
    return Card(
        title=title,
        body=body,
        ref=ref,
        kind=_kind(get("kind"), path, faults),
        summary=summary or inline.first_paragraph(outline),
        summary_from_body=not summary,
        tags=tuple(tags),
        keywords=_list(get("keywords"), "keywords", MAX_WORD, faults),
        aliases=_list(get("aliases"), "aliases", MAX_TITLE, faults),
        project=_link_line(get("project"), "project", faults),
        agent=_link_line(get("agent"), "agent", faults),
        session=_link_line(get("session"), "session", faults),
        created=_time(get("created"), "created", faults),
        updated=_time(get("updated"), "updated", faults),
        confidence=_confidence(get("confidence"), faults),
        sensitivity=sensitivity,
        priority=_own_int(get("priority"), "priority", 0, extra, faults),
        ttl=_ttl(get("ttl"), faults),
        valid_from=valid_from,
        valid_until=valid_until,
        relations=relations_in(fields, faults),
        wikilinks=tuple(inline.links(prose)),
        superseded_by=_link_line(get("superseded_by"), "superseded_by", faults),
        refs=_refs(get("refs"), faults),
        version=version,
        extra=extra,
        faults=_bounded(faults),
    )


def _bounded(faults: list[str]) -> tuple[str, ...]:
    if len(faults) > MAX_FAULTS:
        faults[MAX_FAULTS:] = [f"and {len(faults) - MAX_FAULTS} more faults"]
    return tuple(faults)


# --- bytes to text -------------------------------------------------------------------------

_BOMS = (
    # UTF-32 first: its little-endian mark begins with the one of UTF-16.
    (b"\xff\xfe\0\0", "UTF-32"),
    (b"\0\0\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)


def decode(data: bytes) -> tuple[str, list[str]]:
    """The text of a file and the faults of its encoding.

    UTF-8, or UTF-16 and UTF-32 with a byte order mark; what does not decode becomes U+FFFD.
    Line ends become `\\n`; byte order marks at the start and NULs are taken out.
    """
    faults: list[str] = []
    encoding = "UTF-8"
    if data[:1] in (b"\xff", b"\xfe", b"\0"):
        encoding = next((name for bom, name in _BOMS if data.startswith(bom)), encoding)
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        text = data.decode(encoding, "replace")
        faults.append(f"not {encoding}: decoded with replacement")
    if text.startswith("\ufeff"):
        text = text.lstrip("\ufeff")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\0" in text:
        text = text.replace("\0", "")
    return text, faults


# --- keys ----------------------------------------------------------------------------------


def _by_canonical_key(
    mapping: dict[str, Any],
) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """Part a mapping into known fields by canonical key and the rest, resolved.

    A key whose value is null counts as not written. Where several names of one key are
    present, the canonical one counts, then the one that the table names first; the others are
    kept with the rest. The third value holds the faults: one key in two spellings.
    """
    fields: dict[str, Any] = {}
    chosen: dict[str, tuple[int, str]] = {}
    extra: dict[str, Any] = {}
    faults: list[str] = []
    for key, value in mapping.items():
        known = canonical(key)
        if known is None:
            extra[key] = resolve(value)
            continue
        name, rank = known
        if is_null(value) or value == "":
            continue
        if name in chosen:
            other_rank, other_key = chosen[name]
            if rank == other_rank:
                faults.append(f"{_show(key)} is {_show(other_key)} again: the first one counts")
            if rank >= other_rank:
                extra[key] = resolve(value)
                continue
            extra[other_key] = resolve(fields[name])
        chosen[name] = (rank, key)
        fields[name] = value
    return fields, extra, faults


# --- values --------------------------------------------------------------------------------

_CONTROL = re.compile("[\0-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")


def _one_line(text: str, limit: int) -> str:
    if not text.isprintable():
        text = _CONTROL.sub(" ", text)
    return text.strip()[:limit].rstrip()


def _show(value: Any) -> str:
    shown = value if isinstance(value, str) else str(resolve(value))
    return repr(inline.shorten(_one_line(shown, 200), 60))


def _flat(value: Any, what: str, faults: list[str]) -> list[str]:
    """The texts in a scalar or a (nested) list; `[[Note]]` unquoted is a list in a list."""
    if isinstance(value, str):
        return [] if is_null(value) else [value]
    if isinstance(value, list):
        return [text for item in value for text in _flat(item, what, faults)]
    if value is not None:
        faults.append(f"{what} {_show(value)} is not text: left out")
    return []


def _line(value: Any, what: str, limit: int, faults: list[str]) -> str | None:
    """One line of text of 1 to `limit` characters, or None."""
    if value is None:
        return None
    if not isinstance(value, str):
        texts = _flat(value, what, faults)
        if len(texts) > 1:
            faults.append(f"{what} holds several values: the first one counts")
        value = texts[0] if texts else ""
    return _one_line(str(value), limit) or None


def _unlinked(text: str) -> str:
    """`[[target|alias]]` as `target`, any other text as it is."""
    if text.startswith("[[") and text.endswith("]]"):
        return text[2:-2].partition("|")[0].strip()
    return text


def _link_line(value: Any, what: str, faults: list[str]) -> str | None:
    if value is None:
        return None
    return _unlinked(_line(value, what, MAX_WORD, faults) or "") or None


_COMMAS = re.compile("[,，、\n]")


def _items(value: Any, what: str, faults: list[str]) -> list[str]:
    """The texts of a list, or of a string with commas."""
    if isinstance(value, str):
        return _COMMAS.split(value)
    return _flat(value, what, faults)


def _list(value: Any, what: str, limit: int, faults: list[str]) -> tuple[str, ...]:
    if value is None:
        return ()
    lines = (_one_line(str(item), limit) for item in _items(value, what, faults))
    return tuple(dict.fromkeys(filter(None, lines)))


def _tags(value: Any, faults: list[str]) -> list[str]:
    if value is None:
        return []
    items = _items(value, "tags", faults)
    if isinstance(value, str) and all(word[0] == "#" for word in value.split()):
        items = [tag for item in items for tag in item.split()]
    lines = (_one_line(item.strip().lstrip("#"), inline.MAX_TAG) for item in items)
    return [line for line in lines if line]


_REF = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")


def _kind(value: Any, path: str, faults: list[str]) -> str:
    kind = _link_line(value, "kind", faults)
    if kind is None:
        return kind_of_folder(path) or DEFAULT_KIND
    if by_name(kind):
        return kind
    known = by_name(kind.lower().replace("-", "_").replace(" ", "_"))
    return known.name if known else kind


_NUMBER = re.compile(
    r"[-+]?(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][-+]?[0-9]{1,2})?"
)
#: A whole number, as `version` and `priority` are written.
WHOLE = re.compile(r"([-+]?[0-9]{1,18})(?:\.0{1,18})?")


def _confidence(value: Any, faults: list[str]) -> float:
    if value is None:
        return DEFAULT_CONFIDENCE
    if not isinstance(value, str) or not _NUMBER.fullmatch(value.strip()):
        faults.append(f"confidence {_show(value)} is not a number: {DEFAULT_CONFIDENCE} is used")
        return DEFAULT_CONFIDENCE
    return min(1.0, max(0.0, float(value)))


def _int(value: Any, what: str, faults: list[str]) -> int | None:
    if value is None:
        return None
    found = WHOLE.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        faults.append(f"{what} {_show(value)} is not a whole number: left out")
        return None
    return int(found[1])


def _ttl(value: Any, faults: list[str]) -> int | None:
    days = _int(value, "ttl", faults)
    if days is not None and days < 0:
        faults.append(f"ttl {days} is below 0 days: left out")
        return None
    return days if days is None else min(days, MAX_TTL)


def _own_int(value: Any, what: str, default: int, extra: dict[str, Any], faults: list[str]) -> int:
    """A whole number, or the default for a word that means something else to its writer.

    `version: 1.4.2`, `version: experimental` and `priority: high` are common in files that were
    not written for this project: the word is kept with the unknown keys, and is no fault.
    """
    if isinstance(value, str) and not WHOLE.fullmatch(value.strip()):
        extra.setdefault(what, str(value))
        return default
    number = _int(value, what, faults)
    return default if number is None else number


def _version(value: Any, extra: dict[str, Any], faults: list[str]) -> int:
    """How often the card was updated, from 1."""
    version = _own_int(value, "version", 1, extra, faults)
    if version < 1:
        faults.append(f"version {version} is below 1: 1 is used")
    return max(1, version)


def _sensitivity(value: Any, faults: list[str]) -> str:
    if value is None:
        return DEFAULT_SENSITIVITY
    word = _line(value, "sensitivity", MAX_WORD, faults) or ""
    known = word.lower()
    if known in SENSITIVITIES:
        return known
    # Whoever wrote an unknown word wanted to say something: rather hide than show.
    level = "secret" if "secret" in known or "密" in known else "private"
    known_words = ", ".join(SENSITIVITIES)
    faults.append(f"sensitivity {_show(word)} is none of {known_words}: {level} is used")
    return level


_WRITTEN_SENSITIVITY = re.compile(
    r"""^[ \t"'{,-]{0,20}(?:sensitivity|敏感度)["']?[ \t]*[:：=](.{0,100})""",
    re.MULTILINE | re.IGNORECASE,
)


def _guessed_sensitivity(text: str, faults: list[str]) -> str:
    """The strictest sensitivity written in frontmatter that could not be read.

    A typing mistake in another line must not show a card that its owner hid.
    """
    guess = DEFAULT_SENSITIVITY
    for written in _WRITTEN_SENSITIVITY.findall(text):
        words = re.findall(r"\w+", written.lower())
        if "secret" in words:
            guess = "secret"
            break
        if words and words[0] not in ("internal", "public"):
            guess = "private"
    if guess != DEFAULT_SENSITIVITY:
        faults.append(f"sensitivity is taken from the unread frontmatter: {guess}")
    return guess


_LOOSE_TIME = re.compile(
    r"([0-9]{4})[-/.年]([0-9]{1,2})[-/.月]([0-9]{1,2})日?"
    r"(?:[Tt ]\s*([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]{1,9}))?)?"
    r"\s*(?:([Zz]|UTC)|([-+])([0-9]{2}):?([0-9]{2})?)?)?"
)


def _time(value: Any, what: str, faults: list[str]) -> str | None:
    """ISO 8601 as written, or made from the usual near misses; None + fault for the rest."""
    if value is None:
        return None
    if isinstance(value, str):
        text = value.strip()
        try:
            if text[7:8] == "-":  # not a date by weeks, 2026-W01-1
                if len(text) == 10:
                    date.fromisoformat(text)
                    return text
                if text[10] == "T":
                    datetime.fromisoformat(text)
                    return text
        except (ValueError, IndexError):
            pass
        iso = _loose_time(text)
        if iso:
            return iso
    faults.append(f"{what} {_show(value)} is not a date like 2026-05-31T09:30+08:00: left out")
    return None


def _loose_time(text: str) -> str | None:
    found = _LOOSE_TIME.fullmatch(text)
    if not found:
        return None
    year, month, day, hour, minute, second, fraction, utc, sign, ahead, more = found.groups()
    iso = f"{year}-{month:>02}-{day:>02}"
    if hour:
        iso += f"T{hour:>02}:{minute}:{second or '00'}"
        iso += f".{fraction[:6]:0<6}" if fraction else ""
        iso += "Z" if utc else f"{sign}{ahead}:{more or '00'}" if sign else ""
    try:
        datetime.fromisoformat(iso)
    except ValueError:
        return None
    return iso


def _is_before(end: str, start: str) -> bool:
    """Whether a time is before another; a date is as long as its day, wherever that is."""
    if len(end) == 10 or len(start) == 10:
        return end[:10] < start[:10]
    # A time without an offset is in UTC, as it is to SQLite.
    moments = [datetime.fromisoformat(text) for text in (end, start)]
    before, after = (one if one.tzinfo else one.replace(tzinfo=timezone.utc) for one in moments)
    return before < after


def _file_title(path: str) -> str:
    name = path.rpartition("/")[2]
    stem, _, suffix = name.rpartition(".")
    if stem and f".{suffix}".lower() in MARKDOWN_SUFFIXES:
        name = stem
    return _one_line(name, MAX_TITLE) or "untitled"


# --- relations and refs --------------------------------------------------------------------

_TYPE_KEYS = ("type", "relation_type", "relation", "rel")
_TARGET_KEYS = ("target", "target_id", "to", "ref", "id")
_IN_WORDS = re.compile(
    r"(caused by|refers to|superseded by|[^\s:：\[\]]{1,100}) ?(?:[:：](?!//) ?| )(.+)"
)


def relations_in(fields: dict[str, Any], faults: list[str]) -> tuple[Relation, ...]:
    """The relations that frontmatter states, each once; what is none goes to `faults`."""
    found: dict[Relation, None] = {}

    def add(kind: Any, targets: Any) -> None:
        name = _one_line(str(kind), 100).replace(" ", "_")
        lines = _targets(targets, faults)
        if not name or not lines:
            lacks = "target" if name else "type"
            faults.append(f"relation {_show(kind)} has no {lacks}: left out")
            return
        for line in lines:
            target = _unlinked(line)
            if target:
                found[Relation(name, target)] = None

    def read(item: Any) -> None:
        if isinstance(item, dict):
            kind = next((item[key] for key in _TYPE_KEYS if key in item), None)
            target = next((item[key] for key in _TARGET_KEYS if key in item), None)
            if kind is not None and target is not None:
                if isinstance(kind, str) and not is_null(kind):
                    add(kind, target)
                else:
                    faults.append(f"relation {_show(item)} has no type: left out")
            elif kind is not None or "target" in item:
                faults.append(f"relation {_show(item)} needs a type and a target: left out")
            else:
                for name, targets in item.items():
                    add(name, targets)
        elif isinstance(item, str):
            words = _IN_WORDS.fullmatch(_one_line(str(item), 700))
            if words:
                add(words[1], words[2])
            elif not is_null(item):
                faults.append(f"relation {_show(item)} needs a type and a target: left out")
        else:
            faults.append(f"relation {_show(item)} needs a type and a target: left out")

    relations = fields.get("relations")
    for item in relations if isinstance(relations, list) else [relations]:
        if item is not None:
            read(item)
    for key in RELATION_KEYS:
        if key in fields:
            add(key, fields[key])
    return tuple(found)


def _targets(value: Any, faults: list[str]) -> list[str]:
    """The targets in a list or string; a comma parts references and belongs to a title."""
    items = _flat(value, "relation", faults)
    if isinstance(value, str) and items:
        parts = [part.strip() for part in _COMMAS.split(value)]
        if all(_REF.fullmatch(part) for part in parts):
            items = parts
    lines = (_one_line(str(item), inline.MAX_TARGET) for item in items)
    return [line for line in lines if line]


_COMMIT = re.compile(r"[0-9a-fA-F]{7,64}")


def _refs(value: Any, faults: list[str]) -> dict[str, Any]:
    """`{files: [...], urls: [...], ...}`; a plain list is sorted by what its items look like."""
    refs: dict[str, Any] = {}
    if value is None:
        return refs
    if isinstance(value, dict):
        for key, items in value.items():
            if isinstance(items, str):
                items = [] if is_null(items) else [items]
            refs[key] = _as_text(items)
        return refs
    for item in _flat(value, "refs", faults):
        line = _one_line(str(item), 2000)
        if not line:
            continue
        if "://" in line:
            name = "urls"
        else:
            name = "commits" if _COMMIT.fullmatch(line) else "files"
        refs.setdefault(name, []).append(line)
    return refs


def _as_text(value: Any) -> Any:
    """Lists and dicts of text as written: a commit `12345e7` is no number."""
    if isinstance(value, dict):
        return {key: _as_text(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_text(item) for item in value if not is_null(item)]
    return str(value)
