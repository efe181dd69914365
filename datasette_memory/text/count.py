"""How often the terms of a query stand in a text, as FTS5 counts them on the index."""

import re
from collections import Counter
from collections.abc import Iterable

from .normalise import normalise
from .query import Term
from .stem import MOST_CHANGED, index_key
from .tokenise import (
    CJK_RUN,
    ascii_words,
    camel_parts,
    has_humps,
    is_plain,
    word_tokens,
)


class TermCounter:
    """Counts the same terms in one text after the other.

    It calls the same things equal as FTS5 does, and is several times faster than making all tokens
    of the text. `prefixes` are the numbers of the terms that are asked as prefixes.
    """

    def __init__(self, terms: tuple[Term, ...], prefixes: Iterable[int] = ()) -> None:
        self._size = len(terms)
        prefixes = frozenset(prefixes)
        # Characters, and for the same one twice a pattern that sees both in three of them.
        self._characters: list[tuple[int, str, re.Pattern[str] | None]] = []
        self._words: dict[str, list[int]] = {}
        self._beginnings: list[tuple[str, int]] = []
        self._phrases: list[tuple[tuple[str, ...], bool, int]] = []
        for number, term in enumerate(terms):
            first = term.phrases[0][0]
            if CJK_RUN.match(first):
                twice = len(first) == 2 and first[0] == first[1]
                self._characters.append(
                    (number, first, re.compile(f"(?={re.escape(first)})") if twice else None)
                )
                continue
            for phrase in term.phrases:
                keys = tuple(map(index_key, phrase))
                prefix = number in prefixes and term.extends(phrase)
                self._add(keys, prefix, number)
                for other in term.others(phrase) if prefix else ():
                    self._add((*keys[:-1], index_key(other[-1])), False, number)
        wanted = {*self._words, *(key for key, _ in self._beginnings)}
        wanted |= {key for keys, *_ in self._phrases for key in keys}
        self._starts = tuple({key[: max(1, len(key) - MOST_CHANGED)] for key in wanted})

    def _add(self, keys: tuple[str, ...], prefix: bool, number: int) -> None:
        if len(keys) > 1:
            self._phrases.append((keys, prefix, number))
        elif prefix:
            self._beginnings.append((keys[0], number))
        else:
            self._words.setdefault(keys[0], []).append(number)

    def count(self, *texts: str) -> list[int]:
        """How often each term stands in all of `texts`; a phrase is within one of them."""
        # No pair of characters and no word goes on across a line.
        normal = normalise("\n".join(texts)).replace("\0", " ")
        counts = [0] * self._size
        for number, characters, pattern in self._characters:
            if pattern is None:
                counts[number] = normal.count(characters)
            else:
                counts[number] = len(pattern.findall(normal))
        if self._starts:
            self._count_words(normal, texts, counts)
        return counts

    def _count_words(self, normal: str, texts: Iterable[str], counts: list[int]) -> None:
        keys: dict[str, str] = {}
        found: Counter[str] = Counter()
        for word, count in self._possible_words(normal).items():
            keys[word] = key = index_key(word)
            found[key] += count
        for key, count in found.items():
            for number in self._words.get(key, ()):
                counts[number] += count
            for beginning, number in self._beginnings:
                if key.startswith(beginning):
                    counts[number] += count
        possible = [
            one
            for one in self._phrases
            if all(key in found for key in one[0][: len(one[0]) - one[1]])
        ]
        for text in texts if possible else ():
            places = [keys.get(word) for word in word_tokens(normalise(text))]
            for phrase, prefix, number in possible:
                counts[number] += _phrase_count(places, phrase, prefix)

    def _possible_words(self, normal: str) -> dict[str, int]:
        """How often those tokens stand in a text that begin as a term does, or may once their
        diacritics are off."""
        if not is_plain(normal):
            words = Counter(word_tokens(normal))
            return {
                word: count
                for word, count in words.items()
                if word.startswith(self._starts) or not word.isascii()
            }
        humps = has_humps(normal)
        found: dict[str, int] = {}
        for word, count in Counter(ascii_words(normal)).items():
            parts = camel_parts(word) if humps and not word[1:].islower() else ()
            for piece in (word, *(part for _, part in parts)):
                if (piece := piece.lower()).startswith(self._starts):
                    found[piece] = found.get(piece, 0) + count
        return found


def _phrase_count(keys: list[str | None], phrase: tuple[str, ...], prefix: bool) -> int:
    """How often the phrase stands in the keys; its last one may be a prefix."""
    count, at, size = 0, -1, len(phrase)
    last = phrase[-1]
    while True:
        try:
            at = keys.index(phrase[0], at + 1)
        except ValueError:
            return count
        place = keys[at : at + size]
        if len(place) == size and tuple(place[:-1]) == phrase[:-1]:
            end = place[-1]
            if end == last or prefix and end is not None and end.startswith(last):
                count += 1
