"""A memory that belongs to somebody else: it can be read, and says why it cannot be written."""

import os

import pytest

from datasette_memory.errors import MemoryFault
from datasette_memory.memory import Memory

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs POSIX permissions")


@pytest.fixture
def memory(public_place, make_folder):
    folder = make_folder("vault", public_place / "home")
    folder.write("a.md", "---\nid: N_0001\n---\nwillow")
    folder.write("b.md", "---\nid: N_0002\nsensitivity: secret\n---\npoplar")
    memory = Memory(str(public_place / "home"))
    memory.index()
    return memory


def lock_up(memory) -> None:
    for place, _, names in os.walk(memory.home.home):
        for name in names:
            os.chmod(os.path.join(place, name), 0o444)
        os.chmod(place, 0o555)


def everything(memory) -> dict[str, bytes]:
    files = (path for path in memory.home.home.rglob("*") if path.is_file())
    return {str(path): path.read_bytes() for path in files}


def test_all_that_reads_works(memory, as_nobody):
    lock_up(memory)
    before = everything(memory)
    found = as_nobody(lambda: memory.search("willow").to_dict())
    assert [hit["ref"] for hit in found["hits"]] == ["N_0001"]
    assert as_nobody(lambda: memory.show("N_0001").window.text) == "willow"
    assert as_nobody(lambda: memory.show("N_0002", secret=True).window.text) == "poplar"
    assert as_nobody(lambda: memory.search("poplar", secret=True).to_dict())["count"] == 1
    assert as_nobody(lambda: memory.search("absent").to_dict())["count"] == 0
    assert as_nobody(lambda: memory.stats().cards) == 1
    assert everything(memory) == before


def test_all_that_writes_says_why_not(memory, as_nobody, make_folder, public_place):
    lock_up(memory)
    other = make_folder("other", public_place)
    other.write("c.md", "birch")
    before = everything(memory)
    for call in (
        memory.index,
        lambda: memory.index(rebuild=True),
        lambda: memory.import_paths([str(other.root)]),
        lambda: memory.import_paths([str(other.root)], rebuild=True),
    ):
        with pytest.raises(MemoryFault) as caught:
            as_nobody(call)
        assert str(memory.home.home) in caught.value.error and "\n" not in caught.value.error
        assert caught.value.hint
        assert everything(memory) == before


def test_a_vault_that_may_not_be_read_keeps_its_cards(memory, as_nobody):
    for place, _, names in os.walk(memory.home.home):
        os.chmod(place, 0o777)
        for name in names:
            os.chmod(os.path.join(place, name), 0o666)
    os.chmod(memory.home.vault, 0)
    result = as_nobody(memory.index)
    assert "cannot be read: permission denied; its 2 files stay indexed" in result.notes[0]
    os.chmod(memory.home.vault, 0o777)
    result = as_nobody(memory.index)
    assert (result.unchanged, result.secret, result.removed) == (1, 1, 0)


def test_a_home_that_may_not_be_entered(memory, as_nobody):
    os.chmod(memory.home.home, 0)
    for call in (
        lambda: memory.search("willow"),
        lambda: memory.show("N_0001"),
        memory.stats,
        memory.index,
        lambda: Memory(str(memory.home.home)),
    ):
        with pytest.raises(MemoryFault) as caught:
            as_nobody(call)
        assert "Permission denied" in caught.value.error and caught.value.hint
