"""The options that every command has, before the subcommand and after it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from datasette_memory import __version__


class Settings:
    """Where the memory is, as the options say, and whether to answer in JSON.

    No dataclass: importing `dataclasses` would cost a tenth of `memory --help`.
    """

    __slots__ = ("home", "db", "vault", "json")

    def __init__(self) -> None:
        self.home: str | None = None
        self.db: str | None = None
        self.vault: str | None = None
        self.json = False

    def memory(self):
        """The `Memory` that they mean. Raises MemoryFault."""
        from datasette_memory.memory import Memory

        return Memory(self.home, db=self.db, vault=self.vault)

    def command(self, program: str, words: Sequence[str] = ()) -> str:
        """A command line for the same memory, to be copied into a shell."""
        from .output import quoted

        located = [program]
        for name in ("home", "db", "vault"):
            if value := getattr(self, name):
                located += [f"--{name}", value]
        return quoted([*located, *words])


def _keep(context: click.Context, parameter: click.Parameter, value: object) -> None:
    """Put a value into the settings; later options come later, and win."""
    if value is None or value is False:
        return
    if value == "":
        raise click.BadParameter("is empty", context, parameter)
    setattr(context.ensure_object(Settings), str(parameter.name), value)


_OPTIONS = (
    click.option(
        "--home",
        metavar="FOLDER",
        help="Home of the memory.  [default: ~/.memory_agent]",
        expose_value=False,
        callback=_keep,
    ),
    click.option(
        "--db",
        metavar="FILE",
        help="The index.  [default: memory.db in the home]",
        expose_value=False,
        callback=_keep,
    ),
    click.option(
        "--vault",
        metavar="FOLDER",
        help="The vault.  [default: vault in the home]",
        expose_value=False,
        callback=_keep,
    ),
    click.option(
        "--json",
        is_flag=True,
        help="Answer with one JSON object.",
        expose_value=False,
        callback=_keep,
    ),
)

#: For every command, that of sqlite-utils too.
HELP = {"help_option_names": ["-h", "--help"]}


def common_options(command: Callable) -> Callable:
    """Give a command `--home`, `--db`, `--vault` and `--json`, kept in its `Settings`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_FILTERS = (
    click.option("--kind", metavar="KIND", help="Only cards of this kind: decision, mistake, ..."),
    click.option("--source", metavar="NAME", help="Only cards of this source."),
    click.option("--project", metavar="NAME", help="Only cards of this project."),
    click.option(
        "--tag", metavar="TAG", multiple=True, help="Only cards with this tag. Repeatable."
    ),
    click.option("--tags", metavar="TAG,TAG", help="Only cards with all of these tags."),
    click.option(
        "--exclude-tag", metavar="TAG", multiple=True, help="No cards with this tag. Repeatable."
    ),
    click.option(
        "--sensitivity",
        metavar="LEVEL",
        multiple=True,
        type=click.Choice(["public", "internal", "private"]),
        help="Only cards that are public, internal or private. Repeatable.",
    ),
    click.option("--since", metavar="DATE", help="Only cards updated since: 2026-09-30, or 30d."),
    click.option("--superseded", is_flag=True, help="Let superseded cards in."),
)


def filter_options(command: Callable) -> Callable:
    """Give a command the options that narrow a search; `filters` reads them."""
    for option in reversed(_FILTERS):
        command = option(command)
    return command


def filters(given: Mapping[str, Any]) -> dict[str, Any]:
    """What `filter_options` gave to a command, as `Memory.search` takes it."""
    from .output import readable

    tags = [*given["tag"], *(given["tags"] or "").replace("，", ",").split(",")]
    return {
        **{name: value and readable(value) for name in _TEXTS for value in (given[name],)},
        "tags": [readable(tag.strip()) for tag in tags if tag.strip()],
        "exclude_tags": [readable(tag) for tag in given["exclude_tag"]],
        "sensitivities": given["sensitivity"] or None,
        "since": given["since"],
        "superseded": given["superseded"],
    }


_TEXTS = ("kind", "source", "project")


def version_option(program: str) -> Callable:
    """`--version` for a program."""
    return click.version_option(__version__, prog_name=program, message="%(prog)s %(version)s")
