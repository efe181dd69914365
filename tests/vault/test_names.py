import os
import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from datasette_memory.vault.names import MAX_BYTES, file_name, name_key, numbered

NAMES = {
    # Ordinary titles.
    "生产库用 SQLite": "生产库用-SQLite",
    "Restore drill, 2nd run": "Restore-drill,-2nd-run",
    "a  -  b": "a-b",
    "v1.2.3 released": "v1.2.3-released",
    "Fish 🐟 and chips 🍟": "Fish-🐟-and-chips-🍟",
    "\u3000全角\u3000空格\u3000": "全角-空格",
    "全角：冒号／斜线？": "全角：冒号／斜线？",
    "README.md": "README",
    "notes.MARKDOWN": "notes",
    # What some system refuses.
    "a/b": "a-b",
    "a\\b": "a-b",
    'Why? Because: "x" <y> | z*': "Why-Because-x-y-z",
    "a\0b\tc\nd\x7fe\x85f": "a-b-c-d-e-f",
    "a\u2028b\u00a0c": "a-b-c",
    "a\u226eb": "a-b",
    "a<\u0338b": "a-b",
    "a\ue000b\uffffc\U0010fffdd": "a-b-c-d",
    "a\ufffdb": "a-b",
    # What a wikilink gives a meaning to.
    "C# 与 F#": "C-与-F",
    "[[link]] and ^x": "link-and-x",
    # Devices of Windows, whatever follows a dot.
    "CON": "CON_",
    "con": "con_",
    "nul.txt": "nul_.txt",
    "Aux:": "Aux_",
    "COM1": "COM1_",
    "com\u00b9": "com\u00b9_",
    "LPT9.tar.gz": "LPT9_.tar.gz",
    "CONIN$": "CONIN$_",
    "COM10": "COM10",
    "console": "console",
    "PRN notes": "PRN-notes",
    "CON" + "~" * 200 + "x": "CON_",
    # Edges.
    "..": "untitled",
    "../../etc/passwd": "etc-passwd",
    "end...": "end",
    "end. . .": "end",
    "trailing dots.. ": "trailing-dots",
    ".hidden": "hidden",
    "-rf": "rf",
    "~/x": "x",
    # Nothing left.
    "": "untitled",
    " \t\n": "untitled",
    "???": "untitled",
    "-- . --": "untitled",
    "\u200f\u200e": "untitled",
    "!!!": "!!!",
    "！？。": "！？。",
    # What nobody sees, and marks.
    "\u200fשלום\u200e": "שלום",
    "a\u202egnp.exe": "agnp.exe",
    "soft\u00adhyphen\ufeff": "softhyphen",
    "lone\udc00half": "lonehalf",
    "e\u0301tude": "\u00e9tude",
    "e\u200d\u0301tude": "\u00e9tude",
    "\u1112\u1161\u11ab": "\ud55c",
    "\u0301x": "x",
    "?\u0301.x": "x",
    "👨\u200d👩\u200d👧": "👨👩👧",
    "❤\ufe0f": "❤",
    # 113 bytes are left beside "-999.md".
    "记" * 200: "记" * 37,
    "x" * 300: "x" * 113,
    "x" * 113: "x" * 113,
    "x" * 112 + " y": "x" * 112,
    "x" * 112 + "é": "x" * 112,
    # Cut between graphemes: skin tone, mark, half a flag.
    "x" * 108 + "👍🏽": "x" * 108,
    "x" * 105 + "👍🏽": "x" * 105 + "👍🏽",
    "x" * 112 + "q\u0301": "x" * 112,
    "x" * 101 + "🇨🇳🇫🇷": "x" * 101 + "🇨🇳",
    "x" * 110 + "\u1113\u1161": "x" * 110,
    "e" + "\u0301" * 200: "\u00e9" + "\u0301" * 55,
}


@pytest.mark.parametrize("title", NAMES, ids=ascii)
def test_file_name(title):
    assert file_name(title) == NAMES[title]


DEVICES = {"CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", "CLOCK$"} | {
    f"{port}{digit}" for port in ("COM", "LPT") for digit in "0123456789\xb9\xb2\xb3"
}


def complaint(name):
    """Why a system would refuse, change or hide a file called `name`; None when none does."""
    for form in ("NFC", "NFD"):
        if found := re.search(r'[\0-\x1f\x7f<>:"/\\|?*]', unicodedata.normalize(form, name)):
            return f"{found[0]!r} in {form}"
    if len(name.encode("utf-8")) > 120:
        return "too long"
    if unicodedata.normalize("NFC", name) != name:
        return "not NFC"
    if name[0] in ".-~ " or unicodedata.category(name[0])[0] == "M":
        return f"starts with {name[0]!r}"
    if name.split(".")[0].rstrip(" ").upper() in DEVICES:
        return "a device"
    if any(
        unicodedata.category(sign) in ("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp") for sign in name
    ):
        return "holds what nobody sees"
    return None


AWKWARD = st.lists(
    st.sampled_from(
        ["CON", "nul", "com1", "lpt\xb2", ".", "..", "/", "\\", ":", " ", "-", "~", "记", "🇨", "🏽"]
        + ["\u0301", "\u0338", "<", "\u200d", "é", "x" * 50, "语" * 30, ".md", "_", "\ud800", "ﷺ"]
    ),
    max_size=12,
).map("".join)


@given(st.text() | AWKWARD, st.integers(1, 999))
@example("\u0340\u0301/", 1)
def test_a_name_suits_every_system(title, number):
    stem = file_name(title)
    assert complaint(f"{stem}.md") is None
    assert len(f"{stem}-999.md".encode()) <= MAX_BYTES
    assert complaint(f"{numbered(stem, number)}.md") is None
    # Not the suffix saves the end, the stem itself ends well.
    assert stem[-1] not in ". -"


def test_every_character_of_the_basic_plane_gives_a_name_that_suits():
    for code in range(0x10000):
        assert complaint(f"{file_name(chr(code))}.md") is None, hex(code)
        assert complaint(f"{file_name(f'a{chr(code)}b')}.md") is None, hex(code)


@given(AWKWARD)
def test_a_name_comes_back_from_the_disk(tmp_path_factory, title):
    folder = tmp_path_factory.mktemp("names")
    name = f"{file_name(title)}.md"
    (folder / name).write_bytes(b"")
    assert [unicodedata.normalize("NFC", found) for found in os.listdir(folder)] == [name]


def test_numbered():
    assert numbered("端口", 1) == "端口"
    assert numbered("端口", 2) == "端口-2"
    assert numbered("x" * 113, 999) == "x" * 113 + "-999"
    # 112 + len("-1000") + len(".md") = 120
    assert numbered("x" * 113, 1000) == "x" * 112 + "-1000"
    # A foreign stem: 120 - 5 = 115 bytes hold 38 characters of three.
    assert numbered("语" * 80, 2) == "语" * 38 + "-2"


def test_name_key_is_equal_for_what_a_mac_or_windows_may_take_for_one():
    equal = [
        ("Port.md", "pORT.MD"),
        ("Straße", "STRASSE"),
        ("\u00e9", "e\u0301"),
        ("\u00c9", "e\u0301"),
        ("\u2126", "\u03c9"),
        ("\u1fb4", "\u03b1\u0345\u0301"),
        ("\u03c3", "\u03c2"),
        ("\u1112\u1161\u11ab", "\ud55c"),
    ]
    for one, other in equal:
        assert name_key(one) == name_key(other)
    for one, other in [("a", "á"), ("端口", "端囗"), ("a-2", "a"), ("が", "か")]:
        assert name_key(one) != name_key(other)
