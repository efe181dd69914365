import json
import math
import re
import subprocess
import sys
from datetime import date, datetime, timedelta, timezone

import pytest
import yaml
from hypothesis import assume, example, given
from hypothesis import strategies as st

from datasette_memory.errors import MemoryFault
from datasette_memory.vault import compose, frontmatter
from datasette_memory.vault.card import Relation, parse_card
from datasette_memory.vault.compose import new_text, scalar

LOADERS = [yaml.SafeLoader] + ([yaml.CSafeLoader] if yaml.__with_libyaml__ else [])


def read(text, path="x/file name.md"):
    return parse_card(text.encode(), path)


def block(text):
    assert text.startswith("---\n")
    return text[4 : text.index("\n---\n", 3) + 1]


# --- layout --------------------------------------------------------------------------------


def test_a_full_card_reads_well():
    text = new_text(
        {
            "mood": 5,
            "version": 3,
            "title": "生产库用 SQLite",
            "id": "D_0001",
            "kind": "decision",
            "summary": "One file: enough.",
            "tags": ["db", "运维", "2024"],
            "aliases": ["the decision"],
            "project": "tern",
            "created": "2026-05-01T09:30:00+08:00",
            "updated": date(2026, 5, 2),
            "confidence": 0.9,
            "relations": [
                Relation("supersedes", "D_0000"),
                {"type": "refers_to", "target": "Redis, Postgres"},
            ],
            "refs": {"files": ["C:\\x\\a.py"], "urls": []},
            "steps": [{"do": "stop", "then": ["wait", None]}, [], {}],
        },
        "# Heading\n",
    )
    assert text == (
        "---\n"
        "id: D_0001\n"
        "title: 生产库用 SQLite\n"
        "kind: decision\n"
        'summary: "One file: enough."\n'
        "tags:\n"
        "  - db\n"
        "  - 运维\n"
        '  - "2024"\n'
        "aliases:\n"
        "  - the decision\n"
        "project: tern\n"
        "created: 2026-05-01T09:30:00+08:00\n"
        "updated: 2026-05-02\n"
        "confidence: 0.9\n"
        "relations:\n"
        "  - type: supersedes\n"
        "    target: D_0000\n"
        "  - type: refers_to\n"
        "    target:\n"
        '      - "Redis, Postgres"\n'
        "refs:\n"
        "  files:\n"
        "    - 'C:\\x\\a.py'\n"
        "version: 3\n"
        "mood: 5\n"
        "steps:\n"
        "  - do: stop\n"
        "    then:\n"
        "      - wait\n"
        "      - null\n"
        "  - []\n"
        "  - {}\n"
        "---\n"
        "# Heading\n"
    )
    card = read(text)
    assert card.faults == ()
    assert card.relations == (
        Relation("supersedes", "D_0000"),
        Relation("refers_to", "Redis, Postgres"),
    )
    assert card.refs == {"files": ["C:\\x\\a.py"]}
    assert card.extra == {"mood": 5, "steps": [{"do": "stop", "then": ["wait", None]}, [], {}]}


def test_defaults_and_what_is_empty_are_left_out():
    fields = {
        "title": "T",
        "kind": "note",
        "summary": "",
        "tags": [],
        "project": None,
        "session": " \n ",
        "confidence": 0.7,
        "sensitivity": "internal",
        "priority": 0,
        "ttl": None,
        "relations": [],
        "refs": {"files": []},
        "version": 1,
    }
    assert new_text(fields, "B") == "---\ntitle: T\nkind: note\n---\nB"


def test_the_order_and_limits_are_those_of_the_reader():
    assert set(compose.KEYS) == set(frontmatter.SYNONYMS)
    assert compose.MAX_BYTES == frontmatter.MAX_BYTES
    assert compose.MAX_DEPTH == frontmatter.MAX_DEPTH


SCALARS = {
    "plain": "plain",
    "two words": "two words",
    "don't": "don't",
    "生产库，备份。": "生产库，备份。",
    "D_0001": "D_0001",
    "": '""',
    "null": '"null"',
    "Yes": '"Yes"',
    "off": '"off"',
    "y": '"y"',
    "2024-06-01": '"2024-06-01"',
    "1458": '"1458"',
    "1.5": '"1.5"',
    "1e5": '"1e5"',
    "12:30": '"12:30"',
    "a: b": '"a: b"',
    "a #b": '"a #b"',
    "*bold*": '"*bold*"',
    "[[link]]suffix": '"[[link]]suffix"',
    "- item": '"- item"',
    "a  b": '"a  b"',
    " a": '" a"',
    "C:\\x": "'C:\\x'",
    'say "it\'s"': "'say \"it''s\"'",
    "a\nb": '"a\\nb"',
    'tab\t"': '"tab\\t\\""',
    "\u202eevil": '"\\u202eevil"',
    "no\u00a0break": '"no\\_break"',
    "😀": '"😀"',
    "小鱼😀": '"小鱼😀"',
    "\U000e0041": '"\\U000e0041"',
}


@pytest.mark.parametrize("text", SCALARS, ids=ascii)
def test_scalar(text):
    assert scalar(text) == SCALARS[text]


# --- reading back --------------------------------------------------------------------------

ODD = st.sampled_from(
    "null ~ yes No TRUE on y 0x1F 0o7 007 1_000 1e5 1.5e+3 .inf -.NaN 12:30:45 2026-01-01 - -a ? : "
    "a: :a a: b #x x#y x #y , [ ] { } & * ! | > ' \" % @ ` = << <<: --- ... !!str \\ \\n 'a' \"a\" "
    "[[x]] {{x}} é ß 中 中:文 中：文 \u200b \ufeff \x85 \u2028 \xa0 \x07 \x1b \ufffe \U0001f600 "
    "\U0010ffff".split(" ")
    + ["a: b", "- a", "x #y", "a\n---\nb", "\n", "a\n", " a ", "\t", "", "a\rb", "2026-01-01 10:00"]
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | ODD
WILD = st.text(max_size=40) | ODD | st.lists(ODD, max_size=4).map(" ".join)


@pytest.mark.parametrize("loader", LOADERS)
@given(TEXT.map(lambda text: text.replace("\0", "")))
def test_a_scalar_is_read_as_it_was_in_every_place(loader, text):
    written = scalar(text)
    assert "\n" not in written
    for yaml_text, expected in [
        (f"k: {written}  # c\n", {"k": text}),
        (f"- {written}\n- {written}\n", [text, text]),
        (f"{written}: {written}\n", {text: text}),
        (
            f"[{written}, {{{written}: {written}, k: [{written}]}}]\n",
            [text, {text: text, "k": [text]}],
        ),
    ]:
        assume(text != "k")
        found = yaml.load(yaml_text, loader)
        assert found == expected
        if isinstance(found, dict):
            mapping, faults = frontmatter.load(yaml_text)
            assert (mapping, faults) == (expected, ())


def line(text, limit):
    """What the reader makes of a text that must be one line."""
    text = re.sub("[\0-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+", " ", text).strip()
    return text[:limit].rstrip()


def lines(texts, limit):
    return tuple(dict.fromkeys(filter(None, (line(text, limit) for text in texts))))


def tag(text):
    return line(
        re.sub("[\0-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+", " ", text).strip().lstrip("#"), 100
    )


BODIES = (
    WILD
    | st.text()
    | st.sampled_from(
        [
            "",
            "\n",
            "\n\n",
            "---\n",
            "---\ntitle: no\n---\nx",
            "# Heading\n",
            "x\n---\ny",
            "...\n",
            "\ufeffx",
        ]
        + ["\r\na\rb", "```\n---\n```\n", "x\n\n\n", "---", "\n---\n", "a\0b", "\ud800"]
    )
)


@given(WILD, BODIES, st.lists(WILD, max_size=5), WILD, st.lists(WILD, max_size=3))
@example("---", "---\nid: D_1\n---\n", ["a,b", "#x"], "null", ["x、y"])
@example("\ud800", "a\0b\r\nc\rd\ud800", ["\0"], "", ["\n"])
def test_any_title_body_and_tags_come_back(title, body, tags, summary, aliases):
    text = new_text(
        {"title": title, "tags": tags, "summary": summary, "aliases": aliases, "id": "N_1"}, body
    )
    card = read(text)
    expected = body.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    expected = re.sub("[\ud800-\udfff]", "\ufffd", expected)
    assert card.body == expected
    assert "\0" not in text
    assert card.ref == "N_1"
    if line(title, 500):
        assert card.title == line(title, 500)
    if line(summary, 1000):
        assert (card.summary, card.summary_from_body) == (line(summary, 1000), False)
    wanted = tuple(dict.fromkeys(filter(None, map(tag, tags))))
    assert card.tags[: len(wanted)] == wanted
    assert card.aliases == lines(aliases, 500)
    assert card.faults == ()
    # Every YAML parser says the same, not only ours.
    written = yaml.safe_load(block(text))
    assert written["id"] == "N_1"
    assert written.get("title", "")[:500].rstrip() == line(title, 500)


NUMBERS = st.integers(-(10**18) + 1, 10**18 - 1) | st.floats(allow_nan=False, allow_infinity=False)
KEYS = TEXT.map(lambda text: text.replace("\0", "")).filter(bool)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(KEYS, JSON, max_size=5))
def test_unknown_keys_of_any_shape_come_back(extra):
    extra = json.loads(json.dumps(extra).replace("\\u0000", ""))
    assume(not any(map(frontmatter.canonical, extra)))
    text = new_text({"title": "T", **extra}, "")
    card = read(text)
    assert card.extra == extra
    assert json.dumps(card.extra) == json.dumps(extra)
    assert card.faults == ()
    assert yaml.safe_load(block(text)) == {"title": "T", **extra}


TIMES = st.datetimes(
    min_value=datetime(1900, 1, 1),
    timezones=st.none() | st.integers(-14, 14).map(lambda hours: timezone(timedelta(hours=hours))),
)


@given(TIMES, st.dates(min_value=date(1900, 1, 1)))
def test_times_stand_plain_and_come_back(moment, day):
    text = new_text({"title": "T", "created": moment, "valid_from": day.isoformat()}, "")
    assert f"\ncreated: {moment.isoformat()}\n" in text
    assert f"\nvalid_from: {day.isoformat()}\n" in text
    card = read(text)
    assert (card.created, card.valid_from) == (moment.isoformat(), day.isoformat())
    found = yaml.safe_load(block(text))
    assert found["created"] == moment
    assert found["valid_from"] == day


def test_what_only_looks_like_a_time_is_quoted():
    text = new_text({"title": "T", "created": "2026-13-45", "seen": "2026-01-02"}, "")
    assert 'created: "2026-13-45"\nseen: "2026-01-02"\n' in text
    assert yaml.safe_load(block(text))["seen"] == "2026-01-02"


@given(st.lists(st.tuples(WILD, WILD), max_size=4))
@example([("refers to", "A_1, B_2"), ("x", "[[y|z]]")])
def test_relations_come_back(pairs):
    pairs = [(name, target) for name, target in pairs if line(name, 100) and line(target, 500)]
    text = new_text({"title": "T", "relations": [{"type": a, "target": b} for a, b in pairs]}, "")
    expected = []
    for name, target in pairs:
        name, target = line(name, 100).replace(" ", "_"), line(target, 500)
        if target.startswith("[[") and target.endswith("]]"):
            target = target[2:-2].partition("|")[0].strip()
        if target and (name, target) not in expected:
            expected.append((name, target))
    assert [(found.type, found.target) for found in read(text).relations] == expected


def test_floats():
    for number in [0.1, 1e-07, 1e22, -2.5, 1e300]:
        text = new_text({"title": "T", "x": number}, "")
        assert yaml.safe_load(block(text))["x"] == number
        assert read(text).extra["x"] == number
    assert "x: .inf\n" in new_text({"x": math.inf, "title": "T"}, "")
    assert "x: .nan\n" in new_text({"x": math.nan, "title": "T"}, "")


# --- refusals ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "relation",
    [{"type": "", "target": "D_1"}, {"type": "x", "target": "\n"}, {"x": "D_1"}, "x: D_1"],
)
def test_a_relation_without_type_or_target_is_refused(relation):
    with pytest.raises(MemoryFault, match="type and a target"):
        new_text({"title": "T", "relations": [relation]}, "")


def nested(depth):
    value = "x"
    for _ in range(depth):
        value = [value]
    return value


def test_frontmatter_that_would_not_be_read_again_is_refused():
    # 64 KiB are 65,536 bytes; "title: T\nx: " and the line end are 13 of them.
    fits = "x" * (65536 - 13)
    assert read(new_text({"title": "T", "x": fits}, "")).extra["x"] == fits
    with pytest.raises(MemoryFault, match="64 KiB"):
        new_text({"title": "T", "x": fits + "x"}, "")
    with pytest.raises(MemoryFault, match="64 KiB"):
        new_text({"title": "T", "summary": "语" * 22000}, "")
    assert read(new_text({"title": "T", "x": nested(19)}, "")).extra["x"] == nested(19)
    for key in ("x", "tags", "refs"):
        with pytest.raises(MemoryFault, match="deeper than 20"):
            new_text({"title": "T", key: nested(20)}, "")
    # Alone, these keys read like a sentence between two rules.
    with pytest.raises(MemoryFault, match="known key"):
        new_text({"one two three four five": 1}, "")


@pytest.mark.parametrize(
    "fields", [{"x": object()}, {"x": {1: 2}}, {1: 2}, {"": 1}, {"x" * 101: 1}]
)
def test_what_yaml_cannot_hold_is_refused(fields):
    with pytest.raises(MemoryFault):
        new_text({"title": "T"} | fields, "")


def test_writing_a_new_card_loads_no_yaml():
    script = (
        "import sys; from datasette_memory.vault.writer import Vault, new_text; "
        "new_text({'title': 'T', 'x': 1}, 'b'); print('yaml' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
