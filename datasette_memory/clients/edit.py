"""One file of a client: with what is ours in it, and without."""

import difflib
import hashlib
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ..errors import MemoryFault, PlaceTaken
from . import json_edit, marks_edit, toml_edit, yaml_edit
from .splice import EditFault, Put, Splice, Taken, insert, undo, undo_at
from .targets import Target, is_hook, is_ours, is_own

MAX_BYTES = 16 * 1024 * 1024
"""A larger file is refused: no configuration is, and each value of it has to be looked at."""

_JSON = ("json", "jsonc", "json5")


@dataclass(slots=True)
class Written:
    """What was written into one file, as kept in the manifest of the client.

    `before` and `after` are SHA-256 of the file, `before` empty when it was missing; `splices` are
    what was inserted into the file without ours; `made` are the containers that they made, `folders`
    the folders, deepest first; `backup` names the copy of the file from before.
    """

    path: str
    kind: str
    scope: str
    project: str
    parts: list[str]
    before: str
    after: str
    created: bool
    splices: list[list] = field(default_factory=list)
    made: list[list[str]] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    backup: str = ""

    def to_dict(self) -> dict[str, object]:
        return asdict(self)


@dataclass(slots=True)
class Change:
    """A file and what it is to become; `None` is a file that is not there.

    `note` is what the user should know; `exact` says that `after` is what the file was before.
    """

    path: Path
    before: bytes | None
    after: bytes | None
    parts: list[str]
    written: Written | None = None
    script: bool = False
    note: str = ""
    exact: bool = True

    @property
    def changes(self) -> bool:
        return self.before != self.after

    def diff(self) -> str:
        """A unified diff."""
        old, new = (_lines(data) for data in (self.before, self.after))
        names = [str(self.path), str(self.path)]
        if self.before is None:
            names[0] = os.devnull
        if self.after is None:
            names[1] = os.devnull
        return "".join(
            one if one.endswith("\n") else one + "\n\\ No newline at end of file\n"
            for one in difflib.unified_diff(old, new, *names)
        )


def _lines(data: bytes | None) -> list[str]:
    return (data or b"").decode("utf-8", "replace").splitlines(keepends=True)


def digest(data: bytes) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def read(path: Path) -> bytes | None:
    """The bytes of the file, None when there is none. Raises MemoryFault when it cannot be read."""
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise MemoryFault(
            f"{path} cannot be read: {error.strerror}", "check the path and its permissions"
        ) from error
    if len(data) > MAX_BYTES:
        raise MemoryFault(
            f"{path} is larger than {MAX_BYTES // 1024 // 1024} MB",
            "make it smaller, or add the entry by hand: `memory client show` prints it",
        )
    return data


def with_ours(target: Target, known: Written | None) -> Change:
    """The change that puts what is ours into the file, in place of what is there of ours.

    `known` is what was written last time. Raises MemoryFault when the file cannot be edited without
    harm, PlaceTaken when somebody else's entry has the place.
    """
    before = read(target.path)
    change = Change(target.path, before, before, target.parts)
    if target.kind == "own":
        return _own(target, change, known)
    text = _decoded(target.path, before)
    with _told(target.path):
        if before is not None and holds(text, target):
            change.written = known
            return change
        base = text and _without(text, target.kind, target.places, known)
        splices = _additions(base, target)
        after = insert(base, splices)
        made = json_edit.missing(base, target.tree, target.kind) if target.kind in _JSON else []
    change.after = after.encode("utf-8")
    change.written = Written(
        path=str(target.path),
        kind=target.kind,
        scope="",
        project="",
        parts=target.parts,
        before="" if before is None else digest(base.encode("utf-8")),
        after=digest(change.after),
        created=before is None or bool(known and known.created),
        splices=[[one.at, one.text] for one in splices],
        made=[list(one) for one in made],
    )
    if known:
        change.written.made += [one for one in known.made if one not in change.written.made]
        change.written.folders = known.folders
        change.written.backup = known.backup
    return change


def _own(target: Target, change: Change, known: Written | None) -> Change:
    data = target.body.encode("utf-8")
    if change.before is not None and change.before != data:
        if not (known and known.after == digest(change.before)) and not is_own(
            change.before.decode("utf-8", "replace")
        ):
            change.note = f"{target.path} is somebody else's and is left as it is"
            return change
    change.script = target.body.startswith("#!")
    change.after = data
    change.written = Written(
        str(target.path), "own", "", "", target.parts, "", digest(data), True,
        folders=known.folders if known else [],
    )  # fmt: skip
    return change


def without_ours(target: Target, known: Written | None) -> Change:
    """The change that takes what is ours out of the file; no change when nothing of ours is there.

    Where nobody has edited the file since, it becomes what it was, byte for byte. Raises
    MemoryFault when the file cannot be edited without harm.
    """
    path, kind = target.path, target.kind
    before = read(path)
    change = Change(path, before, before, target.parts, known)
    if before is None:
        return change
    same = bool(known) and digest(before) == known.after
    if kind == "own":
        if same or is_own(before.decode("utf-8", "replace")):
            change.after = None
            change.exact = same or before == target.body.encode("utf-8")
        return change
    with _told(path):
        text = _decoded(path, before)
        after = _without(text, kind, target.places, known)
        if after == text:
            return change
        if known and known.created and _is_blank(after, kind):
            change.after = None
            return change
        change.after = after.encode("utf-8")
        change.exact = bool(known) and digest(change.after) == known.before
    return change


def _without(text: str, kind: str, places: list[tuple[str, ...]], known: Written | None) -> str:
    """The text without ours: by what was inserted where it still stands, else by its marks."""
    if known and known.splices:
        splices = [Splice(at, piece) for at, piece in known.splices]
        if digest(text.encode("utf-8")) == known.after:
            if (exact := undo_at(text, splices)) is not None:
                return exact
        clean = undo(text, [one.text for one in splices])
        if clean is not None and _parses(clean, kind) and _by_marks(clean, kind, places) == clean:
            return clean
    clean = _by_marks(text, kind, places)
    if known and kind in _JSON:
        clean = json_edit.without_empty(clean, kind, [tuple(one) for one in known.made])
    return clean


def _by_marks(text: str, kind: str, places: list[tuple[str, ...]]) -> str:
    if kind in _JSON:
        return json_edit.without(text, kind, places, is_ours)
    if kind == "toml":
        for place in places:
            text = toml_edit.without(text, place[0], lambda name, one: is_ours((name,), one))
        return text
    if kind == "yaml":
        for place in places:
            text = yaml_edit.without(text, place[0], lambda name, one: is_ours((name,), one))
        return text
    return marks_edit.without(text, "markdown")


def _additions(text: str, target: Target) -> list[Splice]:
    if target.kind in _JSON:
        return json_edit.additions(text, target.tree, target.kind)
    if target.kind == "toml":
        return toml_edit.additions(text, target.tree)
    if target.kind == "yaml":
        return yaml_edit.additions(text, target.tree, target.fresh)
    return marks_edit.additions(text, target.body, "markdown")


def parsed(text: str, kind: str) -> object:
    """The data of a text; the text itself when it is Markdown. Raises EditFault."""
    if kind in _JSON:
        node = json_edit.parse(text, kind)
        return node and node.plain()
    if kind == "toml":
        return toml_edit.parse(text)
    return yaml_edit.parse(text) if kind == "yaml" else text


def _parses(text: str, kind: str) -> bool:
    try:
        parsed(text, kind)
    except EditFault:
        return False
    return True


def _is_blank(text: str, kind: str) -> bool:
    """Whether nothing is left but what a new file begins with."""
    if not text.strip("\ufeff \t\r\n"):
        return True
    return kind in _JSON and parsed(text, kind) == {} and "/" not in text


def holds(text: str, target: Target) -> bool:
    """Whether the text has all of `target` in it already, and nothing else of ours.

    Raises EditFault when the text does not parse.
    """
    if target.kind == "own":
        return text == target.body
    if target.kind == "markdown":
        return marks_edit.body_of(text, "markdown") == target.body.strip("\n")
    data = parsed(text, target.kind)
    tree = target.tree
    if target.kind == "yaml":
        import json

        tree = yaml_edit.parse(json.dumps(tree))
    return _has(data, tree) and _count(data, target.places) == _count(tree, target.places)


def _has(data: object, tree: object) -> bool:
    if isinstance(tree, list):
        return isinstance(data, list) and all(one in data for one in tree)
    if isinstance(tree, dict) and not isinstance(tree, Put):
        return isinstance(data, dict) and all(
            key in data and _has(data[key], value) for key, value in tree.items()
        )
    return data == tree


def _count(data: object, places: list[tuple[str, ...]]) -> int:
    """How many entries of ours are at those places."""
    return sum(
        is_ours((*path, key), one) if key is not None else is_ours(path, one)
        for place in places
        for path, holder in _holders(data, place, ())
        for key, one in (
            holder.items() if isinstance(holder, dict) else ((None, one) for one in holder)
        )
    )


def _holders(data: object, place: tuple[str, ...], path: tuple[str, ...]):
    if not place:
        if isinstance(data, (dict, list)):
            yield path, data
    elif isinstance(data, dict):
        for key in list(data) if place[0] == "*" else [place[0]]:
            if key in data:
                # A key that stands for any is not told, as in `json_edit.without`.
                yield from _holders(data[key], place[1:], (*path, place[0]))


def mentions(text: str, kind: str, places: list[tuple[str, ...]]) -> bool:
    """Whether anything of ours is in the text. Raises EditFault when it does not parse."""
    if kind == "own":
        return is_own(text)
    if kind == "markdown":
        return marks_edit.body_of(text, "markdown") is not None
    return bool(_count(parsed(text, kind), places)) or is_hook(text)


def _decoded(path: Path, data: bytes | None) -> str:
    try:
        return (data or b"").decode("utf-8")
    except UnicodeDecodeError as error:
        raise MemoryFault(f"{path} is not UTF-8", "save it as UTF-8, and try again") from error


class _told:
    """An EditFault inside becomes a fault that names the file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind, error, trace) -> None:
        if isinstance(error, Taken):
            raise PlaceTaken(
                f"{self.path}: {error}", "remove or rename it, and try again; nothing was changed"
            ) from error
        if isinstance(error, EditFault):
            raise MemoryFault(
                f"{self.path} cannot be edited: {error}",
                "mend it and try again; nothing was changed",
            ) from error
