"""The stages together, their trace, and files that say more than the index."""

import os
from pathlib import Path

import pytest

from datasette_memory.search.pipeline import run
from datasette_memory.search.stages import DEFAULT

from .made import NOW, ago, ask, card

QUESTION = ask("备份")


def test_stages_run_in_the_order_of_the_table_whatever_the_order_of_their_names():
    hits = [card(1, 4.0, contradict=3), card(2, 3.0)]
    ranked, trace = run(hits, QUESTION, ["feedback", "mix"])
    # 4 / 4 * 0.7 against 3 / 4
    assert [(one.id, round(one.score, 4)) for one in ranked] == [(2, 0.75), (1, 0.7)]
    on = [stage["name"] for stage in trace.to_dict()["stages"] if stage["on"]]
    assert on == ["mix", "feedback"]


def test_a_stage_that_is_none_is_named():
    with pytest.raises(ValueError, match="no such stage: magic"):
        run([], QUESTION, ["magic", "mix"])


def test_nothing_in_nothing_out():
    ranked, trace = run([], QUESTION)
    assert (ranked, trace.to_dict()["candidates"]) == ([], [])
    assert trace.table()


def test_the_trace_tells_what_each_stage_did_to_each_card():
    hits = [
        card(1, 4.0, ref="D_0001", lexical_rank=1, vector_rank=2, contradict=3),
        card(2, 3.0, ref="D_0002", lexical_rank=2),
        card(3, 2.0, ref="D_0003", lexical_rank=3, superseded_by="D_0001"),
    ]
    ranked, trace = run(hits, QUESTION, ["mix", "feedback", "supersession"])
    assert [one.ref for one in ranked] == ["D_0002", "D_0001"]
    rows = {row["ref"]: row for row in trace.to_dict()["candidates"]}
    first = rows["D_0001"]
    assert (first["lexical_rank"], first["vector_rank"], first["place"]) == (1, 2, 1)
    assert first["stages"] == [
        {"name": "mix", "score_before": 4.0, "score": 1.0, "place_before": 1, "place": 1,
         "note": ""},
        {"name": "feedback", "score_before": 1.0, "score": 0.7, "place_before": 1, "place": 2,
         "note": "times 0.70 (0 for it, 3 against)"},
        {"name": "supersession", "score_before": 0.7, "score": 0.7, "place_before": 2, "place": 2,
         "note": ""},
    ]  # fmt: skip
    assert (first["final_place"], first["outcome"], first["reason"]) == (2, "included", "")
    gone = rows["D_0003"]
    assert (gone["outcome"], gone["reason"]) == (
        "excluded",
        "supersession: it is superseded by D_0001",
    )
    assert (gone["final_place"], gone["stages"][-1]["score"]) == (None, None)
    assert [(one.candidate.ref, one.stage, one.reason) for one in trace.removed()] == [
        ("D_0003", "supersession", "it is superseded by D_0001")
    ]


def test_a_verdict_of_the_firewall_is_told_too():
    hits = [card(1, 4.0), card(2, 3.0), card(3, 2.0)]
    _, trace = run(hits, QUESTION)
    trace.judge(2, "demoted", "contested: another card contradicts it")
    trace.judge(3, "excluded", "duplicate: of K_0001")
    rows = trace.to_dict()["candidates"]
    assert [(row["outcome"], row["reason"]) for row in rows] == [
        ("included", ""),
        ("demoted", "contested: another card contradicts it"),
        ("excluded", "duplicate: of K_0001"),
    ]


def test_the_table_has_a_line_a_card_with_its_columns_below_each_other():
    hits = [
        card(
            1, 4.0, ref="D_0001", title="备份策略", lexical_rank=1, updated=ago(60), created=ago(60)
        ),
        card(2, 3.0, ref="D_0002", title="a long title of a card that is cut", lexical_rank=2),
    ]
    _, trace = run(hits, QUESTION)
    head, first, second, *rest = trace.table().splitlines()
    assert head.split() == [
        "#", "ref", "title", "words", "vector", "tier", "score", "mix", "decay", "outcome",
    ]  # fmt: skip
    assert first.split() == [
        "1", "D_0001", "备份策略", "1", "-", "any", "4.0000", "1.0000", "0.9772", "included",
    ]  # fmt: skip
    assert "a long title of a card that…" in second
    assert any(
        "confidence 1.00, coefficient 0.79 (60 days, half-life 180)" in line for line in rest
    )
    assert rest[-1] == "terms and their worth: 备份 1.00"


LAGGING = {
    "a.md": "---\nid: D_0001\n---\n# 备份一\n\n每天备份。",
    "b.md": "---\nid: D_0002\n---\n# 备份二\n\n每周备份。",
    "备份三.md": "---\nid: D_0003\n---\n# 备份三\n\n每月备份。",
}


def replaced(text: str) -> str:
    return text.replace("---\n#", "superseded_by: D_0009\n---\n#")


@pytest.mark.parametrize(
    "change, reason",
    [
        (lambda file: file.write_text(replaced(file.read_text("utf-8")), "utf-8"),
         "its file says that it is superseded by D_0009"),
        (lambda file: file.write_text("---\nsensitivity: secret\n---\n备份的密码", "utf-8"),
         "its file says that it is secret"),
        (lambda file: file.unlink(), "its file is gone"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["b.md", "备份三.md"])
def test_the_file_decides_where_the_index_lags_behind(change, reason, name, make_searcher):
    searcher = make_searcher(LAGGING)
    (root,) = searcher.connection.execute("select root from sources").fetchone()
    change(Path(root, name))
    found = searcher.candidates("备份")
    assert len(found.candidates) == 3
    ranked, trace = run(found.candidates, found.question(NOW), connection=searcher.connection)
    assert name not in {one.path for one in ranked}
    assert len(ranked) == 2
    assert [(one.candidate.path, one.reason) for one in trace.removed()] == [(name, reason)]


def test_a_change_that_replaces_nothing_takes_nothing_out(make_searcher):
    searcher = make_searcher(LAGGING)
    (root,) = searcher.connection.execute("select root from sources").fetchone()
    with open(os.path.join(root, "a.md"), "a", encoding="utf-8") as file:
        file.write("\n又一行，提到 superseded_by: D_0009。")
    found = searcher.candidates("备份")
    ranked, _ = run(found.candidates, found.question(NOW), connection=searcher.connection)
    assert len(ranked) == 3


def test_a_source_that_is_not_there_keeps_its_cards(make_searcher):
    searcher = make_searcher(LAGGING)
    (root,) = searcher.connection.execute("select root from sources").fetchone()
    os.rename(root, f"{root}-unmounted")
    found = searcher.candidates("备份")
    ranked, _ = run(found.candidates, found.question(NOW), connection=searcher.connection)
    assert len(ranked) == 3


def test_a_link_that_leads_out_is_not_read(make_searcher, tmp_path):
    searcher = make_searcher(LAGGING)
    (root,) = searcher.connection.execute("select root from sources").fetchone()
    outside = tmp_path / "outside.md"
    outside.write_text(replaced(LAGGING["b.md"]), "utf-8")
    os.unlink(os.path.join(root, "b.md"))
    os.symlink(outside, os.path.join(root, "b.md"))
    found = searcher.candidates("备份")
    ranked, _ = run(found.candidates, found.question(NOW), connection=searcher.connection)
    assert len(ranked) == 3


def test_governed_recall_uses_what_it_is_for():
    assert {"decay", "feedback", "stale-state", "supersession"} <= set(DEFAULT)
