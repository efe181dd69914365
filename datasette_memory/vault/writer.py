"""The only module that changes files of the vault: create, replace, trash, restore.

Every name is checked to lie inside the vault, nothing is overwritten that the caller has not seen,
and the disk is touched through `durable` alone. What the system refuses is raised as OSError, what
a rule refuses as MemoryFault; either way nothing was written.

Two writers that act at the same moment are kept apart by the lock around every write. Without it
`create` alone is safe: one name is given once, though two names may differ in case alone.
"""

from __future__ import annotations

import os
import re
import stat as modes
import sys
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from hashlib import sha256
from pathlib import Path

from .. import durable
from ..errors import MemoryFault, NotFound
from .compose import new_text
from .kinds import DEFAULT_KIND, by_name
from .names import SUFFIX, file_name, name_key, numbered
from .sources import DEFAULT_MAX_BYTES, is_markdown

__all__ = ["Conflict", "Trashed", "Vault", "new_text", "text_of"]

TRASH = ".trash"
_STAMP = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9]{3}")
_MAX_NAMESAKES = 9999
# Where a folder answers to its name in any case.
_CASELESS = sys.platform in ("darwin", "win32")


class Conflict(MemoryFault):
    """The file on disk is not the one that the caller has read: exit code 3."""


@dataclass(frozen=True, slots=True)
class Trashed:
    """A file in the trash: its path there, the path that it had, and when it went (UTC)."""

    trash_path: str
    path: str
    when: datetime


class Vault:
    """The folder of cards at `root`. Paths are POSIX, NFC and relative to it."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(os.path.realpath(root))

    # --- reading -----------------------------------------------------------------------------

    def read(self, path: str) -> bytes:
        """The bytes of a card. Raises NotFound, MemoryFault for a path that is refused, OSError."""
        full = self._card(path)
        if not modes.S_ISREG(full.stat().st_mode):
            raise MemoryFault(f"{_shown(path)} is not a regular file")
        return full.read_bytes()

    # --- creating ----------------------------------------------------------------------------

    def path_for(self, kind: str | None, title: str) -> str:
        """The path that a card of this kind and title gets when no other card has it.

        A kind that is not in the table goes to the folder of `misc`: folders come from the table
        alone, never from what an agent wrote.
        """
        return f"{self._folder(kind)}/{file_name(title)}{SUFFIX}"

    def create(
        self,
        text: str,
        kind: str | None,
        title: str,
        taken: Callable[[str], bool] | None = None,
    ) -> str:
        """Write a new card and return its path; a namesake gets `-2`, `-3`, ...

        Names that differ in case or Unicode form alone are namesakes, so that the vault can move
        to a Mac or to Windows. `taken` answers whether a card with that `name_key` of a path is
        known to the index; with it the cost does not grow with the vault, without it the folder
        is listed. Whatever either of them says, no file is ever overwritten.
        Raises MemoryFault for a text that cannot be a card, OSError when it cannot be written.
        """
        data = _encoded(text)
        return self._first_free(
            self._folder(kind),
            file_name(title),
            SUFFIX,
            taken,
            lambda full: durable.write_whole(full, data, exclusive=True),
        )

    def _folder(self, kind: str | None) -> str:
        """The folder of a kind, spelt as it is on disk."""
        name = (kind or DEFAULT_KIND).strip()
        known = by_name(name) or by_name(name.lower().replace("-", "_").replace(" ", "_"))
        folder = (known or by_name("misc")).folder
        if os.path.isdir(self.root / folder) and not _CASELESS:
            return folder
        # The user may have spelt it otherwise.
        names = [name for name in _listed(self.root) if name.lower() == folder.lower()]
        folders = [name for name in names if os.path.isdir(self.root / name)]
        return folder if folder in folders or not folders else folders[0]

    def _first_free(
        self,
        folder: str,
        stem: str,
        suffix: str,
        taken: Callable[[str], bool] | None,
        put: Callable[[Path], None],
    ) -> str:
        """Call `put` with the first name that no other file has, and return its path."""
        full = self._inside(self._on_disk(folder.split("/")))
        prefix = f"{folder}/" if folder else ""
        if taken is None:
            taken = {name_key(prefix + name) for name in _listed(full)}.__contains__
        for number in range(1, _MAX_NAMESAKES + 1):
            name = numbered(stem, number) + suffix
            if not taken(name_key(prefix + name)):
                try:
                    put(full / name)
                except FileExistsError:
                    continue
                return _nfc(prefix + name)
        raise MemoryFault(
            f"there are {_MAX_NAMESAKES} files called {stem}{suffix} in {folder}",
            "give the card a title of its own",
        )

    # --- changing ----------------------------------------------------------------------------

    def replace(self, path: str, text: str, expected_sha256: str) -> str:
        """Replace the text of a card; returns the sha256 of its new bytes.

        `expected_sha256` is the hash of the bytes that the caller has read, in hex. Raises
        Conflict when the file holds others by now, NotFound when it is gone, OSError.
        """
        data = _encoded(text)
        if sha256(self.read(path)).hexdigest() != expected_sha256:
            raise Conflict(
                f"{_shown(path)} was changed by somebody else meanwhile", "read it and try again"
            )
        durable.write_whole(self._card(path), data)
        return sha256(data).hexdigest()

    # --- trash -------------------------------------------------------------------------------

    def trash(self, path: str, now: datetime | None = None) -> str:
        """Move a card to `.trash/YYYYMMDD-HHMMSS-mmm/<path>` (UTC) and return that path.

        Raises NotFound, MemoryFault, OSError.
        """
        full = self._card(path, follow=False)
        if not os.path.islink(full) and not full.is_file():
            raise MemoryFault(f"{_shown(path)} is not a regular file")
        self._inside(self.root / TRASH)
        kept = full.relative_to(self.root)
        moment = now or datetime.now(timezone.utc)
        while True:
            at = moment.astimezone(timezone.utc)
            stamp = f"{at:%Y%m%d-%H%M%S}-{at.microsecond // 1000:03}"
            target = Path(TRASH, stamp, kept)
            try:
                durable.move(full, self.root / target)
            except FileExistsError:
                moment += timedelta(milliseconds=1)
                continue
            return _nfc(target.as_posix())

    def restore(self, trash_path: str) -> str:
        """Move a file of the trash back and return its path: the one that it had, or with `-2`
        and so on where that is taken by now. Raises NotFound, MemoryFault, OSError."""
        parts = trash_path.split("/")
        if len(parts) < 3 or parts[0] != TRASH or not _STAMP.fullmatch(parts[1]):
            raise MemoryFault(
                f"{_shown(trash_path)} is no path of the trash",
                "give one like .trash/20260131-093000-000/12-Facts/port.md",
            )
        _check_parts("/".join(parts[2:]))
        try:
            full = self._existing(parts, trash_path)
        except NotFound:
            raise NotFound(
                f"{_shown(trash_path)} is not in the trash",
                "it may have been brought back before; `memory trash` lists what is there",
            ) from None
        if not modes.S_ISREG(full.lstat().st_mode):
            raise MemoryFault(f"{_shown(trash_path)} is not a regular file")
        folder = "/".join(parts[2:-1])
        stem, suffix = os.path.splitext(parts[-1])
        path = self._first_free(folder, stem, suffix, None, lambda to: durable.move(full, to))
        # The folders that `trash` made for it; those that hold more stay.
        for made in list(full.parents)[: len(parts) - 2]:
            try:
                durable.system.rmdir(made)
            except OSError:
                break
        return path

    def trashed(self) -> list[Trashed]:
        """What is in the trash, the latest first."""
        return sorted(self._trashed(), key=lambda item: (item.when, item.path), reverse=True)

    def _trashed(self) -> Iterator[Trashed]:
        trash = self.root / TRASH
        for stamp in _listed(trash):
            if not _STAMP.fullmatch(stamp) or os.path.islink(trash / stamp):
                continue
            try:
                when = datetime.strptime(f"{stamp}000+0000", "%Y%m%d-%H%M%S-%f%z")
            except ValueError:
                continue
            for folder, _, names in os.walk(trash / stamp):
                for name in names:
                    if not is_markdown(name):
                        continue
                    path = _nfc(Path(folder, name).relative_to(trash / stamp).as_posix())
                    yield Trashed(f"{TRASH}/{stamp}/{path}", path, when)

    # --- paths -------------------------------------------------------------------------------

    def _card(self, path: str, follow: bool = True) -> Path:
        """Where the card `path` is on disk; of a link inside the vault what it leads to, unless
        `follow` is False. Raises NotFound and MemoryFault."""
        _check_parts(path)
        full = self._existing(path.split("/"), path)
        real = self._checked(Path(os.path.realpath(full)), path)
        if not follow:
            return full
        if not os.path.exists(real):
            raise NotFound(f"{_shown(path)} is a link that leads nowhere")
        return real

    def _existing(self, parts: list[str], path: str) -> Path:
        """The file with these names. Raises NotFound and MemoryFault."""
        full = self._on_disk(parts)
        self._checked(Path(os.path.realpath(full.parent)), path)
        if not os.path.lexists(full):
            raise NotFound(
                f"{_shown(path)} is not in the vault", "'memory index' brings the index up to date"
            )
        return full

    def _on_disk(self, parts: list[str]) -> Path:
        """The path of these names; those on disk may be in another Unicode form than NFC."""
        full = self.root
        for part in parts:
            if not part.isascii() and not os.path.lexists(full / part):
                part = next((name for name in _listed(full) if _nfc(name) == _nfc(part)), part)
            full = full / part
        return full

    def _inside(self, folder: Path) -> Path:
        return self._checked(Path(os.path.realpath(folder)), folder.name)

    def _checked(self, real: Path, path: str) -> Path:
        if real != self.root and self.root not in real.parents:
            raise MemoryFault(
                f"{_shown(path)} leads out of the vault", "nothing outside it is ever written"
            )
        return real


def text_of(data: bytes, path: str) -> str:
    """The bytes of a card as text that can be changed and written back as it was.

    Raises MemoryFault for bytes that are not UTF-8: they would be lost.
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise MemoryFault(
            f"{_shown(path)} is not UTF-8 and cannot be changed", "save it as UTF-8 first"
        ) from None


def _check_parts(path: str) -> None:
    """Refuse a path that is not the plain relative path of a Markdown file."""
    parts = path.split("/")
    plain = all(part and part[0] != "." and "\0" not in part for part in parts)
    if os.name == "nt" and plain:
        plain = not any(sign in path for sign in '\\:*?"<>|')
    if not plain or not is_markdown(parts[-1]):
        raise MemoryFault(
            f"{_shown(path)} is not the path of a card",
            "paths are relative to the vault, without '..', and end in .md",
        )


def _encoded(text: str) -> bytes:
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError:
        raise MemoryFault("the text holds half of a character and cannot be written") from None
    if len(data) > DEFAULT_MAX_BYTES:
        raise MemoryFault(
            "the card would be larger than 2 MiB, and no index reads that",
            "keep the long text with --raw, beside a short card",
        )
    return data


def _listed(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _nfc(name: str) -> str:
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def _shown(path: str) -> str:
    return path.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\0")[:300]
