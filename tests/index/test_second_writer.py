"""A lock file that is removed lets a second writer in: no commit of either may vanish."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.index.made import build, contents, make
from tests.index.test_round_trip import assert_holds

from denspi.errors import IndexLockedError
from denspi.index import IndexWriter, Snapshot, merge_beside, verify
from denspi.index.directory import Directory
from denspi.index.leftovers import LOCK, MERGE_LOCK, MERGING
from denspi.index.locks import NO_WAIT, Lock, Wait


def refused(writer: IndexWriter) -> str:
    with pytest.raises(IndexLockedError) as told:
        writer.commit()
    assert "\n" not in str(told.value)
    return str(told.value)


@pytest.mark.parametrize("is_flushed", [False, True])
def test_the_first_writer_publishes_nothing_over_the_second(tmp_path: Path, is_flushed: bool) -> None:
    folder = tmp_path / "index"
    build(folder, [make(n) for n in range(4)])
    first = IndexWriter.open(folder)
    first.add(*make(30))
    if is_flushed:
        first.flush()
    (folder / LOCK).unlink()
    with IndexWriter.open(folder) as second:
        second.delete("d1")
        assert second.commit() == 2
    before = contents(folder)
    assert "removed or replaced" in refused(first)
    assert {name: content for name, content in contents(folder).items() if name in before} == before
    assert_holds(Snapshot.open(folder), [make(0), make(2), make(3)])
    with IndexWriter.open(folder) as third:
        third.add(*make(30))
        third.commit()
    assert verify(folder).problems == ()


def test_a_manifest_that_is_no_longer_the_base_is_not_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    build(folder, [make(0)])
    old = (folder / "manifest.json").read_bytes()
    with IndexWriter.open(folder) as writer:
        writer.add(*make(1))
        writer.commit()
    with IndexWriter.open(folder) as writer:
        writer.add(*make(2))
        (folder / "manifest.json").write_bytes(old)
        assert "somebody else has committed" in refused(writer)
    assert (folder / "manifest.json").read_bytes() == old


def test_a_lock_that_is_removed_while_it_is_waited_for_is_taken_anew(tmp_path: Path) -> None:
    directory = Directory(tmp_path)
    first = directory.lock(LOCK)
    (tmp_path / LOCK).unlink()
    second = directory.lock(LOCK)
    assert not directory.holds(first, LOCK)
    assert directory.holds(second, LOCK)


class SecondMerge(Directory):
    """Once a merge has its copy, the lock file is removed and another merge begins to write there."""

    def lock(self, name: str, wait: Wait = NO_WAIT, doing: str = "writing") -> Lock:
        if name == LOCK:
            (self.path / MERGE_LOCK).unlink()
            self.second = Directory(self.path).lock(MERGE_LOCK, doing="merging")
            (self.path / MERGING / "starts").write_bytes(b"as far as the second one is")
        return super().lock(name, wait, doing)


def test_a_merge_commits_no_copy_that_another_may_be_at(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    build(folder, [make(n) for n in range(4)])
    with IndexWriter.open(folder) as writer:
        writer.delete("d1")
        writer.commit()
    directory = SecondMerge(folder)
    with pytest.raises(IndexLockedError, match=r"'merge\.lock' was removed or replaced .* merge again$"):
        merge_beside(folder, everything=True, directory=directory)
    assert (folder / MERGING / "starts").exists()  # it is the other's now
    assert verify(folder).problems == ()
    directory.second.release()
    assert merge_beside(folder, everything=True) == 3
    assert_holds(Snapshot.open(folder), [make(0), make(2), make(3)])
