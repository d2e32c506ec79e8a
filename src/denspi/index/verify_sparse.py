"""Whether the sparse files of a segment make sense together. Part of `verify`; reads all, changes nothing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from denspi.index.segment import SegmentReader
from denspi.sparse.layout import COUNT_BITS, COUNT_MASK

_CHUNK_POSTINGS = 1 << 20


def sparse_disagreements(segment: SegmentReader) -> Iterator[str]:
    """What undamaged files of n-gram counts and norms say that cannot be."""
    sparse = segment.postings.segment  # opens the norms too
    if finding := sparse.lengths.finding():
        yield f"{segment.name}: in the lengths of lists, {finding}"
        return
    list_starts = np.cumsum(sparse.lengths.counts(), dtype=np.int64)  # of all but the first, and the end
    overflow = sparse.overflow.astype(np.int64)
    for begin in range(0, len(sparse.postings), _CHUNK_POSTINGS):
        end = min(begin + _CHUNK_POSTINGS, len(sparse.postings))
        first = max(begin - 1, 0)  # one before, to compare with
        postings = sparse.read(first, end)
        ascends = np.diff((postings >> COUNT_BITS).astype(np.int64)) > 0
        low, high = np.searchsorted(list_starts, [first + 1, end])
        ascends[list_starts[low:high] - (first + 1)] = True
        if not ascends.all():
            yield f"{segment.name}: postings.npy has a list that does not ascend"
        low, high = np.searchsorted(overflow, [first, end])
        is_large = (postings & COUNT_MASK) == COUNT_MASK
        if not np.array_equal(np.flatnonzero(is_large), overflow[low:high] - first):
            yield f"{segment.name}: overflow.npy does not name the large counts of postings.npy"
