"""Rows are checked before they are looked at, and no others are read."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.search.conftest import CODES, ask

from denspi.errors import IndexDamagedError
from denspi.index import Snapshot
from denspi.index.blocks import BLOCK_BYTES, BlockSums, Checked
from denspi.search.candidates import Limits, Pool
from denspi.search.strategies import STRATEGIES
from denspi.search.view import SearchView


def damaged(folder: Path, tmp_path: Path, component: str) -> SearchView:
    """A copy of the index with one byte of the first segment's rows changed."""
    copy = Path(shutil.copytree(folder, tmp_path / "index"))
    name = Snapshot.open(copy).segments[0].name
    path = copy / name / component
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    return SearchView.of(Snapshot.open(copy), CODES)


@pytest.mark.parametrize(
    "component", ["starts", "ends", "start_keys", "end_keys", "start_words", "end_words"]
)
def test_a_changed_byte_is_an_error_and_never_an_answer(folder: Path, tmp_path: Path, component: str) -> None:
    for name in ("exact", "dense_first"):
        view = damaged(folder, tmp_path / name, component)
        with pytest.raises(IndexDamagedError, match=component):
            STRATEGIES[name](view, ask(view, 0), Limits())


def test_only_what_is_read_is_checked(folder: Path, tmp_path: Path) -> None:
    view = damaged(folder, tmp_path, "ends")
    pool = Pool(view, ask(view, 0), 5)
    pool.read_paragraphs(1, np.array([0, 1]))  # another segment
    assert len(pool.best()) > 0
    with pytest.raises(IndexDamagedError, match="ends"):
        pool.read_paragraphs(0, np.arange(view.segments[0].reader.counts.paragraphs))


def test_every_block_of_a_stretch_is_checked() -> None:
    stored = np.zeros(7 * BLOCK_BYTES + 100, np.uint8)
    sums = BlockSums()
    sums.add(stored.data)
    stored[3 * BLOCK_BYTES + 5] = 1
    row_bytes = 50
    count = len(stored) // row_bytes
    values = stored[len(stored) - count * row_bytes :].reshape(count, row_bytes)
    bad = (3 * BLOCK_BYTES + 5 - (len(stored) - count * row_bytes)) // row_bytes
    block_rows = BLOCK_BYTES // row_bytes

    def within(*pairs: tuple[int, int]) -> None:
        begins, ends = np.array(pairs, np.int64).reshape(-1, 2).T
        Checked("rows", values, stored, sums.array()).within(begins, ends)

    within((0, bad - block_rows), (bad + 2 * block_rows, count), (bad, bad))
    within()
    for stretch in ((bad, bad + 1), (0, count), (bad - 2 * block_rows, bad + 2 * block_rows), (0, bad + 1)):
        with pytest.raises(IndexDamagedError, match="rows"):
            within((0, 1), stretch, (count - 1, count))


def test_rows_of_a_few_paragraphs_are_those_of_all(view: SearchView) -> None:
    for segment in view.segments:
        some = np.array([0, segment.reader.counts.paragraphs - 1])
        for part, whole in zip(
            segment.sides_within(some), (segment.reader.starts, segment.reader.ends), strict=True
        ):
            for paragraph in some.tolist():
                rows = whole.of(paragraph)
                assert np.array_equal(part.codes[rows], whole.codes.rows(rows.start, rows.stop))
                assert np.array_equal(part.words[rows], whole.words.rows(rows.start, rows.stop))
