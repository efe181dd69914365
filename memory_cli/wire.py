"""stdin and stdout as a protocol of one JSON object a line has them, and nobody else."""

import contextlib
import io
import json
import os
import re
import sys
import threading
import time
from collections.abc import Iterator

_PARSE_ERROR = -32700, "Parse error: a message is one line of JSON"
_INVALID_REQUEST = -32600, "Invalid request: one JSON-RPC 2.0 message a line, no batches"
# What the SDK takes for JSON and is none, and ids that no answer can have; also within arguments.
_ODD = re.compile(rb'NaN|Infinity|"id"\s*:\s*(?:[^"\s0-9-]|-?[0-9]+[.eE])')
#: How long answers are waited for when there is nothing more to read, in seconds.
_PATIENCE = 0.5
#: A request that is answered when its subscription ends.
_NEVER_ANSWERED = "subscriptions/listen"


class Wire:
    """The descriptors of stdin and stdout, taken away from everybody else.

    Whatever prints, in Python or below it, prints to stderr from then on, and whatever reads stdin
    finds its end. Between `lent()` and the SDK there is a thin filter: a line that is no JSON is
    answered with -32700, JSON that is no message with -32600, which the SDK leaves unanswered.
    Raises OSError when one of the two is closed.
    """

    def __init__(self) -> None:
        sys.stdout.flush()
        os.fstat(0)
        os.fstat(1)
        try:
            os.fstat(2)
        except OSError:
            # The next file would get its number, and be printed to.
            os.open(os.devnull, os.O_WRONLY)
        self._input = os.fdopen(os.dup(0), "rb")
        self._output = os.dup(1)
        self._lock = threading.Lock()
        self._open: set[str | int] = set()
        nowhere = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nowhere, 0)
        os.close(nowhere)
        os.dup2(2, 1)

    @contextlib.contextmanager
    def lent(self) -> Iterator[None]:
        """Within it, `sys.stdin` and `sys.stdout` are the wire: for the SDK, which takes what is
        behind them when it starts, and for no longer than that."""
        usual = sys.stdin, sys.stdout
        # Kept, since whoever lets go of such a file closes what is behind it.
        self._files = (
            io.TextIOWrapper(io.BufferedReader(_Lines(self._messages())), "utf-8"),
            io.TextIOWrapper(_Whole(self._answer), "utf-8"),
        )
        sys.stdin, sys.stdout = self._files
        try:
            yield
        finally:
            sys.stdin, sys.stdout = usual

    def _messages(self) -> Iterator[bytes]:
        """The lines that are messages, until the client closes its end and has its answers."""
        from mcp.types import JSONRPCRequest, jsonrpc_message_adapter
        from pydantic import ValidationError

        while line := self._input.readline():
            if not line.strip():
                continue
            line = line.decode("utf-8", "replace").encode()
            fault = _PARSE_ERROR
            value = None
            try:
                if _ODD.search(line):
                    value = json.loads(line, parse_constant=_no_number)
                    fault = _INVALID_REQUEST
                    if not _has_plain_id(value):
                        raise ValueError("no id that can be answered")
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValidationError:
                try:
                    value = json.loads(line)
                    fault = _INVALID_REQUEST
                    # Half of a surrogate pair, as JavaScript cuts it, is JSON to this parser alone.
                    line = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except (ValueError, RecursionError):
                    self._refuse(fault, value)
                    continue
            except (ValueError, RecursionError):
                self._refuse(fault, value)
                continue
            if isinstance(message, JSONRPCRequest) and message.method != _NEVER_ANSWERED:
                self._open.add(message.id)
            yield line
        deadline = time.monotonic() + _PATIENCE
        while self._open and time.monotonic() < deadline:
            time.sleep(0.01)

    def _refuse(self, fault: tuple[int, str], value: object) -> None:
        id = value.get("id") if isinstance(value, dict) else None
        error = {"code": fault[0], "message": fault[1]}
        id = id if isinstance(id, (str, int)) else None
        self._put((json.dumps({"jsonrpc": "2.0", "id": id, "error": error}) + "\n").encode())

    def _answer(self, lines: bytes) -> None:
        self._put(lines)
        for line in lines.splitlines():
            message = json.loads(line)
            if "method" not in message:
                self._open.discard(message.get("id"))

    def _put(self, data: bytes) -> None:
        with self._lock:
            try:
                while data:
                    data = data[os.write(self._output, data) :]
            except OSError:
                # Nobody reads any more, so there is nobody to serve.
                os._exit(0)


class _Lines(io.RawIOBase):
    """Lines as a file to read from."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        self._lines = lines
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        self._left = self._left or next(self._lines, b"")
        size = min(len(buffer), len(self._left))
        buffer[:size], self._left = self._left[:size], self._left[size:]
        return size


class _Whole(io.RawIOBase):
    """A file to write to that passes on whole lines alone."""

    def __init__(self, put) -> None:
        self._passed_on = put
        self._rest = b""

    def writable(self) -> bool:
        return True

    def write(self, data) -> int:
        lines, newline, self._rest = (self._rest + bytes(data)).rpartition(b"\n")
        if newline:
            self._passed_on(lines + newline)
        return len(data)


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is no JSON")


def _has_plain_id(value: object) -> bool:
    """Whether a message has an id that can be answered, or none."""
    id = value.get("id", "") if isinstance(value, dict) else ""
    return isinstance(id, (str, int)) and not isinstance(id, bool)
