"""Install a client, take it out again, look at what is there: all over the edits of single files."""

import json
import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from ..durable import make_folder, remove, system, write_whole
from ..errors import MemoryFault, PlaceTaken
from . import edit, programs
from .edit import Change, Written
from .places import bases, place
from .records import BY_NAME, DOCS_ONLY, RECORDS, VERIFIED, Record
from .splice import EditFault, Put
from .targets import Target, line, program, targets

SCOPES = ("user", "project")

_TRIES = 3


@dataclass(slots=True)
class Report:
    """What was done or would be done for a client."""

    client: str
    changes: list[Change] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    paste: list[dict[str, str]] = field(default_factory=list)
    dry_run: bool = False

    def to_dict(self) -> dict[str, object]:
        return {
            "client": self.client,
            "dry_run": self.dry_run,
            "changed": any(one.changes for one in self.changes),
            "files": [
                {
                    "path": str(one.path),
                    "parts": one.parts,
                    "action": action(one),
                    **({"diff": one.diff()} if self.dry_run and one.changes else {}),
                    **({"note": one.note} if one.note else {}),
                }
                for one in self.changes
            ],
            "paste": self.paste,
            "notes": self.notes,
        }


def action(change: Change) -> str:
    """What happens to a file: `create`, `change`, `remove`, `keep`."""
    if not change.changes:
        return "keep"
    if change.before is None:
        return "create"
    return "remove" if change.after is None else "change"


def record_of(name: str) -> Record:
    """The record of a client. Raises MemoryFault when there is none of that name."""
    if name not in BY_NAME:
        raise MemoryFault(f"there is no client {name!r}", f"one of: {', '.join(BY_NAME)}")
    return BY_NAME[name]


class Clients:
    """The clients of this user, and one memory for them.

    `home` is the home of the memory, where what was written is kept in mind; `located` are the
    options that lead to the memory when it is not the default one.
    """

    def __init__(
        self, home: Path, located: Sequence[str] = (), project: Path | None = None
    ) -> None:
        self.folder = home / "clients"
        self.located = list(located)
        self.names = bases(project)

    def targets(self, record: Record, scope: str) -> list[Target]:
        """What is to be written for a client."""
        return targets(record, scope, self.names, program(), self.located)

    def install(
        self, name: str, scope: str = "user", dry_run: bool = False, trust: bool = False
    ) -> Report:
        """Write the server, hooks, rules, skill and command of a client into its files.

        With `trust`, the hooks are approved in the user's place, where the client asks for that
        (Codex); which needs them to be there, so a dry run does not show it. All files are looked
        at before the first is written. Raises MemoryFault when one cannot be edited without harm,
        PlaceTaken when somebody else's entry has the place of ours.
        """
        record = record_of(name)
        report = Report(name, notes=list(record.notes), dry_run=dry_run)
        wanted = self.targets(record, scope)
        if not any("server" in one.parts for one in wanted):
            raise MemoryFault(f"{record.title} has no file of scope {scope}", "use --scope user")
        if trust and not record.trusts:
            raise MemoryFault(f"{record.title} asks for no approval of hooks", "leave --trust out")
        if trust and scope == "project":
            raise MemoryFault(
                f"{record.title} keeps approvals in the user's own file, not in a project's",
                f"leave --trust out, and approve the hooks in {record.title}, with /hooks",
            )
        if record.level == DOCS_ONLY:
            report.paste = [_pasted(one) for one in wanted]
            report.notes.insert(
                0, "What this client reads is known from its documents only: nothing was written."
            )
            return report
        self._write_all(report, wanted, scope)
        if trust and not dry_run:
            self._trust(report, record, wanted, scope)
        return report

    def _write_all(self, report: Report, wanted: list[Target], scope: str) -> None:
        name = report.client
        for _ in range(_TRIES):
            known = self._known(name)
            # Several clients read one AGENTS.md: what is in it is theirs together.
            shared = {**self._of_others(name), **known}
            report.changes = [edit.with_ours(one, shared.get(str(one.path))) for one in wanted]
            _refuse_read_only(report.changes)
            if report.dry_run:
                return
            try:
                return self._apply(report, name, scope, known)
            except _Moved as error:
                moved = error
        raise PlaceTaken(
            f"{moved} changes all the time", f"close {record_of(name).title}, and try again"
        )

    def _trust(self, report: Report, record: Record, wanted: list[Target], scope: str) -> None:
        from .trust import codex_hooks

        found = programs.find(record.programs)
        if not found:
            raise MemoryFault(
                f"{record.programs[0]} is not on the PATH, and it alone knows the approvals",
                "approve the hooks in it, with /hooks",
            )
        hashes = codex_hooks(found, self.names["project"])
        if not hashes:
            return
        target = next(one for one in wanted if "server" in one.parts)
        target.parts.append("trust")
        state = {key: Put({"trusted_hash": one}) for key, one in hashes.items()}
        target.tree["hooks"] = {"state": state}
        second = Report(report.client)
        self._write_all(second, [target], scope)
        report.changes = [one for one in report.changes if one.path != target.path]
        report.changes += second.changes

    def _apply(self, report: Report, name: str, scope: str, known: dict[str, Written]) -> None:
        others = self._of_others(name)
        kept = dict(known)
        for change in report.changes:
            written = change.written
            if written and (change.changes or written.path not in known):
                written.scope = scope
                written.project = self.names["project"] if scope == "project" else ""
                known[written.path] = written
            if written and change.changes:
                last = kept.get(written.path) or others.get(written.path)
                if change.before is not None and not (
                    last and last.after == edit.digest(change.before)
                ):
                    written.backup = self._back_up(name, change.path, change.before)
                if not written.folders:
                    written.folders = _missing_folders(change.path)
                self._tell_others(name, written)
        if known != kept or any(change.changes for change in report.changes):
            # Before the files: who is stopped in between can still have them taken back.
            self._keep(name, known)
        for change in report.changes:
            _write(change)

    def uninstall(self, name: str, scope: str | None = None, dry_run: bool = False) -> Report:
        """Take what is ours out of the files of a client, and only that.

        A file that nobody else has edited becomes what it was, byte for byte, and one that was made
        goes. `scope` None is all that was written, and the files of the user in any case. Raises
        MemoryFault when a file cannot be edited without harm.
        """
        record = record_of(name)
        report = Report(name, dry_run=dry_run)
        for _ in range(_TRIES):
            known = self._known(name)
            report.changes = [
                edit.without_ours(one, known.get(str(one.path)))
                for one in self._of_ours(record, scope, known)
            ]
            report.changes = [one for one in report.changes if one.changes]
            _refuse_read_only(report.changes)
            if dry_run:
                return report
            try:
                self._take_back(report, name, scope, known)
                return report
            except _Moved as error:
                moved = error
        raise PlaceTaken(f"{moved} changes all the time", f"close {record.title}, and try again")

    def _of_ours(
        self, record: Record, scope: str | None, known: dict[str, Written]
    ) -> list[Target]:
        """Every file that may have something of ours, and that no other client needs."""
        others = self._of_others(record.name)
        places = self._places(record)
        found = {
            path: Target(Path(path), one.kind, one.parts, places=places)
            for path, one in known.items()
            if scope is None or self._in_scope(one, scope)
        }
        for one_scope in SCOPES if scope is None else (scope,):
            for one in self.targets(record, one_scope):
                if str(one.path) not in known and record.level != DOCS_ONLY:
                    found[str(one.path)] = one
        return [one for path, one in found.items() if path not in others]

    def _in_scope(self, one: Written, scope: str) -> bool:
        return one.scope == scope and one.project in ("", self.names["project"])

    def _places(self, record: Record) -> list[tuple[str, ...]]:
        found: list[tuple[str, ...]] = []
        for scope in SCOPES:
            for one in self.targets(record, scope):
                found += [place for place in one.places if place not in found]
        return found

    def _take_back(
        self, report: Report, name: str, scope: str | None, known: dict[str, Written]
    ) -> None:
        for change in report.changes:
            if not change.exact:
                copy = self._back_up(name, change.path, change.before)
                why = "others have edited it" if change.written else "what it was is not known"
                change.note = f"{why}; a copy: {copy}"
        for change in report.changes:
            _write(change)
        left = {}
        for path, one in known.items():
            if scope is not None and not self._in_scope(one, scope):
                left[path] = one
                continue
            for folder in one.folders:
                _remove_empty(folder)
        inexact = {str(change.path) for change in report.changes if not change.exact}
        inexact |= set(self._of_others(name))
        for path, one in known.items():
            if path not in left and path not in inexact and one.backup:
                # The file is what the copy is.
                Path(one.backup).unlink(missing_ok=True)
        self._keep(name, left)

    def doctor(self, name: str) -> list[dict[str, object]]:
        """What is there of a client and what is wrong with it: `{level, name, what, remedy}`.

        `level` is `ok`, `note` or `error`.
        """
        record = record_of(name)
        found: list[dict[str, object]] = []

        def say(level: str, what: str, text: str, remedy: str = "") -> None:
            found.append({"level": level, "name": what, "what": text, "remedy": remedy})

        version = self.version(record)
        if version:
            say("ok", "program", f"{record.title} {version}")
        elif path := programs.find(record.programs):
            say("note", "program", f"{path} does not tell its version")
        else:
            say("note", "program", f"{record.programs[0]} is not on the PATH",
                f"install {record.title}, when you use it here")  # fmt: skip
        if record.level == DOCS_ONLY:
            say("note", "files", "known from documents only; nothing is written",
                f"memory client install {name} prints what to paste")  # fmt: skip
            return found
        self._examine_program(say)
        known = self._known(name)
        scopes = [
            scope for scope in SCOPES if any(self._in_scope(one, scope) for one in known.values())
        ] or ["user"]
        for scope in scopes:
            for target in self.targets(record, scope):
                self._examine(target, name, scope, say)
        for note in record.notes:
            say("note", "remember", note)
        return found

    def _examine_program(self, say: Callable[..., None]) -> None:
        words = [*program(), "--version"]
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)
            works = done.returncode == 0
        except (OSError, subprocess.SubprocessError):
            works = False
        if works:
            say("ok", "command", line(program()))
        else:
            say("error", "command", f"{line(program())} does not run", "install the package again")

    def _examine(self, target: Target, name: str, scope: str, say: Callable[..., None]) -> None:
        what = ", ".join(target.parts)
        again = f"memory client install {name}" + (" --scope project" if scope == "project" else "")
        try:
            data = edit.read(target.path)
            text = (data or b"").decode("utf-8")
            if data is not None and edit.holds(text, target):
                say("ok", what, str(target.path))
            elif data is not None and edit.mentions(text, target.kind, target.places):
                say("error", what, f"{target.path} has an entry of ours that is out of date", again)
            elif data is not None and target.kind == "own":
                say("note", what, f"{target.path} is somebody else's")
            else:
                say("error", what, f"{target.path} has nothing of ours", again)
        except (EditFault, UnicodeDecodeError) as error:
            say("error", what, f"{target.path} does not parse: {error}", "mend it by hand")
        except MemoryFault as error:
            say("error", what, error.error, error.hint)

    def installed(self, record: Record) -> bool:
        """Whether the server of a client is written in the user's file or this project's."""
        for scope in SCOPES:
            path = place(record.server.paths, scope, self.names)
            try:
                data = path and edit.read(path)
                if data and edit.mentions(data.decode("utf-8"), record.server.format,
                                          [record.server.key]):  # fmt: skip
                    return True
            except (MemoryFault, EditFault, UnicodeDecodeError):
                continue
        return False

    def overview(self, versions: bool = False) -> list[dict[str, object]]:
        """Each client: `{name, title, level, installed, version, evidence}`.

        `version` is asked of its program only with `versions`, which may take seconds, and where it
        has been seen to work, on the day `evidence`: that was this version, or is worth nothing.
        """
        rows = []
        for record in RECORDS:
            evidence = self.evidence(record)
            asked = versions or evidence.get("verified") is True
            version = self.version(record, evidence.get("program")) if asked else ""
            level, day = self.level(record, version)
            rows.append({
                "name": record.name, "title": record.title, "level": level,
                "installed": self.installed(record), "version": version, "evidence": day,
            })  # fmt: skip
        return rows

    def evidence(self, record: Record) -> dict[str, object]:
        """What `verify` saw last of a client; empty when it never ran."""
        found = _json(self._evidence(record.name))
        return found if isinstance(found, dict) else {}

    def keep_evidence(self, name: str, evidence: dict[str, object]) -> Path:
        """Write what `verify` saw, in the place of what it saw before. Raises MemoryFault."""
        path = self._evidence(name)
        text = json.dumps(evidence, ensure_ascii=False, indent=1) + "\n"
        try:
            write_whole(path, text.encode("utf-8", "replace"))
        except OSError as error:
            raise MemoryFault(
                f"{path} cannot be written: {error.strerror}", "check the home of the memory"
            ) from error
        return path

    def level(self, record: Record, version: str) -> tuple[str, str]:
        """The level of a client of that version, and the day on which it was seen to work here, empty
        without any. What another version was seen to do makes nothing verified."""
        evidence = self.evidence(record)
        if evidence.get("verified") is not True:
            return record.level, ""
        day = str(evidence.get("date", ""))[:10]
        if not version or evidence.get("version") != version:
            return record.level, day
        return VERIFIED, day

    def version(self, record: Record, program: object = None) -> str:
        """What the client's program, by default that on the PATH, says of its version; empty when it is
        not there or says nothing."""
        path = programs.find(record.programs)
        if isinstance(program, str) and os.path.isfile(program):
            path = program
        return programs.version_of(path) if path else ""

    def show(self, name: str, scope: str = "user") -> dict[str, object]:
        """All that is known of a client: its files, what would stand in them, notes."""
        record = record_of(name)
        evidence = self.evidence(record)
        asked = evidence.get("verified") is True
        version = self.version(record, evidence.get("program")) if asked else ""
        level, day = self.level(record, version)
        hooks = record.hooks
        return {
            "name": name,
            "title": record.title,
            "level": level,
            "evidence": day,
            "installed": self.installed(record),
            "scope": scope,
            "files": [
                {**_pasted(one), "exists": one.path.exists()} for one in self.targets(record, scope)
            ],
            "hooks": dict(hooks.events) if hooks else {},
            "transcripts": record.transcripts.format_map(self.names),
            "notes": list(record.notes),
        }

    def with_something(self) -> list[str]:
        """The clients that `uninstall --all` means: those with a manifest or an entry of ours."""
        return [
            record.name
            for record in RECORDS
            if self._manifest(record.name).exists()
            or (record.level != DOCS_ONLY and self.installed(record))
        ]

    def _evidence(self, name: str) -> Path:
        return self.folder / "evidence" / f"{name}.json"

    def _manifest(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def _known(self, name: str) -> dict[str, Written]:
        data = _json(self._manifest(name))
        try:
            return {one["path"]: Written(**one) for one in data["files"]}
        except (TypeError, KeyError):
            # A lost manifest costs only exactness: our entries are known by what they are.
            return {}

    def _of_others(self, name: str) -> dict[str, Written]:
        """What was written for other clients, by path."""
        found: dict[str, Written] = {}
        for record in RECORDS:
            if record.name != name:
                found |= self._known(record.name)
        return found

    def _tell_others(self, name: str, written: Written) -> None:
        """Let the other clients that use the file know what is in it now."""
        for record in RECORDS:
            known = {} if record.name == name else self._known(record.name)
            if last := known.get(written.path):
                known[written.path] = replace(written, scope=last.scope, project=last.project)
                self._keep(record.name, known)

    def _keep(self, name: str, known: dict[str, Written]) -> None:
        path = self._manifest(name)
        if not known:
            path.unlink(missing_ok=True)
            backups = self.folder / "backups"
            for folder in (*backups.glob("*"), backups, self.folder, self.folder.parent):
                _remove_empty(folder)
            return
        text = json.dumps({"client": name, "files": [one.to_dict() for one in known.values()]},
                          ensure_ascii=False, indent=1)  # fmt: skip
        try:
            write_whole(path, text.encode("utf-8"))
        except OSError as error:
            raise MemoryFault(
                f"{path} cannot be written: {error.strerror}", "check the home of the memory"
            ) from error

    def _back_up(self, name: str, path: Path, data: bytes) -> str:
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
        copy = self.folder / "backups" / name / f"{stamp}-{path.name}"
        try:
            write_whole(copy, data)
            # The file may hold a token of the user's.
            os.chmod(copy, 0o600)
        except OSError as error:
            raise MemoryFault(
                f"{copy} cannot be written: {error.strerror}", "nothing was changed"
            ) from error
        return str(copy)


class _Moved(Exception):
    """A file is no longer what the change was made for; `str()` is its path."""


def _write(change: Change) -> None:
    if not change.changes:
        return
    if edit.read(change.path) != change.before:
        raise _Moved(str(change.path))
    try:
        if change.after is None:
            remove(Path(os.path.realpath(change.path)))
            return
        make_folder(change.path.parent)
        write_whole(change.path, change.after)
        if change.script:
            os.chmod(change.path, 0o755)
    except OSError as error:
        raise MemoryFault(
            f"{change.path} cannot be written: {error.strerror}",
            "check its permissions, and try again; what was written so far, "
            "`memory client uninstall` takes back",
        ) from error


def _refuse_read_only(changes: list[Change]) -> None:
    for change in changes:
        if change.changes and change.before is not None:
            if not os.stat(change.path).st_mode & 0o222:
                raise MemoryFault(
                    f"{change.path} is read-only",
                    "make it writable, and try again; nothing was changed",
                )


def _missing_folders(path: Path) -> list[str]:
    """The folders that have to be made for the file, deepest first."""
    missing = []
    for folder in Path(os.path.realpath(path)).parents:
        if folder.exists():
            break
        missing.append(str(folder))
    return missing


def _remove_empty(folder: str | Path) -> None:
    try:
        system.rmdir(folder)
    except OSError:
        return


def _json(path: Path) -> object:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None


def _pasted(target: Target) -> dict[str, str]:
    """What a person would write into the file."""
    if target.kind in ("own", "markdown"):
        text = target.body
    elif target.kind == "toml":
        from . import toml_edit

        text = "".join(one.text for one in toml_edit.additions("", target.tree))
    elif target.kind == "yaml":
        import yaml

        text = yaml.safe_dump(json.loads(json.dumps(target.tree)), sort_keys=False,
                              allow_unicode=True)  # fmt: skip
    else:
        text = json.dumps(target.tree, ensure_ascii=False, indent=2) + "\n"
    return {"path": str(target.path), "parts": ", ".join(target.parts), "text": text}
