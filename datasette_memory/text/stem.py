"""The form under which FTS5 keeps a token, worked out without FTS5.

The index is built by FTS5's `porter unicode61`. Snippets and coverage have to call two words equal
exactly where the index does, so `index_key()` follows it: diacritics off, then the Porter stemmer
(M. F. Porter, "An algorithm for suffix stripping", Program 14(3), 1980). The tests hold it against
FTS5's own vocabulary table.
"""

import unicodedata
from functools import lru_cache

# FTS5's stemmer leaves shorter and longer tokens alone; it counts UTF-8 bytes.
_MIN_BYTES, _MAX_BYTES = 3, 64
#: At most so many characters at the end of a stem are not those of the word (possibility, possibl).
MOST_CHANGED = 1
# FTS5 keeps no more of a token than this.
_KEPT_BYTES = 32768

# The combining marks that unicode61 drops, and no others.
_DROPPED = frozenset(
    "\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u0309\u030a\u030b\u030c\u030f\u0311\u031b"
    "\u0323\u0324\u0325\u0326\u0327\u0328\u032d\u032e\u0330\u0331"
)

_STEP_2 = (
    ("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"),
    ("logi", "log"), ("bli", "ble"), ("alli", "al"), ("entli", "ent"), ("eli", "e"),
    ("ousli", "ous"), ("ization", "ize"), ("ation", "ate"), ("ator", "ate"), ("alism", "al"),
    ("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous"), ("aliti", "al"), ("iviti", "ive"),
    ("biliti", "ble"),
)  # fmt: skip
_STEP_3 = (
    ("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"),
    ("ful", ""), ("ness", ""),
)  # fmt: skip
_STEP_4 = (
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou",
    "ism", "ate", "iti", "ous", "ive", "ize",
)  # fmt: skip

_DOUBLING = ("ing", "ed")
_AFTER_Y = ("ment", "er")
# The common ones first: they stand for all that leave the same of a word.
_SUFFIXES = tuple(
    dict.fromkeys(
        "ing ed es ation izer ization ize er ment ness ion able ible ance ence ive al".split()
        + [*_STEP_4, *(suffix for suffix, _ in (*_STEP_2, *_STEP_3))]
    )
)


def index_key(token: str) -> str:
    """What FTS5 stores for a case-folded `token` of `tokenise.tokens()`.

    Where FTS5 cuts a character in two, the lone bytes come as Python's surrogate escapes.
    """
    return _short_key(token) if len(token) <= _MAX_BYTES else _key(token)


def _key(token: str) -> str:
    if token.isascii():
        stored = token
    else:
        # The stemmer sees bytes: to it a letter outside ASCII is some consonants.
        token = "".join(map(_without_diacritic, token))
        stored = token.encode("utf-8").decode("latin-1")
    if _MIN_BYTES <= len(stored) <= _MAX_BYTES and "a" <= stored[-1] <= "z":
        stored = porter(stored)
    stored = stored[:_KEPT_BYTES]
    if stored.isascii():
        return stored
    return stored.encode("latin-1").decode("utf-8", "surrogateescape")


@lru_cache(maxsize=4096)
def other_endings(beginning: str) -> tuple[str, ...]:
    """Words, one for each key, that begin so while their keys do not begin as its key does:
    `configurati` goes on to `configuration`, which is kept as `configur`. `beginning` is
    case-folded; mostly there is none."""
    if not beginning.isascii() or len(beginning) <= _MIN_BYTES:
        return ()
    own = index_key(beginning)
    found: dict[str, str] = {}
    for end in range(_MIN_BYTES, len(beginning)):
        stem, rest = beginning[:end], beginning[end:]
        doubled = stem[-1] if stem[-1] not in "aeiouy" else ""
        for suffix in _SUFFIXES:
            for ending in (suffix, doubled + suffix) if suffix in _DOUBLING else (suffix,):
                if ending.startswith(rest) and not (key := index_key(stem + ending)).startswith(
                    own
                ):
                    found.setdefault(key, stem + ending)
    if beginning[-1] == "y" and beginning[-2] in "aeou":
        # A y alone becomes an i (deploi), and stays within a word (deployments, deploy).
        for suffix in _AFTER_Y:
            if not (key := index_key(beginning + suffix)).startswith(own):
                found.setdefault(key, beginning + suffix)
    return tuple(found[key] for key in sorted(found))


# Long tokens are rare, and would fill the memory.
_short_key = lru_cache(maxsize=65536)(_key)


@lru_cache(maxsize=4096)
def _without_diacritic(character: str) -> str:
    """`character` without its diacritic, if it carries just one; unicode61 keeps the others."""
    if character in _DROPPED:
        return ""
    parts = unicodedata.normalize("NFD", character)
    if len(parts) == 2 and unicodedata.category(parts[1]) == "Mn" and parts[0].isascii():
        return parts[0]
    return character


def porter(word: str) -> str:
    """The Porter stem of a lower-case `word`, with the two departures of its author's own program."""
    # Step 1a: plurals.
    if word.endswith("s"):
        if word.endswith(("sses", "ies")) and word not in ("sses", "ies"):
            word = word[:-2]
        elif not word.endswith("ss"):
            word = word[:-1]
    # Step 1b: -eed, -ed, -ing.
    if word.endswith("eed") and word != "eed":
        if _measure(word[:-3]) > 0:
            word = word[:-1]
    else:
        for suffix in ("ed", "ing"):
            stem = word[: -len(suffix)]
            if word.endswith(suffix):
                if _has_vowel(stem):
                    word = _mend(stem)
                break
    # Step 1c: final y.
    if word.endswith("y") and _has_vowel(word[:-1]):
        word = word[:-1] + "i"
    # Steps 2 and 3: double and single suffixes.
    for table in (_STEP_2, _STEP_3):
        for suffix, replacement in table:
            if word.endswith(suffix):
                stem = word[: -len(suffix)]
                if _measure(stem) > 0:
                    word = stem + replacement
                break
    # Step 4: what is left of a suffix goes from a long stem.
    for suffix in _STEP_4:
        if word.endswith(suffix):
            stem = word[: -len(suffix)]
            if _measure(stem) > 1 and (suffix != "ion" or stem.endswith(("s", "t"))):
                word = stem
            break
    # Step 5: a final e, and a double l.
    if word.endswith("e"):
        stem = word[:-1]
        measure = _measure(stem)
        if measure > 1 or (measure == 1 and not _ends_cvc(stem)):
            word = stem
    if word.endswith("ll") and _measure(word[:-1]) > 1:
        word = word[:-1]
    return word


def _mend(stem: str) -> str:
    """Step 1b's second half: put back what -ed and -ing took."""
    if stem.endswith(("at", "bl", "iz")):
        return stem + "e"
    if len(stem) > 1 and stem[-1] == stem[-2] and stem[-1] not in "aeioulsz":
        return stem[:-1]
    if _measure(stem) == 1 and _ends_cvc(stem):
        return stem + "e"
    return stem


def _vowel(word: str, at: int) -> bool:
    if word[at] in "aeiou":
        return True
    at %= len(word)
    return word[at] == "y" and at > 0 and not _vowel(word, at - 1)


def _has_vowel(stem: str) -> bool:
    return any(_vowel(stem, i) for i in range(len(stem)))


def _measure(stem: str) -> int:
    """m in the form [C](VC)^m[V]: how often a vowel gives way to a consonant."""
    kinds = [_vowel(stem, i) for i in range(len(stem))]
    return sum(a and not b for a, b in zip(kinds, kinds[1:]))


def _ends_cvc(stem: str) -> bool:
    """Consonant, vowel, consonant at the end, the last not w, x or y."""
    return (
        len(stem) > 2
        and not _vowel(stem, -1)
        and _vowel(stem, -2)
        and not _vowel(stem, -3)
        and stem[-1] not in "wxy"
    )
