"""sqlite-utils plugin: the command `memory-import`, and the project's SQL functions.

It loads with every run of sqlite-utils, so that everything behind it is loaded when it is used.
"""

from sqlite_utils import hookimpl

#: Each SQL function, by name and number of arguments; the pure ones are deterministic.
FUNCTIONS = (
    ("memory_tokens", 1, True),
    ("memory_match", 2, True),
    ("memory_snippet", 2, True),
    ("memory_coverage", 2, True),
    ("memory_search", 1, False),
    ("memory_search", 2, False),
)


@hookimpl
def register_commands(cli):
    """Add `sqlite-utils memory-import`, the command object of `memory-import`."""
    from .import_command import import_command

    cli.add_command(import_command)


@hookimpl
def prepare_connection(conn):
    """Give the connection the functions, each loaded when it is first called."""
    for name, arity, pure in FUNCTIONS:
        function = _search(conn) if name == "memory_search" else _pure(name)
        conn.create_function(name, arity, function, deterministic=pure)


def _pure(name):
    loaded = None

    def call(*arguments):
        nonlocal loaded
        if loaded is None:
            from datasette_memory.index import functions

            loaded = getattr(functions, name)
        return loaded(*arguments)

    return call


def _search(conn):
    # The connection keeps its functions alive. A function that kept the connection would keep
    # both, and the file open, for as long as Python runs.
    path = next(row[2] for row in conn.execute("pragma database_list") if row[1] == "main")

    def call(*arguments):
        from .sql_search import search

        return search(path, *arguments)

    return call
