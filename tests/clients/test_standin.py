"""The stand-in for the model: each dialect, streamed and whole, and tools behind a search."""

import json
import urllib.error
import urllib.request

import pytest

from datasette_memory.clients.standin import Request, StandIn, decide, is_of

QUERY = {"query": "harbour"}
SCHEMA = {"type": "object", "properties": {"query": {"type": "string"}}}


@pytest.fixture
def model():
    with StandIn("memory", "memory_search", QUERY, "Alma") as one:
        yield one


def post(url: str, body: dict) -> str:
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.read().decode()


def events(text: str) -> list[dict]:
    """The data of each event of a stream; `[DONE]` is none."""
    lines = [one[6:] for one in text.split("\n") if one.startswith("data: ")]
    return [json.loads(one) for one in lines if one != "[DONE]"]


def test_anthropic(model):
    asked = {
        "model": "m",
        "messages": [{"role": "user", "content": "Who?"}],
        "tools": [{"name": "mcp__memory__memory_search", "input_schema": SCHEMA}],
    }
    told = json.loads(post(f"{model.url}/v1/messages?beta=true", asked))
    call = told["content"][0]
    assert (told["stop_reason"], call["type"], call["name"], call["input"]) == (
        "tool_use", "tool_use", "mcp__memory__memory_search", QUERY,
    )  # fmt: skip
    result = {"type": "tool_result", "tool_use_id": call["id"],
              "content": [{"type": "text", "text": "It is Alma."}]}  # fmt: skip
    asked["messages"] += [
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ]
    streamed = events(post(f"{model.url}/v1/messages", {**asked, "stream": True}))
    assert [one["type"] for one in streamed] == [
        "message_start", "content_block_start", "content_block_delta", "content_block_stop",
        "message_delta", "message_stop",
    ]  # fmt: skip
    assert streamed[2]["delta"] == {"type": "text_delta", "text": "From memory: It is Alma."}
    assert [one.results() for one in model.turns()] == [[], ["It is Alma."]]


def test_anthropic_streams_a_call_in_pieces(model):
    asked = {"stream": True, "messages": [], "tools": [{"name": "mcp__memory__memory_search"}]}
    streamed = events(post(f"{model.url}/v1/messages", asked))
    assert streamed[1]["content_block"]["input"] == {}
    assert json.loads(streamed[2]["delta"]["partial_json"]) == QUERY


@pytest.mark.parametrize("stream", [False, True])
def test_responses(model, stream):
    group = {"type": "namespace", "name": "mcp__memory", "tools": [{"name": "memory_search"}]}
    asked = {"stream": stream, "input": [], "tools": [{"type": "web_search"}, group]}
    url = f"{model.url}/v1/responses"

    def item(body: dict) -> dict:
        text = post(url, body)
        told = events(text)[-1]["response"] if stream else json.loads(text)
        return told["output"][0]

    call = item(asked)
    assert (call["type"], call["namespace"], call["name"], json.loads(call["arguments"])) == (
        "function_call", "mcp__memory", "memory_search", QUERY,
    )  # fmt: skip
    output = {"type": "function_call_output", "call_id": call["call_id"], "output": "Alma, it says"}
    asked["input"] = [call, output]
    assert item(asked)["content"][0]["text"] == "From memory: Alma, it says"


@pytest.mark.parametrize("stream", [False, True])
def test_chat(model, stream):
    offered = {"type": "function",
               "function": {"name": "memory_memory_search", "parameters": SCHEMA}}  # fmt: skip
    asked = {"stream": stream, "messages": [], "tools": [offered]}
    url = f"{model.url}/v1/chat/completions"

    def message(body: dict) -> tuple[dict, str]:
        text = post(url, body)
        if not stream:
            choice = json.loads(text)["choices"][0]
            return choice["message"], choice["finish_reason"]
        assert text.endswith("data: [DONE]\n\n")
        chunks = [one["choices"][0] for one in events(text) if one["choices"]]
        return chunks[0]["delta"], chunks[-1]["finish_reason"]

    told, reason = message(asked)
    called = told["tool_calls"][0]["function"]
    assert (called["name"], json.loads(called["arguments"]), reason) == (
        "memory_memory_search", QUERY, "tool_calls",
    )  # fmt: skip
    asked["messages"] = [told, {"role": "tool", "tool_call_id": "c", "content": "Alma"}]
    told, reason = message(asked)
    assert (told["content"], reason) == ("From memory: Alma", "stop")


@pytest.mark.parametrize("stream", [False, True])
def test_gemini(model, stream):
    declared = {"name": "mcp_memory_memory_search", "parametersJsonSchema": SCHEMA}
    asked = {"contents": [], "tools": [{"functionDeclarations": [declared]}]}
    method = "streamGenerateContent?alt=sse" if stream else "generateContent"
    url = f"{model.url}/v1beta/models/gemini-2.5-flash:{method}"

    def part(body: dict) -> dict:
        text = post(url, body)
        told = events(text)[0] if stream else json.loads(text)
        return told["candidates"][0]["content"]["parts"][0]

    assert part(asked)["functionCall"] == {"name": "mcp_memory_memory_search", "args": QUERY}
    response = {"name": "mcp_memory_memory_search", "response": {"output": "Alma"}}
    asked["contents"] = [{"role": "user", "parts": [{"functionResponse": response}]}]
    assert part(asked) == {"text": "From memory: Alma"}


def move(tools: list[dict], results: list[str]):
    """What is done when these are offered and that came back, in Chat Completions."""
    messages = [{"role": "tool", "content": one} for one in results]
    offered = [{"type": "function", "function": one} for one in tools]
    request = Request(0.0, "POST", "/v1/chat/completions", {"messages": messages, "tools": offered})
    done = decide(request, "memory", "memory_search", QUERY, "Alma")
    return done if isinstance(done, str) else (done.offer.name, done.arguments)


def test_a_tool_behind_a_search_is_looked_for_and_called():
    caller = {"name": "tool_call", "parameters": {"properties": {"id": {}, "args": {}}}}
    tools = [{"name": "read"}, {"name": "tool_search"}, caller]
    assert move(tools, [])[0] == "tool_search"
    # The client has a memory_search of its own, which comes first.
    found = json.dumps([{"id": "openclaw:memory-core:memory_search", "name": "memory_search"},
                        {"id": "mcp:memory:memory__memory_search"}])  # fmt: skip
    call = ("tool_call", {"id": "mcp:memory:memory__memory_search", "args": QUERY})
    assert move(tools, [found]) == call
    assert move(tools, [found, "Alma"]) == "From memory: Alma"
    assert move(tools, [found, "?", "?", "?"]) == "The memory gave no answer."


def test_a_tool_that_a_search_brought_is_called_by_its_name():
    tools = [{"name": "ToolSearch"}]
    assert move(tools, [])[0] == "ToolSearch"
    found = [*tools, {"name": "mcp__memory__memory_search"}]
    assert move(found, ["1 tool"]) == ("mcp__memory__memory_search", QUERY)


def test_without_the_tool_it_says_so():
    assert move([{"name": "read"}], []) == "No tool of the memory is offered."


@pytest.mark.parametrize(
    "name, is_ours",
    [
        ("mcp__memory__memory_search", True),
        ("mcp_memory_memory_search", True),
        ("memory-memory_search", True),
        ("mcp:memory:memory__memory_search", True),
        ("memory_search", False),
        ("openclaw:memory-core:memory_search", False),
        ("in_memory_search", False),
        ("memory_memory_search_all", False),
    ],
)
def test_whose_tool_a_name_means(name, is_ours):
    assert is_of(name, "memory", "memory_search") is is_ours


def test_it_is_no_way_out(model):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": model.url}))
    with pytest.raises(urllib.error.HTTPError, match="403"):
        opener.open("http://example.org/", timeout=10)
    assert model.refused == ["http://example.org/"] and model.requests == []


def test_other_questions_of_clients_are_answered(model):
    with urllib.request.urlopen(f"{model.url}/v1/models", timeout=10) as answer:
        assert json.load(answer)["data"][0]["id"]
    counted = json.loads(post(f"{model.url}/v1/messages/count_tokens", {"messages": ["abcdefgh"]}))
    assert counted["input_tokens"] == 2
    assert model.turns() == [] and len(model.requests) == 2
