"""Datasette on a memory: its command line, for whichever Datasette is installed, and running it."""

import contextlib
import importlib.metadata
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from datasette_memory.errors import MemoryFault
from datasette_memory.index.connection import connect_read

DISTRIBUTION = "datasette-memory"
METADATA = "metadata.yml"
CONFIGURED_NAME = "memory"
"""The database that metadata.yml speaks of: what Datasette calls memory.db."""

SETTINGS = {
    # Tries every column for every page: 1.2 s of a page of 100,000 cards on 0.65, for guesses.
    "suggest_facets": "off",
    # The default of 200 loses the facet of tags beyond 8,000 cards, this beyond 20,000.
    "facet_time_limit_ms": "500",
}


def serve(
    db: Path,
    *,
    port: int = 8765,
    host: str = "127.0.0.1",
    open_browser: bool = False,
    root: bool = False,
    metadata: Path | None = None,
) -> int:
    """Serve the index `db` until it is stopped; the exit code, or no return at all.

    With `root`, a link is printed by which whoever opens it first becomes root. Without `metadata`, the ready configuration is used, with the name of this database in it.
    Raises MemoryFault when there is no index, no configuration or no free port.
    """
    connect_read(db).close()
    if metadata and not metadata.is_file():
        raise MemoryFault(f"there is no file {metadata}", "name another with --metadata")
    _check_port(host, port)
    options = {"port": port, "host": host, "open_browser": open_browser, "root": root}
    if metadata or db.stem == CONFIGURED_NAME:
        argv = command(db, metadata=metadata or find_metadata(), **options)
        if os.name == "posix":
            sys.stdout.flush()
            sys.stderr.flush()
            os.execv(argv[0], argv)
        return _run(argv)
    with renamed(find_metadata(), db.stem) as copy:
        return _run(command(db, metadata=copy, **options))


def command(
    db: Path, *, port: int, host: str, open_browser: bool, metadata: Path, root: bool = False
) -> list[str]:
    """The command line that serves `db` with that configuration."""
    # Datasette reads its configuration in the encoding of the locale, unless Python says UTF-8. And
    # -m would import what happens to lie in the current folder, unless -P says no.
    argv = [sys.executable, "-P", "-X", "utf8", "-m", "datasette", "serve"]
    # SQLite needs files beside a database in WAL mode. Where there can be none, nobody writes.
    if not os.access(db.absolute().parent, os.W_OK):
        argv.append("--immutable")
    argv += [str(db.absolute()), "--host", host, "--port", str(port)]
    argv += ["--metadata", str(metadata)]
    if takes_configuration():
        # 1.0 takes titles and descriptions from the one, queries and plugins from the other.
        argv += ["--config", str(metadata)]
    for name, value in SETTINGS.items():
        argv += ["--setting", name, value]
    if root:
        argv.append("--root")
    if open_browser:
        argv.append("--open")
    return argv


def takes_configuration() -> bool:
    """Whether the installed Datasette has `-c FILE` (1.0). 0.65 has a `--config` of another
    meaning, and takes everything from `-m`."""
    from datasette.cli import serve as datasette_serve

    return any("-c" in option.opts for option in datasette_serve.params)


def find_metadata() -> Path:
    """The ready configuration: beside the package in a checkout, else where pip put it.

    Raises MemoryFault when it is in neither place.
    """
    beside = Path(__file__).resolve().parent.parent / METADATA
    if beside.is_file() and beside.with_name("setup.cfg").is_file():
        return beside
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        for file in importlib.metadata.files(DISTRIBUTION) or ():
            if file.name == METADATA and DISTRIBUTION in file.parts:
                found = Path(file.locate()).resolve()
                if found.is_file():
                    return found
    raise MemoryFault(
        f"the configuration {METADATA} is not where the package was installed",
        "install the package again, or name a configuration with --metadata",
    )


@contextlib.contextmanager
def renamed(metadata: Path, name: str) -> Iterator[Path]:
    """A temporary copy of the configuration that speaks of the database `name`."""
    import json

    with tempfile.TemporaryDirectory(prefix="datasette-memory-") as folder:
        copy = Path(folder) / "metadata.json"
        copy.write_text(json.dumps(configuration(metadata, name), indent=2), encoding="ascii")
        yield copy


def configuration(metadata: Path, name: str) -> dict:
    """The configuration in that file, with what it says of `memory` said of the database `name`."""
    import yaml

    loaded = yaml.safe_load(metadata.read_text(encoding="utf-8"))
    databases = loaded["databases"]
    return {**loaded, "databases": {name: databases[CONFIGURED_NAME]}}


def _check_port(host: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            if os.name == "posix":
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except (OSError, OverflowError) as error:
        raise MemoryFault(
            f"cannot serve on {host} port {port}: {getattr(error, 'strerror', None) or error}",
            "choose another port with --port",
        ) from error


def _run(argv: list[str]) -> int:
    process = subprocess.Popen(argv)
    # Ctrl-C reaches that process too; a request to end reaches only this one.
    handlers = {
        signal.SIGINT: signal.signal(signal.SIGINT, signal.SIG_IGN),
        signal.SIGTERM: signal.signal(signal.SIGTERM, lambda *_: process.terminate()),
    }
    try:
        return process.wait()
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
