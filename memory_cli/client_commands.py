"""`memory client`: wire the memory into agent clients, and take it out again."""

import sys

import click

from .guard import NO_RESULT, GuardedGroup
from .options import HELP, Settings, common_options
from .output import Style, one_line, safe, write, write_error, write_json

_scope = click.option(
    "--scope",
    type=click.Choice(["user", "project"]),
    default="user",
    show_default=True,
    help="For all projects of this user, or for the project of the current folder.",
)
_dry_run = click.option(
    "--dry-run", is_flag=True, help="Show what would change, and change nothing."
)


@click.group("client", cls=GuardedGroup, short_help="Connect agent clients.", context_settings=HELP)
@common_options
def client_command():
    """Connect an agent client to the memory: server, hooks, rules, skill and command.

    Only what is added changes in a client's files; `uninstall` gives the earlier bytes back. A
    client is verified (seen to work on this computer), install-ready (its files are known and
    written) or docs-only (known from its documents; `install` prints what to paste).

    \b
    Examples:
      memory client list
      memory client install claude-code --dry-run
      memory client install claude-code
      memory client doctor claude-code
      memory client verify claude-code
      memory client uninstall claude-code

    Exit codes: 0 done, 1 something is wrong, 2 usage or environment, 3 something is in the way.
    """


def _clients(settings: Settings):
    from datasette_memory.clients.install import Clients
    from datasette_memory.home import resolve

    home = resolve(settings.home, settings.db, settings.vault)
    located = []
    for name in ("home", "db", "vault"):
        if home.decided[name] not in ("default", "config.json"):
            located += [f"--{name}", str(getattr(home, name))]
    return Clients(home.home, located)


@client_command.command("list", short_help="List the clients.", context_settings=HELP)
@click.option(
    "--versions", is_flag=True, help="Ask each client for its version, which takes longer."
)
@common_options
@click.pass_obj
def list_command(settings, versions):
    """List the clients: name, level, whether it is installed here, the day it was seen to work.

    \b
    Examples:
      memory client list
      memory client list --versions --json
    """
    rows = _clients(settings).overview(versions)
    if settings.json:
        write_json({"clients": rows})
        return
    style = Style(sys.stdout)
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        installed = "installed" if row["installed"] else "-"
        told = f"{row['title']} {row['version']}".strip()
        day = f"  seen {row['evidence']}" if row["evidence"] else ""
        name = style.title(row["name"].ljust(width))
        write(f"{name}  {row['level']:<13}  {installed:<9}  {one_line(told)}{day}")


@client_command.command("show", short_help="Show what a client is given.", context_settings=HELP)
@click.argument("name")
@_scope
@common_options
@click.pass_obj
def show_command(settings, name, scope):
    """Show the files of a client and what `install` writes into them.

    \b
    Examples:
      memory client show codex
      memory client show cursor --scope project
    """
    found = _clients(settings).show(name, scope)
    if settings.json:
        write_json(found)
        return
    style = Style(sys.stdout)
    installed = "installed" if found["installed"] else "not installed"
    write(f"{style.title(found['title'])}: {found['level']}, {installed}")
    for one in found["files"]:
        _write_text(style, one["path"], one["parts"], one["text"])
    if found["transcripts"]:
        write(f"\ntranscripts: {one_line(found['transcripts'])}")
    for note in found["notes"]:
        write(f"\n{one_line(note)}")


@client_command.command("install", short_help="Connect a client.", context_settings=HELP)
@click.argument("name")
@_scope
@_dry_run
@click.option("--trust", is_flag=True, help="Approve the hooks in your place (Codex).")
@common_options
@click.pass_obj
def install_command(settings, name, scope, dry_run, trust):
    """Write server, hooks, rules, skill and the command /remember into the client's files.

    Every file is looked at first; when one cannot be edited without harm, none is. A copy of each
    is kept in the home, under clients/backups. To install twice changes nothing the second time.

    \b
    Examples:
      memory client install claude-code --dry-run
      memory client install claude-code
      memory client install codex
      memory client install gemini-cli --scope project
      memory client install cursor
    """
    report = _clients(settings).install(name, scope, dry_run, trust)
    _tell(settings, report)


@client_command.command("doctor", short_help="Say what is not well.", context_settings=HELP)
@click.argument("name")
@common_options
@click.pass_context
def doctor_command(context, name):
    """Look at a client: its program, our command, and what stands in its files.

    \b
    Examples:
      memory client doctor claude-code
      memory client doctor codex --json

    Exit codes: 0 all is well, 1 something is wrong.
    """
    settings: Settings = context.obj
    found = _clients(settings).doctor(name)
    wrong = any(one["level"] == "error" for one in found)
    if settings.json:
        write_json({"ok": not wrong, "checks": found})
    else:
        style = Style(sys.stdout)
        for one in found:
            level = one["level"].ljust(5)
            mark = style.warn(level) if one["level"] == "error" else style(level, fg="green")
            write(f"{mark}  {one_line(one['name'])}: {one_line(one['what'])}")
            if one["remedy"]:
                write(f"       {one_line(one['remedy'])}")
    if wrong:
        context.exit(NO_RESULT)


@client_command.command("verify", short_help="See a client work.", context_settings=HELP)
@click.argument("name")
@click.option("--program", metavar="PATH", help="The client.  [default: the one on the PATH]")
@click.option("--keep", metavar="FOLDER", help="Keep the scratch folder in it, to look at.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=1),
    default=120,
    show_default=True,
    help="Seconds until the client is stopped.",
)
@common_options
@click.pass_context
def verify_command(context, name, program, keep, timeout):
    """Run a client once, end to end, and say how far the memory gets in it.

    The real program answers one question in a home folder of its own, with a memory of one card and
    a stand-in for the model on this computer: no tokens, no login, nothing sent out, and nothing of
    yours read or changed. What was seen is kept in the home, under clients/evidence, and makes the
    client verified in `memory client list` for as long as its version stays.

    \b
    Examples:
      memory client verify claude-code
      memory client verify codex --program ~/.npm/bin/codex --json
      memory client verify gemini-cli --keep /tmp/seen

    Exit codes: 0 all that this client can do was seen, 1 something was not, 2 it is not installed.
    """
    from pathlib import Path

    from datasette_memory.clients.verify import verify

    settings: Settings = context.obj
    evidence = verify(name, program, Path(keep).expanduser() if keep else None, timeout)
    path = _clients(settings).keep_evidence(name, evidence.to_dict())
    if settings.json:
        kept = {"kept": evidence.kept} if evidence.kept else {}
        write_json({**evidence.to_dict(), "evidence": str(path), **kept})
    else:
        _tell_evidence(evidence, path)
    if not evidence.verified:
        context.exit(NO_RESULT)


def _tell_evidence(evidence, path) -> None:
    from datasette_memory.clients.verify import STEPS

    style = Style(sys.stdout)
    marks = {True: style("yes", fg="green"), False: style.warn("no "), None: "-  "}
    told = f"{evidence.client} {evidence.version}".strip()
    write(one_line(f"{told}, {evidence.seconds:.1f} s ({evidence.program})"))
    width = max(map(len, STEPS.values()))
    for name, step in evidence.steps.items():
        write(f"{marks[step.ok]}  {STEPS[name].ljust(width)}  {one_line(step.seen)}")
    for host in evidence.refused:
        write(one_line(f"note: it wanted to reach {host}, and was not let"))
    if not evidence.verified:
        write("The client said:")
        write(safe("\n".join(f"  {line}" for line in evidence.answer.split("\n")[-12:])))
    if evidence.kept:
        write(one_line(f"kept: {evidence.kept}"))
    write(one_line(f"evidence: {path}"))


@client_command.command("uninstall", short_help="Disconnect a client.", context_settings=HELP)
@click.argument("name", required=False)
@click.option("--all", "everything", is_flag=True, help="Every client that is installed.")
@click.option(
    "--scope",
    type=click.Choice(["user", "project"]),
    help="Only this scope.  [default: all that was written]",
)
@_dry_run
@common_options
@click.pass_context
def uninstall_command(context, name, everything, scope, dry_run):
    """Take out what `install` wrote, and nothing else.

    A file that nobody has edited since becomes what it was, byte for byte; from others our own
    entries go. Files and folders that were made go too, when nothing else is in them.

    \b
    Examples:
      memory client uninstall claude-code
      memory client uninstall --all --dry-run
    """
    if bool(name) == everything:
        raise click.UsageError("name one client, or give --all", context)
    settings: Settings = context.obj
    clients = _clients(settings)
    names = clients.with_something() if everything else [name]
    reports = [clients.uninstall(one, scope, dry_run) for one in names]
    if everything and settings.json:
        write_json({"clients": [one.to_dict() for one in reports]})
        return
    for report in reports:
        _tell(settings, report)
    if not any(report.changes for report in reports):
        write_error("nothing of ours was found")


def _tell(settings: Settings, report) -> None:
    if settings.json:
        write_json(report.to_dict())
        return
    from datasette_memory.clients.install import action

    style = Style(sys.stdout)
    verbs = {"create": "created", "change": "changed", "remove": "removed", "keep": "as it was"}
    for change in report.changes:
        done = action(change)
        if report.dry_run and done != "keep":
            write(safe(change.diff()))
        else:
            write(one_line(f"{verbs[done]}: {change.path} ({', '.join(change.parts)})"))
        if change.note:
            write_error(one_line(f"note: {change.note}"))
    notes = [*report.notes]
    if report.paste:
        write(one_line(notes.pop(0)))
        for one in report.paste:
            _write_text(style, one["path"], one["parts"], one["text"])
    for note in notes:
        write(one_line(f"note: {note}"))


def _write_text(style: Style, path: str, parts: str, text: str) -> None:
    write(f"\n{style.title(one_line(path))} ({one_line(parts)})")
    write(safe("\n".join("  " + line if line else "" for line in text.rstrip("\n").split("\n"))))
