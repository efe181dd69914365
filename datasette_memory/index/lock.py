"""Locks between processes: one import at a time for an index, one change at a time for a vault.

A lock is a file that the system frees as soon as its holder ends, however it ends.
"""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from ..errors import MemoryFault

#: How long to wait for another import, in seconds.
IMPORT_PATIENCE = 600.0

#: How long to wait for another change of the vault, in seconds; it takes milliseconds.
VAULT_PATIENCE = 10.0

# There while a change goes on. Whoever finds it knows that the last one was cut short.
_WRITING = ".writing"


@contextlib.contextmanager
def write_lock(path: Path, waiting: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold the lock of the index at `path`; `waiting` is called once if another holds it.

    Raises MemoryFault when the lock cannot be made, or is not had within `IMPORT_PATIENCE`.
    """
    lock = FileLock(path.with_name(f".{path.name}.lock"))
    try:
        try:
            lock.acquire(timeout=0.5)
        except Timeout:
            if waiting:
                waiting()
            lock.acquire(timeout=IMPORT_PATIENCE)
    except Timeout as error:
        raise MemoryFault(
            f"another import has held {path} for {IMPORT_PATIENCE:.0f} seconds", "try again later"
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


@contextlib.contextmanager
def vault_lock(home: Path, clean: Callable[[], None]) -> Iterator[None]:
    """Hold the lock of the vault of `home`, for one change.

    `clean` is called first if an earlier change was cut short, to take away what it left. Raises
    TimeoutError when the lock is not had within `VAULT_PATIENCE`, OSError when it cannot be made.
    """
    lock = FileLock(home / ".vault.lock")
    lock.acquire(timeout=VAULT_PATIENCE)
    try:
        mark = home / _WRITING
        if mark.exists():
            clean()
        mark.touch()
        yield
        mark.unlink()
    finally:
        lock.release()
