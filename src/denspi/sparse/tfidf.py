"""tf-idf weights: how rare an n-gram is, what it weighs in a question. Owns frequencies; reads no postings.

Frequencies count *units*: every paragraph is one, every title another. They add and subtract exactly, so
parts fitted apart equal the whole. idf = log(1 + (N - df + .5) / (df + .5)): DrQA's where that is large,
and never 0.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from denspi.errors import InputError
from denspi.sparse.arrays import Source, map_file, open_array, require, write_array
from denspi.sparse.ngrams import BUCKET_BITS, SCHEME, count_ngrams, hash_ngrams
from denspi.sparse.table import CountTable

_BATCH_UNITS = 4096


@dataclass(frozen=True, slots=True)
class UnitFrequencies:
    """In how many units (paragraphs and titles) each n-gram occurs, and how many units there are."""

    unit_count: int
    table: CountTable

    @classmethod
    def of(cls, unit_count: int, ids: NDArray[np.uint32], counts: NDArray[np.integer]) -> UnitFrequencies:
        """From ids in any order, each any number of times; zero counts are left out."""
        ids, counts = _sum_by_id(ids, counts.astype(np.int64))
        return cls(unit_count, CountTable.of(ids[counts > 0], counts[counts > 0]))

    @classmethod
    def fit(cls, unit_texts: Iterable[str]) -> UnitFrequencies:
        """One pass over the texts of all units; what is held are the n-grams seen, never the texts."""
        remaining, unit_count = iter(unit_texts), 0
        all_ids, all_counts = np.zeros(0, np.uint32), np.zeros(0, np.int64)
        while batch := list(islice(remaining, _BATCH_UNITS)):
            unit_count += len(batch)
            ids, text_numbers = hash_ngrams(batch)
            seen = np.unique(text_numbers.astype(np.uint64) << np.uint64(BUCKET_BITS) | ids)
            ids = (seen & np.uint64((1 << BUCKET_BITS) - 1)).astype(np.uint32)
            all_ids, all_counts = _sum_by_id(
                np.concatenate([all_ids, ids]), np.concatenate([all_counts, np.ones(len(ids), np.int64)])
            )
        return cls.of(unit_count, all_ids, all_counts)

    def __add__(self, other: UnitFrequencies) -> UnitFrequencies:
        ids = np.concatenate([self.table.ids(), other.table.ids()])
        counts = np.concatenate([self.table.counts(), other.table.counts()])
        return UnitFrequencies.of(self.unit_count + other.unit_count, ids, counts)

    def __sub__(self, other: UnitFrequencies) -> UnitFrequencies:
        ids = np.concatenate([self.table.ids(), other.table.ids()])
        counts = np.concatenate(
            [self.table.counts().astype(np.int64), -other.table.counts().astype(np.int64)]
        )
        ids, counts = _sum_by_id(ids, counts)
        unit_count = self.unit_count - other.unit_count
        if unit_count < 0 or (len(counts) and counts.min() < 0):
            raise InputError(
                "n-gram frequencies: asked to remove units that were never counted; refit the index"
            )
        return UnitFrequencies.of(unit_count, ids, counts)

    def idf(self, ids: NDArray[np.uint32]) -> NDArray[np.float64]:
        """How rare each n-gram is; one that no unit holds gets the idf of df = 0, the highest there is."""
        return inverse_frequency(self.unit_count, np.array(self.table.look_up(ids)[0], np.int64))

    def fingerprint(self) -> str:
        """16 hex digits that name these frequencies; equal for equal content, however it was put together."""
        canonical = hashlib.sha256(f"{SCHEME}\0{self.unit_count}\0{len(self.table)}\0".encode())
        canonical.update(self.table.ids().astype("<u4").tobytes())
        canonical.update(self.table.counts().astype("<u4").tobytes())
        return canonical.hexdigest()[:16]

    def save(self, folder: Path) -> None:
        """Write `folder/frequencies-*.npy`."""
        folder.mkdir(parents=True, exist_ok=True)
        write_array(folder / "frequencies-units.npy", np.array([self.unit_count], np.uint64))
        self.table.save(folder, "frequencies")

    @classmethod
    def open(cls, folder: Path, source: Source = map_file) -> UnitFrequencies:
        """Map what `save` wrote."""
        path = folder / "frequencies-units.npy"
        units = open_array(path, np.uint64, source=source)
        require(len(units) == 1, path, f"holds {len(units)} numbers instead of one")
        return cls(int(units[0]), CountTable.open(folder, "frequencies", source))


@dataclass(frozen=True, slots=True)
class SparseQuestion:
    """A question as a unit-length sparse vector s'; one of all zeros only if the text has no word at all."""

    text: str
    ids: NDArray[np.uint32]  # [ngram] ascending
    weights: NDArray[np.float64]  # [ngram] log1p(tf) * idf / norm
    idf: NDArray[np.float64]  # [ngram]


def inverse_frequency(unit_count: int, unit_frequency: NDArray[np.integer]) -> NDArray[np.float64]:
    """log(1 + (N - df + .5) / (df + .5)): DrQA's log((N - df + .5) / (df + .5)) plus 1 inside.

    DrQA cuts at 0 what more than half of the units hold, so one document, or one topic, has no vector left.
    """
    frequency = unit_frequency.astype(np.float64)
    return np.log1p((unit_count - frequency + 0.5) / (frequency + 0.5))


def weigh_question(text: str, frequencies: UnitFrequencies) -> SparseQuestion:
    """The sparse vector of a question. N-grams unknown to the index match nothing but count in its length."""
    ngrams = count_ngrams(text)
    idf = frequencies.idf(ngrams.ids)
    weights = np.log1p(ngrams.counts) * idf
    norm = np.sqrt(np.sum(weights * weights))
    return SparseQuestion(text, ngrams.ids, weights / norm if norm else weights, idf)


def _sum_by_id(
    ids: NDArray[np.uint32], counts: NDArray[np.integer]
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    if not len(ids):
        return np.zeros(0, np.uint32), np.zeros(0, np.int64)
    order = np.argsort(ids, kind="stable")
    ids, counts = ids[order], counts[order].astype(np.int64)
    first = np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]]))
    return ids[first], np.add.reduceat(counts, first)
