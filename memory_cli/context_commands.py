"""The commands that give an agent what it may see: context and brief."""

import sys

import click

from .guard import NO_RESULT
from .options import HELP, Settings, common_options
from .output import Style, one_line, readable, safe, write, write_error, write_json

#: A question on stdin is read so far, in bytes.
_STDIN_BYTES = 400_000

_SENSITIVITIES = click.Choice(["public", "internal", "private"])


@click.command("context", short_help="Give an agent what it may see.", context_settings=HELP)
@click.argument("words", nargs=-1, required=True, metavar="QUESTION...")
@click.option(
    "--budget", metavar="TOKENS", type=click.IntRange(min=1), help="At the most.  [default: 1500]"
)
@click.option("--project", metavar="NAME", help="Only cards of this project.")
@click.option("--session", metavar="ID", help="What this session was given is not given again.")
@click.option("-n", "--limit", metavar="NUMBER", type=click.IntRange(min=1), help="So many cards.")
@click.option("--kind", metavar="KIND", help="Only cards of this kind.")
@click.option("--source", metavar="NAME", help="Only cards of this source.")
@click.option("--tag", metavar="TAG", multiple=True, help="Only cards with this tag. Repeatable.")
@click.option(
    "--exclude-tag", metavar="TAG", multiple=True, help="No cards with this tag. Repeatable."
)
@click.option("--since", metavar="DATE", help="Only cards updated since: 2026-09-30, or 30d.")
@click.option(
    "--sensitivity", type=_SENSITIVITIES, multiple=True,
    help="Cards of this sensitivity may be given. Repeatable.  [default: public, internal]",
)  # fmt: skip
@click.option("--agent", metavar="NAME", help="Who asks.")
@click.option("--dry-run", is_flag=True, help="Show what would be given, and record nothing.")
@click.option("--explain", is_flag=True, help="Show what each step did to each card.")
@common_options
@click.pass_context
def context_command(context, words, budget, project, session, limit, kind, source, tag, exclude_tag, since, sensitivity, agent, dry_run, explain):  # fmt: skip
    """Give what an agent may see for QUESTION: found, judged and packed into a budget of tokens.

    A turn that says too little is stopped before any search. What is found is ranked by what is
    known of each card, and passes a firewall: nothing superseded, secret, stale or without a source
    goes through. The answer on stdout is ready for a prompt; what was given and what was left out,
    and why, goes to stderr. The cohort in it is what `memory feedback` takes. A QUESTION of - is
    read from stdin.

    \b
    Examples:
      memory context '备份脚本为什么会覆盖昨天的快照？'
      memory context 'orchid-gateway 怎么回滚' --budget 600 --project orchid-gateway
      memory context '磁盘写满了怎么办' --explain --dry-run
      memory context - --session 7f3a --json < prompt.txt

    Exit codes: 0 something is given, 1 nothing is.
    """
    settings: Settings = context.obj
    question = _question(words)
    given = settings.memory().context(
        question,
        budget=budget,
        project=project and readable(project),
        session=session and readable(session),
        limit=limit,
        kind=kind and readable(kind),
        source=source and readable(source),
        tags=list(map(readable, tag)),
        exclude_tags=list(map(readable, exclude_tag)),
        since=since,
        sensitivities=sensitivity or None,
        record=not dry_run,
        explain=explain,
        read=lambda one: settings.command("memory", ["show", one.ref]),
        by={"surface": "cli", "agent": agent, "session": session},
    )
    if settings.json:
        write_json(given.to_dict())
    else:
        if given.text:
            write(safe(given.text))
        if given.trace is not None:
            write(("\n" if given.text else "") + safe(given.trace.table()))
        style = Style(sys.stderr)
        write_error("\n".join(style.dim(one_line(line)) for line in receipt(given)))
    if not given.text:
        context.exit(NO_RESULT)


def receipt(given) -> list[str]:
    """What was given at which price, and what was left out and why; a line each."""
    if not given.decision.open:
        return ["nothing given: " + " ".join(given.decision.reasons)]
    lines = []
    if given.refused:
        lines.append(f"nothing given: {given.refused.sentence}")
    elif not given.text:
        lines.append(f"nothing given: {given.why_nothing()}")
    else:
        cards = "1 card" if len(given.pack.items) == 1 else f"{len(given.pack.items)} cards"
        line = f"given: {cards}, {given.pack.tokens:,} of {given.budget:,} tokens"
        lines.append(line + (f", cohort {given.cohort}" if given.cohort else ", nothing recorded"))
        for one in given.pack.items:
            flags = f" ({', '.join(one.flags)})" if one.flags else ""
            lines.append(f"  {one.candidate.ref} {one.view}, {one.tokens} tokens{flags}")
    for one in given.pack.left_out if given.pack and not given.refused else ():
        lines.append(
            f"left out: {one.candidate.ref} {one.reasons[0].code}: {one.reasons[0].sentence}"
        )
    if given.notice:
        lines.append(given.notice)
    return lines


@click.command("brief", short_help="What a new session should know.", context_settings=HELP)
@click.option("--project", metavar="NAME", help="Only cards of this project.")
@click.option(
    "--budget", metavar="TOKENS", type=click.IntRange(min=1), help="At the most.  [default: 800]"
)
@common_options
@click.pass_context
def brief_command(context, project, budget):
    """Show what a new session should know: open handoffs, live signals, recent decisions and the
    cards that were most of use.

    \b
    Examples:
      memory brief
      memory brief --project orchid-gateway --budget 300
      memory brief --json
    """
    settings: Settings = context.obj
    found = settings.memory().brief(
        project=project and readable(project),
        budget=budget,
        call=settings.command("memory", ["show", "REF"]),
    )
    if settings.json:
        write_json(found.to_dict())
    elif found.text:
        write(safe(found.text))
    if not found.text:
        if any(found.left_out.values()):
            write_error("Nothing fits into this budget.")
        else:
            write_error("No handoff is open, no signal is live, and no card was of use yet.")
        context.exit(NO_RESULT)


def _question(words: tuple[str, ...]) -> str:
    if words == ("-",):
        return sys.stdin.buffer.read(_STDIN_BYTES).decode("utf-8-sig", "replace").strip()
    return readable(" ".join(words))


COMMANDS = (context_command, brief_command)
