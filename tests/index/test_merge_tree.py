"""More segments than are merged at once: little is copied, little is kept, and no crash is noticed."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.index.made import MODEL, contents, make

from denspi.index import IndexWriter, MergePolicy, Snapshot, WriterSettings, draft, merge_beside
from denspi.index.building import Building
from denspi.index.components import PartRef
from denspi.index.directory import Directory
from denspi.index.leftovers import BUILDING, LOCK
from denspi.index.manifest import Counts, ModelRecord
from denspi.index.merge import MOST_AT_ONCE, Source, merge_rows
from denspi.index.part import PartWriter

EACH = WriterSettings(flush_words=1)
APART = WriterSettings(flush_words=1, inline_words=0, policy=MergePolicy(largest_words=1))


class Stopped(BaseException):
    """In the place of a kill."""


class Watched:
    """`merge_rows` that counts, and that can be made to fail."""

    def __init__(self, folder: Path, fails_at: int | None = None) -> None:
        self.folder, self.fails_at = folder, fails_at
        self.merges = self.copied_words = self.most_bytes = 0

    def __call__(
        self, part: PartWriter, model: ModelRecord, sources: Sequence[Source]
    ) -> tuple[PartRef, Counts]:
        assert len(sources) <= MOST_AT_ONCE
        if self.merges == self.fails_at:
            raise Stopped
        rows, counts = merge_rows(part, model, sources)
        self.merges += 1
        self.copied_words += counts.words
        self.most_bytes = max(self.most_bytes, row_bytes(self.folder))
        return rows, counts


def row_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("*/starts"))


@pytest.mark.parametrize(("segments", "levels"), [(20, 1.3), (100, 2.0), (240, 2.0), (300, 2.2)])
def test_a_word_is_copied_once_a_level(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, segments: int, levels: float
) -> None:
    folder = tmp_path / "index"
    watched = Watched(folder)
    monkeypatch.setattr(draft, "merge_rows", watched)
    with IndexWriter.create(folder, MODEL, settings=EACH) as writer:
        for number in range(segments):
            writer.add(*make(number, paragraphs=1))
        flushed_bytes = row_bytes(folder)
        writer.commit()
    (segment,) = Snapshot.open(folder).segments
    assert watched.copied_words <= levels * segment.counts.words
    assert watched.most_bytes <= (1 + levels) * flushed_bytes
    assert watched.most_bytes <= 3.05 * flushed_bytes  # flushed, on the way, and merged, however many


def test_a_merge_beside_the_writer_copies_as_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "index"
    with IndexWriter.create(folder, MODEL, settings=APART) as writer:
        for number in range(100):
            writer.add(*make(number, paragraphs=1))
        writer.commit()
    watched = Watched(folder)
    monkeypatch.setattr(sys.modules[merge_beside.__module__], "merge_rows", watched)
    merge_beside(folder, everything=True)
    (segment,) = Snapshot.open(folder).segments
    assert watched.copied_words <= 2 * segment.counts.words


@pytest.mark.parametrize("fails_at", [0, 1, 2, 3, 6])
def test_a_crash_between_merges_leaves_what_the_log_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    """Some merged segments have been removed again by then; going on ends with the same bytes."""
    straight, folder = tmp_path / "straight", tmp_path / "index"
    with IndexWriter.create(straight, MODEL, settings=EACH) as writer:
        for number in range(100):
            writer.add(*make(number, paragraphs=1))
        writer.commit()
    writer = IndexWriter.create(folder, MODEL, settings=EACH, directory=Honest(folder))
    for number in range(100):
        writer.add(*make(number, paragraphs=1))
    monkeypatch.setattr(draft, "merge_rows", Watched(folder, fails_at))
    with pytest.raises(Stopped):
        writer.commit()
    killed = shutil.copytree(folder, tmp_path / "killed")
    monkeypatch.undo()
    writer.commit()  # the same writer can go on
    writer.close()
    assert without_locks(folder) == without_locks(straight)
    with IndexWriter.create(killed, MODEL, resume=True, settings=EACH) as writer:
        assert writer.resumed_documents == 100
        writer.commit()
    assert without_locks(killed) == without_locks(straight)


def test_a_merged_segment_that_was_recorded_stays_until_the_commit(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    with IndexWriter.create(folder, MODEL, settings=EACH, directory=Honest(folder)) as writer:
        for number in range(3):
            writer.add(*make(number))
        writer.merge()
        for number in range(3, 40):  # every flush records the merged segment
            writer.add(*make(number))
        writer.merge()
        writer.add(*make(40))
        writer.commit()
    assert len(list(folder.glob("*-segment"))) == 1


class Honest(Directory):
    """Notices a log that names what is being removed."""

    def unlink(self, path: Path) -> None:
        if path.parent != self.path and (content := self.read("", BUILDING, 1 << 30)):
            named = {rows.folder for rows, _ in Building.of(content, BUILDING).segments}
            assert path.parent.name not in named
        super().unlink(path)


def without_locks(folder: Path) -> dict[str, bytes]:
    return {name: content for name, content in contents(folder).items() if name != LOCK}
