"""Whatever happens to changes that were not committed, the index can be changed again."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from tests.index.made import MODEL, Made, build, make
from tests.index.test_round_trip import assert_holds

from denspi.errors import IndexDamagedError, StorageError
from denspi.index import IndexWriter, Snapshot, WriterSettings, verify
from denspi.index.directory import Directory
from denspi.index.leftovers import BUILDING
from denspi.index.manifest import MANIFEST_LIMIT_BYTES, sealed


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def newest(folder: Path) -> Path:
    return sorted(folder.glob("*-segment"))[-1]


DAMAGE: dict[str, Callable[[Path], None]] = {
    "a byte of a record": lambda folder: flip(newest(folder) / "records"),
    "a byte of the rows": lambda folder: flip(newest(folder) / "starts"),
    "a byte of the table": lambda folder: flip(newest(folder) / "table.json"),
    "a missing file": lambda folder: (newest(folder) / "texts").unlink(),
    "a missing segment": lambda folder: shutil.rmtree(newest(folder)),
    "the first byte of building.jsonl": lambda folder: (folder / BUILDING).write_bytes(
        b"[" + (folder / BUILDING).read_bytes()[1:]
    ),
    "an empty building.jsonl": lambda folder: (folder / BUILDING).write_bytes(b""),
    "building.jsonl too large": lambda folder: (folder / BUILDING).write_bytes(
        b" " * (MANIFEST_LIMIT_BYTES + 1)
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("is_first", [False, True])
def test_damaged_unfinished_changes_are_dropped(tmp_path: Path, damage: str, is_first: bool) -> None:
    folder, small = tmp_path / "index", WriterSettings(flush_words=1)
    committed = [] if is_first else [make(n) for n in range(3)]
    if not is_first:
        build(folder, committed)
    opened = (
        (lambda **more: IndexWriter.create(folder, MODEL, **more))
        if is_first
        else (lambda **more: IndexWriter.open(folder, **more))
    )
    with opened(settings=small) as writer:
        for n in range(10, 13):
            writer.add(*make(n))
    DAMAGE[damage](folder)
    with opened(resume=True) as writer:
        assert writer.resumed_documents == 0
        assert list(writer.resumed_ids()) == []
        writer.add(*make(12))
        writer.commit()
    assert_holds(Snapshot.open(folder), [*committed, make(12)])
    assert verify(folder).problems == ()
    assert len(list(folder.glob("0*"))) == len(Snapshot.open(folder).manifest.parts)


def flushed(folder: Path) -> list[Made]:
    """Three documents, each of them flushed, none committed; one more was deleted meanwhile."""
    build(folder, [make(n) for n in range(3)])
    with IndexWriter.open(folder, settings=WriterSettings(flush_words=1)) as writer:
        for n in range(10, 13):
            writer.delete(f"d{n - 10}")
            writer.add(*make(n))
    return [make(n) for n in range(10, 13)]


def test_a_damaged_line_takes_only_what_comes_after_it(tmp_path: Path) -> None:
    made = flushed(tmp_path / "index")
    content = (tmp_path / "index" / BUILDING).read_bytes()
    ends = [place + 1 for place, byte in enumerate(content) if byte == ord("\n")]
    assert len(ends) == 4  # a header and a line for each flush
    for cut in range(0, len(content) + 1, 97):
        folder = shutil.copytree(tmp_path / "index", tmp_path / f"cut-{cut}")
        (folder / BUILDING).write_bytes(content[:cut] + b"x" * (cut % 3))
        whole = max(0, sum(end <= cut for end in ends) - 1)
        with IndexWriter.open(folder, resume=True) as writer:
            assert writer.resumed_documents == whole
            for n in range(whole, 3):
                writer.delete(f"d{n}")
                writer.add(*made[n])
            writer.commit()
        assert_holds(Snapshot.open(folder), made)
        assert verify(folder).problems == ()
        shutil.rmtree(folder)


def test_what_is_recorded_grows_with_the_changes_alone(tmp_path: Path) -> None:
    """A line a flush, each as long as what it says; the lines before are not written again."""
    build(tmp_path / "index", [make(n) for n in range(40)])
    lengths = []
    with IndexWriter.open(tmp_path / "index", settings=WriterSettings(flush_words=1)) as writer:
        for n in range(40):
            writer.update(*make(n, version=1))
            lengths.append(len((tmp_path / "index" / BUILDING).read_bytes()))
    steps = [later - earlier for earlier, later in itertools.pairwise(lengths)]
    assert min(steps) > 0
    assert max(steps) < 1.1 * min(steps)
    with IndexWriter.open(tmp_path / "index", resume=True) as writer:
        assert writer.resumed_documents == 40
        writer.commit()
    assert_holds(Snapshot.open(tmp_path / "index"), [make(n, version=1) for n in range(40)])


def test_a_merge_of_flushed_segments_is_recorded_anew(tmp_path: Path) -> None:
    folder, small = tmp_path / "index", WriterSettings(flush_words=1)
    with IndexWriter.create(folder, MODEL, settings=small) as writer:
        writer.add(*make(1))
        writer.add(*make(2))
        writer.merge()
        writer.delete("d1")
        writer.add(*make(3))
    with IndexWriter.create(folder, MODEL, resume=True) as writer:
        assert sorted(writer.resumed_ids()) == ["d2", "d3"]
        writer.commit()
    assert_holds(Snapshot.open(folder), [make(2), make(3)])


def test_a_line_that_could_not_be_written_is_not_built_upon(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    directory = FullAtTimes(folder)
    with IndexWriter.create(
        folder, MODEL, settings=WriterSettings(flush_words=1), directory=directory
    ) as writer:
        writer.add(*make(1))
        directory.is_full = True
        with pytest.raises(StorageError):
            writer.add(*make(2))
        directory.is_full = False
        writer.add(*make(3))
    with IndexWriter.create(folder, MODEL, resume=True) as writer:
        assert sorted(writer.resumed_ids()) == ["d1", "d2", "d3"]


class FullAtTimes(Directory):
    """A disk that takes half of what is appended."""

    is_full = False

    def append(self, name: str, content: bytes) -> None:
        super().append(name, content[: len(content) // 2] if self.is_full else content)
        if self.is_full:
            raise StorageError("full")


@pytest.mark.parametrize("is_committed", [False, True])
def test_what_a_newer_version_has_not_finished_is_left_to_it(tmp_path: Path, is_committed: bool) -> None:
    folder = tmp_path / "index"
    with IndexWriter.create(folder, MODEL) as writer:
        writer.add(*make(1))
        if is_committed:
            writer.commit()
        writer.add(*make(2))
        writer.flush()
    header, *lines = (folder / BUILDING).read_bytes().split(b"\n")
    newer = sealed(json.loads(header)["content"] | {"format": 2})
    (folder / BUILDING).write_bytes(b"\n".join([newer, *lines]))
    before = sorted(folder.rglob("*"))
    again = IndexWriter.open if is_committed else partial(IndexWriter.create, model=MODEL)
    with pytest.raises(IndexDamagedError, match=r"index/building\.jsonl: format 2 is newer"):
        again(folder, resume=True)
    assert sorted(folder.rglob("*")) == before
