"""Which titles, aliases, tags and projects of the index stand in a text.

The text is cut into the phrases that may be one, and each is looked up: in the table `names`, where
titles and aliases are hashed, and in the indexes of tags and projects. So what it costs depends on
the text, of which a bounded part is read, and not on the number of cards.
"""

import json
import re
import unicodedata
from itertools import groupby

from ..text.normalise import normalise
from .links import fold, hashed_name
from .read import storable

#: So many characters of a text are read, and so many phrases of it looked up.
READ, CANDIDATES = 500, 6000
#: A phrase has at most so many characters of Chinese and words of other scripts.
LONGEST = 24
#: At most so many are told.
MOST = 20

# Names as short as these are too often something else, unless they are projects.
_SHORT = 2
# Of cards that share a name, so many are looked at.
_NAMESAKES = 8

_FIRST_KANA = "\u3041"
_WORD = re.compile(r"[^\W_]++[+#]*+")  # C++, F#


def known_in(connection, text: str) -> list[tuple[str, str]]:
    """The `(kind, phrase)` of what `text` names, the longest phrases first, at most MOST.

    Kinds: `title`, `alias`, `tag`, `project`. A phrase is as it stands in the text, or in its
    normal form (NFKC, Simplified Chinese) where only that is known. Case does not matter, for
    projects in Latin letters as it is usually written (`redis` finds `Redis` and `REDIS`). Phrases
    of one or two characters count as projects only, those of one not at all.
    """
    text = storable(text[:READ])
    phrases = dict.fromkeys(_phrases(text))
    normal = unicodedata.normalize("NFKC", normalise(text))
    if normal != text:
        phrases |= dict.fromkeys(_phrases(normal[:READ]))
    ordered = sorted((p for p in phrases if len(p) > 1), key=len, reverse=True)
    long = [phrase for phrase in ordered if len(phrase) > _SHORT]
    found = [
        *_named(connection, long),
        *(("tag", phrase) for phrase in _present(connection, _TAGS, long)),
        *(("project", phrase) for phrase in _projects(connection, ordered)),
    ]
    return sorted(found, key=lambda pair: -len(pair[1]))[:MOST]


def _phrases(text: str) -> list[str]:
    """The phrases of a text that may be a name: neighbouring words and characters of Chinese, with
    what stands between them, and the whole of it."""
    pieces = _pieces(text)
    longest = max(1, min(LONGEST, CANDIDATES // (2 * len(pieces) or 1)))
    found = [" ".join(text.split())]
    for begin, (start, _) in enumerate(pieces):
        for _, end in pieces[begin : begin + longest]:
            found.append(" ".join(text[start:end].split()))
    return found


def _pieces(text: str) -> list[tuple[int, int]]:
    """Where the words stand, and each character of Chinese, Japanese and Korean."""
    pieces = []
    for match in _WORD.finditer(text):
        at = match.start()
        for chinese, group in groupby(match.group(), _FIRST_KANA.__le__):
            length = sum(1 for _ in group)
            if chinese:
                pieces += [(place, place + 1) for place in range(at, at + length)]
            else:
                pieces.append((at, at + length))
            at += length
    return pieces


_NAMES = "exists (select 1 from names where key = value)"
_TAGS = "exists (select 1 from tags where tag = value)"
_PROJECTS = "exists (select 1 from cards where project = value)"


def _present(connection, condition: str, values: list) -> list:
    """Those of `values` that an index has."""
    sql = f"select value from json_each(?) where {condition}"
    return [value for (value,) in connection.execute(sql, [json.dumps(values)])]


def _named(connection, phrases: list[str]) -> list[tuple[str, str]]:
    """Titles and aliases among `phrases`; a ref, a path or a file name is none."""
    by_key: dict[int, str] = {}
    for phrase in phrases:
        by_key.setdefault(hashed_name(phrase), phrase)
    found = []
    for key in _present(connection, _NAMES, list(by_key))[:MOST]:
        name = fold(by_key[key])
        rows = connection.execute(
            "select title, aliases from names join cards on cards.id = names.card_id "
            "where names.key = ? limit ?",
            [key, _NAMESAKES],
        ).fetchall()
        if any(fold(title) == name for title, _ in rows):
            found.append(("title", by_key[key]))
        elif any(fold(alias) == name for _, aliases in rows for alias in json.loads(aliases)):
            found.append(("alias", by_key[key]))
    return found


def _projects(connection, phrases: list[str]) -> list[str]:
    """Projects among `phrases`, in the ways of writing a name without regard to case."""
    ways: dict[str, str] = {}
    for phrase in phrases:
        for way in (phrase, phrase.lower(), phrase.upper(), phrase.title(), phrase.capitalize()):
            ways.setdefault(way, phrase)
    present = _present(connection, _PROJECTS, list(ways))
    return list(dict.fromkeys(ways[way] for way in present))
