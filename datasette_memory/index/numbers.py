"""The next free number of a reference, such as 8 after `D_0007`: never one that was ever used."""

import re
from collections.abc import Iterable

from ..vault.kinds import KINDS
from .schema import get_meta, set_meta

_REF = re.compile(r"([A-Z]{1,3})_([0-9]{1,9})")
_PREFIXES = {kind.prefix for kind in KINDS}


def refresh(connection, others: Iterable[str] = ()) -> None:
    """Keep for each prefix the highest number of the vault, the ledger and `others` (the trash).

    Runs in the caller's transaction. A number once kept never goes down.
    """
    highest: dict[str, int] = {}
    for (ref,) in connection.execute(
        "select ref from cards where source = 'vault' union select ref from events "
        "where kind in ('created', 'superseded') and ref is not null"
    ):
        _count(highest, ref)
    for ref in others:
        _count(highest, ref)
    for prefix, number in highest.items():
        if number > last(connection, prefix):
            set_meta(connection, f"last_number:{prefix}", str(number))


def last(connection, prefix: str) -> int:
    """The highest number that a reference with this prefix has had; 0 if none."""
    return int(get_meta(connection, f"last_number:{prefix}") or 0)


def take(connection, prefix: str) -> str:
    """The next reference with this prefix, and nobody gets it again."""
    number = last(connection, prefix) + 1
    set_meta(connection, f"last_number:{prefix}", str(number))
    return reference(prefix, number)


def reference(prefix: str, number: int) -> str:
    """`D`, 7 as `D_0007`."""
    return f"{prefix}_{number:04}"


def highest(prefix: str, refs: Iterable[str]) -> int:
    """The highest number with this prefix among `refs`; 0 if none."""
    found: dict[str, int] = {}
    for ref in refs:
        _count(found, ref)
    return found.get(prefix, 0)


def _count(highest: dict[str, int], ref: str) -> None:
    match = _REF.fullmatch(ref)
    if match and match[1] in _PREFIXES:
        highest[match[1]] = max(highest.get(match[1], 0), int(match[2]))
