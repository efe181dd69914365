"""How many columns of a terminal a text takes: a Han character, kana or syllable takes two."""

from unicodedata import combining, east_asian_width


def width(text: str) -> int:
    """The columns of a text on one line (Unicode Standard Annex 11)."""
    if text.isascii():
        return len(text)
    return sum(
        0 if combining(character) else 2 if east_asian_width(character) in "WF" else 1
        for character in text
    )


def pad(text: str, columns: int) -> str:
    """The text with spaces behind it, so that it takes so many columns at least."""
    return text + " " * (columns - width(text))


def fit(text: str, columns: int) -> str:
    """The text, cut to so many columns at the most; … stands where something was cut off."""
    if width(text) <= columns:
        return text
    taken = 0
    for at, character in enumerate(text):
        taken += width(character)
        if taken > columns - 1:
            return text[:at] + "…"
    return text
