"""What every test stands on, and fixtures for a whole index and a running Datasette."""

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

import pytest
from hypothesis import settings

# How long an example takes says something about the machine, nothing about the code.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

CARDS = {
    "09-Decisions/全文检索.md": """---
id: D_0001
title: 全文检索用二元组
summary: 两个字的中文词也要找得到。
tags: [检索, SQLite]
project: 燕子
updated: 2026-03-01T08:00:00+08:00
relations:
  - {type: supersedes, target: D_0002}
  - {type: caused_by, target: I_0404}
---
FTS5 自带的分词器找不到**两个字**的词。见 [[端口约定]] 与 [旧决定](旧决定.md)。

```python
query = "<全文>"
```
""",
    "09-Decisions/旧决定.md": """---
id: D_0002
title: 全文检索用外部服务
tags: [检索]
project: 燕子
updated: 2026-02-01T08:00:00+08:00
---
先用一个外部服务。
""",
    "12-Facts/端口约定.md": """---
id: F_0001
title: 端口约定
tags: [运维]
updated: 2026-01-05T08:00:00+08:00
---
网关监听 8765 端口，备份任务在 02:30。
""",
    "10-Code/users.md": """---
id: C_0001
title: getUserById is batched
tags: [python]
project: swallow
updated: 2026-02-20T10:00:00+00:00
---
Rate limiting moved into `getUserById`; see also ecs-prod-02 and v1.2.3.
""",
    "17-Notes/hostile.md": """---
id: N_0001
title: "<script>window.hacked = 'title'</script> 敌意"
tags: ["<b>tag</b>"]
updated: 2026-01-01T00:00:00+00:00
---
<script>window.hacked = 'body'</script>
<img src="x" onerror="window.hacked = 'image'">
[click](javascript:window.hacked='link') ![remote](https://tracker.example/pixel.png)
""",
    "17-Notes/long.md": "# 很长的一页\n\n" + "甲乙丙丁戊己庚辛。" * 400,
}
"""Six cards. D_0001 has the words 全文 and 检索 in its title, D_0002 too; 备份 is in F_0001 alone."""


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch):
    """Whoever runs the tests may have a memory of their own."""
    for name in ("MEMORY_AGENT_HOME", "MEMORY_AGENT_DB", "MEMORY_AGENT_VAULT"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def free_port() -> int:
    """A port of the loopback interface that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="session")
def small_vault(tmp_path_factory) -> Path:
    """A folder with CARDS in it."""
    root = tmp_path_factory.mktemp("vault")
    for name, text in CARDS.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


@pytest.fixture(scope="session")
def _small_index(small_vault, tmp_path_factory) -> Path:
    from datasette_memory.memory import Memory

    home = tmp_path_factory.mktemp("home")
    memory = Memory(str(home), db=str(tmp_path_factory.mktemp("index") / "memory.db"))
    memory.import_paths([str(small_vault)])
    return memory.db


@pytest.fixture
def index_file(_small_index, tmp_path):
    """Makes a database of that name with CARDS in it, for this test to do with as it likes."""

    def make(name: str = "memory.db") -> Path:
        return Path(shutil.copy(_small_index, tmp_path / name))

    return make


@contextlib.contextmanager
def running(argv: list[str], port: int, environment: dict[str, str] | None = None):
    """Run a server until the block ends; gives its URL once it answers."""
    url = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            argv, stdout=log, stderr=log, env={**os.environ, **(environment or {})}
        )
        try:
            deadline = time.monotonic() + 60
            while True:
                with contextlib.suppress(OSError):
                    urllib.request.urlopen(f"{url}/-/versions.json", timeout=5).close()
                    break
                log.seek(0)
                assert process.poll() is None, log.read()
                assert time.monotonic() < deadline, log.read()
                time.sleep(0.05)
            yield url
        finally:
            process.terminate()
            process.wait(timeout=30)


@pytest.fixture(scope="session")
def serve():
    """`serve(argv, port)`: a context manager that runs a server and gives its URL."""
    return running
