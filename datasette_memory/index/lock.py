"""Locks between processes: one import at a time for an index, one change at a time for a vault.

A lock is a file that the system frees as soon as its holder ends, however it ends.
"""

import contextlib
import errno
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from .. import durable
from ..errors import MemoryFault

#: How long to wait for another import, in seconds.
IMPORT_PATIENCE = 600.0

#: How long to wait for another change of the vault, in seconds; it takes milliseconds.
VAULT_PATIENCE = 10.0

#: How long to wait for another that makes the pending changes, in seconds.
PENDING_PATIENCE = 2.0

# A change takes a few milliseconds: who waits for one looks often.
_POLL = 0.005

# There while a change goes on. Whoever finds it knows that the last one was cut short.
_WRITING = ".writing"


@contextlib.contextmanager
def write_lock(
    path: Path, waiting: Callable[[], None] | None = None, patience: float | None = None
) -> Iterator[None]:
    """Hold the lock of the index at `path`; `waiting` is called once if another holds it.

    Raises MemoryFault when the lock cannot be made, or is not had within `patience` seconds
    (`IMPORT_PATIENCE` unless given).
    """
    patience = IMPORT_PATIENCE if patience is None else patience
    lock = FileLock(path.with_name(f".{path.name}.lock"))
    try:
        try:
            lock.acquire(timeout=min(0.5, patience))
        except Timeout:
            if waiting:
                waiting()
            lock.acquire(timeout=max(0.0, patience - 0.5))
    except Timeout as error:
        raise MemoryFault(
            f"another import has held {path} for {patience:.0f} seconds", "try again later"
        ) from error
    except NotImplementedError as error:
        raise _no_locks(path.parent) from error
    except OSError as error:
        raise MemoryFault(
            f"{path.parent} cannot be written: {error.strerror}",
            "check its permissions, or name another place with --db",
        ) from error
    try:
        yield
    finally:
        lock.release()


@dataclass(slots=True)
class Turn:
    """One's turn to write. Unless `whole` in the end, the next writer looks what was left."""

    whole: bool = True


@contextlib.contextmanager
def vault_lock(
    home: Path, clean: Callable[[], bool], patience: float | None = None
) -> Iterator[Turn]:
    """Hold the lock of the vault of `home`, for one change.

    `clean` is called first if an earlier change was cut short, to take away what it left; it says
    whether all is in order now. Raises TimeoutError when the lock is not had within `patience`
    seconds (`VAULT_PATIENCE` unless given), OSError when it cannot be made.
    """
    lock = FileLock(home / ".vault.lock")
    try:
        lock.acquire(timeout=VAULT_PATIENCE if patience is None else patience, poll_interval=_POLL)
    except Timeout as error:
        raise TimeoutError(
            errno.ETIMEDOUT, "another program is writing cards and does not end", str(home)
        ) from error
    except NotImplementedError as error:
        raise _no_locks(home) from error
    mark = home / _WRITING
    turn = Turn()
    try:
        if os.path.exists(mark):
            turn.whole = clean()
        else:
            os.close(durable.system.open(mark, os.O_WRONLY | os.O_CREAT, 0o666))
        try:
            yield turn
        except OSError:
            # The disk refused something, and may have refused to tidy up, too.
            turn.whole = False
            raise
        finally:
            if turn.whole:
                with contextlib.suppress(OSError):
                    durable.system.unlink(mark)
    finally:
        lock.release()


def was_cut_short(home: Path) -> bool:
    """Whether a change was cut short, or goes on just now."""
    return os.path.exists(home / _WRITING)


@contextlib.contextmanager
def pending_lock(home: Path) -> Iterator[None]:
    """Hold the lock of the pending changes, so that each is made once. Raises MemoryFault."""
    lock = FileLock(home / ".pending.lock")
    try:
        lock.acquire(timeout=PENDING_PATIENCE)
    except Timeout as error:
        raise MemoryFault("another program makes the pending changes just now") from error
    except NotImplementedError as error:
        raise _no_locks(home) from error
    try:
        yield
    finally:
        lock.release()


def _no_locks(folder: Path) -> MemoryFault:
    return MemoryFault(
        f"the file system of {folder} knows no locks",
        "put the home on a disk of this computer: --home FOLDER",
    )
