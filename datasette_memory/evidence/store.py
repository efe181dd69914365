"""Raw text kept for reference, each once, under the hash of its bytes."""

import hashlib
import json
import os
import re
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ..durable import write_whole
from ..errors import MemoryFault, NotFound
from ..ledger.events import cleaned, now_ms, timestamp
from ..text.window import MAX_CHARS, Window, window
from ..vault.card import DEFAULT_SENSITIVITY, SENSITIVITIES

MAX_BYTES = 2 * 1024 * 1024

_REFERENCE = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}", re.ASCII)
_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)
_DEVICE = re.compile(r"CON|PRN|AUX|NUL|(COM|LPT)[0-9]", re.ASCII | re.IGNORECASE)
_MAX_RECORD = 65_536
_MAX_FIELD = 2_000


@dataclass(frozen=True, slots=True)
class Record:
    """What is known of a text: the JSON beside it. `bytes` is its length in UTF-8."""

    sha256: str
    bytes: int
    kind: str
    origin: str | None
    session: str | None
    created: str
    sensitivity: str

    def to_dict(self) -> dict[str, object]:
        return asdict(self)


class EvidenceStore:
    """The evidence in `folder`, which is made when the first text is put into it."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)

    def put(
        self,
        data: bytes | str,
        *,
        kind: str,
        origin: str | None = None,
        session: str | None = None,
        sensitivity: str = DEFAULT_SENSITIVITY,
    ) -> Record:
        """Keep the text, to the byte; gives its record, which has its hash.

        Half of a surrogate pair, which no file can hold, becomes U+FFFD. A text that is there
        already keeps the record it has, and of two sensitivities the stricter one. Raises
        MemoryFault when it is over MAX_BYTES or the sensitivity is unknown, OSError when it
        cannot be written.
        """
        if sensitivity not in SENSITIVITIES:
            raise MemoryFault(
                f"{_show(sensitivity)} is no sensitivity", f"use one of {', '.join(SENSITIVITIES)}"
            )
        raw = cleaned(data).encode("utf-8") if isinstance(data, str) else bytes(data)
        if len(raw) > MAX_BYTES:
            raise MemoryFault(
                f"a text of {len(raw):,} bytes is too long for the evidence: at most {MAX_BYTES:,}",
                "split it and keep the parts one by one",
            )
        sha256 = hashlib.sha256(raw).hexdigest()
        text_path, record_path = self._paths(sha256)
        known = self._known(sha256, len(raw))
        record = known or Record(
            sha256=sha256,
            bytes=len(raw),
            kind=_field("kind", kind),
            origin=_field("origin", origin),
            session=_field("session", session),
            created=timestamp(now_ms()),
            sensitivity=sensitivity,
        )
        strictest = max(record.sensitivity, sensitivity, key=SENSITIVITIES.index)
        record = replace(record, sensitivity=strictest)
        if record != known:
            lines = (json.dumps(record.to_dict(), ensure_ascii=False, indent=2) + "\n").encode()
            try:
                write_whole(record_path, lines, exclusive=known is None)
            except FileExistsError:
                if self._known(sha256, len(raw)):
                    # Another process was first, and its word counts as well.
                    return self.put(
                        raw, kind=kind, origin=origin, session=session, sensitivity=sensitivity
                    )
                write_whole(record_path, lines)
        # Last, so that no text is ever without its record: nobody misses a record's text before
        # something names it.
        if self._bytes(text_path) != raw:
            write_whole(text_path, raw)
        return record

    def get(self, sha256: str) -> str:
        """The text of that hash, whole; bytes that are no UTF-8 show as U+FFFD.

        Raises MemoryFault for a hostile hash, or when the file is not what it was; NotFound when
        there is none.
        """
        text_path, _ = self._paths(sha256)
        raw = self._bytes(text_path)
        if raw is None:
            raise NotFound(f"no evidence has the hash {sha256}")
        if hashlib.sha256(raw).hexdigest() != sha256:
            raise MemoryFault(
                f"{text_path} is damaged: its contents are not those of its name",
                "put it back from a backup",
            )
        return raw.decode("utf-8", "replace")

    def window(self, sha256: str, offset: int = 0, max_chars: int = MAX_CHARS) -> Window:
        """The part of the text from `offset`, at most `max_chars` characters. Raises as `get`."""
        return window(self.get(sha256), offset, max_chars)

    def record(self, sha256: str) -> Record:
        """What is known of the text. Raises MemoryFault for a hostile hash, or a record that
        cannot be understood; NotFound when there is none.
        """
        _, record_path = self._paths(sha256)
        raw = self._bytes(record_path, _MAX_RECORD)
        if raw is None:
            raise NotFound(f"no evidence has a record of the hash {sha256}")
        record = _parsed(raw, sha256)
        if record is None:
            raise MemoryFault(
                f"{record_path} is no record of evidence",
                "put it back from a backup, or keep the text once more to make a new one",
            )
        return record

    def _known(self, sha256: str, size: int) -> Record | None:
        _, record_path = self._paths(sha256)
        raw = self._bytes(record_path, _MAX_RECORD)
        record = _parsed(raw, sha256) if raw is not None else None
        return record if record and record.bytes == size else None

    def _paths(self, sha256: str) -> tuple[Path, Path]:
        sha256 = safe_hash(sha256)
        return (
            safe_path(self.folder, sha256[:2], f"{sha256}.txt"),
            safe_path(self.folder, sha256[:2], f"{sha256}.json"),
        )

    def _bytes(self, path: Path, limit: int = MAX_BYTES) -> bytes | None:
        """The contents, cut behind what is too much; None when there is no such file.

        Raises MemoryFault when it cannot be read.
        """
        try:
            if not os.path.lexists(path):
                return None
            if not path.is_file():
                raise MemoryFault(f"{path} is not a file", "move it away")
            with open(path, "rb") as file:
                return file.read(limit + 1)
        except OSError as error:
            raise MemoryFault(f"{path} cannot be read: {error.strerror}") from error


def safe_reference(text: str) -> str:
    """The reference of a card or the hash of a text, as it came, when it can do no harm in a path.

    A letter, then up to 63 letters, digits and underscores; or the 64 hex digits of a sha256.
    Raises MemoryFault for all else, and for what Windows takes for a device.
    """
    if isinstance(text, str):
        if _HASH.fullmatch(text):
            return text
        if _REFERENCE.fullmatch(text) and not _DEVICE.fullmatch(text):
            return text
    raise MemoryFault(
        f"{_show(text)} is not a reference",
        "give one like D_0001, or the 64 hex digits of a hash",
    )


def safe_hash(text: str) -> str:
    """As `safe_reference`, of hashes alone."""
    if isinstance(text, str) and _HASH.fullmatch(text):
        return text
    raise MemoryFault(f"{_show(text)} is not the hash of a text", "give its 64 hex digits")


def safe_path(folder: Path, *names: str) -> Path:
    """The path of those names below the folder, which may not exist yet.

    Raises MemoryFault when links lead it out of the folder.
    """
    path = Path(folder, *names)
    try:
        inside = path.resolve().is_relative_to(Path(folder).resolve())
    except (OSError, RuntimeError, ValueError):
        inside = False
    if not inside:
        raise MemoryFault(
            f"{_show(os.path.join(*names))} leads out of {folder}", "remove the link that does so"
        )
    return path


def _parsed(raw: bytes, sha256: str) -> Record | None:
    try:
        values = json.loads(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(values, dict):
        return None
    texts = ("sha256", "kind", "created", "sensitivity")
    if not all(isinstance(values.get(key), str) for key in texts):
        return None
    if not all(isinstance(values.get(key), (str, type(None))) for key in ("origin", "session")):
        return None
    if type(values.get("bytes")) is not int or values["sha256"] != sha256:
        return None
    if values["sensitivity"] not in SENSITIVITIES:
        return None
    return Record(**{key: values.get(key) for key in Record.__slots__})


def _field(name: str, value: str | None) -> str | None:
    if value is None and name != "kind":
        return None
    if not isinstance(value, str) or not value or len(value) > _MAX_FIELD:
        raise MemoryFault(f"{_show(value)} is no {name} of evidence")
    return cleaned(value)


def _show(value: object) -> str:
    shown = ascii(value)
    return shown if len(shown) <= 80 else f"{shown[:77]}..."
