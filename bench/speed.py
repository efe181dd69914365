"""Speed and size, each beside its raw cost in the same run: `python -m bench.speed --help`.

Machines differ and are shared, so what counts is the ratio, not the seconds. The raw cost of an
import is one loop of INSERTs of ready tokens into the same FTS5 table; that of a search is the
SQL of the very statements that it runs; that of a JSON search a canned query of them; that of a
capture is a file written, synced and renamed, and one such INSERT.
"""

import argparse
import contextlib
import json
import os
import random
import re
import shutil
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import add
from pathlib import Path
from urllib.parse import quote, urlencode

from datasette_memory.index.connection import connect_read
from datasette_memory.index.functions import register
from datasette_memory.index.schema import CREATE_FTS, FTS_COLUMNS, fts_column
from datasette_memory.memory import Memory
from datasette_memory.search.sqlite import SQLiteSearcher
from datasette_memory.text.tokenise import index_text

from . import mcp
from .corpus import cards, write
from .queries import keyword_times, p50_p95, plain_questions, queries, question_times
from .row import Row

_CLI = "import sys; from memory_cli.main import {0}; sys.exit({0}())"
IMPORT = [sys.executable, "-c", _CLI.format("import_main")]
MEMORY = [sys.executable, "-c", _CLI.format("main")]
HELP = [*MEMORY, "--help"]


@dataclass(frozen=True, slots=True)
class Run:
    """A finished process: seconds on the clock, seconds of CPU, peak memory in MB."""

    wall: float
    cpu: float
    peak: float


def run(command: Sequence[str], fails: bool = False, stdin: str = "") -> Run:
    """Run a command to its end, its output thrown away; raises when it fails, unless it may find
    nothing and say so with 1. `stdin` is short."""
    begun = time.perf_counter()
    quiet = subprocess.DEVNULL if fails else None
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=quiet
    )
    process.stdin.write(stdin.encode())
    process.stdin.close()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode > fails:
        raise SystemExit(f"{command} ended with {process.returncode}")
    return Run(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def raw_insert(path: Path, rows: list[tuple]) -> Run:
    """One loop of INSERTs of ready tokens into the FTS5 table of the index, and nothing else."""
    connection = sqlite3.connect(path, isolation_level=None)
    register(connection)
    connection.execute("pragma page_size = 16384")
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma synchronous = normal")
    connection.execute(
        "create table cards (id integer primary key, title, keywords, aliases, tags, project, "
        "summary, summary_from_body, body)"
    )
    for statement in CREATE_FTS:
        connection.execute(statement)
    columns = ", ".join(map(fts_column, FTS_COLUMNS))
    wall, cpu = time.perf_counter(), time.process_time()
    connection.execute("begin")
    for row in rows:
        connection.execute(
            f"insert into cards_fts (rowid, {columns}) values (?, ?, ?, ?, ?)",
            row,
        )
    connection.execute("commit")
    connection.close()
    return Run(time.perf_counter() - wall, time.process_time() - cpu, 0)


def imports(folder: Path, count: int) -> list[Row]:
    """Import, again with nothing changed, and with one file changed; then the size."""
    vault, index = folder / "vault", folder / "index.db"
    markdown = write(vault, count)
    command = [*IMPORT, str(index), str(vault)]
    # Before the tokens are made: a child process is charged with the memory of its parent.
    first = run(command)
    tokens = [
        (number, index_text(title), "", "", index_text(text.split("\n---\n", 1)[1]))
        for number, (_, title, text) in enumerate(cards(count))
    ]
    raws = [raw_insert(folder / f"raw-{number}.db", tokens) for number in range(2)]
    del tokens
    for path in folder.glob("raw-*"):
        path.unlink()
    time.sleep(2.5)  # A file younger than two seconds is read again, to be sure of it.
    run(command)
    again = run(command)
    with next(vault.rglob("*.md")).open("a", encoding="utf-8") as file:
        file.write("\n改了一行。One line changed.\n")
    one = run(command)
    wall = statistics.mean(run.wall for run in raws)
    cpu = statistics.mean(run.cpu for run in raws)
    size = index.stat().st_size
    return [
        Row(
            f"import of {count:,} cards",
            f"{first.wall:.1f} s ({first.cpu:.1f} s CPU)",
            f"raw INSERT loop {wall:.1f} s ({cpu:.1f} s CPU): {first.wall / wall:.2f} times "
            f"({first.cpu / cpu:.2f} CPU)",
            "1.6 times",
            first.wall / wall <= 1.6,
        ),
        Row("peak memory of it", f"{first.peak:.0f} MB", "", "300 MB", first.peak <= 300),
        Row("nothing changed", f"{again.wall:.2f} s", f"{count:,} files", "3 s", again.wall <= 3),
        Row("one file changed", f"{one.wall:.2f} s", f"{count:,} files", "4 s", one.wall <= 4),
        Row(
            "size of the database",
            f"{size / 1e6:.0f} MB",
            f"Markdown {markdown / 1e6:.0f} MB: {size / markdown:.2f} times",
            "4 times",
            size / markdown <= 4,
        ),
    ]


def searches(index: Path) -> Row:
    """`Memory.search` against the bare SQL of its statements, on the same queries, alternating."""
    whole, raw = keyword_times(index)
    p50, p95 = p50_p95(whole)
    raw50, raw95 = p50_p95(raw)
    bars = [1.5 * bare + 2 for bare in (raw50, raw95)]
    return Row(
        "keyword search of two terms",
        f"p50 {p50:.2f} ms, p95 {p95:.2f} ms CPU",
        f"bare SQL p50 {raw50:.2f} ms, p95 {raw95:.2f} ms",
        f"p50 {bars[0]:.2f} ms, p95 {bars[1]:.2f} ms",
        p50 <= bars[0] and p95 <= bars[1],
    )


def questions(index: Path) -> Row:
    """A question of about 40 pairs of characters against the bare OR of all of them, by bm25."""
    ours, bare = question_times(index)
    (ours_50, ours_95), (_, bare_95) = p50_p95(ours), p50_p95(bare)
    return Row(
        "question of 40 pairs",
        f"p50 {ours_50:.1f} ms, p95 {ours_95:.1f} ms CPU",
        f"bare OR p95 {bare_95:.1f} ms: {ours_95 / bare_95:.2f} times",
        "0.33 times",
        ours_95 <= bare_95 / 3,
    )


def tokenisers(characters: int = 1_500_000) -> list[Row]:
    """`index_text` against the plainest join of pairs, on Chinese, English and mixed text."""
    bodies = [text.split("\n---\n", 1)[1] for _, _, text in cards(characters // 800)]
    samples = {
        "Chinese": bodies[1::2],
        "English": bodies[::2],
        "mixed": [f"{a[:400]} {b[:400]}" for a, b in zip(bodies[::2], bodies[1::2])],
    }
    return [_tokeniser(name, texts) for name, texts in samples.items()]


_PLAIN = re.compile("[a-z0-9]+|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")


def plain_bigrams(text: str) -> str:
    """The plainest way: lower case, words whole, Chinese in pairs, nothing normalised."""
    out: list[str] = []
    for run in _PLAIN.findall(text.lower()):
        if run[0] < "\u3040" or len(run) == 1:
            out.append(run)
        else:
            out += map(add, run, run[1:])
    return " ".join(out)


def _tokeniser(name: str, texts: list[str]) -> Row:
    megabytes = sum(len(text.encode()) for text in texts) / 1e6

    def rate(function: Callable[[str], str]) -> float:
        begun = time.process_time()
        for text in texts:
            function(text)
        return megabytes / (time.process_time() - begun)

    pairs = [(rate(index_text), rate(plain_bigrams)) for _ in range(7)]
    ratio = statistics.median(ours / plain for ours, plain in pairs)
    ours, plain = (statistics.median(column) for column in zip(*pairs))
    return Row(
        f"pre-tokeniser, {name}",
        f"{ours:.1f} MB/s",
        f"plain bigram join {plain:.1f} MB/s: {ratio:.2f} times",
        "0.5 times",
        ratio >= 0.5,
    )


def help_time(times: int = 15) -> Row:
    """`memory --help` as a process against the imports that it cannot do without."""
    base = [sys.executable, "-c", "import click, sqlite3"]
    pairs = [(run(HELP).cpu, run(base).cpu) for _ in range(times + 1)][1:]
    ratio = statistics.median(ours / bare for ours, bare in pairs)
    ours, bare = (statistics.median(column) * 1000 for column in zip(*pairs))
    return Row(
        "memory --help",
        f"{ours:.0f} ms CPU",
        f"import click, sqlite3 {bare:.0f} ms: {ratio:.2f} times",
        "1.6 times",
        ratio <= 1.6,
    )


class Bare:
    """What no capture can do without: a file, synced and renamed, and tokens into FTS5."""

    def __init__(self, folder: Path, texts: list[tuple[str, str]]) -> None:
        self.folder = folder
        folder.mkdir()
        rows = [(number, *self._tokens(*text)) for number, text in enumerate(texts)]
        raw_insert(folder / "raw.db", rows)
        self.number = len(rows)
        self.connection = sqlite3.connect(folder / "raw.db", isolation_level=None)
        register(self.connection)
        self.connection.execute("pragma synchronous = normal")
        columns = ", ".join(map(fts_column, FTS_COLUMNS))
        self.insert = f"insert into cards_fts (rowid, {columns}) values (?, ?, ?, ?, ?)"

    @staticmethod
    def _tokens(title: str, body: str) -> tuple[str, str, str, str]:
        return index_text(title), "", "", index_text(body)

    def capture(self, title: str, body: str) -> None:
        """Write one text, whose tokens are made here as well."""
        self.number += 1
        temporary = self.folder / "temporary"
        descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        os.write(descriptor, body.encode())
        os.fsync(descriptor)
        os.close(descriptor)
        os.rename(temporary, self.folder / f"{self.number}.md")
        self.connection.execute(self.insert, (self.number, *self._tokens(title, body)))


def captures(folder: Path, count: int, rounds: int = 120) -> list[Row]:
    """A capture into vaults of three sizes, in turn with the bare cost; then as a process."""
    sizes = sorted({100, min(10_000, count), count})
    middle, largest = sizes[len(sizes) // 2], sizes[-1]
    memories: dict[int, Memory] = {}
    for size in sizes:
        write(folder / f"home-{size}" / "vault", size)
        memories[size] = Memory(str(folder / f"home-{size}"))
        memories[size].index()
    texts = [(title, text.split("\n---\n", 1)[1]) for _, title, text in cards(middle)]
    bare = Bare(folder / "bare", texts)
    new = [
        (f"{title} {number}", text.split("\n---\n", 1)[1])
        for number, (_, title, text) in enumerate(cards(rounds + 5, seed=99))
    ]
    wall: dict[object, list[float]] = {}
    cpu: dict[object, list[float]] = {}
    pick = random.Random(5)
    for title, body in new:
        turns: list[tuple[object, Callable]] = [("bare", bare.capture)]
        turns += [(size, memory.capture) for size, memory in memories.items()]
        # The disk may still be busy with what came before: by turns with each.
        pick.shuffle(turns)
        for name, capture in turns:
            begun, used = time.perf_counter(), time.process_time()
            answer = capture(title, body)
            wall.setdefault(name, []).append(time.perf_counter() - begun)
            cpu.setdefault(name, []).append(time.process_time() - used)
            assert answer is None or (answer.status, answer.indexed) == ("created", True), answer

    def p50(times: list[float]) -> float:
        return statistics.median(times[5:]) * 1000

    ratio = p50(wall[middle]) / p50(wall["bare"])
    growth = p50(cpu[largest]) / p50(cpu[sizes[0]])
    return [
        Row(
            f"capture into {middle:,} cards",
            f"p50 {p50(wall[middle]):.1f} ms",
            "write, fsync, rename and one FTS5 INSERT "
            f"p50 {p50(wall['bare']):.1f} ms: {ratio:.2f} times",
            "3 times",
            ratio <= 3,
        ),
        Row(
            f"the same into {sizes[0]:,} and {largest:,} cards",
            f"p50 {p50(wall[sizes[0]]):.1f} and {p50(wall[largest]):.1f} ms",
            f"CPU {p50(cpu[sizes[0]]):.1f} and {p50(cpu[largest]):.1f} ms: {growth:.2f} times",
            "1.3 times",
            growth <= 1.3,
        ),
        _capture_time(folder / f"home-{middle}"),
    ]


def _capture_time(home: Path, times: int = 15) -> Row:
    """`memory capture` as a process against the imports that it cannot do without."""
    base = [sys.executable, "-c", "import click, sqlite3"]
    pairs = []
    for number, (_, title, text) in enumerate(cards(times + 1, seed=77)):
        body = text.split("\n---\n", 1)[1]
        options = ["--home", str(home), "--title", f"{title} {number}", "--body", body]
        pairs.append((run([*MEMORY, "capture", *options]).cpu, run(base).cpu))
    ratio = statistics.median(ours / bare for ours, bare in pairs[1:])
    ours, bare = (statistics.median(column) * 1000 for column in zip(*pairs[1:]))
    return Row(
        "memory capture",
        f"{ours:.0f} ms CPU",
        f"import click, sqlite3 {bare:.0f} ms: {ratio:.2f} times",
        "3 times",
        ratio <= 3,
    )


def contexts(home: Path, count: int = 200) -> list[Row]:
    """`Memory.context` against `Memory.search` on the same questions, alternating; then as a process,
    for a question and for a turn that is stopped."""
    memory = Memory(str(home))
    asked = plain_questions(memory.db, count)
    whole: list[float] = []
    plain: list[float] = []
    for number, question in enumerate(asked):
        begun = time.process_time()
        memory.context(question, session=f"s{number}")
        whole.append(time.process_time() - begun)
        begun = time.process_time()
        memory.search(question)
        plain.append(time.process_time() - begun)
    (p50, p95), (plain_50, plain_95) = p50_p95(whole), p50_p95(plain)
    size = memory.count()
    rows = [
        Row(
            f"Memory.context at {size:,} cards",
            f"p50 {p50:.1f} ms, p95 {p95:.1f} ms CPU",
            f"Memory.search p50 {plain_50:.1f} ms, p95 {plain_95:.1f} ms: {p95 / plain_95:.2f} times",
            "2.5 times",
            p95 <= 2.5 * plain_95,
        )
    ]
    # The extra `tokens` is not part of the default installation.
    without = f"import sys; sys.modules['toktok'] = None; {_CLI.format('main')}"
    started = [sys.executable, "-c", without]
    hook = ["hook", "prompt", "--client", "claude-code", "--home", str(home)]
    for what, turn, bar in (("a question", None, 3.0), ("a stopped turn", "继续", 1.6)):
        said = [turn or question for question in asked[:16]]
        rows.append(
            _process(
                f"memory context, {what}",
                [([*started, "context", "--home", str(home), one], "") for one in said],
                bar,
            )
        )
        payloads = [
            json.dumps({"session_id": f"h{number}", "prompt": one})
            for number, one in enumerate(said)
        ]
        rows.append(
            _process(f"memory hook, {what}", [([*started, *hook], one) for one in payloads], bar)
        )
    return rows


def _process(what: str, commands: list[tuple[list[str], str]], bar: float) -> Row:
    """Commands and what is on their stdin, as processes, in turn with the imports that no command
    can do without."""
    base = [sys.executable, "-c", "import click, sqlite3"]
    pairs = [
        (run(command, fails=True, stdin=stdin).cpu, run(base).cpu) for command, stdin in commands
    ]
    ratio = statistics.median(ours / bare for ours, bare in pairs[1:])
    ours, bare = (statistics.median(column) * 1000 for column in zip(*pairs[1:]))
    return Row(
        what,
        f"{ours:.0f} ms CPU",
        f"import click, sqlite3 {bare:.0f} ms: {ratio:.2f} times",
        f"{bar:g} times",
        ratio <= bar,
    )


_EXACT = re.compile(r"match '(.*)' and rank match (.*)\s+and 1 order by rank limit (\d+)", re.S)
_WRK = """
local paths, n = {}, 0
for line in io.lines(os.getenv("PATHS")) do paths[#paths + 1] = line end
request = function() n = n % #paths + 1; return wrk.format("GET", paths[n]) end
done = function(summary) io.write(string.format("errors %d\\n", summary.errors.status)) end
"""


def requests(folder: Path, count: int = 10_000, rounds: int = 5, seconds: int = 4) -> Row:
    """The JSON search under `wrk`, in turn with a canned query of the statement that it runs, on
    queries of keywords that one statement answers.

    Needs `wrk` (Debian has a package of that name) and a Datasette in this environment.
    """
    home = folder / "served"
    write(home / "vault", count)
    memory = Memory(str(home))
    memory.index()
    paths: dict[str, list[str]] = {"search": [], "bare": []}
    canned: dict[str, dict] = {}
    for query in queries(memory.db, 400):
        statements: list[str] = []
        tracing = connect_read(memory.db)
        tracing.set_trace_callback(statements.append)
        SQLiteSearcher(tracing).search(query)
        tracing.close()
        matching = [sql for sql in statements if "cards_fts match" in sql]
        found = _EXACT.search(matching[0]) if len(matching) == 1 else None
        if not found:
            continue
        canned["bare"] = {"sql": _EXACT.sub(f"match :match and rank match {found[2]} "
                                            "order by rank limit :limit", matching[0])}  # fmt: skip
        given = {"match": found[1].replace("''", "'"), "limit": found[3]}
        paths["search"].append(f"/-/memory/search.json?{urlencode({'q': query}, quote_via=quote)}")
        paths["bare"].append(f"/memory/bare.json?{urlencode(given, quote_via=quote)}")
    for name, lines in paths.items():
        (folder / f"{name}.txt").write_text("\n".join(lines))
    (folder / "wrk.lua").write_text(_WRK)
    with _datasette(memory, canned, folder / "bare.json") as url:
        figures: dict[str, list[float]] = {"bare": [], "search": []}
        for _ in range(rounds):
            for name, found in figures.items():
                found.append(_per_second(url, folder, name, seconds))
    search, bare = (statistics.median(figures[name]) for name in ("search", "bare"))
    return Row(
        f"JSON search at {count:,} cards, 8 connections",
        f"{search:.0f} requests a second",
        f"canned query of the same MATCH {bare:.0f}: {search / bare:.2f} times",
        "0.6 times",
        search / bare >= 0.6,
    )


@contextlib.contextmanager
def _datasette(memory: Memory, canned: dict[str, dict], file: Path):
    """A Datasette on the memory with those queries, until the block ends; gives its URL."""
    from memory_cli.serve import takes_configuration

    file.write_text(json.dumps({"databases": {"memory": {"queries": canned}}}))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    option = "--config" if takes_configuration() else "--metadata"
    argv = [
        sys.executable,
        "-m",
        "datasette",
        str(memory.db),
        "--port",
        str(port),
        option,
        str(file),
    ]
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while socket.socket().connect_ex(("127.0.0.1", port)):
            if process.poll() is not None:
                raise SystemExit("datasette did not start")
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def _per_second(url: str, folder: Path, name: str, seconds: int) -> float:
    command = ["wrk", "-t1", "-c8", f"-d{seconds}s", "-s", str(folder / "wrk.lua"), url]
    environment = {**os.environ, "PATHS": str(folder / f"{name}.txt")}
    told = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    if "errors 0" not in told.stdout:
        raise SystemExit(f"{name} under wrk: {told.stdout}")
    return float(re.search(r"Requests/sec:\s+([\d.]+)", told.stdout)[1])


def agents(folder: Path, count: int) -> list[Row]:
    """`memory mcp`, on a vault that `captures` has left."""
    home = folder / f"home-{min(10_000, count)}"
    asked = queries(home / "memory.db", 300)
    return [mcp.first_answer(home), mcp.search(home, asked)]


def main() -> int:
    """Measure, print the table, and write it as JSON too if asked."""
    parser = argparse.ArgumentParser(prog="python -m bench.speed", description=__doc__)
    parser.add_argument("--cards", type=int, default=100_000, help="how many (100000)")
    parser.add_argument("--folder", type=Path, help="where to work; a temporary folder otherwise")
    parser.add_argument("--json", type=Path, help="write the rows to this file too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        rows = [*tokenisers(), help_time(), *imports(folder, options.cards)]
        rows.append(searches(folder / "index.db"))
        rows.append(questions(folder / "index.db"))
        rows += captures(folder, options.cards)
        if shutil.which("wrk"):
            rows.append(requests(folder))
        else:
            print("no wrk here: the JSON search is not measured", file=sys.stderr)
        rows += agents(folder, options.cards)
        rows += contexts(folder / f"home-{min(10_000, options.cards)}")
    print(f"\nPython {sys.version.split()[0]}, SQLite {sqlite3.sqlite_version}\n")
    print("| what | figure | beside | bar | holds |\n|---|---|---|---|---|")
    for row in rows:
        holds = "yes" if row.holds else "NO"
        print(f"| {row.what} | {row.figure} | {row.beside} | {row.bar} | {holds} |")
    if options.json:
        from dataclasses import asdict

        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")
    return 0 if all(row.holds for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
