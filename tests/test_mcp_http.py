"""MCP over HTTP, by datasette-mcp in a Datasette that is really running: 0.65 and 1.0 alike."""

import asyncio
import importlib.util
import json
import socket
import urllib.request
from pathlib import Path

import pytest
from datasette.app import Datasette
from datasette_mcp import create_mcp_server
from mcp import Client

from datasette_memory.memory import Memory


def _load(name):
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


agents = _load("agents")
homes = _load("homes")


@pytest.fixture
def home(small_vault, tmp_path) -> Path:
    """A home with the six cards of the tests."""
    return agents.make_home(tmp_path / "home", small_vault)


@pytest.fixture
def url(home, free_port, serve):
    """A Datasette on it, as it is without any configuration of who may read."""
    with serve(agents.datasette(home, free_port), free_port) as url:
        yield url


def post(url: str, message: dict, **headers: str) -> tuple[dict, dict]:
    """Send one message as a client of old does; the answer and its headers."""
    request = urllib.request.Request(
        f"{url}/-/mcp",
        json.dumps(message).encode(),
        {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            **headers,
        },
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        body = response.read()
        return (json.loads(body) if body else {}), dict(response.headers)


def test_each_version_of_the_handshake(url):
    for version in agents.HANDSHAKES:
        opened, headers = post(url, agents.request(0, "initialize", **agents.greeting(version)))
        assert opened["result"]["protocolVersion"] == version
        headers = {"Mcp-Session-Id": headers["mcp-session-id"]}
        post(url, {"jsonrpc": "2.0", "method": "notifications/initialized"}, **headers)
        # Gemini sends no version in a header, and none is asked for.
        found, _ = post(url, agents.call(1, "memory_search", query="备份"), **headers)
        assert found["result"]["structuredContent"]["hits"][0]["ref"] == "F_0001"
    opened, _ = post(url, agents.request(0, "initialize", **agents.greeting("1999-01-01")))
    assert opened["result"]["protocolVersion"] == agents.HANDSHAKES[-1]


@pytest.mark.asyncio
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_tools_of_the_memory_stand_beside_those_of_datasette(home, url, mode):
    async with agents.over_http(url, mode=mode) as client:
        version = agents.NEWEST if mode == "auto" else agents.HANDSHAKES[-1]
        assert client.protocol_version == version
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert names >= {*agents.READING, *agents.WRITING, "execute_sql", "get_database_schema"}
        found = await client.call_tool("memory_search", {"query": "全文检索"})
        told = Memory(str(home)).search("全文检索")
        shown = [hit["ref"] for hit in found.structured_content["hits"]]
        assert shown == [hit.ref for hit in told.hits] and shown[0] == "D_0001"
        sql = "select ref from cards where kind = 'fact'"
        rows = await client.call_tool("execute_sql", {"database": "memory", "sql": sql})
        assert rows.structured_content["rows"] == [{"ref": "F_0001"}]


@pytest.mark.asyncio
async def test_stdio_http_command_and_object_give_the_same_answer(home, url):
    asked = [
        ("memory_search", {"query": "全文检索 备份", "limit": 3, "superseded": True}),
        ("memory_search", {"query": "getUserById"}),
        ("memory_search", {"query": "qwertyuiop"}),
        ("memory_get", {"id": "D_0001"}),
        ("memory_get", {"id": "N_0001"}),
        ("memory_get", {"id": "nothing"}),
        ("memory_related", {"id": "D_0001", "depth": 2}),
        ("memory_raw", {"id": "D_0001"}),
        ("memory_update", {"id": "D_0001"}),
    ]
    async with agents.over_http(url, "root") as far, agents.over_stdio(home) as near:
        for tool, arguments in asked:
            one, two = await far.call_tool(tool, arguments), await near.call_tool(tool, arguments)
            assert one.is_error == two.is_error
            assert agents.said(one) == agents.said(two)
            assert one.structured_content == two.structured_content
    memory = Memory(str(home))
    shown = memory.show("D_0001").to_dict()
    command = json.loads(homes.command(home, "show", "D_0001", "--json").stdout)
    assert command == json.loads(json.dumps(shown))


@pytest.mark.asyncio
async def test_writing_goes_into_the_vault_and_is_found_at_once(home, url):
    body = "站点根目录在 /srv/www/orchid，不是 /var/www。"
    async with agents.over_http(url, "root") as client:
        made = await client.call_tool("memory_capture", {"title": "站点根目录", "body": body})
        ref = made.structured_content["ref"]
        found = await client.call_tool("memory_search", {"query": "orchid"})
        assert found.structured_content["hits"][0]["ref"] == ref == "N_0002"
        await client.call_tool("memory_update", {"id": ref, "tags": ["web"]})
        await client.call_tool("memory_link", {"id": ref, "type": "caused_by", "target": "C_0001"})
        new = {"id": ref, "title": "站点根目录搬了家", "body": body.replace("srv", "opt")}
        done = await client.call_tool("memory_supersede", new)
        assert done.structured_content["ref"] == "N_0003"
        done = await client.call_tool("memory_reindex", {})
        assert done.structured_content["unchanged"] == 8
    assert body.encode() in homes.cards(home)["17-Notes/站点根目录.md"]
    assert {event["by"]["surface"] for event in homes.events(home, "created", "updated")} == {"mcp"}
    assert homes.command(home, "verify").returncode == 0


# Who may do what: for each tool, arguments with which it succeeds.

_BODY = "A body that is long enough to be kept as a card."
CALLS = {
    "memory_search": {"query": "备份"},
    "memory_context": {"question": "备份任务几点跑？"},
    "memory_brief": {},
    "memory_get": {"id": "F_0001"},
    "memory_related": {"id": "D_0001"},
    "memory_raw": {"id": "RAW"},
    "memory_stats": {},
    "memory_capture": {"title": "{actor} wrote this", "body": _BODY},
    "memory_update": {"id": "F_0001", "project": "of {actor}"},
    "memory_supersede": {"id": "C_0001", "title": "{actor} replaced it", "body": _BODY + " Anew."},
    "memory_link": {"id": "F_0001", "type": "told_by_{actor}", "target": "D_0001"},
    "memory_feedback": {"cohort": "COHORT", "adopted": "C_0001"},
    "memory_reindex": {},
}


@pytest.mark.asyncio
@pytest.mark.parametrize("closed", [False, True], ids=["as it is", "closed to strangers"])
async def test_the_matrix_of_tools_and_actors(home, free_port, serve, closed):
    memory = Memory(str(home))
    raw = memory.capture("Has an original", _BODY + " With more.", raw="The original.").ref
    cohort = memory.context("Is getUserById batched, and rate limiting?").cohort
    assert set(CALLS) == {*agents.READING, *agents.WRITING}
    expected = {
        None: [] if closed else agents.READING,
        "reader": agents.READING,
        "writer": [*agents.READING, *agents.WRITING],
        "root": [*agents.READING, *agents.WRITING],
    }
    argv = agents.datasette(home, free_port, closed=closed)
    with serve(argv, free_port) as url:
        for actor, allowed in expected.items():
            before = homes.cards(home)
            async with agents.over_http(url, actor) as client:
                listed = {tool.name for tool in (await client.list_tools()).tools}
                assert listed >= set(CALLS)
                for tool, arguments in CALLS.items():
                    arguments = {
                        name: value.replace("{actor}", str(actor))
                        .replace("RAW", raw)
                        .replace("COHORT", cohort)
                        for name, value in arguments.items()
                    }
                    result = await client.call_tool(tool, arguments)
                    told = agents.said(result)
                    assert result.is_error == (tool not in allowed), (actor, tool, told)
                    if result.is_error:
                        assert result.structured_content is None
                        asked = "ask its owner" if actor else "log in"
                        assert "not" in told and asked in told.lower(), told
            if not set(allowed) & set(agents.WRITING):
                assert homes.cards(home) == before


@pytest.mark.asyncio
async def test_each_call_is_judged_by_whoever_makes_it(home, url):
    # A session that root has opened is nobody's when nobody is named.
    opened, headers = post(
        url, agents.request(0, "initialize", **agents.greeting("2025-06-18")), **{"X-Actor": "root"}
    )
    session = {"Mcp-Session-Id": headers["mcp-session-id"]}
    call = agents.call(1, "memory_capture", title="t", body=_BODY)
    assert post(url, call, **session)[0]["result"]["isError"] is True
    made, _ = post(url, call, **session, **{"X-Actor": "root"})
    assert made["result"]["structuredContent"]["status"] == "created"


@pytest.mark.asyncio
async def test_one_of_several_memories_is_named_in_the_address(home, free_port, serve, tmp_path):
    other = Memory(str(tmp_path / "other"), db=str(tmp_path / "other" / "work.db"))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "config.json").write_text('{"db": "work.db"}')
    other.capture("Only at work", "The harbour gate is opened by the porter.")
    argv = agents.datasette(home, free_port, str(other.db))
    with serve(argv, free_port) as url:
        for path, found in [
            ("/-/mcp", 0),
            ("/-/mcp?database=memory", 0),
            ("/-/mcp?database=work", 1),
        ]:
            async with agents.over_http(url, "root", path) as client:
                result = await client.call_tool("memory_search", {"query": "harbour"})
                assert result.structured_content["count"] == found, path
        async with agents.over_http(url, "root", "/-/mcp?database=none") as client:
            result = await client.call_tool("memory_search", {"query": "harbour"})
            assert result.is_error and "none is no memory" in agents.said(result)


@pytest.mark.asyncio
async def test_an_index_that_belongs_to_no_home_can_be_read_alone(index_file, free_port, serve):
    home = index_file().parent
    with serve(agents.datasette(home, free_port), free_port) as url:
        async with agents.over_http(url, "root") as client:
            found = await client.call_tool("memory_search", {"query": "备份"})
            assert found.structured_content["hits"][0]["ref"] == "F_0001"


@pytest.mark.asyncio
async def test_200_requests_in_flight(home, url):
    async with agents.over_http(url, "root") as client:
        asked = {"备份": "F_0001", "getUserById": "C_0001", "全文检索": "D_0001"}

        async def ask(number: int):
            if number % 10 == 9:
                body = f"In flight number {number}, one of two hundred."
                made = {"title": f"F {number}", "body": body}
                return await client.call_tool("memory_capture", made)
            query = list(asked)[number % 3]
            found = await client.call_tool("memory_search", {"query": query, "limit": 1})
            assert found.structured_content["hits"][0]["ref"] == asked[query]
            return found

        results = await asyncio.gather(*map(ask, range(200)))
    refs = {one.structured_content["ref"] for one in results if "ref" in one.structured_content}
    assert not any(one.is_error for one in results) and len(refs) == 20
    assert len(homes.cards(home)) == 26


@pytest.mark.asyncio
async def test_a_client_that_goes_away_in_the_middle_harms_nobody(home, url):
    opened, headers = post(url, agents.request(0, "initialize", **agents.greeting("2025-06-18")))
    port = int(url.rpartition(":")[2])
    for number in range(20):
        body = json.dumps(agents.call(number, "memory_search", query="备份")).encode()
        head = (
            "POST /-/mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            "Accept: application/json, text/event-stream\r\n"
            f"Mcp-Session-Id: {headers['mcp-session-id']}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        with socket.create_connection(("127.0.0.1", port)) as connection:
            # Half of them leave in the middle of the question, half before the answer.
            connection.sendall(head.encode() + (body if number % 2 else body[:20]))
    async with agents.over_http(url) as client:
        found = await client.call_tool("memory_search", {"query": "备份"})
        assert found.structured_content["hits"][0]["ref"] == "F_0001"


@pytest.mark.asyncio
async def test_faults_are_told_as_they_are_over_stdio(url):
    async with agents.over_http(url, "root") as client:
        for tool, arguments, words in [
            ("memory_get", {"id": "D_9999"}, ["D_9999", "memory_search"]),
            ("memory_capture", {"title": "short", "body": "no"}, ["rejected", "too little"]),
            ("memory_search", {}, ["query", "required"]),
            ("memory_raw", {"id": "D_0001"}, ["no raw text"]),
        ]:
            result = await client.call_tool(tool, arguments)
            assert result.is_error and all(word in agents.said(result) for word in words)


def test_an_unknown_method_and_what_is_no_json_are_protocol_errors(url):
    opened, headers = post(url, agents.request(0, "initialize", **agents.greeting("2025-06-18")))
    session = {"Mcp-Session-Id": headers["mcp-session-id"]}
    answer, _ = post(url, agents.request(1, "no/such/method"), **session)
    assert answer["error"]["code"] == -32601
    request = urllib.request.Request(
        f"{url}/-/mcp",
        b"this is not json",
        {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"},
    )
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=60)
    assert refused.value.code == 400
    assert json.loads(refused.value.read())["error"]["code"] == -32700


@pytest.mark.asyncio
async def test_whoever_calls_without_http_is_nobody(home):
    datasette = Datasette([str(home / "memory.db")])
    await datasette.invoke_startup()
    async with Client(create_mcp_server(datasette)) as client:
        found = await client.call_tool("memory_search", {"query": "备份"})
        assert found.structured_content["hits"][0]["ref"] == "F_0001"
        made = await client.call_tool("memory_capture", {"title": "t", "body": _BODY})
        assert made.is_error and "log in" in agents.said(made)
