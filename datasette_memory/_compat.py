"""The one file that knows that there are two Datasettes, 0.65 and 1.0, by what they can do.

Shaped like 1.0: when 0.65 is no longer served, this file goes.
"""

import copy

from datasette import Forbidden, hookimpl

from .guard import is_api

try:
    from datasette.resources import TableResource
except ImportError:  # 0.65
    TableResource = None


async def allowed(datasette, actor, action: str, database: str, table: str) -> bool:
    """Whether the actor may do that to that table; viewing counts its database and instance too."""
    if TableResource:
        return await datasette.allowed(
            action=action, resource=TableResource(database, table), actor=actor
        )
    if action == "view-table":
        steps = [("view-table", (database, table)), ("view-database", database), "view-instance"]
        try:
            await datasette.ensure_permissions(actor, steps)
        except Forbidden:
            return False
        return True
    return await datasette.permission_allowed(actor, action, (database, table), default=False)


def configure(datasette, database: str, tables: dict[str, dict]) -> None:
    """Give tables their defaults, under whatever the user configured for them.

    1.0 has no hook for it: its configuration is a dictionary that it reads at every request.
    0.65 has one, `get_metadata`, so nothing happens here.
    """
    if not TableResource:
        return
    datasette.config = section = datasette.config or {}
    for key in ("databases", database, "tables"):
        # A section that was left empty in the user's YAML is None.
        section[key] = section.get(key) or {}
        section = section[key]
    for table, defaults in tables.items():
        section[table] = {**copy.deepcopy(defaults), **(section.get(table) or {})}


@hookimpl
def permission_allowed(actor, action):
    """0.65 gives root nothing by itself, 1.0 everything; 1.0 never asks here."""
    if action in ("insert-row", "update-row", "delete-row") and (actor or {}).get("id") == "root":
        return True
    return None


@hookimpl
def skip_csrf(scope):
    """0.65 wants a token that only its own forms have; `guard` keeps other sites out of the API."""
    return is_api(scope)
