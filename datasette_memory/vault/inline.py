"""What the body of a card says by itself: heading, first paragraph, inline tags and links.

This is no Markdown parser: it reads line by line, in time linear to the text, and only as
closely as a title, a summary and links need.
"""

from __future__ import annotations

import re

from ..text.lazy import lazy
from .names import MARKDOWN_SUFFIXES

MAX_TAGS = 100
MAX_TAG = 100
MAX_LINKS = 10_000
MAX_TARGET = 500
MAX_SUMMARY = 200

_FENCE = lazy(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*(`{3,}|~{3,})(.*)")
_ITEM = lazy(r"[ \t]*(?:[-*+]|\d{1,9}[.)])(?:[ \t]+|$)(?:\[[ xX]\][ \t]+)?")


def without_blocks(body: str) -> str:
    """`body` with the lines of code blocks (fenced and indented) emptied and HTML comments cut.

    Lines stay in their places, so that block structure can still be seen.
    """
    fenced = "```" in body or "~~~" in body
    indented = "\n    " in body or "\n\t" in body or body.startswith(("    ", "\t"))
    if fenced or indented:
        body = _without_code_blocks(body)
    if "<!--" in body:
        body = _without_comments(body)
    return body


def _without_code_blocks(body: str) -> str:
    out: list[str] = []
    fence = ""
    after_blank = True
    in_code = False
    in_list = False
    for line in body.split("\n"):
        if fence:
            end = line.strip(" \t>")
            if end.startswith(fence) and not end.strip(fence[0]):
                fence = ""
            out.append("")
            after_blank = True
            continue
        if not line or line.isspace():
            out.append("")
            after_blank = True
            continue
        if "```" in line or "~~~" in line:
            opening = _FENCE.match(line)
            if opening and not (opening[1][0] == "`" and "`" in opening[2]):
                fence = opening[1]
                out.append("")
                continue
        if line[0] in " \t" and (line.startswith("    ") or "\t" in line[:4]):
            if (after_blank or in_code) and not in_list:
                in_code = True
                after_blank = False
                out.append("")
                continue
        else:
            in_list = bool(_ITEM.match(line)) or (in_list and line[0] in " \t")
        in_code = after_blank = False
        out.append(line)
    return "\n".join(out)


def _without_comments(text: str) -> str:
    out: list[str] = []
    position = 0
    while True:
        start = text.find("<!--", position)
        end = text.find("-->", start + 4) if start >= 0 else -1
        if end < 0:
            out.append(text[position:])
            return "".join(out)
        out.append(text[position:start])
        out.append("\n" * text.count("\n", start, end))
        position = end + 3


_BACKTICKS = lazy("`+")


def without_spans(text: str) -> str:
    """`text` with inline code emptied: a run of backticks up to the next run of that length
    in the same paragraph."""
    if "`" not in text:
        return text
    runs = [run.span() for run in _BACKTICKS.finditer(text)]
    partner: list[int | None] = [None] * len(runs)
    latest: dict[int, int] = {}
    for number in range(len(runs) - 1, -1, -1):
        length = runs[number][1] - runs[number][0]
        partner[number] = latest.get(length)
        latest[length] = number
    out: list[str] = []
    position = paragraph_end = number = 0
    while number < len(runs):
        start, end = runs[number]
        if start >= paragraph_end:
            paragraph_end = text.find("\n\n", end)
            if paragraph_end < 0:
                paragraph_end = len(text)
        other = partner[number]
        if other is not None and runs[other][0] < paragraph_end:
            out.append(text[position:end])
            position = runs[other][0]
            number = other
        number += 1
    out.append(text[position:])
    return "".join(out)


# A tag ends at white space, at ASCII punctuation but `-`, `_` and `/`, and at the punctuation
# of Unicode's general, supplemental, CJK and full-width blocks.
_TAG = lazy(
    r"#([^\s\0-,.:-@\[-^`{-\x9f\u2000-\u200c\u200e-\u206f\u2e00-\u2e7f\u3000-\u3003\u3008-\u3020"
    r"\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65\ufeff]+)"
)
_BEFORE_TAG = frozenset("，。、；：！？（【「『《…—")
_NOT_A_NAME = lazy(r"[\d/_-]*")


def inline_tags(text: str) -> list[str]:
    """The `#tags` of `text` (code already taken out), without `#`, in order, each once.

    Obsidian's rules: a tag follows white space (here also Chinese punctuation, which no blank
    follows) or begins the text, and holds something besides digits. At most 100 tags; one
    longer than 100 characters is none.
    """
    tags: dict[str, None] = {}
    if "#" not in text:
        return []
    for found in _TAG.finditer(text):
        start = found.start()
        if start:
            before = text[start - 1]
            if not (before.isspace() or before in _BEFORE_TAG):
                continue
        tag = found[1].rstrip("/")
        if len(tag) > MAX_TAG or _NOT_A_NAME.fullmatch(tag):
            continue
        tags[tag] = None
        if len(tags) == MAX_TAGS:
            break
    return list(tags)


_WIKILINK = lazy(r"\[\[([^\[\]\n]{1,1000})\]\]")
_LINK = lazy(
    r"\]\([ \t]*(?:<([^<>\n]{1,1000})>|([^\s()<>]{1,1000}(?:\([^\s()]{0,200}\)[^\s()]{0,200})?))"
)
_DEFINITION = lazy(
    r"^ {0,3}\[[^\[\]\n]{1,200}\]:[ \t]*(?:<([^<>\n]{1,1000})>|(\S{1,1000}))", re.MULTILINE
)
_SCHEME = lazy(r"[A-Za-z][A-Za-z0-9+.-]*:")
_CONTROL = lazy("[\0-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")


def links(text: str) -> list[str]:
    """Targets of the links to other cards in `text` (code already taken out), each once.

    `[[target]]`, `[[target|alias]]`, `[[target#heading]]` and `![[embed]]` give `target` as
    written; Markdown links to a relative `.md` file give its path as written, percent signs
    decoded, without the fragment. Wikilinks come first. At most 10,000.
    """
    targets: dict[str, None] = {}
    if "[[" in text:
        for found in _WIKILINK.finditer(text):
            target = found[1].partition("|")[0].rstrip("\\").partition("#")[0].strip()
            if target:
                targets[target[:MAX_TARGET]] = None
    if "](" in text:
        for found in _LINK.finditer(text):
            _add_file(targets, found[1] or found[2])
    if "]:" in text:
        for found in _DEFINITION.finditer(text):
            _add_file(targets, found[1] or found[2])
    return list(targets)[:MAX_LINKS]


def _add_file(targets: dict[str, None], link: str) -> None:
    link = link.partition("#")[0].partition("?")[0].strip()
    if not link.lower().endswith(MARKDOWN_SUFFIXES):
        return
    if link.startswith("//") or _SCHEME.match(link):
        return
    if "%" in link:
        from urllib.parse import unquote

        link = _CONTROL.sub("", unquote(link))
    targets[link[:MAX_TARGET]] = None


_IMAGE = lazy(
    r"!\[[^\[\]]{0,500}\](?:\([^()\n]{0,1000}\)|\[[^\[\]]{0,200}\])"
    r"|!\[\[[^\[\]]{0,500}\]\]"
)
_TEXT_LINK = lazy(r"\[([^\[\]]{0,500})\](?:\([^()\n]{0,1000}\)|\[[^\[\]]{0,200}\])")
_WIKI_TEXT = lazy(r"\[\[(?:[^\[\]|\n]{0,500}\|)?([^\[\]|\n]{1,500})\]\]")
_HTML = lazy(
    r"</?(?:a|abbr|b|big|blockquote|br|center|code|details|div|em|font|h[1-6]|hr|i|img|kbd|p|picture"
    r"|pre|s|samp|section|small|source|span|strong|sub|summary|sup|table|tbody|td|th|thead|tr|u"
    r"|video)(?:\s[^<>]{0,1000})?/?>",
    re.IGNORECASE,
)
_STRONG = lazy(r"(\*\*|~~|==)(?=\S)([^\n]{1,300}?)(?<=\S)\1")
_STRESS = lazy(r"(?<![\w*])\*(?=[^\s*])([^*\n]{1,300})(?<=\S)\*(?![\w*])")
_ANCHOR = lazy(r"\s*\{[#.:][^{}]{0,200}\}\s*$")
_VERBATIM = lazy(r"\\([*_#\[\]`|<>~=])|(?<!`)(`{1,9})(?!`)(.{1,500}?)(?<!`)\2(?!`)", re.DOTALL)
_ASIDE = lazy("\0([0-9]+)\0")
_MARKED = lazy(r"[*`\[<~=\\{]")
_BLANKS = lazy(r"\s+")


def plain(text: str) -> str:
    """A line or paragraph of Markdown as the words a reader sees, on one line."""
    if _MARKED.search(text):
        # Code and escaped signs mean themselves: they stand aside, each under its number.
        verbatim: list[str] = []

        def put_aside(found: re.Match[str]) -> str:
            verbatim.append(found[1] or found[3])
            return f"\0{len(verbatim) - 1}\0"

        text = _VERBATIM.sub(put_aside, text.replace("\0", ""))
        text = _IMAGE.sub("", text)
        text = _TEXT_LINK.sub(r"\1", text)
        text = _WIKI_TEXT.sub(r"\1", text)
        text = _HTML.sub("", text)
        text = _STRONG.sub(r"\2", text)
        text = _STRESS.sub(r"\1", text)
        text = _ANCHOR.sub("", text)
        text = _ASIDE.sub(lambda number: verbatim[int(number[1])], text)
    return _BLANKS.sub(" ", _CONTROL.sub(" ", text)).strip()


_ATX = lazy(r" {0,3}#{1,6}[ \t]+(.*)")
_CLOSING_MARKS = lazy(r"(?:^|[ \t]+)#+[ \t]*$")


def first_heading(text: str) -> str | None:
    """The words of the first heading of `text` (code blocks already taken out), or None.

    ATX headings of any level, and one line underlined by `===` or `---`.
    """
    before = ""
    before_that = ""
    for line in text.split("\n"):
        mark = line.lstrip(" ")[:1]
        if mark == "#":
            found = _ATX.match(line)
            if found:
                heading = plain(_CLOSING_MARKS.sub("", found[1][:2000]))
                if heading:
                    return heading
        elif mark in ("=", "-") and not before_that and _can_be_heading(before):
            heading = plain(before[:2000]) if _underline(line) else ""
            if heading:
                return heading
        before_that = before
        before = line.strip()
    return None


def _underline(line: str) -> bool:
    marks = line.strip()
    if len(marks) < 2 or marks[0] not in "=-" or line.startswith("    "):
        return False
    return marks.strip(marks[0]) == ""


def _can_be_heading(line: str) -> bool:
    return line != "" and line[0] not in ">|<#=" and not _ITEM.match(line) and not _is_rule(line)


def _is_rule(line: str) -> bool:
    return len(line) > 1 and not line.strip("-=*_ \t")


def _is_delimiter(line: str) -> bool:
    return "-" in line and "|" in line and not line.strip("|:- \t")


_SKIPPED_LINE = lazy(
    r"#{1,6}(?:[ \t]|$)|\[[^\[\]]{1,200}\]:|:::|%%|\$\$|\{[%{]|\[\[?toc\]", re.IGNORECASE
)
_BLANK_LINES = lazy(r"\n(?:[ \t]*\n)+")
_CALLOUT = lazy(r"\[![\w-]{1,40}\][+-]?[ \t]*")
_TAG_WORD = lazy(r"(?:^|(?<=\s))#\S+")


def first_paragraph(text: str) -> str:
    """The first paragraph of prose in `text` (code blocks already taken out), on one line.

    Headings, rules, tables, link definitions, images and lines of tags alone are passed over;
    a list or quotation is taken, without its marks, only where no prose follows. At most 200
    characters, the last being "…" when cut. Looks at the first 20,000 characters only.
    """
    spare: list[str] = []
    after_list = False
    for block in _BLANK_LINES.split(text[:20_000].strip("\n")):
        within_list = after_list and block.startswith(("  ", "\t"))
        lines = [line.strip() for line in block.split("\n")]
        prose: list[str] = []
        after_list = False
        for number, line in enumerate(lines):
            if line[:1] == "|" or (number + 1 < len(lines) and _is_delimiter(lines[number + 1])):
                break
            if _is_rule(line) or _SKIPPED_LINE.match(line):
                words = "" if _underline(line) else _joined(prose)
                if words:
                    return words
                prose = []
                continue
            item = _ITEM.match(line)
            if item or line[:1] == ">" or within_list:
                words = _joined(prose)
                if words:
                    return words
                prose = []
                after_list = within_list or item is not None
                if len(spare) < 20:
                    spare += [_unmarked(marked) for marked in lines[number:][:20]]
                break
            prose.append(line)
        words = _joined(prose)
        if words:
            return words
    return _joined(list(filter(None, spare)), "; ")


def _unmarked(line: str) -> str:
    item = _ITEM.match(line)
    return line[item.end() :] if item else _CALLOUT.sub("", line.lstrip("> \t"))


def _joined(lines: list[str], glue: str = " ") -> str:
    """Lines as one plain line of at most 200 characters, without lines of tags alone."""
    words = ""
    for line in lines[:20]:
        if line[:1] == "#" and not _TAG_WORD.sub("", line).strip():
            continue
        # Chinese and Japanese lines are wrapped between words that no blank parts.
        tight = glue == " " and words[-1:] >= "\u2e80" and line[:1] >= "\u2e80"
        words += line if not words or (tight and not _is_hangul(line[0])) else glue + line
        if len(words) > 2000:
            break
    return shorten(plain(words[:2000]), MAX_SUMMARY)


def _is_hangul(char: str) -> bool:
    return "\uac00" <= char <= "\ud7a3"


def shorten(text: str, limit: int) -> str:
    """`text`, cut to `limit` characters with "…" as the last one where it is longer."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
