"""What a search sees: the segments of one snapshot, with masks of what may be found, and arrays for kernels.

Immutable but for memos that any thread may fill: they hold what follows from the stored rows alone, so a view
of a later generation takes them over. Nothing is read before a strategy asks for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from denspi.dense.codec import RowCodec
from denspi.index.segment import SegmentReader, SideRows
from denspi.index.snapshot import Snapshot
from denspi.search.fields import FieldColumns
from denspi.search.fixed_point import KeyTables
from denspi.search.kernel_choice import kernels_of
from denspi.search.kernels import Kernels, KeyBounds, Side
from denspi.search.row_numbers import vectors_of
from denspi.vectors import MAX_PHRASE_WORDS

Mask = NDArray[np.bool_]


@dataclass(slots=True, eq=False)
class SegmentMemo:
    """What is computed once for a segment, whatever the generation."""

    key_bounds: KeyBounds | None = None
    end_lengths: NDArray[np.float64] | None = None
    columns: FieldColumns = field(default_factory=FieldColumns)  # what filters look values up in


class SegmentView:
    """A segment, and which of its documents may be found."""

    def __init__(self, reader: SegmentReader, memo: SegmentMemo, allowed_documents: Mask) -> None:
        self.reader, self.memo = reader, memo
        self.allowed_documents = allowed_documents  # [document]

    @cached_property
    def allowed_paragraphs(self) -> Mask:
        """``[paragraph]`` whether its document may be found."""
        return self.allowed_documents[self.documents]

    @cached_property
    def allows_all(self) -> bool:
        """Whether nothing is deleted or filtered."""
        return bool(self.allowed_documents.all())

    def allowed_of(self, starts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of these start rows whose documents may be found."""
        if self.allows_all:
            return starts
        return starts[self.allowed_paragraphs[self.reader.starts.paragraphs_of(starts)]]

    @cached_property
    def allowed_start_count(self) -> int:
        """Start rows that may be found."""
        counts = np.diff(self.reader.starts.offsets)
        return self.reader.counts.starts if self.allows_all else int(counts[self.allowed_paragraphs].sum())

    @cached_property
    def documents(self) -> NDArray[np.int64]:
        """``[paragraph]`` the document of each."""
        return np.repeat(np.arange(self.reader.counts.documents), np.diff(self.reader.document_paragraphs))

    def sides_within(self, paragraphs: NDArray[np.int64]) -> tuple[Side, Side]:
        """Start and end rows, of which only those of these paragraphs may be looked at."""
        return _within(self.reader.starts, paragraphs), _within(self.reader.ends, paragraphs)


@dataclass(frozen=True, slots=True, eq=False)
class SearchView:
    """One generation under one model, perhaps filtered."""

    snapshot: Snapshot
    segments: tuple[SegmentView, ...]
    codec: RowCodec
    tables: KeyTables
    kernels: Kernels
    max_words: int = MAX_PHRASE_WORDS

    @classmethod
    def of(cls, snapshot: Snapshot, codec: RowCodec, kernels: Kernels | None = None) -> SearchView:
        """Everything that is live in a snapshot."""
        chosen = kernels or kernels_of(snapshot.model)
        segments = tuple(SegmentView(each, SegmentMemo(), each.live) for each in snapshot.segments)
        return cls(snapshot, segments, codec, KeyTables.of(codec), chosen)

    def on(self, snapshot: Snapshot) -> SearchView:
        """The same search on another generation of the index."""
        memos = {each.reader.rows_ref: each.memo for each in self.segments}
        segments = tuple(
            SegmentView(each, memos.get(each.rows_ref) or SegmentMemo(), each.live)
            for each in snapshot.segments
        )
        return replace(self, snapshot=snapshot, segments=segments)

    def where(self, mask_of: Callable[[SegmentView], Mask]) -> SearchView:
        """Only documents that the mask ``[document]`` of each segment allows as well."""
        segments = tuple(
            SegmentView(each.reader, each.memo, each.allowed_documents & mask_of(each))
            for each in self.segments
        )
        return replace(self, segments=segments)

    def key_bounds(self, segment: SegmentView) -> KeyBounds:
        """Bounds of coherency by paragraph: computed at the first use, then kept."""
        if segment.memo.key_bounds is None:
            starts, ends = (_keys_of(side) for side in (segment.reader.starts, segment.reader.ends))
            segment.memo.key_bounds = self.kernels.key_bounds(self.tables, starts, ends, self.max_words)
        return segment.memo.key_bounds

    def end_lengths(self, segment: SegmentView) -> NDArray[np.float64]:
        """``[paragraph]`` the length of the longest end row, see `row_numbers`; at least.

        The end part of a phrase is at most the question's length times this. Kept like `key_bounds`.
        """
        if segment.memo.end_lengths is None:
            rows = segment.reader.ends
            lengths = vectors_of(self.codec.end).lengths(rows.codes.whole())
            found = np.zeros(len(rows.offsets) - 1)
            has_rows = rows.offsets[1:] > rows.offsets[:-1]
            if has_rows.any():
                found[has_rows] = np.maximum.reduceat(lengths, rows.offsets[:-1][has_rows])
            segment.memo.end_lengths = found
        return segment.memo.end_lengths


def _within(rows: SideRows, paragraphs: NDArray[np.int64]) -> Side:
    begins, ends = rows.offsets[paragraphs], rows.offsets[paragraphs + 1]
    codes, keys, words = (each.within(begins, ends) for each in (rows.codes, rows.keys, rows.words))
    return Side(codes, keys, words, rows.offsets)


def _keys_of(rows: SideRows) -> Side:
    """Keys and words alone: bounds of coherency need no vectors."""
    none = np.zeros((0, rows.codes.shape[1]), np.int8)
    return Side(none, rows.keys.whole(), rows.words.whole(), rows.offsets)
