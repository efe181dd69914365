"""Properties of the JSON editor, on values, styles and comments at random."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datasette_memory.clients import json_edit
from datasette_memory.clients.splice import EditFault, Put, Taken, insert, merged, undo_at

KEYS = st.sampled_from(["a", "b", "钥", "mcpServers", "hooks", "Stop", 'q"', "\\"]) | st.text(
    max_size=3
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)  # fmt: skip
TREE = {
    "mcpServers": {"memory": Put(command="/x y/memory", args=["mcp"])},
    "hooks": {"Stop": [{"hooks": [{"command": "memory hook stop"}]}], "New": ["memory hook"]},
}
GAPS = st.sampled_from(["", " ", "\n", "\r\n", "\t", "\n  ", "  \n\t"])
COMMENTS = GAPS | st.sampled_from([" // c\n", "/* c */", "/* }{ */ ", '\n// 注 "\n', " /*\n*/ "])
PLACES = [("mcpServers",), ("hooks", "*")]


def unordered(value):
    """Hooks of one event in any order: a comment behind the last one makes ours the first."""
    if isinstance(value.get("hooks"), dict):
        hooks = {
            key: sorted(one, key=json.dumps) if isinstance(one, list) else one
            for key, one in value["hooks"].items()
        }
        return {**value, "hooks": hooks}
    return value


def ours(path, value):
    return "memory" in json.dumps(value) and (path[0] == "hooks" or path[-1] == "memory")


@st.composite
def texts(draw, gaps=GAPS, trailing=False):
    """A JSON object as text, with any white space (and comments) between any two tokens."""

    def written(value):
        gap = lambda: draw(gaps)  # noqa: E731
        if isinstance(value, (dict, list)):
            rows = [
                json.dumps(key, ensure_ascii=False) + gap() + ":" + gap() + written(one) + gap()
                for key, one in value.items()
            ] if isinstance(value, dict) else [written(one) + gap() for one in value]  # fmt: skip
            body = ("," + gap()).join(rows)
            if rows and trailing and draw(st.booleans()):
                body += "," + gap()
            left, right = "{}" if isinstance(value, dict) else "[]"
            return left + gap() + body + right
        return json.dumps(value, ensure_ascii=draw(st.booleans()))

    value = draw(st.dictionaries(KEYS, VALUES, max_size=4))
    if draw(st.booleans()):
        value["mcpServers"] = draw(st.dictionaries(KEYS, VALUES, max_size=2))
    if draw(st.booleans()):
        value["hooks"] = {"Stop": draw(st.lists(VALUES, max_size=2)), "Other": []}
    bom = draw(st.sampled_from(["", "\ufeff"]))
    return bom + draw(gaps) + written(value) + draw(gaps), value


@given(texts())
def test_json_is_read_as_the_standard_library_reads_it(pair):
    text, value = pair
    assert json_edit.parse(text, "json").plain() == json.loads(text.removeprefix("\ufeff")) == value


@pytest.mark.parametrize("flavour", ["json", "jsonc", "json5"])
@settings(max_examples=60)
@given(st.data())
def test_what_is_inserted_and_removed_again_leaves_the_same_bytes(flavour, data):
    strict = flavour == "json"
    text, value = data.draw(texts(GAPS if strict else COMMENTS, not strict))
    try:
        splices = json_edit.additions(text, TREE, flavour)
    except Taken:
        return  # `mcpServers` or `hooks` was drawn as something else than an object.
    after = insert(text, splices)
    assert unordered(json_edit.parse(after, flavour).plain()) == unordered(merged(value, TREE))
    if strict:
        assert json.loads(after.removeprefix("\ufeff")) == merged(value, TREE)
    assert undo_at(after, splices) == text
    # By what is ours alone, as when the manifest is lost: the data is what it was.
    made = json_edit.missing(text, TREE, flavour)
    clean = json_edit.without_empty(json_edit.without(after, flavour, PLACES, ours), flavour, made)
    assert json_edit.parse(clean, flavour).plain() == value


@settings(max_examples=60)
@given(texts(COMMENTS, True), st.integers(0, 400))
def test_a_text_cut_short_is_refused_or_was_whole(pair, at):
    text = pair[0].rstrip()
    short = text[: min(at, len(text) - 1)]
    try:
        node = json_edit.parse(short, "jsonc")
    except EditFault as error:
        assert "\n" not in str(error)
    else:
        assert node is None or json_edit.parse(text, "jsonc").plain() == node.plain()


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text):
    for flavour in ("json", "jsonc", "json5"):
        try:
            json_edit.additions(text, TREE, flavour)
        except EditFault:
            pass


@given(st.text(alphabet="{}[]:,\"'\\/* \n01ae.-+", max_size=25))
def test_what_the_standard_library_refuses_is_refused(text):
    try:
        expected = json.loads(text)
    except ValueError:
        expected = EditFault
    try:
        node = json_edit.parse(text, "json")
    except EditFault:
        assert expected is EditFault
    else:
        assert node is None or node.plain() == expected
