"""The JSON routes. Thin: a request in, one call of `Memory`, and the same object that it gives."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote
from weakref import WeakKeyDictionary

from datasette.utils import tilde_decode
from datasette.utils.asgi import Response

from . import access
from .errors import Ambiguous, MemoryFault, NotFound
from .fields import words
from .index.connection import Damaged, NoIndex, sqlite3
from .memory import Memory
from .openapi import OPERATIONS, Operation, document

_INTEGER = re.compile(r"-?[0-9]{1,19}", re.ASCII)
_FLAGS = {"true": True, "false": False}

By = Mapping[str, str | None]
Answer = tuple[int, dict[str, object]]


# What each operation does. `given` was checked by its schema.


def _search(memory: Memory, ref: str, given: dict[str, Any], by: By) -> Answer:
    tags = [word for text in given.pop("tags", ()) for word in words(text)]
    return 200, memory.search(given.pop("q"), tags=tags, by=by, **given).to_dict()


def _get(memory: Memory, ref: str, given: dict[str, Any], by: By) -> Answer:
    return 200, memory.show(ref, by=by, **given).to_dict()


def _related(memory: Memory, ref: str, given: dict[str, Any], by: By) -> Answer:
    return 200, memory.related(ref, **given)


def _raw(memory: Memory, ref: str, given: dict[str, Any], by: By) -> Answer:
    return 200, memory.raw(ref, by=by, **given)


def _stats(memory: Memory, ref: str, given: dict[str, Any], by: By) -> Answer:
    return 200, memory.stats().to_dict()


def _context(memory: Memory, ref: str, given: dict[str, Any], by: By) -> Answer:
    return 200, _asked(memory, given, by, record=True)


def _preview(memory: Memory, ref: str, given: dict[str, Any], by: By) -> Answer:
    return 200, _asked(memory, given, by, record=False)


def _asked(memory: Memory, given: dict[str, Any], by: By, record: bool) -> dict[str, object]:
    for name in ("tags", "exclude_tags"):
        given[name] = [word for text in given.pop(name, ()) for word in words(text)]
    if wanted := given.pop("sensitivity", None):
        given["sensitivities"] = wanted
    return memory.context(given.pop("q"), record=record, by=by, **given).to_dict()


def _feedback(memory: Memory, ref: str, given: dict[str, Any], by: By) -> Answer:
    given.pop("session", None)
    return 200, memory.feedback(given.pop("cohort"), by=by, **given)


def _brief(memory: Memory, ref: str, given: dict[str, Any], by: By) -> Answer:
    return 200, memory.brief(**given).to_dict()


def _why_not(memory: Memory, ref: str, given: dict[str, Any], by: By) -> Answer:
    return 200, memory.why_not(given["q"], given["ref"])


def _capture(memory: Memory, ref: str, given: dict[str, Any], by: By) -> Answer:
    return _changed(memory.capture(relates=_relations(given), by=by, **given))


def _supersede(memory: Memory, ref: str, given: dict[str, Any], by: By) -> Answer:
    return _changed(memory.supersede(ref, relates=_relations(given), by=by, **given))


def _update(memory: Memory, ref: str, given: dict[str, Any], by: By) -> Answer:
    given.pop("session", None)
    return _changed(memory.update(ref, by=by, **given))


def _forget(memory: Memory, ref: str, given: dict[str, Any], by: By) -> Answer:
    return _changed(memory.forget(ref, by=by))


def _link(memory: Memory, ref: str, given: dict[str, Any], by: By) -> Answer:
    return _changed(memory.link(given["ref"], given["type"], given["target"], by=by))


def _unlink(memory: Memory, ref: str, given: dict[str, Any], by: By) -> Answer:
    return _changed(memory.unlink(given["ref"], given["type"], given["target"], by=by))


def _reindex(memory: Memory, ref: str, given: dict[str, Any], by: By) -> Answer:
    return 200, memory.index(**given).to_dict()


_CALLS: dict[str, Callable[[Memory, str, dict[str, Any], By], Answer]] = {
    "search": _search, "get": _get, "related": _related, "raw": _raw, "stats": _stats,
    "capture": _capture, "update": _update, "supersede": _supersede, "forget": _forget,
    "link": _link, "unlink": _unlink, "reindex": _reindex, "context": _context,
    "preview": _preview, "feedback": _feedback, "brief": _brief, "why_not": _why_not,
}  # fmt: skip

_CREATED = {"created": 201, "superseded": 201, "pending": 202}
_REFUSED = {"conflict": 409, "rejected": 400}


def _relations(given: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one["type"], one["target"]) for one in given.pop("relates", ())]


def _changed(change) -> Answer:
    """A `Change` as it stands; as an error with it inside when nothing was written on purpose."""
    told = change.to_dict()
    if status := _REFUSED.get(change.status):
        return status, _error(status, change.reason, change.hint or "", change=told)
    return _CREATED.get(change.status, 200), told


def _error(status: int, error: str, hint: str = "", **more: object) -> dict[str, object]:
    return {"ok": False, "error": error, "hint": hint, "status": status, **more}


# Routes


def routes() -> list[tuple[str, Callable]]:
    """The routes for Datasette: regular expressions and views."""
    by_path: dict[str, dict[str, Operation]] = {}
    for operation in OPERATIONS:
        by_path.setdefault(operation.path, {})[operation.method] = operation
    found: list[tuple[str, Callable]] = []
    for path, operations in by_path.items():
        pattern = re.escape(path).replace(r"\{ref\}", "(?P<ref>.+)")
        found.append((rf"^(?:/(?P<database>[^/]+))?{pattern}$", _view(operations)))
    prefix = r"^(?:/(?P<database>[^/]+))?/-/memory/"
    return [*found, (prefix + r"openapi\.json$", _describe), (prefix, _nowhere)]


async def _describe(datasette, request) -> Response:
    if request.method not in ("GET", "HEAD"):
        return _response(405, _error(405, "only GET"), {"allow": "GET, HEAD"})
    return _response(200, document(datasette.setting("base_url")))


async def _nowhere(datasette, request) -> Response:
    hint = f"see {datasette.urls.path('/-/memory/openapi.json')}"
    return _response(404, _error(404, "there is no such route", hint))


def _view(operations: dict[str, Operation]) -> Callable:
    """A view of the operations of one path, by method."""
    allowed = sorted({*operations, *(["HEAD"] if "GET" in operations else [])})

    async def view(datasette, request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        operation = operations.get(method)
        if operation is None:
            told = _error(405, f"{request.method} cannot be done here", ", ".join(allowed))
            return _response(405, told, {"allow": ", ".join(allowed)})
        try:
            status, told = await _perform(datasette, request, operation)
        except access.Refused as refused:
            status, told = refused.status, _error(refused.status, refused.error, refused.hint)
        except MemoryFault as fault:
            status = _status_of(fault)
            more = {"candidates": fault.candidates} if isinstance(fault, Ambiguous) else {}
            told = _error(status, fault.error, fault.hint, **more)
        except Exception as fault:
            traceback.print_exception(fault, file=sys.stderr)
            told = _error(500, f"unexpected {type(fault).__name__}", "the server's log says more")
            status = 500
        return _response(status, told)

    return view


async def _perform(datasette, request, operation: Operation) -> Answer:
    actor = request.actor
    # What a form can send, a page of another site can too: with `guard`, this is what keeps it out.
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if operation.body is not None and kind != "application/json":
        raise access.Refused(415, "the body must be JSON", "send Content-Type: application/json")
    memory = await access.admit(
        datasette, actor, *operation.actions, database=_database(datasette, request)
    )
    if operation.body is None:
        given = _arguments(request, operation.query)
    else:
        given = _checked(_parsed(await _read(request)), operation.body)
    by = {
        "surface": "api",
        "agent": None if actor is None or actor.get("id") is None else str(actor["id"]),
        "session": given.get("session"),
    }
    ref = _decoded(request.url_vars.get("ref") or "")
    call = _CALLS[operation.name]
    if operation.actions == (access.READ,):
        return await asyncio.to_thread(call, memory, ref, given, by)
    # Writers wait for each other here, where they hold up nobody, and not in a thread that a
    # reader could use. An import is long, and waits for other imports alone.
    async with _turn(datasette, memory, operation.name == "reindex"):
        return await asyncio.to_thread(call, memory, ref, given, by)


_turns: WeakKeyDictionary = WeakKeyDictionary()


def _turn(datasette, memory: Memory, imports: bool) -> asyncio.Lock:
    turns = _turns.setdefault(datasette, {})
    return turns.setdefault((memory.db, imports), asyncio.Lock())


def _status_of(fault: MemoryFault) -> int:
    if isinstance(fault, NotFound):
        return 404
    if isinstance(fault, Ambiguous):
        return 409
    if isinstance(fault, (NoIndex, Damaged)) or isinstance(
        fault.__cause__, (sqlite3.Error, OSError)
    ):
        return 503
    return 400


def _database(datasette, request) -> str | None:
    """The name of the database in the path, if there is one."""
    route = request.url_vars.get("database")
    if route is None:
        return None
    try:
        return datasette.get_database(route=_decoded(route)).name
    except KeyError:
        raise access.Refused(404, f"there is no database {_decoded(route)}") from None


def _decoded(text: str) -> str:
    """A part of a path: tilde-encoded as Datasette does, and percent-encoded as clients do."""
    return tilde_decode(unquote(text))


# Arguments


def _arguments(request, schema: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a URL in the types of their schemas. Those that begin with `_` are left to
    others."""
    found: dict[str, Any] = {}
    for name in request.args:
        if name.startswith("_"):
            continue
        told = schema["properties"].get(name)
        if told is None:
            raise access.Refused(400, f"{_short(name)} is no argument", _what(schema))
        values = request.args.getlist(name)
        if told["type"] == "array":
            found[name] = [_one_of(name, value, told["items"]) for value in values]
        elif len(values) > 1:
            raise access.Refused(400, f"{name} is given {len(values)} times", "give it once")
        else:
            found[name] = _typed(name, values[0], told)
    for name in schema["required"]:
        if name not in found:
            raise access.Refused(400, f"{name} is missing", _what(schema))
    return found


def _one_of(name: str, text: str, schema: dict[str, Any]) -> str:
    """One of the texts of a list."""
    if text not in schema.get("enum", (text,)):
        raise access.Refused(400, f"{name} is {', '.join(schema['enum'])}, not {_short(text)}")
    return text


def _typed(name: str, text: str, schema: dict[str, Any]) -> object:
    """One argument. Of all kinds of schemas, those that `openapi` has for arguments."""
    if schema["type"] == "boolean":
        if text not in _FLAGS:
            raise access.Refused(400, f"{name} is true or false, not {_short(text)}")
        return _FLAGS[text]
    if schema["type"] == "integer":
        low, high = schema["minimum"], schema["maximum"]
        if not _INTEGER.fullmatch(text) or not low <= int(text) <= high:
            raise access.Refused(
                400, f"{name} is a whole number from {low} to {high}, not {_short(text)}"
            )
        return int(text)
    return text


def _what(schema: dict[str, Any]) -> str:
    return f"what can be given: {', '.join(schema['properties']) or 'nothing'}"


async def _read(request) -> bytes:
    """The body, which `guard` has found to be short enough."""
    pieces: list[bytes] = []
    while True:
        message = await request.receive()
        if message["type"] != "http.request":
            return b"".join(pieces)
        pieces.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(pieces)


def _parsed(body: bytes) -> object:
    def never(word: str):
        raise ValueError(f"{word} is no JSON")

    try:
        return json.loads(body.decode("utf-8"), parse_constant=never)
    except RecursionError:
        raise access.Refused(400, "the JSON is nested too deep") from None
    except ValueError as error:
        raise access.Refused(
            400, f"the body is not JSON: {_short(str(error))}", "send one object, in UTF-8"
        ) from None


def _checked(given: object, schema: dict[str, Any]) -> dict[str, Any]:
    """What is given, if it is as the schema says."""
    error = next(_validator(schema).iter_errors(given), None)
    if error is not None:
        place = ".".join(map(str, error.absolute_path))
        told = _short(error.message)
        raise access.Refused(
            400,
            f"{place}: {told}" if place else told,
            _what(schema),
        )
    assert isinstance(given, dict)
    return given


_validators: dict[int, Any] = {}


def _validator(schema: dict[str, Any]):
    """The validator of one of the schemas of `openapi`, made once."""
    if id(schema) not in _validators:
        from jsonschema import Draft202012Validator

        _validators[id(schema)] = Draft202012Validator(schema)
    return _validators[id(schema)]


def _short(text: str) -> str:
    return text if len(text) <= 300 else text[:300] + "…"


def _response(
    status: int, value: dict[str, object], headers: dict[str, str] | None = None
) -> Response:
    # Half of a surrogate pair has no form in UTF-8, and one in JSON.
    body = json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
    return Response(body, status, headers=headers, content_type="application/json; charset=utf-8")
