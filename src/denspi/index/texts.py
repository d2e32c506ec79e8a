"""Texts of a segment: one stream of bytes in compressed blocks, any stretch of which can be read.

A block holds 4 KiB of the stream (the last one less), compressed with zlib; segments of earlier builds have
blocks of 32 KiB, and the name of a component says which. Stretches are counted in bytes of the stream; what
they are is the caller's business.
"""

from __future__ import annotations

import zlib
from types import TracebackType

import numpy as np

from denspi.errors import IndexDamagedError
from denspi.index.blocks import Checked
from denspi.index.part import PartReader, PartWriter

TEXT_BLOCK_BYTES = 1 << 12
"""Of 32 KiB they would take 0.4 bytes a word less, and six times as long to unpack for one paragraph."""
BLOCKS = f"blocks_{TEXT_BLOCK_BYTES}"
_READ = {BLOCKS: TEXT_BLOCK_BYTES, "blocks": 1 << 15}  # how components end, and the blocks they stand for
STRETCH_LIMIT_BYTES = 1 << 26
"""The longest text or record of one document: 16 million characters of any script."""
_LEVEL = 6
_REMEMBERED_BYTES = 1 << 20


class TextWriter:
    """Appends to the components `name` and `name_blocks_4096` of a part; a context manager."""

    def __init__(self, part: PartWriter, name: str) -> None:
        self._part, self._name = part, name
        self._component = part.array(name, np.uint8)
        self._ends = [0]  # [block + 1] in the compressed component
        self._rest = bytearray()

    def append(self, content: bytes) -> None:
        """The next bytes of the stream."""
        self._rest += content
        while len(self._rest) >= TEXT_BLOCK_BYTES:
            self._compress(TEXT_BLOCK_BYTES)

    def __enter__(self) -> TextWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self._rest:
            self._compress(len(self._rest))
        self._component.__exit__(kind, error, trace)
        if kind is None:
            self._part.whole(f"{self._name}_{BLOCKS}", np.array(self._ends, np.uint64))

    def _compress(self, size_bytes: int) -> None:
        compressed = zlib.compress(bytes(self._rest[:size_bytes]), _LEVEL)
        del self._rest[:size_bytes]
        self._component.append(np.frombuffer(compressed, np.uint8))
        self._ends.append(self._ends[-1] + len(compressed))


class TextReader:
    """Reads stretches of the stream. Remembers some blocks: who types a question asks for the same again."""

    def __init__(self, part: PartReader, name: str) -> None:
        self._where = str(part.path / name)
        self._compressed = part.get(name, "uint8")
        there = [end for end in _READ if f"{name}_{end}" in part] or [BLOCKS]
        self._ends: Checked = part.get(f"{name}_{there[0]}", "uint64")
        self._block_bytes = _READ[there[0]]
        self._recent: dict[int, bytes] = {}

    def read(self, begin: int, end: int) -> bytes:
        """The bytes ``[begin, end)`` of the stream."""
        if begin >= end:
            return b""
        if end - begin > STRETCH_LIMIT_BYTES:  # a few megabytes may unpack to gigabytes
            raise self._damaged(f"a stretch of {end - begin} bytes, more than is ever written")
        size = self._block_bytes
        first, last = begin // size, (end - 1) // size
        if last >= len(self._ends) - 1:
            raise self._damaged("shorter than the texts in it")
        blocks = [self._block(each, min(size, end - each * size)) for each in range(first, last + 1)]
        content = blocks[0] if len(blocks) == 1 else b"".join(blocks)  # a paragraph is mostly in one
        return content[begin - first * size : end - first * size]

    def _block(self, number: int, needed: int) -> bytes:
        """The first bytes of a block, at least so many: what lies behind them is not unpacked."""
        remembered = self._recent.get(number, b"")
        if len(remembered) >= needed:
            return remembered
        begin, end = self._ends.rows(number, number + 2).tolist()
        if not begin <= end <= len(self._compressed):
            raise self._damaged("its blocks leave the file")
        inflater = zlib.decompressobj()
        try:  # never more than a block, whatever the bytes say
            content = inflater.decompress(self._compressed.rows(begin, end).data, needed)
        except zlib.error:
            raise self._damaged("a block cannot be unpacked") from None
        if len(content) != needed:
            raise self._damaged("shorter than the texts in it")
        if len(self._recent) >= _REMEMBERED_BYTES // self._block_bytes:
            self._recent.clear()
        self._recent[number] = content
        return content

    def _damaged(self, finding: str) -> IndexDamagedError:
        return IndexDamagedError(f"{self._where}: {finding}; the index is damaged")
