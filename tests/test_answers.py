"""What an agent is shown: whole where there is room, cut where not, and always said."""

import json

from hypothesis import given
from hypothesis import strategies as st

from datasette_memory import answers
from datasette_memory.changes import Change
from datasette_memory.memory import Shown
from datasette_memory.search.hits import Hit, SearchResult
from datasette_memory.text.window import Window


def written(value) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def hit(number: int, **fields) -> Hit:
    values = {
        "id": number, "ref": f"D_{number:04}", "path": f"09-Decisions/{number}.md",
        "title": f"Card {number}", "kind": "decision", "source": "vault", "score": 12.34567,
        "matched": "all-prefix", "coverage": 1 / 3, "snippet": "a word in its place",
        "highlights": ((2, 6),),
    }  # fmt: skip
    return Hit(**(values | fields))


def test_a_hit_is_a_line_of_text_and_an_object():
    result = SearchResult("word", "all-prefix", (hit(1), hit(2, expired=True)), "Low confidence.")
    answer = answers.search(result)
    assert answer.text.splitlines() == [
        "D_0001 Card 1 (decision, all-prefix) a word in its place",
        "D_0002 Card 2 (decision, all-prefix, expired) a word in its place",
        "Low confidence.",
    ]
    assert answer.data["hits"][0] == {
        "id": 1, "ref": "D_0001", "path": "09-Decisions/1.md", "title": "Card 1",
        "kind": "decision", "source": "vault", "score": 12.3457, "matched": "all-prefix",
        "coverage": 0.333, "snippet": "a word in its place", "highlights": [[2, 6]],
    }  # fmt: skip
    assert answer.data["hits"][1]["expired"] is True
    assert (answer.data["tier"], answer.data["count"]) == ("all-prefix", 2)


def test_a_title_of_two_lines_is_still_one_line():
    answer = answers.search(SearchResult("w", "all", (hit(1, title="two\nlines", snippet="\n"),)))
    assert answer.text == "D_0001 two lines (decision, all-prefix)"


_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=500)


@given(
    st.lists(st.tuples(_TEXTS, _TEXTS, st.text('"\\\n字a', max_size=400)), min_size=1, max_size=20),
    st.text(max_size=300),
)
def test_five_hits_are_2000_characters_and_twenty_are_an_answer(fields, query):
    hits = tuple(
        hit(
            number,
            title=title,
            path=path,
            snippet=snippet,
            highlights=tuple((at, at + 2) for at in range(0, len(snippet) - 2, 20)),
        )
        for number, (title, path, snippet) in enumerate(fields, 1)
    )
    answer = answers.search(SearchResult(query, "any", hits, "n" * 140))
    assert len(answer.data["hits"]) == len(hits)
    assert len(written(answer.data)) <= (2_000 if len(hits) <= 5 else 7_500)
    assert len(answer.text) <= 7_500
    for shown, given_hit in zip(answer.data["hits"], hits):
        assert shown["ref"] == given_hit.ref
        for start, end in shown["highlights"]:
            # It still points at the same words.
            assert shown["snippet"][start:end] == given_hit.snippet[start:end]


def card(**fields) -> dict:
    known = {
        "id": 7, "ref": "D_0007", "path": "09-Decisions/x.md", "source": "vault", "title": "X",
        "kind": "decision", "updated": "2026-03-01T08:00:00+08:00", "tags": ["a", "b"],
        "project": None, "superseded_by": None, "expired": False, "refs": {}, "extra": {},
        "version": 2, "relations": [{"type": "caused_by", "target": "X_0001", "title": "Y"}],
    }  # fmt: skip
    return known | fields


def test_a_card_is_told_with_what_matters_and_without_what_says_nothing():
    answer = answers.card(Shown(card(), Window("body", 0, 4)))
    assert answer.text == (
        "D_0007 X\ndecision · updated 2026-03-01 · tags a, b\nrelations: caused_by X_0001\n\nbody"
    )
    assert answer.data["text"] == "body" and answer.data["has_more"] is False
    assert {"project", "superseded_by", "refs", "extra"}.isdisjoint(answer.data)


def test_that_a_card_is_superseded_or_has_an_original_is_in_the_text():
    told = answers.card(
        Shown(card(superseded_by="D_0009", refs={"evidence": ["ab"]}), Window("b", 0, 1))
    ).text
    assert "SUPERSEDED by D_0009" in told and "memory_raw" in told


@given(st.text('字"\n\\a', min_size=1, max_size=300), st.integers(1, 120), _TEXTS)
def test_pages_of_a_card_are_small_and_join_to_the_whole(piece, times, noise):
    whole = piece * times
    extra = card(title=noise, extra={noise: noise * 9}, aliases=[noise] * 9)
    at, joined = 0, ""
    while at is not None:
        answer = answers.card(Shown(extra, Window(whole[at:], at, len(whole))))
        assert len(written(answer.data)) <= 7_500 and len(answer.text) <= 7_500
        joined += answer.data["text"]
        if at := answer.data["next_offset"]:
            assert f"offset {at}" in answer.text
        assert (at is not None) == answer.data["has_more"]
    assert joined == whole


def test_a_page_behind_the_end_says_so():
    assert answers.card(Shown(card(), Window("", 4, 4))).text.endswith("ends at character 4]")


def test_pages_of_related_cards_join_to_all():
    cards = [
        {
            "id": n, "ref": f"N_{n:04}", "title": "t" * 150, "kind": "note", "source": "vault",
            "path": "p" * 100, "depth": 1, "type": "refers_to", "outgoing": False, "via": "D_0001",
            "superseded_by": None,
        }
        for n in range(100)
    ]  # fmt: skip
    found = {"ref": "D_0001", "title": "T", "depth": 1, "count": 100, "cards": cards}
    at, seen = 0, []
    while at is not None:
        answer = answers.related(found, at)
        assert len(written(answer.data)) <= 7_500 and len(answer.text) <= 7_500
        seen += [one["ref"] for one in answer.data["cards"]]
        at = answer.data["next_offset"]
    assert seen == [f"N_{n:04}" for n in range(100)]
    assert "refers_to <- N_0000" in answers.related(found, 0).text


def test_a_refused_change_is_a_failure_and_says_why():
    answer = answers.change(Change("rejected", reason="the body says too little"))
    assert answer.failed and "the body says too little" in answer.text
    done = answers.change(
        Change(
            "created", 1, "D_0001", "x.md", True, 1,
            similar=[{"ref": "D_0002", "path": "y.md", "score": 0.9}],
            warnings=["something in it looks like a credential: token"],
        )
    )  # fmt: skip
    assert not done.failed
    first, near, warning = done.text.splitlines()
    assert first == "created D_0001 x.md" and "D_0002" in near and "credential" in warning


def test_statistics_of_a_thousand_projects_say_how_many_are_left_out():
    figures = {
        "cards": 1000, "by_kind": {"note": 1000}, "by_source": {"vault": 1000},
        "by_project": {f"project number {n}": 1 for n in range(1000)}, "tags": 0, "links": 0,
        "broken_links": 0, "superseded": 0, "faults": 0, "updated_last": None, "synced_last": None,
        "index_bytes": 1,
    }  # fmt: skip
    answer = answers.stats(figures)
    assert len(written(answer.data)) <= 7_500 and len(answer.text) <= 7_500
    kept = len(answer.data["by_project"])
    assert answer.data["more"] == {"by_project": 1000 - kept} and 0 < kept < 1000
    assert f"and {1000 - kept} more" in answer.text


def test_what_an_index_skipped_is_counted():
    found = {
        "added": 1, "updated": 0, "moved": 0, "removed": 0, "unchanged": 2, "secret": 0,
        "skipped": [{"source": "s", "path": f"{n}.md", "reason": "too large"} for n in range(30)],
        "faults": [], "notes": [], "seconds": 0.1,
    }  # fmt: skip
    answer = answers.synced(found)
    assert answer.text.splitlines()[0] == "1 added, 0 updated, 0 moved, 0 removed, 2 unchanged"
    assert "skipped 0.md: too large" in answer.text and "25 more were skipped" in answer.text
