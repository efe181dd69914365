"""The OpenAPI document: it is valid, it is whole, and a running server keeps to it."""

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

from openapi_spec_validator import OpenAPIV31SpecValidator

from datasette_memory import api, openapi

_spec = importlib.util.spec_from_file_location("serving", Path(__file__).with_name("serving.py"))
serving = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(serving)

ROUTES = {
    ("get", "search.json"), ("get", "cards/{ref}.json"), ("get", "related/{ref}.json"),
    ("get", "raw/{ref}.json"), ("get", "stats.json"), ("post", "cards"),
    ("post", "cards/{ref}/-/update"), ("post", "cards/{ref}/-/supersede"),
    ("post", "cards/{ref}/-/forget"), ("post", "links"), ("delete", "links"), ("post", "reindex"),
    ("post", "context"), ("get", "context.json"), ("post", "feedback"), ("get", "brief.json"),
    ("get", "why-not.json"),
}  # fmt: skip

CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,"
    "response_headers_conformance,response_schema_conformance,negative_data_rejection,"
    "unsupported_method"
)


def test_the_document_is_valid_and_describes_every_route_twice():
    document = openapi.document("/under/")
    OpenAPIV31SpecValidator(document).validate()
    assert document["servers"] == [{"url": "/under"}]
    described = {(m, path) for path, methods in document["paths"].items() for m in methods}
    assert described == {(m, f"/-/memory/{path}") for m, path in ROUTES} | {
        (m, f"/{{database}}/-/memory/{path}") for m, path in ROUTES
    }
    # What is described is there.
    patterns = [re.compile(pattern) for pattern, _ in api.routes()[:-1]]
    for _, path in described:
        path = path.replace("{ref}", "D_0001").replace("{database}", "memory")
        assert sum(bool(pattern.match(path)) for pattern in patterns) == 1, path


def test_a_running_server_keeps_to_it(tmp_path, small_vault, serve, free_port):
    memory = serving.home_with(tmp_path / "home", small_vault)
    argv = serving.datasette_argv(memory.db, port=free_port)
    with serve(argv, free_port, serving.environment(memory.home.home)) as url:
        root = serving.Client(url, actor="root")
        # The paths with the name of a database lead to the same views.
        done = subprocess.run(
            [
                *[shutil.which("schemathesis", path=str(Path(sys.executable).parent)), "run"],
                *[f"{url}/-/memory/openapi.json", "--exclude-path-regex", r"^/\{database"],
                *["--header", f"Cookie: {root.headers['Cookie']}", "--checks", CHECKS],
                *["--phases", "coverage,fuzzing", "--max-examples", "5", "--max-time", "30"],
                *["--generation-database", "none", "--warnings", "off", "--no-color"],
            ],
            capture_output=True,
            text=True,
            cwd=tmp_path,
        )
        assert done.returncode == 0, done.stdout[-8000:] + done.stderr
        assert int(re.search(r"(\d+) generated", done.stdout)[1]) > 200
        status, told = root.get("/-/memory/openapi.json")
        assert (status, told) == (200, json.loads(json.dumps(openapi.document())))
        # It wrote cards, and broke nothing.
        assert root.get("/-/memory/search.json", q="全文检索")[0] == 200
