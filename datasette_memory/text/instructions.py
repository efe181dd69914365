"""Words in a text that give orders to a model that reads it (prompt injection).

What is found is fenced as quoted data and flagged, so a false alarm costs little and a miss is no
breach: this is a tripwire, no boundary. It knows the usual ways in English and Chinese, in any case,
width and script, with blanks or invisible characters between the letters. It knows no other
language, no spelling with look-alike letters, and nothing that is encoded.

An order is more than a word: `system prompt` is what notes are about, `reveal your system prompt`
is an order; `执行以下命令` is a runbook, and an order to a model only where the outcome, or a secret,
is to be sent away. The patterns stand in `_orders`.
"""

from ._orders import orders
from .bounds import MORE
from .normalise import normalise_with_offsets
from .secrets import Finding


def find_instructions(text: str) -> tuple[Finding, ...]:
    """What gives orders to a model in `text`: `Finding`s, sorted and disjoint.

    Kinds: `override` (forget what you were told), `persona` (be something else), `secrecy` (do not
    tell the user), `leak` (show your prompt), `exfiltration` (send it away), `address` (a word to
    the model), `markup` (marks of a conversation), `hidden` (text in invisible characters), and
    `more`: what follows a thousand of one kind, to the end of the text. Never raises.
    """
    normal, offsets = normalise_with_offsets(text)
    lowered = normal.replace("İ", "i").lower()  # İ is the one letter that grows
    end = len(text)
    spans = [
        (offsets.start(a), end if kind == MORE else offsets.end(b), kind)
        for a, b, kind in orders(normal, lowered)
    ]
    return tuple(Finding(kind, a, b) for a, b, kind in _disjoint(spans))


def _disjoint(spans: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """Sorted, and overlapping ones joined under the kind of the first."""
    out: list[tuple[int, int, str]] = []
    for start, end, kind in sorted(spans):
        if out and start < out[-1][1]:
            first, last, name = out.pop()
            out.append((first, max(last, end), MORE if MORE in (name, kind) else name))
        else:
            out.append((start, end, kind))
    return out
