import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from datasette_memory.vault import frontmatter
from datasette_memory.vault.frontmatter import (
    SYNONYMS,
    PythonParser,
    canonical,
    load,
    looks_unclosed,
    resolve,
    split,
)


@pytest.fixture(params=["libyaml", "python"])
def either_parser(request, monkeypatch):
    """`load` and `split` with the C parser and with the pure Python one."""
    if request.param == "python":
        monkeypatch.setattr(frontmatter, "EventParser", PythonParser)
    else:
        assert frontmatter.EventParser is frontmatter.CParser is not None


# --- split ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "block", "body"),
    [
        ("---\ntitle: A\n---\nBody\n", "title: A\n", "Body\n"),
        ("---\ntitle: A\n...\nBody", "title: A\n", "Body"),
        ("--- \ntitle: A\n---\t \nBody", "title: A\n", "Body"),
        ("---\ntitle: A\n---", "title: A\n", ""),
        ("---\n---\n", "", ""),
        ("---\n---\nBody", "", "Body"),
        ("---\n\n# a comment\n---\nBody", "\n# a comment\n", "Body"),
        ("---\ntitle: A\n---\nx\n---\ny", "title: A\n", "x\n---\ny"),
        ("---\n# first\n\ntitle: A\n---\nBody", "# first\n\ntitle: A\n", "Body"),
        ("---\nmy own key: 1\n---\nBody", "my own key: 1\n", "Body"),
        ("---\n{title: A}\n---\nBody", "{title: A}\n", "Body"),
        ("---\n'quoted': 1\n---\nBody", "'quoted': 1\n", "Body"),
        ("---\n  indented: 1\n  title: 2\n---\nBody", "  indented: 1\n  title: 2\n", "Body"),
        ("---\nmood: `C:\\x`\n---\nBody", "mood: `C:\\x`\n", "Body"),
        ("---\nnext:\n- [[A]]x\n- b\n---\nBody", "next:\n- [[A]]x\n- b\n", "Body"),
        ("---\n标题：\n\n标签: a\n---\nBody", None, "---\n标题：\n\n标签: a\n---\nBody"),
        ("---\n标签: [a\n---\nBody", "标签: [a\n", "Body"),
    ],
)
def test_split(either_parser, text, block, body):
    assert split(text) == (block, body)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "---",
        "---\n",
        "plain",
        "\n---\ntitle: A\n---\n",
        " ---\ntitle: A\n---\n",
        "----\ntitle: A\n----\n",
        "---yaml\ntitle: A\n---\n",
        "---\ntitle: A\n",
        "---\ntitle: A\n --- \n----\n",
        "---\nSome prose below a rule.\n\nMore of it.\n---\nThe end.\n",
        "---\n\nSome prose.\n\n---\n",
        "---\n# Heading\n\nProse, see: this.\n\n---\nmore",
        "---\n- a list\n- of things\n---\nmore",
        "---\nWarning: this page is old.\n\nNothing here is kept up to date.\n---\nmore",
        "---\nThe machine has two problems: disk and memory.\n---\nmore",
        "---\n\nAside: a remark in one line.\n\n---\nmore",
        "---\n**bold** words\n---\nmore",
        "---\n```\ncode: here\n```\n---\nmore",
        "---\n[[link]]\n---\nmore",
    ],
)
def test_a_rule_that_is_no_frontmatter_stays_in_the_body(either_parser, text):
    assert split(text) == (None, text)


def test_a_far_rule_is_no_frontmatter_and_a_far_end_of_known_keys_is():
    prose = "---\nOnce: upon a time.\n" + "Many words.\n" * 10_000 + "---\nEnd\n"
    assert split(prose) == (None, prose)
    large = "title: A\n" + "x: y\n" * 20_000
    block, body = split("---\n" + large + "---\nEnd\n")
    assert (block, body) == (large, "End\n")
    assert load(block) == ({}, ("frontmatter is larger than 64 KiB: not read",))


def test_64_kib_are_counted_in_bytes():
    assert load("a: " + "汉" * 21_840) != ({}, ("frontmatter is larger than 64 KiB: not read",))
    assert load("a: " + "汉" * 21_850) == ({}, ("frontmatter is larger than 64 KiB: not read",))


def test_an_end_that_is_missing_shows_by_a_known_key():
    assert looks_unclosed("---\ntitle: A\ntext")
    assert not looks_unclosed("---\nprose: A\ntext")
    assert not looks_unclosed("title: A\n")


# --- load ----------------------------------------------------------------------------------


def test_values_are_the_text_that_was_written(either_parser):
    text = (
        "date: 2024-06-01\nnumber: 1458\nfloat: 1.10\nyes: on\noctal: 007\n"
        "list: [1, 2.0, no]\nnested:\n  when: 2024-06-01 10:00:00\nempty:\n"
        'quoted: "null"\nblock: |\n  one\n  two\nfolded: >-\n  one\n  two\n'
    )
    assert load(text) == (
        {
            "date": "2024-06-01",
            "number": "1458",
            "float": "1.10",
            "yes": "on",
            "octal": "007",
            "list": ["1", "2.0", "no"],
            "nested": {"when": "2024-06-01 10:00:00"},
            "empty": "",
            "quoted": "null",
            "block": "one\ntwo\n",
            "folded": "one two",
        },
        (),
    )


def test_resolve_makes_numbers_and_leaves_dates(either_parser):
    text = (
        "commit: 12345e7\n"
        "a: 12\nb: -3\nc: 1.5\nd: -1.5e+3\ne: true\nf: False\ng: null\nh: ~\ni:\n"
        "j: 2024-06-01\nk: yes\nl: 0x1F\nm: 007\nn: 1_000\no: .inf\np: .nan\nq: 1.0e+999\n"
        "r: '12'\ns: \"true\"\nt: |-\n  5\nu: !!str 5\nv: !!int 5\nw: " + "9" * 30 + "\n"
        "x: [1, [2, {y: 3}], 'z']\n"
    )
    mapping, faults = load(text)
    assert faults == ()
    resolved = resolve(mapping)
    assert resolved == {
        "commit": "12345e7",
        "a": 12, "b": -3, "c": 1.5, "d": -1500.0, "e": True, "f": False, "g": None, "h": None,
        "i": None, "j": "2024-06-01", "k": "yes", "l": "0x1F", "m": "007", "n": "1_000",
        "o": ".inf", "p": ".nan", "q": "1.0e+999", "r": "12", "s": "true", "t": "5", "u": "5",
        "v": 5, "w": "9" * 30, "x": [1, [2, {"y": 3}], "z"],
    }  # fmt: skip
    assert type(resolved["r"]) is str
    assert resolved["e"] is True
    json.dumps(resolved, allow_nan=False)


def test_the_last_of_duplicate_keys_counts(either_parser):
    mapping, faults = load("title: A\ntags: [x]\ntitle: B\nsub: {k: 1, k: 2}\n")
    assert mapping == {"title": "B", "tags": ["x"], "sub": {"k": "2"}}
    assert faults == (
        "duplicate key 'title': the last one counts",
        "duplicate key 'k': the last one counts",
    )


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a: &x [1]\n", "YAML anchors and aliases are refused"),
        ("a: &x 1\n", "YAML anchors and aliases are refused"),
        ("a: &x {b: 1}\n", "YAML anchors and aliases are refused"),
        ("a: *x\n", "YAML anchors and aliases are refused"),
        ("a: 1\n<<: {b: 1}\n", "YAML merge keys are refused"),
        ("a: !!python/object/apply:os.getcwd []\n", "'tag:yaml.org,2002:python/object/apply:os"),
        ("a: !!python/name:os.system\n", "YAML tag"),
        ("a: !secret token\n", "YAML tag '!secret' is refused"),
        ("a: !custom {b: 1}\n", "YAML tag '!custom' is refused"),
        ("a: !!binary aGk=\n", "YAML tag"),
        ("a: " + "[" * 30 + "]" * 30 + "\n", "nested deeper than 20"),
        ("a: " + "{b: " * 30 + "}" * 30 + "\n", "nested deeper than 20"),
        ("a:\n- " + "- " * 30 + "b\n", "nested deeper than 20"),
        ("a: 1\n--- b\n", "more than one YAML document"),
        ("- a\n- b\n", "not a mapping"),
        ("words\n", "not a mapping"),
    ],
)
def test_what_is_refused(either_parser, text, fault):
    mapping, faults = load(text)
    assert mapping == {}
    assert len(faults) == 1
    assert fault in faults[0]


def test_quoted_signs_are_no_anchors(either_parser):
    text = "a: R&D\nb: '*x'\nc: \"&y\"\nd: x*y\n'<<': 1\n"
    assert load(text) == ({"a": "R&D", "b": "*x", "c": "&y", "d": "x*y", "<<": "1"}, ())


def test_a_bomb_is_refused_at_its_first_anchor(either_parser):
    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n"
    for name, before in zip("bcdefghij", "abcdefghi", strict=True):
        bomb += f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
    mapping, faults = load(bomb)
    assert mapping == {}
    assert faults == ("YAML anchors and aliases are refused: frontmatter not read",)


def test_sixty_thousand_brackets_end_at_the_limit(either_parser):
    for text in ("[" * 60_000, "a: " + "[" * 60_000, "- " * 30_000, "{a: " * 15_000):
        mapping, faults = load(text)
        assert mapping == {}
        assert len(faults) == 1


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("title: a: b\n", "line 2"),
        ("title: A\nkey: `C:\\x`\n", "line 3"),
        ("title: A\n\nkey: 'open\n", "line"),
        ("title: A\nkey: [1, 2\n", "line"),
        ("title: A\n}\n", "line 3"),
        ("title: @home\n", "line 2"),
        ("title: *Italic*\n", "line 2"),
        ("title: %x\n", "line 2"),
        ("title: A\nrelated:\n- [[link]]suffix\n", "line"),
    ],
)
def test_bad_yaml_is_one_fault_that_names_the_line(either_parser, text, line):
    mapping, faults = load(text)
    assert mapping == {}
    assert len(faults) == 1
    assert faults[0].startswith("frontmatter is not valid YAML: ")
    assert line in faults[0]
    assert "\n" not in faults[0]


def test_control_characters_are_a_fault_and_no_crash(either_parser):
    assert load("title: a\x07b\n")[0] == {}
    assert load("title: a\ud800b\n")[0] == {}
    assert load('title: "\\U00110000"\n')[0] == {}


def test_escapes_bring_in_no_nul_and_no_half_character(either_parser):
    for written in ('"a\\0b"', '"a\\u0000b"', '"a\\x00b"'):
        assert load(f"title: {written}\n") == ({"title": "ab"}, ())
    mapping, faults = load('title: "a\\ud800b"\n')
    assert mapping == {"title": "ab"} or (mapping == {} and len(faults) == 1)


def test_tabs_as_indentation_are_read_as_blanks(either_parser):
    mapping, faults = load("title: A\ntags:\n\t- x\n\t- y\n")
    assert mapping == {"title": "A", "tags": ["x", "y"]}
    assert faults == ("tabs in the frontmatter are read as two blanks each",)
    mapping, _ = load("title:\tA\n")  # the C parser takes it as it is
    assert mapping == {"title": "A"}


def test_keys_that_are_no_text_are_left_out(either_parser):
    mapping, faults = load("title: A\nwhen: {{date}}\n? [a, b]\n: c\nend: 1\n")
    assert mapping == {"title": "A", "when": {}, "end": "1"}
    assert len(faults) == 2
    assert all("key that is not text" in fault for fault in faults)


def test_nothing_is_an_empty_mapping(either_parser):
    for text in ("", "\n", "# only a comment\n", "~\n", "null"):
        mapping, _ = load(text)
        assert mapping == {}
    assert load("") == load("# x\n") == ({}, ())


keys = st.text(min_size=1, max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**15), 10**15) | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(keys, values, min_size=1, max_size=6), st.booleans())
def test_what_yaml_writes_is_read_back(mapping, flow):
    # Keys stay text, and PyYAML writes text that looks like a number or a NUL with quotes.
    written = yaml.safe_dump(mapping, default_flow_style=flow)
    if any(sign in written for sign in ("&id", "\\0", "<<")):
        return  # an anchor for what stands twice, and what is refused
    loaded, faults = load(written)
    assert faults == ()
    assert resolve(loaded) == mapping


@given(st.text(max_size=200))
def test_any_text_is_split_without_loss_and_loaded_without_a_crash(text):
    framed = f"---\n{text}\n---\nbody"
    for whole in (text, framed):
        block, body = split(whole)
        if block is None:
            assert body == whole
        else:
            assert whole.startswith("---")
            assert whole.endswith(body)
            assert block in whole
    mapping, faults = load(text)
    json.dumps(resolve(mapping))
    assert all("\n" not in fault for fault in faults)


# --- names of keys -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("title", "title"), ("Title", "title"), ("TITLE", "title"), ("name", "title"),
        ("type", "kind"), ("created_at", "created"), ("createdAt", "created"),
        ("Created at", "created"), ("date-created", "created"), ("date", "created"),
        ("modified", "updated"), ("last_modified", "updated"), ("lastmod", "updated"),
        ("update_version", "version"), ("tag", "tags"), ("keyword", "keywords"),
        ("alias", "aliases"), ("description", "summary"), ("标签", "tags"),
        ("session_id", "session"), ("valid_to", "valid_until"),
    ],
)  # fmt: skip
def test_synonyms(key, name):
    assert canonical(key)[0] == name


def test_unknown_keys_are_unknown():
    for key in ("mood", "", "uid", "titles", "data"):
        assert canonical(key) is None


def test_no_name_stands_for_two_keys():
    names = [name for key, others in SYNONYMS.items() for name in (key, *others)]
    assert len({canonical(name) for name in names}) == len(names)
