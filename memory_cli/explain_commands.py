"""The command that tells why a card was not found."""

import sys

import click

from .options import HELP, Settings, common_options, filter_options, filters
from .output import Style, readable, write, write_json


@click.command("why-not", short_help="Say why a card was not found.", context_settings=HELP)
@click.argument("query", metavar="QUERY")
@click.argument("reference", metavar="REF")
@click.option(
    "-n", "--limit", metavar="NUMBER", type=int, default=5, show_default=True,
    help="Hits at the most, as for search.",
)  # fmt: skip
@filter_options
@common_options
@click.pass_obj
def why_not_command(settings: Settings, query, reference, limit, **narrowed):
    """Say why the search for QUERY does not give the card REF: one sentence, then the details.

    Which terms it lacks, which filter or rule keeps it out, at which place it stands in the whole
    ranking, or that it is in the trash, secret, not indexed yet, or could not be read. REF is a
    ref, a row id, a path or an exact title. Give the filters of the search as well. Nothing is
    recorded.

    \b
    Examples:
      memory why-not '阿里云 私钥' D_0001
      memory why-not 'which port is the gateway on' 端口分配表 -n 10
      memory why-not 备份 D_0005 --kind mistake --json

    Exit codes: 0 explained, 1 there is no such card, 2 usage or environment.
    """
    told = settings.memory().why_not(
        readable(query), readable(reference), limit=limit, secret=True, **filters(narrowed)
    )
    if settings.json:
        write_json(told)
        return
    from .explained import reasons

    write(reasons(told, Style(sys.stdout)))


COMMANDS = (why_not_command,)
