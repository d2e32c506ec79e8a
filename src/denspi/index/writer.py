"""Changes to an index: add, update, delete, merge, refit, and the commit that makes them visible at once.

One writer at a time: it holds the lock of the folder for as long as it lives. Readers never wait for it. What
has been flushed but not committed can be gone on with after an interruption (`resume`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from numpy.typing import NDArray

from denspi.corpus.records import shortened
from denspi.errors import IndexDamagedError, IndexLockedError, InputError, StorageError
from denspi.index.components import PartRef
from denspi.index.directory import Directory
from denspi.index.draft import Draft
from denspi.index.fit import is_due
from denspi.index.hold import Hold
from denspi.index.leftovers import foreign_entry, remove_leftovers, remove_unnamed
from denspi.index.locks import NO_WAIT, Wait
from denspi.index.manifest import MANIFEST, MANIFEST_LIMIT_BYTES, Counts, ModelRecord
from denspi.index.merge import Source
from denspi.index.merge_policy import MergePolicy
from denspi.index.pending import Pending, check_document
from denspi.index.rows import ParagraphRows
from denspi.index.unfinished import UnfinishedError, UnfinishedLog, find_unfinished
from denspi.types import Document


@dataclass(frozen=True, slots=True)
class WriterSettings:
    """When a writer flushes and merges by itself. Equal settings and documents give equal bytes."""

    flush_words: int = 1 << 18  # some 55 MB of rows in memory
    inline_words: int = 4_000_000  # a commit itself merges no more committed words than this
    policy: MergePolicy = field(default_factory=MergePolicy)


class IndexWriter:
    """A context manager; leaving it without `commit` leaves the index as it was."""

    def __init__(
        self,
        directory: Directory,
        model: ModelRecord | None,  # of a new index; None for one that is there
        resume: bool,
        settings: WriterSettings | None,
        wait: Wait = NO_WAIT,
        keep_unfinished: bool = False,
    ) -> None:
        self._directory, self._settings = directory, settings or WriterSettings()
        self._pending, self._log = Pending(), UnfinishedLog(directory)
        self._wants_fit = False
        self._hold = Hold(directory, wait)
        self._is_open = True
        try:
            manifest = self._hold.manifest
            if manifest is not None and model is not None:  # somebody else was faster
                raise InputError(f"{directory.path}: already holds an index; choose another folder")
            recorded = manifest.model if manifest else model
            assert recorded is not None
            self._resumed_documents = 0
            if keep_unfinished and find_unfinished(directory, self.generation, recorded):
                raise UnfinishedError.at(directory)
            self._draft = self._begin(recorded, resume)
        except BaseException:
            self._hold.release()
            raise

    @classmethod
    def create(
        cls,
        folder: Path,
        model: ModelRecord,
        *,
        resume: bool = False,
        settings: WriterSettings | None = None,
        directory: Directory | None = None,
    ) -> IndexWriter:
        """A new index. With `resume`, go on with a first build that was interrupted, if there is one."""
        directory = directory or Directory(folder)
        directory.create()
        if MANIFEST in directory.entries():
            raise InputError(f"{folder}: already holds an index; add to it, or choose another folder")
        if foreign := foreign_entry(directory):
            raise InputError(f"{folder}: not empty (it holds {foreign!r}); choose another folder")
        return cls(directory, model, resume, settings)

    @classmethod
    def open(
        cls,
        folder: Path,
        *,
        resume: bool = False,
        wait: Wait = NO_WAIT,
        settings: WriterSettings | None = None,
        directory: Directory | None = None,
        keep_unfinished: bool = False,
    ) -> IndexWriter:
        """An index that has been committed. With `resume`, changes that were flushed are gone on with.

        Without it they are dropped; with `keep_unfinished`, there is an UnfinishedError instead.
        """
        directory = directory or Directory(folder)
        if directory.read("", MANIFEST, MANIFEST_LIMIT_BYTES) is None:
            raise InputError(f"{folder}: not an index (no {MANIFEST}); build one with: denspi index")
        return cls(directory, None, resume, settings, wait, keep_unfinished)

    @property
    def generation(self) -> int:
        """The last committed generation; 0 before the first."""
        return self._hold.generation

    @property
    def model(self) -> ModelRecord:
        """The model that the rows must be from."""
        return self._draft.model

    @property
    def resumed_documents(self) -> int:
        """Documents of an interrupted run that are already in: flushed, not committed."""
        return self._resumed_documents

    def __contains__(self, document_id: str) -> bool:
        """Whether a document of this id is live or pending."""
        return document_id in self._pending or self._draft.find(document_id) is not None

    def document(self, document_id: str) -> Document | None:
        """The live or pending document of this id."""
        if (pending := self._pending.get(document_id)) is not None:
            return pending
        found = self._draft.find(document_id)
        return found[0].reader.document(found[1]) if found else None

    def is_resumed(self, document_id: str) -> bool:
        """Whether a document is in that an interrupted run had written."""
        found = None if document_id in self._pending else self._draft.find(document_id)
        return found is not None and found[0].is_resumed

    def resumed(self, document_id: str) -> Document | None:
        """The document of this id that an interrupted run had written, whatever the index itself has."""
        for segment, number in self._draft.resumed_of(document_id):
            return segment.reader.document(number)
        return None

    def drop_resumed(self, document_id: str) -> None:
        """Leave it out; a committed document of this id stays."""
        for segment, number in list(self._draft.resumed_of(document_id)):
            segment.delete([number])

    def restore_committed(self) -> None:
        """Take back what an interrupted run had deleted: whoever goes on with it deletes again what it will.

        A replaced document is then there twice, committed and resumed, until one of the two is removed.
        """
        self._draft.restore_committed()

    def resumed_ids(self) -> Iterator[str]:
        """The ids of the documents that an interrupted run had written; none after a commit or a merge."""
        return (segment.record(number).document_id for segment, number in self._draft.resumed())

    def add(self, document: Document, paragraphs: Sequence[ParagraphRows]) -> None:
        """Add a document with the rows of each of its paragraphs; InputError if its id is there already."""
        self._require_open()
        if document.document_id in self:
            name = shortened(document.document_id)
            raise InputError(f"{name}: already in the index; update it instead")
        check_document(document, paragraphs, self.model.layout)
        self._put(document, paragraphs)

    def update(self, document: Document, paragraphs: Sequence[ParagraphRows]) -> None:
        """Put a document in the place of the one with its id, or add it where there is none."""
        self._require_open()
        check_document(document, paragraphs, self.model.layout)
        self.delete(document.document_id)
        self._put(document, paragraphs)

    def delete(self, document_id: str) -> bool:
        """Remove a document; False if there is none of this id."""
        self._require_open()
        if self._pending.remove(document_id):
            return True
        found = self._draft.find(document_id)
        if found is not None:
            found[0].delete([found[1]])
        return found is not None

    def flush(self) -> None:
        """Write pending documents as a finished segment, which bounds memory; visible after `commit`."""
        self._require_open()
        self._require_sole()
        if self._pending:
            self._draft.append(self._pending.all())
            self._pending.clear()
            self._draft.record_in(self._log)

    def merge(self) -> None:
        """Write all segments as few; visible, as everything, after `commit`. Scores stay as they are."""
        self.flush()
        self._draft.merge_all(self._settings.policy)

    def refit(self) -> None:
        """Have the next commit compute idf and norms anew, as a fresh build would have them."""
        self._require_open()
        self._wants_fit = True

    def attach_lists(self, segment_name: str, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Store a vector index over the rows of a segment, in place of the one it has."""
        self._require_open()
        self._draft.attach_lists(segment_name, arrays)

    def commit(self) -> int:
        """Make every change visible, at once and durably. The new generation; the old if nothing changed."""
        self.flush()
        self._draft.merge_due(self._settings.policy, self._settings.inline_words)
        return self._commit()

    def commit_merge(
        self, merged_from: Sequence[Source], folder: str, rows: PartRef, counts: Counts
    ) -> int | None:
        """Commit a merge that was copied beside the writer into `folder`; None if its sources are gone."""
        self._require_open()
        return self._commit() if self._draft.adopt_merge(merged_from, folder, rows, counts) else None

    def discard(self) -> None:
        """Forget everything since the last commit, flushed segments included."""
        self._require_open()
        self._pending.clear()
        self._wants_fit = False
        self._draft.release()
        self._draft = self._begin(self._draft.model, resume=False)

    def close(self) -> None:
        """Let go of the lock. What was not flushed is lost, what was flushed can be resumed."""
        if self._is_open:
            self._is_open = False
            self._draft.release()
            self._hold.release()

    def __enter__(self) -> IndexWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _commit(self) -> int:
        draft = self._draft
        if not (self._wants_fit or draft.has_changes):
            return self.generation
        self._require_sole()
        if self._wants_fit or is_due(draft.live_units, draft.fit):
            draft.fit_anew()
        manifest = draft.finish(self.generation + 1)
        self._require_sole()
        try:
            self._hold.publish(manifest)
        except BaseException:
            self.close()  # the disk may have the old manifest or the new one: whoever opens it next will see
            raise
        self._wants_fit = False
        draft.is_now(manifest)
        with suppress(StorageError):  # it is committed; what cannot be removed now, the next writer will
            self._log.drop()
            remove_unnamed(self._directory, self._hold.part_folders)
        return manifest.generation

    def _begin(self, model: ModelRecord, resume: bool) -> Draft:
        building = find_unfinished(self._directory, self.generation, model) if resume else None
        named = self._hold.part_folders
        if building is None:
            self._log.drop()
        else:
            named |= {rows.folder for rows, _ in building.segments}
        remove_leftovers(self._directory, named)
        draft = Draft(self._directory, self._hold.manifest, model)
        self._resumed_documents = 0
        if building is not None:
            try:
                self._resumed_documents = draft.resume(building)
            except IndexDamagedError:  # nothing that was committed is in it: begin without it
                draft.release()
                return self._begin(model, resume=False)
        return draft

    def _put(self, document: Document, paragraphs: Sequence[ParagraphRows]) -> None:
        self._pending.put(document, paragraphs)
        if self._pending.words >= self._settings.flush_words:
            self.flush()

    def _require_sole(self) -> None:
        try:
            self._hold.require_sole()
        except IndexLockedError:
            self.close()
            raise

    def _require_open(self) -> None:
        if not self._is_open:
            raise StorageError(f"{self._directory.path}: this writer is closed; open another one")
