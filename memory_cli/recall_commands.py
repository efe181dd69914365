"""The commands about what agents were given."""

import sys

import click

from .options import HELP, Settings, common_options
from .output import Style, one_line, readable, write, write_json

_VERDICTS = ("adopted", "rejected", "ignored")


@click.command(
    "feedback", short_help="Say what came of the cards that were given.", context_settings=HELP
)
@click.argument("cohort", metavar="COHORT")
@click.option("--adopted", metavar="REFS", multiple=True, help="Cards that were used. Repeatable.")
@click.option(
    "--rejected", metavar="REFS", multiple=True, help="Cards that were wrong here. Repeatable."
)
@click.option(
    "--ignored", metavar="REFS", multiple=True, help="Cards that did not matter. Repeatable."
)
@click.option("--agent", metavar="NAME", help="Who says so.")
@click.option("--session", metavar="ID", help="In which session.")
@common_options
@click.pass_obj
def feedback_command(settings: Settings, cohort, adopted, rejected, ignored, agent, session):
    """Say which cards of a COHORT were adopted, rejected or ignored; without that, show it.

    A cohort is what an agent was given at once; its id stands there. REFS are references of cards,
    with commas between them. Adopted cards come sooner in later answers, rejected ones later or not
    at all. Of cards that are not named nothing is assumed, and the last word on a card counts.

    \b
    Examples:
      memory feedback 01M8REXWA2XCAX9P
      memory feedback 01M8REXWA2XCAX9P --adopted D_0001,F_0001 --rejected I_0001
      memory feedback 01M8REXWA2XCAX9P --ignored I_0001 --json

    Exit codes: 0 done, 1 no such cohort or card, 2 a card of no part in it.
    """
    memory = settings.memory()
    cohort = readable(cohort)
    said = {
        verdict: _refs(values)
        for verdict, values in zip(_VERDICTS, (adopted, rejected, ignored), strict=True)
    }
    if not any((*adopted, *rejected, *ignored)):
        found = memory.cohort(cohort)
        if settings.json:
            write_json(found)
        else:
            write(_shown(found, Style(sys.stdout)))
        return
    by = {"surface": "cli", "agent": agent, "session": session}
    done = memory.feedback(cohort, **said, by=by)
    if settings.json:
        write_json(done)
        return
    told = ((name, done[name]) for name in (*_VERDICTS, "unchanged"))
    write("\n".join(one_line(f"{name} {', '.join(refs)}") for name, refs in told if refs))


def _refs(values: tuple[str, ...]) -> list[str]:
    parts = [part.strip() for value in values for part in value.replace("，", ",").split(",")]
    return [readable(part) for part in parts if part]


def _shown(found: dict, style: Style) -> str:
    who = [f"{name} {value}" for name, value in found["by"].items() if value and name != "surface"]
    if found["project"]:
        who.append(f"project {found['project']}")
    count = "1 card" if len(found["cards"]) == 1 else f"{len(found['cards'])} cards"
    facts = [
        found["cohort"],
        found["t"],
        count,
        f"{found['tokens']:,} of {found['budget']:,} tokens",
    ]
    lines = [style.dim(one_line(" · ".join([*facts, *who])))]
    for card in found["cards"]:
        verdict = card["verdict"] or "-"
        title = style.title(one_line(card["title"])) if card["title"] else style.dim("is gone")
        size = f"{card['tokens']:,} tokens"
        lines.append(f"{verdict:<9} {one_line(card['ref'])}  {card['view']}, {size}  {title}")
    if found["more"]:
        lines.append(f"and {found['more']:,} more that the ledger had no room for")
    if found["left_out"]:
        reasons = ", ".join(f"{code} {number}" for code, number in found["left_out"].items())
        lines.append(style.dim(one_line(f"left out: {reasons}")))
    return "\n".join(lines)


COMMANDS = (feedback_command,)
