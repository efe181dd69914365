"""What is refused before Datasette sees it, on a really running server."""

import http.client
import importlib.util
import json
import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from datasette_memory.guard import MAX_BODY, Guard

_spec = importlib.util.spec_from_file_location("serving", Path(__file__).with_name("serving.py"))
serving = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(serving)
Client = serving.Client

BODY = "站点根目录在 /srv/www/orchid，不是 /var/www，改之前先看一眼。"
NEW = {"title": "新的一张", "body": BODY}
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def served(tmp_path_factory, small_vault, serve):
    """One server for the module: (memory, url). `proxy.example` is a name that it answers to."""
    folder = tmp_path_factory.mktemp("guard")
    memory = serving.home_with(folder / "home", small_vault)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    configuration = {"plugins": {"datasette-memory": {"allowed_hosts": ["Proxy.example:443"]}}}
    argv = serving.datasette_argv(memory.db, port=port, configuration=configuration, folder=folder)
    with serve(argv, port, serving.environment(memory.home.home)) as url:
        yield memory, url


def ask(url, method, path, body=None, headers=(), actor="root"):
    """The status and the JSON of an answer, with these headers and no others of the client."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
    try:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        given = dict(headers)
        given.setdefault("Host", urlsplit(url).netloc)
        if actor:
            given |= Client(url, actor=actor).headers
        if body is not None:
            given.setdefault("Content-Length", str(len(body)))
        for name, value in given.items():
            connection.putheader(name, value)
        connection.endheaders(body)
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, text
    finally:
        connection.close()


def test_loopback_answers_only_under_its_own_names(served):
    _, url = served
    port = urlsplit(url).port
    paths = ["/", "/memory/cards.json", "/-/memory/stats.json", "/-/mcp", "/-/static/app.css"]
    for host in ("localhost", f"LOCALHOST:{port}", f"127.0.0.1:{port}", f"[::1]:{port}", "[::1]",
                 "127.0.0.1:1", "proxy.example", "PROXY.example:8080"):  # fmt: skip
        for path in paths:
            status, _ = ask(url, "GET", path, headers={"Host": host})
            assert status != 421 and status < 500, (host, path)
    for host in ("rebound.example", f"rebound.example:{port}", "127.0.0.1.rebound.example", "0.0.0.0",
                 f"0.0.0.0:{port}", "localhost.rebound.example", "192.168.1.9", "", "[::1", "[::1]evil.example",
                 "proxy.example.evil", "127.0.0.1@evil.example"):  # fmt: skip
        for path in paths:
            status, text = ask(url, "GET", path, headers={"Host": host})
            # What is no name at all, the HTTP server itself refuses.
            assert status in (421, 400), (host, path)
            if status == 421:
                told = json.loads(text)
                assert told["ok"] is False and "allowed_hosts" in told["hint"]
    status, _ = ask(url, "POST", "/-/mcp", b"{}", {**JSON, "Host": "rebound.example"})
    assert status == 421


@pytest.mark.asyncio
async def test_another_address_than_loopback_answers_to_any_name():
    reached = []

    async def app(scope, receive, send):
        reached.append(scope["path"])

    async def nothing(*_):
        return {"type": "http.disconnect"}

    guard = Guard(app, lambda: [])
    for server, host, passes in (
        ("192.168.1.9", b"memory.lan", True), ("10.0.0.1", b"rebound.example", True),
        ("127.0.0.1", b"memory.lan", False), ("::1", b"memory.lan", False),
        ("::ffff:127.0.0.1", b"memory.lan", False), ("::ffff:127.0.0.1", b"localhost", True),
        ("/run/memory.sock", b"memory.lan", True),
    ):  # fmt: skip
        reached.clear()
        scope = {
            "type": "http", "method": "GET", "path": "/x", "headers": [(b"host", host)],
            "server": (server, 80),
        }  # fmt: skip
        await guard(scope, nothing, nothing)
        assert bool(reached) == passes, (server, host)


def test_a_page_of_another_site_writes_nothing(served):
    memory, url = served
    body = json.dumps(NEW).encode()
    own = urlsplit(url).netloc
    foreign = [
        {"Origin": "https://evil.example"}, {"Origin": "null"}, {"Origin": "http://localhost:1"},
        {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site", "Origin": f"http://{own}"},
    ]  # fmt: skip
    before = sorted(memory.home.vault.rglob("*"))
    for headers in foreign:
        for method, path in (
            ("POST", "/-/memory/cards"), ("POST", "/memory/-/memory/cards"),
            ("POST", "/-/memory/cards/F_0001/-/forget"), ("DELETE", "/-/memory/links"),
            ("POST", "/-/memory/reindex"), ("POST", "/-/mcp"),
        ):  # fmt: skip
            status, text = ask(url, method, path, body, {**JSON, **headers})
            assert status == 403, (headers, path, text)
        # Nor does it make the ledger tell of searches that nobody made.
        status, _ = ask(url, "GET", "/-/memory/search.json?q=x", headers=headers)
        assert status == 403
    # What a form can send is no JSON.
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        headers = {"Content-Type": kind} if kind else {}
        status, text = ask(url, "POST", "/-/memory/cards", body, headers)
        assert (status, json.loads(text)["ok"]) == (415, False), kind
    assert sorted(memory.home.vault.rglob("*")) == before
    # A link that is followed is no request of a page.
    status, _ = ask(
        url, "GET", "/-/memory/stats.json",
        headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate",
                 "Sec-Fetch-Dest": "document"},
    )  # fmt: skip
    assert status == 200
    # Pages of the server itself, and programs, may write.
    for number, headers in enumerate((
        {}, {"Origin": f"http://{own}", "Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"},
    )):  # fmt: skip
        body = json.dumps({"title": f"自己的 {number}", "body": BODY + str(number)}).encode()
        status, text = ask(
            url, "POST", "/-/memory/cards", body,
            {"Content-Type": "application/json; charset=utf-8", **headers},
        )  # fmt: skip
        assert status == 201, text


def test_a_body_over_two_mebibytes_is_refused_unread(served):
    memory, url = served
    # The length is told, and nothing of the body is sent: the answer comes all the same.
    for path in ("/-/memory/cards", "/memory/-/memory/cards/F_0001/-/update", "/-/mcp"):
        headers = {**JSON, "Content-Length": str(MAX_BODY + 1)}
        status, text = ask(url, "POST", path, None, headers)
        assert (status, json.loads(text)["status"]) == (413, 413)
    # The length is not told.
    host = urlsplit(url)
    with socket.create_connection((host.hostname, host.port), timeout=30) as connection:
        connection.sendall(
            f"POST /-/memory/cards HTTP/1.1\r\nHost: {host.netloc}\r\n"
            "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        )
        sent = 0
        connection.settimeout(30)
        try:
            while sent < 64 * MAX_BODY:
                connection.sendall(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
                sent += 0x10000
        except OSError:
            pass
        assert sent < 32 * MAX_BODY
    # Just as long as may be.
    body = json.dumps({"title": "大", "body": "x"}).encode()
    body += b" " * (MAX_BODY - len(body))
    status, text = ask(url, "POST", "/-/memory/cards", body, JSON)
    assert (status, "too little" in json.loads(text)["error"]) == (400, True), text
    # A client that goes away in the middle is no fault that anybody hears of.
    with socket.create_connection((host.hostname, host.port), timeout=30) as connection:
        connection.sendall(
            f"POST /-/memory/cards HTTP/1.1\r\nHost: {host.netloc}\r\n"
            "Content-Type: application/json\r\nContent-Length: 500\r\n\r\n{".encode()
        )
    assert Client(url).get("/-/memory/stats.json")[0] == 200
