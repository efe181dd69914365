"""Cards that may say nearly the same as a text, found at a cost that hardly grows with the index."""

from ..text.tokenise import index_text

# A text that is nearly the same keeps most of its runs of this many tokens; so many are asked for.
_RUN = 5
_PROBES = 8


def near(connection, body: str, limit: int) -> list[tuple[str, str, str, str]]:
    """`(ref, path, title, body)` of the cards that share a run of words with `body`.

    Best match first, at most `limit`. An OR of all words would find more that is unlike, and
    read half the index for it.
    """
    phrases = _phrases(index_text(body).split())
    if not phrases:
        return []
    return connection.execute(
        "select cards.ref, cards.path, cards.title, cards.body from cards_fts "
        "join cards on cards.id = cards_fts.rowid where cards_fts match ? order by rank limit ?",
        (" OR ".join(f'"{phrase}"' for phrase in phrases), limit),
    ).fetchall()


def _phrases(tokens: list[str]) -> list[str]:
    """Runs of tokens spread over the text; the whole text when it is shorter than a run."""
    if len(tokens) <= _RUN:
        return [" ".join(tokens)] if tokens else []
    last = len(tokens) - _RUN
    starts = {last * probe // (_PROBES - 1) for probe in range(_PROBES)}
    return [" ".join(tokens[start : start + _RUN]) for start in sorted(starts)]
