"""The commands that look after a memory: verify, doctor, bench, backup, restore."""

import sys

import click

from .guard import NO_RESULT
from .import_command import run_sync
from .options import HELP, Settings, common_options
from .output import Style, one_line, readable, safe, write, write_error, write_json
from .present import size


@click.command("verify", short_help="Prove that the index is right.", context_settings=HELP)
@click.option(
    "--deep", is_flag=True, help="Compare every token of the full text, and check all evidence too."
)
@click.option("--repair", is_flag=True, help="Mend what differs.")
@click.option(
    "--sources", is_flag=True, help="Print one hash for all the files of each source instead."
)
@common_options
@click.pass_context
def verify_command(context, deep, repair, sources):
    """Build the index anew beside the present one and compare them, card by card.

    Says what differs. The index is only read, unless --repair is given. With --sources, the hashes
    prove to anyone that indexing has changed no file: compare those from before and after.

    \b
    Examples:
      memory verify
      memory verify --deep
      memory verify --repair
      memory verify --sources --json

    Exit codes: 0 the same, 1 something differs.
    """
    settings: Settings = context.obj
    memory = settings.memory()
    if sources:
        found = memory.manifests()
        if settings.json:
            write_json({"sources": [one.to_dict() for one in found]})
        else:
            for one in found:
                write(one_line(f"{one.sha256}  {one.name}  {one.files:,} files  {one.root}"))
                for path, reason in one.unreadable:
                    write_error(one_line(f"not read: {path}: {reason}"))
        return
    if repair:
        result = run_sync(lambda **callbacks: memory.repair(deep=deep, **callbacks), False)
    else:

        def run(progress, waiting):
            return memory.verify(deep=deep, progress=progress)

        result = run_sync(run, False)
    if settings.json:
        write_json(result.to_dict())
    else:
        lines = list(result.steps) if repair else []
        lines += (result.after if repair else result).lines()
        write("\n".join(map(one_line, lines)))
    if not result.ok:
        context.exit(NO_RESULT)


@click.command("doctor", short_help="Say what is not well.", context_settings=HELP)
@common_options
@click.pass_context
def doctor_command(context):
    """Look at the paths, SQLite, the index, pending changes, files and references.

    One line for each finding, and one for its remedy.

    \b
    Examples:
      memory doctor
      memory doctor --json

    Exit codes: 0 all is well or merely odd, 1 something is wrong.
    """
    settings: Settings = context.obj
    from datasette_memory.govern.doctor import examine

    found = examine(settings.home, settings.db, settings.vault)
    if settings.json:
        write_json({"ok": not any(one.level == "error" for one in found),
                    "checks": [one.to_dict() for one in found]})  # fmt: skip
    else:
        style = Style(sys.stdout)
        for one in found:
            level = one.level.ljust(8)
            mark = style(level, fg="green") if one.ok else style.warn(level)
            write(f"{mark}{one_line(one.name)}: {one_line(one.what)}")
            if one.remedy:
                write(f"        {one_line(one.remedy)}")
    if any(one.level == "error" for one in found):
        context.exit(NO_RESULT)


@click.command("bench", short_help="Measure how well searches are answered.", context_settings=HELP)
@click.option("--init", is_flag=True, help="Draft the queries from the cards, to be edited.")
@click.option("--add", metavar="QUERY", help="Add a query, or cards to it; see --expect.")
@click.option(
    "--expect",
    metavar="REF",
    multiple=True,
    help="A card that answers the added query. Repeatable.",
)
@click.option("--save", metavar="FILE", help="Keep the figures in FILE.")
@click.option("--baseline", metavar="FILE", help="Compare with the figures kept in FILE.")
@common_options
@click.pass_context
def bench_command(context, init, add, expect, save, baseline):
    """Ask the queries of bench_queries.json, in the home, and judge what is found.

    The file says which cards answer each query, by source and path. The table shows by group how
    often the first hit is one of them, how much of the first five hits could be and is (P@5), how
    much of them is noise, and the tiers reached; then come the queries that fail. Nothing of it is
    recorded in the ledger.

    \b
    Examples:
      memory bench --init
      memory bench
      memory bench --save before.json
      memory bench --baseline before.json
      memory bench --add '搜索框 引号 500' --expect I_0001

    Exit codes: 0 done, 1 a figure is worse than in the baseline.
    """
    settings: Settings = context.obj
    memory = settings.memory()
    if add is not None or expect:
        if init or save or baseline:
            raise click.UsageError("--add only adds a query", context)
        if add is None or not expect:
            raise click.UsageError(
                "--add takes a query, and each --expect a card that answers it", context
            )
        _say_added(settings, memory.add_to_bench(readable(add), map(readable, expect)))
        return
    if init:
        if save or baseline:
            raise click.UsageError("--init only drafts the queries", context)
        path, count = memory.draft_bench()
        if settings.json:
            write_json({"path": str(path), "queries": count})
        else:
            queries = "1 query" if count == 1 else f"{count} queries"
            write(one_line(f"{path}: {queries}"))
            write("Edit it: take out what nobody asks, put in what you do, and judge each answer.")
        return
    from datasette_memory.govern.bench import load_report, save_report

    earlier = load_report(baseline) if baseline else None
    report = memory.bench()
    if earlier:
        report.compare(earlier)
    if save:
        save_report(save, report)
    if settings.json:
        write_json(report.to_dict())
    else:
        write("\n".join(safe(line) for line in report.lines()))
        for note in report.notes:
            write_error(one_line(f"note: {note}"))
        for fall in report.falls:
            write_error(one_line(f"worse: {fall}"))
    if report.falls:
        context.exit(NO_RESULT)


def _say_added(settings: Settings, done: dict) -> None:
    if settings.json:
        write_json(done)
        return
    answer = done["answer"]
    lines = [f"{done['status']}: {done['query']}  ({done['path']})"]
    right = set(done["acceptable"])
    for number, place in enumerate(answer["found"], 1):
        lines.append(f"  {number}. {'right' if place in right else 'wrong'}    {place}")
    lines += [f"  lacking     {place}" for place in answer["lacking"]]
    write("\n".join(safe(line) for line in lines))
    for note in done["notes"]:
        write_error(one_line(f"note: {note}"))


@click.command("backup", short_help="Copy everything, and check the copy.", context_settings=HELP)
@click.argument("destination", metavar="FOLDER|FILE.tar.gz")
@common_options
@click.pass_context
def backup_command(context, destination):
    """Copy the vault, the ledger, the evidence, pending changes and the index.

    Others may write meanwhile. The copy is read again and checked before it gets its name; nothing
    is overwritten. Sources belong to somebody else and are named, not copied.

    \b
    Examples:
      memory backup ~/backups/memory-2026-12-01.tar.gz
      memory backup ~/disk/memory --json
    """
    settings: Settings = context.obj
    _tell(settings, settings.memory().backup(destination))


@click.command("restore", short_help="Bring a backup back.", context_settings=HELP)
@click.argument("archive", metavar="FOLDER|FILE.tar.gz")
@click.option("--force", is_flag=True, help="Move what is in the home aside first.")
@common_options
@click.pass_context
def restore_command(context, archive, force):
    """Bring a backup back into an empty home, after checking every file of it.

    \b
    Examples:
      memory restore ~/backups/memory-2026-12-01.tar.gz --home ~/restored
      memory restore ~/disk/memory --force
    """
    settings: Settings = context.obj
    _tell(settings, settings.memory().restore_backup(archive, force=force))


def _tell(settings: Settings, report) -> None:
    if settings.json:
        write_json(report.to_dict())
        return
    parts = ", ".join(f"{name} {number:,}" for name, number in report.counts.items() if number)
    lines = [f"{report.path}: {report.files:,} files, {size(report.bytes)}, checked ({parts})"]
    lines += [f"not copied, it belongs to you: {one['root']}" for one in report.sources]
    lines += [f"moved aside: {path}" for path in report.moved_aside]
    if report.index:
        lines.append(f"index: {report.index}")
    write("\n".join(map(one_line, lines)))
    for one in report.left_out:
        write_error(one_line(f"left out: {one['path']}: {one['reason']}"))
    for note in report.notes:
        write_error(one_line(f"note: {note}"))


COMMANDS = (verify_command, doctor_command, bench_command, backup_command, restore_command)
