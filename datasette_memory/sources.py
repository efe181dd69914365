"""Which sources a memory has: those of `config.json`, and folders that somebody imports."""

import os
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from .errors import MemoryFault
from .home import Home, read_config, write_config
from .vault.sources import DEFAULT_MAX_BYTES, Source, is_markdown

#: The name of the vault among the sources.
VAULT = "vault"


def configured(home: Home) -> list[Source]:
    """The sources of `config.json`, in its order; relative paths are relative to the home.

    One without a name is called after its path. Raises MemoryFault when one cannot be understood,
    or two have the same name.
    """
    found: list[Source] = []
    taken = {VAULT, *(str(record["name"]) for record in home.sources if record.get("name"))}
    names = {VAULT}
    for record in home.sources:
        path = Path(os.path.expanduser(str(record["path"])))
        root = os.path.abspath(home.home / path)
        name = str(record.get("name") or _free_name(Path(root), taken))
        if not _is_name(name):
            raise MemoryFault(f"{home.config}: {name!r} is no name of a source", _NAME_HINT)
        if name in names:
            raise MemoryFault(
                f"{home.config}: two sources are called {name!r}", "give one another name"
            )
        names.add(name)
        taken.add(name)
        options: dict[str, object] = {}
        exclude = record.get("exclude", [])
        if not isinstance(exclude, list) or not all(isinstance(one, str) for one in exclude):
            raise MemoryFault(f"{home.config}: 'exclude' of {name!r} must be a list of patterns")
        if (max_bytes := record.get("max_bytes")) is not None:
            if not isinstance(max_bytes, int) or max_bytes < 1:
                raise MemoryFault(f"{home.config}: 'max_bytes' of {name!r} must be a number")
            options["max_bytes"] = max_bytes
        found.append(Source(name, root, tuple(exclude), **options))
    return found


def choose(
    paths: Sequence[Path],
    known: Sequence[Source],
    vault: Path,
    name: str | None = None,
    exclude: tuple[str, ...] = (),
    max_bytes: int | None = None,
) -> list[Source]:
    """The sources that `paths` are: known ones under their names, new ones under a free name.

    Raises MemoryFault when a path does not exist, is part of a known source, or the name is taken.
    """
    if name is not None and len(paths) != 1:
        raise MemoryFault("--name names one path", "import the others in a command of their own")
    if name is not None and not _is_name(name):
        raise MemoryFault(f"{name!r} is no name of a source", _NAME_HINT)
    sources = {VAULT: Source(VAULT, str(vault))} | {source.name: source for source in known}
    found: dict[str, Source] = {}
    for path in paths:
        root = _existing(path)
        before = next((one for one in sources.values() if _real(one.root) == root), None)
        if before is None:
            _refuse_nested(root, sources.values())
            if name in sources:
                raise MemoryFault(
                    f"{name!r} is already the name of {sources[name].root}",
                    "choose another with --name",
                )
            before = Source(name or _free_name(Path(root), set(sources)), root)
        elif name and name != before.name:
            raise MemoryFault(f"{path} is already the source {before.name!r}", "leave --name out")
        found[before.name] = sources[before.name] = replace(
            before,
            exclude=exclude or before.exclude,
            max_bytes=max_bytes or before.max_bytes,
        )
    return list(found.values())


_NAME_HINT = "a name is one line without slashes, as in work-notes"


def _is_name(name: str) -> bool:
    """Whether cards can be told apart by `name/path`."""
    return name != "" and name.isprintable() and not re.search(r"[/\\]|^\s|\s$", name)


def _existing(path: Path) -> str:
    """Where a path really is. Raises MemoryFault when nothing is there."""
    try:
        return os.path.realpath(os.path.expanduser(path), strict=True)
    except FileNotFoundError:
        raise MemoryFault(f"there is no folder or file {path}", "check the path") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise MemoryFault(f"{path} cannot be read: {reason}", "check the path") from None


def _real(root: str) -> str:
    return os.path.realpath(root)


def _refuse_nested(root: str, sources: Iterable[Source]) -> None:
    """A card that belonged to two sources would be found twice, and answer to no reference."""
    for source in sources:
        if Path(_real(source.root)).is_relative_to(root):
            raise MemoryFault(
                f"{root} holds the source {source.name!r} ({source.root})",
                "import the folders beside that one by themselves, or take it out of config.json",
            )
        if Path(root).is_relative_to(_real(source.root)):
            raise MemoryFault(
                f"{root} is part of the source {source.name!r} ({source.root})",
                "it is indexed with that one: run `memory index`",
            )


def _free_name(root: Path, taken: set[str]) -> str:
    """A short name made of the end of a path: letters, digits, `-`, `_` and `.`.

    The last part; with the part before it where that is taken; with a number in the last resort.
    """
    last = root.stem if is_markdown(root.name) else root.name
    base = _plain_name(last) or "source"
    names = [base, _plain_name(f"{root.parent.name}-{last}")]
    names += [f"{base}-{number}" for number in range(2, len(taken) + 3)]
    return next(name for name in names if name and name not in taken)


def _plain_name(text: str) -> str:
    return re.sub(r"[^\w.-]+", "-", unicodedata.normalize("NFC", text)).strip("-.")


def record(home: Home, sources: Sequence[Source]) -> None:
    """Put `sources` into `config.json`, each over its earlier entry; the rest stays as it is."""
    entries = list(home.sources)
    places = {source.name: at for at, source in enumerate(configured(home))}
    for source in sources:
        if source.name == VAULT:
            continue
        at = places.get(source.name)
        if at is None:
            entry: dict[str, object] = {"name": source.name, "path": source.root}
        else:
            entry = dict(entries[at])
        if source.exclude:
            entry["exclude"] = list(source.exclude)
        if source.max_bytes != entry.get("max_bytes", DEFAULT_MAX_BYTES):
            entry["max_bytes"] = source.max_bytes
        if at is None:
            entries.append(entry)
        else:
            entries[at] = entry
    if entries != list(home.sources):
        write_config(home.config, read_config(home.config) | {"sources": entries})
