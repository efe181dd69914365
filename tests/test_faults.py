"""Killed in the middle of a change, or out of disk: nothing is lost, and nothing is left behind.

A sample of the points runs with the other tests; all of them, those inside SQLite too, run under
`make test-faults`.
"""

import contextlib
import functools
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from datasette_memory.errors import MemoryFault
from datasette_memory.memory import Memory


def _load(name):
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


homes = _load("homes")
faults = _load("faults")

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs fork and signals")

BODY = "站点根目录在 /srv/www/orchid，不是 /var/www，改之前先看一眼。"
OTHER = "站点的日志在 /var/log/orchid，每天凌晨轮转一次，留三十天。"
NEW = "站点的备份在 /srv/backup，每周日凌晨跑一次，留八个星期。\n" * 40

# Runs in a process that has all modules loaded, and forks one for each job: no change waits for
# Python to start, and none of its calls is one of the start.
SERVER = """
import importlib, json, os, resource, signal, sys, traceback
from types import SimpleNamespace
from datasette_memory import changes, durable
import datasette_memory.index.kept, datasette_memory.index.lock, datasette_memory.index.migrations
import datasette_memory.index.project, datasette_memory.index.rebuild, datasette_memory.index.sync
import datasette_memory.keeping, datasette_memory.ledger.reader, datasette_memory.pending
import datasette_memory.sources, datasette_memory.vault.revise, datasette_memory.text._credentials
from datasette_memory.errors import MemoryFault
from datasette_memory.memory import Memory

sys.path.insert(0, sys.argv[1])
import faults

changes._now = lambda: "2026-12-01T08:00:00+08:00"


def work(job):
    calls = []
    durable.system = faults.armed(durable.system, job.get("at"), job.get("how"), calls)
    if "limit" in job:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (job["limit"], job["limit"]))
    if job.get("stop"):
        os.kill(os.getpid(), signal.SIGSTOP)
    memory = Memory(job["home"])
    try:
        result = getattr(memory, job["method"])(*job["arguments"], **job["options"])
        answer = {"result": result.to_dict()}
    except MemoryFault as fault:
        answer = {"error": fault.error, "hint": fault.hint}
    return answer | {"calls": calls}


for line in sys.stdin:
    job = json.loads(line)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 0
        try:
            answer = json.dumps(work(job))
        except BaseException:
            answer, status = json.dumps({"traceback": traceback.format_exc()}), 1
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        os.write(writing, answer.encode())
        os._exit(status)
    os.close(writing)
    print(child, flush=True)
    with open(reading) as pipe:
        answer = pipe.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(json.dumps({"code": code, "answer": json.loads(answer or "null")}), flush=True)
"""


class Server:
    """Makes changes in processes of their own."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVER, str(Path(__file__).parent)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=homes.environment(Path("/nonexistent")),
        )

    def start(self, home: Path, change: "Operation", **how) -> int:
        """Begin a change; gives the id of its process."""
        job = {"home": str(home), **change.job(home), **how}
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def wait(self) -> dict:
        """`{code, answer}`: the exit code, negative for a signal, and what the change gave."""
        return json.loads(self.process.stdout.readline())

    def run(self, home: Path, change: "Operation", **how) -> dict:
        self.start(home, change, **how)
        return self.wait()

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(timeout=60)
        self.process.stdout.close()


class Operation:
    """A change: a method of Memory and what it is given."""

    def __init__(self, name: str, method: str, *arguments, **options) -> None:
        self.name, self.method, self.arguments, self.options = name, method, arguments, options

    def job(self, home: Path) -> dict:
        arguments = [
            [str(home.parent / "notes")] if one == "SOURCE" else one for one in self.arguments
        ]
        return {"method": self.method, "arguments": arguments, "options": self.options}

    def again(self, home: Path):
        """Do it in this process, as somebody would who had no answer."""
        job = self.job(home)
        return getattr(Memory(str(home)), self.method)(*job["arguments"], **self.options)


OPERATIONS = {
    operation.name: operation
    for operation in (
        Operation(
            "capture", "capture", "备份", NEW, tags=["甲"], raw="原文 " * 500,
            relates=[["caused_by", "N_0001"]],
        ),
        Operation("update", "update", "N_0001", body=NEW, tags=["甲", "乙"]),
        Operation("supersede", "supersede", "N_0001", "站点 新", NEW),
        Operation("forget", "forget", "N_0001"),
        Operation("import", "import_paths", "SOURCE"),
    )
}  # fmt: skip
MORE = {
    operation.name: operation
    for operation in (
        Operation("link", "link", "N_0001", "caused_by", "N_0002"),
        Operation("secret", "update", "N_0001", sensitivity="secret"),
        Operation("restore_version", "restore_version", "N_0002", 1),
        Operation("sync_pending", "sync_pending"),
        Operation("index", "index"),
    )
}


@pytest.fixture(scope="module")
def server():
    with contextlib.closing(Server()) as server:
        yield server


@pytest.fixture(scope="module")
def template():
    """A home with cards, versions, reads, trash and pending changes, and a folder beside it."""
    with homes.place() as folder:
        home = folder / "home"
        memory = Memory(str(home))
        memory.capture("站点", BODY)
        memory.capture("日志", OTHER, relates=[("refers_to", "N_0001")])
        memory.capture("扔掉的", f"{OTHER} 扔掉。")
        memory.update("N_0002", body=f"{OTHER} 第二版。")
        memory.show("N_0001")
        memory.show("N_0002")
        memory.forget("N_0003")
        memory._pending().add(
            "update", {"reference": "N_0002", "changes": {"tags": ["丙"]}, "body": None}, "test"
        )
        notes = folder / "notes"
        notes.mkdir()
        for number in range(4):
            text = f"---\ntitle: 外来 {number}\n---\n\n外来的第 {number} 张，见 [[外来 0]]。\n"
            (notes / f"{number}.md").write_text(text, "utf-8")
        memory.index()
        close(memory)
        yield folder


def close(memory: Memory) -> None:
    """Close the index that a memory keeps open."""
    if kept := vars(memory).pop("_kept_open", None):
        kept.release()


class Tally:
    """Counts the points that were tried and those that were survived, and says so in the end."""

    def __init__(self) -> None:
        self.tried: Counter = Counter()
        self.survived: Counter = Counter()

    @contextlib.contextmanager
    def point(self, where: str):
        """A point, survived unless something is raised."""
        self.tried[where] += 1
        yield
        self.survived[where] += 1

    def lines(self) -> list[str]:
        rows = [(where, count, self.survived[where]) for where, count in self.tried.items()]
        rows = [*sorted(rows), ("all", self.tried.total(), self.survived.total())]
        return [f"{where:30} {a:5} points tried, {b:5} survived" for where, a, b in rows]


@pytest.fixture(scope="module")
def tally(request):
    tally = Tally()
    yield tally
    homes.tell(request, tally.lines())


class Case:
    """A copy of the template in which one change is cut short."""

    def __init__(self, template: Path, operation: Operation, folder: Path) -> None:
        self.operation = operation
        self.folder = folder
        shutil.copytree(template, folder, dirs_exist_ok=True, symlinks=True)
        self.home = folder / "home"
        if operation.name == "index":
            notes = self.home / "vault" / "17-Notes"
            os.rename(notes / "日志.md", notes / "改名.md")
            (notes / "新的.md").write_text("# 新的\n\n编辑器里写的一张。\n", "utf-8")
        self.old = homes.cards(self.home)
        self.source = homes.digest(folder / "notes")

    def check(self, new: dict[str, bytes], number: int, deep: bool) -> None:
        """Everything that has to hold after a kill; `new` are the cards after a whole change."""
        self.every_card_is_whole(new)
        memory = Memory(str(self.home))
        # The next command works, and tidies up.
        if number % 2:
            change = memory.capture("下一张", f"{OTHER} 下一张。")
            assert (change.status, change.indexed, change.warning) == ("created", True, None)
        else:
            memory.index()
        assert homes.temporaries(self.home) == []
        assert not (self.home / ".writing").exists()
        self.every_card_is_whole(new)

        # Whoever had no answer does it again, and it is done once.
        self.do_again(new)
        ids = homes.ids(self.home)
        assert len(ids) == len(set(ids)), ids
        assert homes.temporaries(self.home) == []
        assert homes.digest(self.folder / "notes") == self.source

        memory.index()
        db = self.home / "memory.db"
        assert homes.query(db, "pragma integrity_check") == [("ok",)]
        found = homes.contents(db)
        # Built from the same files in another place.
        other = self.home / "other.db"
        Memory(str(self.home), db=str(other)).index()
        fresh = homes.contents(other, "cards", "tags", "links")
        assert {name: found[name] for name in fresh} == fresh
        if deep:
            close(memory)
            homes.remove_index(self.home)
            Memory(str(self.home)).index()
            assert homes.contents(db) == found

    def every_card_is_whole(self, new: dict[str, bytes]) -> None:
        found = homes.cards(self.home) | homes.trash(self.home)
        for path, data in found.items():
            if path not in ("17-Notes/下一张.md", "17-Notes/扔掉的.md"):
                assert data in (self.old.get(path), new.get(path)), path
        assert self.old.keys() <= found.keys()
        for path in self.home.rglob("*.json"):
            json.loads(path.read_bytes())

    def do_again(self, new: dict[str, bytes]) -> None:
        name = self.operation.name
        try:
            result = self.operation.again(self.home).to_dict()
        except MemoryFault as fault:
            # It was forgotten, or kept out of the index, after all.
            assert name in ("forget", "secret") and "N_0001" in fault.error
            return
        expected = {
            "capture": ("created", "unchanged"),
            "update": ("updated", "unchanged"),
            "supersede": ("superseded", "unchanged"),
            "forget": ("trashed",),
            "link": ("linked", "unchanged"),
            "secret": ("updated", "unchanged"),
            "restore_version": ("updated",),
        }
        if name in expected:
            assert result["status"] in expected[name]
        if name in ("capture", "supersede"):
            title = b"title: \xe5\xa4\x87\xe4\xbb\xbd\n" if name == "capture" else None
            wanted = title or "title: 站点 新\n".encode()
            assert len([one for one in homes.cards(self.home).values() if wanted in one]) == 1
        if name == "sync_pending":
            assert (result["failed"], result["dead"]) == ([], [])
            assert b"\xe4\xb8\x99" in homes.cards(self.home)["17-Notes/\u65e5\u5fd7.md"]


@contextlib.contextmanager
def case(template: Path, operation: Operation):
    with homes.place() as folder:
        yield Case(template, operation, folder)


def whole(server, template, operation) -> tuple[dict[str, bytes], list[str]]:
    """The cards after a change that nothing cuts short, and its calls."""
    with case(template, operation) as one:
        done = server.run(one.home, operation)
        assert done["code"] == 0 and "result" in done["answer"], done
        return homes.cards(one.home) | homes.trash(one.home), done["answer"]["calls"]


def points(calls: list[str]) -> list[tuple[int, str]]:
    """Before each call, halfway through each write, and after the last one."""
    found = [(at, faults.BEFORE) for at in range(1, len(calls) + 1)]
    found += [(at, faults.HALFWAY) for at, name in enumerate(calls, 1) if name == "write"]
    return sorted([*found, *([(len(calls), faults.AFTER)] if calls else [])])


def kill_at(server, template, operation, new, number, at, how, deep) -> None:
    with case(template, operation) as one:
        done = server.run(one.home, operation, at=at, how=how)
        assert done["code"] == -signal.SIGKILL, done
        one.check(new, number, deep)


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_sample_of_kills(server, template, tally, name):
    operation = OPERATIONS[name]
    new, calls = whole(server, template, operation)
    all_points = points(calls)
    step = max(1, len(all_points) // 5)
    for number, (at, how) in enumerate(all_points[number_of(name) % step :: step]):
        with tally.point(f"{name}, a sample"):
            kill_at(server, template, operation, new, number, at, how, deep=number == 0)


def number_of(name: str) -> int:
    return list(OPERATIONS).index(name)


@pytest.mark.faults
@pytest.mark.parametrize("name", [*OPERATIONS, *MORE])
def test_every_kill_at_a_call_of_ours(server, template, tally, name):
    operation = (OPERATIONS | MORE)[name]
    new, calls = whole(server, template, operation)
    for number, (at, how) in enumerate(points(calls)):
        with tally.point(f"{name}, calls of ours"):
            kill_at(server, template, operation, new, number, at, how, deep=True)


# Inside SQLite: strace kills at a system call, whoever makes it.

SYSTEM_CALLS = (
    "write", "pwrite64", "fsync", "fdatasync", "rename", "renameat", "renameat2", "link", "linkat",
    "unlink", "unlinkat", "truncate", "ftruncate", "mkdir", "mkdirat", "fallocate",
)  # fmt: skip


@functools.cache
def can_trace() -> bool:
    return bool(shutil.which("strace")) and not subprocess.call(
        ["strace", "-o", os.devnull, "-e", "trace=none", "true"], stderr=subprocess.DEVNULL
    )


@contextlib.contextmanager
def traced(pid: int, log: Path, *options: str):
    """Run strace on a process that waits to be continued."""
    names = ",".join(f"?{name}" for name in SYSTEM_CALLS)
    tracer = subprocess.Popen(
        ["strace", "-p", str(pid), "-o", str(log), "-e", f"trace={names}", *options],
        stderr=subprocess.PIPE,
        text=True,
    )
    line = tracer.stderr.readline()
    assert "attached" in line, line
    os.kill(pid, signal.SIGCONT)
    yield
    tracer.stderr.read()
    tracer.wait(timeout=60)
    tracer.stderr.close()


def stopped(pid: int) -> None:
    """Wait until the process has stopped itself."""
    deadline = time.monotonic() + 30
    while not re.search(r"\) [tT] ", Path(f"/proc/{pid}/stat").read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.001)


def run_traced(server, one, operation, *options: str) -> tuple[dict, str]:
    pid = server.start(one.home, operation, stop=True)
    stopped(pid)
    log = one.folder / "strace.log"
    with traced(pid, log, *options):
        done = server.wait()
    return done, log.read_text()


def system_calls(log: str) -> Counter:
    return Counter(re.findall(r"^(\w+)\(", log, re.M))


@pytest.mark.faults
@pytest.mark.parametrize("name", [*OPERATIONS, *MORE])
def test_every_kill_at_a_system_call(server, template, tally, name):
    if not can_trace():
        pytest.skip("no kill inside SQLite was tried: strace is not installed, or may not trace")
    operation = (OPERATIONS | MORE)[name]
    new, _ = whole(server, template, operation)
    with case(template, operation) as one:
        done, log = run_traced(server, one, operation)
        assert done["code"] == 0, done
    number = 0
    for call, count in sorted(system_calls(log).items()):
        for at in range(1, count + 1):
            with case(template, operation) as one:
                inject = ("-e", f"inject={call}:signal=SIGKILL:when={at}")
                done, log = run_traced(server, one, operation, *inject)
                if done["code"] == 0:
                    continue  # One call fewer than the last time, as may be when clocks differ.
                assert done["code"] == -signal.SIGKILL, done
                with tally.point(f"{name}, system calls"):
                    one.check(new, number, deep=number % 4 == 0)
                number += 1
    assert number > len(system_calls(log))


# The disk is full


LIMITS = (0, 300, 1_500, 4_000, 20_000, 130_000, 300_000, 5_000_000)


@pytest.mark.parametrize("name", ["capture", "update", "supersede"])
def test_a_limit_of_file_size(server, template, name):
    """As on a full disk: SQLite says SQLITE_IOERR, all others EFBIG."""
    operation = OPERATIONS[name]
    new, _ = whole(server, template, operation)
    ends = Counter()
    for number, limit in enumerate(LIMITS):
        with case(template, operation) as one:
            done = server.run(one.home, operation, limit=limit)
            assert done["code"] == 0, done
            answer = done["answer"]
            if "error" in answer:
                assert "nothing could be written" in answer["error"] and answer["hint"]
                assert homes.cards(one.home) == one.old
                ends["error"] += 1
            elif answer["result"]["status"] == "pending":
                assert answer["result"]["reason"]
                assert homes.cards(one.home) == one.old
                result = Memory(str(one.home)).sync_pending()
                assert (len(result.done), result.failed, result.dead) == (2, [], [])
                ends["pending"] += 1
            else:
                result = answer["result"]
                assert result["indexed"] or "memory index" in result["warning"]
                ends["indexed" if result["indexed"] else "not indexed"] += 1
            one.check(new | homes.cards(one.home), number, deep=False)
    # Every way to end was met. A record of a new card is longer than the card.
    waits = set() if name == "capture" else {"pending"}
    assert set(ends) == {"error", "not indexed", "indexed"} | waits


@pytest.mark.parametrize("name", ["import", "index"])
def test_a_limit_of_file_size_while_importing(server, template, name):
    operation = (OPERATIONS | MORE)[name]
    for limit in (0, 1_500, 20_000, 100_000):
        with case(template, operation) as one:
            (one.home / "vault" / "neu.md").write_text("# Neu\n\nEin neuer Text.\n" * 500)
            one.old = homes.cards(one.home)
            done = server.run(one.home, operation, limit=limit)
            assert done["code"] == 0, done
            if "error" in done["answer"]:
                assert done["answer"]["error"] and done["answer"]["hint"]
            assert homes.cards(one.home) == one.old
            one.check(one.old, 0, deep=False)
