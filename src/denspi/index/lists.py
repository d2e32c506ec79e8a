"""The vector index of a segment: its start rows in lists of close ones, each with a centre. No copy of a row.

A part of its own beside the segment, derived from its start rows alone and so replaceable. It may come from a
stranger: a reader believes no number that it has not checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from denspi.errors import IndexDamagedError
from denspi.index.blocks import Checked
from denspi.index.part import PartReader
from denspi.index.rows import CodeLayout, rows_of

CENTRES, ROWS, OFFSETS = "centres", "rows", "list_rows"
FEWEST_STARTS = 1 << 17
"""Segments with fewer start rows have no lists: a scan is as quick."""
_MOST_LISTS = 1 << 16


def list_count(starts: int) -> int:
    """Lists for so many start rows: of about 130 rows each, in large segments of more."""
    return min(max(1, starts // 128), int(8 * starts**0.5), _MOST_LISTS)


@dataclass(frozen=True, slots=True, eq=False)
class StartLists:
    """Every start row of a segment is in one list; rows ascend within it."""

    centres: Checked  # [list, vector_bytes] coded as start rows are, so that they have scores like them
    rows: Checked  # [start] list after list
    offsets: NDArray[np.int64]  # [list + 1] where each list begins in `rows`

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def rows_of(self, lists: NDArray[np.int64]) -> NDArray[np.int64]:
        """The start rows of these lists, one list after another."""
        stored = self.rows.within(self.offsets[lists], self.offsets[lists + 1])
        return np.asarray(stored[rows_of(self.offsets, lists)], np.int64)


def list_arrays(centres: NDArray[Any], list_of_row: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
    """The components, from the code of each centre and the list of each start row."""
    counts = np.bincount(list_of_row, minlength=len(centres))
    return {
        CENTRES: centres,
        ROWS: np.argsort(list_of_row, kind="stable").astype(np.uint32),
        OFFSETS: np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]).astype(np.uint32),
    }


def open_lists(part: PartReader | None, layout: CodeLayout, starts: int) -> StartLists | None:
    """None where there are none, or of a kind that this version does not know: then rows are scanned."""
    if part is None or not all(name in part for name in (CENTRES, ROWS, OFFSETS)):
        return None
    centres = part.get(CENTRES, layout.dtype, columns=layout.vector_bytes)
    rows, stored = part.get(ROWS, "uint32"), part.get(OFFSETS, "uint32")
    offsets: NDArray[np.int64] = stored.whole().astype(np.int64)
    if len(rows) != starts or len(offsets) != len(centres) + 1:
        raise IndexDamagedError(f"{part.path}: lists of other rows than the segment has; damaged")
    if offsets[0] or offsets[-1] != starts or (offsets[1:] < offsets[:-1]).any():
        raise IndexDamagedError(f"{stored.name}: does not ascend from 0 to its end; the index is damaged")

    def inspect(first_byte: int, content: NDArray[np.uint8]) -> None:
        if int(content.view("<u4").max(initial=0)) >= starts:
            raise IndexDamagedError(f"{rows.name}: names rows that are not there; the index is damaged")

    rows.inspect_with(inspect)
    return StartLists(centres, rows, offsets)


def finding(lists: StartLists) -> str | None:
    """What is wrong with undamaged lists: each row stands in one of them, in order."""
    rows = lists.rows.whole().astype(np.int64)
    begins_list = np.zeros(len(rows), np.bool_)
    begins_list[lists.offsets[:-1][lists.offsets[:-1] < len(rows)]] = True
    if len(rows) and not ((rows[1:] > rows[:-1]) | begins_list[1:]).all():
        return "rows do not ascend within their lists"
    if (np.bincount(rows, minlength=len(rows)) != 1).any():
        return "a row is in no list, or in two"
    return None
