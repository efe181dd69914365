"""What an import or an index did, for people."""

import re
from collections.abc import Iterable, Sequence

from .output import Style, one_line

#: So many reasons are told, and so many files of each are named; the rest is counted.
REASONS = 8
NAMED = 3

# What differs between two files with the same trouble: quoted values, figures, sizes in brackets.
_DETAIL = re.compile(r"""'[^']*'|"[^"]*"|\([^)]*\)|\d[\d.,]*""")

_COUNTS = ("added", "updated", "moved", "removed", "unchanged")


def summary(result, db: object, style: Style) -> str:
    """A `SyncResult` as lines of safe text: counts, then every group of files with a reason."""
    counts = [f"{getattr(result, name):,} {name}" for name in _COUNTS]
    if result.secret:
        counts.append(f"{result.secret:,} secret (kept out of the index)")
    if result.vectors:
        counts.append(f"{result.vectors:,} vectors made")
    lines = [
        f"{', '.join(counts)} in {_seconds(result.seconds)}",
        style.dim(one_line(f"index: {db}")),
    ]
    lines += _groups("skipped, not in the index", result.skipped, style)
    lines += _groups("with a fault, indexed as well as can be", result.faults, style)
    lines += [style.warn(one_line(f"note: {note}")) for note in result.notes]
    if not (lines[2:] or result.secret or any(getattr(result, name) for name in _COUNTS)):
        lines.append("No Markdown file was found (.md, .markdown, .mdown or .mkd).")
    return "\n".join(lines)


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds < 1 else f"{seconds:,.1f} s"


def _groups(what: str, reports: Sequence, style: Style) -> Iterable[str]:
    """Reports by reason, the commonest first: a few reasons, and a few files of each by name."""
    if not reports:
        return
    groups: dict[str, list] = {}
    for report in reports:
        groups.setdefault(_DETAIL.sub("…", report.reason), []).append(report)
    yield style.warn(f"{_files(len(reports))} {what}:")
    ordered = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    for reason, group in ordered[:REASONS]:
        same = len({report.reason for report in group}) == 1
        yield f"  {one_line(group[0].reason if same else reason)}:"
        for report in group[:NAMED]:
            own = "" if same else f": {report.reason}"
            yield f"    {one_line(f'{report.source}/{report.path}{own}')}"
        if len(group) > NAMED:
            yield f"    and {len(group) - NAMED:,} more (--json names them)"
    rest = ordered[REASONS:]
    if rest:
        files = _files(sum(len(group) for _, group in rest))
        yield f"  and {files} more for {len(rest):,} other reasons (--json names them)"


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count:,} files"
