"""What an agent is told: each object of `Memory` cut to what a model may be shown, and as text.

Some clients show a model only the text, others only the object: each has to be enough alone. A
client cuts a long answer wherever it likes, so no answer is longer than MAX_ANSWER, and whoever
gets a part is told how to ask for the next one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .text.window import Window

if TYPE_CHECKING:
    from .changes import Change
    from .context.brief import Brief
    from .context.result import Context
    from .memory import Shown
    from .search.hits import SearchResult

#: The longest answer, in characters of its JSON or of its text.
MAX_ANSWER = 7_500

#: Five hits take so many characters of JSON at the most, more hits in proportion.
_FIVE_HITS = 2_000
_ROOM_OF_HIT = _FIVE_HITS // 5
#: What a page leaves free for the line that tells of the next one.
_FOOTER = 200
#: Of what is known about a card beside its text.
_ROOM_OF_CARD = 2_000
#: Of each group in the statistics.
_ROOM_OF_GROUP = 1_500
_ITEMS = 5
_SHORT_TITLE = 60

_ALWAYS = ("id", "ref", "path", "source", "title", "kind")
#: In the order in which they are kept when there is no room for all.
_CARD = (
    "superseded_by", "expired", "updated", "version", "project", "confidence", "sensitivity",
    "valid_from", "valid_until", "created", "tags", "relations", "refs", "keywords", "summary",
    "aliases", "agent", "session", "priority", "ttl", "extra",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Answer:
    """The same thing twice. `failed` when what was asked for was not done."""

    text: str
    data: dict[str, Any]
    failed: bool = False


def size(value: object) -> int:
    """The characters of a value as JSON without blanks."""
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def search(result: SearchResult) -> Answer:
    """The hits of a search, one line each; a snippet is shortened where there is no room."""
    answer = result.to_dict()
    answer["query"] = shortened(result.query, 100)
    hits = [_said(hit) for hit in answer["hits"]]
    envelope = size(answer | {"hits": []}) + len(hits)
    total = min(max(_FIVE_HITS, _ROOM_OF_HIT * len(hits)), MAX_ANSWER - _FOOTER)
    answer["hits"] = [_fitted_hit(hit, (total - envelope) // len(hits)) for hit in hits]
    lines = [_hit_line(hit) for hit in answer["hits"]]
    if not lines:
        lines = [f"No card answers {answer['query']!r}."]
    if result.notice:
        lines.append(result.notice)
    return Answer("\n".join(lines), answer)


def card(shown: Shown) -> Answer:
    """A card with a window of its text."""
    known = _about(shown.card)
    head = [_one_line(f"{known['ref']} {known['title']}"), _one_line(_provenance(known))]
    if relations := known.get("relations"):
        told = (f"{one['type']} {one['target']}" for one in relations)
        head.append(_one_line("relations: " + ", ".join(told)))
    if isinstance(refs := known.get("refs"), dict) and refs.get("evidence"):
        head.append("its long original: memory_raw")
    return _page(known, head, shown.window, "memory_get")


def raw(found: Mapping[str, Any]) -> Answer:
    """A window of the long original of a card."""
    window = Window(str(found["text"]), found["offset"], found["length"])
    known = {key: found[key] for key in ("id", "ref", "title", "sha256", "part", "parts")}
    head = [
        _one_line(f"{known['ref']} {known['title']}, raw text {known['part']}/{known['parts']}")
    ]
    return _page(known, head, window, "memory_raw")


def related(found: Mapping[str, Any], offset: int) -> Answer:
    """The cards that hang together with one, a line each, from number `offset` on."""
    answer = {key: found[key] for key in ("ref", "title", "depth", "count")}
    offset = min(max(0, offset), found["count"])
    left = [_said(one) for one in found["cards"][offset:]]
    cards = _fitting(left, MAX_ANSWER - _FOOTER - size(answer))
    end = offset + len(cards)
    answer |= {"cards": cards, "next_offset": end if len(cards) < len(left) else None}
    lines = [_one_line(f"{found['ref']} {found['title']}")]
    for one in cards:
        links = (one, *one.get("also", ()))
        ways = ", ".join(f"{link['type']} {'->' if link['outgoing'] else '<-'}" for link in links)
        late = f" (superseded by {one['superseded_by']})" if one.get("superseded_by") else ""
        step = f"{'  ' * one['depth']}{ways} "
        lines.append(step + _one_line(f"{one['ref']} {one['title']}{late}"))
    if not found["cards"]:
        lines.append("It is linked with no card.")
    if answer["next_offset"]:
        lines.append(f"[{found['count'] - end} more: memory_related with offset {end}]")
    return Answer("\n".join(lines), answer)


def change(made: Change) -> Answer:
    """What became of a change. One that was refused counts as failed."""
    answer = made.to_dict()
    for key, value in answer.items():
        if isinstance(value, list):
            answer[key] = _fitting(value[:_ITEMS], 800)
    line = " ".join(str(one) for one in (made.status, made.ref, made.path) if one)
    if made.version and made.version > 1:
        line += f" (version {made.version})"
    lines = [line]
    if made.supersedes:
        lines.append(f"It replaces {made.supersedes}.")
    if made.reason:
        lines.append(f"Reason: {made.reason}")
    if made.existing_path:
        lines.append(
            f"Another card has the same title: {made.existing_path}. If this is the same fact, "
            "update that one instead."
        )
    for one in answer.get("similar") or ():
        lines.append(
            f"Nearly the same: {one['ref']} ({one['score']}). If it is the same fact, update that "
            "one instead; if the fact has changed, supersede it."
        )
    if made.metadata_differs:
        lines.append("The card was there already, with other metadata: update it to change them.")
    lines += [f"Warning: {one}" for one in (*answer.get("warnings", ()), made.warning) if one]
    if made.hint:
        lines.append(made.hint)
    return Answer("\n".join(map(_one_line, lines)), answer, made.status in ("rejected", "conflict"))


#: The most that a pack or a brief takes of an answer, in characters: all of it stands there twice.
MAX_PACK = 5_000


def context(given: Context) -> Answer:
    """What an agent may see for a question, and what was left out."""
    told = given.to_dict()
    answer = {name: told[name] for name in ("open", "cohort", "tokens", "budget")}
    answer["question"] = shortened(given.question, 100)
    answer["text"] = given.text
    answer["items"] = [
        {name: one[name] for name in ("ref", "view", "flags") if one[name]} for one in told["items"]
    ]
    left_out = [{"ref": one["ref"], "code": one["code"]} for one in told["left_out"]]
    lines = [given.text] if given.text else []
    if not given.decision.open:
        answer["reasons"] = told["reasons"]
        lines.append("Nothing given: " + " ".join(given.decision.reasons))
    elif given.refused:
        answer["refused"] = given.refused.sentence
        lines.append(f"Nothing given: {given.refused.sentence}")
    elif not given.text:
        lines.append(f"Nothing given: {given.why_nothing()}")
    room = MAX_ANSWER - _FOOTER - size(answer)
    answer["left_out"] = _fitting(left_out, max(0, min(room, _ROOM_OF_GROUP)))
    if left_out:
        said = ", ".join(f"{one['ref']} ({one['code']})" for one in answer["left_out"])
        lines.append(shortened(f"Left out: {said}", _ROOM_OF_GROUP))
    if given.cohort:
        lines.append(f"Cohort {given.cohort}: memory_feedback tells what was of use.")
    return Answer("\n".join(lines), answer)


def feedback(recorded: Mapping[str, Any]) -> Answer:
    """What was recorded of a cohort."""
    said = [
        f"{verdict}: {', '.join(recorded[verdict])}"
        for verdict in ("adopted", "rejected", "ignored", "unchanged")
        if recorded[verdict]
    ]
    return Answer(f"{recorded['cohort']}: " + "; ".join(said), dict(recorded))


def brief(found: Brief) -> Answer:
    """What a new session should know."""
    text = found.text or "No handoff is open, no signal is live, and no card was of use yet."
    return Answer(text, found.to_dict())


def stats(figures: Mapping[str, Any]) -> Answer:
    """The figures of the index; of a long group its largest members, and in `more` how many
    are left out."""
    answer, more = dict(figures), {}
    for name in ("by_kind", "by_source", "by_project"):
        kept = dict(_fitting(figures[name].items(), _ROOM_OF_GROUP))
        if len(kept) < len(figures[name]):
            more[name] = len(figures[name]) - len(kept)
        answer[name] = kept
    if more:
        answer["more"] = more
    lines = [f"{answer['cards']} cards, {answer['superseded']} of them superseded"]
    for name in ("by_kind", "by_source", "by_project"):
        told = ", ".join(f"{key} {count}" for key, count in answer[name].items())
        left = f", and {more[name]} more" if name in more else ""
        if told:
            lines.append(_one_line(f"{name.replace('_', ' ')}: {told}{left}"))
    lines.append(
        f"{answer['tags']} tags, {answer['links']} links, {answer['broken_links']} of them broken, "
        f"{answer['faults']} files with a fault"
    )
    lines.append(f"last updated {answer['updated_last']}, last indexed {answer['synced_last']}")
    return Answer("\n".join(lines), answer)


def synced(found: Mapping[str, Any]) -> Answer:
    """What a run of the index did; of the files that it skipped, the first few."""
    answer = dict(found)
    for key, value in answer.items():
        if isinstance(value, list):
            answer[key] = _fitting(value[:_ITEMS], 1_500)
    names = ("added", "updated", "moved", "removed", "unchanged")
    lines = [", ".join(f"{answer[name]} {name}" for name in names)]
    lines += [f"skipped {one['path']}: {one['reason']}" for one in answer["skipped"]]
    if len(answer["skipped"]) < len(found["skipped"]):
        lines.append(f"{len(found['skipped']) - len(answer['skipped'])} more were skipped")
    lines += [str(note) for note in answer.get("notes", ())]
    return Answer("\n".join(map(_one_line, lines)), answer)


def fitted(window: Window, room: int) -> Window:
    """As much of a window as takes `room` characters of JSON, its quotes included."""
    if size(window.text) <= room:
        return window
    low, high = 0, min(len(window.text), room)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if size(window.text[:middle]) <= room else (low, middle - 1)
    return Window(window.text[:low], window.offset, window.length)


def shortened(text: str, length: int) -> str:
    """`text`, or its beginning and an ellipsis, in at most `length` characters."""
    return text if len(text) <= length else text[: length - 1] + "…"


def _page(known: dict[str, Any], head: list[str], window: Window, tool: str) -> Answer:
    head = [shortened(line, 500) for line in head if line]
    frame = size(known | Window("", 10**9, 10**9).to_dict())
    room = MAX_ANSWER - _FOOTER - max(frame, sum(map(len, head)) + len(head))
    shown = fitted(window, max(room, 100))
    lines = [*head, "", shown.text]
    if shown.has_more:
        lines.append(
            f"[characters {shown.offset} to {shown.next_offset} of {shown.length}; the next page: "
            f"{tool} with id {known['ref']}, offset {shown.next_offset}]"
        )
    elif not shown.text and shown.offset:
        lines.append(f"[the text ends at character {shown.length}]")
    return Answer("\n".join(lines), known | shown.to_dict())


def _about(card: Mapping[str, Any]) -> dict[str, Any]:
    """What is known about a card, without what says nothing, as far as there is room."""
    known = {key: card[key] for key in _ALWAYS}
    for key in _CARD:
        if _tells(value := card.get(key)) and size(known | {key: value}) <= _ROOM_OF_CARD:
            known[key] = value
    return known


def _provenance(known: Mapping[str, Any]) -> str:
    told = [str(known["kind"])]
    told += [str(known[key]) for key in ("project",) if key in known]
    if "updated" in known:
        told.append(f"updated {str(known['updated'])[:10]}")
    if tags := known.get("tags"):
        told.append("tags " + ", ".join(tags))
    if "superseded_by" in known:
        told.append(f"SUPERSEDED by {known['superseded_by']}: read that one")
    if known.get("expired"):
        told.append("EXPIRED")
    return " · ".join(told)


def _said(found: Mapping[str, Any]) -> dict[str, Any]:
    """Without what is None or False: it says nothing, and costs a model's attention."""
    return {
        key: value for key, value in found.items() if value is not None and value is not False
    } | {key: found[key] for key in ("outgoing",) if key in found}


def _fitted_hit(hit: dict[str, Any], room: int) -> dict[str, Any]:
    if size(hit) <= room:
        return hit
    hit = dict(hit)
    if size(hit | {"snippet": "", "highlights": []}) > room - _SHORT_TITLE:
        hit["title"] = shortened(hit["title"], _SHORT_TITLE)
    if size(hit | {"snippet": "", "highlights": []}) > room:
        # The ref is enough to read it.
        del hit["path"]
    snippet, highlights = hit["snippet"], hit["highlights"]
    for length in range(len(snippet), -1, -1):
        hit["snippet"] = shortened(snippet, length) if length else ""
        hit["highlights"] = [span for span in highlights if span[1] < length]
        if size(hit) <= room:
            break
    return hit


def _hit_line(hit: Mapping[str, Any]) -> str:
    marks = [hit["kind"], hit["matched"]]
    if hit.get("expired"):
        marks.append("expired")
    if hit.get("superseded_by"):
        marks.append(f"superseded by {hit['superseded_by']}")
    return _one_line(f"{hit['ref']} {hit['title']} ({', '.join(marks)}) {hit['snippet']}")


def _fitting(items: Iterable[Any], room: int) -> list[Any]:
    """The first items, as many as take `room` characters of JSON."""
    kept: list[Any] = []
    for item in items:
        room -= size(item) + 1
        if room < 0:
            break
        kept.append(item)
    return kept


def _tells(value: object) -> bool:
    return value not in (None, "", [], {}, False)


def _one_line(text: str) -> str:
    return " ".join(text.split())
