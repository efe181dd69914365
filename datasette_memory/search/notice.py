"""What a reader has to know of an answer."""

from ..text.query import MAX_CHARACTERS, MAX_TERMS, Term
from .hits import Hit
from .ranked import Found
from .tiers import VECTOR


def notice_of(
    query: str, terms: tuple[Term, ...], hits: tuple[Hit, ...], found: Found
) -> str | None:
    """What a reader has to know before trusting the hits, in sentences, or None."""
    sentences: list[str] = []
    if not terms:
        sentences.append("The query holds no letter or digit to search for.")
    loose = [hit for hit in hits if hit.matched.startswith("any")]
    if loose:
        low, high = (round(100 * f(hit.coverage for hit in loose)) for f in (min, max))
        share = f"{low} %" if low == high else f"{low} to {high} %"
        if len(loose) == len(hits):
            sentences.append(
                f"Low confidence: no card holds every term; these hold {share} of them. "
                "Names and identifiers find more than whole questions."
            )
        else:
            sentences.append(
                f"Low confidence in {len(loose)} of {len(hits)} hits: they hold only {share} of "
                "the terms."
            )
    if by_vector := sum(hit.matched == VECTOR for hit in hits):
        sentences.append(
            f"Low confidence in {by_vector} of {len(hits)} hits: they hold no term of the query, "
            "and are near it by their vectors alone."
        )
    if left_out := found.left_out:
        cards = "1 superseded card is" if left_out == 1 else f"{left_out} superseded cards are"
        sentences.append(f"{cards} left out.")
    if found.cut_short:
        sentences.append("The search took long and was cut: there may be better cards.")
    if len(terms) == MAX_TERMS or len(query) > MAX_CHARACTERS:
        sentences.append(f"The query is long: its first {len(terms)} different terms count.")
    if found.said:
        sentences.append(found.said)
    return " ".join(sentences) or None
