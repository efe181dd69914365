"""What the JSON API takes and gives, once: `api` checks requests by it, `openapi.json` describes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from . import __version__
from .access import ADD, CHANGE, READ, REMOVE
from .text.window import MAX_CHARS
from .vault.card import SENSITIVITIES

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer", "minimum": 0}
FLAG: Schema = {"type": "boolean", "default": False}
MAYBE_TEXT: Schema = {"type": ["string", "null"]}
MAYBE_NUMBER: Schema = {"type": ["integer", "null"]}
TEXTS: Schema = {"type": "array", "items": TEXT}
OBJECT: Schema = {"type": "object"}
_LARGEST = 2**53 - 1


def _described(schema: Schema, description: str, **more: Any) -> Schema:
    return {**schema, "description": description, **more}


def _object(required: list[str], **properties: Schema) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _all(**properties: Schema) -> Schema:
    """An object in which each of these is there."""
    return _object(list(properties), **properties)


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path. `actions` are those of `access`; `query` and `body` are schemas of
    objects; `gives` names the schema of the answer for each status that is no error, and `fails`
    lists the others."""

    name: str
    method: str
    path: str
    summary: str
    actions: tuple[str, ...]
    gives: dict[int, str]
    query: Schema = field(default_factory=lambda: _object([]))
    body: Schema | None = None
    fails: tuple[int, ...] = ()


_OFFSET = _described(COUNT, "Begin at this character.", default=0, maximum=_LARGEST)
_MAX_CHARS = _described(
    COUNT, "So many characters; 0 means all.", default=MAX_CHARS, maximum=_LARGEST
)
_AS_OF = _described(TEXT, "As of that day, `2026-11-30`, or moment, `2026-11-30T08:00+08:00`.")
_REF = "A ref, a row id, a path or an exact title"

_FIELDS = {
    "kind": _described(MAYBE_TEXT, "A kind, as decision, mistake or fact; `note` unless given."),
    "summary": _described(MAYBE_TEXT, "One or two sentences."),
    "tags": _described({"type": ["array", "null"], "items": TEXT}, "Tags."),
    "keywords": _described({"type": ["array", "null"], "items": TEXT}, "Words to find it by."),
    "aliases": _described({"type": ["array", "null"], "items": TEXT}, "Other titles."),
    "project": _described(MAYBE_TEXT, "Project."),
    "confidence": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
    "sensitivity": {
        "enum": [*SENSITIVITIES, None],
        "description": "A secret card is written, and no server ever shows it.",
    },
    "priority": _described(MAYBE_NUMBER, "Orders ties."),
    "ttl": {**MAYBE_NUMBER, "minimum": 0, "description": "Expires after so many days."},
    "valid_from": _described(MAYBE_TEXT, "The day from which the fact held."),
    "valid_until": _described(MAYBE_TEXT, "The day until which it held."),
}
_SESSION = _described(MAYBE_TEXT, "The session in which it is done.")
_REJECT = _described(FLAG, "Refuse what looks like a credential.")

_NEW = _object(
    ["title", "body"],
    title=_described(TEXT, "One line."),
    body=_described(TEXT, "The text, Markdown."),
    **_FIELDS,
    agent=_described(MAYBE_TEXT, "Who writes."),
    session=_SESSION,
    relates=_described(
        {"type": "array", "items": _all(type=TEXT, target=TEXT)}, "Relations to other cards."
    ),
    raw=_described(MAYBE_TEXT, "A long original, kept beside the card."),
    on_conflict={
        "enum": ["suffix", "reject"],
        "default": "suffix",
        "description": "Same title, other body: save it beside the other, or refuse.",
    },
    reject_secrets=_REJECT,
)

_UPDATE = _object(
    [],
    title=_described(MAYBE_TEXT, "A new title; the file keeps its name."),
    body=_described(TEXT, "A new text."),
    **_FIELDS,
    session=_SESSION,
    reject_secrets=_REJECT,
)

_LINK = _object(
    ["ref", "type", "target"],
    ref=_described(TEXT, f"The card that the link stands in. {_REF}."),
    type=_described(TEXT, "A word, as caused_by, implements, refers_to or supersedes."),
    target=_described(TEXT, f"The other card. {_REF}."),
    session=_SESSION,
)

_ASKED = {
    "budget": _described(
        {"type": "integer"}, "Tokens at the most.", default=1500, minimum=1, maximum=_LARGEST
    ),
    "project": _described(TEXT, "Only cards of this project."),
    "limit": _described(
        {"type": "integer"}, "Cards at the most, 1 to 20.", minimum=-_LARGEST, maximum=_LARGEST
    ),
    "kind": _described(TEXT, "Only cards of this kind."),
    "source": _described(TEXT, "Only cards of this source."),
    "tags": _described(TEXTS, "Only cards with all of these."),
    "exclude_tags": _described(TEXTS, "No cards with any of these."),
    "since": _described(TEXT, "Updated since `2026-09-30`, or an age like `30d`."),
    "sensitivity": _described(
        {"type": "array", "items": {"enum": ["public", "internal", "private"]}},
        "Cards of these may be given; public and internal unless told.",
    ),
    "session": _described(TEXT, "What this session was given already is not given again."),
    "explain": _described(FLAG, "Tell what each step did to each card."),
}

OPERATIONS = (
    Operation(
        "search", "GET", "/-/memory/search.json", "Find the cards that answer a query", (READ,),
        {200: "SearchResult"},
        _object(
            ["q"],
            q=_described(TEXT, "Names, identifiers and keywords; no text is an error."),
            limit=_described(
                {"type": "integer"}, "Hits at the most; below 1 is 1, above 20 is 20.", default=5,
                minimum=-_LARGEST, maximum=_LARGEST,
            ),
            kind=_described(TEXT, "Only cards of this kind."),
            source=_described(TEXT, "Only cards of this source."),
            project=_described(TEXT, "Only cards of this project."),
            tags=_described(TEXTS, "Only cards with all of these; repeated, or with commas."),
            since=_described(TEXT, "Updated since `2026-09-30`, or an age like `30d`."),
            superseded=_described(FLAG, "Let superseded cards in."),
            as_of=_AS_OF,
        ),
    ),
    Operation(
        "get", "GET", "/-/memory/cards/{ref}.json", "Read a card, a window at a time", (READ,),
        {200: "Card"}, _object([], offset=_OFFSET, max_chars=_MAX_CHARS, as_of=_AS_OF),
        fails=(404, 409),
    ),
    Operation(
        "related", "GET", "/-/memory/related/{ref}.json", "The cards that one is linked with",
        (READ,), {200: "Related"},
        _object(
            [],
            depth={
                "type": "integer", "minimum": 1, "maximum": 5, "default": 1,
                "description": "How many links far.",
            },
            as_of=_AS_OF,
        ),
        fails=(404, 409),
    ),
    Operation(
        "raw", "GET", "/-/memory/raw/{ref}.json", "Read the long original beside a card", (READ,),
        {200: "Raw"},
        _object(
            [], offset=_OFFSET, max_chars=_MAX_CHARS,
            part={
                "type": "integer", "minimum": 1, "maximum": _LARGEST, "default": 1,
                "description": "Which one, when there are several.",
            },
        ),
        fails=(404, 409),
    ),
    Operation("stats", "GET", "/-/memory/stats.json", "Figures of the index", (READ,),
              {200: "Stats"}),
    Operation(
        "context", "POST", "/-/memory/context", "What an agent may see for a question", (READ,),
        {200: "Context"},
        body=_object(["q"], q=_described(TEXT, "The question or task, in full."), **_ASKED),
    ),
    Operation(
        "preview", "GET", "/-/memory/context.json",
        "What an agent would be given for a question; nothing is recorded", (READ,),
        {200: "Context"},
        _object(["q"], q=_described(TEXT, "The question or task, in full."), **_ASKED),
    ),
    Operation(
        "feedback", "POST", "/-/memory/feedback", "What came of the cards that were given", (ADD,),
        {200: "Feedback"},
        body=_object(
            ["cohort"],
            cohort=_described(TEXT, "The cohort of the context that they were given in."),
            adopted=_described(TEXTS, "Refs of the cards that were relied on."),
            rejected=_described(TEXTS, "Refs of those that were wrong or misleading."),
            ignored=_described(TEXTS, "Refs of those that did not matter."),
            session=_SESSION,
        ),
        fails=(404, 409),
    ),
    Operation(
        "brief", "GET", "/-/memory/brief.json", "What a new session should know", (READ,),
        {200: "Brief"},
        _object(
            [],
            project=_ASKED["project"],
            budget=_described(
                {"type": "integer"}, "Tokens at the most.", default=800, minimum=1,
                maximum=_LARGEST,
            ),
        ),
    ),
    Operation(
        "why_not", "GET", "/-/memory/why-not.json", "Why a query does not find a card", (READ,),
        {200: "WhyNot"},
        _object(
            ["q", "ref"], q=_described(TEXT, "The query."), ref=_described(TEXT, f"{_REF}."),
        ),
        fails=(404, 409),
    ),
    Operation(
        "capture", "POST", "/-/memory/cards", "Write a card", (ADD,),
        {200: "Change", 201: "Change", 202: "Change"}, body=_NEW, fails=(404, 409),
    ),
    Operation(
        "update", "POST", "/-/memory/cards/{ref}/-/update",
        "Correct a card: only what is given changes, null takes a field away", (CHANGE,),
        {200: "Change", 202: "Change"}, body=_UPDATE, fails=(404, 409),
    ),
    Operation(
        "supersede", "POST", "/-/memory/cards/{ref}/-/supersede",
        "Replace a card by a new one, because the fact has changed", (ADD, CHANGE),
        {200: "Change", 201: "Change", 202: "Change"}, body=_NEW, fails=(404, 409),
    ),
    Operation(
        "forget", "POST", "/-/memory/cards/{ref}/-/forget", "Move a card to the trash", (REMOVE,),
        {200: "Change", 202: "Change"}, body=_object([], session=_SESSION), fails=(404, 409),
    ),
    Operation(
        "link", "POST", "/-/memory/links", "Link two cards", (CHANGE,),
        {200: "Change", 202: "Change"}, body=_LINK, fails=(404, 409),
    ),
    Operation(
        "unlink", "DELETE", "/-/memory/links", "Take a link away", (CHANGE,),
        {200: "Change", 202: "Change"}, body=_LINK, fails=(404, 409),
    ),
    Operation(
        "reindex", "POST", "/-/memory/reindex", "Bring the index in step with the files", (CHANGE,),
        {200: "Indexed"},
        body=_object([], rebuild=_described(FLAG, "Build it anew, and swap it in.")),
    ),
)  # fmt: skip
"""Every route of the API; each is also there below the name of a database."""

_WINDOW = {
    "text": TEXT,
    "offset": COUNT,
    "length": _described(COUNT, "Characters of the whole."),
    "returned": COUNT,
    "has_more": {"type": "boolean"},
    "next_offset": MAYBE_NUMBER,
}
_FOUND = {"kind": TEXT, "field": TEXT, "start": COUNT, "end": COUNT}
_COUNTS = {"type": "object", "additionalProperties": COUNT}
_REPORTS = {"type": "array", "items": _all(source=TEXT, path=TEXT, reason=TEXT)}

_NAMED = {"ref": TEXT, "id": COUNT, "source": TEXT, "path": TEXT, "title": TEXT, "kind": TEXT}

SCHEMAS: dict[str, Schema] = {
    "SearchResult": _all(
        query=TEXT,
        tier=_described(MAYBE_TEXT, "The first tier that gave hits."),
        count=COUNT,
        hits={"type": "array", "items": {"$ref": "#/components/schemas/Hit"}},
        notice=_described(MAYBE_TEXT, "What to know before trusting the hits."),
    ),
    "Hit": _all(
        id=_described(COUNT, "The row id, true for this index only."),
        ref=TEXT,
        path=TEXT,
        title=TEXT,
        kind=TEXT,
        source=TEXT,
        score=_described({"type": "number"}, "Comparable within a tier."),
        matched={"enum": ["all", "all-prefix", "any", "any-prefix", "vector"]},
        coverage={"type": "number", "minimum": 0, "maximum": 1},
        snippet=_described(TEXT, "Plain text, never HTML."),
        highlights=_described(
            {
                "type": "array",
                "items": {"type": "array", "items": COUNT, "minItems": 2, "maxItems": 2},
            },
            "Start and end in the snippet, in characters.",
        ),
        expired={"type": "boolean"},
        superseded_by=MAYBE_TEXT,
    ),
    "Card": _all(
        id=COUNT,
        ref=TEXT,
        path=TEXT,
        source=TEXT,
        title=TEXT,
        kind=TEXT,
        project=MAYBE_TEXT,
        created=MAYBE_TEXT,
        updated=MAYBE_TEXT,
        superseded_by=MAYBE_TEXT,
        summary=MAYBE_TEXT,
        tags=TEXTS,
        keywords=TEXTS,
        aliases=TEXTS,
        confidence={"type": "number"},
        sensitivity=TEXT,
        priority={"type": "integer"},
        ttl=MAYBE_NUMBER,
        valid_from=MAYBE_TEXT,
        valid_until=MAYBE_TEXT,
        version={"type": "integer"},
        agent=MAYBE_TEXT,
        session=MAYBE_TEXT,
        refs=OBJECT,
        extra=_described(OBJECT, "Other keys of the frontmatter."),
        relations={"type": "array", "items": _all(type=TEXT, target=TEXT, title=MAYBE_TEXT)},
        expired={"type": "boolean"},
        **_WINDOW,
    ),
    "Related": _all(
        ref=TEXT,
        title=TEXT,
        depth=COUNT,
        count=COUNT,
        cards={
            "type": "array",
            "items": _all(
                id=COUNT,
                ref=TEXT,
                title=TEXT,
                kind=TEXT,
                source=TEXT,
                path=TEXT,
                depth=COUNT,
                type=TEXT,
                outgoing={"type": "boolean"},
                via=TEXT,
                also={
                    "type": ["array", "null"],
                    "items": _all(type=TEXT, outgoing={"type": "boolean"}),
                },
                superseded_by=MAYBE_TEXT,
            ),
        },
    ),
    "Raw": _all(id=COUNT, ref=TEXT, title=TEXT, sha256=TEXT, part=COUNT, parts=COUNT, **_WINDOW),
    "Stats": _all(
        cards=COUNT,
        by_kind=_COUNTS,
        by_source=_COUNTS,
        by_project=_COUNTS,
        tags=COUNT,
        links=COUNT,
        broken_links=COUNT,
        superseded=COUNT,
        faults=COUNT,
        updated_last=MAYBE_TEXT,
        synced_last=MAYBE_TEXT,
        index_bytes=COUNT,
    ),
    "Context": _object(
        [
            "question", "open", "reasons", "anchors", "cohort", "text", "tokens", "budget",
            "refused", "items", "left_out", "candidates", "notice",
        ],
        question=_described(TEXT, "The beginning of it."),
        open=_described({"type": "boolean"}, "Whether the gate let it through."),
        reasons=_described(TEXTS, "Why the gate is open or closed."),
        anchors=_described(TEXTS, "What opened it, as `file:query_signal.py`."),
        cohort=_described(MAYBE_TEXT, "What feedback names it by; null when nothing is recorded."),
        text=_described(TEXT, "What goes into a prompt; empty when nothing does."),
        tokens=COUNT,
        budget=COUNT,
        refused={
            "type": ["object", "null"],
            "properties": {"code": TEXT, "reason": TEXT},
            "required": ["code", "reason"],
            "additionalProperties": False,
        },
        items={
            "type": "array",
            "items": _all(
                **_NAMED,
                view={"enum": ["locator", "overview", "detail"]},
                tokens=COUNT,
                text=TEXT,
                call=_described(TEXT, "What reads the rest."),
                flags=TEXTS,
            ),
        },
        left_out={"type": "array", "items": _all(**_NAMED, code=TEXT, reason=TEXT)},
        candidates=_described(
            {
                "type": "array",
                "items": _all(
                    ref=TEXT, source=TEXT, path=TEXT, rank=COUNT, score={"type": "number"}
                ),
            },
            "The cards as they were ranked, before the firewall.",
        ),
        notice=MAYBE_TEXT,
        explain=OBJECT,
    ),
    "Feedback": _all(
        cohort=TEXT, adopted=TEXTS, rejected=TEXTS, ignored=TEXTS,
        unchanged=_described(TEXTS, "Those of which the same was said before."),
    ),
    "Brief": _all(
        text=TEXT,
        tokens=COUNT,
        budget=COUNT,
        sections={
            "type": "array",
            "items": _all(
                name=TEXT, cards={"type": "array", "items": _all(**_NAMED)}, left_out=COUNT
            ),
        },
    ),
    "WhyNot": OBJECT,
    "Change": _object(
        ["status", "id", "ref", "path", "indexed"],
        status={
            "enum": [
                "created", "updated", "superseded", "linked", "unlinked", "trashed", "unchanged",
                "pending", "conflict", "rejected",
            ],
        },
        id=MAYBE_NUMBER,
        ref=MAYBE_TEXT,
        path=MAYBE_TEXT,
        indexed={"type": "boolean"},
        version={"type": "integer"},
        reason=TEXT,
        warning=TEXT,
        conflict={"type": "boolean"},
        existing_path=TEXT,
        collision_paths=TEXTS,
        metadata_differs={"type": "boolean"},
        secrets_found={"type": "array", "items": _all(**_FOUND)},
        personal_found={"type": "array", "items": _all(**_FOUND)},
        warnings=TEXTS,
        similar={"type": "array", "items": _all(ref=TEXT, path=TEXT, score={"type": "number"})},
        supersedes=TEXT,
        evidence=_described(TEXT, "The SHA-256 of the long original."),
        trash_path=TEXT,
        pending_path=TEXT,
        hint=TEXT,
    ),
    "Indexed": _all(
        added=COUNT,
        updated=COUNT,
        moved=COUNT,
        removed=COUNT,
        unchanged=COUNT,
        secret=_described(COUNT, "Cards that are kept out of the index."),
        vectors=_described(COUNT, "Cards that got a vector."),
        skipped=_REPORTS,
        faults=_REPORTS,
        notes=TEXTS,
        seconds={"type": "number"},
    ),
    "Error": _object(
        ["ok", "error", "hint", "status"],
        ok={"const": False},
        error=TEXT,
        hint=_described(TEXT, "What to do, or nothing."),
        status=_described({"type": "integer"}, "That of HTTP."),
        candidates=_described(TEXTS, "The cards that a reference may mean."),
        change={"$ref": "#/components/schemas/Change"},
    ),
}  # fmt: skip

_STATUSES = {
    200: "Done",
    201: "A card was created",
    202: "It cannot be written now, and was kept for later",
    400: "It cannot be understood, or a rule refuses it: `change` then says more",
    401: "The token is no good",
    403: "Not allowed, or a page of another site asks",
    404: "No such card, or no such memory",
    405: "Not this method",
    409: "Several cards answer, or another card has this title",
    413: "The body is over 2 MiB",
    415: "The body is not JSON",
    421: "This computer is not called that",
    503: "The index or the disk cannot be used now",
}


def document(base_url: str = "/") -> dict[str, Any]:
    """The OpenAPI 3.1 document of the API that is served below `base_url`."""
    paths: dict[str, dict[str, Any]] = {}
    for prefix in ("", "/{database}"):
        for operation in OPERATIONS:
            told = _operation(operation, named=bool(prefix))
            paths.setdefault(prefix + operation.path, {})[operation.method.lower()] = told
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "datasette-memory",
            "version": __version__,
            "description": "Cards of a memory: searched, read, written. Without a database in the "
            "path, the first memory that is served is meant.",
            "license": {"name": "Apache 2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": base_url.rstrip("/") or "/"}],
        "security": [{}, {"token": []}, {"cookie": []}],
        "paths": paths,
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": "ds_actor"},
            },
        },
    }


def _operation(operation: Operation, named: bool) -> dict[str, Any]:
    parameters = []
    if named:
        parameters.append(_in_path("database", "The memory that is meant; tilde-encoded"))
    if "{ref}" in operation.path:
        parameters.append(_in_path("ref", f"{_REF}; tilde-encoded"))
    for name, schema in operation.query["properties"].items():
        schema = dict(schema)
        parameters.append(
            {
                "name": name,
                "in": "query",
                "required": name in operation.query["required"],
                "description": schema.pop("description", ""),
                "schema": schema,
            }
        )
    told: dict[str, Any] = {
        "operationId": f"{operation.name}In" if named else operation.name,
        "summary": operation.summary,
        "description": f"Needs {' and '.join(operation.actions)} on the table cards.",
        "parameters": parameters,
        "responses": {
            str(status): _response(status, operation.gives.get(status, "Error"))
            for status in sorted({*operation.gives, *statuses(operation)})
        },
    }
    if operation.body is not None:
        content = {"application/json": {"schema": operation.body}}
        told["requestBody"] = {"required": True, "content": content}
    return told


def statuses(operation: Operation) -> set[int]:
    """The statuses of errors that an operation may answer with."""
    writing = {413, 415} if operation.body is not None else set()
    # A memory may not be there, whatever is asked of it.
    return {400, 401, 403, 404, 405, 413, 421, 503, *operation.fails, *writing}


def _response(status: int, schema: str) -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
    return {"description": _STATUSES[status], "content": content}


def _in_path(name: str, description: str) -> dict[str, Any]:
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": description,
        "schema": {"type": "string", "minLength": 1},
    }
