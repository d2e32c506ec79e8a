"""Writes the components of one segment (docs/index-format.md), for new documents and for merges alike.

Rows and texts go straight to their files; what is held in memory is a few numbers a paragraph.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from denspi.corpus.records import DEEPEST_METADATA, is_shallow, shortened
from denspi.errors import InputError
from denspi.index.components import PartRef
from denspi.index.manifest import Counts, ModelRecord
from denspi.index.part import PartWriter
from denspi.index.rows import Codes, ParagraphRows
from denspi.index.texts import STRETCH_LIMIT_BYTES
from denspi.sparse.build import build_segment
from denspi.types import Document

SIDES = ("start", "end")
PLACES = tuple(f"{side}_{what}" for side in SIDES for what in ("words", "chars"))
ROWS_LIMIT = (1 << 32) - 1
_NARROWEST = (1 << 16) - 1


@dataclass(frozen=True, slots=True)
class RowRun:
    """Consecutive rows of one side, start or end."""

    words: NDArray[Any]  # [row]
    chars: NDArray[Any]  # [row]
    codes: Codes  # [row, vector_bytes]
    keys: Codes  # [row, key_bytes]


def encode_text(text: str) -> bytes:
    """UTF-8; half of a surrogate pair, which some files contain, is kept as it is."""
    return text.encode("utf-8", "surrogatepass")


def count_runs(text: str) -> int:
    """Its words as people count them, and `denspi corpus` too: runs between white space."""
    return len(text.split())


def hash_id(document_id: str) -> int:
    """The number that a document id is found by."""
    return int.from_bytes(hashlib.blake2b(encode_text(document_id), digest_size=8).digest(), "little")


def encode_record(document: Document) -> bytes:
    """Everything about a document but its text and paragraphs, as one JSON list."""
    record = [document.document_id, document.title, document.source, dict(document.metadata)]
    name = repr(shortened(document.document_id))
    if not is_shallow(record[-1]):
        raise InputError(f"{name}: metadata of more than {DEEPEST_METADATA} levels; nest them less deeply")
    try:
        encoded = json.dumps(record, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(
            f"{name}: metadata that JSON cannot hold ({error}); use texts, numbers and lists"
        ) from None
    if json.loads(encoded) != record:
        raise InputError(
            f"{name}: id, title, source or metadata that JSON gives back otherwise (two "
            "halves of a surrogate pair, keys that are no texts, tuples); use texts, numbers and lists"
        )
    _check_size(document, len(encoded), "id, title, source and metadata")
    return encoded.encode()


def check_text(document: Document) -> None:
    """InputError for a text that is longer than an index gives back."""
    if 4 * len(document.text) > STRETCH_LIMIT_BYTES:  # or it is short enough in any script
        _check_size(document, len(encode_text(document.text)), "a text")


def _check_size(document: Document, size_bytes: int, what: str) -> None:
    if size_bytes > STRETCH_LIMIT_BYTES:
        raise InputError(
            f"{shortened(document.document_id)!r}: {what} of {size_bytes} bytes, an index holds "
            f"{STRETCH_LIMIT_BYTES} of a document; split it"
        )


def place_dtypes(largest: dict[str, int]) -> dict[str, np.dtype[Any]]:
    """The type of each places component from its largest value: uint16 where that fits, else uint32."""
    return {name: np.dtype(np.uint16 if largest.get(name, 0) <= _NARROWEST else np.uint32) for name in PLACES}


class SegmentWriter:
    """Takes rows, paragraphs and documents, each in order, and then the postings; a context manager."""

    def __init__(self, part: PartWriter, model: ModelRecord, dtypes: dict[str, np.dtype[Any]]) -> None:
        self._part = part
        self._stack = ExitStack()
        enter, layout = self._stack.enter_context, model.layout
        self._rows = {
            side: (
                enter(part.array(f"{side}_words", dtypes[f"{side}_words"])),
                enter(part.array(f"{side}_chars", dtypes[f"{side}_chars"])),
                enter(part.array(f"{side}s", layout.dtype, layout.vector_bytes)),
                enter(part.array(f"{side}_keys", layout.dtype, layout.key_bytes)),
            )
            for side in SIDES
        }
        self._texts = enter(part.array("texts", np.uint8))
        self._records = enter(part.array("records", np.uint8))
        self._paragraphs: dict[str, list[NDArray[Any]]] = {
            name: [] for name in ("starts", "ends", "words", "runs", "chars", "bytes")
        }
        self._documents: dict[str, list[NDArray[Any]]] = {
            name: [] for name in ("paragraphs", "bytes", "record_bytes", "hashes")
        }

    def add_rows(self, side: str, run: RowRun) -> None:
        """The next rows of one side."""
        for component, values in zip(
            self._rows[side], (run.words, run.chars, run.codes, run.keys), strict=True
        ):
            component.append(values)

    def add_paragraphs(
        self,
        starts: NDArray[np.integer],  # [paragraph] number of start rows
        ends: NDArray[np.integer],  # [paragraph] number of end rows
        words: NDArray[np.integer],  # [paragraph]
        runs: NDArray[np.integer],  # [paragraph] what people count as words
        chars: NDArray[np.integer],  # [paragraph, 2] span in the document's text
        in_bytes: NDArray[np.integer],  # [paragraph, 2] the same span in its UTF-8
    ) -> None:
        """The next paragraphs."""
        for name, values in zip(self._paragraphs, (starts, ends, words, runs, chars, in_bytes), strict=True):
            self._paragraphs[name].append(values)

    def add_documents(
        self,
        paragraphs: NDArray[np.integer],
        hashes: NDArray[np.uint64],
        texts: Iterable[tuple[bytes, bytes]],
    ) -> None:
        """The next documents: paragraphs of each, hash of each id, and each one's text and record."""
        sizes: list[tuple[int, int]] = []
        for text, record in texts:
            self._texts.append(np.frombuffer(text, np.uint8))
            self._records.append(np.frombuffer(record, np.uint8))
            sizes.append((len(text), len(record)))
        in_bytes = np.array(sizes, np.uint64).reshape(-1, 2)
        columns = (paragraphs, in_bytes[:, 0], in_bytes[:, 1], hashes)
        for name, values in zip(self._documents, columns, strict=True):
            self._documents[name].append(values)

    def finish(self, write_postings: Callable[[Path], object]) -> tuple[PartRef, Counts]:
        """Complete the segment; `write_postings` writes the sparse files into the folder it gets."""
        self._stack.close()
        part = self._part
        counts = {name: _joined(values) for name, values in {**self._paragraphs, **self._documents}.items()}
        paragraphs, documents = self._paragraphs, self._documents
        starts, ends = _offsets(paragraphs["starts"]), _offsets(paragraphs["ends"])
        if max(starts[-1], ends[-1]) > ROWS_LIMIT:
            raise InputError(f"{part.path}: more than {ROWS_LIMIT} rows in one segment; flush more often")
        part.whole("paragraph_starts", starts.astype(np.uint32))
        part.whole("paragraph_ends", ends.astype(np.uint32))
        part.whole("paragraph_words", counts["words"].astype(np.uint32))
        part.whole("paragraph_runs", counts["runs"].astype(np.uint32))
        part.whole("paragraph_chars", _joined(paragraphs["chars"], 2).astype(np.uint32))
        part.whole("paragraph_bytes", _joined(paragraphs["bytes"], 2).astype(np.uint32))
        part.whole("document_paragraphs", _offsets(documents["paragraphs"]).astype(np.uint32))
        part.whole("document_bytes", _offsets(documents["bytes"]))
        part.whole("record_bytes", _offsets(documents["record_bytes"]))
        hashes = _joined(documents["hashes"]).astype(np.uint64)
        order = np.argsort(hashes, kind="stable")
        part.whole("id_hashes", hashes[order])
        part.whole("id_documents", order.astype(np.uint32))
        with part.directory.reporting():
            write_postings(part.path)
        part.adopt_arrays()
        words = int(counts["words"].sum(dtype=np.int64)) if len(counts["words"]) else 0
        held = Counts(len(hashes), len(counts["words"]), words, int(starts[-1]), int(ends[-1]))
        return part.finish(), held

    def __enter__(self) -> SegmentWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)


def write_documents(
    part: PartWriter, model: ModelRecord, documents: Sequence[tuple[Document, Sequence[ParagraphRows]]]
) -> tuple[PartRef, Counts]:
    """A segment of new documents."""
    largest = dict.fromkeys(PLACES, 0)
    for _, paragraphs in documents:
        for rows in paragraphs:
            for name in PLACES:
                largest[name] = max(largest[name], int(getattr(rows, name).max(initial=0)))
    with SegmentWriter(part, model, place_dtypes(largest)) as writer:
        for document, paragraphs in documents:
            _add_document(writer, document, paragraphs)
        only_documents = [document for document, _ in documents]
        return writer.finish(lambda folder: build_segment(only_documents, folder))


def _add_document(writer: SegmentWriter, document: Document, paragraphs: Sequence[ParagraphRows]) -> None:
    for rows in paragraphs:
        writer.add_rows("start", RowRun(rows.start_words, rows.start_chars, rows.starts, rows.start_keys))
        writer.add_rows("end", RowRun(rows.end_words, rows.end_chars, rows.ends, rows.end_keys))
    writer.add_paragraphs(
        np.array([len(rows.start_words) for rows in paragraphs], np.int64),
        np.array([len(rows.end_words) for rows in paragraphs], np.int64),
        np.array([rows.word_count for rows in paragraphs], np.int64),
        np.array([count_runs(text) for text in document.paragraph_texts()], np.int64),
        np.array([(span.start_char, span.end_char) for span in document.paragraphs], np.int64).reshape(-1, 2),
        _spans_in_bytes(document),
    )
    text = encode_text(document.text)
    hashes = np.array([hash_id(document.document_id)], np.uint64)
    writer.add_documents(np.array([len(paragraphs)]), hashes, [(text, encode_record(document))])


def _spans_in_bytes(document: Document) -> NDArray[np.int64]:
    spans: list[tuple[int, int]] = []
    char = in_bytes = 0
    for span in document.paragraphs:
        begin = in_bytes + len(encode_text(document.text[char : span.start_char]))
        in_bytes = begin + len(encode_text(span.of(document.text)))
        spans.append((begin, in_bytes))
        char = span.end_char
    return np.array(spans, np.int64).reshape(-1, 2)


def _joined(values: list[NDArray[Any]], columns: int | None = None) -> NDArray[Any]:
    empty = np.zeros(0 if columns is None else (0, columns), np.int64)
    return np.concatenate(values) if values else empty


def _offsets(lengths: list[NDArray[Any]]) -> NDArray[np.uint64]:
    """Running sums, from 0."""
    joined = _joined(lengths).astype(np.uint64)
    return np.concatenate([np.zeros(1, np.uint64), np.cumsum(joined, dtype=np.uint64)])
