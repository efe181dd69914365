"""Who may do what, by every route, on really running servers; whichever Datasette is installed."""

import importlib.util
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from datasette_auth_passwords.utils import hash_password

from memory_cli.serve import command, find_metadata

_spec = importlib.util.spec_from_file_location("serving", Path(__file__).with_name("serving.py"))
serving = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(serving)
Client, LINE_1_0 = serving.Client, serving.LINE_1_0

# Each as a request that is refused by its contents, once it is let in.
READS = {
    "search": ("GET", "search.json?q=x"), "get": ("GET", "cards/F_0001.json"),
    "related": ("GET", "related/F_0001.json"), "raw": ("GET", "raw/F_0001.json"),
    "stats": ("GET", "stats.json"),
}  # fmt: skip
ADDS = {"capture": ("POST", "cards", {"title": "x", "body": "短"})}
CHANGES = {
    "update": ("POST", "cards/F_0404/-/update", {"title": "x"}),
    "link": ("POST", "links", {"ref": "F_0404", "type": "x", "target": "y"}),
    "unlink": ("DELETE", "links", {"ref": "F_0404", "type": "x", "target": "y"}),
    "reindex": ("POST", "reindex", {}),
}
BOTH = {"supersede": ("POST", "cards/F_0404/-/supersede", {"title": "x", "body": "短"})}
REMOVES = {"forget": ("POST", "cards/F_0404/-/forget", {})}
ROUTES = READS | ADDS | CHANGES | BOTH | REMOVES


def let_in(client: Client, prefix: str = "") -> set[str]:
    """The routes that do not answer 403."""
    found = set()
    for name, (method, path, *body) in ROUTES.items():
        path = f"{prefix}/-/memory/{path}"
        status, told = client.post(path, method, **body[0]) if body else client.get(path)
        assert status in (200, 400, 403, 404), (name, told)
        assert (status == 403) == (told.get("status") == 403)
        if status != 403:
            found.add(name)
    return found


def test_without_configuration_anybody_reads_and_root_alone_writes(
    tmp_path, small_vault, serve, free_port
):
    memory = serving.home_with(tmp_path / "home", small_vault)
    argv = command(
        memory.db, port=free_port, host="127.0.0.1", open_browser=False, metadata=find_metadata(),
        root=True,
    )  # fmt: skip
    with serve(argv, free_port, serving.environment(memory.home.home)) as url:
        for prefix in ("", "/memory"):
            for nobody in (Client(url), Client(url, actor="bob"), Client(url, actor="owner"),
                           Client(url, token="guess") if not LINE_1_0 else Client(url)):  # fmt: skip
                assert let_in(nobody, prefix) == set(READS)
            assert let_in(Client(url, actor="root"), prefix) == set(ROUTES)
        if LINE_1_0:
            # A token that is none is told so.
            assert Client(url, token="dstok_guess").send("GET", "/-/memory/stats.json")[0] == 401
        status, told = Client(url).post("/-/memory/cards", title="x", body="y" * 50)
        assert (status, told["hint"]) == (403, "log in, or send a token")


@pytest.fixture
def closed(tmp_path) -> Path:
    """The ready configuration with all of its choices taken, as its comments say."""
    text = find_metadata().read_text(encoding="utf-8")
    head, plugins = text.split("\nplugins:\n")
    opened = re.sub(r"^( *)# (?=( *)[$a-z_-]+:|( *)- token)", r"\1", plugins, flags=re.M)
    path = tmp_path / "closed.yml"
    path.write_text(f"{head}\nplugins:\n{opened}", encoding="utf-8")
    loaded = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert set(loaded["permissions"]) == {"insert-row", "update-row", "delete-row"}
    assert loaded["databases"]["memory"]["allow"] == {"id": ["root", "owner", "agent"]}
    assert loaded["plugins"]["datasette-auth-tokens"]["tokens"][0]["actor"] == {"id": "agent"}
    return path


def token(*restrictions: str) -> str:
    """A token of Datasette 1.0 for the actor `agent`."""
    done = subprocess.run(
        [sys.executable, "-m", "datasette", "create-token", "agent", "--secret", serving.SECRET,
         *restrictions],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.strip()


def test_the_ready_set_up_for_people_and_agents(tmp_path, small_vault, serve, free_port, closed):
    memory = serving.home_with(tmp_path / "home", small_vault)
    argv = command(
        memory.db, port=free_port, host="127.0.0.1", open_browser=False, metadata=closed, root=True
    )
    secrets = {
        "MEMORY_PASSWORD_HASH": hash_password("s3cret", iterations=10),
        "MEMORY_TOKEN": "a-long-random-text",
    }
    with serve(argv, free_port, serving.environment(memory.home.home) | secrets) as url:
        nobody = Client(url)
        assert let_in(nobody) == let_in(Client(url, actor="bob")) == set()
        for path in ("/memory", "/memory/cards.json", "/memory/cards/1", "/memory/cards_fts.json",
                     "/memory/search.json?q=x"):  # fmt: skip
            assert nobody.send("GET", path)[0] == 403, path
        assert let_in(Client(url, actor="root")) == set(ROUTES)

        # People log in with a password, in a form as a browser sends it.
        _, headers, page = nobody.send("GET", "/-/login")
        cookie = headers.get("set-cookie", "").partition(";")[0]
        found = re.search(rb'name="csrftoken" value="([^"]*)"', page)
        form = f"username=owner&password=s3cret&csrftoken={found[1].decode() if found else ''}"
        status, headers, _ = nobody.send(
            "POST", "/-/login", form.encode(), Cookie=cookie,
            Content_Type="application/x-www-form-urlencoded",
        )  # fmt: skip
        assert status == 302
        owner = Client(url)
        owner.headers["Cookie"] = headers["set-cookie"].partition(";")[0]
        assert let_in(owner) == set(ROUTES)

        # Agents send a token, and may do all but forget.
        agent = Client(url, token=token() if LINE_1_0 else "a-long-random-text")
        assert let_in(agent) == set(ROUTES) - set(REMOVES)
        status, made = agent.post(
            "/-/memory/cards", title="代理写的", body="站点根目录在别处。" * 4
        )
        assert (status, made["status"]) == (201, "created")
        wrong = Client(url, token="another-random-text")
        status = wrong.send("GET", "/-/memory/stats.json")[0]
        assert status in (401, 403)
        if LINE_1_0:
            cards = ["--resource", "memory", "cards"]
            reader = Client(url, token=token(*cards, "view-table"))
            assert let_in(reader) == set(READS)
            writer = Client(url, token=token(*cards, "view-table", *cards, "insert-row"))
            assert let_in(writer) == set(READS | ADDS)
            # A token gives nothing that its actor does not have.
            greedy = Client(url, token=token(*cards, "view-table", *cards, "delete-row"))
            assert let_in(greedy) == set(READS)
            other = Client(url, token=token("--resource", "memory", "links", "view-table"))
            assert let_in(other) == set()


def test_a_permission_for_one_table_alone(tmp_path, small_vault, serve, free_port):
    """1.0 has `permissions:` at every level; with the plugin, 0.65 has it at the highest."""
    memory = serving.home_with(tmp_path / "home", small_vault)
    rules = {"insert-row": {"id": "writer"}, "update-row": {"id": ["writer", "editor"]}}
    configuration = {"databases": {"memory": {"tables": {"cards": {"permissions": rules}}}}}
    if not LINE_1_0:
        configuration = {"permissions": rules}
    argv = serving.datasette_argv(
        memory.db, port=free_port, configuration=configuration, folder=tmp_path
    )
    with serve(argv, free_port, serving.environment(memory.home.home)) as url:
        assert let_in(Client(url, actor="writer")) == set(READS | ADDS | CHANGES | BOTH)
        assert let_in(Client(url, actor="editor")) == set(READS | CHANGES)
        assert let_in(Client(url, actor="reader")) == let_in(Client(url)) == set(READS)


def test_the_first_memory_is_the_first_that_is_open(tmp_path, small_vault, serve, free_port):
    private = serving.home_with(tmp_path / "private", small_vault)
    public = serving.home_with(tmp_path / "public", small_vault)
    public.capture("公开的", "这一张谁都可以看，放在公开的记忆里。", by={})
    configuration = {"databases": {"memory": {"allow": {"id": "owner"}}}}
    argv = serving.datasette_argv(
        private.db, public.db, port=free_port, configuration=configuration, folder=tmp_path
    )
    with serve(argv, free_port, serving.environment(tmp_path / "none")) as url:
        assert Client(url).get("/-/memory/stats.json")[1]["cards"] == 7
        assert Client(url, actor="owner").get("/-/memory/stats.json")[1]["cards"] == 6
        assert let_in(Client(url), "/memory") == set()
        assert let_in(Client(url), "/memory_2") == set(READS)


def test_memory_serve_prints_a_link_that_makes_root_once(tmp_path, small_vault, free_port):
    memory = serving.home_with(tmp_path / "home", small_vault)
    process = subprocess.Popen(
        [sys.executable, "-m", "memory_cli", "serve", "--root", "--port", str(free_port)],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env={**os.environ, "MEMORY_AGENT_HOME": str(memory.home.home), "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    try:
        link = process.stdout.readline().strip()
        start = f"http://127.0.0.1:{free_port}/-/auth-token?token="
        assert link.startswith(start), link
        client = Client(f"http://127.0.0.1:{free_port}")
        for _ in range(600):
            try:
                client.get("/-/memory/stats.json")
                break
            except OSError:
                assert process.poll() is None
                time.sleep(0.1)
        path = link.removeprefix(f"http://127.0.0.1:{free_port}")
        status, headers, page = client.send("GET", path)
        if status == 200:
            # 1.0 asks for a click.
            status, headers, page = client.send(
                "POST", path, path.partition("?")[2].encode(),
                Content_Type="application/x-www-form-urlencoded",
            )  # fmt: skip
        assert status == 302, page
        root = Client(f"http://127.0.0.1:{free_port}")
        root.headers["Cookie"] = headers["set-cookie"].partition(";")[0]
        assert let_in(root) == set(ROUTES)
        assert client.send("GET", path)[0] == 403
    finally:
        process.terminate()
        process.wait(timeout=30)
