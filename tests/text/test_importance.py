"""What the terms of a query weigh, and which queries are keywords."""

import pytest

from datasette_memory.text.importance import (
    are_keywords,
    are_plain,
    are_together,
    may_be_name,
    weights,
)
from datasette_memory.text.query import parse


@pytest.mark.parametrize(
    "query, expected",
    [
        ("backup", [1.0]),
        ("where is the backup", [0.1, 0.1, 0.1, 1.0]),
        ("备份", [1.0]),
        # 什么 asks; 份的 goes across a particle.
        ("备份的规则", [1.0, 0.5, 0.5, 1.0]),
        ("什么备份", [0.1, 1.0, 1.0]),
        # Beside Chinese a Latin word is a name; a common one is common all the same.
        ("ecs-prod 备份", [2.0, 1.0]),
        ("the 备份", [0.2, 1.0]),
        # Grammar in kana: both characters, one of them, none.
        ("です", [0.4]),
        ("東で", [0.6]),
        ("東京", [1.0]),
        ("カメラ", [1.0, 1.0]),
        ("", []),
    ],
)
def test_weights(query, expected):
    assert list(weights(parse(query))) == pytest.approx(expected)


@pytest.mark.parametrize(
    "query",
    ["备份", "ecs-prod-01", "阿里云 私钥", "边缘节点 台账", "getUserById", "v1.2.3", "a b c", "快"],
)
def test_keywords(query):
    expected = query != "a b c"
    assert are_keywords(parse(query)) == expected


@pytest.mark.parametrize(
    "query",
    ["", "怎么备份", "where backup", "one two three four", "数据库备份脚本覆盖", "です"],
)
def test_questions(query):
    assert not are_keywords(parse(query))


def test_a_common_word_may_stand_between_two_others():
    assert are_keywords(parse("user by id")) and are_together(parse("user by id"))
    assert not are_together(parse("user id")) and not are_together(())
    for query in ("by user id", "user id by", "who is user", "用户 by 编号"):
        assert not are_keywords(parse(query))


def test_what_may_be_a_name():
    assert may_be_name(parse("运维值班速查")) and may_be_name(parse("八月事故日志"))
    for query in ("", "怎么备份数据库", "Which card is it", "一二三四五六七八九十百千万亿"):
        assert not may_be_name(parse(query))


def test_keywords_with_a_particle_in_them():
    for query in ("证书 到期", "备份的规则", "東で"):
        assert are_keywords(parse(query)) and not are_plain(parse(query))
    assert are_plain(parse("证书 备份"))
    assert not are_plain(())
