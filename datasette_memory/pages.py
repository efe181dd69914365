"""What the pages of a memory show: cells of tables and queries, and one card as a whole.

Thin: strings from rows, links between pages. Everything that is returned as Markup is escaped or
went through `render`.
"""

import json
import re
from collections.abc import Mapping
from urllib.parse import quote, urlencode

from datasette.utils import to_css_class
from jinja2 import BaseLoader, PackageLoader, TemplateNotFound
from markupsafe import Markup, escape

from . import attached, render
from .index.neighbours import Neighbour


class CardTemplates(BaseLoader):
    """Serves the templates that Datasette looks for by the names of a database and a table, for
    each memory, whatever that is called. The user's own templates come before them."""

    _files = {
        "_table-row-{}-cards.html": "memory_card.html",
        "_table-table-{}-cards.html": "memory_cards.html",
        "database-{}.html": "memory_database.html",
    }

    def __init__(self, datasette) -> None:
        self.datasette = datasette
        self.package = PackageLoader("datasette_memory", "templates")

    def get_source(self, environment, template):
        for database in attached.known(self.datasette):
            for name, file in self._files.items():
                if template == name.format(to_css_class(database)):
                    return self.package.get_source(environment, file)
        raise TemplateNotFound(template)

    def list_templates(self):
        return []  # 0.65 lists them at the start, to find pages among them; these are none


COLUMNS_SHOWN = {"id", "ref", "title", "kind", "summary", "project", "tags", "source", "updated"}
"""The columns of `cards` that its table page begins with; the others are one click away."""

_CARD_VIEWS = {"cards_never_read", "cards_superseded", "broken_links"}

_FACTS = (
    "ref kind project source path created updated valid_from valid_until ttl confidence "
    "sensitivity priority version agent session keywords aliases"
).split()


def cards_url(datasette, database: str, **arguments: str) -> str:
    url = datasette.urls.table(database, "cards")
    return f"{url}?{urlencode(arguments, quote_via=quote)}" if arguments else url


def card_url(datasette, database: str, card_id: int) -> str:
    return f"{datasette.urls.table(database, 'cards')}/{int(card_id)}"


def card_cell(datasette, database: str, column: str, value, row) -> Markup | str | None:
    """One cell of the table `cards`; None leaves it to Datasette."""
    if column in ("body", "summary") and isinstance(value, str):
        return render.excerpt(value) or None
    if column == "title" and isinstance(value, str) and "id" in row.keys():
        return _link(card_url(datasette, database, row["id"]), value)
    if column in ("created", "updated") and isinstance(value, str):
        return moment(value)
    if column == "superseded_by" and value:
        return _link(cards_url(datasette, database, ref=value), value)
    if column == "tags":
        return tag_links(datasette, database, _list(value))
    if column in ("keywords", "aliases"):
        return ", ".join(_list(value)) or None
    if column in ("refs", "extra") and value in ("{}", "[]"):
        return Markup("&nbsp;")
    return None


def query_cell(datasette, database: str, table: str | None, column: str, value, row):
    """One cell of a query or of another table, by the conventions of this project's own queries:
    `snippet` is what memory_snippet() made, and a `title` beside a `card_id` is that card's."""
    if not isinstance(value, str):
        return None
    if column in ("created", "updated", "last_read"):
        return moment(value)
    if column == "snippet":
        return Markup(render.snippet_html(value))
    key = "id" if table in _CARD_VIEWS else "card_id"
    if column == "title" and key in row.keys() and isinstance(row[key], int):
        return _link(card_url(datasette, database, row[key]), value)
    return None


def moment(value: str) -> Markup | None:
    """An ISO 8601 date and time to the minute, in its own zone; the whole of it on hovering."""
    if not re.match(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d", value):
        return None
    return Markup('<time datetime="{0}" title="{0}" style="white-space: nowrap">{1}</time>').format(
        value, value[:16].replace("T", " ")
    )


def tag_links(datasette, database: str, tags: list[str]) -> Markup | None:
    if not tags:
        return None
    return Markup(" ").join(
        Markup('<a class="memory-tag" href="{}">{}</a>').format(
            cards_url(datasette, database, tags__arraycontains=tag), tag
        )
        for tag in tags
    )


def card_page(datasette, database: str, card: Mapping, links: list[Neighbour]) -> dict:
    """What `memory_card.html` shows of one card: `card` is its row."""
    known = {link.target: link.card_id for link in links if link.outgoing and link.card_id}

    def resolve(target: str) -> str | None:
        return card_url(datasette, database, known[target]) if target in known else None

    def other_end(link: Neighbour) -> dict:
        return {
            "type": link.type,
            "label": link.title or link.target,
            "url": link.card_id and card_url(datasette, database, link.card_id),
        }

    superseded_by = card.get("superseded_by")
    return {
        "title": card.get("title") or "",
        "superseded_by": superseded_by
        and _link(cards_url(datasette, database, ref=superseded_by), superseded_by),
        "summary": "" if card.get("summary_from_body") else card.get("summary") or "",
        "tags": tag_links(datasette, database, _list(card.get("tags"))),
        "facts": [(name, _fact(name, card.get(name))) for name in _FACTS if _given(card.get(name))],
        "refs": [(name, _reference(item)) for name, item in _references(card.get("refs"))],
        "extra": _pretty(card.get("extra")),
        "outgoing": [other_end(link) for link in links if link.outgoing],
        "incoming": [other_end(link) for link in links if not link.outgoing],
        "html": Markup(render.markdown_html(str(card.get("body") or ""), resolve)),
    }


def _link(url: str, label: str) -> Markup:
    return Markup('<a href="{}">{}</a>').format(url, label)


def _given(value) -> bool:
    return value not in (None, "", "[]", "{}", 0)


def _fact(name: str, value) -> str:
    return ", ".join(_list(value)) if name in ("keywords", "aliases") else str(value)


def _list(value) -> list[str]:
    """A JSON list of strings; whatever else stands there is one string, or none."""
    try:
        items = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        items = value
    if isinstance(items, list):
        return [str(item) for item in items]
    return [str(items)] if items else []


def _references(value) -> list[tuple[str, str]]:
    try:
        groups = json.loads(value or "{}")
    except (TypeError, ValueError):
        return []
    if not isinstance(groups, dict):
        return []
    return [
        (str(name), str(item))
        for name, items in groups.items()
        for item in (items if isinstance(items, list) else [items])
    ]


def _reference(item: str) -> Markup:
    if item.startswith(("http://", "https://")):
        return Markup('<a href="{0}" rel="noopener noreferrer nofollow">{0}</a>').format(item)
    return escape(item)


def _pretty(value) -> str:
    if not _given(value):
        return ""
    try:
        return json.dumps(json.loads(value), ensure_ascii=False, indent=2)
    except (TypeError, ValueError):
        return str(value)
