"""Changes that could not be made, kept to be made later."""

import contextlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import durable
from .errors import MemoryFault
from .home import Home
from .ledger.events import cleaned, new_id, now_ms, time_of_id, timestamp

#: So often a change is tried before it is laid aside.
ATTEMPTS = 5

_DEAD = "dead"

# A change that ends like this was not made, and never will be.
_REFUSED = ("rejected", "conflict")


@dataclass(slots=True)
class Replay:
    """What became of the pending changes; `dead` ones were laid aside, with the reason in them.

    `left` counts those that were not tried, because one before them failed for a reason that
    would have met them too. `elsewhere` are those that were asked for in another vault.
    """

    done: list[dict[str, object]] = field(default_factory=list)
    failed: list[dict[str, object]] = field(default_factory=list)
    dead: list[dict[str, object]] = field(default_factory=list)
    left: int = 0
    elsewhere: list[dict[str, object]] = field(default_factory=list)

    def to_dict(self) -> dict[str, object]:
        """The object that every surface returns."""
        return {
            "done": self.done,
            "failed": self.failed,
            "dead": self.dead,
            "left": self.left,
            "elsewhere": self.elsewhere,
        }


#: `perform(change, arguments, t)` makes a change that was asked for at `t`, or raises. A record
#: that somebody wrote by hand may hold anything, and so raise anything.
Perform = Callable[[str, dict[str, Any], str], Mapping[str, object]]


class Pending:
    """The queue in `folder`: a JSON file for each change, named so that the oldest comes first."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(
        self,
        change: str,
        arguments: Mapping[str, Any],
        reason: str,
        places: Mapping[str, str] | None = None,
    ) -> Path:
        """Keep a change, with the `places` that it was meant for; see `places_of`. Raises OSError
        when it cannot be written."""
        # Behind those that wait already, whatever the clock says.
        behind = max((time_of_id(path.stem) + 1 for path in self.paths()), default=0)
        ms = max(now_ms(), behind)
        record = {
            "v": 1,
            "t": timestamp(ms),
            "change": change,
            **(places or {}),
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

    def replay(self, perform: Perform, vault: str | None = None) -> Replay:
        """Make the pending changes, the oldest first; the caller holds `lock.pending_lock`.

        A change that was meant for another `vault` (as `places_of` names it) stays as it is.

        One that fails for the `ATTEMPTS`th time, that is refused by a rule, or that cannot be
        understood, is laid aside. After one that the system refused none is tried: a later change
        must not come before an earlier one.
        """
        result = Replay()
        refused = False
        for path in self.paths():
            record = self._record(path, result)
            if record is None:
                continue
            told = {"file": path.name, "change": record["change"]}
            if (meant := record.get("vault", vault)) != vault:
                result.elsewhere.append(told | {"vault": str(meant)})
                continue
            if refused:
                result.left += 1
                continue
            try:
                done = perform(record["change"], record["arguments"], record["t"])
            except Exception as error:
                self._failed(path, record, error, result)
                refused = isinstance(error, OSError)
            else:
                if done.get("status") in _REFUSED:
                    self._lay_aside(path, record, str(done.get("reason")), result)
                    continue
                with contextlib.suppress(FileNotFoundError):
                    durable.remove(path)
                result.done.append(told | dict(done))
        return result

    def _record(self, path: Path, result: Replay) -> dict[str, Any] | None:
        try:
            record = json.loads(path.read_bytes())
            if not isinstance(record["arguments"], dict) or record["v"] != 1:
                raise ValueError("not a change of this version")
            record["attempts"] = int(record["attempts"])
            for key in ("change", "t"):
                record[key] = str(record[key])
        except FileNotFoundError:
            return None
        except OSError as error:
            result.failed.append({"file": path.name, "reason": error.strerror or str(error)})
            return None
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            self._lay_aside(path, None, f"cannot be read: {error}", result)
            return None
        return record

    def _failed(self, path: Path, record: dict[str, Any], error: Exception, result: Replay) -> None:
        reason = _reason(error)
        record["attempts"] += 1
        if record["attempts"] >= ATTEMPTS:
            self._lay_aside(path, record, reason, result)
            return
        # Where nothing can be written the attempt is not counted, and the change stays.
        with contextlib.suppress(OSError):
            durable.write_whole(path, _bytes(record | {"reason": reason}))
        result.failed.append(
            {
                "file": path.name,
                "change": record["change"],
                "reason": reason,
                "attempts": record["attempts"],
            }
        )

    def _lay_aside(
        self, path: Path, record: Mapping[str, Any] | None, reason: str, result: Replay
    ) -> None:
        told = {"file": path.name, "reason": reason}
        if record is not None:
            told["change"] = record["change"]
        try:
            if record is not None:
                durable.write_whole(path, _bytes({**record, "reason": reason}))
            durable.move(path, self.folder / _DEAD / path.name)
        except OSError as error:
            result.failed.append(told | {"reason": f"{reason}; {_reason(error)}"})
        else:
            result.dead.append(told)


def places_of(home: Home) -> dict[str, str]:
    """The vault and the index that a change is meant for. What lies in the home is named from
    there: a home may be moved, or restored elsewhere, with what waits in it."""
    return {"vault": _place(home.vault, home.home), "db": _place(home.db, home.home)}


def _place(path: Path, home: Path) -> str:
    # `resolve` raises an error of its own where a link leads to itself.
    path, home = Path(os.path.realpath(path)), Path(os.path.realpath(home))
    return path.relative_to(home).as_posix() if path.is_relative_to(home) else str(path)


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror or error}"
    if isinstance(error, (MemoryFault, OSError)):
        return str(error)
    return f"it is not understood: {type(error).__name__}: {error}"


def _bytes(record: Mapping[str, Any]) -> bytes:
    text = json.dumps(cleaned(record), ensure_ascii=False, indent=2, default=str)
    return f"{text}\n".encode()
