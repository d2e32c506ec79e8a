"""Texts of a segment: one stream of bytes, any stretch of which can be read.

The stream is stored as it is. Compressed it would take three bytes a word less, of some two hundred, a
question would take a tenth longer, and the bytes would depend on the version of zlib. Segments of earlier
builds have it in compressed blocks. Stretches are counted in bytes of the stream; what they are is the
caller's business.
"""

from __future__ import annotations

import zlib
from typing import Protocol

from denspi.errors import IndexDamagedError
from denspi.index.blocks import Checked
from denspi.index.part import PartReader

STRETCH_LIMIT_BYTES = 1 << 26
"""The longest text or record of one document: 16 million characters of any script."""
_PACKED = {"blocks_4096": 1 << 12, "blocks": 1 << 15}  # how components end, and the blocks they stand for
_REMEMBERED_BYTES = 1 << 20


class TextReader(Protocol):
    """Reads stretches of a stream."""

    def read(self, begin: int, end: int) -> bytes:
        """The bytes ``[begin, end)``."""


def open_texts(part: PartReader, name: str) -> TextReader:
    """The stream `name` of a part, however it is stored."""
    for end, block_bytes in _PACKED.items():
        if f"{name}_{end}" in part:
            return PackedTexts(part, name, part.get(f"{name}_{end}", "uint64"), block_bytes)
    return PlainTexts(part, name)


class PlainTexts:
    """A stream as it is."""

    def __init__(self, part: PartReader, name: str) -> None:
        self._where, self._stored = str(part.path / name), part.get(name, "uint8")

    def read(self, begin: int, end: int) -> bytes:
        """The bytes ``[begin, end)`` of the stream."""
        if begin >= end:
            return b""
        _check_length(self._where, begin, end)
        if end > len(self._stored):
            raise _damaged(self._where, "shorter than the texts in it")
        return self._stored.rows(begin, end).tobytes()


class PackedTexts:
    """A stream in blocks that zlib has compressed. Remembers some: who types asks for the same again."""

    def __init__(self, part: PartReader, name: str, ends: Checked, block_bytes: int) -> None:
        self._where, self._compressed = str(part.path / name), part.get(name, "uint8")
        self._ends, self._block_bytes = ends, block_bytes  # [block + 1] in the compressed component
        self._recent: dict[int, bytes] = {}

    def read(self, begin: int, end: int) -> bytes:
        """The bytes ``[begin, end)`` of the stream."""
        if begin >= end:
            return b""
        _check_length(self._where, begin, end)  # a few megabytes may unpack to gigabytes
        size = self._block_bytes
        first, last = begin // size, (end - 1) // size
        if last >= len(self._ends) - 1:
            raise _damaged(self._where, "shorter than the texts in it")
        content = b"".join(self._block(each, min(size, end - each * size)) for each in range(first, last + 1))
        return content[begin - first * size : end - first * size]

    def _block(self, number: int, needed: int) -> bytes:
        """The first bytes of a block, at least so many: what lies behind them is not unpacked."""
        remembered = self._recent.get(number, b"")
        if len(remembered) >= needed:
            return remembered
        begin, end = self._ends.rows(number, number + 2).tolist()
        if not begin <= end <= len(self._compressed):
            raise _damaged(self._where, "its blocks leave the file")
        try:  # never more than a block, whatever the bytes say
            content = zlib.decompressobj().decompress(self._compressed.rows(begin, end).data, needed)
        except zlib.error:
            raise _damaged(self._where, "a block cannot be unpacked") from None
        if len(content) != needed:
            raise _damaged(self._where, "shorter than the texts in it")
        if len(self._recent) >= _REMEMBERED_BYTES // self._block_bytes:
            self._recent.clear()
        self._recent[number] = content
        return content


def _check_length(where: str, begin: int, end: int) -> None:
    if end - begin > STRETCH_LIMIT_BYTES:
        raise _damaged(where, f"a stretch of {end - begin} bytes, more than is ever written")


def _damaged(where: str, finding: str) -> IndexDamagedError:
    return IndexDamagedError(f"{where}: {finding}; the index is damaged")
