"""The sparse files of a part, opened by `denspi.sparse` once their checksums hold.

Everything but the postings is small and checked whole at the first use; postings are checked list by list.
A stranger's postings could also be wrong under right checksums: what they name is checked with each block.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from denspi.errors import IndexDamagedError
from denspi.index.blocks import BLOCK_BYTES
from denspi.index.manifest import Counts
from denspi.index.part import PartReader
from denspi.sparse.arrays import ArrayDamagedError, Source
from denspi.sparse.layout import COUNT_BITS, Segment
from denspi.sparse.norms import Norms
from denspi.sparse.tfidf import UnitFrequencies

_POSTINGS = "postings.npy"
_POSTING_BYTES = 4


def open_postings(part: PartReader, counts: Counts) -> Segment:
    """The postings of a segment."""
    stored = part.get(_POSTINGS, "uint8")

    def check(start: int, end: int) -> None:
        if not 0 <= start <= end <= held:
            raise IndexDamagedError(f"{stored.name}: ends before its lists do; the index is damaged")
        stored.check(header_bytes + start * _POSTING_BYTES, header_bytes + end * _POSTING_BYTES)

    with _as_damage():
        segment = Segment.open(part.path, check, _listed_in(part))
    held = len(segment.postings)
    header_bytes = len(stored) - held * _POSTING_BYTES
    if (segment.document_count, segment.paragraph_count) != (counts.documents, counts.paragraphs):
        raise IndexDamagedError(f"{part.path}: postings and paragraphs do not fit; the index is damaged")
    if not np.array_equal(segment.unit_documents, _documents_of_units(segment)):
        raise IndexDamagedError(
            f"{part.path / 'unit_documents.npy'}: not the way back of document_units.npy; damaged"
        )

    # Not `segment` and `stored` themselves: in a cycle they would keep their maps, and descriptors, for long.
    name, unit_count = stored.name, segment.unit_count

    def inspect(first_byte: int, content: NDArray[np.uint8]) -> None:
        postings = content[max(0, header_bytes - first_byte) :].view(np.uint32)
        if len(postings) and int(postings.max()) >> int(COUNT_BITS) >= unit_count:
            raise IndexDamagedError(f"{name}: names paragraphs that are not there; damaged")

    stored.inspect_with(inspect)
    return segment


def open_norms(part: PartReader, segment: Segment, fit_fingerprint: str | None) -> Norms:
    """The norms of a segment, which must be those of this fit."""
    with _as_damage():
        return Norms.open(part.path, segment, fit_fingerprint, _listed_in(part))


def open_frequencies(part: PartReader) -> UnitFrequencies:
    """The frequencies of a fit."""
    with _as_damage():
        return UnitFrequencies.open(part.path, _listed_in(part))


def _documents_of_units(segment: Segment) -> NDArray[np.uint32]:
    """What `unit_documents` must be: paragraphs are numbered by it, and rows are looked up by paragraphs."""
    return np.repeat(np.arange(segment.document_count, dtype=np.uint32), np.diff(segment.document_units))


def _listed_in(part: PartReader) -> Source:
    """Files that the table of the part lists, and no others: checked whole, but postings list by list."""

    def opened(path: Path) -> NDArray[np.uint8]:
        stored = part.get(path.name, "uint8")
        if path.name != _POSTINGS:
            return stored.whole()
        header = np.array([min(len(stored), BLOCK_BYTES)])
        return stored.within(np.zeros(1, np.int64), header)

    return opened


@contextmanager
def _as_damage() -> Iterator[None]:
    """In an index, an array that is not as it was written is damage to the index."""
    try:
        yield
    except ArrayDamagedError as error:
        raise IndexDamagedError(
            f"{error.finding}; the index is damaged, restore it from a copy or build it again"
        ) from None
