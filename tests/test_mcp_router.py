"""`memory mcp --tools router`: whoever used Agent Memory Router changes the command, nothing else."""

import importlib.util
import json
from pathlib import Path

import pytest

from datasette_memory.errors import MemoryFault
from datasette_memory.memory import Memory


def _load(name):
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


agents = _load("agents")
homes = _load("homes")

pytestmark = pytest.mark.asyncio

RECORD = ["id", "type", "title", "keywords", "created_at", "update_version"]


@pytest.fixture
def home(small_vault, tmp_path) -> Path:
    """A home with the six cards of the tests."""
    return agents.make_home(tmp_path / "home", small_vault)


async def test_the_four_tools_from_saving_to_reading(home):
    async with agents.over_stdio(home, "--tools", "router") as client:

        async def ask(name, **arguments):
            result = await client.call_tool(name, arguments)
            # The answer was JSON text, and is nothing else.
            assert not result.is_error and result.structured_content is None
            return json.loads(agents.said(result))

        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(tools) == agents.ROUTER
        for name, required, optional in [
            ("search_memory", ["keyword"], {"type", "limit"}),
            ("read_raw_data", ["record_id"], {"max_chars"}),
            ("save_memory", ["type", "title", "content"], {"keywords", "relates_to"}),
            ("link_memory", ["source_id", "target_id", "relation_type"], set()),
        ]:
            assert tools[name].input_schema.get("required") == required
            assert set(tools[name].input_schema["properties"]) >= {*required, *optional}

        content = "背景：两台机器。\n做法：用 SQLite，不用向量库。\n原因：零依赖，能直接打开排查。"
        saved = await ask(
            "save_memory", type="decision", title="选 SQLite 而非向量库", content=content,
            keywords="sqlite,检索,本地", relates_to="F_0001",
        )  # fmt: skip
        assert list(saved) == [*RECORD, "status", "next_step"]
        assert (saved["id"], saved["type"], saved["update_version"]) == ("D_0003", "decision", 1)
        assert saved["keywords"] == "sqlite,检索,本地" and saved["status"] == "created"

        found = await ask("search_memory", keyword="向量库", type="decision", limit=3)
        assert found["count"] == len(found["results"]) == 1
        assert list(found["results"][0]) == RECORD and found["results"][0]["id"] == "D_0003"
        assert "read_raw_data" in found["next_step"]
        none = await ask("search_memory", keyword="qwertyuiop")
        assert none["results"] == [] and "other keywords" in none["next_step"]

        read = await ask("read_raw_data", record_id="D_0003")
        assert read["content"].strip() == content and read["truncated"] is False
        assert {key: read[key] for key in RECORD} == {key: saved[key] for key in RECORD}
        assert read["relations"] == [{"target_id": "F_0001", "relation_type": "refers_to"}]

        linked = await ask(
            "link_memory", source_id="D_0003", target_id="C_0001", relation_type="caused_by"
        )
        assert (linked["status"], linked["source_id"]) == ("linked", "D_0003")
        assert linked["next_step"]
        other = await ask("save_memory", type="other", title="Else", content="Something else. " * 3)
        assert (other["id"], other["type"]) == ("M_0001", "misc")
    shown = Memory(str(home)).show("D_0003")
    assert ("caused_by", "C_0001") in [
        (one["type"], one["target"]) for one in shown.card["relations"]
    ]


async def test_what_is_longer_than_20000_characters_is_kept_whole_as_evidence(home):
    content = "".join(f"第 {number} 行：记下来的每一个字都要读得回来。\n" for number in range(1500))
    assert len(content) > 30_000
    async with agents.over_stdio(home, "--tools", "router") as client:
        arguments = {"type": "session", "title": "长谈", "content": content}
        saved = json.loads(agents.said(await client.call_tool("save_memory", arguments)))
        assert saved["id"] == "S_0001"
        at, joined, pages = 0, "", 1
        while True:
            arguments = {"record_id": saved["id"], "offset": at}
            text = agents.said(await client.call_tool("read_raw_data", arguments))
            assert len(text) <= 7_500
            page = json.loads(text)
            assert page["total_chars"] == len(content)
            joined += page["content"]
            pages += 1
            if not page["truncated"]:
                break
            at = len(joined)
            assert f"offset {at}" in page["next_step"]
        short = await client.call_tool("read_raw_data", {"record_id": "S_0001", "max_chars": 100})
        assert json.loads(agents.said(short))["content"] == content[:100]
    assert joined == content
    # Each page counts as one read, not as one of the card and one of its original.
    assert len(homes.events(home, "read")) == pages
    memory = Memory(str(home))
    for original in (home / "evidence").glob("*/*.txt"):
        original.write_text("somebody else's words")
    assert memory.show("S_0001", full=True).window.text == content[:20_000] + "\n"
    with pytest.raises(MemoryFault) as damaged:
        memory.raw("S_0001")
    # The end of the card says that more is missing, and why.
    async with agents.over_stdio(home, "--tools", "router") as client:
        arguments = {"record_id": "S_0001", "offset": 19_990}
        page = json.loads(agents.said(await client.call_tool("read_raw_data", arguments)))
        assert not page["truncated"] and damaged.value.error in page["next_step"]


async def test_a_list_of_hits_is_no_read_and_a_record_read_is_one(home):
    async with agents.over_stdio(home, "--tools", "router") as client:
        await client.call_tool("search_memory", {"keyword": "备份", "limit": 20})
        assert homes.events(home, "read") == []
        await client.call_tool("read_raw_data", {"record_id": "F_0001"})
        assert [event["ref"] for event in homes.events(home, "read")] == ["F_0001"]


async def test_faults_are_json_too_and_say_the_next_step(home):
    async with agents.over_stdio(home, "--tools", "router") as client:
        for name, arguments, error, step in [
            ("read_raw_data", {"record_id": "D_9999"}, "D_9999", "search_memory"),
            ("read_raw_data", {"record_id": "../../etc/passwd"}, "etc/passwd", "search_memory"),
            ("save_memory", {"type": "note", "title": "t", "content": "no"}, "too little", "too"),
            (
                "link_memory",
                {"source_id": "D_0001", "target_id": "Z_9", "relation_type": "x"},
                "Z_9",
                "search_memory",
            ),
        ]:
            result = await client.call_tool(name, arguments)
            answer = json.loads(agents.said(result))
            assert result.is_error and error in answer["error"], answer
            assert step in answer["next_step"], answer
            assert "memory_" not in answer["next_step"].replace("search_memory", "")


async def test_twenty_long_records_are_one_answer(home):
    memory = Memory(str(home))
    for number in range(20):
        keywords = [f"关键词{number}-{word}" for word in range(40)]
        memory.capture(f"{number} " + "长标题" * 60, f"阿里云 {number} " * 9, keywords=keywords)
    async with agents.over_stdio(home, "--tools", "router") as client:
        arguments = {"keyword": "阿里云", "limit": 20}
        text = agents.said(await client.call_tool("search_memory", arguments))
    found = json.loads(text)
    assert len(text) <= 7_500 and found["count"] == len(found["results"]) > 10
