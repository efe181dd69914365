"""The Datasette hooks, nothing else.

One module serves Datasette 0.65 and 1.0: a hook that one of them does not have is never called.
"""

import asyncio
import sys

from datasette import hookimpl
from datasette.filters import FilterArguments
from datasette.utils.asgi import BadRequest
from jinja2 import ChoiceLoader

from . import _compat, access, api, attached, guard, pages
from .errors import MemoryFault
from .index import schema
from .index.neighbours import neighbours
from .search import functions, table_filter
from .text.tokenise import TOKENIZER_VERSION

#: The section of the configuration under `plugins`.
NAME = "datasette-memory"

# 0.65 asks them what root may do, and what its tokens against forged forms are not needed for.
permission_allowed = _compat.permission_allowed
skip_csrf = _compat.skip_csrf


@hookimpl
def prepare_connection(conn):
    functions.register(conn)


@hookimpl
def register_routes():
    return api.routes()


# The outermost: what it refuses, nothing else has seen.
@hookimpl(trylast=True)
def asgi_wrapper(datasette):
    def allowed_hosts():
        hosts = (datasette.plugin_config(NAME) or {}).get("allowed_hosts") or []
        return [hosts] if isinstance(hosts, str) else hosts

    return lambda app: guard.Guard(app, allowed_hosts)


@hookimpl
def startup(datasette):
    async def inner():
        for name, database in list(datasette.databases.items()):
            try:
                if not await attached.is_memory(datasette, name) or not database.is_mutable:
                    continue
                if await database.execute_fn(_tokenizer_version) != TOKENIZER_VERSION:
                    print(
                        f"datasette-memory: {name} was built by another version, and search may "
                        "miss cards: bring it up to date with `memory index`",
                        file=sys.stderr,
                    )
                if await database.execute_fn(schema.missing_triggers):
                    await database.execute_write_fn(schema.ensure_triggers)
                    print(f"datasette-memory: {name}: search was mended", file=sys.stderr)
            # Whatever is wrong with one database, the others are still worth serving.
            except Exception as fault:
                print(f"datasette-memory: {name}: {fault}", file=sys.stderr)

    return inner


def _tokenizer_version(connection) -> str | None:
    return schema.get_meta(connection, "tokenizer_version")


@hookimpl
def get_metadata(datasette):
    """Defaults for 0.65, under the user's own metadata; 1.0 is given the same by _compat."""
    return attached.defaults(datasette)


@hookimpl(trylast=True)
def filters_from_request(request, database, table, datasette):
    # After Datasette's own, which finds no full-text index that it knows and hides the search box.
    async def inner():
        if table != "cards" or not await attached.is_memory(datasette, database):
            return None
        try:
            searches = table_filter.asked({key: request.args[key] for key in request.args})
        except table_filter.UnknownColumn as fault:
            raise BadRequest(str(fault)) from None
        built = await datasette.get_database(database).execute_fn(
            lambda connection: table_filter.build(connection, searches)
        )
        return FilterArguments(
            built.where, built.params, built.human, {"supports_search": True, "search": built.text}
        )

    return inner


@hookimpl
def render_cell(row, value, column, table, database, datasette):
    if database not in attached.known(datasette):
        return None
    if table == "cards":
        return pages.card_cell(datasette, database, column, value, row)
    return pages.query_cell(datasette, database, table, column, value, row)


@hookimpl
def extra_template_vars(table, database, view_name, request, datasette):
    async def inner():
        if not request or table != "cards" or not await attached.is_memory(datasette, database):
            return {}

        async def memory_card(row):
            card = {cell["column"]: cell["raw"] for cell in row}
            links = []
            if await _compat.allowed(datasette, request.actor, "view-table", database, "links"):
                links = await datasette.get_database(database).execute_fn(
                    lambda connection: neighbours(connection, card["id"])
                )
            # A long body takes a second to render; the server has others to answer meanwhile.
            return await asyncio.to_thread(pages.card_page, datasette, database, card, links)

        return {
            "memory_card": memory_card,
            "memory_columns_shown": pages.COLUMNS_SHOWN,
            # 1.0a41 does not hand it to the template, and forgets what was typed into the box.
            "search": request.args.get("_search") or "",
        }

    return inner


@hookimpl
def prepare_jinja2_environment(env, datasette):
    env.loader = ChoiceLoader([env.loader, pages.CardTemplates(datasette)])


@hookimpl
def register_mcp_tools(datasette, mcp):
    # The SDK is there when datasette-mcp asks; nobody else waits for it.
    from . import tools

    async def admit(ctx, needs):
        # None where a test calls the server without HTTP.
        request = ctx.request_context.request
        actor = request.scope.get("actor") if request else None
        database = request.query_params.get("database") if request else None
        try:
            return await access.admit(
                datasette, actor, *(getattr(access, need) for need in needs), database=database
            )
        except access.Refused as refused:
            raise MemoryFault(refused.error, refused.hint) from None

    tools.register(mcp, admit, tools.TOOLS)
