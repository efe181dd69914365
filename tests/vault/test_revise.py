import re
import textwrap

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from datasette_memory.errors import MemoryFault
from datasette_memory.vault import frontmatter
from datasette_memory.vault.card import Relation, parse_card
from datasette_memory.vault.compose import new_text
from datasette_memory.vault.revise import updated_text


class PythonParser(yaml.reader.Reader, yaml.scanner.Scanner, yaml.parser.Parser):
    """The parser where PyYAML comes without libyaml."""

    def __init__(self, text):
        yaml.reader.Reader.__init__(self, text)
        yaml.scanner.Scanner.__init__(self)
        yaml.parser.Parser.__init__(self)


@pytest.fixture(params=["as installed", "pure Python"], autouse=True, scope="module")
def parser(request):
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "pure Python":
            patch.setattr(frontmatter, "EventParser", PythonParser)
        yield


def read(text, path="x/file name.md"):
    return parse_card(text.encode(), path)


def front(text):
    return f"---\n{textwrap.dedent(text).lstrip(chr(10))}---\nBody\n"


def change(before, changes, after):
    """Check that updating the frontmatter `before` gives `after`, in four dresses."""
    before, after = front(before), front(after)
    for mark in ("", "\ufeff"):
        for end in ("\n", "\r\n", "\r"):
            old = mark + before.replace("\n", end)
            assert updated_text(old, changes) == mark + after.replace("\n", end)


# --- single values -------------------------------------------------------------------------


def test_the_value_alone_changes_in_its_line():
    change(
        """
        # The card.
        title:   'Old'   # shown in lists

        tags: [ a,b , 'c' ]
        version : 1\x20\x20
        mood: yes
        date: 2026-05-01 09:30
        """,
        {"title": "New: one", "version": 2},
        """
        # The card.
        title:   "New: one"   # shown in lists

        tags: [ a,b , 'c' ]
        version : 2\x20\x20
        mood: yes
        date: 2026-05-01 09:30
        """,
    )


def test_every_style_of_value_is_replaced_as_a_whole():
    for style in [
        "Old",
        "'Old ''one'''",
        '"Old\\n# \\"one\\""',
        "Old\n  in two lines",
        "'Old\n\n  in: two # lines'",
        "!!str 5",
        "|\n  Old\n  # no comment\n  text",
        ">-\n  Old\n\n  text",
        "|2-\n    Old",
        "[Old, 'x']",
        "[\n  Old,  # one\n  x\n]",
        "{old: [1, 2]}",
        "~",
        '""',
    ]:
        change(
            f"id: X_1\ntitle: {style}\n\n# next\nmood: 5\n",
            {"title": "New"},
            "id: X_1\ntitle: New\n\n# next\nmood: 5\n",
        )
        change(f"title: {style}\n", {"title": "New"}, "title: New\n")


def test_an_empty_value_is_filled_in():
    change(
        "title: T\nsummary:\nproject:   # none yet\nttl:\nx: 1\n",
        {"summary": "S", "project": "tern", "ttl": 7},
        "title: T\nsummary: S\nproject: tern   # none yet\nttl: 7\nx: 1\n",
    )


def test_a_value_that_is_the_same_is_not_touched():
    text = front(
        """
        title: 'T'
        confidence: 0.70
        tags: ["a",   b]
        version: 1
        created: 2026-05-01T09:30:00+08:00
        refs: {files: [1.5]}
        relations:
        - {type: supersedes, target: D_1}
        x: 1
        """
    )
    same = {
        "title": "T",
        "confidence": 0.7,
        "tags": ["a", "b"],
        "version": 1,
        "created": "2026-05-01T09:30:00+08:00",
        "refs": {"files": ["1.5"]},
        "relations": [Relation("supersedes", "D_1")],
        "x": 1,
        "summary": None,
        "priority": 0,
        "aliases": [],
    }
    assert updated_text(text, same) == text
    assert updated_text(text, same, "Body\n") == text
    assert updated_text(text, {}) == text
    # To a reader of unknown keys 1 and "1" are two things.
    assert updated_text(text, {"x": "1"}) == text.replace("x: 1", 'x: "1"')


def test_of_a_key_written_twice_the_one_that_counts_is_changed():
    change(
        "title: A\nmood: 1\nmood: 2\ntitle: B\n",
        {"title": "C", "mood": 3},
        "title: A\nmood: 1\nmood: 3\ntitle: C\n",
    )


@pytest.mark.parametrize("version", ["experimental", "1.4.2", "[1, 2]", "'v2'"])
def test_a_version_of_somebody_else_is_kept(version):
    text = f"title: T\nversion: {version}\n"
    change(text, {"version": 2}, text)
    change("version: '1'\n", {"version": 2}, "version: 2\n")


# --- new keys and removed ones -------------------------------------------------------------


def test_a_new_key_goes_behind_the_one_before_it_in_the_order():
    change(
        """
        id: D_1
        title: T
        tags:
          - a
        # about time
        created: 2026-05-01  # then
        mood: >+
          abc

        x: 1
        """,
        {"version": 2, "updated": "2026-05-02", "kind": "fact", "other": [{"a": 1}]},
        """
        id: D_1
        title: T
        kind: fact
        tags:
          - a
        # about time
        created: 2026-05-01  # then
        updated: 2026-05-02
        version: 2
        mood: >+
          abc

        x: 1
        other:
          - a: 1
        """,
    )


def test_a_new_key_goes_behind_the_blank_lines_that_are_text():
    change("title: |+\n  T\n\n", {"version": 2}, "title: |+\n  T\n\nversion: 2\n")
    change("title: |\n  T\n\n", {"version": 2}, "title: |\n  T\nversion: 2\n\n")
    change(
        "created: 2\ndate: 1\nx: 1\n", {"updated": "3"}, 'created: 2\ndate: 1\nupdated: "3"\nx: 1\n'
    )


def test_a_new_key_before_all_others_comes_first():
    change("# c\ntitle: T\n", {"id": "D_1"}, "id: D_1\n# c\ntitle: T\n")
    change("mood: 5\n", {"version": 2}, "version: 2\nmood: 5\n")
    change("  mood: 5\n  title: T\n", {"version": 2}, "  mood: 5\n  title: T\n  version: 2\n")


def test_keys_are_removed_with_their_lines_alone():
    change(
        """
        title: T
        # when
        valid_until: 2027-01-01  # gone with its line
        superseded_by:
          - D_9
        # what
        mood: 5
        """,
        {"valid_until": None, "superseded_by": "", "mood": None},
        """
        title: T
        # when
        # what
        """,
    )
    change("mood: 5\n", {"mood": None}, "")


def test_what_follows_a_removed_key_does_not_become_text_of_the_one_above():
    change(
        "x: |+\n  text\nttl: 5\n\n# c\ntitle: T\n",
        {"ttl": None},
        "x: |+\n  text\n#\n\n# c\ntitle: T\n",
    )
    change(
        "x: |\n  text\nttl: 5\n  # c\ntitle: T\n",
        {"ttl": None},
        "x: |\n  text\n#\n  # c\ntitle: T\n",
    )


def test_a_removed_key_does_not_give_way_to_a_synonym():
    text = updated_text(
        front("title: T\nexpires: 2027-01-01\nvalid_until: 2026-01-01\n"), {"valid_until": None}
    )
    assert read(text).valid_until is None


@pytest.mark.parametrize(
    ("key", "written", "value"),
    [
        ("kind", "type", "fact"),
        ("created", "created_at", "2026-06-01T00:00:00Z"),
        ("created", "Created At", "2026-06-01T00:00:00Z"),
        ("updated", "更新时间", "2026-06-01"),
        ("version", "update_version", 2),
        ("project", "项目", "燕子"),
    ],
)
def test_a_synonym_is_changed_in_place(key, written, value):
    change(
        f"title: T\n{written}: 1 # c\nx: 1\n",
        {key: value},
        f"title: T\n{written}: {value} # c\nx: 1\n",
    )


def test_of_several_synonyms_the_one_that_counts_is_changed():
    before = "date: 2020-01-01\ncreated_at: 2021-01-01\ncreated:\ntitle: T\n"
    change(before, {"created": "2026-01-01"}, before.replace("2021-01-01", "2026-01-01"))
    assert read(front(before)).created == "2021-01-01"


# --- lists and mappings --------------------------------------------------------------------


def test_the_items_of_a_block_list_that_stay_keep_their_lines():
    change(
        """
        title: T
        tags: # t
        # first
        - 'a'   # A
        # second
        -   b
        - c # C
        # end
        mood: 5
        """,
        {"tags": ["0", "a", "x", "c", "d"]},
        """
        title: T
        tags: # t
        # first
        - "0"
        - 'a'   # A
        - x
        # second
        - c # C
        - d
        # end
        mood: 5
        """,
    )


def test_the_items_of_a_flow_list_that_stay_keep_their_text():
    change(
        "title: T\ntags: [ 'a',b ,c ] # t\n",
        {"tags": ["a", "c", "d"]},
        "title: T\ntags: [ 'a' ,c, d ] # t\n",
    )
    change("tags: [a, b]\n", {"tags": ["x", "b"]}, "tags: [x, b]\n")
    change("tags: [a, b]\n", {"tags": ["x", "z"]}, "tags: [x, z]\n")
    change("tags: []\n", {"tags": ["x"]}, "tags: [x]\n")
    change("tags: [a]\n", {"tags": []}, "tags: []\n")
    change(
        "tags: [\n  a,  # A\n  b,\n]\n",
        {"tags": ["a", "b", "c"]},
        "tags: [\n  a,  # A\n  b, c,\n]\n",
    )


def test_a_list_takes_the_place_of_another_value():
    change("tags: a, b # t\n", {"tags": ["a", "c"]}, "tags: [a, c] # t\n")
    change("tags: # t\nx: 1\n", {"tags": ["a"]}, "tags: # t\n  - a\nx: 1\n")
    change("tags: ~ # t\nx: 1\n", {"tags": ["a"]}, "tags: # t\n  - a\nx: 1\n")
    change(
        "tags: # t\n  # c\n  - a # A\n# d\nx: 1\n", {"tags": []}, "tags: [] # t\n  # c\n# d\nx: 1\n"
    )
    change("x: # c\n  - a\n# d\n", {"x": "b"}, "x: b # c\n# d\n")
    change("x:\n  - a\n", {"x": {"b": ["c"]}}, "x:\n  b:\n    - c\n")


def test_nested_mappings_are_changed_key_by_key():
    change(
        """
        title: T
        refs:
            # where
            files: [a.py]  # f
            urls:
            - https://example.org/a
            # note
            commits: ["12345e7"]
        """,
        {
            "refs": {
                "files": ["a.py", "b.py"],
                "urls": ["https://example.org/b"],
                "evidence": ["ab"],
            }
        },
        """
        title: T
        refs:
            # where
            files: [a.py, b.py]  # f
            urls:
            - "https://example.org/b"
            # note
            evidence:
              - ab
        """,
    )


def test_frontmatter_in_braces():
    change(
        '{title: "T", tags: [a, b], x: {y: 1}, mood: 5}\n',
        {"title": "N, M", "tags": ["b"], "x": {"y": 2, "z": ["}"]}, "mood": None, "version": 2},
        '{title: "N, M", tags: [b], x: {y: 2, z: ["}"]}, version: 2}\n',
    )
    change("{}\n", {"title": "T"}, "{title: T}\n")
    change("{mood: 5, title: T}\n", {"mood": None}, "{title: T}\n")


# --- relations -----------------------------------------------------------------------------

RELATED = """
title: T
relations:
  - caused_by: I_1   # short
  # and
  - {type: refers_to, target: "[[Note]]"}
  - implements D_5
supersedes: [D_1, D_2]  # own
refers_to: N_1
"""


def relations(text):
    return {(found.type, found.target) for found in read(text).relations}


ALL = [
    ("caused_by", "I_1"),
    ("refers_to", "Note"),
    ("implements", "D_5"),
    ("supersedes", "D_1"),
    ("supersedes", "D_2"),
    ("refers_to", "N_1"),
]


def relate(pairs):
    return {"relations": [{"type": name, "target": target} for name, target in pairs]}


def test_relations_are_left_where_and_as_they_are_written():
    assert relations(front(RELATED)) == set(ALL)
    change(RELATED, relate(ALL), RELATED)
    change(
        RELATED,
        relate([*ALL, ("refers_to", "N_9")]),
        RELATED.replace("D_5\n", "D_5\n  - type: refers_to\n    target: N_9\n"),
    )


@pytest.mark.parametrize("gone", ALL)
def test_any_relation_can_be_taken_away_wherever_it_stands(gone):
    left = [pair for pair in ALL if pair != gone]
    text = updated_text(front(RELATED), relate(left))
    assert relations(text) == set(left)
    # At most one line is another.
    old = front(RELATED).splitlines()
    assert sum(line not in text.splitlines() for line in old) == 1


def test_all_relations_can_be_taken_away():
    assert relations(updated_text(front(RELATED), relate([]))) == set()


def test_a_relation_is_added_in_the_style_of_the_list():
    change(
        "relations:\n- {type: x, target: A_1}\n",
        relate([("x", "A_1"), ("z", "A_2")]),
        "relations:\n- {type: x, target: A_1}\n- {type: z, target: A_2}\n",
    )
    change(
        "relations: # r\n", relate([("z", "A_2")]), "relations: # r\n  - type: z\n    target: A_2\n"
    )
    change("relations: [x: A_1]\n", relate([("x", "A_2")]), "relations: [{type: x, target: A_2}]\n")
    text = updated_text(front("relations: {x: A_1}\n"), relate([("x", "A_1"), ("z", "A_2")]))
    assert relations(text) == {("x", "A_1"), ("z", "A_2")}


# --- body and the file as a whole ----------------------------------------------------------


def test_a_card_without_frontmatter_gets_one():
    assert (
        updated_text("# H\n\nB", {"version": 2, "id": "N_1"})
        == "---\nid: N_1\nversion: 2\n---\n# H\n\nB"
    )
    assert updated_text("", {"title": "T"}) == "---\ntitle: T\n---\n"
    assert (
        updated_text("\ufeffa\r\nb\n", {"title": "T"}) == "\ufeff---\r\ntitle: T\r\n---\r\na\r\nb\n"
    )
    rule = "---\nThis is prose.\n---\nMore.\n"
    assert updated_text(rule, {"title": "T"}) == f"---\ntitle: T\n---\n{rule}"
    assert updated_text("---\n---\nB", {"title": "T"}) == "---\ntitle: T\n---\nB"
    assert updated_text("---\n# c\n...\nB", {"title": "T"}) == "---\n# c\ntitle: T\n...\nB"


def test_a_body_is_replaced_and_nothing_else():
    old = "---  \ntitle:  'T'\n...\nOld\n"
    assert updated_text(old, {}, "New\r\n") == "---  \ntitle:  'T'\n...\nNew\n"
    assert (
        updated_text(old.replace("\n", "\r\n"), {}, "a\nb")
        == "---  \r\ntitle:  'T'\r\n...\r\na\r\nb"
    )
    assert updated_text("---\ntitle: T\n---", {}, "B") == "---\ntitle: T\n---\nB"
    assert updated_text("Old\0\0", {}, "New") == "New"


@pytest.mark.parametrize(
    "body", ["---\ntitle: no\n---\nx", "---\n", "---", "--- a\n", "---\nid: X_1\n"]
)
def test_a_body_is_never_taken_for_frontmatter(body):
    for old in ("plain", "---\ntitle: T\n---\nplain"):
        card = read(updated_text(old, {}, body))
        assert (card.body, card.ref) == (body, None)


def test_a_body_that_stays_keeps_its_bytes():
    body = "a\r\nb\nc\rd\0e\r\r\n\x85\u2028---\n"
    old = "---\ntitle: T\r\nx: 1\0\n---\n" + body
    assert updated_text(old, {"title": "New"}) == "---\ntitle: New\r\nx: 1\0\n---\n" + body
    assert updated_text(old, {"title": "New"}, read(old).body) == updated_text(
        old, {"title": "New"}
    )


# --- refusals ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("block", "why"),
    [
        ("title: [a\n", "not valid YAML"),
        ("title: a: b\n", "not valid YAML"),
        ("title: *Italic*\n", "not valid YAML|anchors"),
        ("title: &a x\nb: *a\n", "anchors"),
        ("title: T\n<<: {a: 1}\n", "merge keys"),
        ("title: !!python/name:os.system x\n", "tag"),
        ("title: T\nx: " + "[" * 25 + "]" * 25 + "\n", "nested deeper"),
        ("title: T\nrefs:\n\tfiles: a\n", "tabs"),
        ("title: T\nx: " + "y" * 70000 + "\n", "64 KiB"),
        ("title: T\n? version\n: 1\n", "cannot be edited"),
    ],
)
def test_frontmatter_that_cannot_be_changed_safely_is_refused(block, why):
    with pytest.raises(MemoryFault, match=why):
        updated_text(f"---\n{block}---\nB", {"version": 2, "title": "N"})


def test_frontmatter_that_was_never_closed_is_refused():
    with pytest.raises(MemoryFault, match="closing line"):
        updated_text("---\ntitle: T\n\nBody", {"version": 2})


def test_frontmatter_that_would_grow_too_large_is_refused():
    with pytest.raises(MemoryFault, match="64 KiB"):
        updated_text("---\ntitle: T\n---\n", {"summary": "x" * 66000})


def test_losing_the_last_known_key_is_refused_where_the_rest_would_become_body():
    text = "---\none two three four five: 1\ntitle: T\n---\n"
    assert read(text).title == "T"
    with pytest.raises(MemoryFault):
        updated_text(text, {"title": None})


# --- any style -----------------------------------------------------------------------------

WORDS = st.sampled_from(
    ["a", "b", "D_1", "两 字", "1", "null", "x: y", "#h", "😀𠀀", "it's", '"', "é"]
)
COMMENT = st.sampled_from(["", "", "  # c", " #", "   "])
ABOVE = st.sampled_from(["", "", "# above\n", "\n", "  # indented\n\n", "#\n"])


@st.composite
def scalars(draw):
    word = draw(WORDS)
    style = draw(st.sampled_from(["plain", "single", "double"]))
    if style == "single":
        return "'" + word.replace("'", "''") + "'"
    if style == "double" or word in ("x: y", "#h", '"'):
        return '"' + word.replace('"', '\\"') + '"'
    return word


@st.composite
def flows(draw, depth=0):
    if depth > 1 or draw(st.booleans()):
        return draw(scalars())
    items = draw(st.lists(flows(depth + 1), max_size=3))
    if draw(st.booleans()):
        return "[" + draw(st.sampled_from([", ", ",  ", " , "])).join(items) + "]"
    return "{" + ", ".join(f"k{number}: {item}" for number, item in enumerate(items)) + "}"


@st.composite
def values(draw):
    """What may follow the colon of a key at the left margin, with its line end."""
    style = draw(
        st.sampled_from(["flow", "flow", "null", "list", "map", "block", "folded", "wrapped"])
    )
    end = draw(COMMENT) + "\n"
    if style == "null":
        return end
    if style == "flow":
        return " " * draw(st.integers(1, 3)) + draw(flows()) + end
    if style == "wrapped":
        return " some words" + "\n  and more" * draw(st.integers(1, 2)) + end
    indent = draw(st.integers(1, 4))
    if style in ("block", "folded"):
        head = {"block": "|", "folded": ">"}[style] + draw(st.sampled_from(["", "-", "+"]))
        lines = draw(st.lists(st.sampled_from(["text", "# no comment", "", "more: x"]), max_size=4))
        return (
            f" {head}\n"
            + " " * indent
            + "first\n"
            + "".join(f"{' ' * indent}{line}\n" if line else "\n" for line in lines)
        )
    text = end
    if style == "list":
        indent = draw(st.integers(0, 4))
        for _ in range(draw(st.integers(1, 4))):
            text += draw(st.sampled_from(["", "", f"{' ' * indent}# item\n"]))
            item = draw(st.sampled_from(["flow", "flow", "null", "map"]))
            text += " " * indent + "-"
            if item == "flow":
                text += draw(st.sampled_from([" ", "   "])) + draw(flows())
            elif item == "map":
                text += f" type: {draw(scalars())}\n{' ' * (indent + 2)}target: {draw(flows())}"
            text += draw(COMMENT) + "\n"
        return text
    for number in range(draw(st.integers(1, 3))):
        text += draw(st.sampled_from(["", "", f"{' ' * indent}# entry\n"]))
        text += f"{' ' * indent}k{number}: {draw(flows())}{draw(COMMENT)}\n"
    return text


KEYS = [
    "title",
    "type",
    "created_at",
    "tags",
    "refs",
    "priority",
    "mood",
    "心情",
    "relations",
    "x y",
]
NEW = st.recursive(
    st.text(max_size=10) | WORDS | st.integers(0, 99) | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def cards(draw):
    """The chunks of a block, one a key: (key, comments above, lines)."""
    keys = draw(st.lists(st.sampled_from(KEYS), unique=True, max_size=6))
    spaced = st.sampled_from(["", "", " "])
    chunks = []
    for key in keys:
        above = draw(ABOVE)
        if chunks and (block := re.match(r".*: [|>](\+?)", chunks[-1][2])):
            # Below a block of text an indented line is part of it, and a blank one may be.
            above = above.lstrip(" \n" if block[1] else " ")
        chunks.append((key, above, f"{key}{draw(spaced)}:{draw(values())}"))
    return chunks


@given(
    cards(),
    st.dictionaries(st.sampled_from([*KEYS[5:8], "new"]), NEW, max_size=3),
    st.dictionaries(st.just("summary"), WORDS | st.text(max_size=10)),
    st.sets(st.sampled_from([*KEYS[5:8], "summary"])),
    st.none() | st.text(st.characters(exclude_characters="\r\0", exclude_categories=["Cs"])),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from(["", "\ufeff"]),
)
def test_only_what_changes_changes(chunks, changes, summary, removed, body, end, mark):
    block = "".join(above + lines for _, above, lines in chunks)
    before, faults = frontmatter.load(block)
    assert faults == (), faults
    old = mark + f"---\n{block}---\nOld *body*\n".replace("\n", end)
    changes = changes | summary | dict.fromkeys(removed)
    if read(old).body != "Old *body*\n":
        return  # prose between two rules
    left = [key for key in [*before, *changes] if changes.get(key, 0) not in (None, "")]
    try:
        new = updated_text(old, changes, body)
    except MemoryFault:
        # Without a known key the rest reads like prose between two rules.
        assert before and not any(map(frontmatter.canonical, left))
        return

    # The same bytes around what changed, in the same order.
    assert new.startswith(mark + "---" + end)
    at = 0
    for key, above, lines in chunks:
        for kept in re.findall(".*\n", above):
            at = found(new, kept.replace("\n", end), at)
        if key not in changes:
            # A new key may stand before the blank lines at the end, unless they are text.
            lines = lines if "+" in lines.partition("\n")[0] else lines.rstrip("\n") + "\n"
            at = found(new, lines.replace("\n", end), at)
    kept = "".join(above + (lines if key not in changes else "") for key, above, lines in chunks)
    assert in_order(kept.splitlines(), new_block(new).splitlines())
    rest = "Old *body*\n" if body is None else body
    assert new.endswith("---" + end + rest.replace("\n", end))

    # The same values, and the new ones.
    assert read(new).body == rest
    after, faults = frontmatter.load(new_block(new))
    assert faults == ()
    for key in before.keys() - changes.keys():
        assert frontmatter.resolve(after[key]) == frontmatter.resolve(before[key])
    for key, value in changes.items():
        if value is None or value == "":
            assert key not in after or not frontmatter.resolve(before[key])
        elif key in before or plain(value, key) not in ("", [], {}):
            if (key, value) != ("priority", 0) or key in before:
                assert textual(after[key]) == textual(plain(value, key))
    assert after.keys() <= before.keys() | changes.keys()

    # A second time there is nothing to do, and the way back leads back.
    assert updated_text(new, changes, body) == new


def in_order(some, lines):
    rest = iter(lines)
    return all(line in rest for line in some)


def found(text, part, at):
    where = text.find(part, at)
    assert where >= 0, (text, part)
    return where + len(part)


def new_block(text):
    text = text.lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return frontmatter.split(text)[0] or ""


def plain(value, key):
    """A value as it is written: texts without what YAML cannot hold, of one line where so meant."""
    if isinstance(value, dict):
        return {plain(name, ""): plain(item, "") for name, item in value.items()}
    if isinstance(value, list):
        return [plain(item, "") for item in value]
    if isinstance(value, str):
        if key == "summary":
            return re.sub("[\0-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+", " ", value).strip()
        return re.sub("[\0\ud800-\udfff]", "", value)
    return value


def textual(value):
    if isinstance(value, dict):
        return {key: textual(item) for key, item in value.items()}
    if isinstance(value, list):
        return [textual(item) for item in value]
    return value if isinstance(value, str) else str(value).lower().replace("none", "null")


@given(
    st.dictionaries(st.text(max_size=10) | st.sampled_from(KEYS), NEW, max_size=4),
    st.dictionaries(st.sampled_from(["title", "tags", "mood", "new", "project"]), NEW, max_size=4),
    st.text(max_size=30),
)
def test_what_new_text_wrote_can_be_changed(fields, changes, body):
    fields = {
        key: value
        for key, value in fields.items()
        if key not in ("relations", "refs") and plain(key, "") == key != ""
    }
    old = new_text({**fields, "id": "N_1"}, body)
    new = updated_text(old, changes)
    assert read(new).body == read(old).body
    assert read(new).ref == "N_1"
    before = yaml.safe_load(new_block(old))
    after = yaml.safe_load(new_block(new))
    for key in before.keys() - changes.keys():
        if frontmatter.canonical(key) is None:
            assert after[key] == before[key]
