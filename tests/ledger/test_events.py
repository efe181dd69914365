import json
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasette_memory.ledger.events import (
    ACTOR,
    KINDS,
    MAX_LINE,
    TEXT_KEYS,
    Event,
    cleaned,
    dump,
    new_id,
    parse,
    timestamp,
)

T = "2026-12-01T02:03:04.567Z"
BY = {"surface": "cli", "agent": "燕子", "session": None}
READ = Event(1, "01KBC", T, "read", "D_0001", "vault", "09-Decisions/全文.md", BY, {"how": "show"})
LINE = (
    '{"v":1,"id":"01KBC","t":"2026-12-01T02:03:04.567Z","kind":"read","ref":"D_0001",'
    '"source":"vault","path":"09-Decisions/全文.md",'
    '"by":{"surface":"cli","agent":"燕子","session":null},"how":"show"}'
).encode()

characters = st.characters(exclude_categories=["Cs"])
words = st.none() | st.text(characters, max_size=20)
keys = st.text(characters, max_size=10).filter(
    lambda key: key.strip().lower() not in TEXT_KEYS | set(json.loads(LINE))
)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(characters, max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=10,
)
events = st.builds(
    Event,
    v=st.just(1),
    id=st.integers(0, 2**48 - 1).map(new_id),
    t=st.integers(0, 253_402_300_799_999).map(timestamp),
    kind=st.sampled_from(KINDS),
    ref=words,
    source=words,
    path=words,
    by=st.fixed_dictionaries(dict.fromkeys(ACTOR, words)),
    data=st.dictionaries(keys, values, max_size=5),
)


def changed(**fields):
    """LINE with other values for some of its keys; a key with the value ... is left out."""
    record = {**json.loads(LINE), **fields}
    return json.dumps({key: value for key, value in record.items() if value is not ...}).encode()


def test_a_line_is_as_the_format_says():
    assert dump(READ) == LINE
    assert parse(LINE) == READ
    assert parse(LINE + b"\n") == READ
    assert parse(LINE + b"\r\n") == READ


@given(events)
def test_any_event_dumps_and_parses_to_the_same(event):
    line = dump(event)
    assert b"\n" not in line
    assert parse(line) == event


def test_what_a_line_leaves_out_is_none():
    line = b'{"v":1,"id":"1","t":"2026-12-01T02:03:04.567Z","kind":"gap","q":"x"}'
    assert parse(line) == Event(1, "1", T, "gap", data={"q": "x"})


def test_a_kind_of_a_later_version_is_read_and_not_written():
    event = parse(changed(kind="dreamt"))
    assert event.kind == "dreamt"
    with pytest.raises(ValueError, match="no kind of event is named 'dreamt'"):
        dump(event)


@pytest.mark.parametrize("key", ["body", "text", "prompt", "content", "Body", " TEXT "])
def test_no_event_carries_a_text(key):
    for data in ({key: "x"}, {"a": {key: "x"}}, {"a": [{"b": {key: None}}]}):
        event = Event(1, "1", T, "read", data=data)
        with pytest.raises(ValueError, match="no event carries a text"):
            dump(event)
        with pytest.raises(ValueError, match="no event carries a text"):
            parse(changed(**data))


def test_no_value_is_long():
    for data in ({"a": "字" * 2001}, {"a": [{"b": "x" * 2001}]}, {"k" * 2001: 1}):
        with pytest.raises(ValueError, match="longer than 2000 characters"):
            dump(Event(1, "1", T, "read", data=data))
        with pytest.raises(ValueError, match="longer than 2000 characters"):
            parse(changed(**data))
    for field in ("ref", "source"):
        with pytest.raises(ValueError, match=f"'{field}' is 'xxx"):
            dump(Event(1, "1", T, "read", **{field: "x" * 2001}))
    with pytest.raises(ValueError, match=r"'by.agent' is 'xxx"):
        dump(Event(1, "1", T, "read", by={**BY, "agent": "x" * 2001}))
    assert parse(dump(Event(1, "1", T, "read", data={"a": "字" * 2000}))).data["a"] == "字" * 2000


def test_no_line_is_long():
    many = ["字" * 2000] * 11
    with pytest.raises(ValueError, match="at most 65536 bytes"):
        dump(Event(1, "1", T, "read", data={"a": many}))
    dump(Event(1, "1", T, "read", data={"a": many[1:]}))
    with pytest.raises(ValueError, match="longer than 65536 bytes"):
        parse(b" " * (MAX_LINE + 1))


def test_what_json_has_no_form_for_is_refused():
    endless = []
    endless.append(endless)
    for value in (b"x", {1, 2}, (1, 2), object(), math.nan, math.inf, {1: 2}, endless):
        with pytest.raises(ValueError):
            dump(Event(1, "1", T, "read", data={"a": value}))


@pytest.mark.parametrize("key", ["v", "id", "t", "kind", "ref", "source", "path", "by"])
def test_data_does_not_hide_what_an_event_is(key):
    with pytest.raises(ValueError, match="has a meaning of its own"):
        dump(Event(1, "1", T, "read", data={key: "x"}))


@pytest.mark.parametrize(
    "line, reason",
    [
        (b"", "not JSON"),
        (b"\x00" * 50, "not JSON"),
        (LINE[:-1], "not JSON"),
        (LINE + LINE, "not JSON"),
        (LINE[40:], "not JSON"),
        (b"[1]", "not a JSON object"),
        (b'"body"', "not a JSON object"),
        (b"null", "not a JSON object"),
        (LINE.replace("燕".encode(), b"\xe7\x87"), "not UTF-8"),
        (LINE.replace(b"show", rb"\ud83d"), "half of a surrogate pair"),
        (LINE.replace(b'"show"', b"NaN"), "NaN is no JSON"),
        (LINE.replace(b'"show"', b"-Infinity"), "-Infinity is no JSON"),
        (LINE.replace(b'"show"', b"1e999"), "inf is no JSON"),
        (LINE.replace(b'"show"', b"[" * 30_000 + b"]" * 30_000), ""),
        (changed(v=...), "version None"),
        (changed(v=2), "version 2"),
        (changed(v=True), "version True"),
        (changed(v="1"), "version '1'"),
        (changed(id=...), "'id' is None"),
        (changed(id=7), "'id' is 7"),
        (changed(id="../x"), "'id' is '../x'"),
        (changed(id="x" * 65), "'id' is 'xxx"),
        (changed(t=...), "'t' is None"),
        (changed(t="2026-12-01T02:03:04Z"), "'t' is"),
        (changed(t="2026-12-01T02:03:04.567+00:00"), "'t' is"),
        (changed(t="2026-13-01T02:03:04.567Z"), "'t' is"),
        (changed(t="2026-02-30T02:03:04.567Z"), "'t' is"),
        (changed(t="2026-12-01T02:03:04.567Z\n"), "'t' is"),
        (changed(t="２０26-12-01T02:03:04.567Z"), "'t' is"),
        (changed(kind=...), "'kind' is None"),
        (changed(kind=["read"]), "'kind' is"),
        (changed(kind="Read It"), "'kind' is"),
        (changed(ref=1), "'ref' is 1"),
        (changed(source=[]), "'source' is"),
        (changed(path={}), "'path' is"),
        (changed(path="x" * 4097), "'path' is"),
        (changed(by="cli"), "'by' is not an object"),
        (changed(by={"agent": 1}), "'by.agent' is 1"),
    ],
)
def test_what_is_no_event_is_told_in_a_few_words(line, reason):
    with pytest.raises(ValueError) as caught:
        parse(line)
    assert reason in str(caught.value)
    assert len(str(caught.value)) < 120
    assert "\n" not in str(caught.value)


@given(st.binary(max_size=200) | st.text().map(str.encode) | values.map(json.dumps).map(str.encode))
def test_any_bytes_are_an_event_or_a_value_error(line):
    with pytest.raises(ValueError):
        parse(line)


def test_a_pair_of_surrogates_is_one_character():
    assert parse(LINE.replace(b"show", rb"\ud83d\ude00")).data == {"how": "😀"}


def test_time_is_utc_with_milliseconds():
    # date -u -d @1796090584 gives 2026-12-01 02:03:04.
    assert timestamp(1_796_090_584_567) == T
    assert timestamp(0) == "1970-01-01T00:00:00.000Z"
    assert timestamp(999) == "1970-01-01T00:00:00.999Z"


def test_ids_sort_by_time_and_differ():
    # The specification of ULID gives 01ARYZ6S41 for 1469918176385.
    assert new_id(1_469_918_176_385).startswith("01ARYZ6S41")
    ids = [new_id(ms) for ms in range(0, 2**48, 2**38)]
    assert ids == sorted(ids)
    assert all(re.fullmatch("[0-9A-HJKMNP-TV-Z]{26}", one) for one in ids)
    assert len({new_id(5) for _ in range(5000)}) == 5000


def test_what_no_file_can_hold_is_replaced():
    assert cleaned("a\ud800b\udfff\x00") == "a\ufffdb\ufffd\x00"
    assert cleaned({"\udc80": ["\udc80", {"a": 1}, None]}) == {"\ufffd": ["\ufffd", {"a": 1}, None]}
