"""A made-up vault for benchmarks: half Chinese, half English, words drawn by their frequency.

The words and their frequencies are those of the package `wordfreq`, so that the vocabulary of the
index grows as that of real text does. The same seed gives the same files.
"""

import bisect
import itertools
import random
from collections.abc import Iterator
from pathlib import Path

from wordfreq import get_frequency_dict

_KINDS = ("knowledge", "decision", "fact", "note", "mistake", "code_change", "issue", "tool")
_FILES_PER_FOLDER = 500


class Words:
    """Draws words of one language by frequency; a card keeps to a topic for a third of them."""

    def __init__(self, language: str, count: int, seed: int) -> None:
        self.random = random.Random(seed)
        found = [(f, word) for word, f in get_frequency_dict(language).items() if word.isalpha()]
        best = sorted(found, key=lambda pair: (-pair[0], pair[1]))[:count]
        self.words = [word for _, word in best]
        self.totals = list(itertools.accumulate(frequency for frequency, _ in best))

    def one(self) -> str:
        at = bisect.bisect(self.totals, self.random.random() * self.totals[-1])
        return self.words[min(at, len(self.words) - 1)]

    def text(self, characters: int, joiner: str, stops: str) -> str:
        topic = [self.random.choice(self.words) for _ in range(12)]
        out: list[str] = []
        size = 0
        while size < characters:
            sentence = [
                self.random.choice(topic) if self.random.random() < 0.3 else self.one()
                for _ in range(self.random.randint(6, 14))
            ]
            piece = joiner.join(sentence) + self.random.choice(stops) + joiner
            out.append(piece)
            size += len(piece)
        return "".join(out)[:characters]


def cards(count: int, characters: int = 800, seed: int = 7) -> Iterator[tuple[str, str, str]]:
    """`(path, title, text of the file)` of each card; the body has `characters` characters."""
    chinese = Words("zh", 40_000, seed)
    english = Words("en", 60_000, seed + 1)
    pick = random.Random(seed + 2)
    for number in range(count):
        if number % 2:
            title = chinese.text(12, "", " ").strip()
            body = chinese.text(characters, "", "，。")
        else:
            title = english.text(40, " ", " ").strip()
            body = english.text(characters, " ", ",.")
        kind = pick.choice(_KINDS)
        day = f"2026-{pick.randint(1, 11):02}-{pick.randint(1, 28):02}T08:00:00+08:00"
        text = (
            f"---\nid: Z_{number:07}\ntitle: {title}\nkind: {kind}\n"
            f"tags: [t{pick.randint(1, 500)}, t{pick.randint(1, 500)}]\n"
            f"project: p{pick.randint(1, 200)}\ncreated: {day}\nconfidence: 0.8\n---\n\n{body}\n"
        )
        yield f"{number // _FILES_PER_FOLDER:04}/{number:07}.md", title, text


def write(folder: Path, count: int, characters: int = 800) -> int:
    """Write the cards under `folder`; gives the bytes of all files."""
    size = 0
    for path, _, text in cards(count, characters):
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        data = text.encode()
        file.write_bytes(data)
        size += len(data)
    return size
