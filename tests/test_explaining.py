"""Why a card was found, or was not: `Memory.why_not`, `explain`, and their commands."""

import contextlib
import json
import os
import sqlite3

import pytest

from datasette_memory.errors import Ambiguous, MemoryFault, NotFound
from datasette_memory.memory import Memory

from .homes import command

CARDS = {
    "keys.md": "---\nid: D_0001\nkind: decision\ntags: [运维]\n---\n# 阿里云 私钥\n\n登录用私钥。",
    "cloud.md": "---\nid: D_0002\n---\n# 阿里云 账单\n\n每月一号出账。",
    "batch.md": "---\nid: C_0001\n---\n# Batch\n\nThe gateways run sqlite3 at night.",
    "gate.md": "---\nid: C_0002\n---\n# Gateway\n\nThe gateway runs alone.",
    "old.md": "---\nid: D_0003\nsuperseded_by: D_0001\n---\n# 旧的登录\n\n阿里云 私钥 放在旧机器上。",
    "secret.md": "---\nid: D_0004\nsensitivity: secret\n---\n# 口令 翡翠\n\n阿里云 私钥 的口令。",
    **{
        f"many/{number}.md": f"---\nid: M_{number:04}\n---\n# 日志 {number}\n\n" + "值班 " * number
        for number in range(1, 10)
    },
}


@pytest.fixture
def memory(tmp_path):
    vault = tmp_path / "home" / "vault"
    for path, text in CARDS.items():
        file = vault / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
        os.utime(file, (1_767_225_600, 1_767_225_600))
    memory = Memory(str(tmp_path / "home"))
    memory.index()
    return memory


def why(memory: Memory, query: str, reference: str, **options) -> tuple[str, str]:
    told = memory.why_not(query, reference, **options)
    return told["reason"], told["answer"]


def recorded(memory: Memory, sql: str) -> None:
    """What an import writes when a disk fails, which no test can have."""
    with contextlib.closing(sqlite3.connect(memory.db)) as connection, connection:
        connection.execute(sql)


def test_a_card_that_is_found_is_said_to_be(memory):
    told = memory.why_not("阿里云 私钥", "D_0001")
    assert (told["found"], told["place"], told["ranked"], told["tier"]) == (True, 1, 1, "all")
    assert told["answer"] == "It is found, at place 1 (all)."
    # Written by hand, without a reference to where it comes from.
    assert told["stages"] == {
        "place": 1, "removed_by": None, "outcome": "excluded", "code": "no-source",
        "reason": "It is a decision that does not say where it comes from.",
    }  # fmt: skip
    assert (told["ref"], told["path"], told["title"]) == ("D_0001", "keys.md", "阿里云 私钥")


def test_other_cards_hold_all_keywords(memory):
    told = memory.why_not("阿里云 私钥", "D_0002")
    assert told["reason"] == "keywords"
    assert told["answer"] == (
        "1 card holds all keywords, and then no other card is given: this one lacks 私钥."
    )
    assert [(one["term"], one["held"]) for one in told["terms"]] == [
        ("阿里", True), ("里云", True), ("私钥", False),
    ]  # fmt: skip
    assert (told["tier"], told["coverage"], told["place"]) == ("any", 0.667, None)
    assert told["stages"] is None


def test_a_keyword_that_a_card_only_begins_with(memory):
    memory.home.vault.joinpath("lite.md").write_text("# Lite\n\nsqlite alone", "utf-8")
    memory.index()
    told = memory.why_not("sqlite", "C_0001")
    assert told["reason"] == "keywords"
    assert told["answer"].endswith("lacks sqlite; of sqlite it holds only the beginning.")
    assert told["terms"][0]["held"] == "prefix"


def test_other_cards_hold_the_keyword_as_it_was_typed(memory):
    # The endings are taken off, so that both are in the index as the same word.
    assert why(memory, "gateways", "C_0002") == (
        "as-typed",
        "It holds every keyword, but 1 card holds them as they were typed, and those are given.",
    )


def test_a_card_that_holds_nothing_of_it(memory):
    assert why(memory, "账单 归档", "C_0002") == (
        "no-term-held",
        "It holds none of the 2 terms (账单, 归档).",
    )
    assert why(memory, "账单", "C_0002") == ("no-term-held", "It does not hold the term 账单.")
    assert why(memory, "?!", "C_0002")[0] == "no-terms"


def test_a_card_beyond_the_limit(memory):
    told = memory.why_not("值班", "M_0001", limit=3)
    place = told["place"]
    assert told["reason"] == "limit"
    assert told["answer"] == (
        f"It is ranked, at place {place} of 9, and the search gives 3: -n {place} shows it."
    )
    hits = memory.search("值班", limit=place).hits
    assert hits[place - 1].ref == "M_0001"
    assert why(memory, "值班", "M_0001", limit=place)[0] == "found"


def test_a_card_beyond_any_limit(memory):
    for number in range(10, 40):
        text = f"---\nid: M_{number:04}\n---\n# 日志 {number}\n\n值班 值班"
        memory.home.vault.joinpath(f"many/{number}.md").write_text(text, "utf-8")
    memory.home.vault.joinpath("last.md").write_text("值班" + " 空" * 500, "utf-8")
    memory.index()
    told = memory.why_not("值班", "last.md", limit=20)
    assert (told["place"], told["ranked"]) == (40, 40)
    assert told["answer"].endswith("no search gives more than 20: ask for what it alone holds.")


def test_a_card_that_a_question_never_looked_at(memory):
    for number in range(130):
        text = f"---\nid: N_{number:04}\n---\n# 记录\n\n琥珀 石榴 芍药 海棠 {number}"
        memory.home.vault.joinpath(f"{number}.md").write_text(text, "utf-8")
    memory.home.vault.joinpath("one.md").write_text("# 单\n\n琥珀", "utf-8")
    memory.index()
    told = memory.why_not("琥珀石榴芍药海棠是什么", "one.md")
    assert told["reason"] == "not-read"
    assert "only the 120 cards that hold most of what is rare are" in told["answer"]
    assert told["answer"].endswith("By its score it would be at place 121.")
    assert told["place"] is None


@pytest.mark.parametrize(
    "filters, option",
    [
        ({"kind": "fact"}, "--kind fact"),
        ({"project": "infra"}, "--project infra"),
        ({"tags": ["db", "运维"]}, "--tag db --tag 运维"),
        ({"exclude_tags": ["运维"]}, "--exclude-tag 运维"),
        ({"sensitivities": ["public"]}, "--sensitivity public"),
        ({"sensitivities": []}, "--sensitivity"),
        ({"since": "2026-06-01"}, "--since 2026-06-01"),
        ({"kind": "fact", "project": "infra"}, "--kind fact, --project infra"),
    ],
)
def test_a_filter_keeps_it_out(filters, option, memory):
    assert why(memory, "私钥", "D_0001", **filters) == ("filter", f"It does not meet {option}.")


def test_a_filter_that_it_meets_is_not_named(memory):
    assert why(memory, "私钥", "D_0001", kind="decision", tags=["运维"])[0] == "found"
    with pytest.raises(MemoryFault, match="no date"):
        memory.why_not("私钥", "D_0001", since="someday")


def test_a_superseded_card(memory):
    told = memory.why_not("阿里云 私钥", "D_0003")
    assert told["reason"] == "superseded"
    assert told["answer"].startswith(
        "It is superseded by D_0001, and left out (--superseded lets it in). It would be at place "
    )
    assert told["stages"]["removed_by"] == "supersession"
    assert told["stages"]["reason"] == "it is superseded by D_0001"
    assert why(memory, "阿里云 私钥", "D_0003", superseded=True)[0] == "found"


def test_a_secret_card_is_explained_to_its_owner_alone(memory):
    told = memory.why_not("翡翠", "D_0004", secret=True)
    assert (told["reason"], told["found"]) == ("secret", False)
    assert "kept out of the index" in told["answer"]
    for reference in ("D_0004", "secret.md", "口令 翡翠"):
        with pytest.raises(NotFound):
            memory.why_not("翡翠", reference)


def test_a_new_secret_card_is_not_told_of_either(memory):
    text = "---\nid: D_0050\nsensitivity: secret\n---\n# 新口令"
    memory.home.vault.joinpath("fresh.md").write_text(text, "utf-8")
    with pytest.raises(NotFound):
        memory.why_not("口令", "fresh.md")
    assert why(memory, "口令", "D_0050", secret=True)[0] == "secret"


def test_a_card_in_the_trash(memory):
    told = memory.capture("短命", "写下来就是为了很快再扔进废纸篓里去。")
    memory.forget(told.ref)
    reason, answer = why(memory, "短命", told.ref)
    assert reason == "in-trash"
    assert "memory trash --restore" in answer


@pytest.mark.parametrize("reference", ["N_0100", "新卡片", "fresh.md", "vault/fresh.md"])
def test_a_card_that_is_not_indexed_yet(reference, memory):
    text = "---\nid: N_0100\n---\n# 新卡片\n\n刚写的。"
    memory.home.vault.joinpath("fresh.md").write_text(text, "utf-8")
    told = memory.why_not("新卡片", reference)
    assert (told["reason"], told["ref"], told["path"]) == ("not-indexed", "N_0100", "fresh.md")
    assert told["answer"] == "It is new and not in the index yet: run `memory index`."


def test_a_file_that_could_not_be_read(memory):
    memory.home.vault.joinpath("locked.md").write_text("# 锁着\n\n内容", "utf-8")
    recorded(
        memory, "insert into files (source, path, mtime_ns, size, fault) "
        "values ('vault', 'locked.md', 0, 0, 'cannot be read: Permission denied')",
    )  # fmt: skip
    assert why(memory, "锁着", "locked.md") == (
        "unreadable",
        "Its file cannot be read: Permission denied, so the index has nothing of it.",
    )


def test_a_file_that_is_passed_over(memory):
    memory.home.vault.joinpath("huge.md").write_bytes(b"x" * (2 * 1024 * 1024 + 1))
    reason, answer = why(memory, "x", "huge.md")
    assert reason == "skipped"
    assert "larger than 2 MiB" in answer


def test_the_fault_of_a_file_is_told(memory):
    memory.home.vault.joinpath("keys.md").write_text(
        "---\nid: D_0001\nttl: soon\n---\n# 空", "utf-8"
    )
    memory.index()
    assert "ttl" in memory.why_not("账单", "D_0001")["fault"]


def test_a_file_that_could_not_be_read_again(memory):
    fault = "cannot be read: Input/output error"
    recorded(memory, f"update files set fault = '{fault}' where path = 'keys.md'")
    reason, answer = why(memory, "账单", "D_0001")
    assert reason == "unreadable"
    assert answer == (
        "Its file cannot be read: Input/output error; the index has its earlier text. "
        "It does not hold the term 账单."
    )


def test_what_the_file_says_since_it_was_indexed(memory):
    text = CARDS["keys.md"].replace("id: D_0001", "id: D_0001\nsuperseded_by: D_0002")
    memory.home.vault.joinpath("keys.md").write_text(text, "utf-8")
    told = memory.why_not("私钥", "D_0001")
    assert told["notes"] == [
        "its file says that it is superseded by D_0002, which the index may not know yet"
    ]
    assert told["stages"]["removed_by"] == "supersession"


def test_the_text_of_a_file_has_changed_since_it_was_indexed(memory):
    text = CARDS["keys.md"] + "\n现在改用 oracle 保管。\n"
    memory.home.vault.joinpath("keys.md").write_text(text, "utf-8")
    told = memory.why_not("oracle", "D_0001")
    assert told["answer"].startswith(
        "Its file has changed since it was indexed, and `memory index`"
    )
    memory.home.vault.joinpath("keys.md").unlink()
    assert memory.why_not("oracle", "D_0001")["answer"].startswith("Its file is gone")


def test_what_a_context_makes_of_a_card(memory):
    card = memory.capture(
        "苹果树修枝", "苹果树在二月修枝，留五根主枝，切口涂药。", kind="knowledge"
    )
    stages = memory.why_not("苹果树什么时候修枝", card.ref)["stages"]
    assert (stages["outcome"], stages["code"], stages["reason"]) == ("given", None, "as detail")
    memory.update(card.ref, tags=["needs-review"])
    stages = memory.why_not("苹果树什么时候修枝", card.ref)["stages"]
    assert (stages["outcome"], stages["code"]) == ("excluded", "needs-review")
    assert memory.why_not("修枝", card.ref)["stages"]["place"] == 1


def test_no_such_card(memory):
    with pytest.raises(NotFound, match="no card answers to 'D_9999'") as error:
        memory.why_not("私钥", "D_9999")
    assert "memory search" in error.value.hint


def test_several_cards(memory):
    for name in ("a", "b"):
        memory.home.vault.joinpath(f"{name}.md").write_text("# 同名\n\n一", "utf-8")
    memory.index()
    with pytest.raises(Ambiguous):
        memory.why_not("一", "同名")


# explain


def everything(home) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes()
        for path in sorted(home.rglob("*"))
        if path.is_file() and not path.name.startswith("memory.db")
    }


@pytest.mark.parametrize("query", ["阿里云 私钥", "值班", "阿里云的私钥在哪里", "无此事", ""])
@pytest.mark.parametrize("superseded", [False, True])
def test_explain_and_why_not_change_nothing(query, superseded, memory):
    plain = memory.search(query, superseded=superseded)
    before = everything(memory.home.home)
    explained = memory.search(query, superseded=superseded, explain=True)
    after = everything(memory.home.home)
    if plain.hits:
        assert before == after
    assert explained == plain
    memory.why_not(query, "D_0001")
    assert everything(memory.home.home) == after
    assert "explain" not in plain.to_dict()
    told = explained.to_dict()
    rows = told.pop("explain")["candidates"]
    assert told == plain.to_dict()
    given = [row["ref"] for row in rows if row["outcome"] == "included"]
    assert given == [hit.ref for hit in plain.hits]


def test_what_is_left_out_is_explained(memory):
    told = memory.search("值班", limit=2, explain=True).explain
    assert [row["outcome"] for row in told["candidates"]] == ["included"] * 2 + ["excluded"] * 7
    assert told["candidates"][2]["reason"] == "beyond the limit of 2"
    told = memory.search("阿里云 私钥", explain=True).explain
    (old,) = [row for row in told["candidates"] if row["ref"] == "D_0003"]
    assert (old["outcome"], old["reason"]) == (
        "excluded",
        "supersession: it is superseded by D_0001",
    )


# Commands


def test_the_table_of_explain(memory):
    done = command(memory.home.home, "search", "阿里云", "私钥", "--explain")
    assert done.returncode == 0
    head, row, *_ = done.stdout.partition("#  ref")[2].splitlines()
    assert head.split()[-2:] == ["mix", "outcome"]
    assert row.split()[:2] == ["1", "D_0001"]
    assert "terms and their worth: 阿里 " in done.stdout


def test_explain_in_json(memory):
    done = command(memory.home.home, "search", "私钥", "--explain", "--json")
    told = json.loads(done.stdout)
    assert told["explain"]["candidates"][0]["ref"] == told["hits"][0]["ref"]
    assert [stage["name"] for stage in told["explain"]["stages"] if stage["on"]] == [
        "mix",
        "supersession",
    ]


def test_explain_says_so_when_there_is_nothing(memory):
    done = command(memory.home.home, "search", "翡翠", "--explain")
    assert done.returncode == 1
    assert "terms and their worth: 翡翠 " in done.stdout
    assert "No card answers" in done.stderr


def test_the_filters_of_the_command(memory):
    done = command(memory.home.home, "search", "私钥", "--exclude-tag", "运维", "--json")
    assert (done.returncode, json.loads(done.stdout)["hits"]) == (1, [])
    done = command(memory.home.home, "search", "私钥", "--sensitivity", "internal", "--json")
    assert json.loads(done.stdout)["count"] == 1
    done = command(memory.home.home, "search", "私钥", "--sensitivity", "secret")
    assert done.returncode == 2
    assert "'secret' is not one of" in done.stderr


def test_why_not_begins_with_a_sentence(memory):
    done = command(memory.home.home, "why-not", "阿里云 私钥", "D_0002")
    assert done.returncode == 0
    first, *rest = done.stdout.splitlines()
    assert first.startswith("1 card holds all keywords")
    assert {line.split()[0] for line in rest} == {"card", "holds", "lacks", "tier"}


def test_why_not_in_json(memory):
    done = command(memory.home.home, "why-not", "值班", "M_0001", "-n", "1", "--json")
    told = json.loads(done.stdout)
    assert (told["query"], told["reason"], told["limit"]) == ("值班", "limit", 1)


def test_why_not_of_a_secret_card(memory):
    done = command(memory.home.home, "why-not", "翡翠", "D_0004")
    assert done.returncode == 0
    assert "secret" in done.stdout


def test_why_not_of_no_card(memory):
    done = command(memory.home.home, "why-not", "私钥", "D_9999")
    assert (done.returncode, done.stdout) == (1, "")
    assert "no card answers to 'D_9999'" in done.stderr


@pytest.mark.parametrize("reference", ["a\0b", "\ud800", "x" * 5_000, "~nobody/\0", ""])
def test_a_reference_that_nothing_can_have_is_no_card(reference, memory):
    with pytest.raises(NotFound):
        memory.why_not("备份", reference)
