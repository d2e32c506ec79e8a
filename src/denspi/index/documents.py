"""The documents of a segment, as they are stored: ids, texts, paragraphs. Deletion is not their business.

Documents and paragraphs are numbered from 0 within the segment. Every array is opened, and checked, by the
first access to it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from denspi.errors import IndexDamagedError
from denspi.index.blocks import Checked
from denspi.index.manifest import Counts
from denspi.index.part import PartReader
from denspi.index.segment_writer import count_runs, hash_id
from denspi.index.texts import TextReader, open_texts
from denspi.types import Document, Span

Stretch = tuple[int, int]
"""Bytes of the stream of texts, from one to before another."""


@dataclass(frozen=True, slots=True)
class DocumentRecord:
    """A document without its text."""

    document_id: str
    title: str
    source: str
    metadata: dict[str, object]


class StoredDocuments:
    """Documents ``[0, counts.documents)``, deleted ones included."""

    def __init__(self, counts: Counts, rows: PartReader) -> None:
        self.counts = counts
        self._rows = rows

    @property
    def name(self) -> str:
        """The folder of its rows, which names a segment in every generation of an index."""
        return self._rows.ref.folder

    def stored_bytes(self, *ends_of_names: str) -> int:
        """Of its components whose names end so."""
        return sum(each.size_bytes for each in self._rows.components if each.name.endswith(ends_of_names))

    @cached_property
    def document_paragraphs(self) -> NDArray[np.int64]:
        """``[document + 1]`` the first paragraph of each document; last, the number of paragraphs."""
        return self._offsets("document_paragraphs", "uint32", self.counts.documents, self.counts.paragraphs)

    def documents_of(self, paragraphs: NDArray[np.integer]) -> NDArray[np.int64]:
        """The document of each paragraph."""
        return np.searchsorted(self.document_paragraphs, paragraphs, side="right") - 1

    @cached_property
    def paragraph_words(self) -> Checked:
        """``[paragraph]`` how many words each paragraph has, filtered ones included."""
        return self._array("paragraph_words", self.counts.paragraphs, "uint32")

    @cached_property
    def paragraph_runs(self) -> NDArray[np.int64]:
        """``[paragraph]`` runs between white space; counted in the texts of a segment that is older."""
        count = self.counts.paragraphs
        if "paragraph_runs" not in self._rows:
            return np.array([count_runs(self.paragraph_text(number)) for number in range(count)], np.int64)
        runs: NDArray[np.int64] = self._array("paragraph_runs", count, "uint32").whole().astype(np.int64)
        return runs

    @cached_property
    def paragraph_chars(self) -> Checked:
        """``[paragraph, 2]`` the span of each paragraph in the text of its document."""
        return self._array("paragraph_chars", self.counts.paragraphs, "uint32", columns=2)

    @cached_property
    def paragraph_bytes(self) -> Checked:
        """``[paragraph, 2]`` the same spans in the UTF-8 of that text."""
        return self._array("paragraph_bytes", self.counts.paragraphs, "uint32", columns=2)

    def paragraph_span(self, paragraph: int) -> Span:
        """Where a paragraph lies in the text of its document."""
        return self._spans(paragraph, paragraph + 1)[0]

    def paragraph_text(self, paragraph: int) -> str:
        """The text of one paragraph."""
        (stretch,) = self.paragraph_stretches(np.array([paragraph]))
        return self.text_at(stretch)

    def paragraph_stretches(self, paragraphs: NDArray[np.int64]) -> list[Stretch]:
        """Where the texts of these paragraphs lie in the stream of texts."""
        begins = self.document_bytes[self.documents_of(paragraphs)]
        found = begins[:, None] + self.paragraph_bytes.at(paragraphs)
        return [(begin, end) for begin, end in found.tolist()]

    def text_at(self, stretch: Stretch) -> str:
        """What stands there."""
        return self._decode(self._texts.read(*stretch))

    def document_text(self, document: int) -> str:
        """The whole text of a document."""
        return self._decode(self.text_bytes(document))

    def record(self, document: int) -> DocumentRecord:
        """Id, title, source and metadata of a document."""
        try:
            document_id, title, source, metadata = json.loads(self.record_bytes(document))
            if not isinstance(metadata, dict) or not all(
                isinstance(x, str) for x in (document_id, title, source)
            ):
                raise ValueError
        except (ValueError, TypeError, RecursionError):
            raise IndexDamagedError(
                f"{self._rows.path / 'records'}: not a record; the index is damaged"
            ) from None
        return DocumentRecord(document_id, title, source, metadata)

    def document(self, document: int) -> Document:
        """A document as it came in."""
        record, text = self.record(document), self.document_text(document)
        first, last = self.document_paragraphs[document : document + 2].tolist()
        try:
            return Document(
                record.document_id,
                record.title,
                text,
                self._spans(first, last),
                record.source,
                record.metadata,
            )
        except ValueError as error:
            raise IndexDamagedError(f"{self._rows.path}: {error}; the index is damaged") from None

    def numbers_of(self, document_id: str) -> list[int]:
        """The numbers of all documents with this id, deleted ones included."""
        hashes, wanted = self._id_hashes, np.uint64(hash_id(document_id))
        first, last = np.searchsorted(hashes, wanted, "left"), np.searchsorted(hashes, wanted, "right")
        numbers = [n for n in self._id_documents[first:last].tolist() if n < self.counts.documents]
        return [number for number in numbers if self.record(number).document_id == document_id]

    def text_bytes(self, document: int) -> bytes:
        """The text of a document in UTF-8."""
        return self._texts.read(*self.document_bytes[document : document + 2].tolist())

    def record_bytes(self, document: int) -> bytes:
        """The record of a document as stored."""
        return self._records.read(*self._record_offsets[document : document + 2].tolist())

    @cached_property
    def hashes(self) -> NDArray[np.uint64]:
        """``[document]`` the hash of each id."""
        hashes = np.zeros(self.counts.documents, np.uint64)
        numbers = self._id_documents
        if len(numbers) and int(numbers.max()) >= len(hashes):
            raise IndexDamagedError(f"{self._rows.path / 'id_documents'}: names no documents; damaged")
        hashes[numbers] = self._id_hashes
        return hashes

    @cached_property
    def document_bytes(self) -> NDArray[np.int64]:
        """``[document + 1]`` where each text begins in the stream of texts."""
        return self._offsets("document_bytes", "uint64", self.counts.documents)

    @cached_property
    def _record_offsets(self) -> NDArray[np.int64]:
        return self._offsets("record_bytes", "uint64", self.counts.documents)

    @cached_property
    def _texts(self) -> TextReader:
        return open_texts(self._rows, "texts")

    @cached_property
    def _records(self) -> TextReader:
        return open_texts(self._rows, "records")

    @cached_property
    def _id_hashes(self) -> NDArray[np.uint64]:
        return self._array("id_hashes", self.counts.documents, "uint64").whole()

    @cached_property
    def _id_documents(self) -> NDArray[np.uint32]:
        return self._array("id_documents", self.counts.documents, "uint32").whole()

    def _array(self, name: str, length: int, *dtypes: str, columns: int | None = None) -> Checked:
        found = self._rows.get(name, *dtypes, columns=columns)
        if len(found) != length:
            raise IndexDamagedError(f"{found.name}: has {len(found)} rows instead of {length}; damaged")
        return found

    def _offsets(self, name: str, dtype: str, length: int, last: int | None = None) -> NDArray[np.int64]:
        stored = self._array(name, length + 1, dtype)
        offsets: NDArray[np.int64] = stored.whole().astype(np.int64)
        ascends = offsets[0] == 0 and bool(np.all(offsets[1:] >= offsets[:-1]))
        if not ascends or (last is not None and int(offsets[-1]) != last):
            raise IndexDamagedError(f"{stored.name}: does not ascend from 0 to its end; the index is damaged")
        return offsets

    def _spans(self, first: int, last: int) -> tuple[Span, ...]:
        try:
            return tuple(Span(*pair) for pair in self.paragraph_chars.rows(first, last).tolist())
        except ValueError as error:
            raise IndexDamagedError(f"{self.paragraph_chars.name}: {error}; the index is damaged") from None

    def _decode(self, content: bytes) -> str:
        try:
            return content.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise IndexDamagedError(f"{self._rows.path / 'texts'}: not UTF-8; the index is damaged") from None
