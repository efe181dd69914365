"""How well keywords are answered, among many cards that are not meant: `python -m bench.keywords`.

`keywords.json` holds queries of twelve kinds over the sample vault, with the cards that answer each.
A card does when it holds the query as written, whatever the script, width, case and accents; or, of
several words, all of them; which was found by reading and by another tool, and before the search
was asked. To the 63 cards come 2,000 made-up ones, none of which holds a query. Fails (exit code 1)
unless every first hit is right, capped P@5 is 100 % and noise 0.
"""

import argparse
import json
import re
import sys
import tempfile
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

from datasette_memory.govern.bench import TOP, Query, Report, ask, load
from datasette_memory.memory import Memory
from datasette_memory.text.normalise import normalise

from .corpus import Words

QUERIES = Path(__file__).with_name("keywords.json")
VAULT = Path(__file__).parent.parent / "examples" / "vault"
SOURCE = "sample"
DISTRACTORS = 2_000
CHARACTERS = 800

_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_GAP = re.compile(r"[\W_]+")


def queries() -> list[Query]:
    """The queries of `keywords.json`, whose paths lie in the sample vault."""
    return [
        Query(one.text, one.group, frozenset(f"{SOURCE}/{card}" for card in one.acceptable))
        for one in load(QUERIES)
    ]


def plain(text: str) -> str:
    """One written form: without accents and case, one space for whatever stands between words."""
    marked = unicodedata.normalize("NFD", normalise(text))
    bare = "".join(c for c in marked if not "\u0300" <= c <= "\u036f")
    return _GAP.sub(" ", unicodedata.normalize("NFC", bare).casefold()).strip()


class Held:
    """Says whether a text holds one of some queries.

    English endings are cut off the queries, so that a card with `restored` counts as holding
    `restore`. A query of several words is held where all of them are.
    """

    def __init__(self, asked: Sequence[Query]) -> None:
        self._single: set[str] = set()
        self._several: set[tuple[str, ...]] = set()
        for query in asked:
            for text in {query.text, _CAMEL.sub(" ", query.text)}:
                words = tuple(map(_stem, map(plain, text.split())))
                if len(words) == 1 or text != query.text:
                    self._single.add(" ".join(words))
                else:
                    self._several.add(words)

    def one_word(self, text: str) -> bool:
        """Whether `text`, already plain, holds a query of one word."""
        return any(query in text for query in self._single)

    def any(self, text: str) -> bool:
        """Whether `text`, already plain, holds a query."""
        return self.one_word(text) or any(
            all(word in text for word in words) for words in self._several
        )


def _stem(word: str) -> str:
    return word[: max(4, len(word) - 2)] if re.fullmatch("[a-z]+", word) else word


def distractors(held: Held, count: int, seed: int = 11) -> Iterator[tuple[str, str]]:
    """`(path, text of the file)` of made-up cards that hold no query, every other one Chinese."""
    languages = (
        (Words("zh", 40_000, seed), "", "，。", 16),
        (Words("en", 60_000, seed + 1), " ", ",.", 60),
    )
    for number in range(count):
        words, joiner, stops, width = languages[number % 2]
        while True:
            title = words.text(width // 2, joiner, " ").strip()
            pieces: list[str] = []
            while sum(map(len, pieces)) < CHARACTERS:
                piece = words.text(width, joiner, stops)
                # What two pieces make where they meet is looked at too.
                if not held.one_word(plain(joiner.join([*pieces[-1:], piece]))):
                    pieces.append(piece)
            body = joiner.join(pieces)
            if not held.any(plain(f"{title}\n{body}")):
                break
        yield f"{number:04}.md", f"---\ntitle: {title}\nkind: note\n---\n\n{body}\n"


def measure(folder: Path, count: int = DISTRACTORS) -> Report:
    """Import the sample vault and the distractors into a new memory, and ask it every query."""
    asked = queries()
    made = folder / "made"
    made.mkdir()
    for path, text in distractors(Held(asked), count):
        (made / path).write_text(text, "utf-8")
    memory = Memory(str(folder / "home"))
    memory.import_paths([str(VAULT)], name=SOURCE)
    memory.import_paths([str(made)], name="made")
    assert memory.count() == 63 + count
    return Report(ask(asked, lambda query: memory.search(query, limit=TOP)))


def main() -> int:
    """Measure, print the table and the queries that fail; 1 when there is one."""
    parser = argparse.ArgumentParser(prog="python -m bench.keywords", description=__doc__)
    parser.add_argument("--distractors", type=int, default=DISTRACTORS, help="made-up cards")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = measure(Path(folder), options.distractors)
    if options.json:
        print(json.dumps(report.to_dict(), ensure_ascii=False, indent=1))
    else:
        print("\n".join(report.lines()))
    return bool(report.failing)


if __name__ == "__main__":
    sys.exit(main())
