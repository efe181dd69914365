"""Cards that may say nearly the same as a text, found at a cost that hardly grows with the index."""

from collections import Counter

from ..text.tokenise import index_text

# A text that is nearly the same keeps most of its runs of this many tokens; so many are asked for.
_RUN = 5
_PROBES = 8

# Of the cards that share one run, so many are looked at: what more of them share is a phrase that
# everybody uses, and the other runs tell the cards apart.
_EACH = 20


def near(connection, body: str, limit: int) -> list[tuple[str, str, str, str]]:
    """`(ref, path, title, body)` of the cards that share most runs of words with `body`.

    At most `limit`. An OR of all words would find more that is unlike, and read half the index
    for it.
    """
    votes: Counter[int] = Counter()
    for phrase in _phrases(index_text(body).split()):
        votes.update(
            id
            for (id,) in connection.execute(
                "select rowid from cards_fts where cards_fts match ? limit ?",
                (f'body_tokens : "{phrase}"', _EACH),
            )
        )
    found = []
    for id, _ in votes.most_common(limit):
        row = connection.execute(
            "select ref, path, title, body from cards where id = ?", (id,)
        ).fetchone()
        if row:
            found.append(row)
    return found


def _phrases(tokens: list[str]) -> list[str]:
    """Runs of tokens spread over the text; the whole text when it is shorter than a run."""
    if len(tokens) <= _RUN:
        return [" ".join(tokens)] if tokens else []
    last = len(tokens) - _RUN
    starts = {last * probe // (_PROBES - 1) for probe in range(_PROBES)}
    return [" ".join(tokens[start : start + _RUN]) for start in sorted(starts)]
