"""How search grows from 1,000 to 1,000,000 short cards: `python -m bench.scale --help`.

Each size is a vault of cards of 200 characters, imported and searched as a user's is. Beside each
search stands bare FTS5: the SQL of the very statements for keywords, the OR of all terms by bm25()
for questions. The largest takes a quarter of an hour and 4 GB of disk. With --out FOLDER the table,
the figures and a plot are written as `scale.md`, `scale.json` and `scale.svg`; an index that an
earlier run left in --folder is taken as it is.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from .corpus import write
from .queries import keyword_times, p50_p95, question_times
from .speed import IMPORT, run

SIZES = (1_000, 10_000, 100_000, 1_000_000)
CHARACTERS = 200

_SEARCHING = """
import json, sys
from datasette_memory.memory import Memory
memory = Memory(db=sys.argv[1])
for query in json.load(sys.stdin):
    memory.search(query, limit=10)
print(open("/proc/self/status").read())
"""


@dataclass(frozen=True, slots=True)
class Point:
    """The figures of one size; times in milliseconds of CPU, memory and sizes in MB."""

    cards: int
    index: float
    import_seconds: float | None
    keywords: tuple[float, float]
    keywords_bare: tuple[float, float]
    questions: tuple[float, float]
    questions_bare: tuple[float, float]
    slowest: float
    memory: float | None


def measure(folder: Path, count: int) -> Point:
    """Build the index of `count` cards if it is not there, and search it."""
    from .queries import long_questions, queries

    index = folder / f"scale-{count}.db"
    seconds = None
    if not index.exists():
        vault = folder / f"scale-{count}"
        write(vault, count, CHARACTERS)
        seconds = run([*IMPORT, str(index), str(vault)]).wall
    keywords, keywords_bare = keyword_times(index)
    questions, questions_bare = question_times(index)
    asked = [*queries(index, 100), *long_questions(index, 30)]
    return Point(
        count,
        index.stat().st_size / 1e6,
        seconds,
        p50_p95(keywords),
        p50_p95(keywords_bare),
        p50_p95(questions),
        p50_p95(questions_bare),
        max(keywords + questions) * 1000,
        _peak(index, asked),
    )


def _peak(index: Path, asked: list[str]) -> float | None:
    """The most memory that a process takes which answers these queries, where Linux tells it."""
    if not Path("/proc/self/status").exists():
        return None
    told = subprocess.run(
        [sys.executable, "-c", _SEARCHING, str(index)],
        input=json.dumps(asked), capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    # VmHWM would count the pages of the index that are mapped or shared as well.
    return int(re.search(r"RssAnon:\s+(\d+) kB", told)[1]) / 1024


def table(points: list[Point]) -> str:
    """The figures as a Markdown table."""
    lines = [
        "| cards | index MB | keywords p50, p95 | their SQL alone | question p50, p95 "
        "| bare OR p50, p95 | question / bare OR, p95 | slowest | memory MB |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for one in points:
        pairs = (one.keywords, one.keywords_bare, one.questions, one.questions_bare)
        cells = [f"{p50:.2f}, {p95:.2f}" for p50, p95 in pairs]
        ratio = one.questions[1] / one.questions_bare[1]
        memory = "" if one.memory is None else f"{one.memory:.0f}"
        lines.append(
            f"| {one.cards:,} | {one.index:.0f} | {' | '.join(cells)} | {ratio:.3f} "
            f"| {one.slowest:.0f} | {memory} |"
        )
    return "\n".join(lines)


def plot(points: list[Point], path: Path) -> None:
    """Draw how the 95th percentiles grow."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 4.5), layout="constrained")
    sizes = [one.cards for one in points]
    lines = {
        "bare OR of a question": ("questions_bare", "C1", "--"),
        "question": ("questions", "C1", "-"),
        "SQL of keywords alone": ("keywords_bare", "C0", "--"),
        "keywords": ("keywords", "C0", "-"),
    }
    for label, (name, colour, style) in lines.items():
        axes.plot(sizes, [getattr(one, name)[1] for one in points], style, color=colour,
                  marker="o", label=label)  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel="cards", ylabel="p95, ms of CPU")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path)


def main() -> int:
    """Measure each size, print the table, and write what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="CARDS")
    parser.add_argument("--folder", type=Path, help="where to work; a temporary folder otherwise")
    parser.add_argument("--out", type=Path, help="write the table, JSON and a plot there")
    options = parser.parse_args()
    points = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for count in options.sizes:
            begun = time.monotonic()
            points.append(measure(folder, count))
            print(f"{count:,} cards: {time.monotonic() - begun:.0f} s", file=sys.stderr)
    print(table(points))
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "scale.md").write_text(table(points) + "\n")
        figures = [asdict(one) for one in points]
        (options.out / "scale.json").write_text(json.dumps(figures, indent=2) + "\n")
        plot(points, options.out / "scale.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
