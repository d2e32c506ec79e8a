"""The stored form of postings: which units hold which n-gram, how often. Counts only, so no idf can stale it.

A unit is a title or a paragraph, numbered through: each document's title, then its paragraphs. A posting is
one uint32, `unit << 6 | count`; a count of 63 stands for "see `overflow`". Immutable and memory-mapped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from denspi.errors import InputError
from denspi.sparse.arrays import Source, map_file, open_array, require, write_array
from denspi.sparse.table import CountTable
from denspi.sparse.tfidf import UnitFrequencies

COUNT_BITS = np.uint32(6)
COUNT_MASK = np.uint32(63)  # also the mark of an overflowing count
UNIT_LIMIT = 1 << 26  # units that one segment can number: 67 million
_ARRAYS = ("postings", "overflow", "overflow_counts", "document_units", "unit_documents")
Check = Callable[[int, int], None]


def _trust(start: int, end: int) -> None:
    """Postings that nobody has checksums for."""


@dataclass(frozen=True, slots=True)
class Segment:
    """The postings of some documents. Lists lie one after another in `postings`, in the order of the ids."""

    lengths: CountTable  # n-gram id -> length of its list; its running sums are the places of the lists
    postings: NDArray[np.uint32]  # [posting] ascending within a list
    overflow: NDArray[np.uint64]  # [overflow] places in `postings` whose count is 63 or more
    overflow_counts: NDArray[np.uint32]  # [overflow]
    document_units: NDArray[
        np.uint32
    ]  # [document + 1] the unit of each document's title; last: the unit count
    unit_documents: NDArray[np.uint32]  # [unit] the way back; stored, so that opening reads nothing
    check: Check = _trust  # called with the bounds of postings before they are first used

    @property
    def document_count(self) -> int:
        """Documents in this segment."""
        return len(self.document_units) - 1

    def units_of_documents(self, documents: NDArray[np.int64]) -> NDArray[np.int64]:
        """The units of these documents, titles too, one document after another."""
        begins = self.document_units[documents].astype(np.int64)
        lengths = self.document_units[documents + 1] - begins
        skipped = np.repeat(begins - (np.cumsum(lengths) - lengths), lengths)
        return np.asarray(np.arange(int(lengths.sum())) + skipped, np.int64)

    @property
    def unit_count(self) -> int:
        """Titles and paragraphs together."""
        return int(self.document_units[-1])

    @property
    def paragraph_count(self) -> int:
        """Paragraphs in this segment, numbered from 0 through all its documents."""
        return self.unit_count - self.document_count

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return self.lengths.nbytes + sum(int(getattr(self, name).nbytes) for name in _ARRAYS)

    def frequencies(self) -> UnitFrequencies:
        """The frequencies of just this segment: the lengths of its lists, so nothing needs counting."""
        return UnitFrequencies(self.unit_count, self.lengths)

    def units_of(self, paragraphs: NDArray[np.integer]) -> NDArray[np.int64]:
        """The unit of each paragraph number: the titles up to it lie before it."""
        paragraphs_before = self.document_units[:-1].astype(np.int64) - np.arange(self.document_count)
        return paragraphs + np.searchsorted(paragraphs_before, paragraphs, side="right")

    def read(self, start: int, end: int) -> NDArray[np.uint32]:
        """The postings [start, end), checked where there are checksums."""
        self.check(start, end)
        return self.postings[start:end]

    def counts_at(self, start: int, end: int) -> NDArray[np.uint32]:
        """The true counts of the postings [start, end)."""
        counts = self.read(start, end) & COUNT_MASK
        first, last = np.searchsorted(self.overflow, [start, end])
        counts[self.overflow[first:last].astype(np.int64) - start] = self.overflow_counts[first:last]
        return counts

    @staticmethod
    def save_documents(folder: Path, unit_counts: NDArray[np.int64]) -> None:
        """Write the two arrays that tie units to documents, from the number of units of each document."""
        ends = np.cumsum(np.concatenate([np.zeros(1, np.int64), unit_counts]))
        write_array(folder / "document_units.npy", ends.astype(np.uint32))
        documents = np.repeat(np.arange(len(unit_counts), dtype=np.uint32), unit_counts)
        write_array(folder / "unit_documents.npy", documents)

    @classmethod
    def open(cls, folder: Path, check: Check = _trust, source: Source = map_file) -> Segment:
        """Map a stored segment. Sizes, types and offsets are checked; the postings are not read.

        `check` is called with the bounds of postings before they are used; every other file is read by then.
        """
        if not folder.is_dir():
            raise InputError(f"{folder}: no such folder; build the sparse index first")
        path = {name: folder / f"{name}.npy" for name in _ARRAYS}
        segment = cls(
            lengths=CountTable.open(folder, "lengths", source),
            postings=open_array(path["postings"], np.uint32, source=source),
            overflow=open_array(path["overflow"], np.uint64, source=source),
            overflow_counts=open_array(path["overflow_counts"], np.uint32, source=source),
            document_units=open_array(path["document_units"], np.uint32, source=source),
            unit_documents=open_array(path["unit_documents"], np.uint32, source=source),
            check=check,
        )
        held, expected = len(segment.postings), segment.lengths.total
        require(held == expected, path["postings"], f"holds {held} postings where the lists need {expected}")
        units = segment.document_units
        require(len(units) > 0 and units[0] == 0, path["document_units"], "does not begin with unit 0")
        require(bool(np.all(units[1:] > units[:-1])), path["document_units"], "does not ascend")
        require(int(units[-1]) <= UNIT_LIMIT, path["document_units"], f"counts more than {UNIT_LIMIT} units")
        held = len(segment.unit_documents)
        require(held == units[-1], path["unit_documents"], f"holds {held} units instead of {units[-1]}")
        places = segment.overflow
        require(
            len(places) == len(segment.overflow_counts), path["overflow_counts"], "does not fit `overflow`"
        )
        ascending = bool(np.all(places[1:] > places[:-1])) and (not len(places) or int(places[-1]) < expected)
        require(ascending, path["overflow"], "does not ascend within the postings")
        return segment
