"""Where things are: option before environment before `config.json` before default."""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path

from .durable import write_whole
from .errors import MemoryFault

DEFAULT_HOME = "~/.memory_agent"


@dataclass(frozen=True, slots=True)
class Home:
    """The paths in force, and for each the rule that decided it.

    `sources` are the entries of `config.json`, as written: name, path, and what else they state.
    """

    home: Path
    db: Path
    vault: Path
    decided: dict[str, str]
    sources: tuple[dict[str, object], ...] = field(default=())

    @property
    def config(self) -> Path:
        return self.home / "config.json"

    def to_dict(self) -> dict[str, object]:
        """The object of `memory paths`."""
        return {
            "home": str(self.home),
            "db": str(self.db),
            "vault": str(self.vault),
            "config": str(self.config),
            "decided": self.decided,
            "sources": list(self.sources),
        }


def resolve(
    home: str | None = None,
    db: str | None = None,
    vault: str | None = None,
    config: dict[str, object] | None = None,
) -> Home:
    """Find the home, the index and the vault. Nothing is created.

    A relative path in `config.json` is relative to the home; `config` is taken instead of that
    file when given. Raises MemoryFault when the file cannot be understood.
    """
    decided: dict[str, str] = {}
    root = _choose("home", home, "MEMORY_AGENT_HOME", None, DEFAULT_HOME, Path(), decided)
    config = read_config(root / "config.json") if config is None else config
    return Home(
        home=root,
        db=_choose("db", db, "MEMORY_AGENT_DB", config.get("db"), "memory.db", root, decided),
        vault=_choose(
            "vault", vault, "MEMORY_AGENT_VAULT", config.get("vault"), "vault", root, decided
        ),
        decided=decided,
        sources=tuple(config.get("sources", ())),
    )


def _choose(
    name: str,
    option: str | None,
    variable: str,
    configured: object,
    default: str,
    root: Path,
    decided: dict[str, str],
) -> Path:
    if option:
        decided[name] = "option"
        return _expanded(option).absolute()
    if value := os.environ.get(variable):
        decided[name] = variable
        return _expanded(value).absolute()
    if configured:
        decided[name] = "config.json"
        return (root / _expanded(str(configured))).absolute()
    decided[name] = "default"
    return (root / _expanded(default)).absolute()


def _expanded(text: str) -> Path:
    """The path with `~` replaced; left as it stands where the system knows no such user."""
    return Path(os.path.expanduser(text))


def read_config(path: Path) -> dict[str, object]:
    """The contents of `config.json`; empty when there is none.

    Raises MemoryFault when it is not a JSON object with the right kinds of values.
    """
    hint = "mend it by hand, or move it away to start with the defaults"
    try:
        config = json.loads(path.read_text("utf-8-sig"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise MemoryFault(
            f"{path} cannot be read: {error.strerror}",
            "check its permissions, or name another home with --home",
        ) from error
    except (ValueError, RecursionError) as error:
        raise MemoryFault(f"{path} is not valid JSON: {error}", hint) from error
    if not isinstance(config, dict):
        raise MemoryFault(f"{path} must hold a JSON object", hint)
    for key in ("db", "vault"):
        if not isinstance(config.get(key, ""), str):
            raise MemoryFault(f"{path}: {key!r} must be a path in quotes", hint)
    sources = config.get("sources", [])
    if not isinstance(sources, list) or not all(
        isinstance(source, dict)
        and isinstance(source.get("path"), str)
        and isinstance(source.get("name", ""), str)
        for source in sources
    ):
        raise MemoryFault(f"{path}: 'sources' must be a list of {{name, path}}", hint)
    return config


def write_config(path: Path, config: dict[str, object]) -> None:
    """Replace `config.json` whole: a crash leaves the old one or the new one.

    Raises MemoryFault when it cannot be written.
    """
    text = json.dumps(config, ensure_ascii=False, indent=2) + "\n"
    try:
        write_whole(path, text.encode("utf-8"))
    except OSError as error:
        raise MemoryFault(
            f"{path} cannot be written: {error.strerror}",
            "check the permissions of its folder, or name another home with --home",
        ) from error
