"""A segment in the hands of a writer: its stored parts, and what has changed since they were written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from denspi.errors import IndexDamagedError
from denspi.index.components import PartRef
from denspi.index.directory import Directory
from denspi.index.manifest import Counts, ModelRecord, SegmentEntry
from denspi.index.merge import Source
from denspi.index.merge_policy import Size
from denspi.index.part import PartReader
from denspi.index.segment import SegmentReader
from denspi.index.tombstones import read_tombstones


@dataclass(slots=True)
class WorkingSegment:
    """Mutable, and the writer's own."""

    reader: SegmentReader
    rows: PartRef
    is_deleted: NDArray[np.bool_]  # [document]
    norms: PartRef | None = None  # None: to be written under the fit that the next commit has
    tombstones: PartRef | None = None
    lists: PartRef | None = None
    is_committed: bool = False
    is_resumed: bool = False  # from an interrupted run
    is_changed: bool = False  # `is_deleted` is no longer what `tombstones` says

    @property
    def deleted(self) -> Counts:
        """What the deleted documents are together."""
        return self.reader.counts_of(self.is_deleted) if self.is_deleted.any() else Counts()

    @property
    def size(self) -> Size:
        """What the merge policy looks at."""
        deleted, counts = self.deleted, self.reader.counts
        live = Counts(
            counts.documents - deleted.documents,
            counts.paragraphs - deleted.paragraphs,
            counts.words - deleted.words,
        )
        return Size(live, counts.words)

    @property
    def source(self) -> Source:
        """For a merge, without the documents that are deleted by now."""
        return Source(self.reader, ~self.is_deleted)

    def numbers_of(self, document_id: str) -> list[int]:
        """The live documents with this id: one or none."""
        return [number for number in self.reader.numbers_of(document_id) if not self.is_deleted[number]]

    def delete(self, numbers: Sequence[int] | NDArray[np.integer]) -> None:
        """Mark documents as deleted."""
        self.is_deleted[np.asarray(numbers, np.int64)] = True
        self.is_changed = True

    def use_norms(self, norms: PartReader, fit_fingerprint: str) -> None:
        """Read on under norms that have just been written."""
        self.norms = norms.ref
        self.reader = self.reader.under(norms, fit_fingerprint)

    def use_tombstones(self, tombstones: PartReader) -> None:
        """What is deleted has just been written."""
        self.tombstones, self.is_changed = tombstones.ref, False
        self.reader = self.reader.without(tombstones)

    def entry(self) -> SegmentEntry:
        """What the next manifest says of it; every part must have been written."""
        assert self.norms is not None
        assert not self.is_changed
        return SegmentEntry(
            self.rows, self.norms, self.tombstones, self.lists, self.reader.counts, self.deleted
        )


def open_committed(
    directory: Directory, entry: SegmentEntry, model: ModelRecord, fit_fingerprint: str
) -> WorkingSegment:
    """A segment of the current generation."""
    rows, norms = PartReader(directory, entry.rows), PartReader(directory, entry.norms)
    tombstones = PartReader(directory, entry.tombstones) if entry.tombstones else None
    reader = SegmentReader(entry.counts, model, rows, norms, tombstones, None, fit_fingerprint)
    is_deleted = read_tombstones(tombstones, entry.counts.documents)
    if int(is_deleted.sum()) != entry.deleted.documents:
        raise IndexDamagedError(
            f"{rows.path}: the manifest and its tombstones disagree; the index is damaged"
        )
    return WorkingSegment(reader, entry.rows, is_deleted, entry.norms, entry.tombstones, entry.lists, True)


def open_written(directory: Directory, rows: PartRef, counts: Counts, model: ModelRecord) -> WorkingSegment:
    """A segment that has just been written and belongs to no generation yet."""
    reader = SegmentReader(counts, model, PartReader(directory, rows))
    return WorkingSegment(reader, rows, np.zeros(counts.documents, np.bool_))
