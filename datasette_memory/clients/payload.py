"""What a client tells a hook, and how it wants to be answered.

Every client has its own names for the same things. Fields that are missing or new are no reason to
fail: what is not understood is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SESSION_START, PROMPT, STOP, SESSION_END = "session-start", "prompt", "stop", "session-end"
PRE_COMPACT, POST_COMPACT = "pre-compact", "post-compact"
SUBAGENT_START, SUBAGENT_STOP = "subagent-start", "subagent-stop"
TOOL = "tool"

#: The events that `memory hook` knows.
EVENTS = (
    SESSION_START, PROMPT, TOOL, STOP, SESSION_END, PRE_COMPACT, POST_COMPACT, SUBAGENT_START,
    SUBAGENT_STOP,
)  # fmt: skip

#: A payload is read so far, in bytes.
MAX_BYTES = 4_000_000

# A prompt is looked at so far.
_MAX_PROMPT = 100_000

#: What a client calls these events, where its answer has to say so. The default is that of Claude
#: Code, which most others took over.
_NAMES = {SESSION_START: "SessionStart", PROMPT: "UserPromptSubmit", TOOL: "PostToolUse"}
_OWN_NAMES = {"gemini-cli": {PROMPT: "BeforeAgent", TOOL: "AfterTool"}}

# How a client takes text into its prompt.
_FLAT = frozenset({"copilot", "opencode", "openclaw"})
_PLAIN = frozenset({"kiro"})
_CONTEXT = frozenset({"hermes"})
_NOTHING = frozenset({"goose", "windsurf"})

# Text that hooks and clients put around a prompt or into it. What was put in is taken out, so that
# a memory does not feed on itself; of what stands around the words of the user these are kept.
_WRAPPED = re.compile(
    r"<(hook_context|system[-_]reminder|qwen:[\w-]+|memory-context|environment_context|"
    r"user_instructions|untrusted_context)\b[^<>]*>.*?(?:</\1>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_AROUND = re.compile(r"</?(?:user_input|user_query|user_prompt|task)\b[^<>]*>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Payload:
    """What a hook was told. `event` is one of EVENTS, `name` what the client calls it. `source` says
    why a session began (`startup`, `resume`, `compact`, ...), None if untold."""

    event: str
    name: str
    client: str
    session: str | None = None
    prompt: str = ""
    cwd: str | None = None
    transcript: str | None = None
    source: str | None = None
    agent_type: str | None = None
    turn: str | None = None


def read_payload(data: bytes, event: str, client: str) -> Payload:
    """The payload that a client wrote to stdin. Raises ValueError when it is no JSON object."""
    try:
        told = json.loads(data.decode("utf-8-sig", "replace") or "{}")
    except RecursionError:
        raise ValueError("the payload is nested too deep") from None
    if not isinstance(told, dict):
        raise ValueError("the payload is not a JSON object")
    inner = told.get("sessionContext")
    context = inner if isinstance(inner, dict) else {}
    name = _first(told, "hook_event_name", "hookEventName") or _name_of(event, client)
    return Payload(
        event=event,
        name=name,
        client=client,
        session=_first(told, "session_id", "sessionId", "conversation_id", "sessionID")
        or _first(context, "rootSessionId")
        or _first(told, "taskId"),
        prompt=stripped(_prompt_of(told)),
        cwd=_first(told, "cwd") or _first_of(told.get("workspace_roots"))
        or _first_of(told.get("workspaceRoots")),
        transcript=_first(told, "transcript_path", "transcriptPath"),
        source=_first(told, "source"),
        agent_type=told["agent_type"] if isinstance(told.get("agent_type"), str) else None,
        turn=_first(told, "prompt_id", "turn_id", "generation_id"),
    )  # fmt: skip


def stripped(prompt: str) -> str:
    """A prompt without what hooks and clients have put into it."""
    prompt = prompt[:_MAX_PROMPT]
    if "<" in prompt:
        prompt = _AROUND.sub("", _WRAPPED.sub("", prompt))
    return prompt.strip()


def is_real(payload: Payload) -> bool:
    """Whether something happened. Not all that clients fire: Qwen Code fires a prompt without words
    after each result of a tool, Gemini CLI a compaction before each request, and the agent that sums
    up a session ends like any other."""
    if payload.event == PROMPT:
        return bool(payload.prompt)
    if payload.event == PRE_COMPACT:
        return payload.client != "gemini-cli"
    if payload.event in (SUBAGENT_START, SUBAGENT_STOP):
        return payload.agent_type != ""
    return True


def answer(payload: Payload, text: str) -> str:
    """What goes to stdout so that `text` gets into the prompt: in the client's own form; with no
    text, or where a client takes none, what it understands as nothing."""
    client, event = payload.client, payload.event
    if client in _PLAIN:
        return text
    if client == "cline":
        return _json({"cancel": False, "contextModification": text, "errorMessage": ""})
    if client == "cursor":
        told: dict[str, Any] = {"continue": True} if event == PROMPT else {}
        return _json(told | ({"additional_context": text} if text else {}))
    if not text or client in _NOTHING or event not in _NAMES:
        return "{}"
    if client in _FLAT:
        return _json({"additionalContext": text})
    if client in _CONTEXT:
        return _json({"context": text})
    return _json({"hookSpecificOutput": {"hookEventName": payload.name, "additionalContext": text}})


def _name_of(event: str, client: str) -> str:
    return _OWN_NAMES.get(client, {}).get(event) or _NAMES.get(event, event)


def _prompt_of(told: Mapping[str, Any]) -> str:
    return _first(told, "submitted_prompt", "prompt", "message", "initialPrompt") or ""


def _first(told: Mapping[str, Any], *names: str) -> str | None:
    for name in names:
        if isinstance(value := told.get(name), str) and value:
            return value
    return None


def _first_of(value: object) -> str | None:
    return value[0] if isinstance(value, list) and value and isinstance(value[0], str) else None


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
