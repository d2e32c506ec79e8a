"""`Index`: what people hold. Ties a stored index to the model that it was built with.

Reading needs no lock, and every method sees the newest commit. The first change takes the write lock;
`commit` makes all changes visible at once and lets it go. Without a commit the index stays as it was, but
what is already encoded and written is kept aside: the same changes, made again, go on after it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from denspi.build.encoding import encode_anywhere
from denspi.build.info import IndexInfo, describe
from denspi.build.lists import attach_missing_lists
from denspi.build.long_paragraphs import with_short_paragraphs
from denspi.build.model import DEFAULT_MODEL, IndexModel, model_for_new_index, model_of_index
from denspi.build.open_files import allow_open_files
from denspi.build.parts import Outdated, parts_from
from denspi.build.pipeline import Progress, encode_into, size_of, why_not
from denspi.build.resuming import Resumed
from denspi.build.workers import WorkerSettings
from denspi.corpus.records import Item, shortened
from denspi.dense.encoder import PhraseEncoder
from denspi.errors import IndexDamagedError, IndexLockedError, InputError, ModelError, StorageError
from denspi.index.directory import Directory
from denspi.index.leftovers import foreign_entry
from denspi.index.locks import Wait
from denspi.index.manifest import MANIFEST
from denspi.index.merge_beside import merge_beside
from denspi.index.rows import ParagraphRows
from denspi.index.snapshot import Snapshot
from denspi.index.verify import VerifyReport, verify
from denspi.index.writer import IndexWriter, WriterSettings
from denspi.types import Document

SEGMENT_WORDS = 1 << 17
"""What an interruption costs at most: about twenty seconds of one core with the small model."""
PathLike = str | os.PathLike[str]
OnProgress = Callable[["Changes"], None]
OnStopped = Callable[[str], None]
"""Hears why a merge was given up, in one line; of Ctrl-C, which needs no reason, an empty one."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What a call of `add` or `update` has done so far."""

    encoded: Progress  # added or put in the place of another
    unchanged: Progress  # already there with the same content, from an interrupted run too
    deleted: int = 0  # documents that their file no longer has


class Index:
    """A phrase index in a folder; a context manager. Use `create` or `open`."""

    def __init__(
        self, folder: Path, model: IndexModel | None, writer: IndexWriter | None, workers: WorkerSettings
    ) -> None:
        self.folder = folder
        self._model, self._writer, self._workers = model, writer, workers
        self._encoder: PhraseEncoder | None = None
        self._snapshot: Snapshot | None = None
        self._resumed = Resumed(writer, str(folder)) if writer else None
        self._is_half_done = False  # `add` or `update` has failed after its first document
        self.given_up_documents = 0
        """Documents that an interrupted run had written and the last commit was not given again."""

    @classmethod
    def create(
        cls,
        folder: PathLike,
        model: str = DEFAULT_MODEL,
        *,
        precision: str = "int8",
        workers: WorkerSettings | None = None,
    ) -> Index:
        """A new index, which exists for others after its first `commit`; goes on with an unfinished one.

        `model` is the name of a packaged model or a model folder.
        """
        path = Path(folder)
        cls.check_new(path)
        chosen = model_for_new_index(model, precision)
        allow_open_files()  # before what an interrupted build has written is opened
        writer = IndexWriter.create(path, chosen.record, resume=True, settings=_settings())
        return cls(path, chosen, writer, workers or WorkerSettings())

    @classmethod
    def open(
        cls, folder: PathLike, *, model: str | None = None, workers: WorkerSettings | None = None
    ) -> Index:
        """An index that is there. `model` says where its model is, if not where the index has recorded."""
        path = _folder(folder)
        snapshot = Snapshot.open(path)
        chosen = model_of_index(path, snapshot.model, model) if model is not None else None
        index = cls(path, chosen, None, workers or WorkerSettings())
        index._snapshot = snapshot
        return index

    @staticmethod
    def check_new(folder: PathLike) -> None:
        """`InputError` unless `create` could begin, or go on with, an index there. Writes nothing."""
        path = Path(folder)
        _require_no_dead_link(path)
        if not path.exists():
            return
        if not path.is_dir():
            raise InputError(f"{path}: is a file; name a folder for the index")
        directory = Directory(path)
        if MANIFEST in directory.entries():
            raise InputError(
                f"{path}: already holds an index; add to it or update it, or choose another folder"
            )
        if foreign := foreign_entry(directory):
            raise InputError(f"{path}: not empty (it holds {foreign!r}); choose another folder")

    # Reading

    def snapshot(self) -> Snapshot:
        """The newest committed generation."""
        found = self._snapshot.refresh() if self._snapshot else Snapshot.open(self.folder)
        self._snapshot = found
        return found

    def model(self) -> IndexModel:
        """The model that it was built with; `ModelError` where that is not there."""
        if self._model is None:
            self._model = model_of_index(self.folder, self.snapshot().model)
        return self._model

    def encoder(self) -> PhraseEncoder:
        """Its encoder, loaded once."""
        if self._encoder is None:
            self._encoder = self.model().encoder()
        return self._encoder

    def info(self) -> IndexInfo:
        """What it holds and what it costs."""
        return describe(self.folder.as_posix(), self.snapshot())

    def verify(self, on_bytes: Callable[[int], None] = lambda _: None) -> VerifyReport:
        """Read every byte of the newest generation; the report names what is damaged.

        `on_bytes` hears of every stretch that has been read, and of what is read a second time again.
        """
        return verify_index(self.folder, on_bytes)

    # Changing

    def add(self, documents: Iterable[Document], on_progress: OnProgress = lambda _: None) -> Changes:
        """Encode and add documents; `InputError` for one whose id is there already.

        If it fails after its first document, nothing can be changed or committed until `discard` or `close`.
        """
        writer, resumed = self._writing()
        return self._change(documents, writer.add, resumed.is_added, on_progress)

    def update(self, documents: Iterable[Item], on_progress: OnProgress = lambda _: None) -> Changes:
        """Add documents, or put them in the place of those with their ids; unchanged ones cost nothing.

        Of several with one id the last one stays. If it fails half way, it is as with `add`.
        A text file that had been indexed in parts and has fewer by now loses the others; not so where a
        `Skipped` among the documents says that it could not be read to its end.
        """
        writer, resumed = self._writing()
        outdated = Outdated()

        def seen() -> Iterator[Document]:
            for item in documents:
                outdated.see(item, writer.document)
                if isinstance(item, Document):
                    yield item

        changes = self._change(seen(), writer.update, resumed.is_updated, on_progress)
        names = [name for name in outdated.rest(resumed.document) if not resumed.was_given(name)]
        return Changes(changes.encoded, changes.unchanged, sum(map(writer.delete, names)))

    def delete(self, document_id: str) -> int:
        """Delete a document, or all parts of a long text file; how many documents that were, 0 if none."""
        writer, resumed = self._writing()
        is_one = resumed.document(document_id) is not None
        # All are looked up first: what is deleted is not found any more.
        names = [document_id] if is_one else list(parts_from(document_id, 1, resumed.document))
        return sum(map(writer.delete, names))

    def commit(self, on_stopped: OnStopped = lambda _: None) -> int:
        """Make all changes visible, at once and durably; the newest generation.

        Large merges that have become due come after it, and keep neither readers nor writers waiting. A
        KeyboardInterrupt or a full disk then ends the merge and nothing else: `on_stopped` hears why.
        """
        if self._writer is None:
            return self.snapshot().generation
        writer, resumed = self._writing()
        self.given_up_documents = resumed.drop_rest()
        self._snapshot = None  # held, it would keep what the commit replaces; whoever was given it holds it
        before = generation = writer.generation
        try:
            generation = writer.commit()
            self.close()
            with suppress(IndexLockedError):  # somebody writes or merges: a later commit will merge
                generation = merge_beside(self.folder)
                generation = self._attach_lists()
        except (KeyboardInterrupt, StorageError) as stopped:
            generation = max(generation, writer.generation)
            if generation == before or isinstance(stopped, IndexDamagedError):
                raise
            self.close()
            on_stopped(str(stopped))
        return generation

    def merge(self, wait_seconds: float = 0.0, on_wait: Callable[[str], None] = lambda _: None) -> int:
        """Commit, then write all segments as few, without deleted documents. Scores stay as they are.

        It waits so long for another merge, copies beside whoever writes, and needs the lock only at the end,
        where it waits so long again: `on_wait` hears for whom. `IndexLockedError` if that was not enough, and
        the copy is given up. `StorageError` beside changes of an interrupted run that can be gone on with.
        """
        self.commit()
        self._snapshot = None
        generation = merge_beside(self.folder, everything=True, wait=Wait(wait_seconds, on_wait))
        with suppress(IndexLockedError):  # it is merged; whoever writes makes the lists with its commit
            generation = self._attach_lists()
        return generation

    def refit(self, on_stopped: OnStopped = lambda _: None) -> int:
        """Commit with idf as a fresh build would have it."""
        self._writing()[0].refit()
        return self.commit(on_stopped)

    def discard(self) -> None:
        """Forget everything since the last commit, and let go of the write lock."""
        if self._writer is not None:
            self._writer.discard()
            self.close()

    def close(self) -> None:
        """Let go of the write lock; what is not committed stays invisible."""
        if self._writer is not None:
            self._writer.close()
            self._writer = self._resumed = None
            self._is_half_done = False

    def __enter__(self) -> Index:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _attach_lists(self) -> int:
        """Large segments get their vector index; the newest generation."""
        try:
            return attach_missing_lists(self.folder, lambda: self.model().codec())
        except ModelError:  # only compact rows need the model, and searches find all without lists
            return self.snapshot().generation

    def _writing(self) -> tuple[IndexWriter, Resumed]:
        if self._is_half_done:
            raise InputError(
                f"{self.folder}: a change failed half way, so nothing is committed; "
                "discard what came since the last commit, and make the changes again"
            )
        if self._writer is None or self._resumed is None:
            allow_open_files()
            writer = IndexWriter.open(self.folder, resume=True, settings=_settings())
            if self._model is not None and not writer.model.gives_the_rows_of(self._model.record):
                writer.close()
                raise ModelError(f"{self.folder}: built anew with another model; open it again")
            self._writer = writer
            self._resumed = Resumed(self._writer, str(self.folder))
        return self._writer, self._resumed

    def _change(
        self,
        documents: Iterable[Document],
        store: Callable[[Document, list[ParagraphRows]], None],
        is_done: Callable[[Document], bool],
        on_progress: OnProgress,
    ) -> Changes:
        encoded, unchanged, is_begun = Progress(), Progress(), False
        waiting: Counter[str] = Counter()  # given to the encoder, which reads ahead, and not yet stored

        def to_encode() -> Iterator[Document]:
            nonlocal unchanged
            for given in documents:
                if reason := why_not(given):
                    raise InputError(f"{shortened(given.document_id or given.source)}: {reason}")
                document = with_short_paragraphs(given)
                # What the writer has of an id is not the last word while another of that id is on its way.
                if not waiting[document.document_id] and is_done(document):
                    unchanged += size_of(document)
                    on_progress(Changes(encoded, unchanged))
                else:
                    waiting[document.document_id] += 1
                    yield document

        def store_waiting(document: Document, rows: list[ParagraphRows]) -> None:
            nonlocal is_begun
            is_begun = True
            store(document, rows)
            waiting[document.document_id] -= 1
            if not waiting[document.document_id]:
                del waiting[document.document_id]

        def on_encoded(progress: Progress) -> None:
            nonlocal encoded
            encoded = progress
            on_progress(Changes(encoded, unchanged))

        model = self.model()

        def encode(paragraphs: Iterator[str]) -> Iterator[ParagraphRows]:
            return encode_anywhere(model, self.encoder, paragraphs, self._workers)

        try:
            encode_into(to_encode(), encode, store_waiting, on_encoded)
        except BaseException:
            self._is_half_done |= is_begun or bool(unchanged.documents)  # those of another run are taken over
            raise
        return Changes(encoded, unchanged)


def verify_index(folder: PathLike, on_bytes: Callable[[int], None] = lambda _: None) -> VerifyReport:
    """`Index.verify` for a folder that may be too damaged to open."""
    return verify(_folder(folder), on_bytes)


def _folder(folder: PathLike) -> Path:
    path = Path(folder)
    _require_no_dead_link(path)
    if path.exists() and not path.is_dir():
        raise InputError(f"{path}: is a file; name the folder of an index")
    return path


def _require_no_dead_link(path: Path) -> None:
    """`InputError` for a link to nothing, or to itself; a link to a folder is as good as the folder."""
    if path.is_symlink() and not path.exists():
        raise InputError(f"{path}: a link that leads nowhere; remove it, or name another folder")


def _settings() -> WriterSettings:
    return WriterSettings(flush_words=SEGMENT_WORDS)
