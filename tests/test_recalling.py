"""Feedback on what was given: by Python and by command, now and after everything is built anew."""

import contextlib
import errno
import json
import os
import shutil
import sqlite3
import time
from types import SimpleNamespace

import pytest

from datasette_memory import durable
from datasette_memory.errors import Ambiguous, MemoryFault, NotFound
from datasette_memory.ledger.cohort import Cohort, Given, cohort_data
from datasette_memory.ledger.writer import Ledger
from datasette_memory.memory import Memory

from . import homes

COHORT = "01M8REXWA2XCAX9P"
SECOND = "01M8REXWA2XCAX9Q"
CARDS = {
    "a.md": "---\nid: F_0001\ntitle: 快照保留四份\n---\n每周五做一次快照。\n",
    "b.md": "---\nid: F_0002\ntitle: 恢复演练\n---\n从快照恢复，用了五十二分钟。\n",
    "c.md": "---\ntitle: The gateway port\n---\nThe gateway listens on 8765.\n",
    "twin.md": "---\nid: F_0009\ntitle: 恢复演练\n---\n另一次。\n",
    "out.md": "---\nid: F_0003\ntitle: Not given\n---\nNobody saw this card.\n",
}
"""F_0001, F_0002 and c.md were given as COHORT; two cards are titled 恢复演练."""


class Place:
    def __init__(self, home) -> None:
        self.home = home
        (home / "vault").mkdir(parents=True)
        for name, text in CARDS.items():
            (home / "vault" / name).write_text(text, "utf-8")
        self.memory = Memory(str(home))
        self.memory.index()
        self.refs = dict(self.sql("select path, ref from cards"))
        self.give(COHORT, "a.md", "b.md", "c.md")

    def give(self, cohort, *paths) -> None:
        views = ["detail", "overview", "locator"]
        cards = tuple(
            Given(self.refs[path], "vault", path, view, 40, 1) for path, view in zip(paths, views)
        )
        data = cohort_data(Cohort(cohort, cards, 130, 1200, {"stale": 2}, "燕子"))
        by = {"surface": "cli", "agent": "claude", "session": "s1"}
        Ledger(self.home / "ledger").append("inject", by=by, **data)

    def sql(self, query, *values) -> list[tuple]:
        return homes.query(self.home / "memory.db", query, *values)

    def judged(self) -> dict[str, tuple]:
        return {
            path: tuple(figures)
            for path, *figures in self.sql(
                "select path, support, contradict, gain, adopted, rejected from card_stats "
                "join cards on cards.id = card_id"
            )
        }

    def events(self) -> list[tuple]:
        return [
            (event["path"], event["cohort"], event["verdict"])
            for event in homes.events(self.home, "feedback")
        ]

    def holds(self) -> None:
        """The index is what the ledger says: now, taken in, and built anew."""
        before = self.judged()
        assert self.memory.verify().ok
        self.memory.index()
        assert self.judged() == before
        assert self.memory.verify().ok
        self.memory.index(rebuild=True)
        assert self.judged() == before
        homes.remove_index(self.home)
        self.memory.index()
        assert self.judged() == before


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path / "home")


@contextlib.contextmanager
def full_disk(monkeypatch):
    def write(descriptor, data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(durable.system, "write", write)
        yield


def test_feedback(place):
    result = place.memory.feedback(
        COHORT, adopted=["F_0001"], rejected=["vault/b.md"], ignored=["The gateway port"]
    )
    assert result == {
        "cohort": COHORT, "adopted": ["F_0001"], "rejected": ["F_0002"],
        "ignored": [place.refs["c.md"]], "unchanged": [],
    }  # fmt: skip
    assert place.events() == [
        ("a.md", COHORT, "adopted"), ("b.md", COHORT, "rejected"), ("c.md", COHORT, "ignored"),
    ]  # fmt: skip
    assert place.judged() == {"a.md": (1, 0, 0.1, 1, 0), "b.md": (0, 1, -0.1, 0, 1)}
    place.holds()


def test_nothing_is_assumed_of_cards_that_are_not_named(place):
    place.memory.feedback(COHORT, ["F_0001"])
    assert place.judged() == {"a.md": (1, 0, 0.1, 1, 0)}
    assert [card["verdict"] for card in place.memory.cohort(COHORT)["cards"]] == [
        "adopted", None, None,
    ]  # fmt: skip


def test_the_same_verdict_again_changes_nothing(place):
    place.memory.feedback(COHORT, ["F_0001"])
    for _ in range(2):
        result = place.memory.feedback(COHORT, ["F_0001", "a.md", "F_0001"], ignored=["c.md"])
        place.memory.index()
    assert result["adopted"] == [] and result["ignored"] == []
    assert result["unchanged"] == ["F_0001", place.refs["c.md"]]
    assert place.events() == [("a.md", COHORT, "adopted"), ("c.md", COHORT, "ignored")]


def test_another_verdict_takes_the_first_one_back(place):
    place.memory.feedback(COHORT, ["F_0001", "F_0002"])
    place.memory.feedback(COHORT, rejected=["F_0001"], ignored=["F_0002"])
    assert place.judged() == {"a.md": (0, 1, -0.1, 0, 1)}
    place.holds()


def test_a_card_that_was_given_twice_over_is_one(place):
    place.give(SECOND, "a.md", "a.md")
    assert place.memory.feedback(SECOND, ["F_0001"])["adopted"] == ["F_0001"]
    assert place.judged() == {"a.md": (1, 0, 0.1, 1, 0)}


def test_two_cohorts_add_up(place):
    place.give(SECOND, "a.md")
    place.memory.feedback(COHORT, "F_0001")
    place.memory.index()
    place.memory.feedback(SECOND, ["F_0001"])
    place.memory.show("F_0001")
    assert place.judged() == {"a.md": (2, 0, 0.2, 2, 0)}
    assert place.sql("select reads from card_stats") == [(1,)]
    place.holds()


def test_a_card_may_have_moved_since(place):
    place.memory.feedback(COHORT, ["c.md"], rejected=["F_0001"])
    vault = place.home / "vault"
    (vault / "sub").mkdir()
    (vault / "c.md").rename(vault / "sub" / "gateway.md")
    (vault / "a.md").rename(vault / "sub" / "a.md")
    place.memory.index()
    (vault / "c.md").write_text("# Another\n\nIn the place of the first.\n")
    place.memory.index()
    assert place.judged() == {"sub/gateway.md": (1, 0, 0.1, 1, 0), "sub/a.md": (0, 1, -0.1, 0, 1)}
    # A file without a ref of its own has another one now, and is the same card.
    assert place.memory.feedback(COHORT, ["sub/gateway.md", "F_0001"])["unchanged"] == [
        place.sql("select ref from cards where path = 'sub/gateway.md'")[0][0]
    ]
    with pytest.raises(MemoryFault, match="is not among the cards of the cohort"):
        place.memory.feedback(COHORT, ["c.md"])
    assert place.judged() == {"sub/gateway.md": (1, 0, 0.1, 1, 0), "sub/a.md": (1, 0, 0.1, 1, 0)}
    place.holds()


def test_a_card_in_the_trash_takes_its_verdicts_along(place):
    place.memory.feedback(COHORT, ["F_0001"], ["F_0002"])
    place.memory.forget("F_0001")
    assert place.judged() == {"b.md": (0, 1, -0.1, 0, 1)}
    with pytest.raises(NotFound, match="F_0001"):
        place.memory.feedback(COHORT, ["F_0001"])
    shown = place.memory.cohort(COHORT)["cards"]
    assert [(card["ref"], card["path"], card["verdict"]) for card in shown[:2]] == [
        ("F_0001", None, None), ("F_0002", "b.md", "rejected"),
    ]  # fmt: skip
    [item] = place.memory.trashed()
    place.memory.restore(item["trash_path"])
    place.memory.index()
    assert place.judged() == {"a.md": (1, 0, 0.1, 1, 0), "b.md": (0, 1, -0.1, 0, 1)}
    place.holds()


def test_what_is_no_part_of_the_cohort_is_refused_and_nothing_is_written(place):
    with pytest.raises(MemoryFault) as fault:
        place.memory.feedback(COHORT, ["F_0001", "F_0003"])
    assert type(fault.value) is MemoryFault
    assert fault.value.error == f"'F_0003' is not among the cards of the cohort {COHORT}"
    assert "F_0001 (快照保留四份), F_0002 (恢复演练)" in fault.value.hint
    with pytest.raises(NotFound):
        place.memory.feedback(COHORT, ["F_0001", "F_4711"])
    with pytest.raises(MemoryFault, match="cannot be both adopted and rejected"):
        place.memory.feedback(COHORT, ["F_0001"], ["a.md"])
    with pytest.raises(MemoryFault, match="nothing to record"):
        place.memory.feedback(COHORT)
    for unknown in ("01M8REXWA2XCAX90", "", "'", "F_0001", "\ud800"):
        with pytest.raises(NotFound, match="nothing was given as the cohort"):
            place.memory.feedback(unknown, ["F_0001"])
    assert place.events() == [] and place.judged() == {}


def test_a_title_that_two_cards_have_means_the_one_that_was_given(place):
    with pytest.raises(Ambiguous):
        place.memory.show("恢复演练")
    assert place.memory.feedback(COHORT, ["恢复演练"])["adopted"] == ["F_0002"]
    place.give(SECOND, "b.md", "twin.md")
    with pytest.raises(Ambiguous):
        place.memory.feedback(SECOND, ["恢复演练"])


def test_two_machines(place, tmp_path):
    """The ledgers of two copies of a home, merged: what was said last counts, by the clock."""
    other = Place.__new__(Place)
    other.home = tmp_path / "other"
    shutil.copytree(place.home, other.home)
    [file] = (other.home / "ledger").glob("*.jsonl")
    file.unlink()
    (other.home / "ledger" / ".host").write_text("there-0000\n")
    other.memory, other.refs = Memory(str(other.home)), place.refs
    other.give(COHORT, "a.md", "b.md", "c.md")
    place.memory.feedback(COHORT, ["F_0001", "F_0002"])
    time.sleep(0.005)
    other.memory.feedback(COHORT, rejected=["F_0001"])
    for path in (other.home / "ledger").glob("*.jsonl"):
        shutil.copy(path, place.home / "ledger" / path.name.replace(
            path.name.split(".")[1], "there-0000"))  # fmt: skip
    place.memory.index()
    assert place.judged() == {"a.md": (0, 1, -0.1, 0, 1), "b.md": (1, 0, 0.1, 1, 0)}
    place.holds()


def test_an_index_that_nobody_can_write_follows_later(place):
    busy = sqlite3.connect(place.home / "memory.db", isolation_level=None)
    busy.execute("begin immediate")
    place.memory.feedback(COHORT, ["F_0001"])
    busy.execute("rollback")
    busy.close()
    assert place.judged() == {}
    assert place.memory.feedback(COHORT, ["F_0001"])["unchanged"] == ["F_0001"]
    place.memory.index()
    assert place.judged() == {"a.md": (1, 0, 0.1, 1, 0)}


def test_a_ledger_that_cannot_be_written_is_told(place, monkeypatch):
    with full_disk(monkeypatch):
        with pytest.raises(MemoryFault, match="cannot be written"):
            place.memory.feedback(COHORT, ["F_0001"])
    assert place.events() == [] and place.judged() == {}


def test_another_index_than_the_home_s_has_no_feedback(place, tmp_path):
    shutil.copy(place.home / "memory.db", tmp_path / "other.db")
    other = Memory(str(place.home), db=str(tmp_path / "other.db"))
    with pytest.raises(MemoryFault, match="no ledger"):
        other.feedback(COHORT, ["F_0001"])
    with pytest.raises(NotFound):
        other.cohort(COHORT)
    assert other._new_cohort() is None


# What is given


def pack(place, *views):
    cards = place.sql("select id, ref, source, path, title, body, version from cards order by path")
    names = ("id", "ref", "source", "path", "title", "body", "version")
    items = tuple(
        SimpleNamespace(
            candidate=SimpleNamespace(**dict(zip(names, card))), view=view, tokens=40, text="x"
        )
        for card, view in zip(cards, views)
    )
    return SimpleNamespace(items=items, left_out=(), tokens=90, budget=500, text="y")


def test_what_was_given_is_recorded(place):
    cohort = place.memory._new_cohort()
    by = {"surface": "cli", "session": "s2"}
    given = pack(place, "detail", "overview", "locator")
    assert place.memory._record_injection(given, cohort, by, "燕子") == cohort
    [event] = [one for one in homes.events(place.home, "inject") if one["cohort"] == cohort]
    assert (event["by"]["session"], event["project"], event["tokens"]) == ("s2", "燕子", 90)
    assert [(card["path"], card["view"]) for card in event["cards"]] == [
        ("a.md", "detail"), ("b.md", "overview"), ("c.md", "locator"),
    ]  # fmt: skip
    assert "快照" not in json.dumps(event, ensure_ascii=False)
    # Whoever was given the whole of a card has read it.
    assert [one["path"] for one in homes.events(place.home, "read")] == ["a.md"]
    assert place.sql("select ref, reads from card_stats join cards on id = card_id") == [
        ("F_0001", 1)
    ]
    place.memory.feedback(cohort, ["b.md"])
    place.holds()
    rows = place.sql(
        "select cohort, session, project, cards, tokens, budget from injections order by t"
    )
    assert rows == [
        (COHORT, "s1", "燕子", 3, 130, 1200), (cohort, "s2", "燕子", 3, 90, 500),
    ]  # fmt: skip
    assert place.sql("select cohort, verdict, ref, path from feedback_given") == [
        (cohort, "adopted", "F_0002", "b.md")
    ]


def test_nothing_given_nothing_recorded(place):
    before = homes.digest(place.home / "ledger")
    memory = place.memory
    assert memory._record_injection(pack(place), memory._new_cohort()) is None
    memory.untouched = True
    assert memory._new_cohort() is None
    assert memory._record_injection(pack(place, "detail"), COHORT) is None
    with pytest.raises(MemoryFault, match="only read"):
        memory.feedback(COHORT, ["F_0001"])
    assert homes.digest(place.home / "ledger") == before


def test_a_ledger_that_cannot_be_written_stops_no_answer(place, monkeypatch):
    with full_disk(monkeypatch):
        assert place.memory._record_injection(pack(place, "detail"), SECOND) is None
    assert homes.events(place.home, "read") == []


# The command


def test_the_command(place):
    done = homes.command(place.home, "feedback", COHORT)
    assert (done.returncode, done.stderr) == (0, "")
    head, *lines = done.stdout.splitlines()
    assert head.startswith(f"{COHORT} · 20")
    assert head.endswith(
        " · 3 cards · 130 of 1,200 tokens · agent claude · session s1 · project 燕子"
    )
    assert lines == [
        "-         F_0001  detail, 40 tokens  快照保留四份",
        "-         F_0002  overview, 40 tokens  恢复演练",
        f"-         {place.refs['c.md']}  locator, 40 tokens  The gateway port",
        "left out: stale 2",
    ]
    done = homes.command(
        place.home, "feedback", COHORT.lower(), "--adopted", "F_0001, b.md", "--ignored", "c.md",
        "--adopted", "a.md", "--agent", "me", "--session", "s2",
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"adopted F_0001, F_0002\nignored {place.refs['c.md']}\n"
    by = {"surface": "cli", "agent": "me", "session": "s2"}
    assert [event["by"] for event in homes.events(place.home, "feedback")] == [by] * 3
    done = homes.command(place.home, "feedback", COHORT, "--rejected", "F_0002，F_0001", "--json")
    assert json.loads(done.stdout) == {
        "cohort": COHORT, "adopted": [], "rejected": ["F_0002", "F_0001"], "ignored": [],
        "unchanged": [],
    }  # fmt: skip
    shown = json.loads(homes.command(place.home, "feedback", COHORT, "--json").stdout)
    assert [card["verdict"] for card in shown["cards"]] == ["rejected", "rejected", "ignored"]
    assert shown["left_out"] == {"stale": 2} and shown["more"] == 0
    place.holds()


def test_the_command_refuses(place):
    def run(*arguments):
        done = homes.command(place.home, "feedback", *arguments)
        assert "Traceback" not in done.stderr and done.stderr.startswith("Error: ")
        return done.returncode, done.stderr.removeprefix("Error: ")

    assert run("01M8REXWA2XCAX90")[0] == 1
    assert run(COHORT, "--adopted", "nobody")[0] == 1
    code, line = run(COHORT, "--adopted", "F_0003")
    assert (code, line.partition(";")[0]) == (
        2, f"'F_0003' is not among the cards of the cohort {COHORT}",
    )  # fmt: skip
    assert run(COHORT, "--adopted", ",")[0] == 2
    assert run(COHORT, "--adopted", "F_0001", "--ignored", "F_0001")[0] == 2
    assert run()[0] == 2
    assert place.events() == []
