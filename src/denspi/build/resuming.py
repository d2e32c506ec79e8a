"""What an interrupted run has written: documents that need not be encoded again, and nothing more.

This run decides anew what is added, replaced and deleted. A document of the other run counts only once this
one has been given the same; the rest is dropped at the commit, and no trace is left of it.
"""

from __future__ import annotations

import json

from denspi.corpus.records import shortened
from denspi.corpus.seen import SeenIds
from denspi.errors import InputError
from denspi.index.writer import IndexWriter
from denspi.types import Document


class Resumed:
    """Belongs to one writer, from its opening to its commit."""

    def __init__(self, writer: IndexWriter, index: str) -> None:
        self._writer, self._index = writer, index
        self._met = SeenIds()
        writer.restore_committed()

    def is_added(self, document: Document) -> bool:
        """Whether it is written already; `InputError` if the index or this run had one of this id before."""
        writer, name = self._writer, document.document_id
        if name in writer and (self.was_given(name) or not writer.is_resumed(name)):
            raise InputError(
                f"{self._index}: already has a document {shortened(name)!r}; "
                "to replace it, update instead of adding"
            )
        return self._is_taken_over(document)

    def is_updated(self, document: Document) -> bool:
        """Whether it is written already, by the other run or, with the same content, before."""
        writer, name = self._writer, document.document_id
        if self._is_taken_over(document):
            if not writer.is_resumed(name):  # there is one that it replaces
                writer.delete(name)
            return True
        stored = writer.document(name)
        return stored is not None and is_same(stored, document)

    def was_given(self, document_id: str) -> bool:
        """Whether this run has met a document of this id."""
        return document_id in self._met

    def document(self, document_id: str) -> Document | None:
        """The document of this id, for its deletion: what nobody has taken over was never there."""
        if document_id not in self._met:
            self._writer.drop_resumed(document_id)
        return self._writer.document(document_id)

    def drop_rest(self) -> int:
        """Leave out what this run was not given; how many documents that are."""
        if not self._writer.resumed_documents:
            return 0
        rest = [name for name in self._writer.resumed_ids() if name not in self._met]
        for name in rest:
            self._writer.drop_resumed(name)
        return len(rest)

    def _is_taken_over(self, document: Document) -> bool:
        name = document.document_id
        kept = self._writer.resumed(name)
        if kept is not None and not is_same(kept, document):
            self._writer.drop_resumed(name)
            kept = None
        self._met.add(name, 0)
        return kept is not None


def is_same(stored: Document, given: Document) -> bool:
    """Whether nothing has changed but, at most, where it was read from."""
    contents = [(each.title, each.text, each.paragraphs) for each in (stored, given)]
    return contents[0] == contents[1] and _spelled(stored) == _spelled(given)


def _spelled(document: Document) -> str | None:
    """Its metadata as JSON has it, where every key is a text; None for what the writer will refuse."""
    try:
        return json.dumps(json.loads(json.dumps(dict(document.metadata))), sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        return None
