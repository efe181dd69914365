"""See a client work with the memory, end to end, on this computer: the real program, a home folder of
nobody, and a stand-in for the model. It costs no tokens, and nothing is sent out.
"""

import contextlib
import json
import os
import random
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from ..errors import MemoryFault
from ..ledger.reader import merge
from ..memory import Memory
from . import processes, programs
from .install import record_of
from .processes import Seen
from .records import Record
from .runs import RUNS, Run
from .standin import MODEL, Request, StandIn, is_of
from .targets import SERVER
from .targets import program as our_program

STEPS = {
    "configured": "configuration written",
    "server": "server started",
    "listed": "tool listed",
    "called": "tool called",
    "hook": "hook fired",
    "context": "context seen",
}
"""The rungs of the ladder, from the lowest, and what to call them."""

TOOL = "memory_search"

PATIENCE = 120.0
"""Seconds that a client has for one answer; most take three."""

#: A client that was never run before unpacks itself first.
_VERSION_PATIENCE = 60.0

_LONGEST = 200

# Of the user's environment a client gets these alone: what else may stand there, as the address of a
# model or a key, has no place in a trial.
_PASSED_ON = (
    "PATH", "LANG", "LC_ALL", "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT",
    "PROGRAMFILES", "PROGRAMDATA", "NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Step:
    """Whether a rung was reached, and a line of what was seen. `ok` is None where the client cannot
    have it; `seen` says why then."""

    ok: bool | None
    seen: str


@dataclass(slots=True)
class Evidence:
    """What a trial showed. `answer` is the end of what the client printed; `refused` are the hosts that
    it tried to reach beside the model."""

    client: str
    version: str
    program: str
    date: str
    seconds: float = 0.0
    steps: dict[str, Step] = field(default_factory=dict)
    answer: str = ""
    refused: list[str] = field(default_factory=list)
    kept: str = ""

    @property
    def verified(self) -> bool:
        return all(one.ok is not False for one in self.steps.values())

    def to_dict(self) -> dict[str, object]:
        return {
            "date": self.date,
            "client": self.client,
            "version": self.version,
            "program": self.program,
            "verified": self.verified,
            "seconds": round(self.seconds, 1),
            "steps": {name: {"ok": one.ok, "seen": one.seen} for name, one in self.steps.items()},
            "answer": self.answer,
            "refused": self.refused,
        }


@dataclass(frozen=True, slots=True)
class _Card:
    """A card that nobody can know: `name` is asked for, `answer` stands in its text alone."""

    name: str
    answer: str

    @property
    def question(self) -> str:
        return f"Who is the harbour master of {self.name}?"

    @property
    def query(self) -> dict[str, str]:
        return {"query": f"harbour master {self.name}"}


class Trial:
    """One client in one scratch folder, which holds its home, a project and a memory."""

    def __init__(self, name: str, folder: Path, program: str | None = None) -> None:
        """Raises MemoryFault when there is no such client, it cannot be run by itself, or its program
        is not there."""
        self.record: Record = record_of(name)
        if name not in RUNS:
            raise MemoryFault(
                f"{self.record.title} cannot be run offline and without a person, so not verified",
                f"memory client doctor {name} looks at its files",
            )
        self.run: Run = RUNS[name]
        self.program = find(self.record, self.run, program)
        self.folder = folder
        self.home, self.project = folder / "home", folder / "project"
        self.memory = folder / "memory"
        self.card = _Card(_word(), _word())

    def prepare(self, url: str) -> None:
        """Make the home with the client's own settings, a Git project, and a memory of one card."""
        for one in (self.home, self.project, self.folder / "tmp"):
            one.mkdir(parents=True)
        if git := shutil.which("git"):
            subprocess.run([git, "init", "-q", str(self.project)], check=False, timeout=60,
                           capture_output=True, env=self.environment(url))  # fmt: skip
        # With all three said, no variable of the user's leads anywhere else.
        db, vault = self.memory / "memory.db", self.memory / "vault"
        Memory(str(self.memory), db=str(db), vault=str(vault)).capture(
            title=f"Harbour master of {self.card.name}",
            body=f"The harbour master of {self.card.name} is called {self.card.answer}.",
            kind="fact",
        )
        for path, text in self.run.files.items():
            target = self.home / path
            target.parent.mkdir(parents=True, exist_ok=True)
            # What a JSON string escapes, one of TOML does too.
            quoted = path.endswith(("json", "toml"))
            target.write_text(self._filled(text, url, quoted), "utf-8")

    def environment(self, url: str) -> dict[str, str]:
        """What the client's process gets. Its way out is the stand-in, which refuses."""
        passed = {key: os.environ[key] for key in _PASSED_ON if key in os.environ}
        beside = {
            "TERM": "xterm",
            "NO_COLOR": "1",
            "HTTP_PROXY": url,
            "HTTPS_PROXY": url,
            "NO_PROXY": "127.0.0.1,localhost",
        }
        for name in ("HOME", "USERPROFILE"):
            beside[name] = str(self.home)
        for name in ("TMPDIR", "TEMP", "TMP"):
            beside[name] = str(self.folder / "tmp")
        if os.name == "nt":
            beside["APPDATA"] = str(self.home / "AppData" / "Roaming")
            beside["LOCALAPPDATA"] = str(self.home / "AppData" / "Local")
        own = {key: self._filled(one, url) for key, one in self.run.environment.items()}
        return programs.beside(self.program, {"LANG": "C.UTF-8", **passed, **beside, **own})

    def version(self, url: str) -> str:
        """What the client says of its version, in the scratch home."""
        return programs.version_of(self.program, self.environment(url), _VERSION_PATIENCE)

    def client(self, command: str, url: str, *options: str) -> dict:
        """`memory client COMMAND` for this client in the scratch home. Raises MemoryFault."""
        words = [*our_program(), "client", command, self.record.name, *options, "--json",
                 "--home", str(self.memory)]  # fmt: skip
        try:
            done = subprocess.run(
                words, cwd=self.project, env=self.environment(url), capture_output=True, text=True,
                encoding="utf-8", errors="replace", stdin=subprocess.DEVNULL, timeout=PATIENCE,
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError) as error:
            raise MemoryFault(f"memory client {command}: {error}") from None
        told = _object(done.stdout)
        if done.returncode:
            error = told.get("error") or done.stderr.strip() or f"exit code {done.returncode}"
            raise MemoryFault(f"memory client {command}: {error}", str(told.get("hint", "")))
        return told

    def ask(self, url: str, patience: float) -> Seen:
        """Have the client answer the question. Raises MemoryFault when it cannot be started."""
        output = self.folder / "output.txt"
        output.touch()
        for words in (*self.run.before, self.run.arguments):
            words = [self.program, *(self._filled(one, url) for one in words)]
            try:
                seen = processes.run(words, self.project, self.environment(url), output, patience)
            except OSError as error:
                raise MemoryFault(
                    f"{self.program} cannot be started: {error.strerror}", "give another --program"
                ) from None
        return seen

    def _filled(self, text: str, url: str, quoted: bool = False) -> str:
        values = {
            "{url}": url,
            "{model}": MODEL,
            "{question}": self.card.question,
            "{home}": str(self.home),
            "{project}": str(self.project),
        }
        for name, value in values.items():
            text = text.replace(name, json.dumps(value)[1:-1] if quoted else value)
        return text


def verify(
    name: str,
    program: str | None = None,
    keep: Path | None = None,
    patience: float = PATIENCE,
) -> Evidence:
    """Run the client once and climb the ladder.

    `program` is the path of the client, by default the one on the PATH; the scratch folder is made
    under `keep` and stays there, or goes. Raises MemoryFault when the client is not there or cannot be
    run by itself.
    """
    with _scratch(keep) as folder:
        trial = Trial(name, folder, program)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        evidence = Evidence(name, "", trial.program, now)
        card = trial.card
        with StandIn(SERVER, TOOL, card.query, card.answer) as model:
            trial.prepare(model.url)
            evidence.version = trial.version(model.url)
            try:
                report = trial.client(
                    "install", model.url, *(["--trust"] if trial.run.trust else [])
                )
                evidence.steps["configured"] = _configured(report, trial.home)
            except MemoryFault as error:
                evidence.steps["configured"] = Step(False, _line(f"{error} {error.hint}"))
            seen = trial.ask(model.url, patience)
            turns = model.turns()
            evidence.refused = sorted(set(model.refused))
        evidence.seconds = seen.seconds
        evidence.answer = seen.output[-2_000:].strip()
        events = hook_events(trial.memory, name)
        evidence.steps |= ladder(turns, seen, events, card.answer, str(trial.memory))
        if trial.run.trust:
            hook = evidence.steps["hook"]
            evidence.steps["hook"] = Step(hook.ok, f"{hook.seen} (approved for this run alone)")
        for step, why in trial.run.without.items():
            if not evidence.steps[step].ok:
                evidence.steps[step] = Step(None, why)
        if keep:
            evidence.kept = str(folder)
            _keep(folder, turns, seen)
        return evidence


def ladder(
    turns: list[Request], seen: Seen, events: list[Mapping], answer: str, memory: str
) -> dict[str, Step]:
    """The rungs after the first. `answer` stands in the card alone, `memory` is the folder that the
    server was told."""
    stopped = "" if seen.code is not None else "; it was stopped for time"
    listed = next((where for one in turns if (where := _listed(one))), "")
    server = next((one for one in seen.commands if "mcp" in one and memory in one), None)
    if server:
        started = Step(True, " ".join(server))
    elif listed:
        started = Step(True, "its tools were listed")
    else:
        started = Step(False, f"no process of it was seen{stopped}")
    back = next((text for one in turns for text in one.results() if answer in text), "")
    before = [one for one in turns if not one.results() and answer in one.text()]
    fired = [one for one in events if one["outcome"] != "fault"]
    told = ", ".join(f"{one['event']}: {one['outcome']}, {one['ms']} ms" for one in events)
    return {
        "server": started,
        "listed": Step(bool(listed), listed or f"not in {_requests(len(turns))}{stopped}"),
        "called": Step(bool(back), _around(back, answer) or "no answer of it came back"),
        "hook": Step(bool(fired), told or "no event of it is in the ledger"),
        "context": Step(
            bool(before),
            _around(before[0].text(), answer) if before else "not in the first request",
        ),
    }  # fmt: skip


def find(record: Record, run: Run, program: str | None = None) -> str:
    """The path of a client's program. Raises MemoryFault when it is not there."""
    found = programs.find(record.programs)
    if program:
        found = shutil.which(os.path.abspath(os.path.expanduser(program)))
    if not found:
        what = program or record.programs[0]
        where = "is not there, or is no program" if program else "is not on the PATH"
        raise MemoryFault(f"{what} {where}", f"install {record.title}: {run.install}")
    return os.path.abspath(found)


def hook_events(memory: Path, client: str) -> list[dict[str, object]]:
    """What hooks of a client have left in the ledger: `{event, outcome, ms, ...}`, oldest first."""
    return [
        event.data
        for event, _ in merge(memory / "ledger")
        if event.kind == "runtime"
        and event.by.get("surface") == "hook"
        and event.by.get("agent") == client
    ]


def _configured(report: Mapping, home: Path) -> Step:
    paths = [str(one["path"]).replace(str(home), "~") for one in report.get("files", [])]
    return Step(bool(paths) and bool(report.get("changed")), ", ".join(paths))


def _listed(request: Request) -> str:
    """The name under which a request offers the tool, or a search of tools found it."""
    offers = request.offers()
    for one in offers:
        if is_of(one.full, SERVER, TOOL):
            return one.full
    # Without a prefix it is ours when others of ours are beside it.
    plain = {one.name for one in offers}
    if {TOOL, "memory_supersede"} <= plain:
        return TOOL
    for word in re.findall(rf"[\w.:/-]*{TOOL}", "\n".join(request.results())):
        if is_of(word, SERVER, TOOL):
            return f"{word}, by a search of tools"
    return ""


def _requests(number: int) -> str:
    return "1 request to the model" if number == 1 else f"{number} requests to the model"


def _around(text: str, answer: str) -> str:
    """The line in which the answer stands, or as much of it as fits."""
    line = next((one for one in text.splitlines() if answer in one), "")
    start = max(0, line.find(answer) - _LONGEST // 2)
    return line[start : start + _LONGEST].strip()


def _line(text: str) -> str:
    return " ".join(text.split())[:_LONGEST]


def _word() -> str:
    """A word that is in no text: six syllables, by chance."""
    chance = random.SystemRandom()
    return "".join(chance.choice("bdfgklmnprstvz") + chance.choice("aeiou") for _ in range(6))


def _keep(folder: Path, turns: list[Request], seen: Seen) -> None:
    lines = [json.dumps({"path": one.path, "body": one.body}, ensure_ascii=False) for one in turns]
    (folder / "requests.jsonl").write_text("".join(f"{one}\n" for one in lines), "utf-8")
    commands = "".join(f"{' '.join(one)}\n" for one in seen.commands)
    (folder / "processes.txt").write_text(commands, "utf-8")


@contextlib.contextmanager
def _scratch(keep: Path | None) -> Iterator[Path]:
    """A folder of its own, by the path that programs see: macOS has links in front of it."""
    try:
        if keep:
            keep.mkdir(parents=True, exist_ok=True)
        prefix = "verify-" if keep else "memory-verify-"
        folder = Path(os.path.realpath(tempfile.mkdtemp(prefix=prefix, dir=keep)))
    except OSError as error:
        where = keep or tempfile.gettempdir()
        raise MemoryFault(
            f"no folder can be made in {where}: {error.strerror}", "give another with --keep"
        ) from error
    if keep:
        yield folder
        return
    try:
        yield folder
    finally:
        for _ in range(5):
            # What was just stopped may still have had a file open.
            shutil.rmtree(folder, ignore_errors=True)
            if not folder.exists():
                break
            time.sleep(0.2)


def _object(text: str) -> dict:
    try:
        told = json.loads(text)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}
