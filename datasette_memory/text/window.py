"""A long text a window at a time, and never a silent cut."""

from dataclasses import dataclass

#: Characters that one window shows unless told.
MAX_CHARS = 20_000


@dataclass(frozen=True, slots=True)
class Window:
    """`text` is the part from `offset`; `length` is that of the whole. All count characters."""

    text: str
    offset: int
    length: int

    @property
    def returned(self) -> int:
        return len(self.text)

    @property
    def has_more(self) -> bool:
        return self.offset + len(self.text) < self.length

    @property
    def next_offset(self) -> int | None:
        return self.offset + len(self.text) if self.has_more else None

    def to_dict(self) -> dict[str, object]:
        """The fields that every surface returns."""
        return {
            "text": self.text,
            "offset": self.offset,
            "length": self.length,
            "returned": self.returned,
            "has_more": self.has_more,
            "next_offset": self.next_offset,
        }


def window(text: str, offset: int = 0, max_chars: int = MAX_CHARS, full: bool = False) -> Window:
    """The part of `text` from `offset`, at most `max_chars` long; 0 or `full` means to the end.

    An offset behind the end gives an empty window; negative numbers count as 0.
    """
    offset = min(max(0, offset), len(text))
    size = len(text) if full or max_chars <= 0 else max_chars
    return Window(text[offset : offset + size], offset, len(text))
