"""References are counted up, and none is given twice."""

import pytest

from datasette_memory.index import numbers
from datasette_memory.index.connection import connect_write, transaction
from datasette_memory.index.migrations import migrate


@pytest.fixture
def connection(tmp_path):
    connection = connect_write(tmp_path / "memory.db")
    migrate(connection)
    yield connection
    connection.close()


def card(connection, ref, source="vault"):
    connection.execute(
        "insert into cards (ref, title, kind, source, path, body, summary) "
        "values (?, 'T', 'note', ?, ?, '', '')",
        (ref, source, f"{ref}.md"),
    )


def test_the_first(connection):
    assert numbers.following(connection, "D") == "D_0001"
    assert numbers.following(connection, "SYS", ["D_0004"]) == "SYS_0001"


def test_one_more_than_the_highest_anywhere(connection):
    card(connection, "D_0007")
    connection.execute(
        "insert into events (id, t, kind, ref, data, host, line) "
        "values ('1', '', 'created', 'D_0011', '{}', '', 1)"
    )
    with transaction(connection):
        numbers.refresh(connection, ["D_0009", "F_0002", "nonsense", "Q_0099", "D_12x"])
    assert numbers.following(connection, "D") == "D_0012"
    assert numbers.following(connection, "F") == "F_0003"
    assert numbers.following(connection, "D", ["D_0020", "F_0090"]) == "D_0021"


def test_what_was_kept_never_goes_down(connection):
    with transaction(connection):
        numbers.keep(connection, ["D_0005"])
        numbers.keep(connection, ["D_0003"])
        numbers.refresh(connection)
    assert numbers.last(connection, "D") == 5
    # Nothing is taken by asking.
    assert numbers.following(connection, "D") == numbers.following(connection, "D") == "D_0006"


def test_what_a_card_of_any_source_has_is_passed_over(connection):
    card(connection, "D_0001", "notes")
    card(connection, "D_0002")
    card(connection, "D_0004", "notes")
    assert numbers.following(connection, "D") == "D_0003"


def test_more_than_four_digits(connection):
    with transaction(connection):
        numbers.keep(connection, ["D_9999"])
    assert numbers.following(connection, "D") == "D_10000"
    assert numbers.highest("D", ["D_10000", "D_9999"]) == 10000


def test_digits_of_other_scripts_are_no_number():
    assert numbers.highest("D", ["D_０００９", "D_٣", "d_0004", "D_0004 "]) == 0
