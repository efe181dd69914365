"""The bench: figures worked out by hand, a truth that outlives the index, queries to begin with."""

import json
import unicodedata
from pathlib import Path

import pytest

from datasette_memory.errors import MemoryFault
from datasette_memory.govern.bench import Answer, Query, Report, dump, figures, load, load_report
from datasette_memory.memory import Memory

from ..homes import command, digest, query

ROOT = Path(__file__).resolve().parent.parent.parent

CARDS = {
    "a.md": "---\ntitle: 快照保留四份\ntags: [备份]\n---\n每周五做一次快照。\n",
    "b.md": "---\ntitle: 恢复演练\ntags: [备份]\n---\n从快照恢复，用了五十二分钟。\n",
    "c.md": "---\ntitle: The gateway port\ntags: [network]\n---\nThe gateway listens on "
    "gw_port_main, and calls getUserById. Ask the gateway first.\n",
    "old.md": "---\nid: D_0001\ntitle: 旧的快照办法\nsuperseded_by: D_0002\ntags: [obsolete]\n---\n"
    "快照从不删除。\n",
    "new.md": "---\nid: D_0002\ntitle: 新办法\n---\n按月清理。\n",
    "secret.md": "---\ntitle: vault_door_code\nsensitivity: secret\ntags: [hidden]\n---\n"
    "vault_door_code is 4711.\n",
}
"""快照 stands in a, b and old, 清理 in new, gateway in c; no card holds kangaroo."""

TRUTH = [
    ("words", "快照", ["vault/a.md", "vault/b.md"]),
    ("words", "清理", ["vault/new.md"]),
    ("code", "userById", ["vault/c.md"]),
    ("absent", "kangaroo", []),
]


def answer(acceptable: str, found: str, group: str = "g", tier: str | None = "all") -> Answer:
    """An answer in which each letter is a card."""
    return Answer(Query("?", group, frozenset(acceptable)), tuple(found), tier)


def truth(rows) -> bytes:
    return dump([Query(text, group, frozenset(cards)) for group, text, cards in rows])


@pytest.fixture
def home(tmp_path) -> Path:
    """A home with CARDS in its vault, an index over them, and TRUTH."""
    root = tmp_path / "home"
    (root / "vault").mkdir(parents=True)
    for name, text in CARDS.items():
        (root / "vault" / name).write_text(text, "utf-8")
    Memory(str(root)).index()
    (root / "bench_queries.json").write_bytes(truth(TRUTH))
    return root


# Figures


@pytest.mark.parametrize(
    ("acceptable", "found", "first", "precision", "noise"),
    [
        ("ab", "axb", 1, 2 / 2, 1 / 3),
        ("a", "", 0, 0, 0),
        ("abcdefg", "xabcd", 0, 4 / 5, 1 / 5),
        ("abcdefg", "abcde", 1, 5 / 5, 0),
        ("abc", "ab", 1, 2 / 3, 0),
        ("", "x", None, None, 1),
        ("", "", None, None, 0),
    ],
)
def test_the_figures_of_one_answer(acceptable, found, first, precision, noise):
    one = answer(acceptable, found)
    assert (one.first, one.precision, one.noise) == (first, precision, noise)
    assert one.ok == (first in (1, None) and precision in (1, None) and noise == 0)


def test_the_figures_of_several():
    answers = [
        answer("ab", "axb"),
        answer("a", "", tier=None),
        answer("", "x", tier="any"),
        answer("abcdefg", "xabcd"),
    ]
    assert figures(answers) == {
        "queries": 4,
        "judged": 3,
        "first": 0.333333,  # (1 + 0 + 0) / 3
        "precision": 0.6,  # (1 + 0 + 0.8) / 3
        "noise": 0.383333,  # (1/3 + 0 + 1 + 1/5) / 4
        "tiers": {"all": 2, "any": 1, "none": 1},
    }
    assert figures(answers[2:3])["precision"] is None


def test_what_is_wrong_and_what_is_lacking():
    one = answer("abc", "xa")
    assert (one.wrong, one.lacking) == (("x",), ("b", "c"))
    # There was no room for the sixth.
    assert answer("abcdef", "abcde").lacking == ()


# The truth


def test_a_bench_by_hand(home):
    report = Memory(str(home)).bench()
    assert {group: row["queries"] for group, row in report.groups().items()} == {
        "words": 2,
        "code": 1,
        "absent": 1,
    }
    assert [(set(one.found), one.tier) for one in report.answers] == [
        ({"vault/a.md", "vault/b.md"}, "all"),
        ({"vault/new.md"}, "all"),
        ({"vault/c.md"}, "all"),
        (set(), None),
    ]
    assert report.lines() == [
        "queries  first hit     P@5  noise@5  group (tiers)",
        "      2     100.0%  100.0%     0.0%  words (all 2)",
        "      1     100.0%  100.0%     0.0%  code (all 1)",
        "      1          -       -     0.0%  absent (none 1)",
        "      4     100.0%  100.0%     0.0%  all (all 3, none 1)",
    ]


def test_a_bench_names_each_query_that_fails(home):
    rows = [("words", "快照", ["vault/a.md"]), ("words", "gateway", ["vault/new.md"])]
    (home / "bench_queries.json").write_bytes(truth(rows))
    done = command(home, "bench")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[3:] == [
        "",
        "words: 快照  (all)",
        "  wrong    vault/b.md",
        "",
        "words: gateway  (all)",
        "  wrong    vault/c.md",
        "  lacking  vault/new.md",
    ]


def test_the_truth_outlives_the_index(home):
    def ids():
        return dict(query(home / "memory.db", "select path, id from cards"))

    before, earlier = Memory(str(home)).bench().to_dict(), ids()
    # Another card comes first and takes a row id: in a new index all have others.
    (home / "vault" / "0.md").write_text("# Zero\n", "utf-8")
    Memory(str(home)).index(rebuild=True)
    assert ids()["a.md"] != earlier["a.md"]
    assert Memory(str(home)).bench().to_dict() == before


def test_a_bench_leaves_nothing_behind(home):
    ledger = home / "ledger"
    ledger.mkdir(exist_ok=True)
    before = digest(ledger), query(home / "memory.db", "select * from card_stats")
    assert command(home, "bench").returncode == 0
    assert (digest(ledger), query(home / "memory.db", "select * from card_stats")) == before
    # An ordinary search of the same word does.
    assert command(home, "search", "kangaroo").returncode == 1
    assert digest(ledger) != before[0]


def test_cards_that_cannot_be_found_are_named(home):
    rows = [("g", "快照", ["vault/moved.md", "vault/old.md", "vault/a.md", "vault/secret.md"])]
    (home / "bench_queries.json").write_bytes(truth(rows))
    assert command(home, "bench").stderr.splitlines() == [
        "note: no such card in the index: vault/moved.md",
        "note: never found, because another card replaced it: vault/old.md",
        "note: no such card in the index: vault/secret.md",
    ]


def test_paths_may_be_written_in_either_form(tmp_path):
    path = tmp_path / "q.json"
    path.write_bytes(truth([("g", "cafe", ["vault/Cafe\u0301.md"])]))
    assert load(path)[0].acceptable == {unicodedata.normalize("NFC", "vault/Café.md")}


GOOD = {"query": "快照", "acceptable": []}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("{", "is not valid JSON"),
        ("[]", "must hold a JSON object"),
        ('{"queries": []}', '{"version": 1, "queries": [...]}'),
        ('{"version": 1, "queries": []}', "holds no query"),
        ({}, "query 2: 'query' must be a text"),
        ("x", "query 2: it must be an object"),
        (GOOD | {"query": " "}, "query 2: 'query' must be a text"),
        (GOOD | {"group": 3}, "query 2: 'group' must be a text"),
        ({"query": "快照"}, "query 2: 'acceptable' must be a list"),
        (GOOD | {"acceptable": [7]}, "query 2: 7 must be source/path"),
        (GOOD | {"acceptable": ["D_0001"]}, "query 2: 'D_0001' must be source/path"),
    ],
)
def test_a_file_that_cannot_be_understood(home, content, expected):
    text = content
    if not isinstance(content, str) or content == "x":
        text = json.dumps({"version": 1, "queries": [GOOD, content]})
    (home / "bench_queries.json").write_text(text, "utf-8")
    done = command(home, "bench")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert expected in done.stderr and "bench_queries.json" in done.stderr


def test_a_file_that_is_not_there(home):
    (home / "bench_queries.json").unlink()
    done = command(home, "bench", "--json")
    assert done.returncode == 2
    assert "memory bench --init" in json.loads(done.stdout)["hint"]


# Baselines


def test_save_and_compare(home, tmp_path):
    saved = tmp_path / "base.json"
    done = command(home, "bench", "--save", saved, "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout) == json.loads(saved.read_text("utf-8"))
    assert command(home, "bench", "--baseline", saved).returncode == 0

    (home / "vault" / "new.md").write_text("---\ntitle: 新办法\n---\n按月整理。\n", "utf-8")
    Memory(str(home)).index()
    done = command(home, "bench", "--baseline", saved, "--json")
    assert done.returncode == 1
    # Of 2 and of 3 judged queries one lost its only answer.
    assert json.loads(done.stdout)["falls"] == [
        "all: first 100.0% -> 66.7%",
        "all: precision 100.0% -> 66.7%",
        "group 'words': first 100.0% -> 50.0%",
        "group 'words': precision 100.0% -> 50.0%",
    ]


def falls(before: list[Answer], after: list[Answer]) -> tuple[list[str], list[str]]:
    report = Report(after)
    report.compare(json.loads(json.dumps(Report(before).to_dict())))
    return report.falls, report.notes


def test_more_noise_is_worse_and_less_is_not():
    clean, noisy = [answer("a", "a")], [answer("a", "ax")]
    expected = ["all: noise 0.0% -> 50.0%", "group 'g': noise 0.0% -> 50.0%"]
    assert falls(clean, noisy) == (expected, [])
    assert falls(noisy, clean) == ([], [])


def test_a_fall_in_one_group_is_not_made_up_for_by_another():
    before = [answer("a", "a", "one"), answer("a", "b", "two")]
    after = [answer("a", "b", "one"), answer("a", "a", "two")]
    assert falls(before, after)[0] == [
        "group 'one': first 100.0% -> 0.0%",
        "group 'one': precision 100.0% -> 0.0%",
        "group 'one': noise 0.0% -> 100.0%",
    ]


def test_what_cannot_be_compared_is_said():
    before = [answer("a", "a", "one"), answer("a", "a", "two")]
    assert falls(before, before[:1]) == (
        [],
        [
            "all had 2 queries and has 1",
            "group 'two' is in the baseline alone, and was not compared",
        ],
    )


@pytest.mark.parametrize("content", ["{}", "[]", "no", '{"all": {"queries": 1}, "groups": {}}'])
def test_a_baseline_that_is_none(home, tmp_path, content):
    path = tmp_path / "base.json"
    path.write_text(content, "utf-8")
    with pytest.raises(MemoryFault, match="base.json"):
        load_report(path)
    assert command(home, "bench", "--baseline", path).returncode == 2
    assert command(home, "bench", "--baseline", tmp_path / "none.json").returncode == 2


# Drafts


def test_queries_are_drafted_from_the_cards(home):
    (home / "bench_queries.json").unlink()
    done = command(home, "bench", "--init", "--json")
    assert done.returncode == 0, done
    path = home / "bench_queries.json"
    drafted = {one.text: (one.group, set(one.acceptable)) for one in load(path)}
    assert json.loads(done.stdout) == {"path": str(path), "queries": len(drafted)}
    assert drafted == {
        "备份": ("tags", {"vault/a.md", "vault/b.md"}),
        "network": ("tags", {"vault/c.md"}),
        "gw_port_main": ("identifiers", {"vault/c.md"}),
        # Of the titles, what the card says elsewhere too; old.md, replaced, is no answer.
        "快照": ("titles", {"vault/a.md", "vault/b.md"}),
        "恢复": ("titles", {"vault/b.md"}),
        "gateway": ("titles", {"vault/c.md"}),
    }
    assert command(home, "bench").stdout.splitlines()[-1].endswith("all (all 6)")


def test_sources_give_answers_to_a_draft_and_no_queries(home, tmp_path):
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "n.md").write_text("---\ntitle: 备份记录\ntags: [tape]\n---\n旧磁带。\n", "utf-8")
    memory = Memory(str(home))
    memory.import_paths([str(notes)])
    (home / "bench_queries.json").unlink()
    path, _ = memory.draft_bench()
    drafted = {one.text: one.acceptable for one in load(path)}
    assert drafted["备份"] == {"vault/a.md", "vault/b.md", "notes/n.md"}
    assert "tape" not in drafted
    # Without cards of one's own there is nothing else to ask about.
    other = Memory(str(tmp_path / "other"))
    other.import_paths([str(notes)])
    path, _ = other.draft_bench()
    assert "tape" in {one.text for one in load(path)}


def test_a_draft_overwrites_nothing(home):
    path = home / "bench_queries.json"
    path.write_text("not even JSON", "utf-8")
    done = command(home, "bench", "--init")
    assert done.returncode == 2 and "is there already" in done.stderr
    assert path.read_text("utf-8") == "not even JSON"


def test_no_secret_is_drafted(home):
    token = "ghp_" + "a1B2c3D4e5F6" * 3
    (home / "vault" / "token.md").write_text(
        f"---\ntitle: Deploy key\ntags: ['{token}']\n---\nThe deploy-runner uses {token}.\n",
        "utf-8",
    )
    Memory(str(home)).index()
    (home / "bench_queries.json").unlink()
    assert command(home, "bench", "--init").returncode == 0
    text = (home / "bench_queries.json").read_text("utf-8")
    assert "deploy-runner" in text
    for secret in (token, "ghp_", "vault_door_code", "hidden", "secret.md"):
        assert secret not in text


def test_there_is_nothing_to_draft_from(tmp_path):
    memory = Memory(str(tmp_path))
    (tmp_path / "vault").mkdir()
    memory.index()
    with pytest.raises(MemoryFault, match="no card that a query could be made of"):
        memory.draft_bench()
    assert not (tmp_path / "bench_queries.json").exists()


def test_init_does_nothing_else(home, tmp_path):
    done = command(home, "bench", "--init", "--save", tmp_path / "x.json")
    assert done.returncode == 2 and "--init" in done.stderr
    assert not (tmp_path / "x.json").exists()


# The developers' own


def test_the_keyword_queries_name_cards_of_the_sample_vault():
    queries = load(ROOT / "bench" / "keywords.json")
    vault = ROOT / "examples" / "vault"
    there = {
        unicodedata.normalize("NFC", path.relative_to(vault).as_posix())
        for path in vault.rglob("*.md")
    }
    assert len(queries) == len({one.text for one in queries}) >= 150
    assert {card for one in queries for card in one.acceptable} <= there
