"""What reaches the terminal or the pipe: text that is safe to show, JSON, colours."""

import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterable

import click

# Control characters but tab and newline, and what turns the direction of text around: they can
# move a cursor, rename a window or make one line look like another.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_SPACE = re.compile(r"\s+")
_SURROGATE = re.compile("[\ud800-\udfff]")

#: What an encoding has to know, or Chinese text would arrive as nothing but escapes.
_SAMPLE = "记忆"


def prepare_names() -> None:
    """Start this program again in Python's UTF-8 mode, where Python cannot name a Chinese file.

    So it is in the locale C with `PYTHONUTF8=0`, or in that of a Latin alphabet. Python takes the
    encoding of arguments and file names once, when it starts.
    """
    try:
        os.fsencode(_SAMPLE)
        return
    except UnicodeEncodeError:
        pass
    if os.environ.get("PYTHONUTF8") != "1":  # else it was of no use
        os.environ["PYTHONUTF8"] = "1"
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])


def prepare_streams() -> None:
    """Make stdout and stderr take every character.

    A terminal keeps its encoding; a pipe whose encoding has no Chinese gets UTF-8. What is left
    over is written as an escape. Does nothing to a stream that is closed.
    """
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is None:
            continue
        encoding = None
        if not stream.isatty():
            try:
                _SAMPLE.encode(stream.encoding)
            except (UnicodeEncodeError, LookupError):
                encoding = "utf-8"
        reconfigure(encoding=encoding, errors="backslashreplace")


def silence_stdout() -> None:
    """Let nothing more be written to a stdout that broke, not even when Python ends."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()
        return
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def is_terminal(stream) -> bool:
    """Whether somebody looks at `stream` as it is written."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # It is closed.
        return False


def write(text: str) -> None:
    """Write lines of text, already safe, to stdout."""
    click.echo(text, color=True)


def write_error(text: str) -> None:
    """Write lines of text, already safe, to stderr."""
    with contextlib.suppress(OSError):
        click.echo(text, err=True, color=True)


def write_json(value: object) -> None:
    """Write one JSON object to stdout: UTF-8, on one line unless a terminal shows it.

    A lone surrogate becomes its JSON escape, and so do the control characters of `safe`.
    """
    import json

    indent = 2 if is_terminal(sys.stdout) else None
    text = json.dumps(value, ensure_ascii=False, indent=indent) + "\n"
    text = _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    data = text.encode("utf-8", "backslashreplace")
    if buffer := getattr(sys.stdout, "buffer", None):
        sys.stdout.flush()
        buffer.write(data)
        buffer.flush()


def safe(text: str) -> str:
    """`text` with control characters written out (`\\x1b`); newlines and tabs stay."""
    return _CONTROL.sub(_escaped, text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """`text` as safe text on one line, runs of white space as one space."""
    return safe(_SPACE.sub(" ", text).strip())


def marked(text: str, spans: Iterable[tuple[int, int]], mark: Callable[[str], str]) -> str:
    """`text` as safe text on one line, with each `(start, end)` of `spans` passed through `mark`."""
    parts: list[str] = []
    at = 0
    for start, end in spans:
        parts.append(safe(_SPACE.sub(" ", text[at:start])))
        parts.append(mark(safe(_SPACE.sub(" ", text[start:end]))))
        at = end
    parts.append(safe(_SPACE.sub(" ", text[at:])))
    return "".join(parts).strip()


def _escaped(match: re.Match[str]) -> str:
    number = ord(match[0])
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


def readable(argument: str) -> str:
    """An argument as text, where Python could not decode it: as UTF-8, what is none replaced."""
    if not _SURROGATE.search(argument):
        return argument
    try:
        data = os.fsencode(argument)
    except UnicodeEncodeError:
        data = argument.encode("utf-8", "replace")
    return data.decode("utf-8", "replace")


def quoted(words: Iterable[str]) -> str:
    """A command line that can be copied into a shell."""
    if os.name == "nt":
        import subprocess

        return one_line(subprocess.list2cmdline(words))
    import shlex

    return safe(shlex.join(words))


class Style:
    """Colours for one stream: none unless it is a terminal, or where NO_COLOR is set."""

    def __init__(self, stream) -> None:
        self.enabled = (
            is_terminal(stream)
            and not os.environ.get("NO_COLOR")
            and os.environ.get("TERM") != "dumb"
        )

    def __call__(self, text: str, **style: object) -> str:
        return click.style(text, **style) if self.enabled else text

    def title(self, text: str) -> str:
        """A title."""
        return self(text, bold=True)

    def dim(self, text: str) -> str:
        """What is beside the point."""
        return self(text, dim=True)

    def match(self, text: str) -> str:
        """Words of the query in a snippet."""
        return self(text, fg="yellow", bold=True)

    def warn(self, text: str) -> str:
        """What has to be known before a card is trusted."""
        return self(text, fg="red")
