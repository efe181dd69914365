"""`memory mcp` in real processes: the SDK's own client, and bare lines where that is too polite."""

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

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


def cli(home: Path, *words: str):
    return json.loads(homes.command(home, *words, "--json").stdout)


# The protocol


@pytest.mark.parametrize("version", agents.HANDSHAKES)
def test_each_version_of_the_handshake(home, version):
    with agents.Bare(home) as client:
        opened = client.open(version)
        assert opened["protocolVersion"] == version
        assert opened["serverInfo"]["name"] == "memory" and "tools" in opened["capabilities"]
        listed = client.ask(1, "tools/list")["result"]["tools"]
        assert sorted(tool["name"] for tool in listed) == sorted(agents.READING + agents.WRITING)
        found = client.ask(2, "tools/call", name="memory_search", arguments={"query": "备份"})
        assert found["result"]["content"][0]["text"].startswith("F_0001 端口约定")


def test_the_version_without_a_handshake(home):
    with agents.Bare(home) as client:
        client.send(agents.modern(agents.request(1, "server/discover")))
        discovered = client.next()["result"]
        assert agents.NEWEST in discovered["supportedVersions"]
        client.send(agents.modern(agents.call(2, "memory_search", query="备份")))
        found = client.next()["result"]
        assert [hit["ref"] for hit in found["structuredContent"]["hits"]] == ["F_0001"]


@pytest.mark.parametrize("version", ["1999-01-01", "2099-12-31", "nonsense"])
def test_an_unknown_version_is_answered_with_the_newest_of_the_handshake(home, version):
    with agents.Bare(home) as client:
        assert client.open(version)["protocolVersion"] == agents.HANDSHAKES[-1]


def test_what_the_sdk_leaves_unanswered_is_answered(home):
    broken = [b"this is not json", b"{", b'{"jsonrpc":"2.0","id":1,', b"\xff\xfe", b"[" * 99_999]
    broken.append(b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}')
    wrong = {
        "[]": None,
        '"text"': None,
        '{"jsonrpc":"2.0","id":5}': 5,
        '{"id":"a","method":1}': "a",
        '{"jsonrpc":"2.0","id":null,"method":"ping"}': None,
        '{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}': None,
        '{"jsonrpc":"2.0","id":1e400,"method":"ping"}': None,
    }
    with agents.Bare(home) as client:
        client.open()
        for line in broken:
            client.send(line + b"\n")
            answer = client.next()
            assert (answer["error"]["code"], answer["id"]) == (-32700, None), line
        for line, id in wrong.items():
            client.send(line.encode() + b"\n")
            answer = client.next()
            assert (answer["error"]["code"], answer["id"]) == (-32600, id), line
        client.send(b"\n", b"  \n")
        assert client.ask(1, "no/such/method")["error"]["code"] == -32601
        assert client.ask(2, "ping")["result"] == {}


def test_half_a_surrogate_pair_is_searched_for_all_the_same(home):
    with agents.Bare(home) as client:
        client.open()
        client.send(
            rb'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"memory_search",'
            rb'"arguments":{"query":"\u5907\u4efd \ud83d"}}}' + b"\n"
        )
        assert client.next()["result"]["structuredContent"]["hits"][0]["ref"] == "F_0001"


def test_what_the_sdk_does_not_need_waits_for_the_first_call(home):
    with agents.Bare(home, PYTHONPROFILEIMPORTTIME="1") as client:
        client.open()
        client.ask(1, "tools/list")
        client.process.stdin.close()
        client.end()
        loaded = {line.rpartition("|")[2].strip() for line in client.errors.decode().splitlines()}
    assert {"mcp", "datasette_memory.tools", "memory_cli.wire"} <= loaded
    heavy = {"datasette", "sqlite3", "sqlite_utils", "yaml", "filelock", "datasette_memory.memory"}
    assert loaded & heavy == set()


# What the tools are


@pytest.mark.asyncio
async def test_names_descriptions_and_schemas_are_at_most_10000_characters(home):
    async with agents.over_stdio(home) as client:
        tools = (await client.list_tools()).tools
    written = [tool.name + tool.description + json.dumps(tool.input_schema) for tool in tools]
    assert sum(map(len, written)) <= 10_000
    search = next(tool for tool in tools if tool.name == "memory_search")
    assert set(search.input_schema["properties"]) >= {"query", "limit", "kind", "source"}
    get = next(tool for tool in tools if tool.name == "memory_get")
    assert set(get.input_schema["properties"]) >= {"id", "offset", "max_chars", "full"}
    capture = next(tool for tool in tools if tool.name == "memory_capture")
    assert set(capture.input_schema["properties"]) >= {
        "title", "body", "kind", "tags", "reject_secrets",
    }  # fmt: skip
    for tool in tools:
        # A client that allows only what reads looks at nothing else.
        assert tool.annotations.read_only_hint == (tool.name in agents.READING)
        assert tool.output_schema["type"] == "object"
        assert len(tool.name) <= 30


@pytest.mark.asyncio
async def test_read_only_serves_what_reads(home):
    async with agents.over_stdio(home, "--read-only") as client:
        assert sorted(t.name for t in (await client.list_tools()).tools) == sorted(agents.READING)
        refused = await client.call_tool("memory_capture", {"title": "x", "body": "y" * 40})
        assert refused.is_error and "Unknown tool" in agents.said(refused)
    async with agents.over_stdio(home, "--read-only", "--tools", "router") as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert names == ["search_memory", "read_raw_data"]
    assert homes.events(home, "created") == []


# Each tool, by the SDK's own client, in both of its ways to begin


@pytest.mark.asyncio
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_every_tool_does_what_the_command_does(home, mode):
    async with agents.over_stdio(home, mode=mode) as client:
        version = agents.NEWEST if mode == "auto" else agents.HANDSHAKES[-1]
        assert client.protocol_version == version

        async def ask(name, **arguments):
            result = await client.call_tool(name, arguments)
            assert not result.is_error, agents.said(result)
            return agents.said(result), result.structured_content

        # Searching
        text, found = await ask("memory_search", query="全文检索", superseded=True)
        told = cli(home, "search", "全文检索", "--superseded")
        assert [hit["ref"] for hit in found["hits"]] == [hit["ref"] for hit in told["hits"]]
        for shown, hit in zip(found["hits"], told["hits"]):
            said = {key: value for key, value in hit.items() if value not in (None, False)}
            assert shown == said
        assert (found["tier"], found["notice"]) == (told["tier"], told["notice"])
        assert len(text.splitlines()) == len(found["hits"]) + bool(found["notice"])
        text, found = await ask("memory_search", query="qwertyuiop")
        assert "No card answers" in text and found["hits"] == [] and found["tier"] is None
        for filters, refs in [
            ({"kind": "fact"}, ["F_0001"]),
            ({"tags": "检索"}, []),
            ({"tags": ["运维"]}, ["F_0001"]),
            ({"since": "2026-01-06"}, []),
            ({"source": "elsewhere"}, []),
            ({"project": "燕子"}, []),
        ]:
            _, found = await ask("memory_search", query="备份", **filters)
            assert [hit["ref"] for hit in found["hits"]] == refs, filters

        # Reading
        text, card = await ask("memory_get", id="D_0001")
        shown = cli(home, "show", "D_0001")
        for key in ("ref", "path", "title", "kind", "project", "tags", "text", "length"):
            assert card[key] == shown[key], key
        assert shown["text"] in text and text.startswith("D_0001 全文检索用二元组")
        _, first = await ask("memory_get", id="17-Notes/long.md", max_chars=1000)
        assert (first["returned"], first["next_offset"]) == (1000, 1000)
        _, rest = await ask("memory_get", id=first["ref"], offset="1000", full=True)
        assert first["text"] + rest["text"] == cli(home, "show", first["ref"])["text"]
        text, found = await ask("memory_related", id="D_0001", depth=1)
        assert found["cards"] == [
            {key: value for key, value in one.items() if value is not None}
            for one in cli(home, "related", "D_0001")["cards"]
        ]
        assert "refers_to -> F_0001 端口约定" in text
        text, figures = await ask("memory_stats")
        told = cli(home, "stats")
        assert all(figures[key] == told[key] for key in ("cards", "by_kind", "links", "faults"))
        assert text.startswith("6 cards, 1 of them superseded")

        # Writing
        body = "站点根目录在 /srv/www/orchid，不是 /var/www。"
        text, made = await ask(
            "memory_capture", title="站点根目录", body=body, kind="fact", tags="web, 运维",
            relates=["refers_to:F_0001"], raw="原文 " * 3000,
        )  # fmt: skip
        assert (made["status"], made["ref"], made["indexed"]) == ("created", "F_0002", True)
        assert text == f"created F_0002 {made['path']}"
        assert cli(home, "show", "F_0002")["text"].strip() == body
        assert (await ask("memory_search", query="orchid"))[1]["hits"][0]["ref"] == "F_0002"
        again = await ask("memory_capture", title="站点根目录", body=body, kind="fact")
        assert again[1]["status"] == "unchanged"
        text, raw = await ask("memory_raw", id="F_0002")
        assert raw["has_more"] and raw["next_offset"] < 7_500 and "memory_raw" in text
        _, end = await ask("memory_raw", id="F_0002", offset=raw["length"] - 2)
        assert end["text"] == "文 " and end["next_offset"] is None
        _, made = await ask("memory_update", id="F_0002", tags=["web"], confidence=0.5)
        assert (made["status"], made["version"]) == ("updated", 2)
        assert cli(home, "show", "F_0002")["tags"] == ["web"]
        await ask("memory_update", id="F_0002", tags="")
        assert cli(home, "show", "F_0002")["tags"] == []
        _, made = await ask("memory_link", id="F_0002", type="caused_by", target="C_0001")
        assert made["status"] == "linked"
        text, made = await ask(
            "memory_supersede",
            id="F_0002",
            title="站点根目录搬了家",
            body=body.replace("srv", "opt"),
        )
        assert made["ref"] == "F_0003" and "F_0002" in text
        assert cli(home, "show", "F_0002")["superseded_by"] == "F_0003"

        # Files that are changed by hand
        (home / "vault" / "17-Notes" / "new.md").write_text("# 手写\n\n手写的一页。", "utf-8")
        text, synced = await ask("memory_reindex")
        assert synced["added"] == 1 and text.startswith("1 added")
        assert (await ask("memory_reindex", rebuild=True))[1]["added"] == 9

    told = {
        event["kind"]
        for event in homes.events(home)
        if event["by"] == {"surface": "mcp", "agent": "test-client", "session": None}
    }
    assert told == {"created", "updated", "superseded", "linked", "read", "gap"}
    assert homes.field(homes.cards(home)["12-Facts/站点根目录.md"], "agent") == "test-client"


@pytest.mark.asyncio
async def test_no_answer_is_long_and_five_hits_are_short(home):
    # A card that repeats its words finds itself in each of twenty.
    memory = Memory(str(home))
    for number in range(20):
        memory.capture(
            f"{number} 一个说得很长的标题 " * 9, f'第 {number} 次提到阿里云与快照。 "\\ \n' * 400
        )
    async with agents.over_stdio(home) as client:
        for limit, most in ((5, 2_000), (20, 7_500)):
            result = await client.call_tool(
                "memory_search", {"query": "阿里云 快照", "limit": limit}
            )
            found = result.structured_content
            assert found["count"] == limit == len(agents.said(result).splitlines())
            assert len(json.dumps(found, ensure_ascii=False, separators=(",", ":"))) <= most
            assert len(agents.said(result)) <= most
        ref = found["hits"][0]["ref"]
        for arguments in ({"full": True}, {"max_chars": 99_999}, {}):
            result = await client.call_tool("memory_get", {"id": ref, **arguments})
            shown = result.structured_content
            assert shown["has_more"] and shown["next_offset"] == shown["returned"]
            written = json.dumps(shown, ensure_ascii=False, separators=(",", ":"))
            assert len(written) <= 7_500 and len(agents.said(result)) <= 7_500


# What goes wrong


FAILING = [
    ("memory_get", {"id": "D_9999"}, ["D_9999", "memory_search"]),
    ("memory_get", {"id": "../../etc/passwd"}, ["memory_search"]),
    ("memory_get", {}, ["id", "required"]),
    ("memory_get", {"id": "twin"}, ["2 cards", "call again", "one.md", "two.md"]),
    ("memory_raw", {"id": "D_0001"}, ["no raw text", "memory_capture"]),
    ("memory_related", {"id": "nothing"}, ["nothing", "memory_search"]),
    ("memory_search", {"query": "x", "limit": "many"}, ["limit", "integer"]),
    ("memory_search", {"query": "x", "since": "gestern"}, ["gestern"]),
    ("memory_search", {}, ["query", "required"]),
    ("memory_capture", {"title": "short", "body": "no"}, ["rejected", "too little"]),
    ("memory_capture", {"title": "t", "body": "x" * 40, "relates": "X_0001"}, ["TYPE:REF"]),
    (
        "memory_capture",
        {"title": "key", "body": "token ghp_" + "a1B2" * 9, "reject_secrets": True},
        ["rejected", "credential"],
    ),
    ("memory_capture", {"title": "t", "body": "x" * 40, "confidence": 7}, ["0 to 1"]),
    ("memory_update", {"id": "D_0001"}, ["nothing to update", "title"]),
    ("memory_update", {"id": "D_9999", "title": "x"}, ["D_9999"]),
    ("memory_supersede", {"id": "D_9999", "title": "x", "body": "y" * 40}, ["D_9999"]),
    ("memory_link", {"id": "D_0001", "type": "refers_to", "target": "D_9999"}, ["D_9999"]),
    ("memory_forget", {"id": "D_0001"}, ["Unknown tool"]),
]


@pytest.mark.asyncio
async def test_a_tool_that_fails_says_what_is_wrong_and_what_to_do(home):
    for name in ("one", "two"):
        (home / "vault" / f"{name}.md").write_text("# twin\n\nThe same title.", "utf-8")
    Memory(str(home)).index()
    before = homes.cards(home)
    async with agents.over_stdio(home) as client:
        for tool, arguments, said in FAILING:
            result = await client.call_tool(tool, arguments)
            text = agents.said(result)
            assert result.is_error, (tool, arguments)
            assert all(word in text for word in said), text
            assert "Traceback" not in text and len(text) < 1_000
    assert homes.cards(home) == before


@pytest.mark.asyncio
async def test_a_memory_that_is_not_there_yet_says_how_it_begins(tmp_path):
    async with agents.over_stdio(tmp_path / "new") as client:
        result = await client.call_tool("memory_search", {"query": "x"})
        assert result.is_error and "memory_capture writes the first card" in agents.said(result)
        body = "The first thing that is worth keeping."
        made = await client.call_tool("memory_capture", {"title": "First", "body": body})
        assert made.structured_content["ref"] == "N_0001"
        found = await client.call_tool("memory_search", {"query": "first"})
        assert found.structured_content["count"] == 1


@pytest.mark.asyncio
async def test_a_home_that_cannot_be_understood_is_told_when_a_tool_is_called(home):
    (home / "config.json").write_text("{")
    async with agents.over_stdio(home) as client:
        assert len((await client.list_tools()).tools) == 13
        result = await client.call_tool("memory_search", {"query": "x"})
        assert result.is_error and "config.json is not valid JSON" in agents.said(result)


@pytest.mark.asyncio
async def test_secret_cards_are_out_of_reach(home):
    (home / "vault" / "secret.md").write_text(
        "---\nid: N_0099\nsensitivity: secret\n---\n# Vault door\n\nThe code is blue-harbour-42.\n"
    )
    Memory(str(home)).index()
    async with agents.over_stdio(home) as client:
        found = await client.call_tool("memory_search", {"query": "blue-harbour-42"})
        assert found.structured_content["count"] == 0
        assert (await client.call_tool("memory_get", {"id": "N_0099"})).is_error


# The wire under load


_NOISY = """
import ctypes, logging, os, subprocess, sys
from datasette_memory import memory
search = memory.Memory.search
def noisy(self, query, **options):
    print("printed by a tool", query * 50)
    os.write(1, b"written below Python\\n")
    subprocess.run([sys.executable, "-c", "print('printed by a child')"])
    ctypes.CDLL(None).puts(b"printed by C")
    logging.warning("logged")
    assert sys.stdin.read() == ""
    return search(self, query, **options)
memory.Memory.search = noisy
from memory_cli.main import main
sys.argv[1:] = ["mcp"]
main()
"""


def test_stdout_is_protocol_whatever_prints(home):
    with agents.Bare(home, command=[sys.executable, "-c", _NOISY]) as client:
        client.open()
        words = ["备份", "全文", "检索", "getUserById", "没有"]
        for number in range(40):
            client.send(agents.call(number, "memory_search", query=words[number % 5]))
            client.send(b"no json\n", agents.request(f"p{number}", "ping"))
        answered = [client.next() for _ in range(120)]
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in client.lines)
    assert sorted(a["id"] for a in answered if isinstance(a["id"], int)) == list(range(40))
    assert sum(a.get("error", {}).get("code") == -32700 for a in answered) == 40
    for printed in (b"printed by a tool", b"written below", b"by a child", b"by C", b"logged"):
        assert client.errors.count(printed) >= 40, printed


def test_200_requests_in_flight_get_each_its_own_answer(home):
    with agents.Bare(home) as client:
        client.open()
        queries = {"备份": "F_0001", "getUserById": "C_0001", "外部服务": None, "甲乙丙丁": "x"}
        asked = [list(queries)[number % 4] for number in range(200)]
        for number, query in enumerate(asked):
            if number % 10 == 9:
                body = f"In flight number {number}, one of two hundred."
                client.send(agents.call(number, "memory_capture", title=f"F {number}", body=body))
            else:
                client.send(agents.call(number, "memory_search", query=query, limit=1))
        answers = {answer["id"]: answer["result"] for answer in (client.next() for _ in asked)}
    assert sorted(answers) == list(range(200))
    refs = set()
    for number, query in enumerate(asked):
        found = answers[number]["structuredContent"]
        assert not answers[number]["isError"], answers[number]
        if number % 10 == 9:
            assert found["status"] == "created"
            refs.add(found["ref"])
        elif wanted := queries[query]:
            assert found["query"] == query and found["hits"][0]["ref"].startswith(wanted)
    assert len(refs) == 20 and len(homes.cards(home)) == 26


def test_requests_and_the_end_in_one_breath_are_all_answered(home):
    messages = [
        agents.request(0, "initialize", **agents.greeting("2025-06-18")),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        *(agents.call(number, "memory_search", query="备份") for number in range(1, 11)),
    ]
    done = subprocess.run(
        agents.MCP,
        input="".join(json.dumps(message) + "\n" for message in messages).encode(),
        capture_output=True,
        env=agents.environment(home),
        timeout=60,
    )
    assert sorted(json.loads(line)["id"] for line in done.stdout.splitlines()) == list(range(11))
    assert done.returncode == 0 and done.stderr == b""


# The end


def gone(process: subprocess.Popen) -> bool:
    """Whether there is nothing left of a process and whatever it has started."""
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return True
    return False


_SLOW = """
import sys, time
from datasette_memory import memory
memory.Memory.search = lambda *a, **k: time.sleep(60)
from memory_cli.main import main
sys.argv[1:] = ["mcp"]
main()
"""


@pytest.mark.parametrize("command", [None, [sys.executable, "-c", _SLOW]], ids=["idle", "at work"])
@pytest.mark.parametrize("how", ["end of input", "SIGTERM", "SIGINT"])
def test_it_ends_within_a_second_and_leaves_nothing(home, how, command):
    client = agents.Bare(home, command=command)
    client.open()
    if command:
        client.send(agents.call(1, "memory_search", query="x"))
        client.ask(2, "ping")
    begun = time.monotonic()
    if how == "end of input":
        client.process.stdin.close()
    else:
        client.process.send_signal(getattr(signal, how))
    client.end()
    # A promise to the user, with room for a busy machine.
    assert time.monotonic() - begun < 10
    assert gone(client.process)
    assert b"Traceback" not in client.errors, client.errors.decode()


def test_a_client_that_goes_away_in_the_middle_ends_it(home):
    process = subprocess.Popen(
        agents.MCP,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=agents.environment(home),
        start_new_session=True,
    )
    opening = agents.request(0, "initialize", **agents.greeting("2025-06-18"))
    process.stdin.write(json.dumps(opening).encode() + b"\n")
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["id"] == 0
    for number in range(1, 50):
        message = agents.call(number, "memory_capture", title=f"t{number}", body=f"{number} " * 40)
        process.stdin.write(json.dumps(message).encode() + b"\n")
    process.stdin.flush()
    # The input stays open: only that nobody reads tells it.
    process.stdout.close()
    assert process.wait(60) == 0 and gone(process)
    assert process.stderr.read() == b""
    process.stdin.close()
    # What it had begun is whole or not there; the index may be a card behind, and catches up.
    for path, data in homes.cards(home).items():
        if found := re.fullmatch(r"17-Notes/t(\d+)\.md", path):
            assert data.decode().endswith(f"---\n{(found[1] + ' ') * 40}\n"), data
    assert homes.command(home, "index").returncode == 0
    done = homes.command(home, "verify")
    assert done.returncode == 0, done.stdout + done.stderr
    assert homes.temporaries(home) == []


def test_without_stderr_there_is_still_nothing_but_protocol(home):
    command = ["sh", "-c", 'exec "$@" 2>&-', "sh", sys.executable, "-c", _NOISY]
    with agents.Bare(home, command=command) as client:
        client.open()
        client.ask(1, "tools/call", name="memory_search", arguments={"query": "备份"})
    assert len(client.lines) == 2 and all(json.loads(line)["result"] for line in client.lines)


def test_it_can_be_started_by_hand(home):
    terminal = subprocess.run(
        [*agents.MCP, "--help"], capture_output=True, env=agents.environment(home), timeout=60
    )
    assert b"docs/" not in terminal.stdout and b"--read-only" in terminal.stdout
    closed = subprocess.run(
        ["sh", "-c", 'exec "$@" <&-', "sh", *agents.MCP],
        capture_output=True,
        env=agents.environment(home),
        timeout=60,
    )
    assert closed.returncode == 2 and b"an agent's client" in closed.stderr
