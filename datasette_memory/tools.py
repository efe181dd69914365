"""The MCP tools, the same for stdio and for HTTP: thin, and every answer is one of `answers`.

`register` is all that a server needs. Who may call a tool is for the server to say, in `admit`.
"""

import contextlib
import functools
import inspect
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import BeforeValidator, Field, WithJsonSchema
from typing_extensions import NotRequired, TypedDict

from . import answers
from .answers import Answer
from .errors import Ambiguous, MemoryFault, NotFound

if TYPE_CHECKING:
    from .memory import Memory

#: Gives the memory that a call means if whoever calls may do what the words say: READ, ADD and
#: CHANGE are those of `access`. Raises MemoryFault.
Admit = Callable[[Context, tuple[str, ...]], Awaitable["Memory"]]
#: Who calls: `{surface, agent, session}`, as the ledger keeps it.
By = Mapping[str, str | None]

#: The sentence that tells of a fault has so many characters at the most.
MAX_FAILURE = 4_000

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool. `function` takes a Memory, who calls, and the arguments of the call; its docstring
    is what a model reads to know when to call it."""

    function: Callable[..., Answer]
    #: What its structured result looks like; None for a text alone.
    result: Any
    needs: tuple[str, ...]
    annotations: ToolAnnotations

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def description(self) -> str:
        return " ".join(str(self.function.__doc__).split())

    @property
    def writes(self) -> bool:
        return self.needs != ("READ",)


def annotations(*, reads=False, destroys=False, repeats=False) -> ToolAnnotations:
    """What a client may know of a tool before it asks its user. `repeats`: a second call with the
    same arguments changes nothing more."""
    return ToolAnnotations(
        read_only_hint=reads,
        destructive_hint=destroys,
        idempotent_hint=reads or repeats,
        open_world_hint=False,
    )


def register(server: MCPServer, admit: Admit, tools: tuple[Tool, ...], *, read_only=False) -> None:
    """Give a server its tools; with `read_only` those alone that change nothing."""
    # Changes queue up here, where waiting costs nothing, and not at the lock of the vault, which is
    # not waited for very long.
    turn = anyio.Lock()
    for tool in tools:
        if not (read_only and tool.writes):
            server.add_tool(
                _served(tool, admit, turn if tool.writes else contextlib.nullcontext()),
                name=tool.name,
                description=tool.description,
                annotations=tool.annotations,
                structured_output=None if tool.result else False,
            )


def _served(
    tool: Tool, admit: Admit, turn: contextlib.AbstractAsyncContextManager
) -> Callable[..., Awaitable[CallToolResult]]:
    """The function that the SDK calls: on a thread, every fault told as a sentence."""

    async def call(ctx: Context, **arguments) -> CallToolResult:
        given = {name: value for name, value in arguments.items() if value is not None}
        try:
            memory = await admit(ctx, tool.needs)
            work = functools.partial(tool.function, memory, _by(ctx), **given)
            async with turn:
                answer = await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
        except MemoryFault as fault:
            return failure(what_next(fault))
        except Exception as error:
            _log.exception("%s failed", tool.name)
            return failure(
                f"Unexpected {type(error).__name__}: {answers.shortened(str(error), 300)}. Try "
                "once more; if it stays, the owner of this memory can find out with "
                "`memory doctor`."
            )
        return CallToolResult(
            content=[TextContent(type="text", text=answer.text)],
            structured_content=answer.data if tool.result else None,
            is_error=answer.failed,
        )

    # The SDK makes the schema of a tool out of its signature.
    signature = inspect.signature(tool.function)
    context = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=Context)
    asked = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in list(signature.parameters.values())[2:]
    ]
    result = Annotated[CallToolResult, tool.result] if tool.result else CallToolResult
    call.__signature__ = signature.replace(parameters=[*asked, context], return_annotation=result)
    call.__name__ = tool.name
    return call


def failure(text: str) -> CallToolResult:
    """A call that did not do what it was asked for, and what to do next."""
    text = answers.shortened(text, MAX_FAILURE)
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)


def _by(ctx: Context) -> By:
    client = getattr(ctx.session.client_params, "client_info", None)
    name = client and " ".join(client.name.split())[:100]
    return {"surface": "mcp", "agent": name or None, "session": None}


_COMMAND = re.compile(r"`memory (\w+)[^`]*`")
_NAMES = {
    command: f"memory_{command}"
    for command in (
        "search",
        "capture",
        "update",
        "supersede",
        "related",
        "raw",
        "context",
        "feedback",
        "brief",
    )
} | {"index": "memory_reindex", "show": "memory_get"}


def what_next(fault: MemoryFault, names: Mapping[str, str] = _NAMES) -> str:
    """A fault in a sentence or two. An agent has tools where its owner has commands: `names`
    gives the one for the other."""
    from .index.connection import NoIndex

    said = fault.error.rstrip(".")
    if isinstance(fault, NoIndex):
        return (
            f"{said}; {names['capture']} writes the first card and makes one; its owner imports "
            "what there is with `memory-import FOLDER`."
        )
    if isinstance(fault, Ambiguous):
        found = "\n".join(answers.shortened(one, 300) for one in fault.candidates[:20])
        return f"{said}; call again with the ref or the path of one of them:\n{found}"
    hint = _COMMAND.sub(lambda found: names.get(found[1], found[0]), fault.hint)
    if isinstance(fault, NotFound) and not hint:
        hint = f"{names['search']} finds the cards that are there"
    if not hint:
        return f"{said}."
    return f"{said}; {hint}" if hint.endswith("...") else f"{said}; {hint.rstrip('.')}."


# Arguments. Models send null for what they leave out, numbers as text, and lists with commas.


def _as_text(value: object) -> object:
    return str(value) if isinstance(value, (int, float)) and value is not True else value


def _given(schema: dict[str, object], description: str) -> Any:
    known = schema | ({"description": description} if description else {})
    return WithJsonSchema(known)


def _slim(schema: dict[str, object]) -> None:
    # That null stands for nothing is no news to a model.
    if schema.get("default", "") is None:
        del schema["default"]


def needed(description: str) -> Any:
    """A text that has to be given."""
    return Annotated[
        str, BeforeValidator(_as_text), Field(description=description, json_schema_extra=_slim)
    ]


def text(description: str = "") -> Any:
    """A text that may be left out."""
    return Annotated[
        str | None,
        BeforeValidator(_as_text),
        _given({"type": "string"}, description),
        Field(json_schema_extra=_slim),
    ]


def number(description: str = "", type: type = int) -> Any:
    """A number that may be left out."""
    name = "integer" if type is int else "number"
    return Annotated[
        type | None, _given({"type": name}, description), Field(json_schema_extra=_slim)
    ]


def flag(description: str = "") -> Any:
    """Yes or no; no when it is left out."""
    return Annotated[
        bool | None, _given({"type": "boolean"}, description), Field(json_schema_extra=_slim)
    ]


def words(description: str = "") -> Any:
    """A list of texts, or a text with commas between them."""
    return Annotated[
        list[str] | str | None,
        _given({"type": "array", "items": {"type": "string"}}, description),
        Field(json_schema_extra=_slim),
    ]


# Results. A key that says nothing is left out.


class Hit(TypedDict):
    id: int
    ref: str
    path: NotRequired[str]
    title: str
    kind: str
    source: str
    score: float
    matched: str
    coverage: float
    snippet: str
    highlights: list[list[int]]
    expired: NotRequired[bool]
    superseded_by: NotRequired[str]


class Hits(TypedDict):
    query: str
    tier: str | None
    count: int
    hits: list[Hit]
    notice: str | None


class Page(TypedDict):
    id: int
    ref: str
    title: str
    text: str
    offset: int
    length: int
    returned: int
    has_more: bool
    next_offset: int | None


class Card(Page):
    path: str
    source: str
    kind: str


class Raw(Page):
    sha256: str
    part: int
    parts: int


class Link(TypedDict):
    type: str
    outgoing: bool


class Linked(TypedDict):
    id: int
    ref: str
    title: str
    kind: str
    source: str
    path: str
    depth: int
    type: str
    outgoing: bool
    via: str
    also: NotRequired[list[Link]]
    superseded_by: NotRequired[str]


class Related(TypedDict):
    ref: str
    title: str
    depth: int
    count: int
    cards: list[Linked]
    next_offset: int | None


class Changed(TypedDict):
    status: str
    id: int | None
    ref: str | None
    path: str | None
    indexed: bool
    version: NotRequired[int]
    reason: NotRequired[str]
    hint: NotRequired[str]
    warnings: NotRequired[list[str]]


class Figures(TypedDict):
    cards: int
    by_kind: dict[str, int]
    by_source: dict[str, int]
    by_project: dict[str, int]
    updated_last: str | None
    index_bytes: int


class Synced(TypedDict):
    added: int
    updated: int
    moved: int
    removed: int
    unchanged: int
    skipped: list[dict[str, str]]
    seconds: float


class Item(TypedDict):
    ref: str
    view: str
    flags: NotRequired[list[str]]


class LeftOut(TypedDict):
    ref: str
    code: str


class Given(TypedDict):
    open: bool
    question: str
    cohort: str | None
    text: str
    tokens: int
    budget: int
    items: list[Item]
    left_out: list[LeftOut]
    reasons: NotRequired[list[str]]
    refused: NotRequired[str]


class Verdicts(TypedDict):
    cohort: str
    adopted: list[str]
    rejected: list[str]
    ignored: list[str]
    unchanged: list[str]


class Briefed(TypedDict):
    text: str
    tokens: int
    budget: int


# The tools of a memory.

_REF = "A ref (D_0001), path or exact title."
_PAGE = "Characters; about 6000 at the most."
_TYPE = "caused_by, implements, refers_to, supersedes or any word."


def memory_search(
    memory: "Memory",
    by: By,
    query: needed("Names, identifiers, keywords; any language."),
    limit: number("1 to 20.") = 5,
    kind: text("Only this kind: decision, mistake, fact, ...") = None,
    source: text("Only this source.") = None,
    project: text("Only this project.") = None,
    tags: words("Only cards with all of these.") = None,
    since: text("Only updated since: 2026-09-30, or 30d.") = None,
    superseded: flag("Let replaced cards in.") = False,
    as_of: text("The cards that held on that day.") = None,
) -> Answer:
    """Search what was decided, learned and broken before. Call it before you answer from memory,
    decide or debug. Search by names, identifiers, error codes and keywords, two or three at a
    time ('阿里云 私钥', 'getUserById timeout'), not by whole questions. Each hit has a ref, how it
    matched (all: every term; any: some) and a snippet; read the promising ones with memory_get
    before you rely on them. No hit: try fewer or other words.
    """
    from .fields import words as listed

    result = memory.search(
        query,
        limit=limit,
        kind=kind,
        source=source,
        project=project,
        tags=listed(tags),
        since=since,
        superseded=superseded,
        as_of=as_of,
        by=by,
    )
    return answers.search(result)


def memory_context(
    memory: "Memory",
    by: By,
    question: needed("The whole question or task."),
    budget: number("Tokens.") = 1500,
    project: text("Only this project.") = None,
) -> Answer:
    """Get what is fit to rely on for a question or task in one call: the cards that answer it,
    without stale, superseded and unsourced ones. For a name use memory_search. Tell the outcome
    with memory_feedback.
    """
    from .context.pack import mcp_call

    given = memory.context(
        question,
        budget=budget,
        project=project,
        max_chars=answers.MAX_PACK // 2,
        read=mcp_call,
        by=by,
    )
    return answers.context(given)


def memory_feedback(
    memory: "Memory",
    by: By,
    cohort: needed("From memory_context."),
    adopted: words("Refs you relied on.") = None,
    rejected: words("Refs that were wrong.") = None,
    ignored: words("Refs that did not matter.") = None,
) -> Answer:
    """Say which cards of a memory_context were of use, when the work is done."""
    from .fields import words as listed

    return answers.feedback(
        memory.feedback(cohort, listed(adopted), listed(rejected), listed(ignored), by=by)
    )


def memory_brief(memory: "Memory", by: By, project: text("Only this project.") = None) -> Answer:
    """Learn at the start what is open: handoffs, signals, decisions."""
    found = memory.brief(
        project=project, max_chars=answers.MAX_PACK // 2, call="memory_get with its ref"
    )
    return answers.brief(found)


def memory_get(
    memory: "Memory",
    by: By,
    id: needed(_REF),
    offset: number("The next_offset of the page before.") = 0,
    max_chars: number(_PAGE) = 0,
    full: flag("As max_chars 0.") = False,
    as_of: text("The text of that day.") = None,
) -> Answer:
    """Read a card that memory_search found. A long card comes in pages: while has_more is true,
    call again with offset = next_offset.
    """
    shown = memory.show(id, offset=offset, max_chars=max_chars, full=full, as_of=as_of, by=by)
    return answers.card(shown)


def memory_raw(
    memory: "Memory",
    by: By,
    id: needed("The ref of the card, as D_0001."),
    offset: number("Begin at this character.") = 0,
    max_chars: number(_PAGE) = 0,
    part: number("Which one, when there are several.") = 1,
) -> Answer:
    """Read the long original that is kept beside a card, a page at a time, when the card says that
    it has one and is not enough.
    """
    return answers.raw(memory.raw(id, offset=offset, max_chars=max_chars, part=part, by=by))


def memory_related(
    memory: "Memory",
    by: By,
    id: needed(_REF),
    depth: number("How many links far, 1 to 5.") = 1,
    offset: number("Begin at this card.") = 0,
) -> Answer:
    """Show the cards that a card is linked with, in both directions: causes, consequences, what
    replaced it.
    """
    return answers.related(memory.related(id, depth=max(1, min(5, depth))), offset)


def memory_stats(memory: "Memory", by: By) -> Answer:
    """Count the cards by kind, source and project. Call it to learn what this memory holds and
    which filters memory_search can use.
    """
    return answers.stats(memory.stats().to_dict())


def memory_capture(
    memory: "Memory",
    by: By,
    title: needed("One line that names the subject."),
    body: needed("Markdown: the fact, why, and what it rests on."),
    kind: text("decision, mistake, fact, knowledge, issue, code_change, handoff, note, ...") = None,
    tags: words() = None,
    keywords: words("Other words that one may search for.") = None,
    summary: text("One or two sentences.") = None,
    project: text() = None,
    relates: words("Links as TYPE:REF, like caused_by:X_0002.") = None,
    confidence: number("0 to 1: how sure it is.", float) = None,
    sensitivity: text("public, internal, private; secret is kept out of every server.") = None,
    valid_until: text("Date on which it ceases to hold.") = None,
    raw: text("A long original to keep beside the card.") = None,
    reject_secrets: flag("Refuse what looks like a credential.") = False,
) -> Answer:
    """Write a card, when something was decided, learned, fixed or agreed on that a later session
    needs. Search first: correct an existing card with memory_update, replace an outdated one
    with memory_supersede. One fact a card, self-contained, with names and identifiers in full;
    no credentials.
    """
    given = _said(
        kind=kind, tags=tags, keywords=keywords, summary=summary, project=project,
        confidence=confidence, sensitivity=sensitivity, valid_until=valid_until, raw=raw,
    )  # fmt: skip
    made = memory.capture(
        title,
        body,
        relates=relations(relates),
        reject_secrets=reject_secrets,
        agent=by["agent"],
        by=by,
        **given,
    )
    return answers.change(made)


def memory_supersede(
    memory: "Memory",
    by: By,
    id: needed("The card that no longer holds: " + _REF),
    title: needed("Title of the new card."),
    body: needed("Its Markdown text."),
    kind: text("That of the old card unless given.") = None,
    tags: words() = None,
    keywords: words() = None,
    summary: text() = None,
    relates: words("Links as TYPE:REF.") = None,
    reject_secrets: flag() = False,
) -> Answer:
    """Replace a card whose fact has changed by a new one. The old card stays readable, is linked
    with the new one, and leaves the searches.
    """
    given = _said(kind=kind, tags=tags, keywords=keywords, summary=summary)
    made = memory.supersede(
        id,
        title,
        body,
        relates=relations(relates),
        reject_secrets=reject_secrets,
        agent=by["agent"],
        by=by,
        **given,
    )
    return answers.change(made)


def memory_update(
    memory: "Memory",
    by: By,
    id: needed(_REF),
    body: text("The whole new text.") = None,
    title: text() = None,
    kind: text() = None,
    summary: text() = None,
    tags: words("All of them, not only new ones.") = None,
    keywords: words() = None,
    project: text() = None,
    confidence: number("0 to 1.", float) = None,
    sensitivity: text() = None,
    valid_until: text("Date.") = None,
    reject_secrets: flag() = False,
) -> Answer:
    """Correct a card that is wrong or incomplete. Only what is given changes, an empty text takes
    a field away; the earlier text is kept. When the fact itself has changed, use
    memory_supersede.
    """
    changes = _said(
        title=title, kind=kind, summary=summary, tags=tags, keywords=keywords, project=project,
        confidence=confidence, sensitivity=sensitivity, valid_until=valid_until,
    )  # fmt: skip
    made = memory.update(id, body=body, reject_secrets=reject_secrets, by=by, **changes)
    return answers.change(made)


def memory_link(
    memory: "Memory",
    by: By,
    id: needed("The card that the link is written into: " + _REF),
    type: needed(_TYPE),
    target: needed("The card that it leads to."),
) -> Answer:
    """Link two cards that explain each other: the cause of a mistake, the decision that code
    implements.
    """
    return answers.change(memory.link(id, type, target, by=by))


def memory_reindex(
    memory: "Memory", by: By, rebuild: flag("Build it anew from nothing.") = False
) -> Answer:
    """Bring the index in step with the files. Only needed after files were changed by hand, or
    when the index is missing: what tools write is indexed at once.
    """
    return answers.synced(memory.index(rebuild=rebuild).to_dict())


def _said(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def relations(given: list[str] | str | None) -> list[tuple[str, str]]:
    """`TYPE:REF` as core takes it. Raises MemoryFault."""
    from .fields import words as listed

    found = []
    for one in listed(given):
        type, _, reference = one.partition(":")
        if not type.strip() or not reference.strip():
            raise MemoryFault(f"{one!r} is no link", "write TYPE:REF, as caused_by:X_0002")
        found.append((type.strip(), reference.strip()))
    return found


_READS = annotations(reads=True)

TOOLS: tuple[Tool, ...] = (
    Tool(memory_search, Hits, ("READ",), _READS),
    Tool(memory_context, Given, ("READ",), _READS),
    Tool(memory_get, Card, ("READ",), _READS),
    Tool(memory_capture, Changed, ("ADD",), annotations(repeats=True)),
    Tool(memory_update, Changed, ("CHANGE",), annotations(destroys=True, repeats=True)),
    Tool(memory_supersede, Changed, ("ADD", "CHANGE"), annotations()),
    Tool(memory_link, Changed, ("CHANGE",), annotations(repeats=True)),
    Tool(memory_related, Related, ("READ",), _READS),
    Tool(memory_raw, Raw, ("READ",), _READS),
    Tool(memory_brief, Briefed, ("READ",), _READS),
    Tool(memory_feedback, Verdicts, ("ADD",), annotations(repeats=True)),
    Tool(memory_stats, Figures, ("READ",), _READS),
    Tool(memory_reindex, Synced, ("CHANGE",), annotations(repeats=True)),
)
