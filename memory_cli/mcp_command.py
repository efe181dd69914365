"""`memory mcp`: the memory as an MCP server on stdin and stdout."""

import contextlib
import functools
import os
import sys

import click

from .options import HELP, Settings, common_options
from .output import write_error

_INSTRUCTIONS = {
    "full": (
        "The memory of this user's projects: decisions, facts, mistakes and their fixes, as cards. "
        "Search it (memory_search, by names and identifiers) before you start, decide or debug; "
        "read with memory_get what you rely on; write what a later session needs with "
        "memory_capture."
    ),
    "router": (
        "The memory of this user's projects. Search it (search_memory, by names and keywords) "
        "before you start, decide or debug; read one record with read_raw_data; save what a later "
        "session needs with save_memory."
    ),
}


@click.command(
    "mcp", short_help="Serve agents over MCP, on stdin and stdout.", context_settings=HELP
)
@click.option(
    "--tools",
    type=click.Choice(["full", "router"]),
    default="full",
    show_default=True,
    help="The tools of this memory, or the four of Agent Memory Router.",
)
@click.option("--read-only", is_flag=True, help="Serve no tool that writes.")
@common_options
@click.pass_obj
def mcp_command(settings, tools, read_only):
    """Serve the memory to an agent over the Model Context Protocol.

    An agent's client starts this and speaks JSON-RPC on its stdin and stdout; what is meant for
    people goes to stderr. It ends when its input does. For MCP over HTTP, see `memory serve`.

    \b
    Examples:
      memory mcp
      memory mcp --read-only
      memory mcp --tools router --home ~/工作记忆
    """
    import signal

    from datasette_memory.errors import MemoryFault

    from .wire import Wire

    try:
        if sys.stdin.isatty():
            write_error("An agent's client starts this and speaks JSON-RPC. Ctrl-D ends it.")
        wire = Wire()
    except (OSError, AttributeError) as error:
        raise MemoryFault(
            "stdin or stdout is closed", "an agent's client has to start this"
        ) from error
    # A change may be cut short at any point; there is nothing to be put in order first.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    serve(settings, wire, tools, read_only)
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.flush()
    # A thread may still do what was asked for, and nobody waits for its answer any more.
    os._exit(0)


def serve(settings: Settings, wire, toolset: str, read_only: bool) -> None:
    """Serve until the input ends."""
    # All of this takes half a second, so nothing above needs it.
    import anyio
    from mcp.server.mcpserver import MCPServer

    from datasette_memory import __version__, tools

    @functools.cache
    def memory():
        return settings.memory()

    async def admit(ctx, needs):
        return memory()

    lending = contextlib.ExitStack()

    @contextlib.asynccontextmanager
    async def lifespan(server):
        lending.close()
        yield {}

    server = MCPServer(
        "memory",
        version=__version__,
        instructions=_INSTRUCTIONS[toolset],
        log_level="WARNING",
        lifespan=lifespan,
    )
    served = tools.TOOLS
    if toolset == "router":
        from datasette_memory import router

        served = router.TOOLS
    tools.register(server, admit, served, read_only=read_only)
    with lending:
        lending.enter_context(wire.lent())
        anyio.run(server.run_stdio_async)
