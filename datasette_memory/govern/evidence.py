"""Whether the texts kept as evidence still are what their names say."""

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from ..errors import MemoryFault
from ..evidence.store import EvidenceStore

_FOLDER = re.compile(r"[0-9a-f]{2}", re.ASCII)
_TEXT = re.compile(r"([0-9a-f]{64})\.txt", re.ASCII)


def texts(folder: Path) -> Iterator[tuple[str, Path]]:
    """`(sha256, path)` of every text below the folder of the evidence; nothing is read."""
    for name in sorted(_names(folder)):
        if _FOLDER.fullmatch(name):
            for text in sorted(_names(folder / name)):
                if match := _TEXT.fullmatch(text):
                    yield match[1], folder / name / text


def fault_of(folder: Path, sha256: str, path: Path) -> str | None:
    """What is wrong with a text or the record beside it, in one line; None when nothing is."""
    try:
        with open(path, "rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != sha256:
            return f"{path} is damaged: its contents are not those of its name"
        EvidenceStore(folder).record(sha256)
    except OSError as error:
        return f"{path} cannot be read: {error.strerror}"
    except MemoryFault as error:
        return error.error
    return None


def faults(folder: Path) -> Iterator[str]:
    """What is wrong with the evidence, a line each; every text is read."""
    for sha256, path in texts(folder):
        if fault := fault_of(folder, sha256, path):
            yield fault


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
