"""The links of a card, both ways."""

import sqlite3

import pytest

from datasette_memory.index.neighbours import neighbours


@pytest.fixture
def connection(index_file):
    connection = sqlite3.connect(index_file())
    yield connection
    connection.close()


def seen(connection, ref: str) -> list[tuple]:
    card_id = connection.execute("select id from cards where ref = ?", (ref,)).fetchone()[0]
    refs = dict(connection.execute("select id, ref from cards"))
    return [
        (link.outgoing, link.type, link.target, refs.get(link.card_id), link.title)
        for link in neighbours(connection, card_id)
    ]


def test_outgoing_links_come_first_and_broken_ones_are_kept(connection):
    assert seen(connection, "D_0001") == [
        (True, "caused_by", "I_0404", None, None),
        (True, "refers_to", "旧决定.md", "D_0002", "全文检索用外部服务"),
        (True, "refers_to", "端口约定", "F_0001", "端口约定"),
        (True, "supersedes", "D_0002", "D_0002", "全文检索用外部服务"),
    ]


def test_incoming_links_are_told_once_for_each_card_and_type(connection):
    title = "全文检索用二元组"
    assert seen(connection, "D_0002") == [
        (False, "refers_to", None, "D_0001", title),
        (False, "supersedes", None, "D_0001", title),
    ]
    connection.execute(
        "insert into links (card_id, type, target, target_id, origin) select a.id, 'refers_to', "
        "'D_0002', b.id, 'body' from cards a, cards b where a.ref = 'D_0001' and b.ref = 'D_0002'"
    )
    assert len([link for link in seen(connection, "D_0002") if not link[0]]) == 2


def test_a_card_without_links_and_one_that_is_not_there(connection):
    assert seen(connection, "C_0001") == []
    assert neighbours(connection, 10_000) == []
