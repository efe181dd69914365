"""What a record asks to be written, for one scope on this computer: data still, no file is read."""

import json
import ntpath
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from . import modules, texts
from .places import place
from .records import EVENTS, Record
from .splice import Put

SERVER = "memory"
"""The name of the server in every client: tool names are made of it, so it is short and plain."""

MARK = "datasette-memory"
"""Stands in every file that is ours alone."""

_HOOK = re.compile(rf"\bhook ({'|'.join(EVENTS)}) --client [a-z-]+")


@dataclass(slots=True)
class Target:
    """One file and what is to be in it.

    `kind`: `json`, `jsonc`, `json5`, `toml`, `yaml` with a `tree`; `markdown` with a block `body`;
    `own` with the whole `body`, and `script` when it is to be executable. `places` are where in a
    tree of ours may stand. `parts` says what it is for.
    """

    path: Path
    kind: str
    parts: list[str]
    tree: dict = field(default_factory=dict)
    body: str = ""
    places: list[tuple[str, ...]] = field(default_factory=list)
    fresh: str = ""


def program() -> list[str]:
    """The words that start `memory` without a shell's profile: the script beside this Python."""
    folder = os.path.dirname(os.path.abspath(sys.executable))
    script = os.path.join(folder, "memory.exe" if os.name == "nt" else "memory")
    if os.path.isfile(script):
        return [script]
    return [os.path.abspath(sys.executable), "-m", "memory_cli"]


def targets(
    record: Record,
    scope: str,
    names: Mapping[str, str],
    words: Sequence[str],
    located: Sequence[str],
) -> list[Target]:
    """The files of a client, each once, in the order in which they should be written.

    `words` start the program and `located` are the options that say which memory.
    """
    found: dict[Path, Target] = {}

    def want(path: Path, kind: str, part: str, **more: object) -> None:
        if path not in found:
            found[path] = Target(path, kind, [part], **more)
            return
        one = found[path]
        one.parts.append(part)
        _join(one.tree, more["tree"])
        one.places += more["places"]

    _hooks(record, scope, names, list(words), list(located), want)
    rules = place(record.rules, scope, names)
    if rules and record.rules_own:
        want(rules, "own", "rules", body=texts.rules_file(rules.suffix))
    elif rules:
        want(rules, "markdown", "rules", body=texts.RULES)
    if skills := place(record.skills, scope, names):
        want(skills / "remember" / "SKILL.md", "own", "skill", body=texts.skill())
    if command := place(record.commands, scope, names):
        want(command, "own", "command", body=texts.command(command.suffix))
    server = record.server
    if path := place(server.paths, scope, names):
        entry = _filled(server.entry, {"words": [*words, "mcp", *located]})
        leaf: object = {SERVER: Put(entry)}
        if server.style == "list":
            leaf = [{"name": SERVER, **entry}]
        want(path, server.format, "server", tree=_under(server.key, leaf), places=[server.key],
             fresh=server.fresh)  # fmt: skip
    return list(found.values())


def _hooks(record, scope, names, words, located, want) -> None:
    hooks = record.hooks
    folder = hooks and place(hooks.paths, scope, names)
    if not folder:
        return
    after = ["--client", record.name, *located]
    if hooks.style == "module":
        files = modules.files(hooks.module, words, after)
        for name, body in files.items():
            want(folder / name, "own", "hooks", body=body)
        if hooks.settings:
            path = place(record.server.paths, scope, names)
            tree = _filled(hooks.settings, {"folder": str(folder)})
            entries = tree["plugins"]["entries"]
            entries.update({name: Put(value) for name, value in entries.items()})
            places = [("plugins", "load", "paths"), ("plugins", "entries")]
            want(path, record.server.format, "hooks", tree=tree, places=places)
        return
    if hooks.style == "scripts":
        if os.name == "nt":
            return
        for name, event in hooks.events.items():
            line = shlex.join([*words, "hook", event, *after])
            want(folder / name, "own", "hooks", body=f"#!/bin/sh\n# {MARK}\nexec {line}\n")
        return
    entries = {
        name: [_filled(hooks.entry, {"words": [*words, "hook", event, *after]})]
        for name, event in hooks.events.items()
    }
    if hooks.style == "file":
        body = json.dumps({**hooks.around, **_under(hooks.key, entries)}, indent=2,
                          ensure_ascii=False)  # fmt: skip
        want(folder, "own", "hooks", body=body + "\n")
    else:
        want(folder, hooks.format, "hooks", tree=_under(hooks.key, entries),
             places=[(*hooks.key, "*")])  # fmt: skip


def is_ours(place: Sequence[str], value: object) -> bool:
    """Whether an entry of a client's file is one that this project writes.

    `place` is the path of keys that ends with the entry's own key, or with that of its list.
    """
    if place[:2] == ("plugins", "entries"):
        return place[-1] == "memory-hooks"
    if place[:2] == ("plugins", "load"):
        return isinstance(value, str) and re.split(r"[\\/]", value)[-1] == "memory-hooks"
    if place and place[0] == "hooks":
        return is_hook(json.dumps(value, ensure_ascii=False))
    named = place[-1] == SERVER or (isinstance(value, dict) and value.get("name") == SERVER)
    return named and is_server(value)


def is_hook(text: str) -> bool:
    """Whether a text has a command line of ours for a hook in it."""
    return bool(_HOOK.search(text))


def is_own(text: str) -> bool:
    """Whether a whole file is one that this project writes."""
    return MARK in text or is_hook(text)


def is_server(value: object) -> bool:
    """Whether the entry of a server starts `memory mcp`, from wherever."""
    if not isinstance(value, dict):
        return False
    words = [value.get("command"), value.get("args")]
    flat = [one for part in words for one in (part if isinstance(part, list) else [part])]
    flat = [one for one in flat if isinstance(one, str)]
    runs = bool(flat) and (
        re.fullmatch(r"memory(?:\.exe)?", ntpath.basename(flat[0])) or "memory_cli" in flat[1:3]
    )
    return bool(runs) and "mcp" in flat


def line(words: Sequence[str]) -> str:
    """The words as a command line for the shell that a client starts."""
    if os.name != "nt":
        return shlex.join(words)
    # Some clients start cmd, some Bash: both take a program in double quotes with its backslashes.
    rest = subprocess.list2cmdline(words[1:])
    return f'"{words[0]}" {rest}'


def powershell(words: Sequence[str]) -> str:
    """The words as a command line for PowerShell."""
    return "& " + " ".join("'" + word.replace("'", "''") + "'" for word in words)


def _filled(value: object, names: Mapping[str, object]) -> object:
    """`value` with what stands in braces filled in."""
    if isinstance(value, dict):
        return {key: _filled(one, names) for key, one in value.items()}
    if isinstance(value, list):
        return [_filled(one, names) for one in value]
    words = names.get("words", [])
    special = {
        "{program}": lambda: words[0],
        "{arguments}": lambda: list(words[1:]),
        "{words}": lambda: list(words),
        "{line}": lambda: line(words),
        "{powershell}": lambda: powershell(words),
        "{folder}": lambda: names["folder"],
    }
    return special[value]() if isinstance(value, str) and value in special else value


def _under(key: Sequence[str], leaf: object) -> dict:
    for name in reversed(key):
        leaf = {name: leaf}
    return leaf


def _join(tree: dict, more: dict) -> None:
    for key, value in more.items():
        if isinstance(value, dict) and not isinstance(value, Put) and key in tree:
            _join(tree[key], value)
        else:
            tree[key] = value
