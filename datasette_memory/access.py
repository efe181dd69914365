"""Which memory a request to a Datasette means, and whether its actor may do what it asks.

Datasette decides, by its own actions on the table `cards`; there is no permission of our own.
"""

from __future__ import annotations

from pathlib import Path
from weakref import WeakKeyDictionary

from . import _compat, attached, home
from .index.kept import KeptReaders
from .memory import Memory

#: What is asked of `cards`: to read, to add a card, to change one, to put one into the trash.
READ, ADD, CHANGE, REMOVE = "view-table", "insert-row", "update-row", "delete-row"

WRITING = (ADD, CHANGE, REMOVE)


_places: WeakKeyDictionary = WeakKeyDictionary()


class Refused(Exception):
    """The request is not carried out. `status` is that of HTTP, `error` and `hint` are for people."""

    def __init__(self, status: int, error: str, hint: str = "") -> None:
        super().__init__(error)
        self.status = status
        self.error = error
        self.hint = hint


async def admit(datasette, actor, *actions: str, database: str | None = None) -> Memory:
    """The memory behind `database`, or behind the first one that `actor` may read, if they may do
    all of `actions` there. Raises Refused: 404 without such a memory, 403 when it is not theirs or
    cannot be written here.
    """
    name = await _meant(datasette, actor, database)
    for action in actions:
        if action != READ and not await _compat.allowed(datasette, actor, action, name, "cards"):
            raise Refused(403, f"{action} on {name}/cards is not allowed", _how(actor))
    memory = memory_of(datasette, name)
    memory.untouched = not datasette.get_database(name).is_mutable
    if set(actions) & set(WRITING):
        if memory.untouched:
            raise Refused(403, f"{name} is served as immutable", "serve it without --immutable")
        if not memory.is_own():
            raise Refused(
                403,
                f"{name} is the index of no home: there is no vault to write into",
                "serve the memory.db of a home, or name its home with MEMORY_AGENT_HOME",
            )
    return memory


def memory_of(datasette, name: str) -> Memory:
    """The memory whose index is the database `name`. Raises Refused when that is no file."""
    path = datasette.get_database(name).path
    if not path:
        raise Refused(404, f"{name} is a database without a file", "serve a memory.db")
    # Where the home is does not change while it is served, and asking takes a while.
    places = _places.setdefault(datasette, {})
    if path not in places:
        places[path] = _place(Path(path).resolve()), KeptReaders()
    place, readers = places[path]
    memory = Memory(**place)
    memory.readers = readers
    return memory


def _place(index: Path) -> dict[str, str]:
    """What to call `Memory` with: the home of this process, the one that the index lies in, or
    neither."""
    for place in ({}, {"home": str(index.parent)}):
        if home.resolve(**place).db.resolve() == index:
            return place
    return {"db": str(index)}


async def _meant(datasette, actor, database: str | None) -> str:
    """The name of the database that is meant, which the actor may read."""
    if database is not None and not await attached.is_memory(datasette, database):
        raise Refused(404, f"{database} is no memory", "leave the name out for the first one")
    closed = False
    for name in [database] if database is not None else list(datasette.databases):
        # What lives in memory alone is Datasette's own, and is not worth a question.
        if datasette.databases[name].path and await attached.is_memory(datasette, name):
            if await _compat.allowed(datasette, actor, READ, name, "cards"):
                return name
            closed = True
    if closed:
        raise Refused(403, "this memory is not open to you", _how(actor))
    raise Refused(404, "no memory is served here", "serve one: memory serve")


def _how(actor) -> str:
    return "ask its owner for the permission" if actor else "log in, or send a token"
