import pytest

from datasette_memory.vault.kinds import KINDS, by_name, by_prefix, kind_of_folder


def test_the_table_is_the_designs():
    rows = [(kind.name, kind.folder, kind.prefix, kind.half_life_days) for kind in KINDS]
    assert len(rows) == 22
    assert rows[0] == ("system", "00-System", "SYS", 180)
    assert rows[-1] == ("misc", "99-Misc", "M", 60)
    assert ("code_change", "10-Code", "C", 60) in rows
    assert ("signal", "15-Signals", "SG", 7) in rows
    assert rows == sorted(rows, key=lambda row: row[1])


def test_names_folders_and_prefixes_are_unique():
    for field in ("name", "folder", "prefix"):
        assert len({getattr(kind, field) for kind in KINDS}) == len(KINDS)


def test_look_ups():
    assert by_name("decision").prefix == "D"
    assert by_name("Decision") is None
    assert by_prefix("SK").name == "skill"
    assert by_prefix("ZZ") is None


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("09-Decisions/x.md", "decision"),
        ("work/09-Decisions/2026/x.md", "decision"),
        ("10-Code/09-Decisions/x.md", "code_change"),
        ("09-decisions/x.md", "decision"),
        ("09-Decisions", None),
        ("notes/09-Decisions.md", None),
        ("x.md", None),
        ("", None),
        ("Decisions/x.md", None),
    ],
)
def test_kind_of_folder(path, kind):
    assert kind_of_folder(path) == kind
