"""Where the paths of a record lie on this computer."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from .records import Paths


def bases(
    project: Path | None = None, environment: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """What the names in path templates stand for: the home folder, and those that clients move.

    `project` is the folder that is asked about, by default the current one; the root of its Git
    work tree is taken.
    """
    home = os.path.expanduser("~")
    claude = environment.get("CLAUDE_CONFIG_DIR") or ""
    return {
        "home": home,
        "project": str(project_root(project or Path.cwd())),
        "claude": claude or os.path.join(home, ".claude"),
        "claude_json": os.path.join(claude or home, ".claude.json"),
        "codex": environment.get("CODEX_HOME") or os.path.join(home, ".codex"),
        "xdg": environment.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"),
        "appdata": environment.get("APPDATA") or os.path.join(home, "AppData", "Roaming"),
        "support": os.path.join(home, "Library", "Application Support"),
    }


def project_root(folder: Path) -> Path:
    """The nearest folder upwards that is a Git work tree, else the folder itself."""
    folder = folder.absolute()
    return next((one for one in (folder, *folder.parents) if (one / ".git").exists()), folder)


def place(paths: Paths, scope: str, names: Mapping[str, str]) -> Path | None:
    """The path for a scope; None when there is none. Of several, the first that exists, or the last."""
    template = paths.get(f"{scope}:{sys.platform}") or paths.get(scope)
    if not template:
        return None
    found = [Path(one.format_map(names)) for one in template.split("|")]
    return next((one for one in found if os.path.lexists(one)), found[-1])
