"""A stand-in for the model of an agent client, on 127.0.0.1: it costs nothing and sends nothing out.

It speaks Anthropic Messages, OpenAI Responses, OpenAI Chat Completions and Gemini generateContent,
streamed and whole. It calls one tool, through the client's search of tools where the client hides
it behind one, and then answers with what the tool gave. Every request is kept.
"""

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MODEL = "stand-in"

#: Enough for a search of tools, the tool behind it, and one more try of each.
_MOST_CALLS = 4

#: Small questions that Gemini CLI asks on its own want JSON of a form that it checks.
_FOR_JSON = {"reasoning": "stand-in", "next_speaker": "user"}


@dataclass(frozen=True, slots=True)
class Offer:
    """A tool that a request offers. `group` is the namespace around it, where there is one."""

    name: str
    group: str | None = None
    schema: dict = field(default_factory=dict)

    @property
    def full(self) -> str:
        return f"{self.group}__{self.name}" if self.group else self.name


@dataclass(frozen=True, slots=True)
class Call:
    """What the model says to have a tool called."""

    offer: Offer
    arguments: dict


@dataclass(frozen=True, slots=True)
class Request:
    """What a client asked. `body` is None when it was no JSON object."""

    at: float
    method: str
    path: str
    body: dict | None

    def offers(self) -> list[Offer]:
        """The tools that it offers, also those that a search of tools brought."""
        return list(_offers(self.body or {}))

    def results(self) -> list[str]:
        """The text of every tool's answer in it, oldest first."""
        return [_plain(one) for one in _results(self.body or {})]

    def text(self) -> str:
        """All strings that stand anywhere in it, one a line."""
        return "\n".join(_strings(self.body))

    def is_turn(self) -> bool:
        """Whether it asks the model something, and is no count of tokens or list of models."""
        return _dialect(self.path) is not None and self.body is not None


def decide(request: Request, server: str, tool: str, arguments: dict, expected: str) -> Call | str:
    """What the model does: call `tool` of `server`, look for it, or say what it answered.

    `expected` stands in the tool's answer; without it the tool is called again, a few times.
    """
    offers, results = request.offers(), request.results()
    answers = [one for one in results if expected in one]
    if answers:
        return f"From memory: {answers[-1]}"
    if len(results) >= _MOST_CALLS:
        return "The memory gave no answer."
    # A client may have a tool of that name itself, so that of the server comes first.
    if ours := _best([one for one in offers if one.name.endswith(tool)], server, tool):
        return Call(ours, arguments)
    caller = next((one for one in offers if one.name == "tool_call"), None)
    found = re.findall(rf'"(?:name|id)"\s*:\s*"([\w.:/-]*{tool})"', "\n".join(results))
    best = _best([Offer(one) for one in found], server, tool)
    if caller and best:
        name, inner = _first_two(caller.schema)
        return Call(caller, {name: best.name, inner: arguments})
    finder = next((one for one in offers if _plain_name(one.name) == "toolsearch"), None)
    if finder:
        return Call(finder, {"query": tool, "max_results": 5})
    return "No tool of the memory is offered."


def is_of(name: str, server: str, tool: str) -> bool:
    """Whether a client's name for a tool says that it is `tool` of `server`: clients put the one before
    the other, with signs of their own between them and before them."""
    return re.search(rf"(?:^|[^a-z]){server}[^a-z]+{tool}$", name) is not None


def _best(offers: list[Offer], server: str, tool: str) -> Offer | None:
    return min(offers, key=lambda one: not is_of(one.full, server, tool), default=None)


def _plain_name(name: str) -> str:
    return name.replace("_", "").lower()


def _first_two(schema: dict) -> tuple[str, str]:
    keys = list(schema.get("properties") or {})
    return (keys[0], keys[1]) if len(keys) > 1 else ("name", "arguments")


# What a request holds, in each of the four dialects. None of the keys means two things, so the
# dialect need not be known.


def _offers(body: dict) -> Iterator[Offer]:
    for one in _dicts(body.get("tools")):
        yield from _offers_of(one)
    for one in _dicts(body.get("input")):
        # Responses: tools that were found during the conversation.
        if one.get("type") in ("tool_search_output", "additional_tools"):
            yield from _offers({"tools": one.get("tools")})


def _offers_of(tool: dict) -> Iterator[Offer]:
    if "functionDeclarations" in tool:
        for one in _dicts(tool["functionDeclarations"]):
            schema = one.get("parametersJsonSchema") or one.get("parameters") or {}
            yield Offer(str(one.get("name", "")), None, schema)
    elif tool.get("type") == "namespace":
        for one in _dicts(tool.get("tools")):
            name = str(one.get("name", ""))
            yield Offer(name, str(tool.get("name", "")), one.get("parameters") or {})
    else:
        told = tool["function"] if isinstance(tool.get("function"), dict) else tool
        schema = told.get("input_schema") or told.get("parameters") or {}
        yield Offer(str(told.get("name", "")), None, schema)


def _results(body: dict) -> Iterator[object]:
    for message in _dicts(body.get("messages")):
        if message.get("role") == "tool":
            yield message.get("content")
        for block in _dicts(message.get("content")):
            if block.get("type") == "tool_result":
                yield block.get("content")
    for item in _dicts(body.get("input")):
        if str(item.get("type", "")).endswith("_output"):
            yield item.get("output", item.get("tools"))
    for turn in _dicts(body.get("contents")):
        for part in _dicts(turn.get("parts")):
            if isinstance(part.get("functionResponse"), dict):
                yield part["functionResponse"].get("response")


def _dicts(value: object) -> list[dict]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from _strings(one)
    elif isinstance(value, dict):
        for one in value.values():
            yield from _strings(one)


def _plain(value: object) -> str:
    """The text of a tool's answer; what is not text stays JSON, in which names can be found."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(_plain(one) for one in value)
    if isinstance(value, dict):
        for key in ("text", "content", "output", "result"):
            if key in value:
                return _plain(value[key])
    return json.dumps(value, ensure_ascii=False)


# What is answered. Each function gives the whole answer and the events of the streamed one.

Answer = tuple[dict, list[dict]]


def _anthropic(move: Call | str, body: dict, id: str) -> Answer:
    if isinstance(move, Call):
        block = {"type": "tool_use", "id": f"toolu_{id}", "name": move.offer.name,
                 "input": move.arguments}  # fmt: skip
        empty, reason = {**block, "input": {}}, "tool_use"
        delta = {"type": "input_json_delta", "partial_json": json.dumps(move.arguments)}
    else:
        block, empty, reason = _text(move), _text(""), "end_turn"
        delta = {"type": "text_delta", "text": move}
    usage = {"input_tokens": 1, "output_tokens": 1}
    whole = {"id": f"msg_{id}", "type": "message", "role": "assistant", "model": MODEL,
             "content": [block], "stop_reason": reason, "stop_sequence": None,
             "usage": usage}  # fmt: skip
    return whole, [
        {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": empty},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "usage": usage,
         "delta": {"stop_reason": reason, "stop_sequence": None}},
        {"type": "message_stop"},
    ]  # fmt: skip


def _text(text: str) -> dict:
    return {"type": "text", "text": text}


def _responses(move: Call | str, body: dict, id: str) -> Answer:
    between: list[dict] = []
    if isinstance(move, Call):
        item = {"type": "function_call", "id": f"fc_{id}", "call_id": f"call_{id}",
                "name": move.offer.name, "arguments": json.dumps(move.arguments)}  # fmt: skip
        if move.offer.group:
            item["namespace"] = move.offer.group
        begun = {**item, "arguments": ""}
    else:
        part = {"type": "output_text", "text": move, "annotations": []}
        item = {"type": "message", "id": f"msg_{id}", "role": "assistant", "content": [part]}
        begun = {**item, "content": []}
        at = {"item_id": item["id"], "output_index": 0, "content_index": 0}
        between = [
            {"type": "response.content_part.added", **at, "part": {**part, "text": ""}},
            {"type": "response.output_text.delta", **at, "delta": move},
            {"type": "response.output_text.done", **at, "text": move},
            {"type": "response.content_part.done", **at, "part": part},
        ]
    item["status"], begun["status"] = "completed", "in_progress"
    usage = {"input_tokens": 1, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 1,
             "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 2}  # fmt: skip
    whole = {"id": f"resp_{id}", "object": "response", "created_at": int(time.time()),
             "model": MODEL, "status": "completed", "output": [item], "usage": usage}  # fmt: skip
    events = [
        {"type": "response.created",
         "response": {**whole, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": begun},
        *between,
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": whole},
    ]  # fmt: skip
    return whole, [{**one, "sequence_number": number} for number, one in enumerate(events)]


def _chat(move: Call | str, body: dict, id: str) -> Answer:
    if isinstance(move, Call):
        called = {"name": move.offer.name, "arguments": json.dumps(move.arguments)}
        calls = [{"index": 0, "id": f"call_{id}", "type": "function", "function": called}]
        message, reason = {"role": "assistant", "content": None, "tool_calls": calls}, "tool_calls"
    else:
        message, reason = {"role": "assistant", "content": move}, "stop"
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    head = {"id": f"chatcmpl-{id}", "created": int(time.time()), "model": MODEL}
    chunk = {**head, "object": "chat.completion.chunk"}
    whole = {**head, "object": "chat.completion", "usage": usage,
             "choices": [{"index": 0, "message": message, "finish_reason": reason}]}  # fmt: skip
    return whole, [
        {**chunk, "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
        {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
        {**chunk, "choices": [], "usage": usage},
    ]


def _gemini(move: Call | str, body: dict, id: str) -> Answer:
    wants_json = "json" in str((body.get("generationConfig") or {}).get("responseMimeType"))
    if isinstance(move, Call):
        called = {"name": move.offer.name, "args": move.arguments}
        part = {"functionCall": called, "thoughtSignature": "c3RhbmQtaW4="}
    else:
        part = {"text": json.dumps(_FOR_JSON) if wants_json else move}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    content = {"role": "model", "parts": [part]}
    whole = {"candidates": [{"index": 0, "content": content, "finishReason": "STOP"}],
             "usageMetadata": usage, "modelVersion": MODEL}  # fmt: skip
    return whole, [whole]


def _dialect(path: str) -> Callable[[Call | str, dict, str], Answer] | None:
    path = path.split("?")[0]
    if path.endswith("/messages"):
        return _anthropic
    if path.endswith("/responses"):
        return _responses
    if path.endswith("/chat/completions"):
        return _chat
    return _gemini if "enerateContent" in path else None


class StandIn:
    """The server, in threads of its own, while the `with` lasts.

    `tool` of `server` is called with `arguments`; `expected` stands in its answer. `refused` are the
    hosts that a client tried to reach through it, as its proxy.
    """

    def __init__(self, server: str, tool: str, arguments: dict, expected: str) -> None:
        self.requests: list[Request] = []
        self.refused: list[str] = []
        self._decided = (server, tool, arguments, expected)
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "StandIn":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def turns(self) -> list[Request]:
        """The requests that ask the model something, in the order in which they came."""
        with self._lock:
            return [one for one in self.requests if one.is_turn()]

    def _answer(self, request: Request) -> Answer:
        dialect = _dialect(request.path)
        if dialect is None:
            return _other(request), []
        with self._lock:
            number = len(self.requests)
        return dialect(decide(request, *self._decided), request.body or {}, f"standin{number}")

    def _keep(self, request: Request) -> None:
        with self._lock:
            self.requests.append(request)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        stand_in = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._serve()

            do_POST = do_HEAD = do_PUT = do_GET

            def do_CONNECT(self) -> None:
                stand_in.refused.append(self.path)
                self.send_error(403, "no way out")

            def _serve(self) -> None:
                if self.path.startswith("http://"):
                    stand_in.refused.append(self.path)
                    self.send_error(403, "no way out")
                    return
                request = Request(time.time(), self.command, self.path, _object(self._body()))
                stand_in._keep(request)
                whole, events = stand_in._answer(request)
                if events and _streams(request):
                    self._send_events(events)
                else:
                    self._send("application/json", json.dumps(whole).encode())

            def _body(self) -> bytes:
                if "chunked" not in self.headers.get("Transfer-Encoding", "").lower():
                    return self.rfile.read(int(self.headers.get("Content-Length") or 0))
                parts = []
                while size := int(self.rfile.readline().split(b";")[0] or b"0", 16):
                    parts.append(self.rfile.read(size))
                    self.rfile.readline()
                self.rfile.readline()
                return b"".join(parts)

            def _send_events(self, events: list[dict]) -> None:
                lines = []
                for one in events:
                    if "type" in one:
                        lines.append(f"event: {one['type']}\n")
                    lines.append(f"data: {json.dumps(one)}\n\n")
                if self.path.split("?")[0].endswith("/chat/completions"):
                    lines.append("data: [DONE]\n\n")
                self._send("text/event-stream", "".join(lines).encode())

            def _send(self, kind: str, data: bytes) -> None:
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data)

            def handle(self) -> None:
                try:
                    super().handle()
                except (ConnectionError, ValueError):
                    # A client that is stopped leaves half of a request.
                    self.close_connection = True

            def log_message(self, *_: object) -> None:
                pass

        return Handler


def _streams(request: Request) -> bool:
    return bool((request.body or {}).get("stream")) or "streamGenerateContent" in request.path


def _other(request: Request) -> dict:
    if "ount" in request.path and "okens" in request.path:
        tokens = len(request.text()) // 4
        return {"input_tokens": tokens, "totalTokens": tokens}
    if request.method == "GET" and "/models" in request.path:
        entry = {"id": MODEL, "object": "model", "created": 1, "owned_by": "local"}
        return {"object": "list", "data": [entry], "models": [{"name": f"models/{MODEL}"}]}
    return {}


def _object(data: bytes) -> dict | None:
    try:
        told = json.loads(data)
    except ValueError:
        return None
    return told if isinstance(told, dict) else None
