"""What tests of a running server need: a home with cards, its command line, and a client."""

import http.client
import json
import shutil
import sys
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from datasette.app import Datasette
from itsdangerous import URLSafeSerializer

from datasette_memory.memory import Memory

#: Datasette 1.0 rather than 0.65.
LINE_1_0 = hasattr(Datasette, "table_config")

#: With what a server of the tests signs its cookies and its tokens.
SECRET = "known to the tests"


def home_with(folder: Path, vault: Path) -> Memory:
    """A memory in `folder`, with the cards of `vault` as its own."""
    shutil.copytree(vault, folder / "vault")
    memory = Memory(str(folder))
    memory.index()
    return memory


def datasette_argv(*files: object, port: int, configuration: dict | None = None, folder=None):
    """The command line of a bare Datasette, which knows root."""
    argv = [sys.executable, "-X", "utf8", "-m", "datasette", "serve", "--root", "--port", str(port)]
    # Every column of every page is tried for it.
    argv += ["--setting", "suggest_facets", "off"]
    if configuration is not None:
        path = folder / "configuration.json"
        path.write_text(json.dumps(configuration), encoding="utf-8")
        argv += ["--config" if LINE_1_0 else "--metadata", str(path)]
    return [*argv, *map(str, files)]


def environment(home: Path) -> dict[str, str]:
    return {"DATASETTE_SECRET": SECRET, "MEMORY_AGENT_HOME": str(home)}


class Client:
    """Asks one server, as an actor (by cookie), with a token, or as nobody."""

    def __init__(self, url: str, actor: str | None = None, token: str | None = None) -> None:
        self.host = urlsplit(url).netloc
        self.headers = {}
        if actor:
            value = URLSafeSerializer(SECRET, "actor").dumps({"a": {"id": actor}})
            self.headers["Cookie"] = f"ds_actor={value}"
        if token:
            self.headers["Authorization"] = f"Bearer {token}"

    def send(self, method: str, path: str, body: bytes | None = None, **headers: str):
        """The status, the headers and the bytes of an answer. `_` in a header's name is `-`."""
        connection = http.client.HTTPConnection(self.host, timeout=60)
        told = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(method, path, body, {**self.headers, **told})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def get(self, path: str, **arguments: object) -> tuple[int, dict]:
        asked = f"{path}?{urlencode(arguments, doseq=True)}" if arguments else path
        status, headers, body = self.send("GET", asked)
        assert headers["content-type"].startswith("application/json"), body[:500]
        return status, json.loads(body)

    def post(self, path: str, method: str = "POST", **body: object) -> tuple[int, dict]:
        status, headers, answer = self.send(
            method, path, json.dumps(body).encode(), Content_Type="application/json"
        )
        assert headers["content-type"].startswith("application/json"), answer[:500]
        return status, json.loads(answer)
