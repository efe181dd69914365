"""The errors that a user may see: one clear line each, and what to do about it."""


class MemoryFault(Exception):
    """A fault that is the user's to mend; `str()` is the line to show.

    `hint` says what to do next, or is empty. Surfaces turn it into `{ok: false, error, hint}`
    and exit code 2.
    """

    def __init__(self, error: str, hint: str = "") -> None:
        super().__init__(error)
        self.error = error
        self.hint = hint


class NotFound(MemoryFault):
    """Nothing answers to the given reference: exit code 1."""


class Ambiguous(MemoryFault):
    """Several cards answer to the given reference; `candidates` lists their paths."""

    def __init__(self, error: str, candidates: list[str], hint: str = "") -> None:
        super().__init__(error, hint)
        self.candidates = candidates


class PlaceTaken(MemoryFault):
    """Something of somebody else's is in the way: exit code 3."""
