import json
import re

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from datasette_memory.vault.card import Relation, parse_card


def card(text, path="notes/file name.md"):
    return parse_card(text.encode() if isinstance(text, str) else text, path)


def front(yaml_text, body="Body\n"):
    return card(f"---\n{yaml_text}\n---\n{body}")


# --- the whole -----------------------------------------------------------------------------


def test_a_full_card():
    full = card(
        """---
id: D_0001
title: 生产库用 SQLite
kind: decision
summary: One file is enough.
tags: [db, 运维]
keywords: sqlite, fts5
aliases:
  - the database decision
project: tern
agent: coder-a
session: s-12
created: 2026-05-01T09:30:00+08:00
updated: 2026-05-02
confidence: 0.9
sensitivity: private
priority: 3
ttl: 30
valid_from: 2026-05-01
valid_until: 2027-05-01
relations:
  - {type: supersedes, target: D_0000}
superseded_by: D_0009
refs:
  files: [a.py]
  commits: [12345e7]
version: 4
mood: 5
when: 2024-06-01
---
# Heading

See [[Other|that]] and [more](sub/more.md). #extra
""",
        "02-Projects/x.md",
    )
    assert full.ref == "D_0001"
    assert full.title == "生产库用 SQLite"
    assert full.kind == "decision"
    assert (full.summary, full.summary_from_body) == ("One file is enough.", False)
    assert full.tags == ("db", "运维", "extra")
    assert full.keywords == ("sqlite", "fts5")
    assert full.aliases == ("the database decision",)
    assert (full.project, full.agent, full.session) == ("tern", "coder-a", "s-12")
    assert (full.created, full.updated) == ("2026-05-01T09:30:00+08:00", "2026-05-02")
    assert (full.confidence, full.sensitivity, full.priority, full.ttl) == (0.9, "private", 3, 30)
    assert (full.valid_from, full.valid_until) == ("2026-05-01", "2027-05-01")
    assert full.relations == (Relation("supersedes", "D_0000"),)
    assert full.wikilinks == ("Other", "sub/more.md")
    assert full.superseded_by == "D_0009"
    assert full.refs == {"files": ["a.py"], "commits": ["12345e7"]}
    assert full.version == 4
    assert full.extra == {"mood": 5, "when": "2024-06-01"}
    assert full.faults == ()
    assert full.body == "# Heading\n\nSee [[Other|that]] and [more](sub/more.md). #extra\n"


def test_a_bare_file_is_a_card():
    bare = card("Some words.\n", "09-Decisions/why not.md")
    assert bare.title == "why not"
    assert bare.kind == "decision"
    assert (bare.summary, bare.summary_from_body) == ("Some words.", True)
    assert (bare.confidence, bare.sensitivity, bare.priority, bare.version) == (
        0.7, "internal", 0, 1,
    )  # fmt: skip
    for name in ("ref", "project", "agent", "session", "created", "updated", "ttl"):
        assert getattr(bare, name) is None
    assert (bare.tags, bare.relations, bare.refs, bare.extra) == ((), (), {}, {})
    assert bare.faults == ()


def test_an_empty_file_is_a_card():
    empty = card("")
    assert (empty.title, empty.body, empty.summary, empty.kind) == ("file name", "", "", "note")


def test_empty_frontmatter():
    empty = card("---\n---\nBody")
    assert (empty.body, empty.faults, empty.extra) == ("Body", (), {})


# --- bytes ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        "\ufeff---\ntitle: 标题\n---\na\nb\n".encode(),
        "---\r\ntitle: 标题\r\n---\r\na\r\nb\r\n".encode(),
        "---\rtitle: 标题\r---\ra\rb\r".encode(),
        "\ufeff---\ntitle: 标题\n---\na\nb\n".encode("utf-16-le"),
        "\ufeff---\ntitle: 标题\n---\na\nb\n".encode("utf-16-be"),
        "\ufeff---\ntitle: 标题\n---\na\nb\n".encode("utf-32-le"),
        "---\ntitle: 标题\n---\na\0\nb\n\0".encode(),
    ],
)
def test_encodings_and_line_ends(data):
    read = parse_card(data, "x.md")
    assert (read.title, read.body, read.faults) == ("标题", "a\nb\n", ())


def test_what_is_not_utf8_is_replaced_and_told():
    read = parse_card(b"---\ntitle: caf\xe9\n---\nna\xefve\n", "x.md")
    assert read.title == "caf\ufffd"
    assert read.body == "na\ufffdve\n"
    assert read.faults == ("not UTF-8: decoded with replacement",)


def test_a_torn_utf16_file_is_told():
    read = parse_card("\ufeffab".encode("utf-16-le") + b"\x00", "x.md")
    assert read.body.startswith("ab")
    assert read.faults == ("not UTF-16: decoded with replacement",)
    half = parse_card(b"\xff\xfea\x00\x00\xd8", "x.md")
    half.body.encode()
    assert half.faults == ("not UTF-16: decoded with replacement",)


# --- title ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "title"),
    [
        ("2024-06-01", "2024-06-01"),
        ("1458", "1458"),
        ("1.10", "1.10"),
        ("0x1F", "0x1F"),
        ("yes", "yes"),
        ("true", "true"),
        ('"null"', "null"),
        ('"  spaced  "', "spaced"),
        ("|\n  two\n  lines", "two lines"),
        ("'It''s'", "It's"),
        ('"a\\u2028b\\x1b[31m"', "a b [31m"),
        ("[A note]", "A note"),
        ("📌 汉字", "📌 汉字"),
    ],
)
def test_titles_are_text_as_written(written, title):
    read = front(f"title: {written}", "# Heading\n")
    assert read.title == title
    assert read.faults == ()


@pytest.mark.parametrize("written", ["", "null", "~", '""', '"   "', "[]", "NULL"])
def test_no_title_falls_back_to_the_heading(written):
    assert front(f"title: {written}", "# Heading\n").title == "Heading"


def test_a_title_that_is_no_text_is_a_fault():
    read = front("title: {a: b}", "# Heading\n")
    assert read.title == "Heading"
    assert len(read.faults) == 1
    assert "title" in read.faults[0]


def test_titles_from_headings_and_file_names():
    assert card("```\n# no\n```\n# Yes\n").title == "Yes"
    assert card("Yes\n===\n").title == "Yes"
    assert card("text", "a/部署 🚀.v2.md").title == "部署 🚀.v2"
    assert card("text", "README.MARKDOWN").title == "README"
    assert card("text", "a/no suffix").title == "no suffix"
    assert card("text", "").title == "untitled"
    assert card("text", "a/\x07.md").title == "untitled"


def test_a_title_is_bounded():
    assert front("title: " + "x" * 600).title == "x" * 500
    assert card("# " + "y" * 3000).title == "y" * 500


# --- faults of frontmatter -----------------------------------------------------------------


def test_broken_yaml_leaves_the_body():
    for bad in ("key: `C:\\x`", "title: a: b", "title: *Italic*", "title: A\ntags: [a"):
        read = front(bad, "# Heading\n\nWords.\n")
        assert read.title == "Heading"
        assert read.body == "# Heading\n\nWords.\n"
        assert len(read.faults) == 1
        assert read.faults[0].startswith("frontmatter is not valid YAML: line ")


def test_rules_with_prose_between_are_body():
    text = "---\nJust prose.\n\nAnd more.\n---\nEnd\n"
    read = card(text)
    assert (read.body, read.faults) == (text, ())


def test_an_open_end_is_told():
    text = "---\ntitle: A\nbody"
    read = card(text)
    assert read.body == text
    assert read.faults == ("frontmatter has no closing line '---': read as body",)


def test_bombs_anchors_and_tags():
    for bad in ("a: &a [1]\nb: [*a, *a]", "a: !!python/object/apply:os.system [x]", "a: !x y"):
        read = front("title: T\n" + bad, "# Heading\n")
        assert read.title == "Heading"
        assert read.body == "# Heading\n"
        assert len(read.faults) == 1
        assert "refused" in read.faults[0]


def test_depth_and_size():
    deep = card("---\ntitle: " + "[" * 60_000 + "\n---\n# Heading\n")
    assert deep.title == "Heading"
    assert len(deep.faults) == 1
    large = card("---\ntitle: " + "[" * 100_000 + "\n---\n# Heading\n")
    assert large.title == "Heading"
    assert large.faults == ("frontmatter is larger than 64 KiB: not read",)


def test_duplicate_keys():
    read = front("title: A\ntitle: B")
    assert read.title == "B"
    assert read.faults == ("duplicate key 'title': the last one counts",)
    read = front("title: A\nTitle: B")
    assert read.title == "A"
    assert read.extra == {"Title": "B"}
    assert len(read.faults) == 1


def test_faults_are_few():
    read = front("relations: [" + ", ".join(["word"] * 100) + "]")
    assert len(read.faults) == 31
    assert read.faults[-1] == "and 70 more faults"


# --- keys ----------------------------------------------------------------------------------


def test_the_canonical_key_wins_and_the_other_is_kept():
    read = front("type: post\nname: N\nkind: decision\ntitle: T\ndate: 2026-01-01")
    assert (read.kind, read.title, read.created) == ("decision", "T", "2026-01-01")
    assert read.extra == {"type": "post", "name": "N"}
    assert front("title:\nname: N").title == "N"


def test_unknown_keys_are_kept_as_json():
    read = front("mood: 5\nratio: 0.5\nok: true\nnone:\nday: 2024-06-01\nsub: {a: [1, x]}")
    assert read.extra == {
        "mood": 5, "ratio": 0.5, "ok": True, "none": None, "day": "2024-06-01",
        "sub": {"a": [1, "x"]},
    }  # fmt: skip
    json.dumps(read.extra)


@pytest.mark.parametrize(
    ("written", "tags"),
    [
        ("a, b,c", ("a", "b", "c")),
        ("运维，数据库、后端", ("运维", "数据库", "后端")),
        ("[a, '#b', 2024, on]", ("a", "b", "2024", "on")),
        ("\n  - a\n  - a b\n  - a", ("a", "a b")),
        ('"#a #b"', ("a", "b")),
        ("machine learning", ("machine learning",)),
        ("", ()),
        ("null", ()),
        ("[]", ()),
        ("[~, '']", ()),
    ],
)
def test_tags(written, tags):
    read = front(f"tags: {written}")
    assert (read.tags, read.faults) == (tags, ())


def test_tags_of_the_body_come_after_and_once():
    assert front("tags: [b, a]", "x #c #a").tags == ("b", "a", "c")
    assert front("tag: x").tags == ("x",)
    assert front("tags: {a: 1}", "#b").tags == ("b",)


@pytest.mark.parametrize(
    ("written", "ref"),
    [("D_0001", "D_0001"), ("x", "x"), ("A" * 64, "A" * 64)],
)
def test_references(written, ref):
    read = front(f"id: {written}")
    assert (read.ref, read.faults) == (ref, ())


@pytest.mark.parametrize("written", ["2024", "mem-1", "a b", "../x", "A" * 65, "_a", "汉"])
def test_what_is_no_reference(written):
    read = front(f"id: {written}")
    assert read.ref is None
    assert read.extra == {"id": written}
    assert len(read.faults) == 1
    assert "id" in read.faults[0]


def test_kinds():
    assert front("kind: Decision").kind == "decision"
    assert front("type: code-change").kind == "code_change"
    assert front("kind: Recipe").kind == "Recipe"
    assert front("kind: '[[fact]]'").kind == "fact"
    assert card("---\nkind: fact\n---\n", "09-Decisions/a.md").kind == "fact"
    assert card("---\nkind:\n---\n", "09-Decisions/a.md").kind == "decision"
    assert card("x", "a.md").kind == "note"


@pytest.mark.parametrize(
    ("written", "value", "faults"),
    [("0.5", 0.5, 0), ("1", 1.0, 0), ("7", 1.0, 0), ("-1", 0.0, 0), ("1e-1", 0.1, 0),
     ("'0.5'", 0.5, 0), (".5", 0.5, 0), ("high", 0.7, 1), (".nan", 0.7, 1), ("80%", 0.7, 1),
     ("inf", 0.7, 1), ("[1]", 0.7, 1), ("", 0.7, 0)],
)  # fmt: skip
def test_confidence(written, value, faults):
    read = front(f"confidence: {written}")
    assert read.confidence == value
    assert len(read.faults) == faults


@pytest.mark.parametrize(
    ("written", "value", "faults"),
    [("public", "public", 0), ("Secret", "secret", 0), ("private", "private", 0), ("", "internal", 0),
     ("confidential", "private", 1), ("top secret", "secret", 1), ("机密", "secret", 1),
     ("{a: b}", "private", 2), ("1", "private", 1)],
)  # fmt: skip
def test_sensitivity(written, value, faults):
    read = front(f"sensitivity: {written}")
    assert read.sensitivity == value
    assert len(read.faults) == faults


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("---\ntitle: a: b\nsensitivity: secret\n---\nBody", "secret"),
        ("---\nsensitivity: private\ntitle: [\n---\nBody", "private"),
        ("---\ntitle: a: b\nsensitivity: restricted\n---\nBody", "private"),
        ("---\ntitle: a: b\nsensitivity: &x secret\n---\nBody", "secret"),
        ("---\ntitle: a: b\nSensitivity: 'Secret'\n---\nBody", "secret"),
        ("---\ntitle: a: b\nsensitivity: public\n---\nBody", "internal"),
        ("---\ntitle: a: b\nsensitivity: internal\n---\nBody", "internal"),
        ("---\nsensitivity：secret\n---\nBody", "secret"),
        ("---\ntitle: a\nsensitivity: secret\nBody without an end", "secret"),
        ("---\ntitle: x\nb: " + "y" * 70_000 + "\nsensitivity: secret\n---\nBody", "secret"),
        ("Body\nsensitivity: secret\n", "internal"),
        ("---\ntitle: a\n---\nsensitivity: secret\n", "internal"),
    ],
)
def test_what_was_hidden_stays_hidden_when_yaml_breaks(text, value):
    assert card(text).sensitivity == value


def test_whole_numbers():
    read = front("priority: 5\nttl: 30\nversion: 2")
    assert (read.priority, read.ttl, read.version, read.faults) == (5, 30, 2, ())
    assert front("priority: -2").priority == -2
    assert front("priority: '3'").priority == 3
    assert front("version: 2.0").version == 2
    assert front("update_version: 3").version == 3
    assert front("ttl: 99999999999").ttl == 1_000_000
    for key, value in (("ttl", "soon"), ("ttl", "-1"), ("version", "0"), ("priority", "[1]")):
        read = front(f"{key}: {value}")
        assert (read.priority, read.ttl, read.version) == (0, None, 1)
        assert len(read.faults) == 1
        assert key in read.faults[0]


@pytest.mark.parametrize(
    ("key", "word", "default"),
    [
        ("version", "1.4.2", 1),
        ("version", "v2.0.1-beta", 1),
        ("version", "experimental", 1),
        ("priority", "high", 0),
        ("priority", "9" * 30, 0),
    ],
)
def test_a_word_that_means_something_else_to_its_writer_is_kept_and_no_fault(key, word, default):
    read = front(f"{key}: {word}")
    assert (getattr(read, key), read.extra, read.faults) == (default, {key: word}, ())


@pytest.mark.parametrize(
    ("written", "iso"),
    [
        ("2026-05-01", "2026-05-01"),
        ("2026-05-01T09:30:00+08:00", "2026-05-01T09:30:00+08:00"),
        ("2026-05-01T09:30:00Z", "2026-05-01T09:30:00Z"),
        ("2026-05-01T09:30", "2026-05-01T09:30"),
        ("2026-05-01T09:30:00.123456+08:00", "2026-05-01T09:30:00.123456+08:00"),
        ("2026-05-01 09:30:00", "2026-05-01T09:30:00"),
        ("2026-05-01 09:30", "2026-05-01T09:30:00"),
        ("2026-05-01 09:30:00 +0800", "2026-05-01T09:30:00+08:00"),
        ("2026-05-01 09:30:00 Z", "2026-05-01T09:30:00Z"),
        ("2026/5/1", "2026-05-01"),
        ("2026.05.01", "2026-05-01"),
        ("2026年5月1日", "2026-05-01"),
        ("'2026-05-01'", "2026-05-01"),
        ("2026-05-01 9:30:00.5", "2026-05-01T09:30:00.500000"),
    ],
)
def test_times(written, iso):
    for key in ("created", "updated", "valid_from", "valid_until"):
        read = front(f"{key}: {written}")
        assert getattr(read, key) == iso
        assert read.faults == ()


@pytest.mark.parametrize(
    "written", ["yesterday", "2026-13-01", "2026-02-30", "1717200000", "2026-W01-1", "[2026-05-01]",
                "２０２６-05-01", "2026-05-01T25:00", "{{date}}"],
)  # fmt: skip
def test_what_is_no_time(written):
    read = front(f"created: {written}")
    assert read.created is None
    assert any("created" in fault for fault in read.faults)


@pytest.mark.parametrize(
    ("start", "end", "is_fault"),
    [
        ("2026-05-02", "2026-05-01", True),
        ("2026-05-01", "2026-05-01", False),
        ("2026-05-01T20:00:00-05:00", "2026-05-01", False),
        ("2026-05-01", "2026-04-30T23:59:59Z", True),
        ("2026-05-01T10:00:00+08:00", "2026-05-01T02:00:00Z", False),
        ("2026-05-01T10:00:00+08:00", "2026-05-01T01:59:59Z", True),
        ("2026-05-01T10:00", "2026-05-01T09:00:00-02:00", False),
        ("9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+14:00", True),
    ],
)
def test_an_end_before_the_beginning_is_kept_and_told(start, end, is_fault):
    read = front(f"valid_from: {start}\nvalid_until: {end}")
    assert (read.valid_from, read.valid_until) == (start, end)
    told = (f"valid_until {end} is before valid_from {start}",) if is_fault else ()
    assert read.faults == told


def test_provenance_takes_links_and_lists():
    assert front("project: '[[Alpha|a]]'").project == "Alpha"
    assert front("project: [[Alpha]]").project == "Alpha"
    read = front("project: [a, b]")
    assert read.project == "a"
    assert len(read.faults) == 1
    assert front("agent: 7\nsession_id: 2024-06-01").session == "2024-06-01"


# --- relations and refs --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "relations"),
    [
        ("relations: [{type: supersedes, target: D_1}]", [("supersedes", "D_1")]),
        ("relations: {type: supersedes, target: D_1}", [("supersedes", "D_1")]),
        ("relations: [{relation_type: caused_by, target_id: I_2}]", [("caused_by", "I_2")]),
        ("relations: [{type: a, target: [D_1, D_2]}]", [("a", "D_1"), ("a", "D_2")]),
        ("relations:\n- supersedes: D_1\n- caused_by: [I_1, I_2]",
         [("supersedes", "D_1"), ("caused_by", "I_1"), ("caused_by", "I_2")]),
        ("relations: {implements: P_1, refers_to: K_1}",
         [("implements", "P_1"), ("refers_to", "K_1")]),
        ("relations: [supersedes D_0001]", [("supersedes", "D_0001")]),
        ("relations: ['supersedes: D_0001', 'caused by I_3']",
         [("supersedes", "D_0001"), ("caused_by", "I_3")]),
        ("relations: supersedes D_0001", [("supersedes", "D_0001")]),
        ("relations: ['refers_to [[Some, note|x]]']", [("refers_to", "Some, note")]),
        ("relations: [{type: refers_to, target: 'Plan A, B and C'}]",
         [("refers_to", "Plan A, B and C")]),
        ("supersedes: D_1", [("supersedes", "D_1")]),
        ("supersedes: [D_1, '[[D_2]]']", [("supersedes", "D_1"), ("supersedes", "D_2")]),
        ("supersedes: D_1, D_2", [("supersedes", "D_1"), ("supersedes", "D_2")]),
        ("relations: [supersedes D_1]\nsupersedes: D_1", [("supersedes", "D_1")]),
        ("relations: [{type: 2024, target: 7}]", [("2024", "7")]),
        ("relations:", []),
        ("relations: []", []),
    ],
)  # fmt: skip
def test_relations(written, relations):
    read = front(written)
    assert [(relation.type, relation.target) for relation in read.relations] == relations
    assert read.faults == ()


@pytest.mark.parametrize(
    "written",
    ["[D_1]", "[{type: a}]", "[{target: D_1}]", "[{type: a, target: }]", "[{type: , target: D_1}]",
     "[[x]]", "['https://example.org']", "[{supersedes: }]", "[{type: {a: b}, target: x}]"],
)  # fmt: skip
def test_relations_that_lack_something_are_faults(written):
    read = front(f"relations: {written}\ntitle: T")
    assert read.relations == ()
    assert read.title == "T"
    assert len(read.faults) == 1
    assert "relation" in read.faults[0]


def test_one_bad_relation_does_not_hold_back_the_next():
    read = front("relations: [nothing, supersedes D_1]")
    assert read.relations == (Relation("supersedes", "D_1"),)
    assert len(read.faults) == 1


def test_refs():
    assert front("refs: {urls: 'https://a.example', files: [a, b], more: }").refs == {
        "urls": ["https://a.example"], "files": ["a", "b"], "more": [],
    }  # fmt: skip
    assert front("refs: [src/a.py, https://a.example/x, 0123abc]").refs == {
        "files": ["src/a.py"], "urls": ["https://a.example/x"], "commits": ["0123abc"],
    }  # fmt: skip
    assert front("refs: {files: [{path: a, lines: 007}]}").refs == {
        "files": [{"path": "a", "lines": "007"}]
    }


# --- for any input -------------------------------------------------------------------------

ONE_LINE = re.compile(r"[^\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]*")


def check(read):
    """What holds for every card."""
    assert 0 < len(read.title) <= 500
    assert read.title == read.title.strip()
    for line in (read.title, read.summary, read.kind, *read.tags, *read.keywords, *read.aliases):
        assert ONE_LINE.fullmatch(line), line
    for fault in read.faults:
        assert ONE_LINE.fullmatch(fault), fault
        assert len(fault) < 400
    for line in (*read.tags, *read.keywords, *read.aliases, *read.wikilinks):
        assert type(line) is str
        assert line
    for relation in read.relations:
        assert relation.type
        assert relation.target
    assert "\0" not in read.body
    assert "\r" not in read.body
    read.body.encode("utf-8")
    everything = json.dumps([read.extra, read.refs], ensure_ascii=False, allow_nan=False)
    everything.encode("utf-8")
    assert 0 <= read.confidence <= 1
    assert read.sensitivity in ("public", "internal", "private", "secret")
    assert read.version >= 1


@given(st.binary(max_size=300), st.text(max_size=20))
def test_any_bytes_are_a_card(data, path):
    check(parse_card(data, path))


PIECES = st.sampled_from(
    ["---\n", "...\n", "title: ", "tags: ", "id: ", "relations: ", "refs: ", "created: ", "ttl: ",
     "sensitivity: ", "confidence: ", "version: ", "kind: ", "other: ", "- ", "  ", "\t", "\n",
     "[", "]", "{", "}", ": ", ", ", "'", '"', "#", "`", "```\n", "&a ", "*a ", "!!str ", "!x ",
     "<<: ", "|\n", "> ", "# ", "[[", "]]", "](", ".md)", "1", "2026-01-01", "null", "汉字", "，",
     "\\u2028", "\\0", "\\ud800", "\x85", "\ufeff", "\r\n", "\x07", "<!--", "-->", "===\n", "|"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=40).map("".join), st.booleans())
def test_any_pieces_of_markdown_are_a_card(text, framed):
    check(card(f"---\ntitle: x\n{text}\n---\n{text}" if framed else text))


@given(st.text(max_size=300))
def test_text_without_frontmatter_comes_back_as_the_body(text):
    expected = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    expected = expected.lstrip("\ufeff")
    if expected.startswith("---"):
        expected = "x" + expected
        text = "x" + text.lstrip("\ufeff\0")
        expected = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    assert card(text).body == expected


LINE = st.text(
    st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1, max_size=60
).filter(lambda text: text.strip())
TAG = LINE.map(str.strip).filter(lambda text: text[0] != "#" and text == text.strip())


@given(LINE, st.lists(TAG, max_size=5, unique=True), st.booleans())
def test_what_yaml_writes_is_read_back(title, tags, unicode):
    written = yaml.safe_dump({"title": title, "tags": tags}, allow_unicode=unicode)
    read = card(f"---\n{written}---\nBody\n")
    assert read.title == title.strip()
    assert read.tags == tuple(tags)
    assert read.body == "Body\n"
    assert read.faults == ()


def test_a_relation_without_a_type_is_left_out_and_said():
    read = front(
        "relations:\n  - {type: '', target: D_0001}\n  - {type: caused_by, target: X_0002}"
    )
    assert [(one.type, one.target) for one in read.relations] == [("caused_by", "X_0002")]
    assert len(read.faults) == 1 and "type" in read.faults[0]


@pytest.mark.parametrize(
    "word, level", [("top-secret", "secret"), ("绝密", "secret"), ("low", "private")]
)
def test_an_unknown_sensitivity_rather_hides(word, level):
    card = parse_card(f"---\nsensitivity: {word}\n---\ntext\n".encode(), "a.md")
    assert card.sensitivity == level
    assert len(card.faults) == 1
