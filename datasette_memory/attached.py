"""Which of the databases that a Datasette serves are memories, and what each of them is given.

Some hooks are synchronous and cannot ask a database, so what was found is kept for them.
"""

import copy
from weakref import WeakKeyDictionary

from . import _compat
from .index import schema

TABLE_DEFAULTS: dict[str, dict] = {
    "cards": {
        "label_column": "title",
        "sort_desc": "updated",
        "facets": ["kind", "source", "project", {"array": "tags"}],
        "facet_size": 10,
    },
    "_sqlite_migrations": {"hidden": True},
}
"""What any memory gets, whatever it is called, unless the user's configuration says otherwise."""

_known: WeakKeyDictionary = WeakKeyDictionary()


def known(datasette) -> set[str]:
    """The names of the memories found so far."""
    return _known.setdefault(datasette, set())


def defaults(datasette) -> dict:
    """Metadata with TABLE_DEFAULTS for every known memory: a fresh copy, Datasette merges into it."""
    return {
        "databases": {
            database: {"tables": copy.deepcopy(TABLE_DEFAULTS)} for database in known(datasette)
        }
    }


async def is_memory(datasette, database: str | None) -> bool:
    """Whether the database of that name is a memory; a name that is not attached is none.

    One that was created or filled after the start is found when it is first looked at.
    """
    if database in known(datasette):
        return True
    attached = datasette.databases.get(database)
    if attached is None or not await attached.execute_fn(schema.is_memory):
        return False
    known(datasette).add(database)
    _compat.configure(datasette, database, TABLE_DEFAULTS)
    return True
