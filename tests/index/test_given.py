"""What the ledger tells of cards before and after the index takes it in: given, captured."""

import contextlib
import json

import pytest

from datasette_memory.index.connection import connect_write
from datasette_memory.index.given import find_cohort, given_to
from datasette_memory.index.migrations import migrate
from datasette_memory.index.project import project
from datasette_memory.index.sourced import sourced
from datasette_memory.index.tail import Tail
from datasette_memory.ledger.cohort import Cohort, Given, cohort_data
from datasette_memory.ledger.writer import Ledger

CARDS = (
    Given("F_0001", "vault", "12-Facts/端口.md", "overview", 20, 2, "0badcafe"),
    Given("x0123456789", "notes", "a.md", "locator", 8),
)


class Place:
    def __init__(self, folder) -> None:
        self.folder = folder / "ledger"
        self.ledger = Ledger(self.folder)
        self.connection = connect_write(folder / "memory.db")
        migrate(self.connection)

    def give(self, cohort="01M8REXWA2XCAX9P", session="s1", cards=CARDS) -> None:
        by = {"surface": "cli", "session": session}
        self.ledger.append("inject", by=by, **cohort_data(Cohort(cohort, tuple(cards), 30, 100)))

    def create(self, ref, path, source="vault") -> None:
        self.ledger.append("created", ref=ref, source=source, path=path, sha256="0" * 64)

    def project(self) -> None:
        assert project(self.connection, self.folder) == []

    @property
    def tail(self) -> Tail:
        return Tail(self.connection, self.folder)

    def given(self, session="s1") -> list[str]:
        return [card.ref for card in given_to(self.connection, self.tail, session)]

    def sourced(self, *cards) -> set[int]:
        return sourced(self.connection, self.tail, cards)


@pytest.fixture
def place(tmp_path):
    place = Place(tmp_path)
    with contextlib.closing(place.connection):
        yield place


def test_what_a_session_was_given(place):
    assert place.given() == []
    place.give()
    assert tuple(given_to(place.connection, place.tail, "s1")) == CARDS
    assert place.given("s2") == []
    place.project()
    assert tuple(given_to(place.connection, place.tail, "s1")) == CARDS
    assert place.given("s2") == []
    # Some of it taken in, some not; the oldest first.
    place.give("01M8REXWA2XCAX9Q", cards=[Given("D_0002", "vault", "d.md")])
    place.give("01M8REXWA2XCAX9R", "s2", [Given("D_0003", "vault", "e.md")])
    assert place.given() == ["F_0001", "x0123456789", "D_0002"]
    assert place.given("s2") == ["D_0003"]


def test_a_session_of_any_name(place):
    for session in ('会话 "1"', "back\\slash", "inject", "s" * 2000):
        place.give(session=session)
        assert len(place.given(session)) == 2
    place.project()
    assert len(place.given('会话 "1"')) == 2


def test_other_machines_write_lines_of_their_own(place):
    place.give()
    other = place.folder / "2026-03.there-0000.jsonl"
    event = {
        "kind": "inject", "v": 1, "id": "A", "t": "2026-03-01T00:00:00.000Z",
        "by": {"session": "s1"}, "cohort": "c", "cards": [{"ref": "D_0009"}, {"odd": 1}],
    }  # fmt: skip
    rest = [
        '{"kind": "inject", "session": "s1", torn',
        '["inject", "s1"]',
        json.dumps(event | {"by": None}),
        json.dumps(event | {"by": {"agent": "s1"}}),
        json.dumps(event | {"cards": "none"}),
        '{"kind":"read","by":{"session":"inject","agent":"s1"}}',
    ]
    last = json.dumps(event | {"cards": [{"ref": "D_0010"}]})
    other.write_text("\n".join([*rest, json.dumps(event), last]))  # The last line has no end yet.
    assert sorted(place.given()) == ["D_0009", "F_0001", "x0123456789"]


def test_a_file_that_was_replaced_is_read_from_its_start(place):
    for _ in range(3):
        place.give()
    place.project()
    [file] = place.folder.glob("*.jsonl")
    file.unlink()
    place.give(session="s9", cards=CARDS[:1])
    assert place.given("s9") == ["F_0001"]


def test_of_a_long_tail_the_end_is_read(place):
    place.give("01M8REXWA2XCAX9P", cards=[Given("D_0001", "vault", "a.md")])
    for _ in range(20):
        place.ledger.append("read", ref="D_0001", source="vault", path="a.md", sync=False)
    place.give("01M8REXWA2XCAX9Q", cards=[Given("D_0002", "vault", "b.md")])

    def given(limit):
        tail = Tail(place.connection, place.folder, limit)
        return [card.ref for card in given_to(place.connection, tail, "s1")]

    assert given(None) == ["D_0001", "D_0002"]
    assert given(1000) == ["D_0002"]
    assert given(3) == []


def test_lines_are_numbered_as_in_the_file(place):
    place.ledger.append("gap", query="x")
    place.project()
    for number in range(4):
        place.ledger.append("gap" if number % 2 else "read", source="vault", path="a.md")
    [file] = place.folder.glob("*.jsonl")
    found = [(event.kind, name, line) for event, name, line in place.tail.events("read", "gap")]
    assert found == [
        (kind, file.name, line) for kind, line in (("read", 2), ("gap", 3), ("read", 4), ("gap", 5))
    ]
    assert [line for *_, line in place.tail.events("gap")] == [3, 5]


def test_a_cohort_is_found_before_and_after_it_is_taken_in(place):
    place.give("01M8REXWA2XCAX9P")
    place.ledger.append("feedback", ref="x", cohort="01M8REXWA2XCAX9Z", verdict="adopted")

    def found(id):
        told = find_cohort(place.connection, place.tail, id)
        return told and (told.cohort.cards, told.by["session"], told.line)

    for _ in range(2):
        assert found("01M8REXWA2XCAX9P") == (CARDS, "s1", 1)
        assert found("01M8REXWA2XCAX9Z") is None
        assert found("") is None
        place.project()


def test_which_cards_were_captured(place):
    fact = (1, "vault", "12-Facts/端口.md", "F_0001")
    moved = (2, "vault", "13-Episodes/搬走.md", "F_0002")
    by_hand = (3, "vault", "12-Facts/手写.md", "F_0003")
    other = (4, "notes", "12-Facts/端口.md", "F_0001")
    quoted = (5, "vault", '12-Facts/"x"\\y.md', 'Q"1')
    place.create("F_0001", "12-Facts/端口.md")
    place.create("F_0002", "12-Facts/旧处.md")
    place.create('Q"1', '12-Facts/"x"\\y.md')
    place.ledger.append("read", ref="F_0003", source="vault", path="12-Facts/手写.md")
    for _ in range(2):
        assert place.sourced(fact, moved, by_hand, other, quoted) == {1, 2, 5}
        assert place.sourced() == set()
        place.project()
    # Two cards with one ref, as after two vaults were merged.
    assert place.sourced(fact, (9, "vault", "elsewhere.md", "F_0001")) == {1, 9}


def test_captures_that_another_program_recorded(place):
    place.folder.mkdir()
    (place.folder / "2026-03.there-0000.jsonl").write_text(
        '{"kind": "created", "v": 1, "id": "A", "t": "2026-03-01T00:00:00.000Z", '
        '"path": "a.md", "source": "vault", "ref": "\\u0041_1"}\n'
    )
    assert place.sourced((1, "vault", "b.md", "A_1"), (2, "vault", "c.md", "C_1")) == {1}


@pytest.mark.parametrize("projected", [False, True])
def test_a_session_that_was_shortened_may_be_given_it_again(place, projected):
    place.give("01M8REXWA2XCAX9P")
    by = {"surface": "hook", "session": "s1"}
    place.ledger.append("runtime", by=by, event="post-compact", forgets=True)
    place.ledger.append("runtime", by=by | {"session": "s2"}, event="post-compact", forgets=True)
    if projected:
        place.project()
    assert place.given() == []
    place.give("01M8REXWA2XCAX9Q", cards=CARDS[:1])
    place.ledger.append("runtime", by=by, event="stop")
    assert place.given() == ["F_0001"]
