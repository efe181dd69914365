"""What one would ask of the sample vault, and the card that has to come first."""

import contextlib
from pathlib import Path

import pytest

from datasette_memory.index.connection import sqlite3
from datasette_memory.index.migrations import migrate
from datasette_memory.index.sync import sync
from datasette_memory.search.sqlite import SQLiteSearcher
from datasette_memory.vault.sources import Source

VAULT = Path(__file__).resolve().parents[2] / "examples" / "vault"


@pytest.fixture(scope="module")
def searcher():
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate(connection)
        result = sync(connection, [Source("vault", str(VAULT))])
        assert (result.added, result.faults, result.skipped) == (63, [], [])
        yield SQLiteSearcher(connection)


@pytest.mark.parametrize(
    "query, acceptable",
    [
        ("私钥", ["21-Policies/私钥与凭据保管规则", "03-Knowledge/SSH-免密登录配置"]),
        ("免密登录", ["03-Knowledge/SSH-免密登录配置"]),
        ("运维", ["17-Notes/运维值班速查"]),
        ("备份", ["09-Decisions/备份改为快照加-WAL-归档", "08-Mistakes/备份脚本覆盖了前一天的快照"]),
        ("端口", ["18-References/端口分配表", "12-Facts/tern-notes-监听端口-8025",
                  "19-Sessions/2026-07-02-端口变更讨论"]),
        ("证书", ["08-Mistakes/证书续期后忘了重载-nginx"]),
        ("回滚", ["20-Skills/回滚一次发布", "13-Episodes/回滚-v2.3.0-的四十分钟"]),
        ("缓存", ["03-Knowledge/缓存击穿穿透与雪崩"]),
        ("阿里云", ["00-System/ecs-prod-02-服务器台账", "00-System/ecs-prod-01-边缘节点",
                    "06-Business/云资源费用-2026-第三季度"]),
        ("全文检索", ["03-Knowledge/中文全文检索为什么要切二元组", "09-Decisions/全文检索用-SQLite-FTS5"]),
        ("站点根目录", ["03-Knowledge/nginx-站点根目录与-alias"]),
        ("资料库 索引", ["03-Knowledge/資料庫索引與快取筆記"]),
        ("userById", ["08-Mistakes/N-plus-one-queries-in-getUserById", "10-Code/getUserById-批量化"]),
        ("FTS5_TOKENIZER", ["03-Knowledge/中文全文检索为什么要切二元组",
                            "16-Handoffs/Handoff-index-rebuild-on-stage"]),
        ("C:\\Tools\\bin", ["07-Tools/Windows-跳板机的工具目录"]),
        ("zurich cafe", ["06-Business/Café-workshop-in-Zürich"]),
        ("検索API タイムアウト", ["13-Episodes/障害メモ-検索APIのタイムアウト"]),
        ("stage_trial replication slot", ["13-Episodes/Incident-log-disk-full-on-ecs-prod-02"]),
    ],
)  # fmt: skip
def test_the_first_hit(query, acceptable, searcher):
    result = searcher.search(query)
    assert result.tier == "all"
    assert result.hits[0].path.removesuffix(".md") in acceptable


@pytest.mark.parametrize(
    "query, acceptable",
    [
        (
            "快照",
            ["08-Mistakes/备份脚本覆盖了前一天的快照", "09-Decisions/备份改为快照加-WAL-归档"],
        ),
        ("限流", ["09-Decisions/限流改用-Redis-共享令牌桶"]),
    ],
)
def test_the_first_two_hits(query, acceptable, searcher):
    # Every column weighs the same, so a card that says the word three times in its body may stand
    # before the one that has it in its title.
    result = searcher.search(query, limit=2)
    assert result.tier == "all"
    assert {hit.path.removesuffix(".md") for hit in result.hits} & set(acceptable)


def test_simplified_finds_traditional(searcher):
    paths = [hit.path for hit in searcher.search("备份", limit=20).hits]
    assert "17-Notes/臺北出差的網路筆記.md" in paths


def test_there_are_just_three_about_the_cloud(searcher):
    hits = searcher.search("阿里云", limit=20).hits
    assert {hit.path for hit in hits if hit.matched == "all"} == {
        "00-System/ecs-prod-02-服务器台账.md",
        "00-System/ecs-prod-01-边缘节点.md",
        "06-Business/云资源费用-2026-第三季度.md",
    }


def test_the_rules_that_were_replaced_are_counted(searcher):
    result = searcher.search("限流", limit=20)
    assert not {"D_0001", "D_0002"} & {hit.ref for hit in result.hits}
    assert "2 superseded cards are left out." in result.notice
    shown = searcher.search("限流", limit=20, superseded=True)
    assert {"D_0001", "D_0002"} <= {hit.ref for hit in shown.hits}
