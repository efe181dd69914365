"""Markdown and snippets become HTML that is safe to show. Expected HTML was written by hand."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasette_memory.render import MAX_RENDERED, excerpt, markdown_html, snippet_html

HARMLESS_TAGS = set(
    "a p br hr h1 h2 h3 h4 h5 h6 ul ol li blockquote pre code em strong s "
    "table thead tbody tr th td".split()
)


class Tags(HTMLParser):
    """Every tag with its attributes, as a browser would find them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def assert_harmless(html: str) -> None:
    for tag, attributes in Tags(html).found:
        assert tag in HARMLESS_TAGS
        for name, value in attributes.items():
            assert name in {"href", "title", "rel", "start"}
            if name == "href":
                assert re.match(r"(https?://|mailto:|/)", value), value


def test_prose_lists_tables_and_code():
    html = markdown_html(
        "# 标题\n\n**粗** and ~~old~~ `x < 1`\n\n1. 一\n2. 二\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    )
    assert "<h1>标题</h1>" in html
    assert "<p><strong>粗</strong> and <s>old</s> <code>x &lt; 1</code></p>" in html
    assert "<ol>\n<li>一</li>\n<li>二</li>\n</ol>" in html
    assert "<td>1</td>\n<td>2</td>" in html


def test_raw_html_is_shown_as_text():
    html = markdown_html("<script>alert(1)</script>\n\na <b onclick='x()'>b</b>")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "&lt;b onclick='x()'&gt;b&lt;/b&gt;" in html
    assert {tag for tag, _ in Tags(html).found} == {"p"}


def test_links_open_without_telling_who_sent_them():
    assert markdown_html("[a](https://a.example/?x=1&y=2 'why')") == (
        '<p><a href="https://a.example/?x=1&amp;y=2" title="why" '
        'rel="noopener noreferrer nofollow">a</a></p>\n'
    )


@pytest.mark.parametrize(
    "target",
    [
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        "java&#115;cript:alert(1)",
        "vbscript:x",
        "data:text/html,<script>alert(1)</script>",
        "file:///etc/passwd",
        "//elsewhere.example/x",
        "/-/logout",
    ],
)
def test_no_link_to_anything_but_the_web_mail_and_cards(target):
    for text in (f"[a]({target})", f"<{target}>", f"[a][1]\n\n[1]: {target}", f"![a]({target})"):
        assert "href" not in markdown_html(text)


def test_images_become_links_so_that_nothing_is_fetched():
    assert markdown_html("![图](https://a.example/a.png)") == (
        '<p><a href="https://a.example/a.png" rel="noopener noreferrer nofollow">图</a></p>\n'
    )
    assert markdown_html("![图](pic/a.png)") == "<p>图</p>\n"
    assert markdown_html("![](data:image/png;base64,AAAA)").count("<") == 2


def test_wikilinks_and_relative_links_lead_to_cards():
    cards = {"D_0001": "/memory/cards/1", "../02/计划 1.md": "/memory/cards/2"}
    html = markdown_html(
        "[[D_0001]] [[D_0001#头|决定]] ![[D_0001]] [[nowhere|没有]] "
        "[计划](../02/%E8%AE%A1%E5%88%92%201.md#a) [x](../no.md) `[[D_0001]]`",
        cards.get,
    )
    link = '<a href="/memory/cards/1" rel="noopener noreferrer nofollow">'
    assert html == (
        f"<p>{link}D_0001</a> {link}决定</a> {link}D_0001</a> [[nowhere|没有]] "
        '<a href="/memory/cards/2" rel="noopener noreferrer nofollow">计划</a> x '
        "<code>[[D_0001]]</code></p>\n"
    )


def test_a_wikilink_cannot_carry_html():
    html = markdown_html('[["><img src=x onerror=alert(1)>]] [[a|<script>]]', lambda target: "/x")
    assert_harmless(html)
    assert {tag for tag, _ in Tags(html).found} == {"p", "a"}


def test_a_long_body_is_cut_and_says_so():
    html = markdown_html("字" * (MAX_RENDERED + 1))
    assert html.count("字") == MAX_RENDERED
    assert "first 200,000 of 200,001 characters" in html
    assert "first" not in markdown_html("字" * MAX_RENDERED)


FRAGMENTS = st.sampled_from(
    "<script> </script> <img/src=x/onerror=alert(1)> [[ ]] | ![ ]( javascript:alert(1) ) ` < > "
    "https://a.example <a/href='javascript:x'> &#x3C; &lt; <svg/onload=x> \" ' <!-- ]]> <style> 字 "
    "\x00 # - *".split(" ")
    + ["```\n", "\n\n", "| a |\n|---|\n", "[1]: data:text/html,x\n", "<img src=x onerror=alert(1)>"]
)


@given(st.lists(st.one_of(FRAGMENTS, st.text(max_size=8)), max_size=30).map("".join))
def test_nothing_dangerous_comes_out_whatever_goes_in(text):
    assert_harmless(markdown_html(text, lambda target: "/memory/cards/1"))
    assert "\n" not in excerpt(text)


@pytest.mark.parametrize(
    ("snippet", "shown"),
    [
        ("&lt;b&gt; 的 <b>全文</b>", "&lt;b&gt; 的 <mark>全文</mark>"),
        ("<b onclick=x()>a</b>", "<mark>a</mark>"),
        ("a<script>alert(1)</script>b", "ab"),
        ("<img src=x onerror=alert(1)>", ""),
        ("<b>open", "<mark>open</mark>"),
        ("<mark>a</mark>", "a"),
    ],
)
def test_of_a_snippet_only_the_marks_are_alive(snippet, shown):
    assert snippet_html(snippet) == shown


def test_excerpt_is_one_plain_line():
    assert excerpt("# 标题\n\n**粗** [链接](https://a.example) `c`\n\n```\nx = 1\n```\n") == (
        "标题 粗 链接 c x = 1"
    )


def test_excerpt_says_where_it_was_cut():
    assert excerpt("字" * 141) == "字" * 140 + "…"
    assert excerpt("字" * 140) == "字" * 140
    assert excerpt("") == ""
