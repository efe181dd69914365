"""How a command ends: every error as one line and an exit code, never as a traceback."""

import contextlib
import errno
import os
import sys
from collections.abc import Iterator, Sequence

import click

from datasette_memory.errors import Ambiguous, MemoryFault, NotFound, PlaceTaken

from .options import Settings
from .output import safe, silence_stdout, write_error, write_json

NO_RESULT = 1
FAULT = 2
CONFLICT = 3
INTERRUPTED = 130

_JSON = "memory_cli.json"


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, with a line on what it left behind."""


class GuardedCommand(click.Command):
    """A command that ends with an exit code of this project, under whatever group it runs."""

    def make_context(self, info_name, args, parent=None, **extra):
        json = wants_json(args) or (
            parent is not None and isinstance(parent.obj, Settings) and parent.obj.json
        )
        with guarded(json):
            context = super().make_context(info_name, args, parent, **extra)
        # A group has not looked at what stands behind the name of a command, which may be wrong.
        context.meta[_JSON] = json
        return context

    def invoke(self, ctx):
        with guarded(ctx.meta[_JSON] or ctx.ensure_object(Settings).json):
            return super().invoke(ctx)


class GuardedGroup(GuardedCommand, click.Group):
    """A group of such commands, listed in the order in which they are defined."""

    command_class = GuardedCommand

    def list_commands(self, ctx):
        return list(self.commands)


def wants_json(args: Sequence[str]) -> bool:
    """Whether `--json` is among arguments that click has not looked at yet."""
    args = list(args)
    return "--json" in (args[: args.index("--")] if "--" in args else args)


@contextlib.contextmanager
def guarded(json: bool) -> Iterator[None]:
    """Turn whatever is raised into an exit code and a line on stderr.

    With `json`, an object on stdout says it too.
    """
    try:
        yield
    except click.exceptions.Exit:
        raise
    except BaseException as error:
        if isinstance(error, (SystemExit, GeneratorExit)):
            raise
        if os.environ.get("MEMORY_DEBUG") and not _is_broken_pipe(error):
            import traceback

            write_error(safe(traceback.format_exc().rstrip()))
        raise click.exceptions.Exit(_report(error, json)) from None


def _report(error: BaseException, json: bool) -> int:
    """Say what is wrong; the exit code."""
    if _is_broken_pipe(error):
        # Whoever read has read enough.
        silence_stdout()
        return 0
    if isinstance(error, click.exceptions.NoArgsIsHelpError) and not json:
        error.show()
        return FAULT
    report, lines, code = _explain(error)
    if json:
        with contextlib.suppress(OSError):
            write_json({"ok": False, **report})
    silence_stdout()
    line = f"Error: {report['error']}"
    if code == INTERRUPTED:
        # The terminal has shown ^C on this line.
        line = f"\n{report['error']}" if sys.stderr and sys.stderr.isatty() else report["error"]
    if report["hint"]:
        line += f"; {report['hint']}"
    write_error("\n".join(safe(text) for text in (line, *lines)))
    return code


def _explain(error: BaseException) -> tuple[dict[str, object], list[str], int]:
    """The JSON report of an error, the lines that follow the first one, and the exit code."""
    lines: list[str] = []
    hint, code = "", FAULT
    more: dict[str, object] = {}
    if isinstance(error, KeyboardInterrupt):
        text, code = str(error) or "Stopped.", INTERRUPTED
    elif isinstance(error, MemoryFault):
        text, hint = error.error, error.hint
        if isinstance(error, NotFound):
            code = NO_RESULT
        if isinstance(error, PlaceTaken):
            code = CONFLICT
        if isinstance(error, Ambiguous):
            hint = hint or "name one of them by its ref or path"
            more["candidates"] = error.candidates
            lines = [f"  {candidate}" for candidate in error.candidates]
    elif isinstance(error, click.ClickException):
        text = error.format_message().rstrip(".")
        context = getattr(error, "ctx", None)
        hint = f"see `{context.command_path} --help`" if context else ""
        if getattr(error, "command_name", None) == "import":
            hint = "folders are imported by a program of its own: memory-import FOLDER"
        if isinstance(error, click.NoSuchOption) and context and context.info_name == "search":
            hint = "words that begin with - stand after --, as in: memory search -- -n"
    elif isinstance(error, OSError) and not _is_sqlite_error(error):
        text, hint = _explain_os_error(error)
    elif _is_sqlite_error(error):
        text = f"SQLite: {error}"
        hint = "try again; if it stays, build the index again with `memory index --rebuild`"
    elif isinstance(error, (MemoryError, click.Abort)):
        text = "not enough memory" if isinstance(error, MemoryError) else "Stopped."
    else:
        text = f"unexpected {type(error).__name__}: {error}"
        hint = "please report this, with what MEMORY_DEBUG=1 shows"
    text = " ".join(text.split("\n")).strip()
    return {"error": text, "hint": hint, **more}, lines, code


def _explain_os_error(error: OSError) -> tuple[str, str]:
    reason = error.strerror or str(error) or type(error).__name__
    if error.filename is None:
        if error.errno == errno.ENOSPC:
            return "the output cannot be written: no space left", "free some, and try again"
        return f"the system refused: {reason}", "try again"
    return f"{_name(error.filename)}: {reason}", "check the path and its permissions"


def _name(filename: object) -> str:
    return os.fsdecode(filename) if isinstance(filename, (str, bytes)) else str(filename)


def _is_broken_pipe(error: BaseException) -> bool:
    if not isinstance(error, OSError) or error.filename is not None:
        return False
    # Windows says EINVAL.
    return error.errno == errno.EPIPE or (os.name == "nt" and error.errno == errno.EINVAL)


def _is_sqlite_error(error: BaseException) -> bool:
    """Whether it comes from the sqlite3 that the index uses; without loading it."""
    connection = sys.modules.get("datasette_memory.index.connection")
    return connection is not None and isinstance(error, connection.sqlite3.Error)
