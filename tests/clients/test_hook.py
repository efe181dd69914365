"""`memory hook` as clients call it: a process, JSON in, the client's own form out, never a fault."""

import importlib.util
import json
import subprocess
import threading
from pathlib import Path

import pytest

from datasette_memory.clients.payload import EVENTS, read_payload, stripped
from datasette_memory.index.lock import vault_lock
from datasette_memory.memory import Memory


def _load(name):
    path = Path(__file__).parent.parent / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


homes = _load("homes")
QUESTION = "港口闸门的密码本放在哪里？"
ANSWER = "港口闸门的密码本放在值班室左边第二个抽屉，用完放回去。"


@pytest.fixture
def home():
    with homes.place() as folder:
        memory = Memory(str(folder / "home"))
        memory.capture("港口闸门密码本", ANSWER, kind="knowledge")
        memory.capture("交接：闸门检修", "闸门检修还差油压测试，明天继续。", kind="handoff")
        yield folder / "home"


def hook(home, event, client="claude-code", payload=None, raw=None):
    data = json.dumps(payload or {}, ensure_ascii=False).encode() if raw is None else raw
    done = homes.command(home, "hook", event, "--client", client, stdin=data)
    assert done.returncode == 0, done
    assert done.stderr == ""
    return done.stdout


def runtime(home) -> list[dict]:
    return homes.events(home, "runtime")


# The forms of the study: what a client sends, and where its answer has the text.
NESTED = ("hookSpecificOutput", "additionalContext")
FORMS = {
    "claude-code": ({"session_id": "s", "hook_event_name": "UserPromptSubmit", "prompt": QUESTION}, NESTED),
    "codex": ({"session_id": "s", "hook_event_name": "UserPromptSubmit", "prompt": QUESTION, "model": "m",
               "turn_id": "t"}, NESTED),
    "gemini-cli": ({"session_id": "s", "hook_event_name": "BeforeAgent",
                    "prompt": f"<hook_context>勿搜这段</hook_context>\n\n{QUESTION}"}, NESTED),
    "qwen-code": ({"session_id": "s", "hook_event_name": "UserPromptSubmit", "prompt": QUESTION,
                   "submitted_prompt": QUESTION}, NESTED),
    "copilot": ({"sessionId": "s", "timestamp": 1796085522255, "cwd": "/p", "prompt": QUESTION},
                ("additionalContext",)),
    "cursor": ({"conversation_id": "s", "hook_event_name": "beforeSubmitPrompt", "prompt": QUESTION,
                "workspace_roots": ["/p"]}, ("additional_context",)),
    "cline": ({"taskId": "s", "hookName": "agent_start", "prompt": QUESTION}, ("contextModification",)),
    "opencode": ({"session_id": "s", "prompt": QUESTION}, ("additionalContext",)),
    "openclaw": ({"session_id": "s", "prompt": QUESTION}, ("additionalContext",)),
    "hermes": ({"session_id": "s", "prompt": QUESTION}, ("context",)),
}  # fmt: skip


@pytest.mark.parametrize("client", FORMS)
def test_a_prompt_is_answered_in_the_form_of_its_client(home, client):
    payload, way = FORMS[client]
    told = json.loads(hook(home, "prompt", client, payload))
    value = told
    for key in way:
        value = value[key]
    assert "值班室左边第二个抽屉" in value and len(value) <= 8_000
    if way is NESTED:
        assert told["hookSpecificOutput"]["hookEventName"] == payload["hook_event_name"]
    (event,) = runtime(home)
    assert (event["event"], event["outcome"], event["by"]) == (
        "prompt", "given", {"surface": "hook", "agent": client, "session": "s"},
    )  # fmt: skip
    assert event["cohort"] == homes.events(home, "inject")[0]["cohort"]


def test_a_client_of_plain_text_gets_plain_text(home):
    assert "值班室左边第二个抽屉" in hook(home, "prompt", "kiro", {"prompt": QUESTION})
    assert hook(home, "prompt", "kiro", {"prompt": "继续"}) == ""


NOTHING = {
    "claude-code": {}, "codex": {}, "gemini-cli": {}, "copilot": {}, "opencode": {},
    "cursor": {"continue": True},
    "cline": {"cancel": False, "contextModification": "", "errorMessage": ""},
}  # fmt: skip


@pytest.mark.parametrize("client", NOTHING)
@pytest.mark.parametrize(
    "data",
    [
        b"", b"{", b"null", b"[1]", b"\xff\xfe", b"[" * 50_000, b'{"prompt": 7, "session_id": []}',
        '{"prompt": "继续"}'.encode(), b'{"prompt": ""}', b'{"session_id": "s"}',
    ],
)  # fmt: skip
def test_what_cannot_be_answered_is_nothing_and_no_fault(home, client, data):
    assert json.loads(hook(home, "prompt", client, raw=data)) == NOTHING[client]


@pytest.mark.parametrize("event", [*EVENTS, "no-such-event"])
def test_no_event_breaks_a_client_without_a_memory(tmp_path, event):
    out = hook(tmp_path / "none", event, payload={"session_id": "s", "prompt": QUESTION})
    assert event == "session-start" or event == "tool" or json.loads(out) == {}
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "memory.db").write_bytes(b"SQLite format 3\0 but no more")
    hook(broken, event, payload={"session_id": "s", "prompt": QUESTION})


def test_a_fault_stands_in_the_ledger(home):
    hook(home, "prompt", raw=b"{")
    (event,) = runtime(home)
    assert (event["outcome"], event["event"]) == ("fault", "prompt") and "JSON" in event["fault"]


def test_nothing_of_a_prompt_stands_in_the_ledger(home):
    hook(home, "session-start", payload={"session_id": "s", "source": "startup"})
    hook(home, "prompt", payload={"session_id": "s", "prompt": QUESTION})
    hook(home, "prompt", payload={"session_id": "s", "prompt": "闸门的 kx-404 报警是什么"})
    text = "".join(path.read_text("utf-8") for path in (home / "ledger").glob("*.jsonl"))
    assert QUESTION not in text and "值班室" not in text and "报警是什么" not in text


def test_a_session_begins_with_rules_and_a_brief(home):
    told = json.loads(hook(home, "session-start", payload={"session_id": "s", "source": "startup"}))
    text = told["hookSpecificOutput"]["additionalContext"]
    assert told["hookSpecificOutput"]["hookEventName"] == "SessionStart"
    assert "memory_context" in text and "交接：闸门检修" in text and len(text) <= 8_000
    (event,) = runtime(home)
    # `source` is where a card comes from, which this is not about.
    assert event["began"] == "startup" and event["source"] is None


def test_the_same_by_a_second_file_of_hooks_is_given_once(home):
    payload = {"session_id": "s", "prompt": QUESTION}
    answers: list[str] = []

    def ask(client):
        answers.append(hook(home, "prompt", client, payload))

    threads = [threading.Thread(target=ask, args=(name,)) for name in ("copilot", "claude-code")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted("抽屉" in one for one in answers) == [False, True]
    assert len(homes.events(home, "inject")) == 1
    start = {"session_id": "s", "source": "startup"}
    assert ["交接" in hook(home, "session-start", payload=start) for _ in range(2)] == [True, False]


def test_a_shortened_session_is_told_again(home):
    payload = {"session_id": "s", "prompt": QUESTION}
    other = {"session_id": "s", "prompt": QUESTION + "？"}
    assert "抽屉" in hook(home, "prompt", payload=payload)
    assert json.loads(hook(home, "prompt", payload=other)) == {}
    hook(home, "post-compact", payload={"session_id": "s", "trigger": "manual"})
    again = {"session_id": "s", "prompt": f"再说一次，{QUESTION}"}
    assert "抽屉" in hook(home, "prompt", payload=again)
    start = {"session_id": "s", "source": "compact"}
    assert "交接" in hook(home, "session-start", payload=start)


def test_a_transcript_is_known_by_place_size_and_hash(home, tmp_path):
    transcript = tmp_path / "会话.jsonl"
    transcript.write_text('{"type": "user"}\n')
    for event in ("stop", "session-end"):
        payload = {"session_id": "s", "transcript_path": str(transcript)}
        assert json.loads(hook(home, event, payload=payload)) == {}
    told = runtime(home)
    assert [event["event"] for event in told] == ["stop", "session-end"]
    summed = subprocess.run(["sha256sum", transcript], capture_output=True, text=True, check=True)
    assert {event["sha256"] for event in told} == {summed.stdout.split()[0]}
    assert (told[0]["transcript"], told[0]["bytes"]) == (str(transcript), 17)
    hook(home, "stop", payload={"session_id": "s", "transcript_path": str(tmp_path / "gone")})
    assert "sha256" not in runtime(home)[-1]


@pytest.mark.parametrize(
    "event, client, payload",
    [
        ("pre-compact", "gemini-cli", {"session_id": "s"}),
        ("subagent-stop", "claude-code", {"session_id": "s", "agent_type": ""}),
        ("prompt", "qwen-code", {"session_id": "s", "prompt": ""}),
        (
            "prompt",
            "gemini-cli",
            {"session_id": "s", "prompt": "<hook_context>闸门</hook_context>"},
        ),
    ],
)
def test_what_is_no_event_leaves_no_trace(home, event, client, payload):
    hook(home, event, client, payload)
    assert runtime(home) == []


def test_real_ones_leave_one(home):
    for event, payload in (
        ("pre-compact", {"trigger": "manual"}), ("subagent-start", {"agent_type": "explore"}),
        ("subagent-stop", {"agent_type": "explore"}), ("subagent-stop", {}),
    ):  # fmt: skip
        hook(home, event, payload={"session_id": "s", **payload})
    assert [event["outcome"] for event in runtime(home)] == ["recorded"] * 4


def test_a_hook_that_waits_answers_in_time_with_nothing(home):
    """stdin that never ends is the longest wait there is."""
    process = subprocess.Popen(
        [*homes.MEMORY, "hook", "prompt", "--client", "claude-code"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=homes.environment(home),
    )  # fmt: skip
    try:
        out = process.stdout.read()
        assert process.wait(timeout=30) == 0
        assert json.loads(out) == {}
    finally:
        process.kill()
    assert runtime(home)[-1]["fault"] == "timeout"


def test_a_memory_that_is_being_written_holds_no_client_up(home):
    with vault_lock(home, lambda: True):
        assert "抽屉" in hook(home, "prompt", payload={"session_id": "s", "prompt": QUESTION})


@pytest.mark.parametrize(
    "prompt, said",
    [
        ("<hook_context>a\nb</hook_context>\n\nWhere is it?", "Where is it?"),
        ("<qwen:session-start-context>x</qwen:session-start-context>Where?", "Where?"),
        ("Where?<system_reminder>\nnever mind\n</system_reminder>", "Where?"),
        ("Where?<system-reminder priority='1'>open to the end", "Where?"),
        ('<user_input mode="act">Where?</user_input>', "Where?"),
        ("if a < b and c > d, where?", "if a < b and c > d, where?"),
        ("<div>html</div> stays", "<div>html</div> stays"),
    ],
)
def test_what_hooks_have_put_into_a_prompt_is_taken_out(prompt, said):
    assert stripped(prompt) == said


def test_fields_that_are_new_or_missing_are_no_fault():
    told = read_payload(
        b'{"session_id": "s", "new": {"deep": [1]}, "prompt": "x"}', "prompt", "codex"
    )
    assert (told.session, told.prompt, told.name) == ("s", "x", "UserPromptSubmit")
    assert read_payload(b"", "stop", "cline").session is None
