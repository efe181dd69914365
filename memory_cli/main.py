"""The commands of `memory`. Each is thin: options in, one call of `Memory`, text or JSON out."""

import atexit
import gc
import sys

import click

from .care_commands import COMMANDS as CARE_COMMANDS
from .change_commands import COMMANDS as CHANGE_COMMANDS
from .client_commands import client_command
from .context_commands import COMMANDS as CONTEXT_COMMANDS
from .explain_commands import COMMANDS as EXPLAIN_COMMANDS
from .guard import NO_RESULT, GuardedGroup
from .hook_command import hook_command
from .import_command import finish, import_command, run_sync
from .mcp_command import mcp_command
from .options import HELP, Settings, common_options, filter_options, filters, version_option
from .output import Style, prepare_names, prepare_streams, readable, write, write_error, write_json
from .recall_commands import COMMANDS as RECALL_COMMANDS

#: A query on stdin is read so far, in bytes; the search itself takes less.
_STDIN_BYTES = 100_000


def main() -> None:
    """The program `memory`."""
    prepare_names()
    _leave_garbage()
    prepare_streams()
    cli(prog_name="memory")


def import_main() -> None:
    """The program `memory-import`."""
    prepare_names()
    _leave_garbage()
    prepare_streams()
    import_command(prog_name="memory-import")


def _leave_garbage() -> None:
    """Most commands end before there is any garbage; to look for it, and once more for all that was
    imported when Python ends, takes an eighth of their time."""
    gc.set_threshold(50_000)
    atexit.register(gc.freeze)


@click.group(cls=GuardedGroup, context_settings=HELP)
@common_options
@version_option("memory")
def cli():
    """A memory that its owner can read, query and trust.

    Cards are Markdown files; the index over them is an SQLite database. Nothing leaves this
    computer.

    \b
    Examples:
      memory-import ~/notes                 import a folder of Markdown
      memory search 阿里云 私钥             find cards
      memory show D_0001                    read one
      memory serve --open                   browse them all in Datasette

    Exit codes: 0 done, 1 no result, 2 usage or environment, 3 conflict. The options below may
    also stand after the command.
    """


@cli.command("paths", short_help="Show where things are.", context_settings=HELP)
@common_options
@click.pass_obj
def paths_command(settings):
    """Show where the home, the index and the vault are, and what decided it.

    An option comes before an environment variable (MEMORY_AGENT_HOME, MEMORY_AGENT_DB,
    MEMORY_AGENT_VAULT), this before config.json in the home, and that before the default.

    \b
    Examples:
      memory paths
      memory paths --home ~/工作记忆 --json
    """
    from datasette_memory.home import resolve

    home = resolve(settings.home, settings.db, settings.vault)
    if settings.json:
        write_json(home.to_dict())
    else:
        from . import present

        write(present.paths(home, Style(sys.stdout)))


@cli.command("index", short_help="Bring the index in step with the files.", context_settings=HELP)
@click.option("--rebuild", is_flag=True, help="Build it anew beside the old one and swap it in.")
@click.option("-q", "--quiet", is_flag=True, help="Print only what asks for attention.")
@common_options
@click.pass_obj
def index_command(settings, rebuild, quiet):
    """Bring the index in step with the vault and the sources of config.json.

    Unchanged files are not read again. --rebuild starts from nothing; searches are answered from
    the old index until the new one is complete.

    \b
    Examples:
      memory index
      memory index --rebuild
      memory index --vault ~/笔记 --db 笔记.db
    """
    memory = settings.memory()

    def run(**callbacks):
        return memory.index(rebuild=rebuild, **callbacks)

    finish(run_sync(run, quiet), settings, memory.db, quiet)


@cli.command("search", short_help="Find cards.", context_settings=HELP)
@click.argument("words", nargs=-1, required=True, metavar="QUERY...")
@click.option(
    "-n", "--limit", metavar="NUMBER", type=int, default=5, show_default=True,
    help="Hits at the most; below 1 is 1, above 20 is 20.",
)  # fmt: skip
@filter_options
@click.option("--as-of", metavar="DATE", help="The cards that held on that day.")
@click.option("--secret", is_flag=True, help="Search the secret cards, and those alone.")
@click.option("--explain", is_flag=True, help="Show how each card came to its place.")
@common_options
@click.pass_context
def search_command(context, words, limit, as_of, secret, explain, **narrowed):
    """Find the cards that answer QUERY, best first.

    Names, identifiers and keywords find more than whole questions. Every hit says how it
    matched: all (every term), all-prefix, any, any-prefix, vector. A QUERY of - is read from stdin;
    words that begin with - stand after --.

    \b
    Examples:
      memory search 阿里云 私钥
      memory search 'why did we choose sqlite' -n 3
      memory search userById --kind code_change --since 2026-03-01
      memory search 端口 --tags 运维,网络 --project infra --json
      memory search 'backup script' --exclude-tag draft --explain
      echo 备份 | memory search -
      memory search -- --rebuild
    """
    settings: Settings = context.obj
    query = _query(words)
    memory = _opened(settings)
    result = memory.search(
        query,
        limit=limit,
        as_of=as_of,
        secret=secret,
        explain=explain,
        by={"surface": "cli"},
        **filters(narrowed),
    )
    if settings.json:
        write_json(result.to_dict())
    elif result.hits:
        from . import present

        write(present.hits(result, Style(sys.stdout)))
    if explain and not settings.json:
        from .explained import explanation

        write(("\n" if result.hits else "") + explanation(result.explain, Style(sys.stdout)))
    if not result.hits:
        _say_none(result, memory, settings)
        context.exit(NO_RESULT)


def _query(words: tuple[str, ...]) -> str:
    if words == ("-",):
        return sys.stdin.buffer.read(_STDIN_BYTES).decode("utf-8-sig", "replace").strip()
    return readable(" ".join(words))


def _opened(settings: Settings):
    """The memory, or a fault that names the commands that come first."""
    from datasette_memory.errors import MemoryFault

    memory = settings.memory()
    if not memory.db.exists():
        raise MemoryFault(f"there is no index at {memory.db}", _first_commands(settings))
    return memory


def _first_commands(settings: Settings) -> str:
    """The two ways to get cards, each a command and what it does."""
    ways = {
        settings.command("memory-import", ["FOLDER"]): "import a folder of Markdown",
        settings.command("memory", ["index"]): "index the vault and the sources in config.json",
    }
    width = max(map(len, ways)) + 3
    return "get cards with one of these:" + "".join(
        f"\n  {command.ljust(width)}{what}" for command, what in ways.items()
    )


def _say_none(result, memory, settings: Settings) -> None:
    from .output import one_line

    if memory.count() == 0:
        write_error(
            f"The index {one_line(str(memory.db))} holds no card; " + _first_commands(settings)
        )
        return
    notice = f" {one_line(result.notice)}" if result.notice else ""
    write_error(f"No card answers '{one_line(result.query)}'.{notice}")


@cli.command("show", short_help="Read a card.", context_settings=HELP)
@click.argument("reference", metavar="REF")
@click.option(
    "--offset", metavar="NUMBER", type=click.IntRange(min=0), default=0, show_default=True,
    help="Begin at this character.",
)  # fmt: skip
@click.option(
    "--max-chars", metavar="NUMBER", type=click.IntRange(min=0), default=20_000, show_default=True,
    help="Show so many characters; 0 means all.",
)  # fmt: skip
@click.option("--full", is_flag=True, help="Show the text to its end.")
@click.option("--as-of", metavar="DATE", help="The text of that day.")
@common_options
@click.pass_obj
def show_command(settings, reference, offset, max_chars, full, as_of):
    """Read the card that REF means: a ref, a row id, a path or an exact title.

    A long text comes in windows; what is left, and the command for it, is always said. Secret
    cards are read from their files.

    \b
    Examples:
      memory show D_0001
      memory show 端口分配表
      memory show 18-References/端口分配表.md --json
      memory show 42 --offset 20000
      memory show 42 --full
    """
    reference = readable(reference)
    shown = _opened(settings).show(
        reference,
        offset=offset,
        max_chars=max_chars,
        full=full,
        secret=True,
        as_of=as_of,
        by={"surface": "cli"},
    )
    if settings.json:
        write_json(shown.to_dict())
        return
    from . import present

    words = ["show", "--offset", str(shown.window.next_offset)]
    if as_of:
        words += ["--as-of", as_of]
    if max_chars != 20_000:
        words += ["--max-chars", str(max_chars)]
    words += ["--", reference] if reference.startswith("-") else [reference]
    write(present.card(shown, settings.command("memory", words), Style(sys.stdout)))


@cli.command("stats", short_help="Count what there is.", context_settings=HELP)
@common_options
@click.pass_obj
def stats_command(settings):
    """Count the cards, by kind, source and project, and what is wrong with them.

    \b
    Examples:
      memory stats
      memory stats --db 笔记.db --json
    """
    memory = _opened(settings)
    figures = memory.stats()
    if settings.json:
        write_json(figures.to_dict())
    else:
        from . import present

        write(present.stats(figures, memory.db, Style(sys.stdout)))


@cli.command("serve", short_help="Browse the cards in Datasette.", context_settings=HELP)
@click.option(
    "--port",
    metavar="PORT",
    type=click.IntRange(0, 65535),
    default=8765,
    show_default=True,
    help="Port.",
)
@click.option(
    "--host",
    metavar="HOST",
    default="127.0.0.1",
    show_default=True,
    help="Address; 0.0.0.0 lets other computers in.",
)
@click.option("--open", "open_browser", is_flag=True, help="Open a browser.")
@click.option("--root", is_flag=True, help="Print a link that logs you in as root, once.")
@click.option("--metadata", metavar="FILE", help="Another configuration than the ready one.")
@common_options
@click.pass_context
def serve_command(context, port, host, open_browser, root, metadata):
    """Browse, search and query the cards in Datasette, until Ctrl-C.

    Only this computer can reach it, unless --host says otherwise. Everybody who can may read; root
    alone may write through it, unless the configuration says otherwise.

    \b
    Examples:
      memory serve
      memory serve --port 9000 --open
      memory serve --root
      memory serve --db 笔记.db
    """
    from pathlib import Path

    from .serve import serve

    db = _opened(context.obj).db
    context.exit(
        serve(
            db,
            port=port,
            host=host,
            open_browser=open_browser,
            root=root,
            metadata=Path(metadata) if metadata else None,
        )
    )


for _command in (
    mcp_command,
    hook_command,
    client_command,
    *CONTEXT_COMMANDS,
    *EXPLAIN_COMMANDS,
    *RECALL_COMMANDS,
    *CHANGE_COMMANDS,
    *CARE_COMMANDS,
):
    cli.add_command(_command)
