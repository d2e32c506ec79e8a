"""The lengths of paragraph and document vectors under one pinned idf. Lies beside a segment, never inside it.

A refit writes new norms and leaves the postings alone. Sums run n-gram by n-gram in the order of the ids,
whatever the segment's cut, so a merge changes no norm by a single bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from denspi.errors import InputError
from denspi.sparse.arrays import Source, map_file, open_array, require, write_array
from denspi.sparse.layout import COUNT_BITS, Segment
from denspi.sparse.tfidf import UnitFrequencies, inverse_frequency

_CHUNK_POSTINGS = 2_000_000


@dataclass(frozen=True, slots=True)
class Norms:
    """1 / length of each vector, 0 for an empty one, and for a title, which has no vector of its own."""

    units: NDArray[np.float32]  # [unit]
    documents: NDArray[np.float32]  # [document] of the sum of the counts of title and paragraphs
    fingerprint: str  # of the frequencies they were computed with

    @property
    def nbytes(self) -> int:
        """Bytes of both arrays."""
        return self.units.nbytes + self.documents.nbytes

    def save(self, folder: Path) -> None:
        """Write `folder/norms-*.npy`."""
        folder.mkdir(parents=True, exist_ok=True)
        write_array(folder / "norms-units.npy", self.units)
        write_array(folder / "norms-documents.npy", self.documents)
        write_array(folder / "norms-fingerprint.npy", np.frombuffer(self.fingerprint.encode(), np.uint8))

    @classmethod
    def open(
        cls, folder: Path, segment: Segment, fingerprint: str | None = None, source: Source = map_file
    ) -> Norms:
        """Map what `save` wrote, for this segment and, where given, for just these frequencies."""
        units = open_array(folder / "norms-units.npy", np.float32, source=source)
        documents = open_array(folder / "norms-documents.npy", np.float32, source=source)
        name = open_array(folder / "norms-fingerprint.npy", np.uint8, source=source)
        found = name.tobytes().decode("ascii", "replace")
        fits = len(units) == segment.unit_count and len(documents) == segment.document_count
        require(fits, folder / "norms-units.npy", "does not fit the postings beside it")
        for norms, name_of_file in ((units, "norms-units.npy"), (documents, "norms-documents.npy")):
            is_sound = bool(np.isfinite(norms).all() and (norms >= 0).all())
            require(is_sound, folder / name_of_file, "holds lengths that cannot be")
        if fingerprint is not None and found != fingerprint:
            raise InputError(
                f"{folder}: norms were computed with n-gram frequencies {found}, opened with {fingerprint}; "
                "open the original frequencies or refit"
            )
        return cls(units, documents, found)


def compute_norms(segment: Segment, frequencies: UnitFrequencies) -> Norms:
    """Norms of a segment under `frequencies`, which may count a larger collection. One pass, bounded."""
    ids, lengths = segment.lengths.ids(), segment.lengths.counts().astype(np.int64)
    ends = np.cumsum(lengths)
    unit_squares = np.zeros(segment.unit_count)
    document_squares = np.zeros(segment.document_count)
    found = _frequencies_of(ids, frequencies)
    idf = inverse_frequency(frequencies.unit_count, found)
    row = 0
    while row < len(ids):
        start = int(ends[row] - lengths[row])
        row_end = max(row + 1, int(np.searchsorted(ends, start + _CHUNK_POSTINGS)))
        end = int(ends[row_end - 1])
        units = segment.read(start, end) >> COUNT_BITS
        counts = segment.counts_at(start, end)
        weights = np.repeat(idf[row:row_end], lengths[row:row_end])
        np.add.at(unit_squares, units, (weights * np.log1p(counts)) ** 2)  # sequential: see the contract
        documents = segment.unit_documents[units]
        begins = np.concatenate([[True], documents[1:] != documents[:-1]])
        begins[ends[row : row_end - 1] - start] = True  # where the next list starts
        first = np.flatnonzero(begins)
        sums = np.add.reduceat(counts, first)
        np.add.at(document_squares, documents[first], (weights[first] * np.log1p(sums)) ** 2)
        row = row_end
    unit_squares[segment.document_units[:-1]] = 0  # titles
    return Norms(_inverse_root(unit_squares), _inverse_root(document_squares), frequencies.fingerprint())


def _frequencies_of(ids: NDArray[np.uint32], frequencies: UnitFrequencies) -> NDArray[np.int64]:
    """The frequency of every id of a large, ascending list."""
    known, counts = frequencies.table.ids(), frequencies.table.counts()
    if not len(known):
        return np.zeros(len(ids), np.int64)
    place = np.minimum(np.searchsorted(known, ids), len(known) - 1)
    return np.where(known[place] == ids, counts[place], 0).astype(np.int64)


def _inverse_root(squares: NDArray[np.float64]) -> NDArray[np.float32]:
    roots = np.zeros(len(squares))
    np.divide(1.0, np.sqrt(squares), out=roots, where=squares > 0)
    return roots.astype(np.float32)
