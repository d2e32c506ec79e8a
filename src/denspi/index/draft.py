"""The next generation while it is being made: its segments, its fit, and the parts still to be written.

Writes new parts, and touches no committed one. What the writer publishes is `manifest`; until then nothing
here is visible to anybody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from denspi.errors import IndexDamagedError, InputError, StorageError
from denspi.index import fit as fitting
from denspi.index.building import Building
from denspi.index.components import PartRef
from denspi.index.directory import Directory
from denspi.index.manifest import Counts, Fit, Manifest, ModelRecord
from denspi.index.merge import MOST_AT_ONCE, Source, merge_rows
from denspi.index.merge_policy import MergePolicy, due_merges, joined_runs, next_group
from denspi.index.part import PartReader, PartWriter
from denspi.index.rows import ParagraphRows
from denspi.index.segment import SegmentReader
from denspi.index.segment_writer import write_documents
from denspi.index.sparse_part import open_frequencies
from denspi.index.tombstones import write_tombstones
from denspi.index.unfinished import UnfinishedLog
from denspi.index.working import WorkingSegment, open_committed, open_written
from denspi.sparse.norms import Norms
from denspi.types import Document

_Written = TypeVar("_Written")


class Draft:
    """Begins as the committed generation, if there is one; belongs to one writer."""

    def __init__(self, directory: Directory, manifest: Manifest | None, model: ModelRecord) -> None:
        self._directory = directory
        self._base = manifest
        self.model = model
        self.fit: Fit | None = manifest.fit if manifest else None
        self.next_part = manifest.next_part if manifest else 1
        self.segments: list[WorkingSegment] = []
        if manifest is not None:
            fingerprint = manifest.fit.fingerprint
            entries = manifest.segments
            self.segments = [open_committed(directory, entry, model, fingerprint) for entry in entries]
        self.can_be_resumed = True
        self._unrecorded: set[str] = set()  # folders of merged segments that no log and no manifest names

    @property
    def live_units(self) -> int:
        """Titles and paragraphs of the live documents."""
        return sum(each.size.live.units for each in self.segments)

    @property
    def has_changes(self) -> bool:
        """Whether it differs from the generation it began as."""
        if self._base is None:
            return True
        kept = [(each.rows, each.lists) for each in self.segments]
        return kept != [(each.rows, each.lists) for each in self._base.segments] or any(
            each.is_changed for each in self.segments
        )

    def find(self, document_id: str) -> tuple[WorkingSegment, int] | None:
        """The segment and the number of the live document with this id."""
        for segment in self.segments:
            if numbers := segment.numbers_of(document_id):
                return segment, numbers[0]
        return None

    def append(self, documents: Sequence[tuple[Document, Sequence[ParagraphRows]]]) -> None:
        """Write new documents as a segment."""
        rows, counts = self._write("segment", lambda part: write_documents(part, self.model, documents))
        self.segments.append(open_written(self._directory, rows, counts, self.model))

    def attach_lists(self, segment_name: str, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Store a vector index beside a segment."""
        segment = next((each for each in self.segments if each.reader.name == segment_name), None)
        if segment is None:
            raise InputError(f"{segment_name}: no segment of this index; open a new snapshot")

        def write(part: PartWriter) -> PartRef:
            for name, values in sorted(arrays.items()):
                part.whole(name, values)
            return part.finish()

        segment.lists = self._write("lists", write)

    # Merging

    def merge_all(self, policy: MergePolicy) -> None:
        """As few segments as the policy allows."""
        for run in reversed(joined_runs([each.size for each in self.segments], policy)):
            if len(run) > 1 or self.segments[run.start].is_deleted.any():
                self._merge(run)

    def merge_due(self, policy: MergePolicy, most_committed_words: int) -> None:
        """What the policy asks for; a run with more committed words than this is left to `merge_beside`.

        What has just been written must become one, or equal builds would differ. The rest is left to a later
        commit where the disk has no room for it: whoever deletes on a full disk must be able to.
        """
        first_new = sum(each.is_committed for each in self.segments)
        new_runs = joined_runs([each.size for each in self.segments[first_new:]], policy)
        for run in reversed(new_runs):  # these have just been written: writing them again is no long delay
            if len(run) > 1:
                self._merge(range(first_new + run.start, first_new + run.stop))
        try:
            while due := self._next_due(policy, most_committed_words):
                self._merge(due)
        except IndexDamagedError:
            raise
        except StorageError:  # if nothing else can be written either, the commit will say so
            return

    def _next_due(self, policy: MergePolicy, most_committed_words: int) -> range | None:
        sizes = [each.size for each in self.segments]
        for run in due_merges(sizes, policy):
            committed = [sizes[n].live.words for n in run if self.segments[n].is_committed]
            if sum(committed) <= most_committed_words:
                return run
        return None

    def adopt_merge(self, merged_from: Sequence[Source], folder: str, rows: PartRef, counts: Counts) -> bool:
        """Take in a merge that was copied beside the writer; False if its sources are no longer there.

        What was deleted since the copy was begun is deleted in it.
        """
        names = [each.reader.name for each in self.segments]
        wanted = [source.segment.name for source in merged_from]
        first = names.index(wanted[0]) if wanted[0] in names else len(names)
        run = range(first, first + len(wanted))
        if names[run.start : run.stop] != wanted:
            return False
        replaced = self.segments[run.start : run.stop]
        name = self._new_name("segment")
        self._directory.rename_folder(folder, name)
        rows = PartRef(name, rows.table_bytes, rows.table_sha256)
        merged = open_written(self._directory, rows, counts, self.model)
        kept = [source.is_kept for source in merged_from]
        deleted = np.concatenate([each.is_deleted[k] for each, k in zip(replaced, kept, strict=True)])
        if deleted.any():
            merged.delete(np.flatnonzero(deleted))
        if deleted.all():
            self._replace(run, [])
            return True
        self._gather_norms(merged, [Source(each.reader, k) for each, k in zip(replaced, kept, strict=True)])
        self._replace(run, [merged])
        return True

    def _merge(self, run: range) -> None:
        while len(run) > MOST_AT_ONCE:
            words = [each.size.live.words for each in self.segments[run.start : run.stop]]
            group = next_group(words, MOST_AT_ONCE)
            before = len(self.segments)
            self._merge_group(run[group.start : group.stop])
            run = range(run.start, run.stop - (before - len(self.segments)))
        self._merge_group(run)

    def _merge_group(self, run: range) -> None:
        chosen = self.segments[run.start : run.stop]
        sources = [each.source for each in chosen if not each.is_deleted.all()]
        if not sources:
            self._replace(run, [])
            return
        rows, counts = self._write("segment", lambda part: merge_rows(part, self.model, sources))
        merged = open_written(self._directory, rows, counts, self.model)
        if all(each.norms is not None for each in chosen):
            self._gather_norms(merged, sources)
        self._unrecorded.add(rows.folder)
        self._replace(run, [merged])

    def _gather_norms(self, merged: WorkingSegment, sources: Sequence[Source]) -> None:
        assert self.fit is not None
        found = [(source.segment, source.is_kept) for source in sources]
        self._store_norms(merged, fitting.gathered_norms(found, self.fit.fingerprint))

    def _replace(self, run: range, by: list[WorkingSegment]) -> None:
        replaced = self.segments[run.start : run.stop]
        self.segments[run.start : run.stop] = by
        # Documents of the base are in a new segment now: resuming would find them in both.
        self.can_be_resumed &= not any(each.is_committed for each in replaced)
        for segment in replaced:
            segment.reader.release()
            self._remove_unrecorded(segment)

    def _remove_unrecorded(self, segment: WorkingSegment) -> None:
        """What only led to a larger merge would else stay until the commit, on a disk that it may fill.

        Flushed segments do stay: the log names them, and after a crash the same merges are done again from
        them, so that the index is the same byte for byte.
        """
        if segment.rows.folder not in self._unrecorded:
            return
        self._unrecorded.remove(segment.rows.folder)
        with suppress(StorageError):  # the commit will remove it, or the next writer
            for part in (segment.norms, segment.rows):
                if part is not None:
                    self._directory.remove_folder(part.folder)

    # Finishing

    def fit_anew(self) -> None:
        """Frequencies of the live documents, for every norm and question from now on."""
        frequencies = fitting.count_live([(each.reader, each.is_deleted) for each in self.segments])
        self.fit = self._write("fit", lambda part: fitting.write_fit(part, frequencies))
        for segment in self.segments:
            segment.norms = None

    def finish(self, generation: int) -> Manifest:
        """Write what segments still lack; the manifest of the new generation."""
        assert self.fit is not None
        for segment in self.segments:
            if segment.norms is None:
                frequencies = open_frequencies(PartReader(self._directory, self.fit.part))
                self._store_norms(segment, fitting.fitted_norms(segment.reader, frequencies))
            if segment.is_changed:
                ref = self._write_tombstones(segment.is_deleted)
                segment.use_tombstones(PartReader(self._directory, ref))
        entries = tuple(segment.entry() for segment in self.segments)
        return Manifest(generation, self.next_part, self.model, self.fit, entries)

    def is_now(self, manifest: Manifest) -> None:
        """It has been committed: the next changes are changes to it."""
        self._base, self.can_be_resumed = manifest, True
        self._unrecorded.clear()
        for segment in self.segments:
            segment.is_committed, segment.is_resumed = True, False

    # Going on after an interruption

    def record_in(self, log: UnfinishedLog) -> None:
        """Note what has been written so far, if it could be gone on with."""
        if self.can_be_resumed:
            base = self._base.generation if self._base else 0
            self._unrecorded.clear()  # before: from the moment the log may name a part, it must be there
            log.record(base, self.next_part, self.model, self.segments)

    def resume(self, building: Building) -> int:
        """Take up what an interrupted writer had written; how many documents that is.

        All of it is read and checked: what is damaged would fail every later change.
        """
        for rows, counts in building.segments:
            self.segments.append(open_written(self._directory, rows, counts, self.model))
            self.segments[-1].is_resumed = True
            self.segments[-1].reader.check_rows()
        by_name = {each.reader.name: each for each in self.segments}
        for name, numbers in building.deleted:
            segment = by_name.get(name)
            if segment is not None and all(number < len(segment.is_deleted) for number in numbers):
                segment.delete(numbers)
        self.next_part = max(self.next_part, building.next_part)
        return sum(1 for _ in self.resumed())

    def restore_committed(self) -> None:
        """Committed documents are as the last commit left them."""
        for segment in self.segments:
            if segment.is_committed and segment.is_changed:
                segment.is_deleted = ~segment.reader.live
                segment.is_changed = False

    def resumed_of(self, document_id: str) -> Iterator[tuple[WorkingSegment, int]]:
        """The live documents of this id that an interrupted run had written: one or none."""
        for segment in self.segments:
            if segment.is_resumed:
                yield from ((segment, number) for number in segment.numbers_of(document_id))

    def resumed(self) -> Iterator[tuple[SegmentReader, int]]:
        """The live documents that an interrupted run had written."""
        for segment in self.segments:
            if segment.is_resumed:
                yield from ((segment.reader, int(number)) for number in np.flatnonzero(~segment.is_deleted))

    def release(self) -> None:
        """Let all its parts be deleted."""
        for segment in self.segments:
            segment.reader.release()

    # Parts

    def _store_norms(self, segment: WorkingSegment, norms: Norms) -> None:
        ref = self._write("norms", lambda part: fitting.write_norms(part, norms))
        segment.use_norms(PartReader(self._directory, ref), norms.fingerprint)

    def _write_tombstones(self, is_deleted: NDArray[np.bool_]) -> PartRef:
        return self._write("tombstones", lambda part: write_tombstones(part, is_deleted))

    def _write(self, kind: str, write: Callable[[PartWriter], _Written]) -> _Written:
        """A new part, complete or not there at all."""
        part = PartWriter(self._directory, self._new_name(kind))
        try:
            return write(part)
        except BaseException:
            try:
                self._directory.remove_folder(part.folder)
                self.next_part -= 1
            except StorageError:  # the next writer will remove it
                pass
            raise

    def _new_name(self, kind: str) -> str:
        name = f"{self.next_part:06d}-{kind}"
        self.next_part += 1
        return name
