"""One writer at a time, who is named; a dead one holds nothing; readers are disturbed by nobody."""

from __future__ import annotations

import os
import signal
import socket
import threading
from pathlib import Path

import pytest
from tests.index.made import MODEL, build, contents, make
from tests.index.test_round_trip import assert_holds, scores

from denspi.errors import IndexLockedError, InputError, StorageError
from denspi.index import IndexWriter, ModelRecord, Snapshot, WriterSettings, merge_beside, verify
from denspi.index.directory import Directory
from denspi.index.leftovers import MERGE_LOCK
from denspi.index.locks import Wait


def test_the_second_writer_is_told_who_the_first_is(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    build(folder, [make(1)])
    with IndexWriter.open(folder):
        with pytest.raises(
            IndexLockedError, match=f"process {os.getpid()} on '{socket.gethostname()}'"
        ) as told:
            IndexWriter.open(folder)
        assert "\n" not in str(told.value)
        with pytest.raises(IndexLockedError):
            IndexWriter.open(folder, wait=Wait(0.05))
    with IndexWriter.open(folder) as writer:
        assert writer.generation == 1


def test_a_writer_may_wait_for_another(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    build(folder, [make(1)])
    first = IndexWriter.open(folder)
    threading.Timer(0.1, first.close).start()
    with IndexWriter.open(folder, wait=Wait(60)) as second:
        assert second.generation == 1


def test_a_dead_holder_holds_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    build(folder, [make(1)])
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        kept = IndexWriter.open(folder)
        kept.add(*make(2))
        kept.flush()
        os.write(writing, b"!")
        signal.pause()
        os._exit(0)
    os.close(writing)
    assert os.read(reading, 1) == b"!"
    os.close(reading)
    with pytest.raises(IndexLockedError, match=f"process {child}"):
        IndexWriter.open(folder)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with IndexWriter.open(folder) as writer:
        assert "d2" not in writer
    assert len(list(folder.glob("*-segment"))) == 1


def test_a_forked_child_does_not_keep_the_lock(tmp_path: Path) -> None:
    """A pool of workers must not outlive the writer as its ghost."""
    folder = tmp_path / "index"
    build(folder, [make(1)])
    writer = IndexWriter.open(folder)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.write(writing, b"!")
        signal.pause()
        os._exit(0)
    assert os.read(reading, 1) == b"!"
    os.close(reading)
    os.close(writing)
    try:
        with pytest.raises(IndexLockedError):  # the child's copy is gone, ours is not
            IndexWriter.open(folder)
        writer.close()
        IndexWriter.open(folder).close()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_a_reader_keeps_its_generation_across_commits_and_merges(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    build(folder, [make(n) for n in range(5)])
    old = Snapshot.open(folder)  # nothing of it has been read yet
    expected = scores(Snapshot.open(folder))
    with IndexWriter.open(folder) as writer:
        writer.update(*make(1, version=1))
        writer.delete("d2")
        writer.refit()
        writer.commit()
        middle = Snapshot.open(folder)
        writer.merge()
        writer.commit()
    merge_beside(folder, everything=True)
    assert_holds(old, [make(n) for n in range(5)])
    assert scores(old) == expected
    assert_holds(middle, [make(0), make(1, version=1), make(3), make(4)])
    newest = old.refresh()
    assert newest.refresh() is newest
    assert_holds(newest, [make(0), make(1, version=1), make(3), make(4)])
    parts = len(list(folder.glob("0*")))
    del old, middle
    with IndexWriter.open(folder):  # nobody needs them any more
        pass
    assert len(list(folder.glob("0*"))) == len(newest.manifest.parts) < parts
    assert verify(folder).problems == ()


def test_what_no_reader_holds_is_deleted_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    build(folder, [make(n) for n in range(3)])
    with IndexWriter.open(folder) as writer:
        writer.delete("d1")
        writer.merge()
        writer.commit()
    assert {path.name for path in folder.glob("0*")} == {
        part.folder for part in Snapshot.open(folder).manifest.parts
    }


def test_a_reader_that_died_keeps_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    build(folder, [make(n) for n in range(3)])
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        held = Snapshot.open(folder)
        os.write(writing, b"!")
        signal.pause()
        os._exit(held.generation)
    assert os.read(reading, 1) == b"!"
    os.close(reading)
    os.close(writing)
    with IndexWriter.open(folder) as writer:
        writer.delete("d1")
        writer.merge()
        writer.commit()
    old = set(Path(folder).glob("0*"))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with IndexWriter.open(folder):
        pass
    assert set(folder.glob("0*")) < old


def test_readers_and_a_writer_at_work_together(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    build(folder, [make(0)])
    failures: list[BaseException] = []
    done = threading.Event()

    def read() -> None:
        try:
            snapshot = Snapshot.open(folder)
            while not done.is_set():
                snapshot = snapshot.refresh()
                assert snapshot.document("d0") == make(0)[0]
                other = Snapshot.open(folder)
                count = sum(int(segment.live.sum()) for segment in other.segments)
                assert count == other.live.documents == 1 + (other.generation - 1) % 2
        except BaseException as error:
            failures.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    with IndexWriter.open(folder) as writer:
        for n in range(1, 16):
            if n % 2:
                writer.add(*make(n))
            else:
                writer.delete(f"d{n - 1}")
            writer.commit()
    done.set()
    for reader in readers:
        reader.join()
    assert failures == []


def test_only_one_merge_beside_at_a_time(tmp_path: Path) -> None:
    build(tmp_path / "index", [make(1)])
    lock = Directory(tmp_path / "index").lock(MERGE_LOCK)
    with pytest.raises(IndexLockedError):
        merge_beside(tmp_path / "index")
    lock.release()
    assert merge_beside(tmp_path / "index") == 1


SMALL = WriterSettings(flush_words=30)


def test_an_interrupted_build_goes_on_where_it_was(tmp_path: Path) -> None:
    made = [make(n) for n in range(9)]
    build(tmp_path / "whole", made, SMALL)
    folder = tmp_path / "index"
    with IndexWriter.create(folder, MODEL, settings=SMALL) as writer:
        for document, rows in made[:5]:
            writer.add(document, rows)
    with pytest.raises(InputError, match="unfinished build"):
        Snapshot.open(folder)
    with IndexWriter.create(folder, MODEL, resume=True, settings=SMALL) as writer:
        assert writer.resumed_documents == 4  # two to a segment; the last was not flushed
        assert list(writer.resumed_ids()) == ["d0", "d1", "d2", "d3"]
        assert writer.is_resumed("d3")
        for document, rows in made:
            if document.document_id not in writer:
                writer.add(document, rows)
        assert not writer.is_resumed("d5")
        writer.commit()
    assert contents(folder) == contents(tmp_path / "whole")


def test_interrupted_changes_go_on_where_they_were(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    build(folder, [make(n) for n in range(4)])
    with IndexWriter.open(folder) as writer:
        writer.update(*make(1, version=1))
        writer.flush()
        writer.update(*make(1, version=2))
        writer.delete("d0")
        writer.add(*make(9))
        writer.flush()
        writer.delete("d3")  # not flushed: lost
    with IndexWriter.open(folder, resume=True) as writer:
        assert writer.resumed_documents == 2
        writer.commit()
    assert_holds(Snapshot.open(folder), [make(1, version=2), make(2), make(3), make(9)])
    assert verify(folder).problems == ()


def test_an_unfinished_build_without_resume_is_begun_anew(tmp_path: Path) -> None:
    with IndexWriter.create(tmp_path / "index", MODEL) as writer:
        writer.add(*make(1))
        writer.flush()
    with IndexWriter.create(tmp_path / "index", MODEL) as writer:
        assert "d1" not in writer
        writer.add(*make(2))
        writer.commit()
    assert_holds(Snapshot.open(tmp_path / "index"), [make(2)])
    assert not (tmp_path / "index" / "building.jsonl").exists()


def test_an_unfinished_build_of_another_model_is_not_mixed(tmp_path: Path) -> None:
    with IndexWriter.create(tmp_path / "index", MODEL) as writer:
        writer.add(*make(1))
        writer.flush()
    other = ModelRecord("other", "e" * 64, 6, 2, "b" * 64)
    with pytest.raises(InputError, match="unfinished build is with model 'tiny'"):
        IndexWriter.create(tmp_path / "index", other, resume=True)
    with IndexWriter.create(tmp_path / "index", MODEL, resume=True) as writer:
        assert "d1" in writer


def test_folders_that_are_no_index(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    for name in ("absent", "full"):
        with pytest.raises(InputError, match=r"no such index|not an index"):
            Snapshot.open(tmp_path / name)
        with pytest.raises((InputError, StorageError)):
            IndexWriter.open(tmp_path / name)
    with pytest.raises(InputError, match="not empty"):
        IndexWriter.create(tmp_path / "full", MODEL)
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError):
        IndexWriter.create(tmp_path / "file", MODEL)
    build(tmp_path / "index", [make(1)])
    with pytest.raises(InputError, match="already holds an index"):
        IndexWriter.create(tmp_path / "index", MODEL)


def test_a_closed_writer_says_so(tmp_path: Path) -> None:
    build(tmp_path / "index", [make(1)])
    writer = IndexWriter.open(tmp_path / "index")
    writer.close()
    writer.close()
    with pytest.raises(StorageError, match="closed"):
        writer.commit()
    with pytest.raises(StorageError, match="closed"):
        writer.add(*make(2))
