"""A question while it is being answered: its vectors, and what was already computed of them for a segment.

Belongs to one view and one thread. `scan_starts` and `scan_ends` compute the same for many questions at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from denspi.index.segment import SideRows
from denspi.search.fixed_point import FixedQuestion
from denspi.search.view import SearchView, SegmentView
from denspi.sparse.asked_postings import AddUp, AskedPostings
from denspi.sparse.tfidf import SparseQuestion


class AskedQuestion:
    """The dense and the sparse vector of a question, and how much the sparse one counts.

    `add_up` are the kernels' own (see `Kernels`).
    """

    def __init__(
        self,
        fixed: FixedQuestion,
        sparse: SparseQuestion,
        sparse_weight: float,
        add_up: AddUp | None = None,
    ) -> None:
        self.fixed, self.sparse, self.sparse_weight, self._add_up = fixed, sparse, sparse_weight, add_up
        self._postings: dict[SegmentView, AskedPostings] = {}
        self._sparse: dict[SegmentView, NDArray[np.float64]] = {}
        self._maxima: dict[SegmentView, NDArray[np.int32]] = {}
        self._end_maxima: dict[SegmentView, NDArray[np.int32]] = {}

    def postings(self, segment: SegmentView) -> AskedPostings:
        """Its words in a segment, which are looked up once."""
        found = self._postings.get(segment)
        if found is None:
            found = self._postings[segment] = segment.reader.postings.asked(self.sparse, self._add_up)
        return found

    def document_parts(self, segment: SegmentView, documents: NDArray[np.int64]) -> NDArray[np.float64]:
        """What each of these documents adds to the score of its phrases."""
        if not self.sparse_weight:
            return np.zeros(len(documents))
        return self.sparse_weight * self.postings(segment).document_scores[documents]

    def paragraph_parts(self, segment: SegmentView, paragraphs: NDArray[np.int64]) -> NDArray[np.float64]:
        """What each of these paragraphs adds to the score of its phrases."""
        if not self.sparse_weight:
            return np.zeros(len(paragraphs))
        documents = segment.documents[paragraphs]
        return self.sparse_weight * self.postings(segment).paragraph_scores_of(paragraphs, documents)

    def sparse_parts(
        self, segment: SegmentView, paragraphs: NDArray[np.int64] | None = None
    ) -> NDArray[np.float64]:
        """Both together, of these paragraphs or of all."""
        if paragraphs is not None:
            of_paragraphs = self.paragraph_parts(segment, paragraphs)
            return self.document_parts(segment, segment.documents[paragraphs]) + of_paragraphs
        found = self._sparse.get(segment)
        if found is None:
            found = self.sparse_parts(segment, np.arange(segment.reader.counts.paragraphs))
            self._sparse[segment] = found
        return found

    def maxima(self, view: SearchView, segment: SegmentView) -> NDArray[np.int32]:
        """``[paragraph]`` the highest score of a start row of each paragraph that may be found."""
        if segment not in self._maxima:
            scan_starts([self], view, segment)
        return self._maxima[segment]

    def known_end_maxima(self, segment: SegmentView) -> NDArray[np.int32] | None:
        """The same of the end rows, where `scan_ends` was called; one question reads only some of them."""
        return self._end_maxima.get(segment)


def scan_starts(questions: Sequence[AskedQuestion], view: SearchView, segment: SegmentView) -> None:
    """Compute the maxima of several questions in one pass over the start rows."""
    weights = np.stack([each.fixed.start_weights for each in questions])
    found = _maxima_within(segment.reader.starts, weights, view, segment)
    for question, maxima in zip(questions, found, strict=True):
        question._maxima[segment] = maxima


def scan_ends(questions: Sequence[AskedQuestion], view: SearchView, segment: SegmentView) -> None:
    """Compute the end maxima of several questions in one pass over the end rows."""
    weights = np.stack([each.fixed.end_weights for each in questions])
    found = _maxima_within(segment.reader.ends, weights, view, segment)
    for question, maxima in zip(questions, found, strict=True):
        question._end_maxima[segment] = maxima


def _maxima_within(
    rows: SideRows, weights: NDArray[np.signedinteger], view: SearchView, segment: SegmentView
) -> NDArray[np.int32]:
    """``[question, paragraph]``; what may not be found is not read either."""
    if segment.allows_all:
        codes = rows.codes.whole()
    else:
        allowed = np.flatnonzero(segment.allowed_paragraphs)
        codes = rows.codes.within(rows.offsets[allowed], rows.offsets[allowed + 1])
    return view.kernels.maxima(codes, rows.offsets, weights, segment.allowed_paragraphs)
