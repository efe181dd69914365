"""Adding to the owner's queries: every byte that is not about the query stays."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasette_memory.errors import Ambiguous, MemoryFault, NotFound
from datasette_memory.govern import bench, truth
from datasette_memory.memory import Memory

from ..homes import command, digest

FILE = """{"version": 1, "queries": [
  {"group": "names", "query": "阿里云", "acceptable": ["vault/a.md"]},
  {"note": "mine", "query": "gateway port", "acceptable": ["vault/c.md", "notes/ports.md"], "x": [1, {}]}
], "owner": "me"}
"""


def add(path, text, *cards) -> str:
    status, query = truth.add(path, text, cards)
    assert query in bench.load(path)
    return status


@pytest.mark.parametrize(
    ("before", "query", "cards", "status", "after"),
    [
        (FILE, "new one", ["vault/b.md", "vault/a.md"], "added", FILE.replace(
            '[1, {}]}\n', '[1, {}]},\n  {"group": "added", "query": "new one", '
            '"acceptable": ["vault/a.md", "vault/b.md"]}\n')),
        (FILE, "阿里云", ["vault/b.md"], "extended", FILE.replace(
            '"vault/a.md"]', '"vault/a.md", "vault/b.md"]')),
        (FILE, " gateway  port\n", ["vault/c.md", "vault/端口.md"], "extended", FILE.replace(
            '"notes/ports.md"]', '"notes/ports.md", "vault/端口.md"]')),
        (FILE, "gateway port", ["vault/c.md"], "unchanged", FILE),
        # As other programs lay it out.
        ('{"queries":[{"query":"q","acceptable":["v/a"]}],"version":1}', "p", ["v/b"], "added",
         '{"queries":[{"query":"q","acceptable":["v/a"]}, '
         '{"group": "added", "query": "p", "acceptable": ["v/b"]}],"version":1}'),
        ('{"queries":[{"query":"q","acceptable":["v/a","v/b"]}],"version":1}', "q", ["v/c"],
         "extended", '{"queries":[{"query":"q","acceptable":["v/a","v/b","v/c"]}],"version":1}'),
        ('{\r\n "version": 1,\r\n "queries": [\r\n  {\r\n   "query": "q",\r\n   "acceptable": [\r\n'
         '    "v/a"\r\n   ]\r\n  }\r\n ]\r\n}', "q", ["v/b"], "extended",
         '{\r\n "version": 1,\r\n "queries": [\r\n  {\r\n   "query": "q",\r\n   "acceptable": [\r\n'
         '    "v/a",\r\n    "v/b"\r\n   ]\r\n  }\r\n ]\r\n}'),
        # A query that was right to find nothing, escapes, a key that is there twice, no query yet.
        ('{"version": 1, "queries": [{"query": "q", "acceptable": [ ]}]}', "q", ["v/a"], "extended",
         '{"version": 1, "queries": [{"query": "q", "acceptable": ["v/a"]}]}'),
        ('{"version": 1, "queries": [{"acceptable": ["v\\/\\u7aef"], "query": "\\u7aef \\"]}"}]}',
         '端 "]}', ["v/端", "v/b"], "extended",
         '{"version": 1, "queries": [{"acceptable": ["v\\/\\u7aef", "v/b"], '
         '"query": "\\u7aef \\"]}"}]}'),
        ('{"version": 1, "queries": 5, "queries": [{"query": "q", "acceptable": 1, '
         '"acceptable": ["v/a"]}]}', "q", ["v/b"], "extended",
         '{"version": 1, "queries": 5, "queries": [{"query": "q", "acceptable": 1, '
         '"acceptable": ["v/a", "v/b"]}]}'),
        ('{"version": 1, "queries": []}\n', "q", ["v/a"], "added",
         '{"version": 1, "queries": [\n  {"group": "added", "query": "q", "acceptable": ["v/a"]}\n'
         ']}\n'),
    ],
)  # fmt: skip
def test_the_rest_stays_byte_for_byte(tmp_path, before, query, cards, status, after):
    path = tmp_path / "bench_queries.json"
    for mark in (b"", b"\xef\xbb\xbf"):
        path.write_bytes(mark + before.encode())
        assert add(path, query, *cards) == status
        assert path.read_bytes() == mark + after.encode()
        assert add(path, query, *cards) == "unchanged"


def test_a_file_that_is_not_there_is_made(tmp_path):
    path = tmp_path / "bench_queries.json"
    assert add(path, "端口", "vault/a.md") == "added"
    assert path.read_text("utf-8") == (
        '{"version": 1, "queries": [\n'
        '  {"group": "added", "query": "端口", "acceptable": ["vault/a.md"]}\n]}\n'
    )


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'{"version": 2, "queries": []}', b'{"version": 1, "queries": {}}',
     b'{"version": 1, "queries": [{"query": "q"}]}', b'{"version": 1, "queries": []} more',
     '{"version": 1, "queries": []}'.encode("utf-16"), b"[" * 100_000],
)  # fmt: skip
def test_a_file_that_cannot_be_understood_stays(tmp_path, content):
    path = tmp_path / "bench_queries.json"
    path.write_bytes(content)
    before = digest(tmp_path)
    with pytest.raises(MemoryFault, match="bench_queries.json"):
        truth.add(path, "q", ["v/a"])
    assert digest(tmp_path) == before
    with pytest.raises(MemoryFault, match="empty"):
        truth.add(path, " \n", ["v/a"])


_cards = st.lists(st.sampled_from(["v/a", "v/b", "v/端", 'v/"', "v/\\n"]), min_size=1, unique=True)
_rows = st.lists(
    st.fixed_dictionaries(
        {
            "query": st.sampled_from(["q", "p 1", "端口"]),
            "acceptable": st.one_of(st.just([]), _cards),
        },
        optional={"group": st.text(max_size=3), "more": st.text(max_size=5)},
    ),
    max_size=4,
)


@given(_rows, st.sampled_from(["q", "p 1", "端口", "new"]), _cards, st.sampled_from([None, 0, 1, 4]),
       st.booleans())  # fmt: skip
def test_it_says_what_was_added_and_else_what_it_said(
    tmp_path_factory, rows, query, cards, indent, ascii
):
    path = tmp_path_factory.mktemp("home") / "bench_queries.json"
    content = {"before": "{", "version": 1, "queries": rows, "after": ["]"]}
    path.write_text(json.dumps(content, indent=indent, ensure_ascii=ascii), "utf-8")
    truth.add(path, query, cards)
    found = json.loads(path.read_text("utf-8"))
    same = [number for number, row in enumerate(rows) if row["query"] == query]
    if same:
        old = rows[same[0]]["acceptable"]
        rows[same[0]]["acceptable"] = old + [card for card in cards if card not in old]
    else:
        rows.append({"group": "added", "query": query, "acceptable": sorted(cards)})
    assert found == content


# By command

CARDS = {
    "a.md": "---\nid: F_0001\ntitle: 快照保留四份\n---\n每周五做一次快照。\n",
    "b.md": "---\nid: F_0002\ntitle: 恢复演练\n---\n从快照恢复，用了五十二分钟。\n",
    "sub/c.md": "---\ntitle: 恢复演练\n---\n另一次。\n",
    "s.md": "---\nid: F_0003\ntitle: vault_door_code\nsensitivity: secret\n---\n4711.\n",
}
"""快照 stands in a and b."""


@pytest.fixture
def home(tmp_path):
    root = tmp_path / "home"
    (root / "vault" / "sub").mkdir(parents=True)
    for name, text in CARDS.items():
        (root / "vault" / name).write_text(text, "utf-8")
    Memory(str(root)).index()
    return root


def test_the_command(home):
    ledger = home / "ledger"
    before = digest(ledger)
    path = home / "bench_queries.json"
    done = command(home, "bench", "--add", "快照", "--expect", "F_0001")
    assert (done.returncode, done.stderr) == (0, "")
    head, *found = done.stdout.splitlines()
    assert head == f"added: 快照  ({path})"
    assert sorted(line[5:] for line in found) == ["right    vault/a.md", "wrong    vault/b.md"]
    done = command(
        home, "bench", "--add", "快照", "--expect", "b.md", "--expect", "sub/c.md", "--json"
    )
    said = json.loads(done.stdout)
    assert (said["status"], said["group"], said["path"]) == ("extended", "added", str(path))
    assert said["acceptable"] == ["vault/a.md", "vault/b.md", "vault/sub/c.md"]
    assert sorted(said["answer"]["found"]) == ["vault/a.md", "vault/b.md"]
    assert said["answer"]["lacking"] == ["vault/sub/c.md"]
    done = command(home, "bench", "--add", "快照", "--expect", "快照保留四份")
    assert done.stdout.splitlines()[0] == f"unchanged: 快照  ({path})"
    assert done.stdout.splitlines()[-1] == "  lacking     vault/sub/c.md"
    done = command(home, "bench", "--add", "kangaroo", "--expect", "F_0002")
    assert done.stdout.splitlines()[1:] == ["  lacking     vault/b.md"]
    assert [row["queries"] for row in Memory(str(home)).bench().groups().values()] == [2]
    assert digest(ledger) == before


def test_the_command_refuses(home):
    def run(*arguments):
        done = command(home, "bench", *arguments)
        assert done.stderr.startswith("Error: ") and "Traceback" not in done.stderr
        return done.returncode

    assert run("--add", "快照") == 2
    assert run("--expect", "F_0001") == 2
    assert run("--add", "快照", "--expect", "F_0001", "--init") == 2
    assert run("--add", " ", "--expect", "F_0001") == 2
    assert run("--add", "快照", "--expect", "nobody") == 1
    assert run("--add", "快照", "--expect", "F_0003") == 1  # No index knows a secret card.
    assert not (home / "bench_queries.json").exists()
    with pytest.raises(Ambiguous):
        Memory(str(home)).add_to_bench("快照", ["F_0001", "恢复演练"])
    with pytest.raises(NotFound):
        Memory(str(home)).add_to_bench("快照", ["F_0001", "nobody"])
    assert not (home / "bench_queries.json").exists()
    (home / "bench_queries.json").write_text("mine")
    assert run("--add", "快照", "--expect", "F_0001") == 2
    assert (home / "bench_queries.json").read_text() == "mine"
