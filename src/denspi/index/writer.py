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

from denspi.errors import IndexDamagedError, IndexLockedError, InputError, StorageError
from denspi.index.building import Building
from denspi.index.components import PartRef
from denspi.index.directory import Directory
from denspi.index.draft import Draft
from denspi.index.fit import is_due
from denspi.index.leftovers import BUILDING, LOCK, remove_leftovers, remove_unnamed, strangers
from denspi.index.manifest import MANIFEST, MANIFEST_LIMIT_BYTES, Counts, Manifest, ModelRecord
from denspi.index.merge import Source
from denspi.index.merge_policy import MergePolicy
from denspi.index.rows import ParagraphRows, check_rows
from denspi.index.segment_writer import check_text, encode_record
from denspi.types import Document

_CHARACTERS_PER_WORD = 16  # texts without rows count too


@dataclass(frozen=True, slots=True)
class WriterSettings:
    """When a writer flushes and merges by itself. Equal settings and documents give equal bytes."""

    flush_words: int = 1 << 18  # some 55 MB of rows in memory
    inline_words: int = 4_000_000  # a commit itself merges no more committed words than this
    policy: MergePolicy = field(default_factory=MergePolicy)


class UnfinishedError(StorageError):
    """Somebody's changes were flushed and not committed; they could still be gone on with."""


class IndexWriter:
    """A context manager; leaving it without `commit` leaves the index as it was."""

    def __init__(
        self,
        directory: Directory,
        model: ModelRecord | None,  # of a new index; None for one that is there
        resume: bool,
        settings: WriterSettings | None,
        wait_seconds: float = 0.0,
        keep_unfinished: bool = False,
    ) -> None:
        self._directory, self._settings = directory, settings or WriterSettings()
        self._pending: dict[str, tuple[Document, Sequence[ParagraphRows]]] = {}
        self._pending_words = 0
        self._wants_fit = False
        self._lock = directory.lock(LOCK, wait_seconds)
        self._is_open = True
        try:
            content = directory.read("", MANIFEST, MANIFEST_LIMIT_BYTES)
            self._content = content  # of the manifest that the changes are changes to
            self._manifest = Manifest.of(content, str(directory.path / MANIFEST)) if content else None
            if self._manifest is not None and model is not None:  # somebody else was faster
                raise InputError(f"{directory.path}: already holds an index; choose another folder")
            recorded = self._manifest.model if self._manifest else model
            assert recorded is not None
            self._resumed_documents = 0
            if keep_unfinished and self._find_building(recorded) is not None:
                raise UnfinishedError(
                    f"{directory.path}: unfinished changes; go on with the command that began them"
                )
            self._draft = self._begin(recorded, resume)
        except BaseException:
            self._lock.release()
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
        entries = directory.entries()
        if MANIFEST in entries:
            raise InputError(f"{folder}: already holds an index; add to it, or choose another folder")
        if foreign := strangers(entries):
            raise InputError(f"{folder}: not empty (it holds {foreign[0]!r}); choose another folder")
        return cls(directory, model, resume, settings)

    @classmethod
    def open(
        cls,
        folder: Path,
        *,
        resume: bool = False,
        wait_seconds: float = 0.0,
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
        return cls(directory, None, resume, settings, wait_seconds, keep_unfinished)

    @property
    def generation(self) -> int:
        """The last committed generation; 0 before the first."""
        return self._manifest.generation if self._manifest else 0

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
        if document_id in self._pending:
            return self._pending[document_id][0]
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
            raise InputError(f"{document.document_id}: already in the index; update it instead")
        self._check(document, paragraphs)
        self._put(document, paragraphs)

    def update(self, document: Document, paragraphs: Sequence[ParagraphRows]) -> None:
        """Put a document in the place of the one with its id, or add it where there is none."""
        self._require_open()
        self._check(document, paragraphs)
        self.delete(document.document_id)
        self._put(document, paragraphs)

    def delete(self, document_id: str) -> bool:
        """Remove a document; False if there is none of this id."""
        self._require_open()
        pending = self._pending.pop(document_id, None)
        if pending is not None:
            self._pending_words -= _weight(*pending)
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
            self._draft.append(list(self._pending.values()))
            self._pending.clear()
            self._pending_words = 0
            if self._draft.can_be_resumed:
                self._directory.publish(BUILDING, self._draft.building().encoded())

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
        self._pending_words, self._wants_fit = 0, False
        self._draft.release()
        self._draft = self._begin(self._draft.model, resume=False)

    def close(self) -> None:
        """Let go of the lock. What was not flushed is lost, what was flushed can be resumed."""
        if self._is_open:
            self._is_open = False
            self._draft.release()
            self._lock.release()

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
        content = manifest.encoded()
        try:
            self._directory.publish(MANIFEST, content)
        except BaseException:
            self.close()  # the disk may have the old manifest or the new one: whoever opens it next will see
            raise
        self._manifest, self._content, self._wants_fit = manifest, content, False
        draft.is_now(manifest)
        with suppress(StorageError):  # it is committed; what cannot be removed now, the next writer will
            self._directory.remove_file(BUILDING)
            remove_unnamed(self._directory, {part.folder for part in manifest.parts})
        return manifest.generation

    def _begin(self, model: ModelRecord, resume: bool) -> Draft:
        building = self._find_building(model) if resume else None
        named = {part.folder for part in self._manifest.parts} if self._manifest else set()
        if building is None:
            self._directory.remove_file(BUILDING)
        else:
            named |= {rows.folder for rows, _ in building.segments}
        remove_leftovers(self._directory, named)
        draft = Draft(self._directory, self._manifest, model)
        self._resumed_documents = 0
        if building is not None:
            try:
                self._resumed_documents = draft.resume(building)
            except IndexDamagedError:  # nothing that was committed is in it: begin without it
                draft.release()
                return self._begin(model, resume=False)
        return draft

    def _find_building(self, model: ModelRecord) -> Building | None:
        try:
            content = self._directory.read("", BUILDING, MANIFEST_LIMIT_BYTES)
            building = Building.of(content, BUILDING) if content else None
        except IndexDamagedError:
            return None  # nothing that was committed is in it
        if building is None or building.base != self.generation:
            return None
        if not building.model.gives_the_rows_of(model):
            theirs, ours = (
                f"{each.name!r} ({each.fingerprint[:12]}, {each.precision})"
                for each in (building.model, model)
            )
            raise InputError(
                f"{self._directory.path}: the unfinished build is with model {theirs}, not {ours}; "
                "go on with that model, or choose another folder"
            )
        return building

    def _put(self, document: Document, paragraphs: Sequence[ParagraphRows]) -> None:
        self._pending[document.document_id] = (document, paragraphs)
        self._pending_words += _weight(document, paragraphs)
        if self._pending_words >= self._settings.flush_words:
            self.flush()

    def _check(self, document: Document, paragraphs: Sequence[ParagraphRows]) -> None:
        name, spans = document.document_id, document.paragraphs
        if len(paragraphs) != len(spans):
            raise InputError(
                f"{name}: {len(spans)} paragraphs but rows of {len(paragraphs)}; encode it again"
            )
        layout = self.model.layout
        for number, (rows, span) in enumerate(zip(paragraphs, spans, strict=True)):
            check_rows(rows, len(span), layout, f"{name}, paragraph {number}")
        check_text(document)
        encode_record(document)

    def _require_sole(self) -> None:
        """Nobody else has written: whoever removes the lock file lets a second writer in."""
        directory = self._directory
        if not directory.holds(self._lock, LOCK):
            finding = f"its file {LOCK!r} was removed or replaced while this writer held it"
        elif directory.read("", MANIFEST, MANIFEST_LIMIT_BYTES) != self._content:
            finding = "somebody else has committed meanwhile"
        else:
            return
        self.close()
        raise IndexLockedError(
            f"{directory.path}: {finding}; nothing of this one was committed, make the changes again"
        )

    def _require_open(self) -> None:
        if not self._is_open:
            raise StorageError(f"{self._directory.path}: this writer is closed; open another one")


def _weight(document: Document, paragraphs: Sequence[ParagraphRows]) -> int:
    words = sum(rows.word_count for rows in paragraphs)
    return max(1, words, len(document.text) // _CHARACTERS_PER_WORD)
