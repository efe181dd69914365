"""Several processes at one index: killed imports, imports side by side, readers all the while."""

import contextlib
import os
import random
import shutil
import signal
import threading
import time

import pytest

from datasette_memory.index.connection import check_place, connect_read, sqlite3
from datasette_memory.memory import Memory

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")


@pytest.fixture
def big(folder):
    """A folder of 300 cards that link to each other."""
    for number in range(300):
        write(folder, number, "first")
    return folder


def write(folder, number: int, word: str) -> None:
    folder.write(
        f"{number % 7}/{number}.md",
        f"---\nid: N_{number}\n---\n# Card {number}\n\n{word} 阿里云 [[N_{(number * 7 + 1) % 300}]]",
    )


def seconds(importer, index, folder, **options) -> float:
    begun = time.monotonic()
    assert importer.run(index, folder, **options) == 0
    return time.monotonic() - begun


def kill(importer, pid: int, after: float) -> bool:
    """Kill a running import after so many seconds; whether it was still running."""
    time.sleep(after)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    return importer.wait() == -signal.SIGKILL


def test_a_killed_import_leaves_a_whole_index_and_the_next_one_completes_it(
    big, index, make_index, make_importer
):
    importer = make_importer()
    whole = seconds(importer, make_index("measure.db"), big)
    chance = random.Random(7)
    killed = 0
    for attempt in range(20):
        # Sometimes a new index, sometimes one that a killed import left.
        if attempt % 5 == 0:
            for file in index.path.parent.glob("memory.db*"):
                file.unlink()
        else:
            for number in chance.sample(range(300), 250):
                write(big, number, f"word{attempt}")
        after = chance.random() * whole * 0.8
        if kill(importer, importer.start(index, big), after):
            killed += 1
        else:
            # It was done before: the time was measured while the machine had more to do.
            whole *= 0.8
        if index.path.exists() and index.query("select 1 from sqlite_master where name = 'meta'"):
            index.check()
    assert killed >= 5
    assert importer.run(index, big) == 0
    index.check()
    fresh = make_index("fresh.db")
    assert importer.run(fresh, big) == 0
    assert index.contents() == fresh.contents()
    assert index.query("select v from cards_fts_config where k = 'automerge'") == [(4,)]
    assert index.query("select count(*) from broken_links") == [(0,)]


def test_a_killed_rebuild_leaves_the_old_index_and_no_litter(big, index, make_importer):
    importer = make_importer()
    importer.run(index, big)
    index.query("insert into card_stats (card_id, reads) select id, 2 from cards where ref='N_5'")
    before = index.contents()
    copy = index.path.with_name("measure.db")
    shutil.copy(index.path, copy)
    whole = seconds(importer, index.__class__(copy), big, rebuild=True)
    chance = random.Random(11)
    killed = tries = 0
    while killed < 3 and tries < 40:
        tries += 1
        pid = importer.start(index, big, rebuild=True)
        if kill(importer, pid, chance.random() * whole):
            killed += 1
        else:
            # It was done before: the time was measured while the machine had more to do.
            whole *= 0.8
        index.check()
        assert index.contents() == before
    assert killed >= 3
    assert importer.run(index, big) == 0
    assert index.contents() == before
    assert index.query("select reads from card_stats") == [(2,)]
    assert {path.name for path in index.path.parent.iterdir()} <= {
        "memory.db", ".memory.db.lock", "memory.db-wal", "memory.db-shm",
        "measure.db", ".measure.db.lock",
    }  # fmt: skip


def test_imports_side_by_side(make_folder, index, make_index, make_importer):
    folders = [make_folder(name) for name in ("one", "two", "three")]
    for folder in folders:
        for number in range(60):
            folder.write(f"{number}.md", f"# {folder.name} {number}\n\n{folder.name} [[one 5]]")
    importers = [make_importer(f"home{number}") for number in range(4)]
    for importer, folder in zip(importers, [*folders, folders[0]]):
        importer.start(index, folder, batch=5)
    assert [importer.wait() for importer in importers] == [0, 0, 0, 0]
    index.check()
    assert index.query("select source, count(*) from cards group by source order by source") == [
        ("one", 60), ("three", 60), ("two", 60),
    ]  # fmt: skip
    assert index.query("select count(*) from broken_links") == [(0,)]
    fresh = make_index("fresh.db")
    assert importers[0].run(fresh, *folders) == 0
    assert index.contents() == fresh.contents()


def test_imports_side_by_side_of_the_same_home_record_all_their_sources(
    make_folder, place, make_index, make_importer
):
    folders = [make_folder(name) for name in ("one", "two", "three")]
    for folder in folders:
        folder.write("a.md", "a")
    importers = [make_importer("home") for _ in folders]
    home_index = make_index("memory.db", place / "home")
    for importer, folder in zip(importers, folders):
        importer.start(home_index, folder)
    assert [importer.wait() for importer in importers] == [0, 0, 0]
    memory = Memory(str(place / "home"))
    assert {source["name"] for source in memory.home.sources} == {"one", "two", "three"}
    assert memory.index().removed == 0
    assert memory.count() == 3


class Readers:
    """Search over and over while something else happens, each time on a new connection."""

    def __init__(self, memory: Memory, query: str) -> None:
        self.memory, self.query = memory, query
        self.seen: list[tuple[int, set[str]]] = []
        self.faults: list[BaseException] = []
        self.ended = threading.Event()

    def read(self) -> None:
        while not self.ended.is_set():
            try:
                hits = self.memory.search(self.query, limit=20).hits
                self.seen.append((len(hits), {hit.snippet.split()[-1] for hit in hits}))
                self.memory.stats()
            except BaseException as error:
                self.faults.append(error)

    @contextlib.contextmanager
    def reading(self):
        threads = [threading.Thread(target=self.read) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            yield self
        finally:
            self.ended.set()
            for thread in threads:
                thread.join()


@pytest.mark.parametrize("rebuild", [False, True], ids=["import", "rebuild"])
def test_readers_see_the_old_index_or_the_new_one_and_never_an_error(
    rebuild, folder, place, make_index, make_importer
):
    importer = make_importer()
    index = make_index("memory.db")
    for number in range(10):
        folder.write(f"{number}.md", f"willow {number} old")
    for number in range(200):
        folder.write(f"rest/{number}.md", f"birch {number}")
    importer.run(index, folder)
    memory = Memory(str(place / "home"), db=str(index.path))
    with Readers(memory, "willow").reading() as readers:
        for step in range(3):
            for number in range(10):
                folder.write(f"{number}.md", f"willow {number} new{step}")
            for number in range(200):
                folder.write(f"rest/{number}.md", f"birch {number} {step}")
            assert importer.run(index, folder, rebuild=rebuild, batch=1000) == 0
    assert readers.faults == []
    assert len(readers.seen) > 10
    # All ten at once are of one state: they are written in one transaction.
    states = {(count, *words) for count, words in readers.seen}
    assert states <= {(10, "old"), (10, "new0"), (10, "new1"), (10, "new2")}
    assert memory.search("willow", limit=20).hits[0].snippet.endswith("new2")


def test_looking_at_a_place_leaves_the_locks_of_the_process_alone(folder, index, make_importer):
    # POSIX takes all locks of a process on a file away when it closes the file once. Another
    # process would then take itself for the last one, and delete the log under our feet.
    importer = make_importer()
    folder.write("a.md", "willow")
    importer.run(index, folder)
    with contextlib.closing(connect_read(index.path)) as reader:
        reader.execute("begin")
        assert reader.execute("select count(*) from cards").fetchone() == (1,)
        check_place(index.path)
        connect_read(index.path).close()
        folder.write("b.md", "willow")
        assert importer.run(index, folder) == 0
        assert index.path.with_name("memory.db-wal").exists()
        assert reader.execute("select count(*) from cards").fetchone() == (1,)
        reader.execute("commit")
        assert reader.execute("select count(*) from cards").fetchone() == (2,)
    index.check()


def test_a_connection_from_before_a_rebuild_sees_the_cards_of_after(folder, index, make_importer):
    importer = make_importer()
    folder.write("a.md", "willow")
    importer.run(index, folder)
    with contextlib.closing(sqlite3.connect(index.path)) as before:
        count = "select count(*) from cards_fts where cards_fts match 'willow'"
        assert before.execute(count).fetchone() == (1,)
        for number in range(50):
            folder.write(f"{number}.md", "willow")
        assert importer.run(index, folder, rebuild=True) == 0
        assert before.execute(count).fetchone() == (51,)
        assert before.execute("select count(*) from cards").fetchone() == (51,)
