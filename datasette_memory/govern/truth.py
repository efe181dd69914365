"""Adding a query to `bench_queries.json` so that the rest of the file stays as its owner wrote it."""

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator
from json.decoder import scanstring
from pathlib import Path

from ..durable import write_whole
from ..errors import MemoryFault
from .bench import Query, dump, parse, write

#: The group of a query that was added and not put into another.
GROUP = "added"

_BOM = b"\xef\xbb\xbf"
_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()

Span = tuple[int, int]


def add(path: Path, text: str, acceptable: Iterable[str]) -> tuple[str, Query]:
    """Say in the file at `path`, which is made when missing, that these cards, as `source/path`,
    answer `text`; gives `added`, `extended` or `unchanged`, and the query as it then stands.

    A query that is there already gets the cards that it lacks. Raises MemoryFault when the file
    cannot be understood, and leaves it as it is.
    """
    text = " ".join(text.split())
    if not text:
        raise MemoryFault("the query is empty", "give the words that were asked")
    cards = dict.fromkeys(unicodedata.normalize("NFC", card) for card in acceptable)
    new = Query(text, GROUP, frozenset(cards))
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        write(path, [new])
        return "added", new
    except OSError as error:
        raise MemoryFault(f"{path} cannot be read: {error.strerror}") from error
    content = data.removeprefix(_BOM)
    queries = parse(path, content, empty=True)
    known = [number for number, one in enumerate(queries) if _folded(one.text) == _folded(text)]
    lacking = [card for card in cards if not known or card not in queries[known[0]].acceptable]
    if known and not lacking:
        return "unchanged", queries[known[0]]
    file = content.decode("utf-8")
    array = _members(file, _after_space(file, 0))["queries"]
    if known:
        old = queries[known[0]]
        new = Query(old.text, old.group, old.acceptable | cards.keys())
        row = list(_items(file, array[0]))[known[0]]
        array = _members(file, row[0])["acceptable"]
        for card in lacking:
            item = json.dumps(card, ensure_ascii=False)
            file = _with_item(file, array[0], item, item)
    else:
        item = _row(new)
        file = _with_item(file, array[0], item, f"\n  {item}\n")
    data = data[: len(data) - len(content)] + file.encode()
    write_whole(path, data)
    return "extended" if known else "added", new


def _row(query: Query) -> str:
    lines = dump([query]).decode().splitlines()
    return lines[1].strip()


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", " ".join(text.split()))


def _with_item(text: str, array: int, item: str, only: str) -> str:
    """`text` with `item` at the end of the array that begins at `array`, set off as the items there
    are; `only` is how it stands in an empty one."""
    items = list(_items(text, array))
    if not items:
        return f"{text[: array + 1]}{only}{text[_after_space(text, array + 1) :]}"
    at = items[-1][1]
    if len(items) > 1:
        comma = text[items[-2][1] : items[-1][0]]
    else:
        comma = "," + (text[array + 1 : items[0][0]] or " ")
    return f"{text[:at]}{comma}{item}{text[at:]}"


def _members(text: str, at: int) -> dict[str, Span]:
    """Where the value of each key stands, in the object that begins at `at`; of a key that is
    there twice the last one, as it is read."""
    found = {}
    at = _after_space(text, at + 1)
    while text[at] != "}":
        key, at = scanstring(text, at + 1)
        at = _after_space(text, _after_space(text, at) + 1)
        _, end = _DECODER.raw_decode(text, at)
        found[key] = at, end
        at = _after_comma(text, end)
    return found


def _items(text: str, at: int) -> Iterator[Span]:
    """Where each item stands, in the array that begins at `at`."""
    at = _after_space(text, at + 1)
    while text[at] != "]":
        _, end = _DECODER.raw_decode(text, at)
        yield at, end
        at = _after_comma(text, end)


def _after_comma(text: str, at: int) -> int:
    at = _after_space(text, at)
    return _after_space(text, at + 1) if text[at] == "," else at


def _after_space(text: str, at: int) -> int:
    return _SPACE.match(text, at).end()
