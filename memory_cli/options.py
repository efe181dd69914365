"""The options that every command has, before the subcommand and after it."""

from collections.abc import Callable, Sequence

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


def version_option(program: str) -> Callable:
    """`--version` for a program."""
    return click.version_option(__version__, prog_name=program, message="%(prog)s %(version)s")
