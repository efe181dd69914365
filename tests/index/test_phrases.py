"""What a text names of an index."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasette_memory.context.gate import decide
from datasette_memory.index.connection import sqlite3
from datasette_memory.index.phrases import known_in

CARDS = {
    "k.md": "---\ntitle: 阿里云 私钥\naliases: [云上钥匙, deploy key]\ntags: [Redis, 值班表, 甲项]\nproject: 甲项\n---\n",
    "c.md": "---\ntitle: Cache policy\ntags: [ecs-prod]\nproject: Billing\n---\n",
    "cpp.md": "---\ntitle: C++ 规范\nproject: 云\n---\n",
    "Cache policy.md": "---\ntitle: something else\nproject: QA\n---\n",
    "x.md": "---\nid: D_0001\ntitle: 大小\nproject: 数据平台二期\n---\n",
}


@pytest.fixture
def known(folder, index):
    for path, text in CARDS.items():
        folder.write(path, text)
    index.sync(folder)
    with contextlib.closing(sqlite3.connect(index.path)) as connection:
        yield lambda text: known_in(connection, text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("阿里云 私钥", [("title", "阿里云 私钥")]),
        ("继续看阿里云  私钥的事", [("title", "阿里云 私钥")]),
        ("关于云上钥匙，改一下", [("alias", "云上钥匙")]),
        ("the DEPLOY key again", [("alias", "DEPLOY key")]),
        ("cache policy!", [("title", "cache policy")]),
        ("(Cache Policy)", [("title", "Cache Policy")]),
        ("cache-policy", []),
        ("precache policy", []),
        ("C++ 规范呢", [("title", "C++ 规范")]),
        ("值班表", [("tag", "值班表")]),
        ("值班表格", [("tag", "值班表")]),
        ("REDIS", [("tag", "REDIS")]),
        ("ecs-prod/redis", [("tag", "ecs-prod"), ("tag", "redis")]),
        ("ecs prod", []),
        ("甲项", [("project", "甲项")]),
        ("甲项呢", [("project", "甲项")]),
        ("qa", [("project", "qa")]),
        ("billing", [("project", "billing")]),
        ("云", []),
        ("大小", []),
        ("数据平台二期怎么样了", [("project", "数据平台二期")]),
        ("數據平台二期", [("project", "数据平台二期")]),
        ("ＢＩＬＬＩＮＧ", [("project", "BILLING")]),
        ("D_0001", []),
        ("", []),
        ("\x00\ud800 甲项", [("project", "甲项")]),
    ],
)
def test_what_stands_in_a_text(known, text, found):
    assert known(text) == found


def test_a_name_shared_by_a_file_and_a_title_is_a_title(known):
    # "Cache policy" is the title of one card and the file name of another.
    assert known("cache policy") == [("title", "cache policy")]


def test_the_longest_come_first(known):
    found = known("甲项 redis 阿里云 私钥 cache policy")
    assert [phrase for _, phrase in found] == ["cache policy", "阿里云 私钥", "redis", "甲项"]


def test_a_long_text_is_read_at_its_beginning(known):
    assert known("甲项 " + "好的 " * 50_000) == [("project", "甲项")]
    assert known("好的 " * 50_000 + "甲项") == []


def test_twenty_are_told_at_the_most(folder, index):
    for number in range(30):
        folder.write(f"n{number}.md", f"---\ntitle: card {number}\n---\n")
    index.sync(folder)
    with contextlib.closing(sqlite3.connect(index.path)) as connection:
        text = ", ".join(f"card {number}" for number in range(30))
        assert len(known_in(connection, text)) == 20


@given(text=st.text(max_size=200))
def test_any_text_can_be_asked(text):
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("create table names (key, card_id, rank)")
        connection.execute("create table tags (card_id, tag)")
        connection.execute("create table cards (id, title, aliases, project)")
        assert known_in(connection, text) == []


def test_the_work_does_not_grow_with_the_index(folder, index):
    """Counted in steps of SQLite's virtual machine, over cards that share title, tag and project."""

    def steps() -> int:
        with contextlib.closing(sqlite3.connect(index.path)) as connection:
            count = 0

            def step():
                nonlocal count
                count += 1

            connection.set_progress_handler(step, 1)
            found = known_in(connection, "shared title of 甲项 and 值班表")
            assert [kind for kind, _ in found] == ["title", "tag", "project"]
            return count

    text = "---\ntitle: shared title\ntags: [值班表]\nproject: 甲项\n---\n"
    for number in range(10):
        folder.write(f"{number}.md", text)
    index.sync(folder)
    few = steps()
    for number in range(10, 400):
        folder.write(f"{number}.md", text)
    index.sync(folder)
    assert steps() < few * 1.1


def test_a_project_opens_the_gate(folder, index):
    # 二次 is made of common characters: by itself the gate takes it for nothing.
    folder.write("p.md", "---\ntitle: Plan\nproject: 二次\n---\n")
    index.sync(folder)
    with contextlib.closing(sqlite3.connect(index.path)) as connection:
        decision = decide("二次 继续", lambda prompt: known_in(connection, prompt))
    assert decision.anchors == ("project:二次",)
    assert not decide("二次 继续").open
