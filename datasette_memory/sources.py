"""Which sources a memory has: those of `config.json`, and folders that somebody imports."""

import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from .errors import MemoryFault
from .home import Home, read_config, write_config
from .vault.sources import DEFAULT_MAX_BYTES, Source

#: The name of the vault among the sources.
VAULT = "vault"


def configured(home: Home) -> list[Source]:
    """The sources of `config.json`, in its order; relative paths are relative to the home.

    Raises MemoryFault when one cannot be understood, or two have the same name.
    """
    found: list[Source] = []
    names = {VAULT}
    for record in home.sources:
        path = (home.home / Path(str(record["path"])).expanduser()).absolute()
        name = str(record.get("name") or _free_name(path, names))
        if name in names:
            raise MemoryFault(
                f"{home.config}: two sources are called {name!r}", "give one another name"
            )
        names.add(name)
        options: dict[str, object] = {}
        exclude = record.get("exclude", [])
        if not isinstance(exclude, list) or not all(isinstance(one, str) for one in exclude):
            raise MemoryFault(f"{home.config}: 'exclude' of {name!r} must be a list of patterns")
        if (max_bytes := record.get("max_bytes")) is not None:
            if not isinstance(max_bytes, int) or max_bytes < 1:
                raise MemoryFault(f"{home.config}: 'max_bytes' of {name!r} must be a number")
            options["max_bytes"] = max_bytes
        found.append(Source(name, str(path), tuple(exclude), **options))
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
    by_root = {source.root: source for source in known}
    roots = {source.name: source.root for source in known} | {VAULT: str(vault)}
    found: dict[str, Source] = {}
    for path in paths:
        if not path.exists():
            raise MemoryFault(f"there is no folder or file {path}", "check the path")
        root = path.expanduser().absolute().resolve()
        before = by_root.get(str(root))
        if root == vault.resolve():
            chosen = VAULT
        elif before:
            chosen = before.name
        else:
            _refuse_nested(root, roots)
            chosen = name or _free_name(root, set(roots))
        if name and chosen != name:
            raise MemoryFault(f"{path} is already the source {chosen!r}", "leave --name out")
        if roots.get(chosen, str(root)) != str(root) and chosen != VAULT:
            raise MemoryFault(
                f"{chosen!r} is already the name of {roots[chosen]}", "choose another with --name"
            )
        roots[chosen] = str(root)
        found[chosen] = Source(
            chosen,
            str(root),
            exclude or (before.exclude if before else ()),
            max_bytes or (before.max_bytes if before else DEFAULT_MAX_BYTES),
        )
    return list(found.values())


def _refuse_nested(root: Path, roots: dict[str, str]) -> None:
    for name, other in roots.items():
        if root.is_relative_to(other):
            raise MemoryFault(
                f"{root} is part of the source {name!r} ({other})",
                "it is indexed with that one: run `memory index`",
            )


def _free_name(root: Path, taken: set[str]) -> str:
    """A short name made of the end of a path: letters, digits, `-`, `_` and `.`.

    The last part; with the part before it where that is taken; with a number in the last resort.
    """
    last = root.stem if root.is_file() else root.name
    base = _plain_name(last) or "source"
    names = [base, _plain_name(f"{root.parent.name}-{last}")]
    names += [f"{base}-{number}" for number in range(2, len(taken) + 3)]
    return next(name for name in names if name and name not in taken)


def _plain_name(text: str) -> str:
    return re.sub(r"[^\w.-]+", "-", unicodedata.normalize("NFC", text)).strip("-.")


def record(home: Home, sources: Sequence[Source]) -> None:
    """Put `sources` into `config.json`, each over its earlier entry; the rest stays as it is."""
    config = read_config(home.config)
    entries = list(config.get("sources", []))
    for source in sources:
        if source.name == VAULT:
            continue
        entry: dict[str, object] = {"name": source.name, "path": source.root}
        if source.exclude:
            entry["exclude"] = list(source.exclude)
        if source.max_bytes != DEFAULT_MAX_BYTES:
            entry["max_bytes"] = source.max_bytes
        for at, old in enumerate(entries):
            if old.get("name") == source.name:
                entries[at] = old | entry
                break
        else:
            entries.append(entry)
    if entries != config.get("sources", []):
        write_config(home.config, config | {"sources": entries})
