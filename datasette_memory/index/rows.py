"""A card as rows of the index."""

import hashlib
import json
from collections.abc import Iterable
from datetime import datetime, timedelta, timezone

from ..vault.card import Card
from .links import link_keys


def foreign_ref(source: str, path: str) -> str:
    """The ref of a card that has no id of its own: `x` and 10 hex digits."""
    return "x" + hashlib.sha256(f"{source}/{path}".encode()).hexdigest()[:10]


def secret_path(source: str, path: str) -> str:
    """What stands in `files.path` for a secret card: its path cannot be read from it."""
    return "sha256:" + hashlib.sha256(f"{source}/{path}".encode()).hexdigest()


_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_FIRST = (datetime.min.replace(tzinfo=timezone.utc) - _EPOCH) // timedelta(seconds=1)
_LAST = (datetime.max.replace(tzinfo=timezone.utc) - _EPOCH) // timedelta(seconds=1)


def file_time(mtime_ns: int) -> str:
    """A file time as ISO 8601 in UTC, whole seconds, within the years 1 to 9999."""
    seconds = max(_FIRST, min(_LAST, mtime_ns // 1_000_000_000))
    return (_EPOCH + timedelta(seconds=seconds)).isoformat()


def stated_time(text: str | None) -> str | None:
    """A date as it stands, a moment in the one ISO form that SQLite's date functions read too."""
    if text is None or len(text) <= 10:
        return text
    return datetime.fromisoformat(text).isoformat()


def card_row(card: Card, id: int, source: str, path: str, mtime_ns: int) -> dict[str, object]:
    """The row of `cards`. Dates that the card does not state are those of its file."""
    return {
        "id": id,
        "ref": card.ref or foreign_ref(source, path),
        "title": card.title,
        "kind": card.kind,
        "project": card.project,
        "updated": stated_time(card.updated or card.created) or file_time(mtime_ns),
        "created": stated_time(card.created or card.updated) or file_time(mtime_ns),
        "summary": card.summary,
        "summary_from_body": int(card.summary_from_body),
        "tags": as_json(card.tags),
        "keywords": as_json(card.keywords),
        "aliases": as_json(card.aliases),
        "source": source,
        "path": path,
        "confidence": card.confidence,
        "sensitivity": card.sensitivity,
        "priority": card.priority,
        "ttl": card.ttl,
        "valid_from": stated_time(card.valid_from),
        "valid_until": stated_time(card.valid_until),
        "version": card.version,
        "agent": card.agent,
        "session": card.session,
        "refs": as_json(card.refs),
        "extra": as_json(card.extra),
        "body": card.body,
    }


def upsert_sql(columns: Iterable[str]) -> str:
    """The statement that writes a row of `card_row`, new or over the one with the same id.

    The vector goes: it is that of the text before; see `vectors`.
    """
    names = list(columns)
    values = ", ".join(f":{name}" for name in names)
    changes = ", ".join(f"{name} = excluded.{name}" for name in names if name != "id")
    return (
        f"insert into cards ({', '.join(names)}) values ({values}) "
        f"on conflict (id) do update set {changes}, embedding = null"
    )


def tag_rows(card: Card, id: int) -> list[tuple[int, str]]:
    """The rows `(card_id, tag)` of `tags`."""
    return [(id, tag) for tag in card.tags]


#: The statement for a row of `link_rows`.
INSERT_LINK = (
    "insert or ignore into links (card_id, type, target, origin, key, other_key) "
    "values (?, ?, ?, ?, ?, ?)"
)


def link_rows(card: Card, id: int, path: str) -> list[tuple]:
    """The rows `(card_id, type, target, origin, key, other_key)` of `links`.

    `origin` is where the link is written: frontmatter or body.
    """
    links = [(relation.type, relation.target, "frontmatter") for relation in card.relations]
    if card.superseded_by:
        links.append(("superseded_by", card.superseded_by, "frontmatter"))
    links += [("refers_to", target, "body") for target in card.wikilinks]
    return [(id, *link, *link_keys(link[1], path)) for link in links]


def as_json(value: object) -> str:
    """Compact JSON with every script readable, for a text column."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
