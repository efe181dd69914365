"""The kinds of cards: name, folder, prefix of references and half-life, in one table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of card. `half_life_days` is how long its freshness takes to fall to half."""

    name: str
    folder: str
    prefix: str
    half_life_days: int


KINDS: tuple[Kind, ...] = (
    Kind("system", "00-System", "SYS", 180),
    Kind("project", "02-Projects", "P", 90),
    Kind("knowledge", "03-Knowledge", "K", 180),
    Kind("content", "04-Content", "CT", 90),
    Kind("prompt", "05-Prompts", "PR", 180),
    Kind("business", "06-Business", "B", 90),
    Kind("tool", "07-Tools", "T", 180),
    Kind("mistake", "08-Mistakes", "X", 180),
    Kind("decision", "09-Decisions", "D", 90),
    Kind("code_change", "10-Code", "C", 60),
    Kind("issue", "11-Issues", "I", 60),
    Kind("fact", "12-Facts", "F", 60),
    Kind("episode", "13-Episodes", "E", 30),
    Kind("artifact", "14-Artifacts", "A", 60),
    Kind("signal", "15-Signals", "SG", 7),
    Kind("handoff", "16-Handoffs", "H", 7),
    Kind("note", "17-Notes", "N", 60),
    Kind("reference", "18-References", "R", 180),
    Kind("session", "19-Sessions", "S", 30),
    Kind("skill", "20-Skills", "SK", 180),
    Kind("policy", "21-Policies", "PO", 180),
    Kind("misc", "99-Misc", "M", 60),
)

DEFAULT_KIND = "note"

#: What tells of a state that passes (a signal, a handoff) is stale after so many half-lives.
STALE_AFTER = 2.0

_BY_NAME = {kind.name: kind for kind in KINDS}
_BY_PREFIX = {kind.prefix: kind for kind in KINDS}
_BY_FOLDER = {kind.folder.casefold(): kind.name for kind in KINDS}


def by_name(name: str) -> Kind | None:
    """The kind called exactly `name`, or None."""
    return _BY_NAME.get(name)


def by_prefix(prefix: str) -> Kind | None:
    """The kind whose references begin with exactly `prefix` ("D" of `D_0001`), or None."""
    return _BY_PREFIX.get(prefix)


def kind_of_folder(path: str) -> str | None:
    """The name of the kind whose folder comes first in `path`, a POSIX relative file path.

    "09-Decisions/x.md" and "work/09-Decisions/2026/x.md" give "decision"; the file's own name
    is not looked at. Upper and lower case are the same, as they are on many disks.
    """
    folder, slash, _ = path.rpartition("/")
    return _kind_of_parts(folder) if slash else None


@lru_cache(maxsize=4096)
def _kind_of_parts(folder: str) -> str | None:
    for part in folder.split("/"):
        name = _BY_FOLDER.get(part.casefold())
        if name is not None:
            return name
    return None
