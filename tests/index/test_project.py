"""The ledger as tables: the same whether it is read at once or in parts, and whatever clocks say."""

import contextlib
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from datasette_memory.index import numbers
from datasette_memory.index.connection import connect_write
from datasette_memory.index.migrations import migrate
from datasette_memory.index.project import links_at, project
from datasette_memory.index.single import index_card

PLACES = ("a.md", "b.md", "c.md")


class Memory:
    """An index with a card at each place, and a ledger that is written by hand."""

    def __init__(self, folder) -> None:
        self.ledger = folder / "ledger"
        self.ledger.mkdir()
        self.connection = connect_write(folder / "memory.db")
        migrate(self.connection)
        self.connection.execute("pragma synchronous = off")
        self.connection.execute(
            "insert into sources (name, root, exclude, max_bytes) values ('vault', '/', '[]', 1)"
        )
        for number, path in enumerate(PLACES):
            data = f"---\nid: N_{number:04}\ntitle: {path}\n---\n\nText of {path}.\n".encode()
            index_card(self.connection, "vault", path, data, 0)
        self.count = 0

    def tell(self, kind, path, minute=None, host="here-0000", **data) -> None:
        """An event at that minute; a later one than before unless told otherwise."""
        self.count += 1
        minute = self.count if minute is None else minute
        event = {
            "v": 1, "id": f"{self.count:04}", "kind": kind, "ref": data.pop("ref", None),
            "t": f"2026-03-01T{minute // 60:02}:{minute % 60:02}:00.000Z",
            "source": "vault", "path": path, "by": {}, **data,
        }  # fmt: skip
        with open(self.ledger / f"2026-03.{host}.jsonl", "a") as file:
            file.write(json.dumps(event) + "\n")

    def project(self) -> list[str]:
        return project(self.connection, self.ledger)

    def reads(self) -> dict[str, int]:
        return dict(
            self.connection.execute(
                "select path, reads from card_stats join cards on cards.id = card_id"
            )
        )

    def links(self) -> list[tuple]:
        return self.connection.execute(
            "select path, type, target from links join cards on cards.id = card_id "
            "where origin = 'ledger' order by 1, 2, 3"
        ).fetchall()

    def tables(self) -> tuple:
        events = self.connection.execute("select * from events order by id").fetchall()
        return self.reads(), self.links(), events


@pytest.fixture
def memory(tmp_path):
    memory = Memory(tmp_path)
    yield memory
    memory.connection.close()


def test_reads_are_counted_where_the_card_is(memory):
    memory.tell("read", "a.md")
    memory.tell("read", "old.md")
    memory.tell("read", "old.md")
    memory.tell("moved", "b.md", old_path="old.md")
    memory.tell("read", "b.md")
    memory.tell("read", "gone.md")
    memory.project()
    assert memory.reads() == {"a.md": 1, "b.md": 3}


def test_a_move_that_is_told_twice_is_one(memory):
    memory.tell("read", "old.md")
    memory.tell("moved", "a.md", old_path="old.md")
    memory.tell("moved", "a.md", old_path="old.md")
    memory.tell("read", "a.md")
    memory.project()
    assert memory.reads() == {"a.md": 2}


def test_there_and_back(memory):
    memory.tell("read", "a.md")
    memory.tell("moved", "x.md", old_path="a.md")
    memory.tell("read", "x.md")
    memory.tell("moved", "a.md", old_path="x.md")
    memory.project()
    assert memory.reads() == {"a.md": 2}


def test_two_cards_that_change_places(memory):
    memory.tell("read", "a.md")
    memory.tell("read", "b.md")
    memory.tell("read", "b.md")
    memory.tell("moved", "x.md", old_path="a.md")
    memory.tell("moved", "a.md", old_path="b.md")
    memory.tell("moved", "b.md", old_path="x.md")
    memory.project()
    assert memory.reads() == {"a.md": 2, "b.md": 1}


def test_what_was_thrown_away_takes_its_reads_along(memory):
    memory.tell("read", "a.md")
    memory.tell("trashed", "a.md", trash=".trash/1/a.md")
    memory.tell("read", "a.md")  # Of another card, under the same name.
    memory.tell("read", "a.md")
    memory.project()
    assert memory.reads() == {"a.md": 2}
    memory.tell("restored", "b.md", trash=".trash/1/a.md")
    memory.project()
    assert memory.reads() == {"a.md": 2, "b.md": 1}


def test_the_position_counts_and_not_the_clock(memory):
    memory.tell("linked", "a.md", 30, origin="ledger", type="refers_to", target="b")
    memory.tell("read", "old.md", 40)
    memory.tell("unlinked", "a.md", 20, origin="ledger", type="refers_to", target="b")
    memory.tell("moved", "b.md", 10, old_path="old.md")
    memory.tell("read", "old.md", 5)  # Of another card.
    memory.tell("linked", "a.md", 1, origin="ledger", type="refers_to", target="c")
    memory.project()
    assert memory.reads() == {"b.md": 1}
    assert memory.links() == [("a.md", "refers_to", "c")]


def test_between_hosts_the_time_counts(memory):
    link = {"origin": "ledger", "type": "refers_to", "target": "b"}
    memory.tell("linked", "a.md", 30, "here-0000", **link)
    memory.tell("unlinked", "a.md", 20, "there-0000", **link)
    memory.project()
    assert memory.links() == [("a.md", "refers_to", "b")]
    memory.tell("unlinked", "a.md", 40, "there-0000", **link)
    memory.project()
    assert memory.links() == []


def test_the_links_of_a_moment(memory):
    for minute, kind, target in (
        (10, "linked", "b"), (20, "linked", "c"), (30, "unlinked", "b"),
    ):  # fmt: skip
        memory.tell(kind, "a.md", minute, origin="ledger", type="refers_to", target=target)
    memory.project()

    def at(minute):
        found = links_at(memory.connection, f"2026-03-01T00:{minute:02}:00.000Z")
        return [target for links in found.values() for _, target in links]

    assert [at(minute) for minute in (9, 10, 25, 30)] == [[], ["b"], ["b", "c"], ["c"]]


def test_a_secret_card_leaves_nothing_but_that_something_happened(memory):
    memory.tell("created", "a.md", ref="N_0007", sha256="x")
    memory.tell("read", "a.md", ref="N_0007")
    memory.tell("updated", None, ref="N_0007", secret=True, before="y")
    memory.tell("created", "b.md", ref="N_0001")
    memory.project()
    rows = memory.connection.execute("select kind, ref, path, data from events order by id")
    assert rows.fetchall() == [
        ("created", None, None, "{}"),
        ("read", None, None, "{}"),
        ("updated", None, None, "{}"),
        ("created", "N_0001", "b.md", "{}"),
    ]
    agents = memory.connection.execute(
        "select distinct agent, surface from events where ref is null"
    )
    assert agents.fetchall() == [(None, None)]
    # Its number stays taken.
    assert numbers.last(memory.connection, "N") == 7
    memory.tell("updated", "a.md", ref="N_0007", secret=False)
    memory.project()
    rows = memory.connection.execute("select kind, ref from events order by id")
    assert rows.fetchall() == [
        ("created", "N_0007"), ("read", "N_0007"), ("updated", "N_0007"), ("created", "N_0001"),
        ("updated", "N_0007"),
    ]  # fmt: skip


def test_a_ledger_that_was_replaced_is_read_anew(memory):
    memory.tell("read", "a.md")
    memory.project()
    [file] = memory.ledger.iterdir()
    file.unlink()
    memory.tell("read", "b.md")
    assert memory.project()
    assert memory.reads() == {"b.md": 1}


_EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["read", "moved", "trashed", "restored", "linked", "unlinked"]),
        st.sampled_from([*PLACES, "old.md", ".trash/1/a.md"]),
        st.sampled_from([*PLACES, "old.md", ".trash/1/a.md"]),
        st.integers(0, 90),
        st.sampled_from(["here-0000", "there-0000"]),
    ),
    max_size=12,
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(events=_EVENTS, cuts=st.sets(st.integers(0, 12), max_size=4))
def test_in_parts_as_at_once(tmp_path_factory, events, cuts):
    at_once = Memory(tmp_path_factory.mktemp("once"))
    in_parts = Memory(tmp_path_factory.mktemp("parts"))
    with contextlib.closing(at_once.connection), contextlib.closing(in_parts.connection):
        for number, (kind, path, other, minute, host) in enumerate(events):
            data = {
                "moved": {"old_path": other},
                "trashed": {"trash": other},
                "restored": {"trash": other},
            }.get(kind, {"origin": "ledger", "type": "refers_to", "target": other})
            data = {} if kind == "read" else data
            for memory in (at_once, in_parts):
                memory.tell(kind, path, minute, host, **data)
            if number in cuts:
                in_parts.project()
        at_once.project()
        in_parts.project()
        assert in_parts.tables() == at_once.tables()
