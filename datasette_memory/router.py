"""The four tools of Agent Memory Router, under their own names, with answers as it gave them.

Each answer is JSON text: a record is `{id, type, title, keywords, created_at, update_version}`,
and `next_step` says what to do now. What it calls an id is a ref here, a type is a kind.
"""

import functools
import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from .answers import MAX_ANSWER, Answer, change, fitted, shortened, size
from .errors import MemoryFault
from .text.window import MAX_CHARS, Window
from .tools import By, Tool, annotations, needed, number, text, what_next, words

if TYPE_CHECKING:
    from .memory import Memory

#: Its types, where a kind has another name.
_KINDS = {"other": "misc"}


def _as_json(function: Callable[..., tuple[dict[str, Any], bool]]) -> Callable[..., Answer]:
    """The tool that answers with the JSON of what `function` gives; faults too."""

    @functools.wraps(function)
    def tool(memory: "Memory", by: By, **arguments: Any) -> Answer:
        try:
            found, failed = function(memory, by, **arguments)
        except MemoryFault as fault:
            found, failed = {"error": fault.error, "next_step": what_next(fault, NAMES)}, True
        text = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
        return Answer(text, found, failed)

    return tool


@_as_json
def search_memory(
    memory: "Memory",
    by: By,
    keyword: needed("Names, identifiers, keywords."),
    type: text("Only this type: decision, code_change, issue, note, reference, session.") = None,
    limit: number("1 to 20.") = 5,
):
    """Search the index of what was decided, changed and broken before. Call it before you start a
    task, decide or debug. Search by names, identifiers and keywords, not by whole questions. It
    gives short records; read one with read_raw_data.
    """
    result = memory.search(keyword, kind=_kind(type), limit=limit, by=by)
    cards = _cards(memory, {hit.id: hit.ref for hit in result.hits})
    records = [_record(card) for card in cards]
    found = {"keyword": shortened(keyword, 100), "count": len(records), "results": records}
    if records:
        found["next_step"] = "Read the record that fits with read_raw_data(record_id)."
    else:
        found["next_step"] = "Nothing found: try fewer or other keywords."
    while size(found) > MAX_ANSWER:
        found["results"].pop()
        found["count"] = len(found["results"])
        found["next_step"] = "There are more: ask for fewer, or for more precise keywords."
    return found, False


@_as_json
def read_raw_data(
    memory: "Memory",
    by: By,
    record_id: needed("The id of a record, as D_0001."),
    max_chars: number("Characters; at most what one answer holds (about 6000).") = 0,
    offset: number("Begin at this character, to read on.") = 0,
):
    """Read the whole text of one record that search_memory found. Call it only for a record that
    fits; while truncated is true, read on from the offset in next_step.
    """
    next_step = "This is all of it."
    try:
        # What was too long for a card is its original. It counts as a read, as a show does.
        raw = memory.raw(record_id, offset=offset, max_chars=max_chars, by=by)
    except MemoryFault as fault:
        shown = memory.show(record_id, offset=offset, max_chars=max_chars, by=by)
        card, window = shown.card, shown.window
        if isinstance(card["refs"], dict) and card["refs"].get("evidence"):
            next_step = f"This is only the card; its original cannot be read: {fault.error}."
    else:
        window = Window(str(raw["text"]), raw["offset"], raw["length"])
        (card,) = _cards(memory, {raw["id"]: raw["ref"]})
    relations = [
        {"target_id": shortened(one["target"], 100), "relation_type": shortened(one["type"], 50)}
        for one in card["relations"][:20]
    ]
    found = _record(card) | {"relations": relations, "content": "", "total_chars": 10**9}
    window = fitted(window, max(100, MAX_ANSWER - 300 - size(found)))
    found |= {
        "content": window.text,
        "total_chars": window.length,
        "truncated": window.has_more,
        "next_step": next_step,
    }
    if window.has_more:
        found["next_step"] = (
            f"{window.length - (window.next_offset or 0)} characters are left: read_raw_data with "
            f"record_id {found['id']}, offset {window.next_offset}."
        )
    return found, False


@_as_json
def save_memory(
    memory: "Memory",
    by: By,
    type: needed("decision, code_change, issue, note, reference, session or other."),
    title: needed("One line; all that a search shows."),
    content: needed("The whole text: background, what was done, why, what is left."),
    keywords: words("Other words to find it by.") = None,
    relates_to: words("Ids of records that it refers to.") = None,
):
    """Save a decision, a change, a problem and its solution that a later session needs. Search
    first. Put other ways to say it into keywords. No credentials.
    """
    from .fields import words as listed

    made = memory.capture(
        title,
        content[:MAX_CHARS],
        kind=_kind(type),
        keywords=keywords,
        relates=[("refers_to", one) for one in listed(relates_to)],
        raw=content if len(content) > MAX_CHARS else None,
        agent=by["agent"],
        by=by,
    )
    answer = change(made)
    found: dict[str, Any] = {"id": made.ref, "status": made.status}
    if made.id is not None:
        (card,) = _cards(memory, {made.id: made.ref})
        found = _record(card) | {"status": made.status}
    lines = answer.text.splitlines()[1:]
    found["next_step"] = " ".join(lines) or "Saved. search_memory finds it from now on."
    if answer.failed:
        found = {"error": made.reason or made.status, **found}
    return found, answer.failed


@_as_json
def link_memory(
    memory: "Memory",
    by: By,
    source_id: needed("The id of a record."),
    target_id: needed("The id of the record that it leads to."),
    relation_type: needed("supersedes, caused_by, implements or any word."),
):
    """Make a directed relation from one record to another, as a decision that supersedes one."""
    made = memory.link(source_id, relation_type, target_id, by=by)
    answer = change(made)
    found = {
        "source_id": made.ref or source_id,
        "target_id": target_id,
        "relation_type": relation_type,
        "status": made.status,
        "next_step": " ".join(answer.text.splitlines()[1:]) or "The link is there.",
    }
    return found, answer.failed


def _cards(memory: "Memory", refs: Mapping[int, str | None]) -> list[dict[str, Any]]:
    """The cards with these row ids. Row ids are given out again by a rebuild; one that came in
    between is told. Raises MemoryFault."""
    cards = memory.cards(refs)
    if [card["ref"] for card in cards] != list(refs.values()):
        raise MemoryFault("the index was built anew in the middle of this", "call once more")
    return cards


def _record(card: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": card["ref"],
        "type": card["kind"],
        "title": shortened(card["title"], 150),
        "keywords": shortened(",".join(card["keywords"] or card["tags"]), 150),
        "created_at": card["created"],
        "update_version": card["version"],
    }


def _kind(type: str | None) -> str | None:
    return _KINDS.get(type, type) if type else None


#: What a fault calls the tools that are meant.
NAMES = {"search": "search_memory", "capture": "save_memory", "raw": "read_raw_data"}

TOOLS: tuple[Tool, ...] = (
    Tool(search_memory, None, ("READ",), annotations(reads=True)),
    Tool(read_raw_data, None, ("READ",), annotations(reads=True)),
    Tool(save_memory, None, ("ADD",), annotations(repeats=True)),
    Tool(link_memory, None, ("CHANGE",), annotations(repeats=True)),
)
