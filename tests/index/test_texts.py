"""Any stretch of a stream of texts reads as it was written, however it is stored."""

from __future__ import annotations

import random
import zlib
from pathlib import Path

import numpy as np
import pytest

from denspi.errors import IndexDamagedError
from denspi.index.directory import Directory
from denspi.index.part import PartReader, PartWriter
from denspi.index.texts import STRETCH_LIMIT_BYTES, TextReader, open_texts

PLAIN, PACKED = 0, (1 << 12, 1 << 15)


@pytest.fixture
def stream() -> bytes:
    words = random.Random(1)
    return b" ".join(b"%d" % words.randrange(10**6) for _ in range(15_000))


def stored(folder: Path, stream: bytes, block_bytes: int) -> TextReader:
    """As segments have it, or had it in earlier builds."""
    cut = range(0, len(stream), block_bytes or len(stream))
    blocks = [stream[first : first + cut.step] for first in cut]
    return stored_blocks(
        folder, [zlib.compress(each) for each in blocks] if block_bytes else blocks, block_bytes
    )


def stored_blocks(folder: Path, blocks: list[bytes], block_bytes: int) -> TextReader:
    directory = Directory(folder)
    part = PartWriter(directory, "000001-segment")
    part.whole("texts", np.frombuffer(b"".join(blocks), np.uint8))
    if block_bytes:
        ends = np.cumsum([0, *map(len, blocks)]).astype(np.uint64)
        part.whole("texts_blocks_4096" if block_bytes == 1 << 12 else "texts_blocks", ends)
    return open_texts(PartReader(directory, part.finish()), "texts")


@pytest.mark.parametrize("block_bytes", [PLAIN, *PACKED])
def test_stretches_in_any_order(tmp_path: Path, stream: bytes, block_bytes: int) -> None:
    reader, places = stored(tmp_path, stream, block_bytes), random.Random(2)
    for _ in range(300):
        begin = places.randrange(len(stream))
        end = min(len(stream), begin + places.choice([1, 40, 700, 20_000]))
        assert reader.read(begin, end) == stream[begin:end]
    assert reader.read(0, len(stream)) == stream
    assert reader.read(7, 7) == b""


@pytest.mark.parametrize("block_bytes", [PLAIN, *PACKED])
@pytest.mark.parametrize("beyond", [1, 1 << 15])
def test_beyond_the_end(tmp_path: Path, stream: bytes, block_bytes: int, beyond: int) -> None:
    reader = stored(tmp_path, stream, block_bytes)
    with pytest.raises(IndexDamagedError, match="shorter than the texts in it"):
        reader.read(len(stream) - 5, len(stream) + beyond)
    assert reader.read(len(stream) - 5, len(stream)) == stream[-5:]


@pytest.mark.parametrize("block_bytes", [PLAIN, *PACKED])
def test_more_than_is_ever_written(tmp_path: Path, stream: bytes, block_bytes: int) -> None:
    with pytest.raises(IndexDamagedError, match="more than is ever written"):
        stored(tmp_path, stream, block_bytes).read(0, STRETCH_LIMIT_BYTES + 1)


def test_a_block_that_would_unpack_to_gigabytes(tmp_path: Path) -> None:
    reader = stored_blocks(tmp_path, [zlib.compress(bytes(200_000_000), 9)], 1 << 12)
    assert reader.read(0, 1 << 12) == bytes(1 << 12)
    with pytest.raises(IndexDamagedError, match="shorter than the texts in it"):
        reader.read(0, (1 << 12) + 1)


def test_blocks_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(IndexDamagedError, match="a block cannot be unpacked"):
        stored_blocks(tmp_path, [b"no block"], 1 << 12).read(0, 5)
