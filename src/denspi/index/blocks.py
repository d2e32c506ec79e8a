"""Checksums by block, checked when a block is first read. Owns what a checked array is; opens no files.

A component's bytes are cut into blocks of 32 KiB, each with its CRC-32. `Checked` hands out plain numpy views
of a memory map and makes sure that no byte in them was handed out unchecked; each block is checked once.
"""

from __future__ import annotations

import mmap
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from denspi.errors import IndexDamagedError

BLOCK_BYTES = 1 << 15
_FEW_BLOCKS = 1 << 11


def block_count(size_bytes: int) -> int:
    """Blocks of a component of so many bytes; the last may be short."""
    return -(-size_bytes // BLOCK_BYTES)


class BlockSums:
    """CRC-32 of each block of a stream of bytes, as it goes by."""

    def __init__(self) -> None:
        self.size_bytes = 0
        self._sums: list[int] = []

    def add(self, content: bytes | memoryview) -> None:
        """The next bytes of the stream."""
        view = memoryview(content).cast("B")
        begin = 0
        while begin < len(view):
            room = BLOCK_BYTES - self.size_bytes % BLOCK_BYTES
            piece = view[begin : begin + room]
            if room == BLOCK_BYTES:
                self._sums.append(zlib.crc32(piece))
            else:
                self._sums[-1] = zlib.crc32(piece, self._sums[-1])
            self.size_bytes += len(piece)
            begin += len(piece)

    def array(self) -> NDArray[np.uint32]:
        """All sums, the last block's included."""
        return np.array(self._sums, np.uint32)


class Checked:
    """A stored array ``[row, ...]`` whose blocks are checked before use. Threads may share it."""

    def __init__(
        self,
        name: str,
        values: NDArray[Any],
        stored: NDArray[np.uint8],
        sums: NDArray[np.uint32],
        mapping: mmap.mmap | None = None,
    ) -> None:
        self.name = name
        self._mapping = mapping  # of `stored`; None where that is empty
        self._values = values  # [row, ...] a view of the last bytes of `stored`
        self._stored = stored  # [byte] the whole file
        self._sums = sums  # [block]
        self._is_checked = bytearray(len(sums))
        self._all_checked = not len(sums)
        self._row_bytes = values.strides[0] if values.ndim and values.size else 0
        self._first_byte = len(stored) - values.nbytes
        self._inspect: Callable[[int, NDArray[np.uint8]], None] | None = None

    def __len__(self) -> int:
        return len(self._values)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the values."""
        return self._values.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of all values."""
        return self._values.shape

    def inspect_with(self, inspect: Callable[[int, NDArray[np.uint8]], None]) -> None:
        """Call this once with the first byte and the content of each block, for what a checksum cannot say.

        Blocks that somebody has read before are checked again.
        """
        self._inspect = inspect
        self._is_checked[:] = bytes(len(self._is_checked))
        self._all_checked = not len(self._sums)

    def whole(self) -> NDArray[Any]:
        """All values, for a scan; the first call reads every byte that nobody has read yet."""
        if not self._all_checked:
            self._check_blocks(0, len(self._sums))
            self._all_checked = True
        return self._values

    def rows(self, begin: int, end: int) -> NDArray[Any]:
        """The rows ``[begin, end)``, as a view."""
        self.check(begin, end)
        return self._values[begin:end]

    def at(self, rows: NDArray[np.integer]) -> NDArray[Any]:
        """A copy of the rows with these numbers, in their order."""
        if not self._all_checked and self._row_bytes and len(rows):
            first = self._first_byte + rows.astype(np.int64) * self._row_bytes
            blocks = np.concatenate([first, first + (self._row_bytes - 1)]) // BLOCK_BYTES
            self._check_each(blocks)
        chosen: NDArray[Any] = self._values[rows]
        return chosen

    def within(self, begins: NDArray[np.integer], ends: NDArray[np.integer]) -> NDArray[Any]:
        """All values, of which just the rows ``[begin, end)`` of each pair are checked: look at no others."""
        if not self._all_checked and self._is_checked.find(0) < 0:
            self._all_checked = True
        if not self._all_checked and self._row_bytes:
            is_some = ends > begins
            first = self._first_byte + begins[is_some].astype(np.int64) * self._row_bytes
            last = self._first_byte + ends[is_some].astype(np.int64) * self._row_bytes - 1
            first, last = first // BLOCK_BYTES, last // BLOCK_BYTES
            for further in range(int((last - first).max(initial=-1)) + 1):
                self._check_each(np.minimum(first + further, last))
        return self._values

    def check(self, begin: int, end: int) -> None:
        """Check the rows ``[begin, end)`` without looking at them."""
        if self._all_checked or end <= begin or not self._row_bytes:
            return
        first = (self._first_byte + begin * self._row_bytes) // BLOCK_BYTES
        last = (self._first_byte + end * self._row_bytes - 1) // BLOCK_BYTES
        if self._is_checked.find(0, first, last + 1) >= 0:
            self._check_blocks(first, min(last + 1, len(self._sums)))

    def check_all(self) -> None:
        """Check every block, without keeping them in memory."""
        for first in range(0, len(self._sums), _FEW_BLOCKS):
            end = min(first + _FEW_BLOCKS, len(self._sums))
            self._check_blocks(first, end)
            if self._mapping is not None:
                size = min(end * BLOCK_BYTES, len(self._stored)) - first * BLOCK_BYTES
                self._mapping.madvise(mmap.MADV_DONTNEED, first * BLOCK_BYTES, size)

    def forget(self, begin: int, end: int) -> None:
        """The rows ``[begin, end)`` will not be needed again soon: let their pages go from our memory."""
        if self._mapping is not None and end > begin:
            first = (self._first_byte + begin * self._row_bytes) // mmap.PAGESIZE * mmap.PAGESIZE
            size = self._first_byte + end * self._row_bytes - first
            self._mapping.madvise(mmap.MADV_DONTNEED, first, size)

    def _check_each(self, blocks: NDArray[np.int64]) -> None:
        unchecked = blocks[np.frombuffer(self._is_checked, np.uint8).take(blocks, mode="clip") == 0]
        for block in np.unique(unchecked).tolist() if len(unchecked) else ():
            self._check_blocks(block, block + 1)

    def _check_blocks(self, first: int, end: int) -> None:
        stored, sums, is_checked = self._stored, self._sums, self._is_checked
        block = is_checked.find(0, first, end)
        while block >= 0:
            content = stored[block * BLOCK_BYTES : (block + 1) * BLOCK_BYTES]
            found = zlib.crc32(content.data)
            if found != sums[block]:
                raise IndexDamagedError(
                    f"{self.name}: damaged at byte {block * BLOCK_BYTES} or after it (its checksum is "
                    "another); restore the index from a copy or build it again"
                )
            if self._inspect is not None:
                self._inspect(block * BLOCK_BYTES, content)
            is_checked[block] = 1
            block = is_checked.find(0, block + 1, end)
