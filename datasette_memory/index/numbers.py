"""The next free number of a reference, such as 8 after `D_0007`: never one that was ever used."""

import re
from collections.abc import Iterable

from ..vault.kinds import KINDS
from .schema import get_meta, set_meta

_REF = re.compile(r"([A-Z]{1,3})_([0-9]{1,9})", re.ASCII)
_PREFIXES = {kind.prefix for kind in KINDS}

# There when the cards of the index were counted.
_COUNTED = "numbers_counted"


def refresh(connection, others: Iterable[str] = ()) -> None:
    """Keep for each prefix the highest number of the vault, the ledger and `others` (the trash).

    Runs in the caller's transaction. A number once kept never goes down.
    """
    keep(
        connection,
        [
            ref
            for (ref,) in connection.execute(
                "select ref from cards where source = 'vault' union select ref from events "
                "where kind in ('created', 'superseded') and ref is not null"
            )
        ],
    )
    keep(connection, others)
    set_meta(connection, _COUNTED, "1")


def is_counted(connection) -> bool:
    """Whether `refresh` was ever called."""
    return get_meta(connection, _COUNTED) is not None


def keep(connection, refs: Iterable[str]) -> None:
    """Let no number of `refs` be given again. Runs in the caller's transaction."""
    for prefix, number in _highest(refs).items():
        if number > last(connection, prefix):
            set_meta(connection, _key(prefix), str(number))


def last(connection, prefix: str) -> int:
    """The highest number that a reference with this prefix has had; 0 if none."""
    return int(get_meta(connection, _key(prefix)) or 0)


def following(connection, prefix: str, used: Iterable[str] = ()) -> str:
    """The next free reference with this prefix; `used` are taken already. Nothing is written: the
    caller holds the lock of the vault until a card has it.

    One that a card of any source has is passed over: it would mean two cards.
    """
    number = max(last(connection, prefix), highest(prefix, used)) + 1
    while connection.execute(
        "select 1 from cards where ref = ?", [reference(prefix, number)]
    ).fetchone():
        number += 1
    return reference(prefix, number)


def reference(prefix: str, number: int) -> str:
    """`D`, 7 as `D_0007`."""
    return f"{prefix}_{number:04}"


def highest(prefix: str, refs: Iterable[str]) -> int:
    """The highest number with this prefix among `refs`; 0 if none."""
    return _highest(refs).get(prefix, 0)


def _key(prefix: str) -> str:
    return f"last_number:{prefix}"


def _highest(refs: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for ref in refs:
        match = _REF.fullmatch(ref)
        if match and match[1] in _PREFIXES:
            found[match[1]] = max(found.get(match[1], 0), int(match[2]))
    return found
