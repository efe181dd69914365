"""What a pack is to the ledger, and which cards a session has had already."""

from dataclasses import dataclass, replace

from datasette_memory.context.cohort import cohort_of, given_already, mark
from datasette_memory.ledger.cohort import Cohort, Given
from datasette_memory.search.candidate import Candidate

CARD = Candidate(
    7, "D_0001", "09-Decisions/缓存.md", "vault", "缓存用 Redis", "decision", 1.0,
    body="热数据放进 Redis。", version=3,
)  # fmt: skip
NOTE = Candidate(8, "x0123456789", "a.md", "notes", "A note", "note", 0.5, body="By hand.")


@dataclass
class Item:
    candidate: Candidate
    view: str
    tokens: int
    text: str = "What the agent saw, which is nobody's business."


@dataclass
class Reason:
    code: str


@dataclass
class Verdict:
    reasons: tuple


@dataclass
class Pack:
    items: tuple
    left_out: tuple
    tokens: int = 130
    budget: int = 1200
    text: str = "All of it."


def test_a_pack_as_the_ledger_remembers_it():
    left_out = (
        Verdict((Reason("low-confidence"), Reason("item-limit"))),
        Verdict((Reason("item-limit"),)),
        Verdict((Reason("stale"),)),
        Verdict(()),
    )
    pack = Pack((Item(CARD, "detail", 84), Item(NOTE, "locator", 9)), left_out)
    assert cohort_of(pack, "01M8REXWA2XCAX9P", "燕子") == Cohort(
        "01M8REXWA2XCAX9P",
        (
            Given("D_0001", "vault", "09-Decisions/缓存.md", "detail", 84, 3, mark(CARD)),
            Given("x0123456789", "notes", "a.md", "locator", 9, 1, mark(NOTE)),
        ),
        130,
        1200,
        {"item-limit": 2, "stale": 1},
        "燕子",
    )


GIVEN = Given("D_0001", "vault", "09-Decisions/缓存.md", "detail", 84, 3, mark(CARD))


def test_a_card_is_given_once():
    assert given_already([GIVEN], [CARD, NOTE]) == {7}
    assert given_already([], [CARD, NOTE]) == set()
    assert given_already([GIVEN], []) == set()


def test_a_card_that_has_changed_since_is_given_again():
    assert given_already([GIVEN], [replace(CARD, version=4)]) == set()
    # Edited by hand: nobody counted a version.
    assert given_already([GIVEN], [replace(CARD, body="热数据放进 Valkey。")]) == set()
    assert given_already([GIVEN], [replace(CARD, title="缓存用 Valkey")]) == set()
    # The later event tells what the session has now.
    later = replace(GIVEN, version=4)
    assert given_already([GIVEN, later], [replace(CARD, version=4)]) == {7}


def test_a_card_that_moved_is_known_and_another_in_its_place_is_not():
    assert given_already([GIVEN], [replace(CARD, path="moved.md")]) == {7}
    other = replace(CARD, ref="D_0002", title="Another", body="Of the same version.")
    assert given_already([GIVEN], [other]) == set()
    assert given_already([GIVEN], [replace(CARD, source="notes")]) == set()


def test_an_older_event_has_no_mark_and_a_locator_gives_nothing():
    assert given_already([replace(GIVEN, mark=None)], [CARD]) == {7}
    assert given_already([replace(GIVEN, view="overview")], [CARD]) == {7}
    assert given_already([replace(GIVEN, view="locator")], [CARD]) == set()


def test_the_mark_is_crc32():
    card = replace(CARD, title="1234", body="6789")
    assert mark(card) == "e8851671"  # printf '1234\n6789' | gzip -c | tail -c8
