import pytest

from datasette_memory.context.periods import asks_for_history, named_days

from .conftest import NOW


@pytest.mark.parametrize(
    "text, days",
    [
        ("2025 年的值班表", ("2025-01-01", "2025-12-31")),
        ("２０２５年的值班表", ("2025-01-01", "2025-12-31")),
        ("the plan of 2025", ("2025-01-01", "2025-12-31")),
        ("2025年3月的计划", ("2025-03-01", "2025-03-31")),
        ("since 2025-03-07?", ("2025-03-07", "2025-03-07")),
        ("2025/3/7 那天", ("2025-03-07", "2025-03-07")),
        ("2024 到 2026 的变化", ("2024-01-01", "2026-12-31")),
        ("去年的预算", ("2025-01-01", "2025-12-31")),
        ("next year's budget", ("2027-01-01", "2027-12-31")),
    ],
)
def test_a_question_names_days(text, days):
    assert named_days(text, NOW) == days


@pytest.mark.parametrize(
    "text",
    [
        "端口 8081",
        "D_2025",
        "v2025.1",
        "10.2025.3",
        "host:2025",
        "#2025",
        "12025",
        "2025px",
        "备份",
    ],
)
def test_other_numbers_are_no_days(text):
    assert named_days(text, NOW) is None


@pytest.mark.parametrize(
    "text", ["以前怎么部署", "部署的歷史", "Who ran it previously?", "as of 2025", "2025-03 的故障"]
)
def test_a_question_about_what_was(text):
    assert asks_for_history(text, NOW)


@pytest.mark.parametrize(
    "text", ["上线之前要做什么", "怎么部署", "2026 年计划", "the past tense form"]
)
def test_a_question_about_what_is(text):
    assert not asks_for_history(text, NOW)
