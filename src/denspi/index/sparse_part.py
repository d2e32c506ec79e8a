"""The sparse files of a part, opened by `denspi.sparse` once their checksums hold.

Everything but the postings is small and checked whole at the first use; postings are checked list by list.
A stranger's postings could also be wrong under right checksums: what they name is checked with each block.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from denspi.errors import IndexDamagedError
from denspi.index.manifest import Counts
from denspi.index.part import PartReader
from denspi.sparse.layout import COUNT_BITS, Segment
from denspi.sparse.norms import Norms
from denspi.sparse.tfidf import UnitFrequencies

_POSTINGS = "postings.npy"
_POSTING_BYTES = 4


def open_postings(part: PartReader, counts: Counts) -> Segment:
    """The postings of a segment."""
    part.check_arrays(_POSTINGS)
    stored = part.get(_POSTINGS, "uint8")

    def check(start: int, end: int) -> None:
        if not 0 <= start <= end <= held:
            raise IndexDamagedError(f"{stored.name}: ends before its lists do; the index is damaged")
        stored.check(header_bytes + start * _POSTING_BYTES, header_bytes + end * _POSTING_BYTES)

    segment = Segment.open(part.path, check)
    held = len(segment.postings)
    header_bytes = len(stored) - held * _POSTING_BYTES
    if header_bytes % _POSTING_BYTES:
        raise IndexDamagedError(f"{stored.name}: not aligned; the index is damaged")
    if (segment.document_count, segment.paragraph_count) != (counts.documents, counts.paragraphs):
        raise IndexDamagedError(f"{part.path}: postings and paragraphs do not fit; the index is damaged")
    documents = segment.unit_documents
    if len(documents) and int(documents.max()) >= segment.document_count:
        raise IndexDamagedError(f"{part.path / 'unit_documents.npy'}: names no documents; damaged")

    def inspect(first_byte: int, content: NDArray[np.uint8]) -> None:
        postings = content[max(0, header_bytes - first_byte) :].view(np.uint32)
        if len(postings) and int(postings.max()) >> int(COUNT_BITS) >= segment.unit_count:
            raise IndexDamagedError(f"{stored.name}: names paragraphs that are not there; damaged")

    stored.inspect = inspect
    return segment


def open_norms(part: PartReader, segment: Segment, fit_fingerprint: str | None) -> Norms:
    """The norms of a segment, which must be those of this fit."""
    part.check_arrays()
    return Norms.open(part.path, segment, fit_fingerprint)


def open_frequencies(part: PartReader) -> UnitFrequencies:
    """The frequencies of a fit."""
    part.check_arrays()
    return UnitFrequencies.open(part.path)
