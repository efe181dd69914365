"""What a hook does at each event of a client: text for the prompt, evidence, one runtime event."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..text.tokens import estimate
from . import payload as events
from .payload import Payload

if TYPE_CHECKING:
    from ..memory import Memory

#: What goes into a prompt has so many characters at the most: some clients cut what is longer.
MAX_TEXT = 8_000

#: A transcript is hashed so far, in bytes; of a longer one its size alone is kept.
MAX_TRANSCRIPT = 256_000_000

#: The same for the same session within so many seconds comes from a second file of hooks: some
#: clients read those of others too.
_TWICE = 20.0

RULES = (
    "You have a long-term memory on this computer (datasette-memory). Before you rely on what you "
    "remember, begin a task or debug an error, ask it: memory_context for a question, "
    "memory_search for a name. Read a card whole with memory_get. When something was decided, "
    "learned or fixed that a later session needs, write it with memory_capture, one fact a card "
    "(记忆：先查，再写；一条事实一张卡). No secrets. Without these tools: `memory context`, "
    "`memory search`, `memory show`, `memory capture`."
)


@dataclass(frozen=True, slots=True)
class Response:
    """`text` goes into the prompt. `outcome` is `given`, `nothing`, `ignored`, `repeated` or
    `recorded`; `data` is what the runtime event tells beside it."""

    text: str
    outcome: str
    data: dict[str, Any] = field(default_factory=dict)


def respond(memory: Memory, payload: Payload) -> Response:
    """Do what the event asks for. Raises what the memory raises."""
    if not events.is_real(payload):
        return Response("", "ignored")
    if payload.event in (events.SESSION_START, events.PROMPT, events.TOOL):
        if not _claim(memory.home.home / "hooks", payload):
            return Response("", "repeated")
    if payload.event == events.PROMPT:
        return _context(memory, payload)
    if payload.event in (events.SESSION_START, events.TOOL):
        return _brief(memory, payload)
    if payload.event in (events.STOP, events.SESSION_END):
        return Response("", "recorded", _transcript(payload))
    if payload.event == events.POST_COMPACT:
        return Response("", "recorded", {"forgets": True})
    return Response("", "recorded")


def _context(memory: Memory, payload: Payload) -> Response:
    # A vocabulary takes longer to load than all the rest.
    given = memory.context(
        payload.prompt,
        count=estimate,
        session=payload.session,
        max_chars=MAX_TEXT,
        by={"surface": "hook", "agent": payload.client},
    )
    if given.text:
        return Response(given.text, "given", {"cohort": given.cohort})
    return Response("", "nothing", {"gate": "open" if given.decision.open else "closed"})


def _brief(memory: Memory, payload: Payload) -> Response:
    from ..errors import MemoryFault

    # Not `source`: in the ledger that is where a card comes from.
    data = {"began": payload.source} if payload.source else {}
    if payload.source in ("compact", "clear"):
        # What was given before is not in front of the model any more.
        data["forgets"] = True
    text = RULES
    with contextlib.suppress(MemoryFault):
        found = memory.brief(max_chars=MAX_TEXT - len(RULES) - 2, count=estimate)
        text = f"{RULES}\n\n{found.text}" if found.text else RULES
    return Response(text, "given", data)


def _transcript(payload: Payload) -> dict[str, Any]:
    """Where the transcript lies, its size and its hash; nothing of its text."""
    if not payload.transcript:
        return {}
    path = Path(payload.transcript)
    found: dict[str, Any] = {"transcript": str(path)[:1_000]}
    with contextlib.suppress(OSError):
        size = path.stat().st_size
        found["bytes"] = size
        if path.is_file() and size <= MAX_TRANSCRIPT:
            with open(path, "rb") as file:
                found["sha256"] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def _claim(folder: Path, payload: Payload) -> bool:
    """Whether nobody else answers the same thing for the same session just now: a file that only
    one process can make says so. Where none can be made, everybody answers."""
    if not payload.session:
        return True
    # A session begins once; that its client resumes it, or has shortened it, is another beginning.
    what = payload.prompt if payload.event == events.PROMPT else payload.source
    told = "\0".join((payload.session, payload.event, what or ""))
    mark = folder / hashlib.blake2b(told.encode("utf-8", "replace"), digest_size=16).hexdigest()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _sweep(folder)
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return payload.event != events.TOOL and _is_old(mark)
    except OSError:
        return True
    return True


def _is_old(mark: Path) -> bool:
    """Whether a mark is of an earlier time; it is renewed then."""
    with contextlib.suppress(OSError):
        if time.time() - mark.stat().st_mtime > _TWICE:
            os.utime(mark)
            return True
    return False


def _sweep(folder: Path) -> None:
    """Remove marks of yesterday, when there are many."""
    names = os.listdir(folder)
    if len(names) > 200:
        for name in names:
            with contextlib.suppress(OSError):
                if time.time() - (folder / name).stat().st_mtime > 86_400:
                    (folder / name).unlink()
