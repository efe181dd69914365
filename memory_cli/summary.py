"""What an import or an index did, for people."""

from collections.abc import Iterable, Sequence

from .output import Style, one_line

#: So many paths of a group are named; the rest is counted.
NAMED = 3

_COUNTS = ("added", "updated", "moved", "removed", "unchanged")


def summary(result, db: object, style: Style) -> str:
    """A `SyncResult` as lines of safe text: counts, then every group of files with a reason."""
    counts = [f"{getattr(result, name):,} {name}" for name in _COUNTS]
    if result.secret:
        counts.append(f"{result.secret:,} secret (kept out of the index)")
    lines = [f"{', '.join(counts)} in {result.seconds:.1f} s", style.dim(one_line(f"index: {db}"))]
    lines += _groups("skipped, not in the index", result.skipped, style)
    lines += _groups("with a fault, indexed as well as can be", result.faults, style)
    lines += [style.warn(one_line(f"note: {note}")) for note in result.notes]
    if not (lines[2:] or result.secret or any(getattr(result, name) for name in _COUNTS)):
        lines.append("No Markdown file was found (.md, .markdown, .mdown or .mkd).")
    return "\n".join(lines)


def _groups(what: str, reports: Sequence, style: Style) -> Iterable[str]:
    if not reports:
        return
    groups: dict[str, list[str]] = {}
    for report in reports:
        groups.setdefault(report.reason, []).append(f"{report.source}/{report.path}")
    files = "1 file" if len(reports) == 1 else f"{len(reports):,} files"
    yield style.warn(f"{files} {what}:")
    for reason, paths in sorted(groups.items(), key=lambda group: (-len(group[1]), group[0])):
        yield f"  {one_line(reason)}:"
        for path in paths[:NAMED]:
            yield f"    {one_line(path)}"
        if len(paths) > NAMED:
            yield f"    and {len(paths) - NAMED:,} more (--json names them)"
