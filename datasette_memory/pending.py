"""Changes that could not be made, kept to be made later."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import durable
from .errors import MemoryFault
from .ledger.events import new_id, now_ms, timestamp

#: So often a change is tried before it is laid aside.
ATTEMPTS = 5

_DEAD = "dead"


@dataclass(slots=True)
class Replay:
    """What became of the pending changes; `dead` ones were laid aside, with the reason in them."""

    done: list[dict[str, object]] = field(default_factory=list)
    failed: list[dict[str, object]] = field(default_factory=list)
    dead: list[dict[str, object]] = field(default_factory=list)

    def to_dict(self) -> dict[str, object]:
        """The object that every surface returns."""
        return {"done": self.done, "failed": self.failed, "dead": self.dead}


class Pending:
    """The queue in `folder`: a JSON file for each change, named so that the oldest comes first."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, change: str, arguments: Mapping[str, Any], reason: str) -> Path:
        """Keep a change; raises OSError when it cannot be written."""
        ms = now_ms()
        record = {
            "v": 1,
            "t": timestamp(ms),
            "change": change,
            "arguments": arguments,
            "attempts": 0,
            "reason": reason,
        }
        path = self.folder / f"{new_id(ms)}.json"
        durable.write_whole(path, _bytes(record), exclusive=True)
        return path

    def paths(self) -> list[Path]:
        """The pending changes, the oldest first."""
        return sorted(self.folder.glob("*.json")) if self.folder.is_dir() else []

    def dead(self) -> list[Path]:
        """The changes that were laid aside."""
        folder = self.folder / _DEAD
        return sorted(folder.glob("*.json")) if folder.is_dir() else []

    def replay(self, perform: Callable[[str, dict[str, Any]], Mapping[str, object]]) -> Replay:
        """Make the pending changes with `perform(change, arguments)`, the oldest first.

        One that fails for the `ATTEMPTS`th time, or that cannot be understood, is laid aside.
        `perform` raises MemoryFault or OSError when it fails.
        """
        result = Replay()
        for path, record in self._records(result):
            try:
                done = perform(record["change"], record["arguments"])
            except (MemoryFault, OSError, TypeError) as error:
                record["attempts"] += 1
                record["reason"] = str(error)
                told = {"file": path.name, "change": record["change"], "reason": str(error)}
                if record["attempts"] >= ATTEMPTS:
                    self._lay_aside(path, record)
                    result.dead.append(told)
                else:
                    durable.write_whole(path, _bytes(record))
                    result.failed.append(told | {"attempts": record["attempts"]})
            else:
                durable.remove(path)
                result.done.append({"file": path.name, "change": record["change"], **done})
        return result

    def _records(self, result: Replay) -> Iterator[tuple[Path, dict[str, Any]]]:
        for path in self.paths():
            try:
                record = json.loads(path.read_bytes())
                if not isinstance(record["arguments"], dict) or record["v"] != 1:
                    raise ValueError("not a change of this version")
                record["attempts"] = int(record["attempts"])
                record["change"] = str(record["change"])
            except (ValueError, KeyError, TypeError) as error:
                self._lay_aside(path, None)
                result.dead.append({"file": path.name, "reason": f"cannot be read: {error}"})
            else:
                yield path, record

    def _lay_aside(self, path: Path, record: Mapping[str, Any] | None) -> None:
        if record is not None:
            durable.write_whole(path, _bytes(record))
        durable.make_folder(self.folder / _DEAD)
        durable.move(path, self.folder / _DEAD / path.name)


def _bytes(record: Mapping[str, Any]) -> bytes:
    return (json.dumps(record, ensure_ascii=False, indent=2) + "\n").encode("utf-8", "replace")
