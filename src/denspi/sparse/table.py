"""A compact, memory-mapped map from n-gram id to a positive count. Owns its layout; knows no tf-idf.

Most n-grams occur once, so what each costs decides the size of the index: here two bytes (three in small
tables). Ids share their high bits by group and keep the low ones; a count is one byte, 255 = see `large`.
The running sum of the counts comes with it, which makes the same table the directory of the postings.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from denspi.errors import IndexDamagedError
from denspi.sparse.arrays import Source, map_file, open_array, require, write_array
from denspi.sparse.ngrams import BUCKET_BITS

_LARGE = 255
_SMALL_TABLE = 1 << 16  # below: 256 groups and 16 low bits; from here on: 65,536 groups and 8


@dataclass(frozen=True, slots=True)
class CountTable:
    """Immutable; rows ascend by id. `look_up` is for a question's few ids, `ids` and `counts` for all."""

    low: NDArray[np.uint8 | np.uint16]  # [row] low bits of the id
    small: NDArray[np.uint8]  # [row] the count, or 255
    large_rows: NDArray[np.uint32]  # [large] rows whose count is 255 or more
    large_counts: NDArray[np.uint32]  # [large]
    group_rows: NDArray[np.uint32]  # [group + 1] first row of each group
    group_sums: NDArray[np.uint64]  # [group + 1] sum of all counts before each group

    @classmethod
    def of(cls, ids: NDArray[np.uint32], counts: NDArray[np.integer]) -> CountTable:
        """From strictly ascending ids and counts of at least 1."""
        low_bits = 16 if len(ids) < _SMALL_TABLE else 8
        groups = np.arange((1 << (BUCKET_BITS - low_bits)) + 1, dtype=np.uint32) << np.uint32(low_bits)
        group_rows = np.searchsorted(ids, groups)
        sums = np.concatenate([[0], np.cumsum(counts, dtype=np.uint64)]).astype(np.uint64)
        large_rows = np.flatnonzero(counts >= _LARGE)
        return cls(
            low=(ids & np.uint32((1 << low_bits) - 1)).astype(np.uint16 if low_bits == 16 else np.uint8),
            small=np.minimum(counts, _LARGE).astype(np.uint8),
            large_rows=large_rows.astype(np.uint32),
            large_counts=counts[large_rows].astype(np.uint32),
            group_rows=group_rows.astype(np.uint32),
            group_sums=sums[group_rows],
        )

    def __len__(self) -> int:
        return len(self.low)

    @property
    def total(self) -> int:
        """The sum of all counts."""
        return int(self.group_sums[-1])

    def ids(self) -> NDArray[np.uint32]:
        """All ids, ascending."""
        groups = np.repeat(np.arange(len(self.group_rows) - 1, dtype=np.uint32), np.diff(self.group_rows))
        return (groups << np.uint32(self._low_bits)) | self.low

    def counts(self) -> NDArray[np.uint32]:
        """All counts, in the order of the ids."""
        counts = self.small.astype(np.uint32)
        counts[self.large_rows] = self.large_counts
        return counts

    def look_up(self, ids: NDArray[np.uint32]) -> tuple[list[int], list[int]]:
        """For each id: its count (0 where it is absent), and the sum of the counts of all smaller ids.

        Bisecting memory views beats numpy here: a group holds at most 256 rows, a question some ten ids.
        """
        low, small, large_rows = self.low.data, self.small.data, self.large_rows.data
        group_rows, group_sums = self.group_rows.data, self.group_sums.data
        low_bits = self._low_bits
        counts: list[int] = []
        offsets: list[int] = []
        for ngram_id in ids.tolist():
            group = ngram_id >> low_bits
            first, end = group_rows[group], group_rows[group + 1]
            wanted = ngram_id & ((1 << low_bits) - 1)
            row = bisect_left(low, wanted, first, end)
            count = small[row] if row < end and low[row] == wanted else 0
            before = sum(small[first:row])
            if count == _LARGE or before >= _LARGE:
                start = bisect_left(large_rows, first)
                stop = bisect_left(large_rows, row, start)
                if stop > start:
                    before += int(self.large_counts[start:stop].sum(dtype=np.int64)) - _LARGE * (stop - start)
                if count == _LARGE:
                    if stop == len(large_rows) or large_rows[stop] != row:
                        raise IndexDamagedError(
                            "n-gram counts: a large one is not where it should be; the index is damaged, "
                            "restore it from a copy or build it again"
                        )
                    count = int(self.large_counts[stop])
            counts.append(count)
            offsets.append(group_sums[group] + before)
        return counts, offsets

    def finding(self) -> str | None:
        """What is wrong with rows that `open` did not read; None if all agree."""
        if not np.array_equal(np.flatnonzero(self.small == _LARGE), self.large_rows):
            return "large counts are not where the small ones say"
        counts = self.counts()
        if len(counts) and (not counts.all() or bool((self.large_counts < _LARGE).any())):
            return "counts are out of range"
        ids = self.ids()
        if not np.all(ids[1:] > ids[:-1]):
            return "ids do not ascend"
        sums = np.concatenate([[0], np.cumsum(counts, dtype=np.uint64)]).astype(np.uint64)
        return (
            None if np.array_equal(sums[self.group_rows], self.group_sums) else "sums are not of the counts"
        )

    @property
    def _low_bits(self) -> int:
        return 16 if self.low.dtype == np.uint16 else 8

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(getattr(self, name).nbytes for name in _DTYPES)

    def save(self, folder: Path, name: str) -> None:
        """Write the arrays as `folder/name-*.npy`."""
        for part in _DTYPES:
            write_array(folder / f"{name}-{part}.npy", getattr(self, part))

    @classmethod
    def open(cls, folder: Path, name: str, source: Source = map_file) -> CountTable:
        """Map what `save` wrote; sizes and offsets are checked, the rows themselves are not read."""
        paths = {part: folder / f"{name}-{part}.npy" for part in _DTYPES}
        table = cls(
            **{part: open_array(paths[part], *dtypes, source=source) for part, dtypes in _DTYPES.items()}
        )
        rows, groups = len(table.low), 1 << (BUCKET_BITS - table._low_bits)
        require(len(table.small) == rows, paths["small"], f"has {len(table.small)} rows instead of {rows}")
        for part, values in (("group_rows", table.group_rows), ("group_sums", table.group_sums)):
            require(
                len(values) == groups + 1, paths[part], f"has {len(values)} entries instead of {groups + 1}"
            )
            require(
                values[0] == 0 and bool(np.all(values[1:] >= values[:-1])),
                paths[part],
                "does not ascend from 0",
            )
        require(int(table.group_rows[-1]) == rows, paths["group_rows"], f"does not end at row {rows}")
        large = table.large_rows
        require(len(large) == len(table.large_counts), paths["large_counts"], "does not fit the large rows")
        ascending = bool(np.all(large[1:] > large[:-1])) and (not len(large) or int(large[-1]) < rows)
        require(ascending, paths["large_rows"], "does not ascend within the table")
        return table


_DTYPES: dict[str, tuple[type, ...]] = {
    "low": (np.uint8, np.uint16),
    "small": (np.uint8,),
    "large_rows": (np.uint32,),
    "large_counts": (np.uint32,),
    "group_rows": (np.uint32,),
    "group_sums": (np.uint64,),
}
