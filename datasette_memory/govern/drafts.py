"""Queries to begin a bench with, drafted from the cards themselves, for their owner to edit.

They are taken from tags, identifiers and titles, and a card counts as an answer when it holds the
words as they are written: that is found by reading, not by asking the search, which is to be judged
by it. The index holds no secret card, and none is read here.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice

from ..index.read import Searched, count, searched
from ..sources import VAULT
from ..text.normalise import normalise
from ..text.secrets import find_personal, find_secrets
from .bench import Query

#: So many queries of a group at the most, from so many cards; a query that more cards hold tells
#: nothing of the search.
QUERIES = 20
CARDS = 60
HOLDING = 10

_A_CARD = 4
_IDENTIFIER = re.compile(
    r"(?<![\w./\\-])[A-Za-z]\w*(?:[-_.]\w+)+(?![\w/\\-])|\b[a-z]+(?:[A-Z][a-z]+)+\b", re.ASCII
)
_WORD = re.compile("[A-Za-z\u00c0-\u024f]{4,}")
# Particles stand between words.
_HAN = re.compile("(?:(?![的了是在和与及或])[\u4e00-\u9fff]){2,}")
_JOINERS = re.compile(r"[-_./\\\s]+")
_LONGEST = 40


def draft(connection) -> list[Query]:
    """Queries from the cards of an index, each with every card that holds it; empty when there is
    no card to take one from."""
    chosen: dict[str, list[list[str]]] = {}
    for card in _spread(connection):
        for group, texts in _candidates(card):
            safe = [text for text in texts if not (find_secrets(text) or find_personal(text))]
            chosen.setdefault(group, []).append(safe)
    holders = _holders(connection, {text for lists in chosen.values() for text in chain(*lists)})
    queries, known = [], set()
    for group, lists in chosen.items():
        found = []
        for texts in lists:
            usable = [
                text
                for text in texts
                if 0 < len(holders[text]) <= HOLDING and _plain(text) not in known
            ]
            if usable:
                text = min(usable, key=lambda text: len(holders[text]))
                known.add(_plain(text))
                found.append(Query(text, group, frozenset(holders[text])))
        step = max(1, -(-len(found) // QUERIES))
        queries += found[::step]
    return queries


def _holders(connection, texts: Iterable[str]) -> dict[str, list[str]]:
    """The cards that hold each text, and no more than are needed to see that they are too many."""
    holders: dict[str, list[str]] = {text: [] for text in texts}
    patterns = {text: (_plain(text), _pattern(text)) for text in holders}
    for card in searched(connection):
        whole = _plain(f"{card.title}\n{card.rest}")
        for text, (plain, pattern) in patterns.items():
            # Most cards do not hold it, and a pattern takes longer to see that.
            if len(holders[text]) <= HOLDING and plain in whole and pattern.search(whole):
                holders[text].append(f"{card.source}/{card.path}")
    return holders


def _spread(connection) -> Iterator[Searched]:
    """Some cards from all over the vault, or over all sources where the vault has none."""
    own = sum(card.source == VAULT for card in searched(connection))
    step = max(1, -(-(own or count(connection)) // CARDS))
    cards = (card for card in searched(connection) if not own or card.source == VAULT)
    return islice(cards, 0, None, step)


def _candidates(card: Searched) -> Iterator[tuple[str, list[str]]]:
    """What might be asked to find a card, by group, the most telling first."""
    yield "tags", card.tags[:_A_CARD]
    found = dict.fromkeys(_IDENTIFIER.findall(f"{card.title}\n{card.rest}"))
    yield "identifiers", [text for text in found if 4 < len(text) <= _LONGEST][:_A_CARD]
    words = sorted(dict.fromkeys(_WORD.findall(card.title)), key=lambda word: -len(word))
    yield "titles", [*_chinese_words(card.title, card.rest), *words][:_A_CARD]


def _chinese_words(title: str, rest: str) -> Iterable[str]:
    """Pieces of a title of two to six characters that the card says elsewhere too: those are words,
    most of the time, and pieces that run from one word into the next are not."""
    elsewhere = rest.replace(title, "")
    for run in _HAN.findall(title):
        at = 0
        while at < len(run) - 1:
            sizes = (size for size in range(min(6, len(run) - at), 1, -1))
            size = next((size for size in sizes if run[at : at + size] in elsewhere), 0)
            if size:
                yield run[at : at + size]
            at += size or 1


def _plain(text: str) -> str:
    return _JOINERS.sub(" ", normalise(text).casefold())


def _pattern(text: str) -> re.Pattern[str]:
    """The text as written, whatever joins its words; a Latin word is whole, or in the plural."""
    plain = _plain(text)
    before = "(?<![a-z0-9])" if plain[:1].isascii() else ""
    after = "s?(?![a-z0-9])" if plain[-1:].isascii() else ""
    return re.compile(before + re.escape(plain) + after)
