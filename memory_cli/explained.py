"""Explanations as people read them."""

from collections.abc import Mapping
from typing import Any

from datasette_memory.search.trace import table as trace_table

from .output import Style, one_line, safe
from .present import table


def explanation(told: Mapping[str, Any], style: Style) -> str:
    """The object of a `Trace`: a line a card with its ranks, its score after each stage and what
    became of it; then what the stages saw, and the terms."""
    head, _, rest = safe(trace_table(told)).partition("\n")
    return "\n".join(filter(None, [style.title(head), rest]))


def reasons(told: Mapping[str, Any], style: Style) -> str:
    """The object of `Memory.why_not`: the sentence, then what is known."""
    rows = []
    name = " · ".join(str(told[key]) for key in ("ref", "title") if told[key])
    place = "/".join(str(told[key]) for key in ("source", "path") if told[key])
    rows.append(("card", " · ".join(filter(None, (name, place)))))
    for label, has in (("holds", True), ("begins", "prefix"), ("lacks", False)):
        terms = [
            f"{one['term']} ({one['worth']:.2f})" if "worth" in one else one["term"]
            for one in told["terms"]
            if one["held"] is has
        ]
        if terms:
            rows.append((label, ", ".join(terms)))
    if told["tier"]:
        rows.append(("tier", f"{told['tier']}, {round(100 * told['coverage'])} % of the terms"))
    if told["place"]:
        rows.append(
            (
                "place",
                f"{told['place']} of {told['ranked']}, limit {told['limit']}",
            )
        )
    if stages := told["stages"]:
        if stages["removed_by"]:
            said = f"taken out by {stages['removed_by']}: {stages['reason']}"
        elif stages["outcome"] == "excluded":
            said = f"place {stages['place']}, then left out: {stages['code']}: {stages['reason']}"
        else:
            said = f"place {stages['place']}, {stages['outcome']} {stages['reason']}"
        rows.append(("context", said))
    if told["fault"]:
        rows.append(("fault", told["fault"]))
    rows += [("note", note) for note in told["notes"]]
    return f"{style.title(one_line(told['answer']))}\n{table(rows, style)}"
