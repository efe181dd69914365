"""Which card a link means, and which card has been replaced."""

import unicodedata

import pytest

from datasette_memory.index.links import card_names, hashed_name, link_keys

NFC = unicodedata.normalize("NFC", "Café")
NFD = unicodedata.normalize("NFD", "Café")

CARDS = {
    "dir/here.md": "# Here",
    "dir/beside.md": "# Beside",
    "beside.md": "# At the root",
    "09-Decisions/cache.md": "---\nid: D_0001\ntitle: Cache policy\naliases: [Redis, 缓存]\n---\n",
    "other/端口.md": "---\nid: F_0002\ntitle: Port table\n---\n",
    "café.md": f"---\ntitle: {NFC} au lait\n---\n",
    "notes.v2.md": "# Versioned",
    "trap/d_0002.md": "# Named like a ref",
    "real.md": "---\nid: D_0002\ntitle: The ref\n---\n",
    "trap/title.md": "---\ntitle: stem\n---\n",
    "trap/alias.md": "---\ntitle: x\naliases: [stem, Cache policy, only alias]\n---\n",
    "zzz/stem.md": "# The stem",
    "long.markdown": "# Long suffix",
}


@pytest.fixture
def target(folder, index):
    """Where a link leads that stands in `dir/here.md`: a path, or None."""

    def find(text: str, here: str = "dir/here.md") -> str | None:
        for path, content in CARDS.items():
            folder.write(path, content)
        folder.write(here, f"# Here\n\n{text}")
        index.sync(folder)
        ((path, broken),) = index.query(
            "select (select path from cards where id = target_id), "
            "(select count(*) from broken_links) from links"
        )
        assert (path is None) == (broken == 1)
        return path

    return find


@pytest.mark.parametrize(
    "text, path",
    [
        # By ref, in whatever case.
        ("[[D_0001]]", "09-Decisions/cache.md"),
        ("[[d_0001|as said]]", "09-Decisions/cache.md"),
        # By path from the root, with and without suffix.
        ("[[09-Decisions/cache]]", "09-Decisions/cache.md"),
        ("[[09-decisions/CACHE.md#top]]", "09-Decisions/cache.md"),
        ("[x](/09-Decisions/cache.md)", "09-Decisions/cache.md"),
        ("[[/other/端口]]", "other/端口.md"),
        # By path from the card; this comes before the root.
        ("[x](beside.md)", "dir/beside.md"),
        ("[x](./beside.md)", "dir/beside.md"),
        ("[x](../beside.md)", "beside.md"),
        ("[x](../other/%E7%AB%AF%E5%8F%A3.md)", "other/端口.md"),
        ("[x](<../09-Decisions/cache.md>)", "09-Decisions/cache.md"),
        # What is not there from the card may be there from the root.
        ("[x](other/端口.md)", "other/端口.md"),
        # By file name anywhere.
        ("[[端口]]", "other/端口.md"),
        ("[[CACHE]]", "09-Decisions/cache.md"),
        ("[x](cache.md)", "09-Decisions/cache.md"),
        ("[[notes.v2]]", "notes.v2.md"),
        ("[[long]]", "long.markdown"),
        # By title, then by alias.
        ("[[Port Table]]", "other/端口.md"),
        ("[[redis]]", "09-Decisions/cache.md"),
        ("[[缓存]]", "09-Decisions/cache.md"),
        # A ref before a file name, a file name before a title, a title before an alias.
        ("[[D_0002]]", "real.md"),
        ("[[stem]]", "zzz/stem.md"),
        ("[[cache policy]]", "09-Decisions/cache.md"),
        ("[[only alias]]", "trap/alias.md"),
        # A wikilink without a folder is a file name: the first one by path.
        ("[[beside]]", "beside.md"),
        # Unicode in either form.
        (f"[[{NFD} au lait]]", "café.md"),
        (f"[[{NFD}]]", "café.md"),
        (f"[[{NFC.upper()}]]", "café.md"),
        # To itself.
        ("[[here]]", "dir/here.md"),
        # Nowhere.
        ("[[absent]]", None),
        ("[x](../absent.md)", None),
        ("[x](../../beside/absent.md)", None),
        ("[[cach]]", None),
    ],
)
def test_where_a_link_leads(text, path, target):
    assert target(text) == path


def test_a_relation_is_looked_up_like_a_wikilink(folder, index):
    folder.write("a.md", "---\nrelations:\n  - {type: caused_by, target: 端口}\n---\n")
    folder.write("deep/端口.md", "x")
    index.sync(folder)
    assert index.query("select type, origin, path from links join cards on cards.id=target_id") == [
        ("caused_by", "frontmatter", "deep/端口.md")
    ]


def test_a_card_of_the_same_source_comes_first(folder, make_folder, index):
    other = make_folder("aaa")
    for one in (folder, other):
        one.write("port.md", "# Port")
        one.write("from.md", "[[port]]")
    other.write("title.md", "---\ntitle: both\n---\n")
    folder.write("both.md", "x")
    other.write("link.md", "[[both]]")
    other.write("only.md", "x")
    folder.write("across.md", "[[only]]")
    index.sync(folder, other)
    assert index.query(
        "select a.source || '/' || a.path, b.source || '/' || b.path from links "
        "join cards as a on a.id = card_id join cards as b on b.id = target_id order by 1"
    ) == [
        ("aaa/from.md", "aaa/port.md"),
        # A better name counts for more than the source.
        ("aaa/link.md", "notes/both.md"),
        ("notes/across.md", "aaa/only.md"),
        ("notes/from.md", "notes/port.md"),
    ]


def test_between_strange_sources_the_name_decides_and_not_who_came_first(make_folder, make_index):
    a, b, c = map(make_folder, "abc")
    a.write("x.md", "# X")
    b.write("x.md", "# X")
    c.write("from.md", "[[x]]")
    for order in ((a, b, c), (b, c, a)):
        index = make_index(f"{order[0].name}.db")
        for folder in order:
            index.sync(folder)
        assert index.query("select source from links join cards on cards.id = target_id") == [
            ("a",)
        ]


def test_of_two_cards_with_one_ref_the_one_created_first_has_it(folder, index):
    folder.write("a.md", "---\nid: D_0001\ncreated: 2026-03-01T08:00:00+08:00\n---\nlater")
    folder.write("z.md", "---\nid: D_0001\ncreated: 2026-03-01T00:30:00+01:00\n---\nearlier")
    folder.write("from.md", "[[D_0001]]")
    index.sync(folder)
    assert index.query("select path from links join cards on cards.id = target_id") == [("z.md",)]


def test_a_link_gets_its_target_later_and_loses_it(folder, index):
    folder.write("from.md", "[[port]]")
    index.sync(folder)
    broken = "select title, type, target, origin, path from broken_links"
    assert index.query(broken) == [("from", "refers_to", "port", "body", "from.md")]
    folder.write("alias.md", "---\naliases: [port]\n---\n")
    index.sync(folder)
    where = "select path from links join cards on cards.id = target_id"
    assert index.query(where) == [("alias.md",)]
    folder.write("deep/port.md", "x")
    index.sync(folder)
    assert index.query(where) == [("deep/port.md",)]
    folder.delete("deep/port.md")
    index.sync(folder)
    assert index.query(where) == [("alias.md",)]
    folder.write("alias.md", "no longer")
    index.sync(folder)
    assert index.query(where) == [] and len(index.query(broken)) == 1


def replaced(index) -> dict[str, str]:
    return dict(index.query("select path, superseded_by from cards_superseded order by path"))


@pytest.mark.parametrize(
    "old, new",
    [
        ("", "supersedes: D_0001"),
        ("", "relations:\n  - {type: supersedes, target: D_0001}"),
        ("", "supersedes: [Old rule]"),
        ("superseded_by: D_0002", ""),
        ("superseded_by: new", ""),
        ("superseded_by: D_0002", "supersedes: old"),
    ],
)
def test_supersession_may_be_written_on_either_side(old, new, folder, index):
    folder.write("old.md", f"---\nid: D_0001\ntitle: Old rule\n{old}\n---\n")
    folder.write("new.md", f"---\nid: D_0002\n{new}\n---\n")
    index.sync(folder)
    assert replaced(index) == {"old.md": "D_0002"}
    # Without the word of it, or without the card, the old one is back.
    folder.write("old.md", "---\nid: D_0001\ntitle: Old rule\n---\n")
    folder.write("new.md", "---\nid: D_0002\n---\n")
    index.sync(folder)
    assert replaced(index) == {}


def test_the_old_card_is_back_when_the_one_that_replaced_it_is_gone(folder, index):
    folder.write("old.md", "---\nid: D_0001\n---\n")
    folder.write("new.md", "---\nid: D_0002\nsupersedes: D_0001\n---\n")
    index.sync(folder)
    assert replaced(index) == {"old.md": "D_0002"}
    folder.delete("new.md")
    index.sync(folder)
    assert replaced(index) == {}


def test_a_chain_a_circle_and_a_card_that_replaces_itself(folder, index):
    folder.write("1.md", "---\nid: D_0001\n---\n")
    folder.write("2.md", "---\nid: D_0002\nsupersedes: D_0001\n---\n")
    folder.write("3.md", "---\nid: D_0003\nsupersedes: D_0002\n---\n")
    folder.write("self.md", "---\nid: D_0004\nsupersedes: D_0004\nsuperseded_by: self\n---\n")
    folder.write("x.md", "---\nid: D_0005\nsupersedes: D_0006\n---\n")
    folder.write("y.md", "---\nid: D_0006\nsupersedes: D_0005\n---\n")
    index.sync(folder)
    assert replaced(index) == {
        "1.md": "D_0002", "2.md": "D_0003", "x.md": "D_0006", "y.md": "D_0005",
    }  # fmt: skip


def test_a_card_that_says_it_was_replaced_is_believed_also_without_the_other(folder, index):
    folder.write("old.md", "---\nsuperseded_by: D_0099\n---\n")
    index.sync(folder)
    assert replaced(index) == {"old.md": "D_0099"}


def test_of_several_that_replaced_a_card_always_the_same_is_named(folder, make_index):
    folder.write("old.md", "---\nid: D_0001\n---\n")
    folder.write("b.md", "---\nid: D_0003\nsupersedes: D_0001\n---\n")
    folder.write("a.md", "---\nid: D_0002\nsupersedes: D_0001\n---\n")
    index = make_index("a.db")
    index.sync(folder)
    assert replaced(index) == {"old.md": "D_0003"}


def test_names_of_a_card_keep_the_best_rank():
    rows = card_names(7, "plan", "a/plan.md", "Plan", ("PLAN", "other"))
    assert {(key, rank) for key, rank, _ in rows} == {
        (hashed_name("plan"), 0),
        (hashed_name("a/plan.md"), 1),
        (hashed_name("a/plan"), 1),
        (hashed_name("plan.md"), 2),
        (hashed_name("other"), 4),
    }
    assert {id for _, _, id in rows} == {7}


def test_keys_of_a_link():
    assert link_keys("port", "a/b.md") == (hashed_name("port"), None)
    assert link_keys("../port.md", "a/b.md") == (hashed_name("port.md"), hashed_name("../port.md"))
    assert link_keys("port.md", "b.md") == (hashed_name("port.md"), None)
    assert link_keys("/x/port", "a/b.md") == (hashed_name("x/port"), None)
    assert all(0 <= hashed_name(name) < 2**63 for name in ("", "a", "\ud800", "名" * 1000))
