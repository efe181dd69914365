import hashlib
import json
import os
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasette_memory import durable
from datasette_memory.errors import MemoryFault, NotFound
from datasette_memory.evidence.store import (
    MAX_BYTES,
    EvidenceStore,
    Record,
    safe_hash,
    safe_path,
    safe_reference,
)

posix = pytest.mark.skipif(os.name == "nt", reason="needs POSIX files")

# printf 'hello\n' | sha256sum
HELLO = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"


@pytest.fixture
def store(tmp_path):
    return EvidenceStore(tmp_path / "evidence")


def files(store):
    return sorted(
        path.relative_to(store.folder).as_posix()
        for path in store.folder.rglob("*")
        if path.is_file()
    )


def test_a_text_lies_under_its_hash_with_a_record(store):
    record = store.put("hello\n", kind="raw", origin="notes.txt", session="s1")
    assert record.sha256 == HELLO
    assert files(store) == [f"58/{HELLO}.json", f"58/{HELLO}.txt"]
    assert (store.folder / "58" / f"{HELLO}.txt").read_bytes() == b"hello\n"
    written = json.loads((store.folder / "58" / f"{HELLO}.json").read_text("utf-8"))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", written.pop("created"))
    assert written == {
        "sha256": HELLO,
        "bytes": 6,
        "kind": "raw",
        "origin": "notes.txt",
        "session": "s1",
        "sensitivity": "internal",
    }
    assert store.record(HELLO) == record
    assert store.get(HELLO) == "hello\n"


@given(st.text(st.characters(exclude_categories=["Cs"])) | st.just("a\r\n\ufeffb\x00\u2028\r"))
def test_any_text_comes_back(tmp_path_factory, text):
    store = EvidenceStore(tmp_path_factory.mktemp("evidence"))
    record = store.put(text, kind="raw")
    assert store.get(record.sha256) == text
    assert record.sha256 == hashlib.sha256(text.encode()).hexdigest()
    assert record.bytes == len(text.encode())


@given(st.binary())
def test_any_bytes_are_kept(tmp_path_factory, data):
    store = EvidenceStore(tmp_path_factory.mktemp("evidence"))
    record = store.put(data, kind="raw")
    [path] = store.folder.glob(f"*/{record.sha256}.txt")
    assert path.read_bytes() == data
    assert store.get(record.sha256) == data.decode("utf-8", "replace")


def test_half_of_a_pair_is_replaced(store):
    assert store.get(store.put("a\ud83db", kind="raw").sha256) == "a\ufffdb"


def test_a_text_is_kept_once(store):
    first = store.put("hello\n", kind="raw", origin="a", session="s1")
    before = {name: (store.folder / name).stat().st_mtime_ns for name in files(store)}
    assert store.put(b"hello\n", kind="other", origin="b", session="s2") == first
    assert {name: (store.folder / name).stat().st_mtime_ns for name in files(store)} == before


def test_the_stricter_sensitivity_counts(store):
    first = store.put("hello\n", kind="raw", sensitivity="private", origin="a")
    assert store.put("hello\n", kind="raw", sensitivity="public") == first
    store.put("hello\n", kind="raw", sensitivity="secret", origin="b")
    assert store.record(HELLO) == Record(
        HELLO, 6, "raw", "a", None, first.created, sensitivity="secret"
    )
    with pytest.raises(MemoryFault, match="'hush' is no sensitivity"):
        store.put("hello\n", kind="raw", sensitivity="hush")


@posix
def test_a_record_that_another_process_made_first_counts(store, monkeypatch):
    real = durable.system.link

    def link(source, target):
        if target.endswith(".json"):
            monkeypatch.setattr(durable.system, "link", real)
            store.put("hello\n", kind="first", sensitivity="public")
        real(source, target)

    monkeypatch.setattr(durable.system, "link", link)
    record = store.put("hello\n", kind="second", sensitivity="private")
    assert (record.kind, record.sensitivity) == ("first", "private")
    assert store.record(HELLO) == record


def test_a_long_text_is_to_be_split(store):
    store.put(b"x" * MAX_BYTES, kind="raw")
    for text in ("x" * (MAX_BYTES + 1), "字" * (MAX_BYTES // 3 + 1)):
        with pytest.raises(MemoryFault, match="at most 2,097,152") as caught:
            store.put(text, kind="raw")
        assert "split" in caught.value.hint
    assert len(files(store)) == 2


def test_a_text_is_read_a_window_at_a_time(store):
    sha256 = store.put("一二三四五六七", kind="raw").sha256
    assert store.window(sha256, 2, 3).to_dict() == {
        "text": "三四五",
        "offset": 2,
        "length": 7,
        "returned": 3,
        "has_more": True,
        "next_offset": 5,
    }
    assert store.window(sha256, 5, 3).next_offset is None


def test_what_is_not_there_is_not_found(store):
    for ask in (store.get, store.record, store.window):
        with pytest.raises(NotFound, match=HELLO):
            ask(HELLO)
    assert not store.folder.exists()


@pytest.mark.parametrize("damage", [b"", b"hellp\n", b"hello\n\n", b"x" * (MAX_BYTES + 2)])
def test_a_damaged_text_is_told_and_mended_by_keeping_it_again(store, damage):
    store.put("hello\n", kind="raw")
    (store.folder / "58" / f"{HELLO}.txt").write_bytes(damage)
    with pytest.raises(MemoryFault, match="is damaged"):
        store.get(HELLO)
    store.put("hello\n", kind="raw")
    assert store.get(HELLO) == "hello\n"


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"\xff",
        b"[]",
        b"[" * 50_000,
        b'{"sha256": "x"}',
        json.dumps({"sha256": HELLO, "bytes": "6", "kind": "raw", "created": "x"}).encode(),
        json.dumps(
            {"sha256": HELLO, "bytes": 6, "kind": "raw", "created": "x", "sensitivity": "none"}
        ).encode(),
        json.dumps(
            {
                "sha256": "0" * 64,
                "bytes": 6,
                "kind": "raw",
                "created": "x",
                "sensitivity": "public",
            }
        ).encode(),
    ],
)
def test_a_damaged_record_is_told_and_made_anew(store, damage):
    store.put("hello\n", kind="raw")
    path = store.folder / "58" / f"{HELLO}.json"
    path.write_bytes(damage)
    with pytest.raises(MemoryFault, match="is no record of evidence"):
        store.record(HELLO)
    assert store.get(HELLO) == "hello\n"
    record = store.put("hello\n", kind="again")
    assert store.record(HELLO) == record
    assert record.kind == "again"


def test_a_record_may_say_more(store):
    record = store.put("hello\n", kind="raw")
    path = store.folder / "58" / f"{HELLO}.json"
    path.write_text(json.dumps({**record.to_dict(), "later": [1]}), "utf-8")
    assert store.record(HELLO) == record


@pytest.mark.parametrize("kind", ["", None, 5, "x" * 2001])
def test_a_kind_is_a_word(store, kind):
    with pytest.raises(MemoryFault, match="is no kind of evidence"):
        store.put("hello\n", kind=kind)


def test_what_cannot_be_written_is_the_callers_to_know(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError):
        EvidenceStore(tmp_path / "file").put("hello\n", kind="raw")


# References of a model are hostile

HOSTILE = {
    "parent": "../D_0001",
    "parent alone": "..",
    "parent within": "a/../../b",
    "absolute": "/etc/passwd",
    "home": "~root",
    "backslash": "..\\..\\D_0001",
    "backslash alone": "a\\b",
    "drive": "C:\\Windows",
    "drive alone": "C:",
    "share": "\\\\server\\share",
    "NUL": "D_0001\x00",
    "NUL within": "D_0001\x00.md",
    "encoded dots": "%2e%2e%2fD_0001",
    "encoded dots twice": "%252e%252e%252f",
    "encoded dots, overlong": "..%c0%af",
    "wide dots": "．．／D_0001",
    "one character that is two dots": "\u2025/D_0001",
    "slash that is none": "a\u2215b",
    "line end": "D_0001\n",
    "carriage return": "D_0001\r",
    "empty": "",
    "blank": " ",
    "blank before": " D_0001",
    "dot": ".",
    "dot within": "D_0001.md",
    "stream": "D_0001:stream",
    "digit first": "1D",
    "underscore first": "_D",
    "65 characters": "D" * 65,
    "other letters": "Ｄ_０００１",
    "Chinese": "决定_0001",
    "right to left": "D_\u202e1000",
    "half of a pair": "D_\ud800",
    "device CON": "CON",
    "device con": "con",
    "device NUL": "nul",
    "device PRN": "Prn",
    "device AUX": "AUX",
    "device COM1": "COM1",
    "device LPT9": "lpt9",
    "device COM¹": "COM¹",
    "device CONIN$": "CONIN$",
    "device with extension": "NUL.txt",
    "hash and more": "a" * 64 + ".txt",
    "hash with a line end": "0" * 64 + "\n",
    "hash in capitals": "0" * 63 + "A",
    "hash in wide digits": "０" * 64,
    "no text": None,
    "bytes": b"D_0001",
    "a number": 1,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_reference_is_refused(store, text):
    store.put("hello\n", kind="raw")
    for ask in (safe_reference, safe_hash, store.get, store.record, store.window):
        with pytest.raises(MemoryFault) as caught:
            ask(text)
        assert not isinstance(caught.value, NotFound)
        assert str(caught.value).isascii()
        assert str(caught.value).isprintable()
        assert len(str(caught.value)) < 150


@pytest.mark.parametrize(
    "text",
    ["D_0001", "x0123456789", "A", "a" * 64, "D" * 64, HELLO, "CONT", "COM10", "COM", "NULL"],
)
def test_a_harmless_reference_is_given_back(text):
    assert safe_reference(text) == text


@given(st.text())
def test_a_reference_is_one_harmless_word_or_refused(text):
    try:
        assert re.fullmatch("[A-Za-z0-9_]{1,64}", safe_reference(text))
    except MemoryFault:
        assert not re.fullmatch("[A-Za-z][A-Za-z0-9_]{3,63}", text) or re.fullmatch(
            "(?i:com|lpt)[0-9]", text
        )


def test_a_reference_is_not_a_hash():
    with pytest.raises(MemoryFault):
        safe_hash("D_0001")
    assert safe_hash(HELLO) == HELLO


def test_a_path_stays_in_its_folder(tmp_path):
    folder = tmp_path / "evidence"
    assert safe_path(folder, "ab", "c.txt") == folder / "ab" / "c.txt"
    for names in (
        ("..", "x"),
        ("/etc/passwd",),
        ("a", "..", "..", "x"),
        ("..", "evidence2"),
        ("\0",),
    ):
        with pytest.raises(MemoryFault, match="leads out of"):
            safe_path(folder, *names)


@posix
def test_a_linked_folder_does_not_lead_out(store, tmp_path):
    (tmp_path / "outside").mkdir()
    store.folder.mkdir()
    (store.folder / "58").symlink_to(tmp_path / "outside")
    (tmp_path / "outside" / f"{HELLO}.txt").write_bytes(b"hello\n")
    for ask in (store.get, store.record, lambda _: store.put("hello\n", kind="raw")):
        with pytest.raises(MemoryFault, match="leads out of"):
            ask(HELLO)
    assert os.listdir(tmp_path / "outside") == [f"{HELLO}.txt"]


@posix
@pytest.mark.parametrize("suffix", ["txt", "json"])
def test_a_linked_file_does_not_lead_out(store, tmp_path, suffix):
    (tmp_path / "outside").write_bytes(b"hello\n")
    (store.folder / "58").mkdir(parents=True)
    (store.folder / "58" / f"{HELLO}.{suffix}").symlink_to(tmp_path / "outside")
    for ask in (store.get, store.record, lambda _: store.put("hello\n", kind="raw")):
        with pytest.raises(MemoryFault, match="leads out of"):
            ask(HELLO)
    assert (tmp_path / "outside").read_bytes() == b"hello\n"


@posix
def test_a_link_that_goes_round_leads_nowhere(store):
    (store.folder / "58").mkdir(parents=True)
    (store.folder / "58" / f"{HELLO}.txt").symlink_to(f"{HELLO}.txt")
    with pytest.raises(MemoryFault):
        store.get(HELLO)


@posix
def test_the_folder_itself_may_be_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "evidence").symlink_to("real")
    store = EvidenceStore(tmp_path / "evidence")
    assert store.get(store.put("hello\n", kind="raw").sha256) == "hello\n"


@posix
def test_a_pipe_is_not_waited_for(store):
    (store.folder / "58").mkdir(parents=True)
    os.mkfifo(store.folder / "58" / f"{HELLO}.txt")
    with pytest.raises(MemoryFault, match="is not a file"):
        store.get(HELLO)
