"""The home that the cases of the system gate are asked in: `cards.json`, written as files."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from datasette_memory.ledger.writer import Ledger
from datasette_memory.memory import Memory
from datasette_memory.vault.kinds import by_name

CARDS = Path(__file__).with_name("cards.json")
#: The source beside the vault: cards that somebody else keeps.
NOTES = "notes"
#: Stands inside the made-up credentials, so that no scanner of this repository takes them for real.
BREAK = "~~"

#: Keys that are frontmatter as they stand.
_PLAIN = ("project", "tags", "keywords", "aliases", "confidence", "sensitivity", "ttl", "refs")
#: Verdicts that a card was given in earlier cohorts: how often, by verdict.
_VERDICTS = ("adopted", "rejected", "ignored")


@dataclass(frozen=True, slots=True)
class Placed:
    """A card of `cards.json` where it was written. `text` is that of its file without the
    frontmatter; `credential` is what no answer may show, `barred` a card that none may give."""

    key: str
    ref: str
    source: str
    path: str
    text: str
    credential: str | None = None
    barred: bool = False


def definitions() -> list[dict]:
    """The cards of `cards.json`.

    `days` is the age of a card; `valid_from` and `valid_until` are days from now; `hand` is one that
    was written without a capture, `notes` one of the source NOTES; `adopted`, `rejected` and
    `ignored` say how often it was judged; `credential` is the made-up one that it holds.
    """
    return json.loads(CARDS.read_text("utf-8").replace(BREAK, ""))


def build(folder: Path, now: datetime) -> tuple[Memory, dict[str, Placed]]:
    """A home in `folder` with every card, its ledger and an index; and the cards by key.

    Ages are counted back from `now`, so that a card is as stale on any day as it was meant.
    """
    cards = definitions()
    home, notes = folder / "home", folder / NOTES
    refs = _references(cards)
    placed = {
        card["key"]: _write(card, refs, notes if card.get("notes") else home / "vault", now)
        for card in cards
    }
    ledger = Ledger(home / "ledger")
    for card in cards:
        _record(ledger, card, placed[card["key"]], home / "vault")
    memory = Memory(str(home))
    memory.index()
    memory.import_paths([str(notes)], name=NOTES)
    return memory, placed


def _references(cards: Iterable[Mapping]) -> dict[str, str]:
    """Keys to refs: the prefix of the kind and a counter, or what a card without `id` is called."""
    counted: dict[str, int] = {}
    refs = {}
    for card in cards:
        if card.get("notes"):
            named = hashlib.sha256(f"{NOTES}/{card['file']}".encode()).hexdigest()
            refs[card["key"]] = f"x{named[:10]}"
            continue
        prefix = by_name(card["kind"]).prefix
        counted[prefix] = counted.get(prefix, 0) + 1
        refs[card["key"]] = f"{prefix}_{counted[prefix]:04}"
    return refs


def _write(card: Mapping, refs: Mapping[str, str], root: Path, now: datetime) -> Placed:
    foreign = bool(card.get("notes"))
    path = card["file"] if foreign else f"{by_name(card['kind']).folder}/{card['key']}.md"
    written = (now - timedelta(days=card["days"])).isoformat(timespec="seconds")
    front: dict[str, object] = {} if foreign else {"id": refs[card["key"]]}
    front |= {"title": card["title"], "kind": card["kind"]}
    front |= {"created": written, "updated": written}
    front |= {name: card[name] for name in _PLAIN if name in card}
    for name in ("valid_from", "valid_until"):
        if name in card:
            moment = now + timedelta(days=card[name])
            front[name] = moment.isoformat(timespec="seconds")
    relations = [(kind, target) for kind, target in card.get("relations", ())]
    if old := card.get("supersedes"):
        relations.append(("supersedes", old))
    if relations:
        front["relations"] = [{"type": kind, "target": refs[key]} for kind, key in relations]
    if new := card.get("superseded_by"):
        front["superseded_by"] = refs[new]
    # JSON is YAML too.
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in front.items()]
    text = f"\n{card['body']}\n"
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(["---", *lines, "---", text]), "utf-8", newline="\n")
    source = NOTES if foreign else "vault"
    barred = "superseded_by" in card or card.get("sensitivity") == "secret"
    return Placed(
        card["key"], refs[card["key"]], source, path, text, card.get("credential"), barred
    )


def _record(ledger: Ledger, card: Mapping, at: Placed, vault: Path) -> None:
    """Write what happened to a card before: its capture, and how it was judged."""
    where = {"ref": at.ref, "source": at.source, "path": at.path, "sync": False}
    if not (card.get("hand") or card.get("notes")):
        digest = hashlib.sha256((vault / at.path).read_bytes()).hexdigest()
        ledger.append("created", **where, sha256=digest)
    for verdict in _VERDICTS:
        for number in range(card.get(verdict, 0)):
            cohort = f"{at.key}-{verdict}-{number}"
            given = {"ref": at.ref, "source": at.source, "path": at.path}
            given |= {"view": "locator", "tokens": 40, "version": 1}
            ledger.append(
                "inject", sync=False, cohort=cohort, cards=[given], tokens=90, budget=1000,
                left_out={}, project=None,
            )  # fmt: skip
            ledger.append("feedback", **where, cohort=cohort, verdict=verdict)
