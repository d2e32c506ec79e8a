"""Builds postings from documents, and merges them. Bounded memory, and the same bytes for the same documents.

A build writes runs (small segments of consecutive documents) and merges them; merging live segments later
is the same function. Merged parts equal the whole, byte for byte, wherever they were cut.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from denspi.errors import InputError
from denspi.sparse.arrays import ArrayWriter, write_array
from denspi.sparse.layout import COUNT_BITS, COUNT_MASK, UNIT_LIMIT, Segment
from denspi.sparse.ngrams import BUCKETS, hash_ngrams
from denspi.sparse.table import CountTable
from denspi.types import Document

_RUN_CHARACTERS = 16_000_000  # text per run: about 5 million n-grams and 200 MB at work
_RANGE_POSTINGS = 4_000_000  # postings merged at once


def build_segment(
    documents: Iterable[Document], folder: Path, run_characters: int = _RUN_CHARACTERS
) -> Segment:
    """Write the postings of `documents` into `folder`, which is created, and open them."""
    folder.mkdir(parents=True, exist_ok=True)
    _refuse_written(folder)
    batches = _batches(documents, run_characters)
    first, second = next(batches, None), next(batches, None)
    if first is not None and second is None:  # nothing to merge
        return _write_run(first, folder)
    # Inside, so that whoever removes what a killed build left in `folder` removes its runs too.
    with tempfile.TemporaryDirectory(prefix="runs-", dir=folder) as scratch:
        runs: list[Segment] = []
        for number, batch in enumerate(chain(filter(None, (first, second)), batches)):
            runs.append(_write_run(batch, Path(scratch) / str(number)))
        return merge_segments(runs, folder)


def merge_segments(
    parts: Sequence[Segment], folder: Path, kept: Sequence[NDArray[np.bool_] | None] | None = None
) -> Segment:
    """One segment with the documents of all `parts`, in order; `kept` names by part the documents to keep."""
    folder.mkdir(parents=True, exist_ok=True)
    _refuse_written(folder)
    renumbering, unit_counts = _renumber(parts, kept or [None] * len(parts))
    Segment.save_documents(folder, unit_counts)
    total = sum(part.lengths.total for part in parts)
    ranges = max(1, -(-total // _RANGE_POSTINGS))
    bounds = np.linspace(0, BUCKETS, ranges + 1).astype(np.int64)  # ids are hashes: equal ranges, equal work
    ids: list[NDArray[np.uint32]] = []
    lengths: list[NDArray[np.int64]] = []
    with ExitStack() as stack:
        postings = stack.enter_context(ArrayWriter(folder / "postings.npy", np.uint32))
        overflow = stack.enter_context(ArrayWriter(folder / "overflow.npy", np.uint64))
        overflow_counts = stack.enter_context(ArrayWriter(folder / "overflow_counts.npy", np.uint32))
        cursors = [_Cursor(part) for part in parts]
        for bound in bounds[1:]:
            pieces = [cursor.take(int(bound), new) for cursor, new in zip(cursors, renumbering, strict=True)]
            keys = np.concatenate([keys for keys, _ in pieces]) if pieces else np.zeros(0, np.uint64)
            counts = np.concatenate([counts for _, counts in pieces]) if pieces else np.zeros(0, np.uint32)
            order = np.argsort(keys, kind="stable") if len(pieces) > 1 else slice(None)
            keys, counts = keys[order], counts[order]
            large = np.flatnonzero(counts >= COUNT_MASK)
            overflow.append(large.astype(np.uint64) + np.uint64(postings.length))
            overflow_counts.append(counts[large])
            units = keys.astype(np.uint32)  # the low half of the key
            postings.append((units << COUNT_BITS) | np.minimum(counts, COUNT_MASK))
            range_ids, range_lengths = np.unique(
                (keys >> np.uint64(32)).astype(np.uint32), return_counts=True
            )
            ids.append(range_ids)
            lengths.append(range_lengths)
    CountTable.of(np.concatenate(ids), np.concatenate(lengths)).save(folder, "lengths")
    return Segment.open(folder)


def _refuse_written(folder: Path) -> None:
    if (folder / "postings.npy").exists():  # somebody may have mapped it
        raise InputError(f"{folder}: already holds postings, which are written once; choose another folder")


class _Cursor:
    """Reads one part from the lowest id upwards, as (id << 32 | new unit) keys with their counts."""

    def __init__(self, part: Segment) -> None:
        self.part = part
        self.ids = part.lengths.ids()
        self.counts = part.lengths.counts()
        self.row = self.place = 0

    def take(self, bound: int, new_units: NDArray[np.int64]) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
        """All postings of the ids below `bound` that have not been taken yet."""
        row = int(np.searchsorted(self.ids, bound))
        lengths = self.counts[self.row : row]
        end = self.place + int(lengths.sum(dtype=np.int64))
        units = new_units[self.part.read(self.place, end) >> COUNT_BITS]
        ids = np.repeat(self.ids[self.row : row].astype(np.uint64), lengths)
        counts = self.part.counts_at(self.place, end)
        self.row, self.place = row, end
        kept = units >= 0
        if not kept.all():
            units, ids, counts = units[kept], ids[kept], counts[kept]
        return (ids << np.uint64(32)) | units.astype(np.uint64), counts


def _renumber(
    parts: Sequence[Segment], kept: Sequence[NDArray[np.bool_] | None]
) -> tuple[list[NDArray[np.int64]], NDArray[np.int64]]:
    """For each part old unit -> new unit (-1: dropped); and the number of units of each document kept."""
    renumbering: list[NDArray[np.int64]] = []
    sizes: list[NDArray[np.int64]] = []
    next_unit = 0
    for part, keep in zip(parts, kept, strict=True):
        document_sizes = np.diff(part.document_units).astype(np.int64)
        is_kept = np.ones(part.document_count, np.bool_) if keep is None else keep
        unit_is_kept = np.repeat(is_kept, document_sizes)
        renumbering.append(np.where(unit_is_kept, next_unit + np.cumsum(unit_is_kept) - 1, -1))
        sizes.append(document_sizes[is_kept])
        next_unit += int(sizes[-1].sum())
    if next_unit > UNIT_LIMIT:
        raise InputError(
            f"{next_unit} paragraphs and titles are more than a segment holds ({UNIT_LIMIT}); split them"
        )
    return renumbering, np.concatenate([np.zeros(0, np.int64), *sizes])


def _write_run(documents: Sequence[Document], folder: Path) -> Segment:
    """Sort the n-grams of a few documents in memory and store them as a segment."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = list(chain.from_iterable((each.title, *each.paragraph_texts()) for each in documents))
    ids, units = hash_ngrams(texts)
    keys = (ids.astype(np.uint64) << np.uint64(32)) | units
    keys.sort()
    first = (
        np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
        if len(keys)
        else np.zeros(0, np.int64)
    )
    counts = np.diff(np.append(first, len(keys))).astype(np.uint32)
    keys = keys[first]
    large = np.flatnonzero(counts >= COUNT_MASK)
    write_array(
        folder / "postings.npy", (keys.astype(np.uint32) << COUNT_BITS) | np.minimum(counts, COUNT_MASK)
    )
    write_array(folder / "overflow.npy", large.astype(np.uint64))
    write_array(folder / "overflow_counts.npy", counts[large])
    Segment.save_documents(folder, np.array([1 + len(each.paragraphs) for each in documents]))
    list_ids, lengths = np.unique((keys >> np.uint64(32)).astype(np.uint32), return_counts=True)
    CountTable.of(list_ids, lengths).save(folder, "lengths")
    return Segment.open(folder)


def _batches(documents: Iterable[Document], run_characters: int) -> Iterator[list[Document]]:
    batch: list[Document] = []
    characters = 0
    for document in documents:
        batch.append(document)
        characters += len(document.text)
        if characters >= run_characters:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch
