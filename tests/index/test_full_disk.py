"""A full disk, a read-only folder, no permission: one line, and the last generation stays whole."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import pytest
from tests.index.made import MODEL, build, make
from tests.index.test_round_trip import assert_holds

from denspi.errors import StorageError
from denspi.index import IndexWriter, Snapshot, merge_beside, verify
from denspi.index.directory import Directory


class FullDirectory(Directory):
    """Has room for so many more calls, then for nothing until `is_full` is taken back."""

    def __init__(self, path: Path, room: int) -> None:
        super().__init__(path)
        self.room = room

    def _take(self, path: Path) -> None:
        self.room -= 1
        if self.room < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    def create_file(self, folder: str, name: str) -> BinaryIO:
        with self.reporting():
            self._take(self.path / folder / name)
        return super().create_file(folder, name)

    def fsync_file(self, path: Path) -> None:
        self._take(path)

    def mkdir(self, path: Path) -> None:
        self._take(path)
        super().mkdir(path)


def tried(writer: IndexWriter) -> str:
    """Why a commit failed, or nothing."""
    try:
        writer.commit()
    except StorageError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("step", [11, pytest.param(1, marks=pytest.mark.slow)])
def test_whenever_the_disk_is_full_the_index_stays_and_the_commit_can_be_tried_again(
    tmp_path: Path, step: int
) -> None:
    base = tmp_path / "base"
    build(base, [make(n) for n in range(4)])
    room, succeeded = 0, False
    while not succeeded:
        folder = tmp_path / "index"
        shutil.copytree(base, folder)
        directory = FullDirectory(folder, room)
        with IndexWriter.open(folder, directory=directory) as writer:
            writer.delete("d1")
            writer.add(*make(8))
            writer.refit()
            first = tried(writer)
            succeeded = first == ""
            assert succeeded or "disk is full" in first
            if not succeeded and room % 3 == 0:
                assert_holds(Snapshot.open(folder), [make(n) for n in range(4)])
                assert verify(folder).problems == ()
            directory.room = 10_000
            second = tried(writer)
        if "closed" in second:  # it failed while it replaced the manifest
            with IndexWriter.open(folder) as writer:
                assert writer.generation == 1
        else:
            assert second == ""
            assert_holds(Snapshot.open(folder), [make(0), make(2), make(3), make(8)])
        shutil.rmtree(folder)
        room += step
    assert room > 40


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("needs the right to mount a small tmpfs")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_real_full_disk(small_disk: Path) -> None:
    folder = small_disk / "index"
    held = []
    with IndexWriter.create(folder, MODEL) as writer:
        writer.commit()
        for n in range(1000):
            made = make(n, words=300)
            writer.add(*made)
            if finding := tried(writer):
                break
            held.append(made)
    assert "disk is full" in finding
    assert held
    assert_holds(Snapshot.open(folder), held)
    assert verify(folder).problems == ()
    use_up(small_disk)
    with IndexWriter.open(folder) as writer:
        writer.refit()
        assert "disk is full" in tried(writer)
    assert_holds(Snapshot.open(folder), held)


def test_deleting_needs_no_room_for_a_merge(small_disk: Path) -> None:
    folder = small_disk / "index"
    held = [make(n, words=300) for n in range(12)]
    build(folder, held)
    (small_disk / "rest").write_bytes(bytes(shutil.disk_usage(small_disk).free - (48 << 10)))
    with IndexWriter.open(folder) as writer:
        for n in range(7):
            assert writer.delete(f"d{n}")
        assert writer.commit() == 2
    assert_holds(Snapshot.open(folder), held[7:])
    assert verify(folder).problems == ()
    assert Snapshot.open(folder).manifest.segments[0].deleted.documents == 7
    (small_disk / "rest").unlink()
    with IndexWriter.open(folder) as writer:
        writer.delete("d7")
        writer.commit()
    assert Snapshot.open(folder).manifest.segments[0].counts.documents == 4


def use_up(disk: Path) -> None:
    """Write until there is no room for anything more."""
    with (disk / "rest").open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * 512)


NOBODY = 65534


def as_somebody_else(work: Callable[[], None]) -> None:
    """Run `work` in a forked process that is not root; its failure is ours."""
    child = os.fork()
    if not child:
        try:
            if os.geteuid() == 0:
                os.setuid(NOBODY)
            work()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


def test_without_permission() -> None:
    """The folder can be read by all, and written by none but root."""
    with tempfile.TemporaryDirectory() as scratch:  # pytest's own is closed to others
        os.chmod(scratch, 0o755)
        folder = Path(scratch) / "index"
        build(folder, [make(1)])
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)

        def work() -> None:
            assert_holds(Snapshot.open(folder), [make(1)])
            assert verify(folder).problems == ()
            attempts: list[Callable[[], object]] = [
                lambda: IndexWriter.open(folder),
                lambda: merge_beside(folder),
                lambda: IndexWriter.create(folder / "inside", MODEL),
            ]
            for attempt in attempts:
                with pytest.raises(StorageError, match="permission denied") as refused:
                    attempt()
                assert "\n" not in str(refused.value)

        as_somebody_else(work)
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        assert_holds(Snapshot.open(folder), [make(1)])


def test_a_read_only_folder_can_be_read(tmp_path: Path) -> None:
    """Mounted read-only, so that root is refused too."""
    folder = tmp_path / "index"
    build(folder, [make(1)])
    view = tmp_path / "view"
    view.mkdir()
    bound = ["mount", "--bind", str(folder), str(view)]
    locked = ["mount", "-o", "remount,ro,bind", str(view)]
    if os.geteuid() != 0 or any(
        subprocess.run(each, capture_output=True).returncode for each in (bound, locked)
    ):
        pytest.skip("needs the right to mount a folder read-only")
    try:
        assert_holds(Snapshot.open(view), [make(1)])
        assert verify(view).problems == ()
        for change in (lambda: IndexWriter.open(view), lambda: merge_beside(view)):
            with pytest.raises(StorageError, match="read-only") as refused:
                change()
            assert "\n" not in str(refused.value)
    finally:
        subprocess.run(["umount", "-l", str(view)], check=True)
