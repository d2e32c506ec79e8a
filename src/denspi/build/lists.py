"""Gives every large segment its vector index, beside whoever writes: the lock is held only to commit it.

A merge makes a segment without one, and until this has run searches scan its rows. Lists depend on the start
rows of their segment alone, so equal segments have equal lists.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from denspi.dense.codec import RowCodec
from denspi.dense.compact import CompactCode
from denspi.dense.points import CompactPoints, Int8Points, PointCode
from denspi.errors import InputError
from denspi.index.clusters import cluster
from denspi.index.lists import FEWEST_STARTS, list_arrays, list_count
from denspi.index.segment import SegmentReader
from denspi.index.snapshot import Snapshot
from denspi.index.unfinished import UnfinishedError
from denspi.index.writer import IndexWriter


def attach_missing_lists(
    folder: Path, codec: Callable[[], RowCodec], fewest_starts: int = FEWEST_STARTS
) -> int:
    """Make the lists that lack, one commit for each; the last generation.

    IndexLockedError where somebody writes: it can wait, since searches find all without lists and whoever
    commits next makes them. Where a writer was interrupted, its changes could still be gone on with: then
    nothing is made. `codec` is that of the index's model, which compact rows are read with.
    """
    while True:
        with closing(Snapshot.open(folder)) as snapshot:
            missing = next((each for each in snapshot.segments if _lacks(each, fewest_starts)), None)
            if missing is None:
                return snapshot.generation
            arrays = make_lists(missing, _point_code(missing, codec))
            try:
                with IndexWriter.open(folder, keep_unfinished=True) as writer:
                    with suppress(InputError):  # a merge has replaced the segment meanwhile
                        writer.attach_lists(missing.name, arrays)
                    writer.commit()
            except UnfinishedError:
                return snapshot.generation


def make_lists(
    segment: SegmentReader, code: PointCode, lists: int | None = None
) -> Mapping[str, NDArray[Any]]:
    """The components of a segment's lists; by default as many lists as suit its size."""
    stored, count = segment.starts.codes, segment.counts.starts

    def read(rows: NDArray[np.int64]) -> NDArray[np.int8]:
        return code.points(stored.at(rows))

    centres, list_of_row = cluster(read, count, list_count(count) if lists is None else lists)
    return list_arrays(code.rows(centres), list_of_row)


def _lacks(segment: SegmentReader, fewest_starts: int) -> bool:
    return segment.lists is None and segment.counts.starts >= max(1, fewest_starts)


def _point_code(segment: SegmentReader, codec: Callable[[], RowCodec]) -> PointCode:
    if segment.model.precision == "int8":
        return Int8Points()
    code = codec().start
    assert isinstance(code, CompactCode)
    return CompactPoints(code)
