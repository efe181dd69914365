"""The ledger as tables: the same whether it is read at once or in parts, and whatever clocks say."""

import contextlib
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from datasette_memory.index import numbers, verdicts
from datasette_memory.index.connection import connect_write
from datasette_memory.index.migrations import migrate
from datasette_memory.index.project import links_at, project, tally
from datasette_memory.index.rows import secret_path
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

    def judge(self, path, verdict, cohort="c1", minute=None, host="here-0000") -> None:
        self.tell("feedback", path, minute, host, cohort=cohort, verdict=verdict)

    def judged(self) -> dict[str, tuple]:
        """Support, contradict, gain, adopted and rejected of each card that has figures."""
        rows = self.connection.execute(
            "select path, support, contradict, gain, adopted, rejected from card_stats "
            "join cards on cards.id = card_id"
        )
        return {path: tuple(figures) for path, *figures in rows}

    def links(self) -> list[tuple]:
        return self.connection.execute(
            "select path, type, target from links join cards on cards.id = card_id "
            "where origin = 'ledger' order by 1, 2, 3"
        ).fetchall()

    def tables(self) -> tuple:
        events = self.connection.execute("select * from events order by id").fetchall()
        stats = self.connection.execute("select * from card_stats order by card_id").fetchall()
        return stats, self.links(), events


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


def test_verdicts_become_figures(memory):
    memory.judge("a.md", "adopted", "c1")
    memory.judge("a.md", "adopted", "c2")
    memory.judge("a.md", "rejected", "c3")
    memory.judge("b.md", "rejected", "c1")
    memory.judge("c.md", "ignored", "c1")
    memory.tell("read", "b.md")
    memory.project()
    assert memory.judged() == {"a.md": (2, 1, 0.1, 2, 1), "b.md": (0, 1, -0.1, 0, 1)}
    assert memory.reads() == {"a.md": 0, "b.md": 1}


def test_the_last_verdict_of_a_cohort_counts(memory):
    memory.judge("a.md", "adopted", "c1")
    memory.judge("a.md", "adopted", "c1")  # Told twice, as by two processes.
    memory.judge("b.md", "adopted", "c1")
    memory.judge("b.md", "rejected", "c2")
    memory.judge("b.md", "rejected", "c1")
    memory.judge("c.md", "rejected", "c1")
    memory.judge("c.md", "ignored", "c1")
    memory.project()
    assert memory.judged() == {"a.md": (1, 0, 0.1, 1, 0), "b.md": (0, 2, -0.2, 0, 2)}


def test_gain_stays_within_bounds_at_every_step(memory):
    for number in range(13):
        memory.judge("a.md", "adopted", f"c{number}")
        memory.judge("b.md", "rejected", f"c{number}")
    memory.project()
    assert memory.judged() == {"a.md": (13, 0, 1.0, 13, 0), "b.md": (0, 13, -1.0, 0, 13)}
    memory.judge("a.md", "rejected", "last")
    memory.judge("b.md", "adopted", "last")
    memory.project()
    # Not 1.3 - 0.1: what went over the edge is gone.
    assert memory.judged() == {"a.md": (13, 1, 0.9, 13, 1), "b.md": (1, 13, -0.9, 1, 13)}
    memory.judge("a.md", "ignored", "last")
    memory.project()
    assert memory.judged()["a.md"] == (13, 0, 1.0, 13, 0)


def test_verdicts_go_where_the_card_goes(memory):
    memory.judge("old.md", "adopted", "c1")
    memory.tell("moved", "a.md", old_path="old.md")
    memory.judge("old.md", "rejected", "c2")  # Of another card, under the same name.
    memory.judge("a.md", "rejected", "c1")  # The first word on this card is taken back.
    memory.judge("b.md", "adopted", "c3")
    memory.tell("trashed", "b.md", trash=".trash/1/b.md")
    memory.project()
    assert memory.judged() == {"a.md": (0, 1, -0.1, 0, 1)}
    memory.tell("restored", "c.md", trash=".trash/1/b.md")
    memory.project()
    assert memory.judged() == {"a.md": (0, 1, -0.1, 0, 1), "c.md": (1, 0, 0.1, 1, 0)}


def test_verdicts_of_two_machines(memory):
    memory.judge("a.md", "adopted", "c1", 30, "here-0000")
    memory.judge("a.md", "rejected", "c1", 20, "there-0000")
    memory.judge("b.md", "adopted", "c1", 10, "here-0000")  # The clock was set back.
    memory.judge("b.md", "rejected", "c1", 25, "there-0000")
    memory.project()
    # At b.md too the machine `here` spoke last: it had told of minute 30 before.
    assert memory.judged() == {"a.md": (1, 0, 0.1, 1, 0), "b.md": (1, 0, 0.1, 1, 0)}


def test_a_verdict_that_makes_no_sense_is_none(memory):
    memory.judge("a.md", "praised")
    memory.judge("a.md", ["adopted"])
    memory.judge("a.md", "adopted", cohort=None)
    memory.judge("a.md", "adopted", cohort=7)
    memory.tell("feedback", None, cohort="c1", verdict="adopted")
    memory.project()
    assert memory.judged() == {}


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


def test_what_was_given_names_no_secret_card(memory):
    cards = [
        {"ref": "N_0007", "source": "vault", "path": "s.md"},
        {"ref": "N_0000", "source": "vault", "path": "a.md"},
    ]
    memory.tell("inject", None, cohort="c1", cards=cards)
    memory.project()
    [[data]] = memory.connection.execute("select data from events where kind = 'inject'")
    assert [card["ref"] for card in json.loads(data)["cards"]] == ["N_0007", "N_0000"]
    # By its event.
    memory.tell("updated", None, ref="N_0007", secret=True, before="y")
    memory.project()
    [[data]] = memory.connection.execute("select data from events where kind = 'inject'")
    assert [card["ref"] for card in json.loads(data)["cards"]] == ["N_0000"]
    # By its file, of which the index keeps a hash.
    memory.connection.execute(
        "insert into files (source, path, mtime_ns, size, sha256) values ('vault', ?, 0, 0, 'x')",
        [secret_path("vault", "a.md")],
    )
    memory.project()
    [[data]] = memory.connection.execute("select data from events where kind = 'inject'")
    assert json.loads(data) == {"cohort": "c1", "cards": []}
    # What another program wrote into such a list is no fault.
    memory.tell("inject", None, cohort="c2", cards=[{"ref": ["N_0007"]}, cards[1], "N_0007", 7])
    memory.project()
    [[data]] = memory.connection.execute("select data from events where data ->> 'cohort' = 'c2'")
    assert json.loads(data)["cards"] == [{"ref": ["N_0007"]}]


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
        st.sampled_from(
            ["read", "moved", "trashed", "restored", "linked", "unlinked", "feedback", "feedback"]
        ),
        st.sampled_from([*PLACES, "old.md", ".trash/1/a.md"]),
        st.sampled_from([*PLACES, "old.md", ".trash/1/a.md"]),
        st.integers(0, 90),
        st.sampled_from(["here-0000", "there-0000"]),
        st.sampled_from(["c1", "c2"]),
        st.sampled_from(["adopted", "rejected", "ignored"]),
    ),
    max_size=12,
)


def _tell(memory, kind, path, other, minute, host, cohort, verdict) -> None:
    data = {
        "read": {},
        "moved": {"old_path": other},
        "trashed": {"trash": other},
        "restored": {"trash": other},
        "feedback": {"cohort": cohort, "verdict": verdict},
    }.get(kind, {"origin": "ledger", "type": "refers_to", "target": other})
    memory.tell(kind, path, minute, host, **data)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(events=_EVENTS, cuts=st.sets(st.integers(0, 12), max_size=4))
def test_in_parts_as_at_once(tmp_path_factory, events, cuts):
    at_once = Memory(tmp_path_factory.mktemp("once"))
    in_parts = Memory(tmp_path_factory.mktemp("parts"))
    with contextlib.closing(at_once.connection), contextlib.closing(in_parts.connection):
        for number, event in enumerate(events):
            for memory in (at_once, in_parts):
                _tell(memory, *event)
            if number in cuts:
                in_parts.project()
        at_once.project()
        in_parts.project()
        assert in_parts.tables() == at_once.tables()


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(events=_EVENTS, cuts=st.sets(st.integers(0, 12), max_size=3))
def test_verdicts_counted_at_once_are_what_a_projection_makes_of_them(
    tmp_path_factory, events, cuts
):
    memory = Memory(tmp_path_factory.mktemp("memory"))
    with contextlib.closing(memory.connection):
        for number, event in enumerate(events):
            _tell(memory, *event)
            if number in cuts:
                memory.project()
        verdicts.count(memory.connection, memory.ledger, [("vault", path) for path in PLACES])
        counted = {path: row for path, row in memory.judged().items() if any(row)}
        memory.project()
        assert counted == {path: row for path, row in memory.judged().items() if any(row)}


@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.sampled_from(["adopted", "rejected", "ignored"])),
        max_size=80,
    )
)
def test_gain_by_the_rules(said):
    """The same worked out step by step, in tenths, from the verdicts that count."""
    last = {cohort: number for number, (cohort, _) in enumerate(said)}
    kept = [verdict for number, (cohort, verdict) in enumerate(said) if last[cohort] == number]
    gain = 0
    for verdict in kept:
        gain += {"adopted": 1, "rejected": -1, "ignored": 0}[verdict]
        gain = max(-10, min(10, gain))
    support, contradict, found, adopted, rejected = tally(kept)
    assert (support, adopted) == (kept.count("adopted"),) * 2
    assert (contradict, rejected) == (kept.count("rejected"),) * 2
    assert found == pytest.approx(gain / 10) and -1 <= found <= 1
