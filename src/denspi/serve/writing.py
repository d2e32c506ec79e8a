"""Changes that come over HTTP: who may make them, and how they get into the index.

One writer, whatever the number of workers: each change takes the index's own write lock, commits, and lets it
go; others wait a few seconds for it and are then told who holds it. Called from one thread at a time.
"""

from __future__ import annotations

import hmac
import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from denspi.build.index import Changes, Index
from denspi.build.workers import WorkerSettings
from denspi.corpus import split_paragraphs
from denspi.errors import DenspiError, IndexLockedError, InputError
from denspi.index.snapshot import Snapshot
from denspi.serve.models import DocumentIn, WrittenOut
from denspi.serve.problems import ProblemError, busy
from denspi.serve.service import AwayError
from denspi.types import Document

T = TypeVar("T")
_POLL_SECONDS = 0.05
_log = logging.getLogger("uvicorn.error")
_ASK_FOR_TOKEN = {"WWW-Authenticate": "Bearer"}


def may_write(token: str | None, authorization: str | None) -> None:
    """Raise unless the header carries the token. Takes as long for a wrong one, however wrong it is."""
    if token is None:
        raise ProblemError(403, "the service is read-only; start it with --writable")
    kind, _, given = (authorization or "").partition(" ")
    if kind.lower() != "bearer":
        raise ProblemError(401, "changes need the header Authorization: Bearer TOKEN", _ASK_FOR_TOKEN)
    if not hmac.compare_digest(given.strip().encode(), token.encode()):
        raise ProblemError(401, "not the token that the service was started with", _ASK_FOR_TOKEN)


class Writing:
    """Adds, replaces and deletes documents of an index."""

    def __init__(self, folder: Path, lock_seconds: float) -> None:
        self._folder, self._lock_seconds = folder, lock_seconds
        self._opened: Index | None = None
        self._is_over = threading.Event()

    def give_up(self) -> None:
        """Commit nothing more that is still being encoded: the service ends, and nobody waits for it."""
        self._is_over.set()

    def put(self, given: list[DocumentIn]) -> WrittenOut:
        """Add documents, or put them in the place of those with their ids; all of them or none."""
        documents = [_document(each) for each in given]

        def change(index: Index) -> WrittenOut:
            changes = index.update(documents, on_progress=self._go_on)
            generation = index.commit()
            return WrittenOut(
                generation=generation,
                written=changes.encoded.documents,
                unchanged=changes.unchanged.documents,
                deleted=changes.deleted,
            )

        return self._with_lock(change)

    def delete(self, document_id: str) -> WrittenOut:
        """Delete a document."""

        def change(index: Index) -> WrittenOut:
            deleted = index.delete(document_id)
            if not deleted:
                raise ProblemError(404, "the index has no document with this id")
            return WrittenOut(generation=index.commit(), deleted=deleted)

        return self._with_lock(change)

    def _go_on(self, changes: Changes) -> None:
        """After each paragraph."""
        if self._is_over.is_set():
            raise busy("the service ends; try again in a moment")

    def _with_lock(self, change: Callable[[Index], T]) -> T:
        deadline = time.monotonic() + self._lock_seconds
        while True:
            with self._index() as index:
                try:
                    return change(index)
                except IndexLockedError:
                    if time.monotonic() >= deadline:
                        raise
                except DenspiError:
                    self._check_is_there()
                    raise
            time.sleep(_POLL_SECONDS)

    def _index(self) -> Index:
        """Opened once, as its encoder is slow to load; again where it was built anew with another model."""
        self._check_is_there()
        opened = self._opened
        if opened is None or not opened.snapshot().model.gives_the_rows_of(opened.model().record):
            opened = self._opened = Index.open(self._folder, workers=WorkerSettings(processes=0))
        return opened

    def _check_is_there(self) -> None:
        """What is wrong with the folder is no fault of the request; its path is not the caller's business."""
        try:
            Snapshot.open(self._folder).close()
        except InputError as error:
            _log.error("%s", error)
            raise AwayError from error


def _document(given: DocumentIn) -> Document:
    spans = split_paragraphs(given.text)
    return Document(given.id, given.title or given.id, given.text, spans, "", given.metadata)
