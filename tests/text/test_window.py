"""A long text a window at a time."""

import pytest

from datasette_memory.text.window import MAX_CHARS, window

TEXT = "0123456789"


@pytest.mark.parametrize(
    "arguments, text, offset, has_more, next_offset",
    [
        ({}, "0123456789", 0, False, None),
        ({"max_chars": 4}, "0123", 0, True, 4),
        ({"offset": 4, "max_chars": 4}, "4567", 4, True, 8),
        ({"offset": 8, "max_chars": 4}, "89", 8, False, None),
        ({"offset": 6, "max_chars": 4}, "6789", 6, False, None),
        ({"offset": 5, "max_chars": 4}, "5678", 5, True, 9),
        ({"max_chars": 10}, "0123456789", 0, False, None),
        ({"max_chars": 0}, "0123456789", 0, False, None),
        ({"offset": 3, "max_chars": 0}, "3456789", 3, False, None),
        ({"max_chars": -5}, "0123456789", 0, False, None),
        ({"max_chars": 4, "full": True}, "0123456789", 0, False, None),
        ({"offset": 7, "max_chars": 1, "full": True}, "789", 7, False, None),
        ({"offset": -3, "max_chars": 4}, "0123", 0, True, 4),
        ({"offset": 9, "max_chars": 1}, "9", 9, False, None),
        ({"offset": 10, "max_chars": 4}, "", 10, False, None),
        ({"offset": 99, "max_chars": 4}, "", 10, False, None),
        ({"offset": 99, "full": True}, "", 10, False, None),
    ],
)
def test_by_hand(arguments, text, offset, has_more, next_offset):
    assert window(TEXT, **arguments).to_dict() == {
        "text": text,
        "offset": offset,
        "length": 10,
        "returned": len(text),
        "has_more": has_more,
        "next_offset": next_offset,
    }


def test_an_empty_text():
    assert window("").to_dict() == {
        "text": "",
        "offset": 0,
        "length": 0,
        "returned": 0,
        "has_more": False,
        "next_offset": None,
    }


def test_twenty_thousand_unless_told():
    assert MAX_CHARS == 20_000
    shown = window("云" * 20_001)
    assert (shown.returned, shown.has_more, shown.next_offset) == (20_000, True, 20_000)


def test_characters_are_counted_and_not_bytes():
    assert window("云\U00020bb7é😀x", 1, 3).text == "\U00020bb7é😀"


@pytest.mark.parametrize("size", [1, 3, 7, 10, 11])
def test_window_after_window_gives_the_whole(size):
    parts = []
    offset: int | None = 0
    while offset is not None:
        shown = window(TEXT, offset, size)
        parts.append(shown.text)
        offset = shown.next_offset
    assert "".join(parts) == TEXT
