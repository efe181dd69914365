"""What is refused before Datasette sees it: strange names of this computer, other sites' pages,
large bodies.

A page on the Web can send a browser to a server on this computer, and by DNS rebinding even under
a name of its own. So a connection to a loopback address is answered under loopback names alone, the
whole server over; and the routes that agents use take nothing that another site's page sends.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterable
from urllib.parse import urlsplit

#: The body of a request may be so long, in bytes.
MAX_BODY = 2 * 1024 * 1024

#: Names by which a server on a loopback address answers, beside such addresses.
LOCAL_NAMES = frozenset({"localhost"})

_API = re.compile(r"/-/memory/")
_MCP = re.compile(r"/-/mcp/?$")
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^:\[\]]*))(?::[0-9]*)?", re.ASCII)
_READS = ("GET", "HEAD")


class Guard:
    """ASGI around a whole Datasette. `allowed_hosts()` gives further names for loopback."""

    def __init__(self, app, allowed_hosts) -> None:
        self.app = app
        self.allowed_hosts = allowed_hosts

    async def __call__(self, scope, receive, send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return await self.app(scope, receive, send)
        refusal = self._refusal(scope)
        if refusal is None and scope["type"] == "http" and _is_ours(scope):
            body = await _body(scope, receive)
            if body is None:
                refusal = 413, "the body is too large", f"at most {MAX_BODY:,} bytes are taken"
            else:
                receive = _replayed(body, receive)
        if refusal is None:
            return await self.app(scope, receive, send)
        if scope["type"] == "websocket":
            return await send({"type": "websocket.close", "code": 1008})
        return await _answer(send, *refusal)

    def _refusal(self, scope) -> tuple[int, str, str] | None:
        hosts = _headers(scope, b"host")
        if _is_loopback((scope.get("server") or ("",))[0]):
            strange = {_name(host) for host in hosts or [""] if not _is_local(_name(host))}
            if strange and not strange <= {_name(str(host)) for host in self.allowed_hosts()}:
                said = ", ".join(hosts) or "no name"
                return (
                    421,
                    f"this server does not answer to {said}",
                    "ask for localhost or 127.0.0.1, or add the name to allowed_hosts of the "
                    "plugin datasette-memory",
                )
        if _is_ours(scope) and _is_foreign(scope, hosts):
            return 403, "a page of another site may not ask this", "ask without a browser"
        return None


def is_api(scope) -> bool:
    """Whether a request is for the JSON API."""
    return bool(_API.search(scope["path"]))


def _is_ours(scope) -> bool:
    return is_api(scope) or bool(_MCP.search(scope["path"]))


def _is_foreign(scope, hosts: Iterable[str]) -> bool:
    """Whether a browser says that a page of another origin asks. A link that is followed is none."""
    site = _headers(scope, b"sec-fetch-site")
    if any(value not in ("same-origin", "none") for value in site):
        followed = _headers(scope, b"sec-fetch-mode"), _headers(scope, b"sec-fetch-dest")
        return scope.get("method") not in _READS or followed != (["navigate"], ["document"])
    hosts = {host.lower() for host in hosts}
    return any(_netloc(origin) not in hosts for origin in _headers(scope, b"origin"))


def _netloc(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _headers(scope, name: bytes) -> list[str]:
    return [value.decode("latin-1").strip() for key, value in scope["headers"] if key == name]


def _name(host: str) -> str:
    """The name in a Host header, without a port: `[::1]:8765` is `::1`. What has another form is
    left as it is, and is nobody's name."""
    found = _HOST.fullmatch(host.strip().lower())
    return (found[1] or found[2] or "") if found else host


def _is_local(name: str) -> bool:
    return name in LOCAL_NAMES or _is_loopback(name)


def _is_loopback(name: str) -> bool:
    """Whether a name is that of an address of this computer alone; "localhost" is no address."""
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


async def _body(scope, receive) -> list[bytes] | None:
    """The body in pieces; None as soon as it is known to be too long. What is cut off in the middle
    is left to the application, which is told that nobody is there any more."""
    for length in _headers(scope, b"content-length"):
        if not length.isascii() or not length.isdigit() or int(length[:20]) > MAX_BODY:
            return None
    pieces: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return pieces
        pieces.append(message.get("body", b""))
        size += len(pieces[-1])
        if size > MAX_BODY:
            return None
        if not message.get("more_body"):
            return pieces


def _replayed(pieces: list[bytes], receive):
    """A `receive` that gives the body that was read, and then what comes."""
    waiting = [b"".join(pieces)]

    async def replayed():
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return replayed


async def _answer(send, status: int, error: str, hint: str) -> None:
    told = {"ok": False, "error": error, "hint": hint, "status": status}
    body = json.dumps(told, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
    headers = [
        (b"content-type", b"application/json; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        # The rest of the body is not read, so nothing can follow it.
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
