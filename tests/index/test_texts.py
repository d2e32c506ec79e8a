"""Any stretch of a stream of texts reads as it was written, whatever was read before."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from denspi.errors import IndexDamagedError
from denspi.index.directory import Directory
from denspi.index.part import PartReader, PartWriter
from denspi.index.texts import TEXT_BLOCK_BYTES, TextReader, TextWriter


@pytest.fixture
def stream() -> bytes:
    words = random.Random(1)
    return b" ".join(b"%d" % words.randrange(10**6) for _ in range(5000))


@pytest.fixture
def reader(tmp_path: Path, stream: bytes) -> TextReader:
    directory = Directory(tmp_path)
    part = PartWriter(directory, "000001-segment")
    with TextWriter(part, "texts") as writer:
        for first in range(0, len(stream), 1000):
            writer.append(stream[first : first + 1000])
    return TextReader(PartReader(directory, part.finish()), "texts")


def test_stretches_in_any_order(reader: TextReader, stream: bytes) -> None:
    """Early ones first, of which only the beginning of a block is unpacked, and far ones after them."""
    places = random.Random(2)
    for _ in range(300):
        begin = places.randrange(len(stream))
        end = min(len(stream), begin + places.choice([1, 40, 700, 3 * TEXT_BLOCK_BYTES]))
        assert reader.read(begin, end) == stream[begin:end]
    assert reader.read(0, len(stream)) == stream
    assert reader.read(7, 7) == b""


@pytest.mark.parametrize("beyond", [1, TEXT_BLOCK_BYTES])
def test_beyond_the_end(reader: TextReader, stream: bytes, beyond: int) -> None:
    with pytest.raises(IndexDamagedError, match="shorter than the texts in it"):
        reader.read(len(stream) - 5, len(stream) + beyond)
    assert reader.read(len(stream) - 5, len(stream)) == stream[-5:]
