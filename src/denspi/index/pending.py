"""Documents that a writer has taken and not yet written. In memory; owns what is refused before that."""

from __future__ import annotations

from collections.abc import Sequence

from denspi.corpus.records import shortened
from denspi.errors import InputError
from denspi.index.rows import CodeLayout, ParagraphRows, check_rows
from denspi.index.segment_writer import check_text, encode_record
from denspi.types import Document

_CHARACTERS_PER_WORD = 16  # texts without rows count too
Encoded = tuple[Document, Sequence[ParagraphRows]]


class Pending:
    """By id, in the order of their coming."""

    def __init__(self) -> None:
        self._by_id: dict[str, Encoded] = {}
        self.words = 0
        """What they weigh together, for whoever decides when to write them."""

    def __bool__(self) -> bool:
        return bool(self._by_id)

    def __contains__(self, document_id: str) -> bool:
        return document_id in self._by_id

    def get(self, document_id: str) -> Document | None:
        """The document of this id."""
        found = self._by_id.get(document_id)
        return found[0] if found else None

    def put(self, document: Document, paragraphs: Sequence[ParagraphRows]) -> None:
        """Take one whose id is not there."""
        self._by_id[document.document_id] = (document, paragraphs)
        self.words += _weight(document, paragraphs)

    def remove(self, document_id: str) -> bool:
        """Forget one; False if there is none of this id."""
        found = self._by_id.pop(document_id, None)
        if found is not None:
            self.words -= _weight(*found)
        return found is not None

    def all(self) -> list[Encoded]:
        """All of them, in order."""
        return list(self._by_id.values())

    def clear(self) -> None:
        """Forget all."""
        self._by_id.clear()
        self.words = 0


def check_document(document: Document, paragraphs: Sequence[ParagraphRows], layout: CodeLayout) -> None:
    """InputError unless the rows can be those of its paragraphs and an index can give the document back."""
    name, spans = shortened(document.document_id), document.paragraphs
    if len(paragraphs) != len(spans):
        raise InputError(f"{name}: {len(spans)} paragraphs but rows of {len(paragraphs)}; encode it again")
    for number, (rows, span) in enumerate(zip(paragraphs, spans, strict=True)):
        check_rows(rows, len(span), layout, f"{name}, paragraph {number}")
    check_text(document)
    encode_record(document)


def _weight(document: Document, paragraphs: Sequence[ParagraphRows]) -> int:
    words = sum(rows.word_count for rows in paragraphs)
    return max(1, words, len(document.text) // _CHARACTERS_PER_WORD)
