"""What a hit has to be: kind, source, project, tags, and since when."""

from datetime import datetime, timedelta, timezone

import pytest

from datasette_memory.errors import MemoryFault
from datasette_memory.search.filters import Filters, parse_since

CARDS = {
    "notes": {
        "09-Decisions/a.md": "---\nproject: Swallow\ntags: [运维, Nginx, both]\n"
        "updated: 2026-03-01T08:00:00+08:00\n---\nwillow",
        "09-Decisions/b.md": "---\nproject: swallow\ntags: [nginx]\nupdated: 2026-03-02\n---\nwillow",
        "12-Facts/c.md": "---\nproject: tern\nupdated: 2026-03-01T00:30:00Z\ntags: both\n---\nwillow",
        "d.md": "---\nkind: Own Kind\n---\nwillow #both",
    },
    "Other": {"e.md": "---\nupdated: 2026-03-01T09:00:00+0800\n---\nwillow"},
}


@pytest.fixture
def found(make_searcher):
    searcher = make_searcher(CARDS)

    def find(**filters) -> str:
        hits = searcher.search("willow", limit=20, filters=Filters(**filters)).hits
        return "".join(sorted(hit.path.rpartition("/")[2][0] for hit in hits))

    return find


@pytest.mark.parametrize(
    "filters, expected",
    [
        ({}, "abcde"),
        ({"kind": "decision"}, "ab"),
        ({"kind": "DECISION"}, "ab"),
        ({"kind": "own kind"}, "d"),
        ({"kind": "decisio"}, ""),
        ({"kind": ""}, "abcde"),
        ({"source": "other"}, "e"),
        ({"source": "notes"}, "abcd"),
        ({"source": "vault"}, ""),
        ({"project": "swallow"}, "ab"),
        ({"project": "%"}, ""),
        ({"tags": ("nginx",)}, "ab"),
        ({"tags": ("NGINX", "运维")}, "a"),
        ({"tags": ("#both",)}, "acd"),
        ({"tags": ("both", "absent")}, ""),
        ({"tags": ("运",)}, ""),
        ({"kind": "fact", "project": "tern", "tags": ("both",), "source": "notes"}, "c"),
        ({"kind": "fact", "project": "swallow"}, ""),
        # 08:00+08:00 is midnight in UTC, 09:00+0800 one o'clock.
        ({"since": "2026-03-01"}, "abce"),
        ({"since": "2026-03-01T00:00:00+00:00"}, "abce"),
        ({"since": "2026-03-01T00:00:01Z"}, "bce"),
        ({"since": "2026-03-01T08:45+08:00"}, "be"),
        ({"since": "2026-03-01 00:30"}, "bce"),
        ({"since": "20260302"}, "b"),
        ({"since": "2026-03-02T00:00:01"}, ""),
        ({"since": "99999y"}, "abcde"),
        ({"since": "0h"}, ""),
        ({"since": " 2026-03-02 ", "project": "swallow"}, "b"),
        # What cannot be in a database is in none, and nobody breaks out of a parameter.
        ({"kind": "\ud800"}, ""),
        ({"project": "a\0b"}, ""),
        ({"tags": ("\udfff",)}, ""),
        ({"source": "notes' or '1'='1"}, ""),
    ],
)
def test_filters(filters, expected, found):
    assert found(**filters) == expected


@pytest.mark.parametrize(
    "text, expected",
    [
        ("2026-09-30", "2026-09-30T00:00:00"),
        ("2026-09-30T08:00+08:00", "2026-09-30T08:00:00+08:00"),
        ("2026-09-30T08:00Z", "2026-09-30T08:00:00+00:00"),
        ("30d", "2026-09-01T12:00:00+00:00"),
        ("12h", "2026-10-01T00:00:00+00:00"),
        (" 2 W ", "2026-09-17T12:00:00+00:00"),
        ("1m", "2026-09-01T12:00:00+00:00"),
        ("1y", "2025-10-01T12:00:00+00:00"),
        ("2030y", "0001-01-01T00:00:00+00:00"),
        ("99999d", "1752-12-17T12:00:00+00:00"),
    ],
)
def test_since_is_a_date_or_an_age(text, expected):
    now = datetime(2026, 10, 1, 12, tzinfo=timezone.utc)
    assert parse_since(text, now) == expected


def test_an_age_counts_from_now():
    earlier = datetime.now(timezone.utc) - timedelta(hours=1)
    assert abs(datetime.fromisoformat(parse_since("1h")) - earlier) < timedelta(minutes=1)


@pytest.mark.parametrize(
    "text",
    ["yesterday", "", " ", "2026-13-01", "2026-02-30", "-3d", "3", "d", "1000000d", "3.5d", "'; --",
     "\ud800", "a\0b"],
)  # fmt: skip
def test_nonsense_is_no_date(text):
    with pytest.raises(MemoryFault) as caught:
        parse_since(text)
    assert "is no date" in caught.value.error and "\n" not in caught.value.error
    assert "2026-09-30" in caught.value.hint
