"""Several segments written as one, without the documents that are not kept. Copies; commits nothing.

The result equals, byte for byte, the segment that the kept documents would have made in one go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from denspi.index.components import PartRef
from denspi.index.manifest import Counts, ModelRecord
from denspi.index.part import PartWriter
from denspi.index.segment import SegmentReader
from denspi.index.segment_writer import PLACES, SIDES, RowRun, SegmentWriter, place_dtypes
from denspi.sparse.build import merge_segments

MOST_AT_ONCE = 16
"""Sources of one merge: every one of them has files open, and a process may have 1,024 or fewer."""
_CHUNK_ROWS = 1 << 15


@dataclass(frozen=True, slots=True)
class Source:
    """A segment to merge, and which of its documents to keep."""

    segment: SegmentReader
    is_kept: NDArray[np.bool_]  # [document]


def merge_rows(part: PartWriter, model: ModelRecord, sources: Sequence[Source]) -> tuple[PartRef, Counts]:
    """Write the kept documents of all sources, in order, as one segment."""
    with SegmentWriter(part, model, place_dtypes(_largest_places(sources))) as writer:
        for source in sources:
            _copy(writer, source)
        return writer.finish(
            lambda folder: merge_segments(
                [source.segment.sparse for source in sources],
                folder,
                [source.is_kept for source in sources],
            )
        )


def _copy(writer: SegmentWriter, source: Source) -> None:
    segment, is_kept = source.segment, source.is_kept
    paragraph_counts = np.diff(segment.document_paragraphs)
    paragraphs = np.flatnonzero(np.repeat(is_kept, paragraph_counts))
    for side, rows in (("start", segment.starts), ("end", segment.ends)):
        columns = (rows.words, rows.chars, rows.codes, rows.keys)
        for first, last in _row_runs(source, side):
            writer.add_rows(side, RowRun(*(column.rows(first, last) for column in columns)))
            for column in columns:  # or a merge would seem to need as much memory as it copies
                column.forget(first, last)
    writer.add_paragraphs(
        np.diff(segment.starts.offsets)[paragraphs],
        np.diff(segment.ends.offsets)[paragraphs],
        segment.paragraph_words.at(paragraphs),
        segment.paragraph_runs[paragraphs],
        segment.paragraph_chars.at(paragraphs),
        segment.paragraph_bytes.at(paragraphs),
    )
    documents = np.flatnonzero(is_kept)
    writer.add_documents(
        paragraph_counts[documents],
        segment.hashes[documents],
        ((segment.text_bytes(number), segment.record_bytes(number)) for number in documents.tolist()),
    )


def _row_runs(source: Source, side: str) -> Iterator[tuple[int, int]]:
    """Stretches of rows whose documents are kept, each of a bounded length."""
    segment = source.segment
    offsets = (segment.starts if side == "start" else segment.ends).offsets[segment.document_paragraphs]
    edges = np.diff(np.concatenate([[False], source.is_kept, [False]]).astype(np.int8))
    for begin, end in zip(np.flatnonzero(edges == 1), np.flatnonzero(edges == -1), strict=True):
        first, last = int(offsets[begin]), int(offsets[end])
        for row in range(first, last, _CHUNK_ROWS):
            yield row, min(row + _CHUNK_ROWS, last)


def _largest_places(sources: Sequence[Source]) -> dict[str, int]:
    """The largest kept value of each places component; only wide ones need looking at."""
    largest = dict.fromkeys(PLACES, 0)
    for source in sources:
        for side in SIDES:
            rows = source.segment.starts if side == "start" else source.segment.ends
            for name, component in ((f"{side}_words", rows.words), (f"{side}_chars", rows.chars)):
                if component.dtype != np.uint16:
                    for first, last in _row_runs(source, side):
                        largest[name] = max(largest[name], int(component.rows(first, last).max(initial=0)))
    return largest
