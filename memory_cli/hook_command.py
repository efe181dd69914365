"""`memory hook`: what agent clients call at their events. It never breaks one."""

import os
import sys
import threading
import time

import click

from .options import HELP, Settings, common_options

#: So many seconds after its start a hook answers, if only with nothing.
PATIENCE = 1.5


@click.command("hook", short_help="Answer an event of an agent client.", context_settings=HELP)
@click.argument("event", metavar="EVENT")
@click.option(
    "--client", metavar="NAME", required=True, help="Which client: claude-code, codex, ..."
)
@common_options
@click.pass_context
def hook_command(context, event, client):
    """Answer an event of an agent client, whose payload comes as JSON on stdin.

    `memory client install` writes this command into the client's configuration. EVENT is
    session-start, prompt, tool, stop, session-end, pre-compact, post-compact, subagent-start or
    subagent-stop. What goes into the prompt is printed in the client's own form; after 1.5 seconds,
    or when anything fails, nothing is, and the ledger says so. Always ends with 0.

    \b
    Examples:
      echo '{"session_id": "s1", "prompt": "备份脚本在哪"}' | memory hook prompt --client claude-code
      memory hook session-start --client codex < payload.json
    """
    settings: Settings = context.obj
    begun = time.monotonic()
    done: list[str] = []
    work = threading.Thread(target=_work, args=(settings, event, client, begun, done), daemon=True)
    work.start()
    work.join(PATIENCE)
    if done:
        text = done[0]
    else:
        text = _nothing(event, client)
        _told(settings, event, client, None, "fault", {"fault": "timeout"}, begun)
    _print(text)
    # A thread that still waits for a lock or a disk must not hold the client up.
    os._exit(0)


def _work(settings, event: str, client: str, begun: float, done: list[str]) -> None:
    payload = None
    try:
        from datasette_memory.clients.hook import respond
        from datasette_memory.clients.payload import EVENTS, MAX_BYTES, answer, read_payload

        if event not in EVENTS:
            raise ValueError(f"no event is called {event[:50]!r}")
        payload = read_payload(sys.stdin.buffer.read(MAX_BYTES), event, client)
        response = respond(settings.memory(), payload)
        done.append(answer(payload, response.text))
        if response.outcome != "ignored":
            data = dict(response.data)
            _told(settings, event, client, payload.session, response.outcome, data, begun)
    except BaseException as error:
        if not done:
            done.append(_nothing(event, client))
        session = payload.session if payload is not None else None
        fault = f"{type(error).__name__}: {error}"[:300]
        _told(settings, event, client, session, "fault", {"fault": fault}, begun)


def _nothing(event: str, client: str) -> str:
    from datasette_memory.clients.payload import Payload, answer

    return answer(Payload(event, event, client), "")


def _told(settings, event, client, session, outcome, data, begun) -> None:
    """One runtime event, without a word of the prompt."""
    try:
        by = {"surface": "hook", "agent": client[:100], "session": session and session[:200]}
        spent = round((time.monotonic() - begun) * 1000)
        settings.memory().tell_runtime(by, event=event[:50], outcome=outcome, ms=spent, **data)
    except BaseException:
        pass


def _print(text: str) -> None:
    try:
        if text:
            sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace") + b"\n")
        sys.stdout.flush()
    except (OSError, ValueError):
        pass
