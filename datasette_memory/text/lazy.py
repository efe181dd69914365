"""Patterns that are compiled when they are first used.

To compile a long pattern takes milliseconds, and most commands need few of them.
"""

import re


def lazy(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """What `re.compile` gives, for whoever calls its methods; a bad pattern is told later."""
    return _Lazy(pattern, flags)


class _Lazy:
    def __init__(self, pattern: str, flags: int) -> None:
        self._written = pattern, flags

    def __getattr__(self, name: str) -> object:
        # Once for each method: from then on it is an attribute like any other.
        found = getattr(re.compile(*self._written), name)
        setattr(self, name, found)
        return found
