"""What people read: hits, a card, figures and paths as safe lines of text."""

import os
from collections.abc import Iterable, Mapping

from .output import Style, marked, one_line, safe

_INDENT = "   "


def hits(result, style: Style) -> str:
    """The hits of a `SearchResult`, best first, and its notice."""
    blocks = [_hit(number, hit, style) for number, hit in enumerate(result.hits, 1)]
    if result.notice:
        blocks.append(style.dim(safe(result.notice)))
    return "\n\n".join(blocks)


def _hit(number: int, hit, style: Style) -> str:
    share = "" if hit.matched.startswith(("all", "vector")) else f" {round(100 * hit.coverage)} %"
    facts = [hit.ref, hit.kind, f"{hit.source}/{hit.path}", hit.matched + share]
    line = style.dim(" · ".join(one_line(fact) for fact in facts))
    warnings = []
    if hit.superseded_by:
        warnings.append(f"superseded by {one_line(hit.superseded_by)}")
    if hit.expired:
        warnings.append("expired")
    for warning in warnings:
        line += style.dim(" · ") + style.warn(warning)
    lines = [f"{number}. {style.title(one_line(hit.title))}", _INDENT + line]
    if snippet := marked(hit.snippet, hit.highlights, style.match):
        lines.append(_INDENT + snippet)
    return "\n".join(lines)


def card(shown, next_command: str, style: Style) -> str:
    """A `Shown`: a header, the window of its text, and what is left, with the command for it."""
    lines = [style.title(one_line(str(shown.card["title"])))]
    lines += _header(shown.card, style)
    window = shown.window
    if text := safe(window.text).strip("\n"):
        lines += ["", text]
    end = _end(window, next_command)
    return "\n".join([*lines, "", style.dim(end)] if end else lines)


def _header(card: Mapping[str, object], style: Style) -> Iterable[str]:
    place = f"{card['source']}/{card['path']}"
    yield style.dim(" · ".join(one_line(str(fact)) for fact in (card["ref"], card["kind"], place)))
    facts = []
    for name in ("project", "agent", "session"):
        if card[name]:
            facts.append(f"{name} {card[name]}")
    for name in ("created", "updated"):
        if card[name]:
            facts.append(f"{name} {str(card[name])[:10]}")
    for name in ("valid_from", "valid_until"):
        if card[name]:
            facts.append(f"{name.replace('_', ' ')} {card[name]}")
    facts.append(f"confidence {card['confidence']:g}")
    if card["sensitivity"] != "internal":
        facts.append(str(card["sensitivity"]))
    if card["version"] != 1:
        facts.append(f"version {card['version']}")
    yield style.dim(" · ".join(one_line(fact) for fact in facts))
    if tags := card["tags"]:
        yield style.dim(one_line("tags " + ", ".join(map(str, tags))))
    if card["expired"]:
        yield style.warn("expired")
    said = []
    for relation in card["relations"]:
        title = relation["title"]
        told = "no such card" if title is None else title
        said.append((relation["type"], relation["target"], f" ({told})"))
    replacement = ("superseded_by", card["superseded_by"])
    if card["superseded_by"] and replacement not in [link[:2] for link in said]:
        said.insert(0, (*replacement, ""))
    # A relation may stand in the frontmatter and in the text.
    for type, target, told in dict.fromkeys(said):
        line = one_line(f"{type.replace('_', ' ')} {target}{told}")
        yield style.warn(line) if type == "superseded_by" else style.dim(line)


def _end(window, next_command: str) -> str:
    """What a reader has to know about the rest of the text; empty when there is all of it."""
    length = f"{window.length:,}"
    if window.has_more:
        at = window.next_offset
        left = window.length - at
        return (
            f"{window.returned:,} of {length} characters shown, {left:,} left; "
            f"next offset {at}:\n  {next_command}"
        )
    if window.offset and not window.returned:
        return f"Nothing left: the text has {length} characters."
    if window.offset:
        return f"The end: characters {window.offset:,} to {length} shown, 0 left."
    return ""


def stats(figures, db: object, style: Style) -> str:
    """The figures of an index (`Stats`)."""
    rows: list[tuple[str, str]] = [
        ("index", f"{db}, {size(figures.index_bytes)}"),
        ("cards", f"{figures.cards:,}, {figures.superseded:,} of them superseded"),
    ]
    for name, groups in (
        ("kinds", figures.by_kind),
        ("sources", figures.by_source),
        ("projects", figures.by_project),
    ):
        if groups:
            rows.append((name, _groups(groups)))
    rows += [
        ("tags", f"{figures.tags:,}"),
        ("links", f"{figures.links:,}, {figures.broken_links:,} of them broken"),
        ("faults", f"{figures.faults:,} files"),
        ("last change", figures.updated_last or "none"),
        ("last import", figures.synced_last or "none"),
    ]
    return table(rows, style)


def _groups(groups: Mapping[str, int], shown: int = 12) -> str:
    named = [f"{name} {count:,}" for name, count in list(groups.items())[:shown]]
    if len(groups) > shown:
        named.append(f"and {len(groups) - shown:,} more (--json names them)")
    return ", ".join(named)


_DECIDED = {"option": "by option", "default": "default"}


def paths(home, style: Style) -> str:
    """The paths in force (`Home`), what decided each, and whether it is there."""
    rows = []
    for name in ("home", "db", "vault", "config"):
        path = getattr(home, name)
        remarks = [] if os.path.exists(path) else ["not there yet"]
        if name in home.decided:
            decided = home.decided[name]
            remarks.insert(0, _DECIDED.get(decided, f"from {decided}"))
        rows.append((name, f"{path}" + (f"  ({', '.join(remarks)})" if remarks else "")))
    for source in home.sources:
        rows.append(("source", f"{source.get('name', '')}  {source['path']}".strip()))
    return table(rows, style)


def table(rows: Iterable[tuple[str, str]], style: Style) -> str:
    """Lines of a name and a value, the values below each other."""
    rows = list(rows)
    width = max(len(name) for name, _ in rows) + 2
    return "\n".join(style.dim(name.ljust(width)) + one_line(value) for name, value in rows)


def size(number: int) -> str:
    """A number of bytes for people: kB and MB are powers of 1000."""
    if number < 1000:
        return f"{number} bytes"
    for unit in ("kB", "MB", "GB"):
        number /= 1000
        if number < 1000 or unit == "GB":
            return f"{number:.1f} {unit}"
    raise AssertionError
