"""Words of a card among words of ours, so that nobody takes one for the other.

Every line of a card's own words begins with `> `, and no line of ours does. So a card cannot end its
quotation, pass for another card, or speak as we do, whatever it holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..text.lazy import lazy
from ..text.normalise import normalise
from ..text.secrets import find_personal, find_secrets, mask
from ..text.times import is_expired
from ..vault.kinds import by_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from ..search.candidate import Candidate
    from ..text.secrets import Finding

#: Stands in front of each line of a card's own words.
MARK = "> "

#: So much of a body is looked through for orders to a model, beside what is shown of it.
SCANNED = 2_000

# What nobody sees and a model or a terminal obeys: controls, overrides of the direction, and the
# tags of Unicode, which spell whole sentences.
_HIDDEN = lazy(
    "[\u200b\u2060\ufeff\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\U000e0000-\U000e007f]"
)
_LINE = lazy("\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_MASKED = lazy(r"\[masked: ([^\]\n]+)\]")
_DATE = lazy(r"\d{4}-\d\d-\d\d")


def clean(text: str) -> str:
    """`text` with plain ends of lines, and a replacement character for each that is hidden."""
    return _HIDDEN.sub("\ufffd", _LINE.sub("\n", text))


def masked(text: str) -> str:
    """`text`, cleaned, with its credentials and personal data masked."""
    text = clean(text)
    return mask(text, (*find_secrets(text), *find_personal(text)))


def quoted(text: str) -> str:
    """`text` with the mark in front of each line."""
    return "\n".join(MARK + line if line else MARK.rstrip() for line in text.split("\n"))


def one_line(text: str, length: int) -> str:
    """`text` on one line, at most `length` characters, with an ellipsis where it is cut."""
    text = " ".join(text.split())
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def date_of(text: str | None) -> str | None:
    """The day of an ISO date or time."""
    found = _DATE.match(text or "")
    return found.group() if found else None


def head(one: Candidate, now: datetime, *told: str) -> str:
    """Reference, kind and day of a card, and what else is told of it: one line of ours.

    A kind that is not in our table is a card's own word, and does not stand here.
    """
    kind = one.kind if by_name(one.kind) else "card"
    parts = [kind, date_of(one.updated or one.created)]
    if is_expired(one.created, one.ttl, one.valid_until, now):
        parts.append("expired")
    return f"[{one_line(clean(one.ref), 80)}] {' · '.join(filter(None, (*parts, *told)))}"


def title_line(one: Candidate) -> str:
    """The title of a card with its project: words of the card, on one line."""
    title = one_line(masked(one.title), 200)
    return f"{title} ({one_line(masked(one.project), 60)})" if one.project else title


def orders(
    one: Candidate,
    find: Callable[[str], Sequence[Finding]] | None = None,
    body: int = SCANNED,
) -> tuple[Finding, ...]:
    """The words of a card that give orders to a model, by `find` or else `find_instructions`, which
    takes a millisecond for a thousand characters: so many of the body are looked through."""
    if find is None:
        from ..text.instructions import find_instructions as find
    words = (one.title, one.project or "", one.path, one.summary, one.body[:body])
    return tuple(find("\n".join(words)))


def says_no_more(text: str, said: str) -> bool:
    """Whether `text`, its ellipses aside, stands in `said` already."""
    text, said = ("".join(normalise(part).casefold().split()) for part in (text, said))
    return text.strip("…") in said


def masks(text: str) -> list[str]:
    """`masked:KIND` for each kind that is masked in `text`, once."""
    return list(dict.fromkeys(f"masked:{kind}" for kind in _MASKED.findall(text)))
