import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasette_memory.vault.inline import (
    first_heading,
    first_paragraph,
    inline_tags,
    links,
    plain,
    shorten,
    without_blocks,
    without_spans,
)


def prose(body):
    return without_spans(without_blocks(body))


# --- code ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ("a\n```\ncode\n```\nb", "a\n\n\n\nb"),
        ("a\n~~~ sh\ncode\n```\n~~~\nb", "a\n\n\n\n\nb"),
        ("````\n```\n````\nb", "\n\n\nb"),
        ("```\nnever closed\n\nstill", "\n\n\n"),
        ("```\ncode\n``` not a close\n```\nb", "\n\n\n\nb"),
        ("- item\n  ```py\n  code\n  ```\n  b", "- item\n\n\n\n  b"),
        ("> ```\n> code\n> ```\n> b", "\n\n\n> b"),
        ("- ```\n  code\n  ```\nb", "\n\n\nb"),
        ("```inline``` is no block", "```inline``` is no block"),
        ("text\n\n    code\n\n    code\n\ntext", "text\n\n\n\n\n\ntext"),
        ("\tcode\ntext", "\ntext"),
        ("text\n    goes on", "text\n    goes on"),
        ("- item\n\n    its paragraph\n", "- item\n\n    its paragraph\n"),
        ("1. item\n    - inner\n\n        deep\n", "1. item\n    - inner\n\n        deep\n"),
        ("a <!-- x\ny --> b", "a \n b"),
        ("a <!-- never closed", "a <!-- never closed"),
    ],
)
def test_without_blocks(body, left):
    assert without_blocks(body) == left
    assert without_blocks(body).count("\n") == body.count("\n")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a `b` c", "a `` c"),
        ("a ``b ` c`` d", "a ```` d"),
        ("a `b c", "a `b c"),
        ("`a\nb` c", "`` c"),
        ("`a\n\nb` c", "`a\n\nb` c"),
        ("`a` `b", "`` `b"),
        ("``a` b", "``a` b"),
    ],
)
def test_without_spans(text, left):
    assert without_spans(text) == left


@given(st.text(alphabet="`~ ab\n\t>-<!", max_size=80))
def test_code_is_emptied_and_no_line_lost(body):
    left = without_blocks(body)
    assert left.count("\n") == body.count("\n")
    assert len(left) <= len(body)


# --- tags ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "tags"),
    [
        ("#tag", ["tag"]),
        ("see #tag, and #other.", ["tag", "other"]),
        ("#运维 和 #a/b", ["运维", "a/b"]),
        ("重启完成，#运维，然后", ["运维"]),
        ("（#运维）", ["运维"]),
        ("#a #a #A", ["a", "A"]),
        ("#snake_case #kebab-case #y1984", ["snake_case", "kebab-case", "y1984"]),
        ("#हिन्दी #日本語 #한국어", ["हिन्दी", "日本語", "한국어"]),
        ("#🚀launch", ["🚀launch"]),
        ("#a/", ["a"]),
        ("#123 #2024/05 #-_- #/", []),
        ("# Heading\n## Heading\n#", []),
        ("#NoBlank", ["NoBlank"]),
        ("C# and F#, &#39; &#x27;", []),
        ("https://example.org/a#b and a#b", []),
        ("[contents](#contents) [[#heading]]", []),
        ('<a href="#top">', []),
        ("\\#escaped", []),
        ("#!/bin/sh", []),
        ("##double", []),
        ("`#code` and ``#code ` ``", []),
        ("```\n#code\n```", []),
        ("text\n\n    #define X\n", []),
        ("<!-- #hidden -->", []),
        ("line\n#next\n\t#tabbed", ["next", "tabbed"]),
        ("- #in-list\n- [ ] #task", ["in-list", "task"]),
        ("| #cell |", ["cell"]),
        ("#a\x1bb", ["a"]),
    ],
)
def test_inline_tags(body, tags):
    assert inline_tags(prose(body)) == tags


def test_tags_are_bounded_in_number_and_length():
    many = " ".join(f"#t{number}" for number in range(150))
    assert inline_tags(many) == [f"t{number}" for number in range(100)]
    assert inline_tags("#" + "x" * 100 + " #" + "y" * 101) == ["x" * 100]


# --- links ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "targets"),
    [
        ("[[A]] [[B|b]] [[C#h]] ![[D]] [[E#^x|e]]", ["A", "B", "C", "D", "E"]),
        ("[[A]] again [[A]]", ["A"]),
        ("[[ 服务器 清单 ]]", ["服务器 清单"]),
        ("| [[A\\|a]] |", ["A"]),
        ("[[#here]] [[]] [[ ]] [[a\nb]] [[x", []),
        ("`[[A]]` and\n```\n[[B]]\n```", []),
        ("[x](a.md) [y](../b/c.md#part) [z](./d.markdown)", ["a.md", "../b/c.md", "./d.markdown"]),
        ("[x](a%20b.md) [y](<c d.md>) [z](%E6%B1%89.md)", ["a b.md", "c d.md", "汉.md"]),
        ('[x](a.md "title") [y](f_(1).md)', ["a.md", "f_(1).md"]),
        ("[x](https://example.org/a.md) [y](//example.org/a.md) [z](mailto:a@b.md)", []),
        ("[x](a.html) ![y](a.png) [z](#a.md)", []),
        ("[x]: a.md\n[y]: https://example.org/b.md", ["a.md"]),
        ("[x](a.md) [[W]]", ["W", "a.md"]),
        ("[x](%00a.md)", ["a.md"]),
    ],
)
def test_links(body, targets):
    assert links(prose(body)) == targets


# --- headings ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "heading"),
    [
        ("# One\n# Two", "One"),
        ("text\n\n### Three ###\n", "Three"),
        ("#\tTabbed", "Tabbed"),
        ("   # Indented", "Indented"),
        ("#NoBlank\n# Blank", "Blank"),
        ("####### seven\n", None),
        ("# \n#\n## Later", "Later"),
        ("```\n# code\n```\n# Real", "Real"),
        ("text\n\n    # code\n\n# Real", "Real"),
        ("<!-- # no -->\n# Yes", "Yes"),
        ("Title\n=====\n", "Title"),
        ("Title\n---\n", "Title"),
        ("\nTitle\n  --  \n", "Title"),
        ("two lines\nof text\n---\n", None),
        ("- item\n---\n", None),
        ("> quote\n===\n", None),
        ("| a |\n---\n", None),
        ("text\n\n---\n", None),
        ("text\n-\n", None),
        ("---\n===\n", None),
        ("# **Bold** and `code` and [link](x)", "Bold and code and link"),
        ("# ![logo](x.png)\n# Name", "Name"),
        ("# Name {#anchor}", "Name"),
        ("# C# notes", "C# notes"),
        ("# 标题 #", "标题"),
        ("no heading", None),
        ("", None),
    ],
)
def test_first_heading(body, heading):
    assert first_heading(without_blocks(body)) == heading


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("plain", "plain"),
        ("a  b\tc\nd", "a b c d"),
        ("**a** *b* ~~c~~ ==d==", "a b c d"),
        ("__init__ and snake_case_name", "__init__ and snake_case_name"),
        ("2 * 3 * 4 and *.md or *.txt", "2 * 3 * 4 and *.md or *.txt"),
        ("[a](b) [c][d] [[e]] [[f|g]]", "a c e g"),
        ("[![badge](a)](b)", ""),
        ("`[a-z](x)*` ``b ` c``", "[a-z](x)* b ` c"),
        ("<b>a</b> <br> <T> List<String>", "a <T> List<String>"),
        (r"\*a\* C:\Tools\bin", r"*a* C:\Tools\bin"),
        ("a\x00b\x1bc\u2028d", "ab c d"),
    ],
)
def test_plain(text, words):
    assert plain(text.replace("\x00", "")) == words


# --- first paragraph -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("# H\n\nFirst\nparagraph.\n\nSecond.", "First paragraph."),
        ("Title\n===\n\nProse.", "Prose."),
        ("Title\n---\nProse.", "Prose."),
        ("# H\nProse right below.\n- list", "Prose right below."),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n\nProse.", "Prose."),
        ("a | b\n--- | ---\n1 | 2\n\nProse.", "Prose."),
        ("```\ncode\n```\nProse.", "Prose."),
        ("<!-- note -->\nProse.", "Prose."),
        ('<p align="center">\n<img src="x">\n</p>\n\nProse.', "Prose."),
        ("[![b](x)](y)\n![c](z)\n\nProse.", "Prose."),
        ("[x]: https://example.org\n\nProse.", "Prose."),
        ("#a #b\n\nProse.", "Prose."),
        ("Prose.\n#a #b", "Prose."),
        ("- one\n- two\n\nProse.", "Prose."),
        ("- one\n\n  its own paragraph\n\nProse.", "Prose."),
        ("- one\n- [ ] two\n\n# H", "one; two"),
        ("1. one\n2. two", "one; two"),
        ("> quoted\n> words", "quoted; words"),
        ("> [!note] Mind\n\nProse.", "Prose."),
        ("---\n\nProse.", "Prose."),
        ("***\nProse.", "Prose."),
        ("Prose.\n***\nMore.", "Prose."),
        ("Prose.\n| a |\n|---|", "Prose."),
        ("> quoted\n\nProse.", "Prose."),
        ("第一行，\n第二行。", "第一行，第二行。"),
        ("한국어\n문장", "한국어 문장"),
        ("中文\nEnglish", "中文 English"),
        ("[TOC]\n\nProse.", "Prose."),
        ("# Only a heading", ""),
        ("", ""),
        ("\n\n", ""),
    ],
)
def test_first_paragraph(body, words):
    assert first_paragraph(without_blocks(body)) == words


def test_a_summary_is_at_most_200_characters():
    assert first_paragraph("x" * 200) == "x" * 200
    assert first_paragraph("x" * 201) == "x" * 199 + "…"
    assert shorten("ab cd", 4) == "ab…"


@given(st.text(alphabet="#-=*_`~>|[]()<!a汉 \n\t1.:", max_size=120))
def test_what_is_read_is_one_line(body):
    outline = without_blocks(body)
    heading = first_heading(outline)
    summary = first_paragraph(outline)
    assert heading is None or (heading and heading == heading.strip() and "\n" not in heading)
    assert "\n" not in summary
    assert len(summary) <= 200
    for tag in inline_tags(outline):
        assert "#" + tag in body
