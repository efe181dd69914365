"""Makes one call of `durable.system` fail, or die in the middle of it. The standard library alone."""

import contextlib
import os
import signal
import threading
from types import SimpleNamespace

BEFORE, HALFWAY, AFTER = "before", "halfway", "after"


def armed(system, at: int | None, how: str | int, calls: list[str] | None = None):
    """A copy of `system` in which call number `at`, counted from 1, goes wrong.

    `how` is an errno that the call raises, or when to be killed: BEFORE the call, AFTER it, or
    HALFWAY, which differs from BEFORE where bytes are written. A write that raises has written
    half before. `calls` collects the names of the calls.
    """
    calls = [] if calls is None else calls
    counting = threading.Lock()

    def faulty(name, real):
        def call(*arguments, **keywords):
            with counting:
                calls.append(name)
                number = len(calls)
            if number != at:
                return real(*arguments, **keywords)
            if name == "write" and how != BEFORE and how != AFTER:
                descriptor, data = arguments
                real(descriptor, bytes(data)[: len(data) // 2])
            if isinstance(how, int):
                raise OSError(how, os.strerror(how))
            with contextlib.suppress(OSError):
                if how == AFTER:
                    real(*arguments, **keywords)
            os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))

        return call

    return SimpleNamespace(
        **{name: real and faulty(name, real) for name, real in vars(system).items()}
    )
