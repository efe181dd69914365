"""An index that stays open between changes, and between readers."""

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from datasette_memory.errors import MemoryFault
from datasette_memory.index.kept import KeptOpen, KeptReaders
from datasette_memory.memory import Memory

BODY = "一张卡片的正文，写得足够长，才不会被拒绝。"


@pytest.fixture
def kept():
    kept = KeptOpen()
    yield kept
    kept.release()


def log(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def test_the_same_connection_again(kept, tmp_path):
    path = tmp_path / "memory.db"
    first = kept.connection(path)
    first.execute("create table t (x)")
    assert kept.connection(path) is first
    assert log(path).exists()
    kept.release()
    assert not log(path).exists()
    assert kept.connection(path) is not first


def test_another_file_in_its_place(kept, tmp_path):
    path = tmp_path / "memory.db"
    kept.connection(path).execute("create table t (x)")
    with contextlib.closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute("create table other (x)")
    os.replace(path, tmp_path / "away.db")
    os.replace(log(path), tmp_path / "away.db-wal")
    os.replace(tmp_path / "other.db", path)
    names = kept.connection(path).execute("select name from sqlite_master").fetchall()
    assert names == [("other",)]
    # And where it was deleted, a new one.
    for file in tmp_path.glob("memory.db*"):
        file.unlink()
    assert kept.connection(path).execute("select name from sqlite_master").fetchall() == []


def test_it_is_closed_when_it_is_thrown_away(tmp_path):
    path = tmp_path / "memory.db"
    kept = KeptOpen()
    kept.connection(path).execute("create table t (x)")
    del kept
    assert not log(path).exists()


def test_a_process_leaves_nothing_beside_the_index(tmp_path):
    code = f"""if True:
        import sys
        from datasette_memory.memory import Memory
        memory = Memory(sys.argv[1])
        for number in range(3):
            memory.capture(f"card {{number}}", f"{BODY} {{number}}")
    """
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, timeout=60)
    assert sorted(path.name for path in tmp_path.glob("memory.db*")) == ["memory.db"]


def test_changes_keep_it_open(tmp_path):
    memory = Memory(str(tmp_path))
    memory.capture("一", BODY)
    assert log(memory.db).exists()
    with contextlib.closing(sqlite3.connect(memory.db)) as other:
        assert other.execute("select count(*) from cards").fetchone() == (1,)
    del memory
    assert not log(tmp_path / "memory.db").exists()


def test_an_index_that_its_owner_deletes_meanwhile(tmp_path):
    memory = Memory(str(tmp_path))
    memory.capture("一", BODY)
    for file in tmp_path.glob("memory.db*"):
        file.unlink()
    change = memory.capture("二", f"{BODY} 二")
    assert (change.ref, change.indexed, change.warning) == ("N_0002", True, None)
    assert memory.count() == 2


def test_an_index_that_is_brought_back_from_a_copy_meanwhile(tmp_path):
    memory = Memory(str(tmp_path))
    memory.capture("一", BODY)
    with contextlib.closing(sqlite3.connect(memory.db)) as source:
        with contextlib.closing(sqlite3.connect(tmp_path / "copy.db")) as copy:
            source.backup(copy)
    memory.capture("二", f"{BODY} 二")
    for file in tmp_path.glob("memory.db*"):
        file.unlink()
    shutil.move(tmp_path / "copy.db", memory.db)
    # The ledger knows what the copy lacks.
    assert memory.capture("三", f"{BODY} 三").ref == "N_0003"
    assert memory.count() == 3


@pytest.mark.skipif(os.name == "nt", reason="needs fork")
def test_a_child_does_not_use_what_its_parent_has_open(tmp_path):
    code = f"""if True:
        import os, sys
        from datasette_memory.memory import Memory
        memory = Memory(sys.argv[1])
        memory.capture("parent", "{BODY}")
        children = []
        for number in range(4):
            child = os.fork()
            if child == 0:
                for step in range(5):
                    change = memory.capture(f"child {{number}} {{step}}", f"{BODY} {{number}} {{step}}")
                    assert change.indexed, change
                sys.exit(0)
            children.append(child)
        assert not any(os.waitpid(child, 0)[1] for child in children)
        assert memory.capture("parent again", "{BODY} again").ref == "N_0022"
    """
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, timeout=60)
    with contextlib.closing(sqlite3.connect(tmp_path / "memory.db")) as connection:
        assert connection.execute("select count(*) from cards").fetchone() == (22,)
        assert connection.execute("pragma integrity_check").fetchone() == ("ok",)


def test_threads_take_turns(tmp_path):
    memory = Memory(str(tmp_path))
    refs, errors = [], []

    def work(number):
        try:
            for step in range(5):
                change = memory.capture(f"thread {number} {step}", f"{BODY} {number} {step}")
                assert change.indexed, change
                refs.append(change.ref)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(6)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 60
    for thread in threads:
        thread.join(timeout=max(0, deadline - time.monotonic()))
    assert errors == [] and not any(thread.is_alive() for thread in threads)
    assert sorted(refs) == [f"N_{number:04}" for number in range(1, 31)]
    assert memory.count() == 30


# Readers


@pytest.fixture
def index(tmp_path) -> Path:
    memory = Memory(str(tmp_path / "home"))
    memory.capture("第一张", BODY, by={})
    return memory.db


def titles(connection) -> list[str]:
    return [title for (title,) in connection.execute("select title from cards order by id")]


def test_a_reader_takes_over_the_connection_of_the_one_before(index):
    readers = KeptReaders()
    with readers.connection(index) as first:
        first.execute("begin")
        assert titles(first) == ["第一张"]
        with readers.connection(index) as second:
            assert second is not first
    # Whoever writes meanwhile is seen by the next: nothing was left open.
    assert not first.in_transaction
    Memory(str(index.parent)).capture("第二张", f"{BODY}另一张。", by={})
    with readers.connection(index) as third:
        assert third in (first, second)
        assert titles(third) == ["第一张", "第二张"]
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            third.execute("delete from links")


def test_readers_follow_to_a_file_that_took_the_place(index, tmp_path):
    readers = KeptReaders()
    with readers.connection(index) as first:
        titles(first)
    other = Memory(str(tmp_path / "other"))
    other.capture("另一个记忆", BODY, by={})
    with contextlib.closing(sqlite3.connect(other.db)) as connection:
        connection.execute("vacuum into ?", [str(tmp_path / "new.db")])
    for path in index.parent.glob("memory.db-*"):
        path.unlink()
    os.replace(tmp_path / "new.db", index)
    with readers.connection(index) as second:
        assert titles(second) == ["另一个记忆"]
    index.unlink()
    with pytest.raises(MemoryFault), readers.connection(index):
        pass


def test_a_reader_that_failed_leaves_nothing_to_the_next(index):
    readers = KeptReaders()
    with pytest.raises(ZeroDivisionError), readers.connection(index) as first:
        1 / 0  # noqa: B018
    with readers.connection(index) as second:
        assert second is not first
    with pytest.raises(sqlite3.ProgrammingError):
        first.execute("select 1")


def test_many_threads_read_at_once(index):
    readers = KeptReaders()
    found, faults = [], []

    def read() -> None:
        try:
            for _ in range(50):
                with readers.connection(index) as connection:
                    found.append(titles(connection))
        except Exception as fault:
            faults.append(fault)

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults and found == [["第一张"]] * 400
