"""What the system may refuse: descriptors, locks of a network file system; and what is left lying around."""

from __future__ import annotations

import errno
import fcntl
import gc
import os
import resource
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.index.made import MODEL, build, contents, make
from tests.index.test_round_trip import assert_holds

from denspi.errors import IndexDamagedError, StorageError
from denspi.index import IndexWriter, MergePolicy, Snapshot, WriterSettings, locks, merge_beside, part, verify
from denspi.index.directory import Directory
from denspi.index.leftovers import BUILDING, LOCK, MERGE_LOCK, MERGING
from denspi.index.locks import NO_WAIT, Lock, Wait
from denspi.sparse import build as sparse_build
from denspi.sparse.arrays import map_file

EACH = WriterSettings(flush_words=1)
NEVER = WriterSettings(inline_words=0, policy=MergePolicy(fanout=1000))


def open_files() -> int:
    gc.collect()  # what earlier tests left in cycles is not ours
    return len(os.listdir("/proc/self/fd"))


@contextmanager
def descriptors_below(limit: int) -> Iterator[None]:
    old = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, old)


@pytest.fixture
def few_files() -> Iterator[int]:
    """How many files are open at first; there may be 240 more."""
    already = open_files()
    with descriptors_below(already + 240):
        yield already


@pytest.mark.usefixtures("few_files")
def test_many_segments_need_few_descriptors(tmp_path: Path) -> None:
    folder, made = tmp_path / "index", [make(n) for n in range(40)]
    build(folder, made, EACH)
    assert_holds(Snapshot.open(folder), made)
    for n in range(40, 60):
        with IndexWriter.open(folder, settings=NEVER) as writer:
            writer.add(*make(n))
            writer.commit()
    snapshot = Snapshot.open(folder)
    assert len(snapshot.segments) == 21
    assert_holds(snapshot, [make(n) for n in range(60)])
    del snapshot
    merge_beside(folder, everything=True)
    assert len(Snapshot.open(folder).segments) == 1
    assert_holds(Snapshot.open(folder), [make(n) for n in range(60)])


def test_going_on_with_many_segments_needs_few_descriptors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few_files: int
) -> None:
    """As in a real build, most components are large enough to be mapped, and each map has a descriptor."""
    most_read_bytes = 1 << 10
    monkeypatch.setattr(part, "_MOST_READ_BYTES", most_read_bytes)
    folder, made = tmp_path / "index", [make(n, paragraphs=1, words=1500) for n in range(40)]
    with IndexWriter.create(folder, MODEL, settings=EACH) as writer:
        for document, rows in made:
            writer.add(document, rows)
    assert sum(path.stat().st_size > most_read_bytes for path in folder.glob("*-segment/*")) > 256
    with IndexWriter.create(folder, MODEL, resume=True, settings=EACH) as writer:
        assert writer.resumed_documents == 40
        assert open_files() < few_files + 85
        writer.commit()
    assert verify(folder).problems == ()


def test_a_file_too_many_is_no_damage(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    build(folder, [make(1)])
    postings = next(folder.glob("*-segment/postings.npy"))
    lowest_free = os.dup(0)
    os.close(lowest_free)
    for use in (lambda: Snapshot.open(folder), lambda: map_file(postings)):
        with (
            descriptors_below(lowest_free),
            pytest.raises(StorageError, match="too many files are open; allow more") as told,
        ):
            use()
        assert not isinstance(told.value, IndexDamagedError)


def test_more_segments_than_merge_at_once_give_the_same_bytes(tmp_path: Path) -> None:
    made = [make(n) for n in range(37)]
    build(tmp_path / "parts", made, EACH)
    build(tmp_path / "whole", made)

    def rows(folder: Path) -> list[bytes]:
        (segment,) = Snapshot.open(folder).segments
        return list(contents(folder / segment.name).values())

    assert rows(tmp_path / "parts") == rows(tmp_path / "whole")


def with_flock(patch: pytest.MonkeyPatch, refuses: int, only_readonly: bool) -> None:
    """A system whose exclusive locks need a descriptor that may write, or that has no locks."""

    def flock(descriptor: int, operation: int) -> None:
        is_readonly = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY
        if not only_readonly or (operation & fcntl.LOCK_EX and is_readonly):
            raise OSError(refuses, os.strerror(refuses))
        fcntl.flock(descriptor, operation)

    kinds = {name: getattr(fcntl, name) for name in ("LOCK_EX", "LOCK_SH", "LOCK_NB")}
    patch.setattr(locks, "fcntl", SimpleNamespace(flock=flock, **kinds))


def test_commits_where_an_exclusive_lock_needs_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "index"
    with_flock(monkeypatch, errno.EBADF, only_readonly=True)
    build(folder, [make(n) for n in range(4)])
    for version in range(1, 4):
        with IndexWriter.open(folder) as writer:
            writer.update(*make(1, version=version))
            writer.merge()
            writer.commit()
    assert len(list(folder.glob("0*"))) == len(Snapshot.open(folder).manifest.parts)


def test_no_locks_at_all_is_one_line_and_leaks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "index"
    build(folder, [make(1)])
    with_flock(monkeypatch, errno.EOPNOTSUPP, only_readonly=False)
    before = open_files()
    for use in (Snapshot.open, IndexWriter.open):
        for _ in range(3):
            with pytest.raises(StorageError) as told:
                use(folder)
            assert "\n" not in str(told.value)
            del told
    assert open_files() == before
    assert Directory(folder).remove_folder(next(folder.glob("*-fit")).name) is False  # may be held


def test_a_writer_that_stays_keeps_no_old_parts(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    build(folder, [make(n) for n in range(8)])
    with IndexWriter.open(folder) as writer:
        for n in range(4):
            writer.delete(f"d{n}")
            if n == 2:
                writer.refit()
            writer.commit()
            parts = {part.folder for part in Snapshot.open(folder).manifest.parts}
            assert {path.name for path in folder.glob("0*")} == parts
        writer.delete("d5")
        writer.restore_committed()  # to what the last commit left, not the first
        assert [f"d{n}" in writer for n in range(8)] == [False] * 4 + [True] * 4


def test_a_merge_leaves_unfinished_changes_alone(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    build(folder, [make(0)])
    for n in range(1, 4):
        with IndexWriter.open(folder, settings=NEVER) as writer:
            writer.add(*make(n))
            writer.commit()
    other = IndexWriter.open(folder, settings=EACH)
    for n in range(20, 24):
        other.add(*make(n))
    timer = threading.Timer(0.3, other.close)  # interrupted: flushed, not committed
    timer.start()
    assert merge_beside(folder, wait=Wait(60)) == 4
    timer.join()
    assert (folder / BUILDING).exists()
    with IndexWriter.open(folder, resume=True) as writer:
        assert writer.resumed_documents == 4
        writer.commit()
    assert_holds(Snapshot.open(folder), [make(n) for n in (*range(4), *range(20, 24))])
    merge_beside(folder, everything=True)
    assert len(Snapshot.open(folder).segments) == 1
    assert {path.name for path in folder.iterdir() if path.is_file()} == {"manifest.json", LOCK, "merge.lock"}


def test_a_killed_build_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, elsewhere = tmp_path / "index", tmp_path / "tmp"
    elsewhere.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(elsewhere))
    build(folder, [make(0)])
    child = os.fork()
    if not child:

        def die(*_: object) -> None:
            os.kill(os.getpid(), signal.SIGKILL)

        sparse_build.merge_segments = die  # type: ignore[assignment]
        sparse_build._batches = lambda documents, _: iter([[each] for each in documents])  # type: ignore[assignment]
        with IndexWriter.create(tmp_path / "other", MODEL) as writer:
            writer.add(*make(1))
            writer.add(*make(2))
            writer.flush()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL
    assert list(elsewhere.iterdir()) == []
    assert list((tmp_path / "other").glob("*-segment/runs-*"))
    with IndexWriter.create(tmp_path / "other", MODEL) as writer:
        writer.add(*make(3))
        writer.commit()
    assert verify(tmp_path / "other").problems == ()
    assert not list((tmp_path / "other").rglob("runs-*"))


class MergeEndsNow(Directory):
    """Beside a merge that is done with its copy just before its lock is asked for."""

    def lock(self, name: str, wait: Wait = NO_WAIT, doing: str = "writing") -> Lock:
        if name == MERGE_LOCK:
            (self.path / MERGING).rmdir()
        return super().lock(name, wait, doing)


def test_a_writer_opens_while_a_merge_ends(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    build(folder, [make(0)])
    (folder / MERGING).mkdir()
    with IndexWriter.open(folder, directory=MergeEndsNow(folder)) as writer:
        writer.add(*make(1))
        assert writer.commit() == 2
    Directory(folder).lock(MERGE_LOCK).release()
