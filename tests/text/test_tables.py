"""The character tables against the data they were made from."""

import re
import sys
import unicodedata
from importlib.util import find_spec
from pathlib import Path

from datasette_memory.text._tables import MARKS, SIMPLIFIED, TRADITIONAL

EXCLUDED = {"\u3099", "\u309a", *map(chr, range(0xFE00, 0xFE10))}
"""The voicing marks of kana, which belong to runs of Chinese, and the variation selectors."""


def opencc_characters() -> dict[str, str]:
    """The first candidate of each line of OpenCC's own TSCharacters, without identities."""
    folder = Path(find_spec("opencc").submodule_search_locations[0])
    table: dict[str, str] = {}
    for line in (folder / "dictionary/TSCharacters.txt").read_text("utf-8").splitlines():
        traditional, candidates = line.split("\t")
        simplified = candidates.split()[0]
        if simplified != traditional:
            table[traditional] = simplified
    return table


def test_folding_table_is_that_of_opencc():
    assert len(TRADITIONAL) == len(SIMPLIFIED) == len(set(TRADITIONAL))
    assert dict(zip(TRADITIONAL, SIMPLIFIED)) == opencc_characters()


def test_folded_characters_are_in_their_normal_form():
    # Folding comes after NFKC, and nothing normalises again behind it.
    assert unicodedata.normalize("NFKC", SIMPLIFIED) == SIMPLIFIED


def characters(pattern: str) -> set[str]:
    return set(re.findall(f"[{pattern}]", "".join(map(chr, range(0x10000)))))


def is_mark(character: str) -> bool:
    return unicodedata.category(character) in ("Mn", "Mc")


def test_every_mark_is_one_to_unicode():
    marks = characters(MARKS)
    assert len(marks) > 1000
    assert [hex(ord(c)) for c in sorted(marks) if not is_mark(c)] == []
    assert not marks & EXCLUDED


def test_no_mark_of_the_basic_plane_is_missing():
    # Python 3.11 has Unicode 14; later versions may add marks. All have Unicode 3.2 as well.
    known = [chr(i) for i in range(0x10000) if is_mark(chr(i))]
    if sys.version_info >= (3, 12):
        known = [c for c in known if unicodedata.ucd_3_2_0.category(c) in ("Mn", "Mc")]
    assert set(known) - EXCLUDED <= characters(MARKS)
    assert len(known) > 500


def test_no_mark_is_a_letter_to_python():
    # A word is letters and marks by turns; a character of both kinds would make that slow.
    assert not any(c.isalnum() or c == "_" for c in characters(MARKS))
