"""The commands that write cards, and those that look at what was written."""

import os
import sys
from collections.abc import Callable
from typing import BinaryIO

import click

from datasette_memory.errors import MemoryFault

from .guard import NO_RESULT
from .options import HELP, Settings, common_options
from .output import Style, one_line, readable, safe, write, write_error, write_json

REJECTED = 1
CONFLICT = 3

#: A text on stdin or in a file is read so far, in bytes; the largest card is smaller.
_MAX_BYTES = 8 * 1024 * 1024

_CARD_OPTIONS = (
    click.option(
        "--kind", metavar="KIND", help="A kind, as decision, mistake or fact.  [default: note]"
    ),
    click.option("--summary", metavar="TEXT", help="One or two sentences."),
    click.option("--tags", metavar="TAG,TAG", help="Tags."),
    click.option("--keywords", metavar="WORD,WORD", help="Other words to find it by."),
    click.option("--aliases", metavar="NAME,NAME", help="Other titles."),
    click.option("--project", metavar="NAME", help="Project."),
    click.option(
        "--confidence", metavar="0..1", type=click.FloatRange(0, 1), help="How sure it is."
    ),
    click.option(
        "--sensitivity",
        type=click.Choice(["public", "internal", "private", "secret"]),
        help="Who may see it; secret stays out of the index.",
    ),
    click.option("--priority", metavar="NUMBER", type=int, help="Orders ties."),
    click.option("--ttl", metavar="DAYS", type=click.IntRange(min=0), help="Expires after DAYS."),
    click.option("--valid-from", metavar="DATE", help="When the fact began to hold."),
    click.option("--valid-until", metavar="DATE", help="When it ceased to."),
)

_BY_OPTIONS = (
    click.option("--agent", metavar="NAME", help="Who writes."),
    click.option("--session", metavar="ID", help="In which session."),
)

_NEW_OPTIONS = (
    click.option(
        "--relates",
        metavar="TYPE:REF",
        multiple=True,
        help="A relation, as caused_by:X_0002. Repeatable.",
    ),
    click.option(
        "--raw", metavar="FILE", help="Keep the long original beside the card; - for stdin."
    ),
    click.option(
        "--on-conflict",
        type=click.Choice(["suffix", "reject"]),
        default="suffix",
        show_default=True,
        help="Same title, other body: save beside it, or refuse.",
    ),
)

_REJECT = click.option(
    "--reject-secrets", is_flag=True, help="Refuse what looks like a credential."
)


def _options(*groups) -> Callable:
    def add(command: Callable) -> Callable:
        for group in reversed(groups):
            for option in reversed(group):
                command = option(command)
        return command

    return add


@click.command("capture", short_help="Write a card.", context_settings=HELP)
@click.option("--title", metavar="TITLE", required=True, help="One line.")
@click.option("--body", metavar="TEXT", help="The card's text; - or nothing reads stdin.")
@_options(_CARD_OPTIONS, _BY_OPTIONS, _NEW_OPTIONS)
@_REJECT
@common_options
@click.pass_context
def capture_command(context, title, body, relates, raw, on_conflict, reject_secrets, agent, session, **fields):  # fmt: skip
    """Write a card into the vault, and index it at once.

    The same title and text again changes nothing. The same title with another text is saved
    beside the first, and said. Something that looks like a credential is written and said, or
    refused with --reject-secrets.

    \b
    Examples:
      memory capture --title '站点根目录' --body '站点根目录在 /srv/www/orchid，不是 /var/www。'
      memory capture --title 'Why SQLite' --kind decision --tags db,search < reason.md
      memory capture --title 'WAL 占满磁盘' --kind mistake --relates caused_by:E_0001 < reason.md
      memory capture --title 'Call' --kind episode --body 'What we agreed on, and why' --raw call.txt

    Exit codes: 0 written, kept for later or unchanged; 1 rejected; 2 nothing could be kept;
    3 conflict.
    """
    settings: Settings = context.obj
    change = settings.memory().capture(
        _written(title, "--title"),
        _text(body),
        relates=_relations(relates),
        on_conflict=on_conflict,
        reject_secrets=reject_secrets,
        raw=_raw(raw, body),
        by=_by(agent, session),
        agent=agent,
        session=session,
        **_given(fields),
    )
    _finish(context, change)


@click.command("supersede", short_help="Replace a card by a new one.", context_settings=HELP)
@click.argument("reference", metavar="REF")
@click.option("--title", metavar="TITLE", required=True, help="Title of the new card.")
@click.option("--body", metavar="TEXT", help="Its text; - or nothing reads stdin.")
@_options(_CARD_OPTIONS, _BY_OPTIONS, _NEW_OPTIONS)
@_REJECT
@common_options
@click.pass_context
def supersede_command(context, reference, title, body, relates, raw, on_conflict, reject_secrets, agent, session, **fields):  # fmt: skip
    """Write a card that replaces REF, because the fact has changed.

    Both are linked. The old card stays readable, and searches leave it out. To correct a card that
    was wrong from the start, use `memory update`.

    \b
    Examples:
      memory supersede F_0002 --title '监听端口 8030' --body '十二月起监听 8030，8025 已停用。'
      memory supersede D_0006 --title 'Search moves to a new index' < decision.md
    """
    settings: Settings = context.obj
    change = settings.memory().supersede(
        readable(reference),
        _written(title, "--title"),
        _text(body),
        relates=_relations(relates),
        on_conflict=on_conflict,
        reject_secrets=reject_secrets,
        raw=_raw(raw, body),
        by=_by(agent, session),
        agent=agent,
        session=session,
        **_given(fields),
    )
    _finish(context, change)


@click.command("update", short_help="Correct a card.", context_settings=HELP)
@click.argument("reference", metavar="REF")
@click.option("--title", metavar="TITLE", help="New title; the file keeps its name.")
@click.option("--body", metavar="TEXT", help="New text; - reads stdin.")
@_options(_CARD_OPTIONS, _BY_OPTIONS)
@_REJECT
@common_options
@click.pass_context
def update_command(context, reference, title, body, reject_secrets, agent, session, **fields):
    """Correct a card: the same reference, the next version, the earlier text kept.

    Only what is given changes; an empty value ('') takes a field away. Comments, order and keys
    that are not known stay as they are. `memory history REF` shows and restores.

    \b
    Examples:
      memory update D_0003 --body - < corrected.md
      memory update F_0002 --tags 端口,网络 --confidence 0.9
      memory update F_0002 --valid-until 2026-12-31
    """
    settings: Settings = context.obj
    changes = _given(fields)
    if title is not None:
        changes["title"] = _written(title, "--title")
    change = settings.memory().update(
        readable(reference),
        body=None if body is None else _text(body),
        reject_secrets=reject_secrets,
        by=_by(agent, session),
        **changes,
    )
    _finish(context, change)


@click.command("link", short_help="Link two cards.", context_settings=HELP)
@click.argument("reference", metavar="REF")
@click.argument("type", metavar="TYPE")
@click.argument("target", metavar="TARGET")
@_options(_BY_OPTIONS)
@common_options
@click.pass_context
def link_command(context, reference, type, target, agent, session):
    """Write into REF that it stands in a relation to TARGET.

    TYPE is any word: caused_by, implements, refers_to, supersedes, ... TARGET has to exist. On a
    card of a read-only source, the link is kept in the ledger.

    \b
    Examples:
      memory link D_0003 caused_by E_0002
      memory link C_0001 implements D_0003
    """
    _link(context, reference, type, target, agent, session, "link")


@click.command("unlink", short_help="Take a link away.", context_settings=HELP)
@click.argument("reference", metavar="REF")
@click.argument("type", metavar="TYPE")
@click.argument("target", metavar="TARGET")
@_options(_BY_OPTIONS)
@common_options
@click.pass_context
def unlink_command(context, reference, type, target, agent, session):
    """Take away a relation that `memory link` or the card's frontmatter holds.

    \b
    Examples:
      memory unlink D_0003 caused_by E_0002
    """
    _link(context, reference, type, target, agent, session, "unlink")


def _link(context, reference, type, target, agent, session, method: str) -> None:
    memory = context.obj.memory()
    change = getattr(memory, method)(
        readable(reference), _written(type, "TYPE"), readable(target), by=_by(agent, session)
    )
    _finish(context, change)


@click.command("related", short_help="Show what a card hangs together with.", context_settings=HELP)
@click.argument("reference", metavar="REF")
@click.option(
    "--depth", metavar="NUMBER", type=click.IntRange(1, 5), default=1, show_default=True,
    help="How many links far.",
)  # fmt: skip
@click.option("--as-of", metavar="DATE", help="The links of that day.")
@common_options
@click.pass_context
def related_command(context, reference, depth, as_of):
    """Show the cards that REF is linked with, in both directions.

    \b
    Examples:
      memory related D_0003
      memory related D_0003 --depth 2 --json
      memory related D_0003 --as-of 2026-11-15
    """
    settings: Settings = context.obj
    found = settings.memory().related(readable(reference), depth=depth, as_of=as_of, secret=True)
    if settings.json:
        write_json(found)
    else:
        style = Style(sys.stdout)
        lines = [style.title(one_line(f"{found['ref']}  {found['title']}"))]
        for card in found["cards"]:
            indent = "  " * int(card["depth"])
            ways = ", ".join(
                f"{link['type'].replace('_', ' ')} {'->' if link['outgoing'] else '<-'}"
                for link in (card, *(card["also"] or ()))
            )
            text = f"{ways} {card['ref']}  {card['title']}"
            lines.append(indent + one_line(text))
        write("\n".join(lines))
    if not found["cards"]:
        if not settings.json:
            write_error(f"No card is linked with {one_line(str(found['ref']))}.")
        context.exit(NO_RESULT)


@click.command("forget", short_help="Move a card to the trash.", context_settings=HELP)
@click.argument("reference", metavar="REF")
@_options(_BY_OPTIONS)
@common_options
@click.pass_context
def forget_command(context, reference, agent, session):
    """Move a card of the vault to its trash, and say how to bring it back.

    \b
    Examples:
      memory forget SG_0002
    """
    change = context.obj.memory().forget(readable(reference), by=_by(agent, session))
    _finish(context, change)


@click.command("trash", short_help="List the trash, or bring a card back.", context_settings=HELP)
@click.option("--restore", metavar="PATH", help="Bring this one back.")
@_options(_BY_OPTIONS)
@common_options
@click.pass_context
def trash_command(context, restore, agent, session):
    """List what `memory forget` moved away, the latest first; or bring one of them back.

    \b
    Examples:
      memory trash
      memory trash --restore .trash/20261201-080000-000/17-Notes/待办.md
    """
    settings: Settings = context.obj
    memory = settings.memory()
    if restore is not None:
        _finish(context, memory.restore(readable(restore), by=_by(agent, session)))
        return
    found = memory.trashed()
    if settings.json:
        write_json({"count": len(found), "cards": found})
    elif found:
        write("\n".join(one_line(f"{card['trashed']}  {card['trash_path']}") for card in found))
    else:
        write_error("The trash is empty.")


@click.command("history", short_help="Show what happened to a card.", context_settings=HELP)
@click.argument("reference", metavar="REF")
@click.option(
    "--restore", metavar="VERSION", type=click.IntRange(min=1), help="Bring this version back."
)
@_options(_BY_OPTIONS)
@common_options
@click.pass_context
def history_command(context, reference, restore, agent, session):
    """Show what happened to a card, the oldest first; or bring an earlier version back.

    A restored version becomes the next one: nothing is lost. `memory show REF --as-of DATE` reads
    the text of a day.

    \b
    Examples:
      memory history D_0003
      memory history D_0003 --restore 2
    """
    settings: Settings = context.obj
    memory = settings.memory()
    if restore is not None:
        change = memory.restore_version(readable(reference), restore, by=_by(agent, session))
        _finish(context, change)
        return
    found = memory.history(readable(reference), secret=True)
    if settings.json:
        write_json(found)
        return
    lines = [one_line(f"{found['ref']}  {found['title']}  (version {found['version']})")]
    for event in found["events"]:
        told = [event["t"][:19].replace("T", " "), event["kind"]]
        if "before" in event:
            told.append(f"version {event['version_before']} kept as {event['before'][:12]}")
        for key in ("type", "target", "replaced_by", "restores", "trash"):
            if event.get(key):
                told.append(f"{key.replace('_', ' ')} {event[key]}")
        if who := event["by"].get("agent") or event["by"].get("surface"):
            told.append(f"by {who}")
        lines.append("  " + one_line("  ".join(map(str, told))))
    write("\n".join(lines))


@click.command("raw", short_help="Read the long original of a card.", context_settings=HELP)
@click.argument("reference", metavar="REF")
@click.option(
    "--offset", metavar="NUMBER", type=click.IntRange(min=0), default=0, show_default=True,
    help="Begin at this character.",
)  # fmt: skip
@click.option(
    "--max-chars", metavar="NUMBER", type=click.IntRange(min=0), default=20_000, show_default=True,
    help="Show so many characters; 0 means all.",
)  # fmt: skip
@click.option(
    "--part", metavar="NUMBER", type=click.IntRange(min=1), default=1, show_default=True,
    help="Which one, when there are several.",
)  # fmt: skip
@common_options
@click.pass_context
def raw_command(context, reference, offset, max_chars, part):
    """Read the raw text that `memory capture --raw` kept beside a card, a window at a time.

    \b
    Examples:
      memory raw E_0004
      memory raw E_0004 --offset 20000
    """
    settings: Settings = context.obj
    found = settings.memory().raw(
        readable(reference),
        offset=offset,
        max_chars=max_chars,
        part=part,
        secret=True,
        by=_by(None, None),
    )
    if settings.json:
        write_json(found)
        return
    write(safe(str(found["text"])))
    if found["has_more"]:
        at = found["next_offset"]
        words = ["raw", reference, "--offset", str(at)]
        left = found["length"] - at
        write(
            Style(sys.stdout).dim(
                f"\n{left:,} characters left:\n  {settings.command('memory', words)}"
            )
        )


@click.command(
    "sync-pending", short_help="Make the changes that had to wait.", context_settings=HELP
)
@common_options
@click.pass_context
def sync_pending_command(context):
    """Make the changes that could not be written before, the oldest first.

    One that fails five times is laid aside in pending/dead, with the reason in it.

    \b
    Examples:
      memory sync-pending
    """
    settings: Settings = context.obj
    result = settings.memory().sync_pending()
    if settings.json:
        write_json(result.to_dict())
    else:
        lines = [f"{one['status']}  {one.get('ref') or ''}  {one['file']}" for one in result.done]
        lines += [f"failed  {one['file']}: {one['reason']}" for one in result.failed]
        lines += [f"laid aside  {one['file']}: {one['reason']}" for one in result.dead]
        if result.left:
            lines.append(f"{result.left} more were not tried")
        if result.elsewhere:
            vaults = dict.fromkeys(str(one["vault"]) for one in result.elsewhere)
            lines.append(
                f"{len(result.elsewhere)} wait for another vault, and --vault makes them: "
                + ", ".join(vaults)
            )
        write("\n".join(map(one_line, lines)) or "Nothing is pending.")
    if result.failed or result.dead:
        context.exit(REJECTED)


COMMANDS = (
    capture_command,
    update_command,
    supersede_command,
    link_command,
    unlink_command,
    related_command,
    forget_command,
    trash_command,
    history_command,
    raw_command,
    sync_pending_command,
)


def _finish(context, change) -> None:
    """Say what became of a change, and end with its exit code."""
    settings: Settings = context.obj
    code = {"rejected": REJECTED, "conflict": CONFLICT}.get(change.status, 0)
    if settings.json:
        write_json(change.to_dict())
    else:
        _tell(change)
    if code:
        context.exit(code)


def _tell(change) -> None:
    style = Style(sys.stderr)
    if change.status in ("rejected", "conflict", "pending"):
        line = f"{change.status}: {change.reason}"
        write_error(one_line(line if not change.hint else f"{line}; {change.hint}"))
    else:
        parts = [change.status, change.ref, change.path]
        if change.version and change.version > 1:
            parts.append(f"version {change.version}")
        write("  ".join(one_line(str(part)) for part in parts if part))
        if change.supersedes:
            write(f"replaces {one_line(change.supersedes)}")
        if change.status == "trashed":
            write(f"bring it back with: {one_line(str(change.hint))}")
        elif change.hint:
            write(one_line(change.hint))
    if change.existing_path:
        write_error(style.warn(f"same title, other text: {one_line(change.existing_path)}"))
    for one in change.similar or ():
        write_error(style.warn(one_line(f"nearly the same: {one['ref']} ({one['score']})")))
    if change.metadata_differs:
        write_error(style.warn("its metadata differ from what was given: see `memory update`"))
    for warning in change.warnings:
        write_error(style.warn(one_line(f"warning: {warning}")))
    if change.warning:
        write_error(style.warn(one_line(f"warning: {change.warning}")))


def _text(value: str | None) -> str:
    """An option's text; stdin where it is `-` or missing."""
    if value is not None and value != "-":
        return _written(value, "--body")
    if value is None and sys.stdin.isatty():
        raise click.UsageError("the text is missing: give --body TEXT, or pipe it in")
    return _read(sys.stdin.buffer, "the text on stdin")


def _raw(file: str | None, body: str | None) -> str | None:
    """The raw text in a file, or on stdin where it is `-`; the body then stands elsewhere."""
    if file is None:
        return None
    if file == "-":
        if body is None or body == "-":
            raise click.UsageError("--raw - reads stdin: give the body with --body TEXT")
        return _read(sys.stdin.buffer, "the text on stdin")
    with open(file, "rb") as opened:
        return _read(opened, file)


def _read(stream: BinaryIO, name: str) -> str:
    data = stream.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise MemoryFault(f"{name} is larger than 8 MiB", "a card takes 2 MiB: split it")
    return _decoded(data, name)


def _written(argument: str, name: str) -> str:
    """An argument that becomes part of a card. Raises MemoryFault when it is not UTF-8."""
    try:
        argument.encode("utf-8")
    except UnicodeEncodeError:
        return _decoded(os.fsencode(argument), name)
    return argument


def _decoded(data: bytes, name: str) -> str:
    """UTF-8 as text: a byte that is none would be lost, and nobody would know."""
    try:
        return data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        at = error.start
        raise MemoryFault(
            f"{name} is not UTF-8: byte {data[at]:#04x} at offset {at}",
            "convert it first, as with: iconv -f GB18030 -t UTF-8",
        ) from None


def _relations(relates: tuple[str, ...]) -> list[tuple[str, str]]:
    found = []
    for one in relates:
        type, colon, reference = _written(one, "--relates").partition(":")
        if not colon or not type.strip() or not reference.strip():
            raise click.UsageError(f"--relates {one}: write TYPE:REF, as caused_by:X_0002")
        found.append((type.strip(), reference.strip()))
    return found


def _given(fields: dict) -> dict:
    return {
        name: _written(value, _option(name)) if isinstance(value, str) else value
        for name, value in fields.items()
        if value is not None
    }


def _by(agent: str | None, session: str | None) -> dict[str, str | None]:
    by = {"surface": "cli", "agent": agent, "session": session}
    return {name: value and _written(value, _option(name)) for name, value in by.items()}


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
