"""The JSON API on really running servers: what it answers, what it writes, and what it refuses."""

import importlib.util
import json
import shutil
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import pytest
from datasette.utils import tilde_encode
from jsonschema import Draft202012Validator

from datasette_memory.index.lock import vault_lock
from datasette_memory.memory import Memory
from datasette_memory.openapi import SCHEMAS
from memory_cli.serve import command, find_metadata


def _helper(name: str):
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


homes, serving = _helper("homes"), _helper("serving")
Client = serving.Client

BODY = "站点根目录在 /srv/www/orchid，不是 /var/www，改之前先看一眼。"
OTHER = "站点的日志在 /var/log/orchid，每天凌晨轮转一次，留三十天。"


@pytest.fixture
def place():
    with homes.place() as folder:
        yield folder


@pytest.fixture
def served(place, small_vault, serve, free_port):
    """A home with the cards of the tests, and `memory serve` on it: (memory, url)."""
    memory = serving.home_with(place / "home", small_vault)
    argv = command(
        memory.db, port=free_port, host="127.0.0.1", open_browser=False, metadata=find_metadata(),
        root=True,
    )  # fmt: skip
    with serve(argv, free_port, serving.environment(memory.home.home)) as url:
        yield memory, url


def cli(memory, *arguments: str) -> dict:
    return json.loads(homes.command(memory.home.home, *arguments, "--json").stdout)


# The same answers


def test_the_same_question_gives_the_same_answer_everywhere(served):
    memory, url = served
    nobody = Client(url)
    memory.capture("长长的原文", BODY, kind="episode", raw="原文\n" * 9000, by={})
    searches = [
        {"q": "全文检索"}, {"q": "备份 外部"}, {"q": "userById", "limit": 1}, {"q": "?!"},
        {"q": "检索", "kind": "decision", "superseded": "true"}, {"q": "检索", "project": "燕子"},
        {"q": "检索", "tags": "检索,SQLite"}, {"q": "端口", "since": "2026-01-01", "limit": 99},
        {"q": "检索", "as_of": "2026-02-15"}, {"q": "检索", "source": "vault"},
    ]  # fmt: skip
    for asked in searches:
        options = {key: value for key, value in asked.items() if key != "q"}
        flags = [
            part
            for key, value in options.items()
            for part in (
                [f"--{key}"] if value == "true" else [f"--{key.replace('_', '-')}", str(value)]
            )
        ]
        status, answer = nobody.get("/-/memory/search.json", **asked)
        assert status == 200
        assert answer == cli(memory, "search", asked["q"], *flags)
        told = dict(options)
        told["tags"] = told["tags"].split(",") if "tags" in told else ()
        told["superseded"] = told.get("superseded") == "true"
        assert answer == memory.search(asked["q"], **told).to_dict()
    assert nobody.get("/-/memory/search.json", q="全文检索")[1]["hits"][0]["ref"] == "D_0001"

    for ref, options in (
        ("D_0001", {}), ("17-Notes/long.md", {"offset": 100, "max_chars": 50}), ("F_0001", {}),
        ("getUserById is batched", {}), ("D_0001", {"max_chars": 0}),
    ):  # fmt: skip
        flags = [part for k, v in options.items() for part in (f"--{k.replace('_', '-')}", str(v))]
        answer = nobody.get(f"/-/memory/cards/{tilde_encode(ref)}.json", **options)
        assert answer == (200, cli(memory, "show", ref, *flags))
        assert answer[1] == memory.show(ref, **options).to_dict()
    for ref, options in (("D_0001", {}), ("D_0001", {"depth": 3}), ("N_0001", {})):
        flags = [part for k, v in options.items() for part in (f"--{k}", str(v))]
        answer = nobody.get(f"/-/memory/related/{ref}.json", **options)
        assert answer == (200, cli(memory, "related", ref, *flags))
        assert answer[1] == memory.related(ref, **options)
    answer = nobody.get("/-/memory/raw/E_0001.json", offset=5, max_chars=7)
    assert answer == (200, cli(memory, "raw", "E_0001", "--offset", "5", "--max-chars", "7"))
    assert answer[1] == memory.raw("E_0001", offset=5, max_chars=7)
    as_described = {"$ref": "#/components/schemas/Raw", "components": {"schemas": SCHEMAS}}
    Draft202012Validator(as_described).validate(answer[1])
    for ref in ("长长的原文", "13-Episodes/长长的原文.md", str(memory.show("E_0001").card["id"])):
        status, again = nobody.get(f"/-/memory/raw/{tilde_encode(ref)}.json")
        assert (status, again["ref"], again["length"]) == (200, "E_0001", 27000)
    status, answer = nobody.get("/-/memory/stats.json")
    assert status == 200 and answer == cli(memory, "stats") == memory.stats().to_dict()
    assert answer["cards"] == 7


def test_a_reference_may_be_a_path_or_a_title_in_either_encoding(served):
    memory, url = served
    for ref in (
        "D_0001", "d_0001", "09-Decisions/全文检索.md", "vault/09-Decisions/全文检索.md",
        "全文检索用二元组", str(memory.db.parent / "vault/09-Decisions/全文检索.md"),
    ):  # fmt: skip
        for encoded in (tilde_encode(ref), quote(ref), quote(ref, safe="")):
            status, card = Client(url).get(f"/-/memory/cards/{encoded}.json")
            assert (status, card["ref"]) == (200, "D_0001"), encoded
    # Titles that look like encodings.
    for title in ("100% ~7E a/b.json", "q?x=1&y=#z", "~2F", "a/-/b"):
        memory.capture(title, BODY + title, by={})
        status, card = Client(url).get(f"/-/memory/cards/{tilde_encode(title)}.json")
        assert (status, card["title"]) == (200, title)


# Writing


def test_a_card_from_its_birth_to_the_trash(served):
    memory, url = served
    root = Client(url, actor="root")
    status, made = root.post(
        "/-/memory/cards", title="站点根目录", body=BODY, kind="decision", tags=["nginx", "运维"],
        confidence=0.9, agent="小助手", session="s-1", raw="很长的原文" * 10,
        relates=[{"type": "caused_by", "target": "F_0001"}],
    )  # fmt: skip
    assert (status, made["status"], made["ref"], made["indexed"]) == (
        201,
        "created",
        "D_0003",
        True,
    )
    text = homes.cards(memory.home.home)["09-Decisions/站点根目录.md"].decode()
    assert BODY in text and "nginx" in text and "小助手" in text
    status, again = root.post("/-/memory/cards", title="站点根目录", body=BODY)
    assert (status, again["status"], again["ref"]) == (200, "unchanged", "D_0003")

    status, changed = root.post("/-/memory/cards/D_0003/-/update", body=OTHER, tags=None)
    assert (status, changed["status"], changed["version"]) == (200, "updated", 2)
    status, card = root.get("/-/memory/cards/D_0003.json")
    assert OTHER in card["text"] and card["tags"] == []
    status, linked = root.post("/-/memory/links", ref="D_0003", type="refers to", target="C_0001")
    assert (status, linked["status"]) == (200, "linked")
    found = root.get("/-/memory/related/D_0003.json")[1]["cards"]
    assert {(one["type"], one["ref"]) for one in found} == {
        ("caused_by", "F_0001"), ("refers_to", "C_0001"),
    }  # fmt: skip
    link = {"ref": "D_0003", "type": "refers_to", "target": "C_0001"}
    assert root.post("/-/memory/links", "DELETE", **link)[1]["status"] == "unlinked"
    assert root.post("/-/memory/links", "DELETE", **link)[1]["status"] == "unchanged"

    status, newer = root.post(
        "/-/memory/cards/D_0003/-/supersede", title="站点搬家", body=BODY + "已搬到 /data。"
    )
    assert (status, newer["status"], newer["supersedes"]) == (201, "superseded", "D_0003")
    status, gone = root.post("/-/memory/cards/D_0003/-/forget")
    assert (status, gone["status"]) == (200, "trashed")
    assert root.get("/-/memory/cards/D_0003.json")[0] == 404
    assert list(homes.trash(memory.home.home)) == ["09-Decisions/站点根目录.md"]

    events = homes.events(memory.home.home, "created", "updated", "linked", "trashed")
    assert {event["by"]["surface"] for event in events} == {"api"}
    assert {event["by"]["agent"] for event in events} == {"root"}
    assert events[0]["by"]["session"] == "s-1"


def test_reindex_follows_what_an_editor_did(served):
    memory, url = served
    (memory.home.vault / "17-Notes" / "手写.md").write_text("# 手写的一页\n\n凤凰木", "utf-8")
    assert Client(url).get("/-/memory/search.json", q="凤凰木")[1]["count"] == 0
    root = Client(url, actor="root")
    status, done = root.post("/-/memory/reindex")
    assert (status, done["added"], done["unchanged"]) == (200, 1, 6)
    assert Client(url).get("/-/memory/search.json", q="凤凰木")[1]["count"] == 1
    # A new file in the place of the old one is what is read from then on.
    status, done = root.post("/-/memory/reindex", rebuild=True)
    assert (status, done["added"]) == (200, 7)
    root.post("/-/memory/cards", title="三角梅", body=BODY)
    assert Client(url).get("/-/memory/search.json", q="三角梅")[1]["count"] == 1


def test_get_writes_no_card_and_tells_the_ledger_who_read(served):
    memory, url = served
    before = homes.digest(memory.home.vault)
    root = Client(url, actor="root")
    root.get("/-/memory/cards/F_0001.json")
    Client(url).get("/-/memory/search.json", q="独角兽")
    for path in ("cards", "cards/F_0001/-/update", "cards/F_0001/-/forget", "links", "reindex"):
        status, answer = root.get(f"/-/memory/{path}")
        assert (status, answer["ok"], answer["status"]) == (405, False, 405)
    assert homes.digest(memory.home.vault) == before
    [read, gap] = homes.events(memory.home.home, "read", "gap")
    assert (read["ref"], read["by"]["surface"], read["by"]["agent"]) == ("F_0001", "api", "root")
    assert (gap["query"], gap["by"]["agent"]) == ("独角兽", None)


# Refusals


def test_errors_have_one_shape_and_the_right_status(served):
    memory, url = served
    root = Client(url, actor="root")
    for name in ("a", "b"):
        (memory.home.vault / f"{name}.md").write_text(f"# 同名\n\n{name}", "utf-8")
    memory.index()
    new = {"title": "站点根目录", "body": BODY}
    root.post("/-/memory/cards", **new)
    asked = [
        (400, root.get("/-/memory/search.json")),
        (400, root.get("/-/memory/search.json", q="x", limit="five")),
        (400, root.get("/-/memory/search.json", q="x", knid="note")),
        (400, root.get("/-/memory/search.json", q=["x", "y"])),
        (400, root.get("/-/memory/search.json", q="x", since="someday")),
        (400, root.get("/-/memory/search.json", q="x", superseded="maybe")),
        (400, root.get("/-/memory/related/D_0001.json", depth=6)),
        (400, root.post("/-/memory/cards", title="x")),
        (400, root.post("/-/memory/cards", **new, colour="red")),
        (400, root.post("/-/memory/cards", title="x", body=7)),
        (400, root.post("/-/memory/cards", title="太短", body="短")),
        (400, root.post("/-/memory/cards/D_0001/-/update")),
        (400, root.post("/-/memory/cards", title="x" * 501, body=BODY)),
        (404, root.get("/-/memory/cards/D_0404.json")),
        (404, root.get("/-/memory/raw/D_0001.json")),
        (404, root.get("/-/memory/nonsense")),
        (404, root.get("/nonsense/-/memory/stats.json")),
        (404, root.post("/-/memory/cards/D_0404/-/forget")),
        (409, root.get(f"/-/memory/cards/{tilde_encode('同名')}.json")),
        (409, root.post(f"/-/memory/cards/{tilde_encode('同名')}/-/forget")),
        (409, root.post("/-/memory/cards", title="站点根目录", body=OTHER, on_conflict="reject")),
    ]
    for status, (answered, told) in asked:
        assert answered == status, told
        assert told["ok"] is False and told["status"] == status and told["error"]
        assert set(told) <= {"ok", "error", "hint", "status", "candidates", "change"}
    candidates = asked[-3][1][1]["candidates"]
    assert len(candidates) == 2 and all("vault/" in one and "同名" in one for one in candidates)
    refused = asked[-1][1][1]["change"]
    assert (refused["status"], refused["existing_path"]) == ("conflict", "17-Notes/站点根目录.md")
    assert len(homes.cards(memory.home.home)) == 9


def test_json_that_is_none_deep_or_huge_is_the_senders_fault(served):
    _, url = served
    root = Client(url, actor="root")
    deep = b'{"title": ' + b"[" * 200_000
    for body in (
        b"", b"[]", b"null", b"{", b'"x"', b"\xff\xfe", b"\xef\xbb\xbf{}", deep, b"[" * 2_000_000,
        b'{"title": NaN, "body": "x"}', b'{"title": "x", "body": ' + b"9" * 100_000 + b"}",
        b'{"title": "x", "body": "' + b"x" * 2_000_000 + b'"',
    ):  # fmt: skip
        status, _, answer = root.send(
            "POST", "/-/memory/cards", body, Content_Type="application/json"
        )
        told = json.loads(answer)
        assert (status, told["ok"]) == (400, False), body[:40]
        assert len(told["error"]) < 1000
    # Half of a surrogate pair is JSON, and no text that a file could hold.
    status, _, answer = root.send(
        "POST", "/-/memory/cards", json.dumps({"title": "半\ud800个", "body": BODY}).encode(),
        Content_Type="application/json",
    )  # fmt: skip
    assert status == 201 and "ud800" not in json.loads(answer)["path"]


def test_what_cannot_be_written_now_is_kept_for_later(served):
    memory, url = served
    (memory.home.vault / "09-Decisions").chmod(0o755)
    shutil.rmtree(memory.home.vault / "21-Policies", ignore_errors=True)
    # A file where a folder should be: the card cannot be written before that is mended.
    (memory.home.vault / "21-Policies").write_text("in the way")
    status, told = Client(url, actor="root").post(
        "/-/memory/cards", title="规矩", body=BODY, kind="policy"
    )
    assert (status, told["status"]) == (202, "pending"), told
    assert [one["arguments"]["new"]["title"] for one in homes.pending(memory.home.home)] == ["规矩"]


def test_a_damaged_index_is_not_the_fault_of_who_asks(served):
    memory, url = served
    with sqlite3.connect(memory.db) as connection:
        connection.execute("drop table meta")
    connection.close()
    status, told = Client(url).get("/-/memory/stats.json")
    assert (status, told["ok"]) == (503, False) and "memory-import" in told["hint"]


# Several memories, and what they may be


def test_several_memories_each_under_its_name(place, small_vault, serve, free_port):
    first = serving.home_with(place / "one", small_vault)
    second = Memory(str(place / "two"))
    second.capture("第二个记忆", BODY, by={})
    with sqlite3.connect(second.db) as connection:
        connection.execute("vacuum into ?", [str(place / "笔记 2.db")])  # The index of no home.
    connection.close()
    (place / "still").mkdir()
    still = serving.home_with(place / "still" / "home", small_vault)
    frozen = place / "still" / "home" / "frozen.db"
    (place / "still" / "home" / "config.json").write_text('{"db": "frozen.db"}')
    for path in (still.db,):
        with sqlite3.connect(path) as connection:
            connection.execute("pragma wal_checkpoint(truncate)")
            connection.execute("pragma journal_mode = delete")
        connection.close()
        path.rename(frozen)
    other = place / "other.db"
    sqlite3.connect(other).execute("create table cards (a)")
    argv = serving.datasette_argv(
        other, first.db, second.db, place / "笔记 2.db", port=free_port
    ) + ["--immutable", str(frozen)]
    before = homes.digest(place / "still")
    with serve(argv, free_port, serving.environment(place / "none")) as url:
        root = Client(url, actor="root")
        # The first of them that is a memory.
        assert root.get("/-/memory/stats.json")[1]["cards"] == 6
        names = {
            "/memory": 6, "/memory_2": 1, f"/{tilde_encode('笔记 2')}": 1, "/frozen": 6,
        }  # fmt: skip
        for prefix, count in names.items():
            status, told = root.get(f"{prefix}/-/memory/stats.json")
            assert (status, told.get("cards")) == (200, count), (prefix, told)
        assert root.get("/other/-/memory/stats.json")[0] == 404
        # Each is written into its own vault.
        for prefix, memory, cards in (("/memory", first, 7), ("/memory_2", second, 2)):
            status, made = root.post(f"{prefix}/-/memory/cards", title="新", body=OTHER)
            assert (status, made["status"]) == (201, "created"), made
            assert len(homes.cards(memory.home.home)) == cards
        # What belongs to no home, or is immutable, is read alone.
        for prefix, word in ((f"/{tilde_encode('笔记 2')}", "no home"), ("/frozen", "immutable")):
            for path in ("cards", "cards/D_0001/-/forget", "reindex", "links"):
                body = {
                    "cards": {"title": "新", "body": OTHER},
                    "links": {"ref": "a", "type": "b", "target": "c"},
                }.get(path, {})
                status, told = root.post(f"{prefix}/-/memory/{path}", **body)
                assert status == 403 and word in told["error"], told
            assert root.get(f"{prefix}/-/memory/search.json", q="独角兽")[0] == 200
        assert root.get("/frozen/-/memory/cards/D_0001.json")[1]["title"] == "全文检索用二元组"
        assert root.get("/frozen/-/memory/search.json", q="独角兽")[1]["count"] == 0
    assert homes.digest(place / "still") == before


def test_no_memory_at_all(place, serve, free_port):
    other = place / "other.db"
    sqlite3.connect(other).execute("create table t (a)")
    argv = serving.datasette_argv(other, port=free_port)
    with serve(argv, free_port, serving.environment(place / "none")) as url:
        status, told = Client(url).get("/-/memory/search.json", q="x")
        assert (status, told["error"]) == (404, "no memory is served here")
        assert Client(url).get("/-/memory/openapi.json")[0] == 200


# Many at once


def test_fifty_writers_at_once_make_fifty_cards(served):
    memory, url = served
    root = Client(url, actor="root")

    def write(number: int):
        return root.post("/-/memory/cards", title=f"并发 {number}", body=f"{BODY} 第 {number} 张。")

    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(write, range(50)))
    assert {status for status, _ in answers} == {201}
    refs = {told["ref"] for _, told in answers}
    assert len(refs) == len({told["path"] for _, told in answers}) == 50
    assert all(told["indexed"] for _, told in answers)
    assert sorted(homes.ids(memory.home.home)) == sorted(
        refs | {"D_0001", "D_0002", "F_0001", "C_0001", "N_0001"}
    )
    assert Client(url).get("/-/memory/stats.json")[1]["cards"] == 56
    assert len(homes.events(memory.home.home, "created")) == 50


def test_writers_who_wait_hold_up_no_reader(served):
    memory, url = served
    root = Client(url, actor="root")
    answers = []

    def write(number: int) -> None:
        answers.append(
            root.post("/-/memory/cards", title=f"排队 {number}", body=BODY + str(number))
        )

    # More than there are threads in the server.
    writers = [threading.Thread(target=write, args=(number,)) for number in range(40)]
    with vault_lock(memory.home.home, lambda: True) as turn:
        for writer in writers:
            writer.start()
        for _ in range(20):
            status, told = Client(url).get("/-/memory/search.json", q="备份")
            assert (status, told["count"]) == (200, 1)
        assert not answers and all(writer.is_alive() for writer in writers)
        turn.whole = True
    for writer in writers:
        writer.join()
    assert {status for status, _ in answers} == {201}


# What is secret, and what is hostile


def everything(url: str, db: Path, words: list[str]) -> list[str]:
    """Every page and route that could show a card."""
    client = Client(url)
    with sqlite3.connect(db) as connection:
        tables = [
            name
            for (name,) in connection.execute(
                "select name from sqlite_master where type in ('table', 'view')"
            )
        ]
        rows = [id for (id,) in connection.execute("select id from cards")]
    connection.close()
    paths = ["/", "/memory", "/-/databases.json", "/-/memory/stats.json", "/-/memory/openapi.json"]
    for table in tables:
        paths += [f"/memory/{tilde_encode(table)}{end}" for end in ("", ".json")]
    queries = "recent by-kind never-read broken-links index-health search?q=8765+hacked".split()
    paths += [f"/memory/{query}" for query in queries]
    for id in rows:
        paths += [f"/memory/cards/{id}", f"/memory/cards/{id}.json"]
        paths += [f"/-/memory/{kind}/{id}.json" for kind in ("cards", "related", "raw")]
    for word in words:
        word = quote(word)
        paths.append(f"/memory/search?q={word}")
        # A search that finds nothing would be kept in the ledger, as a gap.
        paths += [f"/memory/cards?_search={word}", f"/-/memory/search.json?q={word}+8765"]
        paths += [f"/-/memory/{kind}/{word}.json" for kind in ("cards", "related", "raw")]
    pages = []
    for path in paths:
        status, _, body = client.send("GET", path)
        assert status < 500, (path, body[:300])
        text = body.decode("utf-8", "replace")
        for word in words:
            # What was asked for comes back as the question.
            if word in path or quote(word) in path:
                continue
            assert word not in text, (path, word)
        pages.append(text)
    return pages


def test_a_secret_card_reaches_no_server(served):
    memory, url = served
    root = Client(url, actor="root")
    words = ["zqtitlexv", "zqbodyxv", "zqtagxv", "zqrawxv", "zqlaterxv", "zqtypexv", "紫檀匣", "青铜匙",
             "琥珀令"]  # fmt: skip
    cards = {
        "title": "紫檀匣 zqtitlexv", "body": f"{BODY} 青铜匙 zqbodyxv", "tags": ["zqtagxv"],
        "summary": "琥珀令", "raw": "zqrawxv " * 50, "sensitivity": "secret", "kind": "fact",
    }  # fmt: skip
    status, made = root.post("/-/memory/cards", **cards)
    assert (status, made["id"], made["indexed"]) == (201, None, False)
    ref = made["ref"]

    def searched(pages: bool = False) -> None:
        if pages:
            everything(url, memory.db, words)
        with sqlite3.connect(memory.db) as connection:
            connection.text_factory = bytes
            names = connection.execute(
                "select name from sqlite_master where type in ('table', 'view')"
            ).fetchall()
            from datasette_memory.index.functions import register

            register(connection)
            for (name,) in names:
                for row in connection.execute(f'select * from "{name.decode()}"'):
                    for value in row:
                        told = value if isinstance(value, bytes) else str(value).encode()
                        assert not any(word.encode() in told for word in words), name
        connection.close()
        for path in memory.home.home.glob("memory.db*"):
            data = path.read_bytes()
            for word in words:
                for form in (word, word[:2] if not word.isascii() else word):
                    assert form.encode() not in data, (path, form)

    searched(pages=True)
    # Who asks for it by any of its names is told that there is no such card.
    for name in (ref, made["path"], "紫檀匣 zqtitlexv"):
        name = tilde_encode(name)
        assert root.get(f"/-/memory/cards/{name}.json")[0] == 404
        assert root.get(f"/-/memory/related/{name}.json")[0] == 404
        assert root.get(f"/-/memory/raw/{name}.json")[0] == 404
        for change, body in (
            ("update", {"body": OTHER}), ("forget", {}), ("supersede", {"title": "新", "body": OTHER}),
        ):  # fmt: skip
            status, told = root.post(f"/-/memory/cards/{name}/-/{change}", **body)
            assert status == 404 and "path" not in told
    for link in ({"ref": ref, "target": "F_0001"}, {"ref": "F_0001", "target": "紫檀匣 zqtitlexv"}):
        assert root.post("/-/memory/links", type="refers_to", **link)[0] == 404
    status, _ = root.post(
        "/-/memory/cards", title="新", body=OTHER, relates=[{"type": "x", "target": ref}]
    )
    assert status == 404

    # Its owner, on the command line, may do all of that; and the server still knows nothing.
    home = memory.home.home
    for arguments in (
        ["update", ref, "--body", f"{OTHER} zqlaterxv"],
        ["link", ref, "zqtypexv", "F_0001"],
        ["index"],
        ["index", "--rebuild"],
    ):
        assert homes.command(home, *arguments).returncode == 0
        searched()
    assert root.post("/-/memory/reindex")[1]["secret"] == 1
    searched(pages=True)
    assert homes.command(home, "show", ref).stdout.count("zqlaterxv") == 1
    assert homes.command(home, "forget", ref).returncode == 0
    searched()
    assert root.post("/-/memory/reindex", rebuild=True)[1]["secret"] == 0
    searched()


def test_a_card_that_became_secret_is_gone_from_the_server(served):
    memory, url = served
    root = Client(url, actor="root")
    body = f"{BODY} zqbodyxv 青铜匙"
    ref = root.post("/-/memory/cards", title="紫檀匣", body=body)[1]["ref"]
    assert root.get("/-/memory/search.json", q="zqbodyxv")[1]["count"] == 1
    status, told = root.post(f"/-/memory/cards/{ref}/-/update", sensitivity="secret")
    assert (status, told["indexed"]) == (200, False)
    for path in memory.home.home.glob("memory.db*"):
        for word in ("zqbodyxv", "紫檀匣", "青铜", "檀匣"):
            assert word.encode() not in path.read_bytes(), (path, word)
    assert root.get(f"/-/memory/cards/{ref}.json")[0] == 404
    # What it said while it was secret stays so when it no longer is.
    homes.command(memory.home.home, "update", ref, "--body", f"{OTHER} zqlaterxv")
    homes.command(memory.home.home, "link", ref, "zqtypexv", "F_0001")
    moment = homes.events(memory.home.home, "linked")[0]["t"]
    homes.command(memory.home.home, "unlink", ref, "zqtypexv", "F_0001")
    homes.command(memory.home.home, "update", ref, "--sensitivity", "internal", "--body", OTHER)
    status, told = root.get(f"/-/memory/cards/{ref}.json", as_of=moment)
    assert status == 404 and "zqlaterxv" not in json.dumps(told)
    status, told = root.get(f"/-/memory/related/{ref}.json", as_of=moment)
    assert (status, told["count"]) == (200, 0)
    assert "zqtypexv" in homes.command(memory.home.home, "related", ref, "--as-of", moment).stdout
    assert root.get(f"/-/memory/cards/{ref}.json")[1]["text"].strip() == OTHER


HOSTILE = """<script>window.hacked=1</script><img src=x onerror="window.hacked=2">
<svg onload=window.hacked=3><a href="javascript:window.hacked=4">a</a>
[b](javascript:window.hacked=5) ![c](https://tracker.example/p.png) <iframe src=//x></iframe>
`</code><script>window.hacked=6</script>` 敌意"""


#: The attributes by which a page asks for something by itself.
LOADS = ("src", "srcset", "poster", "data", "background", "style")


def test_hostile_cards_are_text_on_every_page(served):
    from html.parser import HTMLParser

    memory, url = served
    root = Client(url, actor="root")
    line = HOSTILE.replace("\n", " ")
    card = {
        "title": line[:400], "body": HOSTILE, "summary": line, "tags": ["<b onclick=hacked>t</b>"],
        "keywords": ["<script>hacked</script>"], "aliases": ["<img src=x onerror=hacked>"],
        "kind": "<i>hacked</i>", "project": "<script>hacked</script>", "agent": "<u onload=hacked>",
    }  # fmt: skip
    status, made = root.post("/-/memory/cards", **card)
    assert status == 201, made
    root.post("/-/memory/links", ref=made["ref"], type="<script>hacked</script>", target="F_0001")

    class Live(HTMLParser):
        def handle_starttag(self, tag, attributes):
            self.tag = tag
            for name, value in attributes:
                assert not (name.startswith("on") and "hacked" in (value or "")), (name, value)
                assert not (value or "").strip().lower().startswith("javascript:"), value
                assert "tracker.example" not in (value or "") or name not in LOADS, (tag, name)
            assert tag not in ("iframe", "svg") or "hacked" not in str(attributes)

        def handle_data(self, data):
            assert getattr(self, "tag", "") != "script" or "hacked" not in data

        def handle_endtag(self, tag):
            self.tag = ""

    pages = everything(url, memory.db, [])
    seen = 0
    for page in pages:
        if page.lstrip().startswith("<!DOCTYPE html>"):
            Live().feed(page)
            seen += "hacked" in page
    assert seen >= 8
    # The JSON holds the text as it is, and no browser takes it for a page.
    for path in (f"cards/{made['ref']}.json", "search.json?q=hacked"):
        _, headers, body = Client(url).send("GET", f"/-/memory/{path}")
        assert headers["content-type"] == "application/json; charset=utf-8"
        assert "<script>window.hacked=1</script>" in str(json.loads(body))
