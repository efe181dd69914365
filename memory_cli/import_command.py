"""`memory-import`: folders of Markdown into an index. The same command serves sqlite-utils."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence

import click

from .guard import GuardedCommand, Interrupted
from .options import HELP, Settings, common_options, version_option
from .output import Style, is_terminal, one_line, prepare_streams, write, write_error, write_json

DATABASE_SUFFIXES = (".db", ".sqlite", ".sqlite3")
_MAGIC = b"SQLite format 3\x00"


@click.command(
    "memory-import", cls=GuardedCommand, context_settings=HELP, short_help="Import Markdown cards."
)
@click.argument("arguments", nargs=-1, required=True, metavar="[DB] PATH...")
@click.option("--name", metavar="NAME", help="Name of the source; for one PATH.")
@click.option(
    "--exclude",
    metavar="PATTERN",
    multiple=True,
    help="Leave out what matches, written as in .gitignore. Repeatable.",
)
@click.option(
    "--max-bytes",
    metavar="BYTES",
    type=click.IntRange(min=1),
    help="Skip larger files.  [default: 2097152, 2 MiB]",
)
@click.option("--rebuild", is_flag=True, help="Build the index anew from all of its sources.")
@click.option("-q", "--quiet", is_flag=True, help="Print only what asks for attention.")
@common_options
@version_option("memory-import")
@click.pass_context
def import_command(context, arguments, name, exclude, max_bytes, rebuild, quiet):
    """Import folders of Markdown, or single files, into an index.

    The first argument is the database if it ends in .db, .sqlite or .sqlite3, or is an SQLite
    file already; otherwise the index is that of the home. Files are only read, never changed.
    Run it again to follow what was added, changed, moved or deleted since.

    \b
    Examples:
      memory-import memory.db ~/notes
      memory-import ~/笔记 --name 笔记 --exclude '草稿/' --exclude '*.tmp.md'
      memory-import memory.db README.md docs --max-bytes 500000 --json
      sqlite-utils memory-import memory.db ~/notes
    """
    prepare_streams()
    settings = context.ensure_object(Settings)
    db, paths = split(arguments)
    if db is not None:
        if settings.db is not None and settings.db != db:
            raise click.UsageError(f"two databases: --db {settings.db} and {db}", context)
        settings.db = db
    if not paths:
        raise click.UsageError(f"nothing to import into {db}: PATH is missing", context)
    memory = settings.memory()

    def run(**callbacks):
        return memory.import_paths(
            paths, name=name, exclude=exclude, max_bytes=max_bytes, rebuild=rebuild, **callbacks
        )

    finish(run_sync(run, quiet), settings, memory.db, quiet)


def split(arguments: Sequence[str]) -> tuple[str | None, list[str]]:
    """The database, if the first argument is one, and the paths.

    Raises UsageError when a database stands behind the paths.
    """
    first, *rest = arguments
    db = first if first.lower().endswith(DATABASE_SUFFIXES) or _is_sqlite(first) else None
    paths = rest if db else [first, *rest]
    for path in paths:
        if _is_sqlite(path):
            raise click.UsageError(f"{path} is a database: it stands first, before the paths")
    return db, paths


def _is_sqlite(path: str) -> bool:
    try:
        if not os.path.isfile(path):
            return False
        with open(path, "rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except (OSError, ValueError):
        return False


def run_sync(run: Callable, quiet: bool):
    """Run an import or an index with its callbacks `progress` and `waiting`; a `SyncResult`.

    Raises Interrupted after Ctrl-C.
    """

    def waiting() -> None:
        if not quiet:
            write_error("another import is running; waiting")

    with _interruptible(), _progress(not quiet and is_terminal(sys.stderr)) as progress:
        return run(progress=progress, waiting=waiting)


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C through SQLite, which takes an exception in an SQL function for an error of its
    own and hides what it was."""
    import signal

    pressed = False

    def interrupt(number, frame):
        nonlocal pressed
        pressed = True
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGINT, interrupt)
    except ValueError:  # Not the main thread.
        yield
        return
    try:
        yield
    except BaseException:
        if not pressed:
            raise
        raise Interrupted(
            "Stopped. The index is whole; run the command again to go on from there."
        ) from None
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def _progress(shown: bool) -> Iterator[Callable[[int, int], None] | None]:
    """A function of files done and files to do that draws a bar, one for each source."""
    if not shown:
        yield None
        return
    bar = None
    at = 0

    def progress(done: int, total: int) -> None:
        nonlocal bar, at
        if bar is None or done <= at or bar.length != total:
            finish()
            bar = click.progressbar(length=total, label="Reading files", file=sys.stderr)
            bar.__enter__()
        bar.update(done - at)
        at = done

    def finish() -> None:
        nonlocal bar, at
        if bar is not None:
            bar.__exit__(None, None, None)
        bar, at = None, 0

    try:
        yield progress
    finally:
        finish()


def finish(result, settings: Settings, db: object, quiet: bool) -> None:
    """Say what a sync did, on stdout; when `quiet`, only what asks for attention, on stderr."""
    if settings.json:
        write_json(result.to_dict())
    elif quiet:
        for note in result.notes:
            write_error(one_line(f"note: {note}"))
    else:
        from .summary import summary

        write(summary(result, db, Style(sys.stdout)))
