"""Markdown and snippets to HTML that is safe to show: cards are text that anybody may have written.

Two locks on one door: the Markdown renderer passes no raw HTML through, and nh3 then keeps only
the tags, attributes and URL schemes named here. Nothing that is shown makes the browser ask the
network for anything by itself: an image would tell its server that the card was read, so images
become links.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from html import escape
from urllib.parse import unquote

import nh3
from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline

MAX_RENDERED = 200_000
"""Characters of a body that are rendered; a longer one is cut there, and says so."""

_SCHEMES = {"http", "https", "mailto"}
_TAGS = set(
    "a p br hr h1 h2 h3 h4 h5 h6 ul ol li blockquote pre code em strong s "
    "table thead tbody tr th td".split()
)
_ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}}
_REL = "noopener noreferrer nofollow"

Resolve = Callable[[str], str | None]
"""From a link's target as the card has it (a wikilink's or a relative path) to a URL, or None."""


def markdown_html(text: str, resolve: Resolve | None = None) -> str:
    """Markdown as HTML, safe to put into a page as it stands.

    CommonMark with tables, strikethrough and wikilinks. `resolve` finds the page of another card;
    a link inside the vault that it does not know stays as text.
    """
    cut = len(text) > MAX_RENDERED
    html = _parser().render(text[:MAX_RENDERED], {"resolve": resolve or (lambda target: None)})
    clean = nh3.clean(html, tags=_TAGS, attributes=_ATTRIBUTES, url_schemes=_SCHEMES, link_rel=_REL)
    if cut:
        clean += f"<p><em>Shown here are the first {MAX_RENDERED:,} of {len(text):,} characters.</em></p>"
    return clean


def snippet_html(snippet: str) -> str:
    """The HTML that `memory_snippet()` made, with nothing alive but its matches.

    The value comes out of SQL that anybody may have written, so it is cleaned, not trusted.
    Datasette's style sheet leaves `<b>` without any look, hence `<mark>`.
    """
    clean = nh3.clean(snippet, tags={"b"}, attributes={})
    return clean.replace("<b>", "<mark>").replace("</b>", "</mark>")


def excerpt(text: str, length: int = 140) -> str:
    """The beginning of a Markdown text as plain text in one line, of at most `length` characters
    and an ellipsis where it was cut."""
    window = text[: length * 6]
    words: list[str] = []
    for token in _parser().parse(window, {"resolve": lambda target: None}):
        if token.type == "inline":
            words.extend(_plain(token.children or []))
            words.append(" ")
        elif token.type in ("fence", "code_block"):
            words.extend((token.content, " "))
    plain = re.sub(r"\s+", " ", "".join(words)).strip()
    if len(plain) > length:
        return plain[:length].rstrip() + "…"
    return plain + "…" if len(window) < len(text) else plain


def _plain(tokens) -> list[str]:
    words = []
    for token in tokens:
        if token.type in ("text", "code_inline", "wikilink"):
            words.append(token.content)
        elif token.type in ("softbreak", "hardbreak"):
            words.append(" ")
        elif token.type == "image":
            words.extend(_plain(token.children or []))
    return words


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.inline.ruler.before("link", "wikilink", _wikilink)
    parser.add_render_rule("wikilink", _render_wikilink)
    parser.add_render_rule("image", _render_image)
    parser.add_render_rule("link_open", _render_link_open)
    parser.add_render_rule("link_close", _render_link_close)
    return parser


_WIKILINK = re.compile(r"!?\[\[([^\[\]\n]{1,1000})\]\]")


def _wikilink(state: StateInline, silent: bool) -> bool:
    if not state.src.startswith(("[[", "![["), state.pos):
        return False
    found = _WIKILINK.match(state.src, state.pos, state.posMax)
    if not found:
        return False
    if not silent:
        target, _, alias = found[1].partition("|")
        target = target.rstrip("\\").strip()
        token = state.push("wikilink", "", 0)
        token.meta = {"target": target.partition("#")[0].strip(), "written": found[0]}
        token.content = alias.strip() or target
    state.pos = found.end()
    return True


def _render_wikilink(renderer, tokens, index, options, env) -> str:
    token = tokens[index]
    url = env["resolve"](token.meta["target"])
    if url is None:
        return escape(token.meta["written"])
    return f'<a href="{escape(url)}">{escape(token.content)}</a>'


def _render_image(renderer, tokens, index, options, env) -> str:
    token = tokens[index]
    source = str(token.attrs.get("src", ""))
    label = escape(renderer.renderInlineAsText(token.children or [], options, env) or source)
    if source.lower().startswith(("http://", "https://")):
        return f'<a href="{escape(source)}">{label}</a>'
    return label


def _render_link_open(renderer, tokens, index, options, env) -> str:
    token = tokens[index]
    url = str(token.attrs.get("href", ""))
    if not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", url):
        # Inside the vault: relative to the card's file, which means nothing to the browser.
        url = env["resolve"](unquote(re.split("[#?]", url, maxsplit=1)[0])) or ""
    # The close tag has to know; links do not nest in CommonMark.
    env["linked"] = bool(url)
    if not url:
        return ""
    title = token.attrs.get("title")
    title = f' title="{escape(str(title))}"' if title else ""
    return f'<a href="{escape(url)}"{title}>'


def _render_link_close(renderer, tokens, index, options, env) -> str:
    return "</a>" if env["linked"] else ""
