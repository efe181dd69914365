"""What a new session should know: which cards, and in what order."""

from datetime import datetime, timezone

import pytest

from datasette_memory.search.brief import sections

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=timezone.utc)


def text(kind: str, title: str, updated: str = "2026-11-30T12:00:00+00:00", **fields) -> str:
    lines = [f"kind: {kind}", f"title: {title}", f"updated: {updated}"]
    lines += [f"{key}: {value}" for key, value in fields.items()]
    return "---\n" + "\n".join(lines) + f"\n---\nThe text of {title}.\n"


@pytest.fixture
def titles(make_searcher):
    """`titles(texts, stats={}, **options)`: the titles by section."""

    def make(*texts: str, stats=None, **options) -> dict[str, list[str]]:
        connection = make_searcher({f"{n}.md": one for n, one in enumerate(texts)}).connection
        for title, values in (stats or {}).items():
            names = ", ".join(values)
            connection.execute(
                f"insert or replace into card_stats (card_id, {names}) select id"
                f"{', ?' * len(values)} from cards where title = ?",
                [*values.values(), title],
            )
        found = sections(connection, now=NOW, **options)
        assert [name for name, _ in found] == ["handoffs", "signals", "decisions", "top"]
        return {name: [one.title for one in cards] for name, cards in found}

    return make


def test_handoffs_and_signals_that_are_alive(titles):
    found = titles(
        text("handoff", "H yesterday"),
        text("handoff", "H today", "2026-12-01T08:00:00+00:00"),
        text("handoff", "H a minute too old", "2026-11-17T11:59:00+00:00"),
        text("handoff", "H just alive", "2026-11-17T12:01:00+00:00"),
        text("handoff", "H done", tags="[Done]"),
        text("handoff", "H finished", tags="[已完成]"),
        text("handoff", "H closed", tags="[closed]"),
        text("handoff", "H expired", valid_until="2026-11-30"),
        text("handoff", "H over", created="2026-11-25T12:00:00+00:00", ttl=6),
        text("handoff", "H replaced", superseded_by="H today"),
        text("handoff", "H private", sensitivity="private"),
        text("handoff", "H secret", sensitivity="secret"),
        text("signal", "S alive"),
        text("signal", "S stale", tags="[过期]"),
        text("note", "N"),
    )
    assert found == {
        "handoffs": ["H today", "H yesterday", "H just alive"],
        "signals": ["S alive"],
        "decisions": [],
        "top": [],
    }


def test_decisions_of_ninety_days_by_priority_and_then_by_date(titles):
    found = titles(
        text("decision", "D old and dear", "2026-09-02T12:01:00+00:00", priority=2),
        text("decision", "D new"),
        text("decision", "D newer", "2026-12-01T08:00:00+00:00"),
        text("decision", "D too old", "2026-09-02T11:59:00+00:00", priority=9),
    )
    assert found["decisions"] == ["D old and dear", "D newer", "D new"]


def test_the_cards_that_are_used_most_lately(titles):
    # Half-lives: knowledge 180 days, episode 30. 6 read 30 days ago are 3, 3 of yesterday
    # just below 3, one read and one support of today 2, and 7 of 60 days ago 7 / 4.
    found = titles(
        text("episode", "E read a lot"),
        text("knowledge", "K read"),
        text("knowledge", "K supported"),
        text("episode", "E adopted"),
        text("knowledge", "K never"),
        text("handoff", "H read"),
        stats={
            "E read a lot": {"reads": 7, "last_read": "2026-10-02T12:00:00+00:00"},
            "K read": {"reads": 3, "last_read": "2026-11-30T12:00:00+00:00"},
            "K supported": {"reads": 1, "support": 1, "last_read": "2026-12-01T12:00:00+00:00"},
            "E adopted": {"reads": 6, "last_read": "2026-11-01T12:00:00+00:00"},
            "K never": {"reads": 0, "contradict": 1},
            "H read": {"reads": 50, "last_read": "2026-12-01T11:00:00+00:00"},
        },
    )
    assert found["top"] == ["E adopted", "K read", "K supported", "E read a lot"]


def test_a_project_and_private_cards_on_demand(titles):
    texts = (
        text("decision", "D orchid", project="orchid"),
        text("decision", "D tern", project="tern"),
        text("decision", "D private", project="orchid", sensitivity="private", priority=-1),
    )
    assert titles(*texts, project="Orchid")["decisions"] == ["D orchid"]
    assert titles(*texts, project="orchid", private=True)["decisions"] == ["D orchid", "D private"]


def test_no_more_than_asked_for(titles):
    texts = [text("signal", f"S {n}", f"2026-11-30T12:{n:02}:00+00:00") for n in range(15)]
    assert titles(*texts)["signals"] == [f"S {n}" for n in range(14, 4, -1)]
    assert titles(*texts, limit=2)["signals"] == ["S 14", "S 13"]


def test_a_candidate_holds_what_the_card_says(make_searcher):
    card = text(
        "decision", "D", tags="[a, b]", keywords="[k]", aliases="[x]", project="p", confidence=0.9,
        refs="{urls: [https://example.org/]}", summary="In short.", version=3,
    )  # fmt: skip
    connection = make_searcher({"d.md": card}).connection
    ((_, (one,)),) = [entry for entry in sections(connection, now=NOW) if entry[1]]
    assert (one.tags, one.keywords, one.aliases, one.project) == (("a", "b"), ("k",), ("x",), "p")
    assert (one.confidence, one.summary, one.version) == (0.9, "In short.", 3)
    assert one.refs == {"urls": ["https://example.org/"]}
    assert one.body.strip() == "The text of D." and one.length == len(one.body)
    assert (one.reads, one.support, one.last_read, one.origin) == (0, 0, None, "brief")
