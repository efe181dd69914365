"""One writer at a time for an index: the others wait their turn."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from ..errors import MemoryFault

#: How long to wait for another import, in seconds.
PATIENCE = 600.0


@contextlib.contextmanager
def write_lock(path: Path, waiting: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold the lock of the index at `path`; `waiting` is called once if another holds it.

    The lock is a file beside the index and is free as soon as its holder ends, however it ends.
    Raises MemoryFault when the lock cannot be made, or is not had within `PATIENCE`.
    """
    lock = FileLock(path.with_name(f".{path.name}.lock"))
    try:
        try:
            lock.acquire(timeout=0.5)
        except Timeout:
            if waiting:
                waiting()
            lock.acquire(timeout=PATIENCE)
    except Timeout as error:
        raise MemoryFault(
            f"another import has held {path} for {PATIENCE:.0f} seconds", "try again later"
        ) from error
    except OSError as error:
        raise MemoryFault(
            f"{path.parent} cannot be written: {error.strerror}",
            "check its permissions, or name another place with --db",
        ) from error
    try:
        yield
    finally:
        lock.release()
