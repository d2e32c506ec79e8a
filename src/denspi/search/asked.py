"""A question while it is being answered: its vectors, and what was already computed of them for a segment.

Belongs to one view and one thread. `scan` computes the same for many questions at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from denspi.search.fixed_point import FixedQuestion
from denspi.search.view import SearchView, SegmentView
from denspi.sparse.tfidf import SparseQuestion


class AskedQuestion:
    """The dense and the sparse vector of a question, and how much the sparse one counts."""

    def __init__(self, fixed: FixedQuestion, sparse: SparseQuestion, sparse_weight: float) -> None:
        self.fixed, self.sparse, self.sparse_weight = fixed, sparse, sparse_weight
        self._documents: dict[SegmentView, NDArray[np.float64]] = {}
        self._paragraphs: dict[SegmentView, NDArray[np.float64]] = {}
        self._maxima: dict[SegmentView, NDArray[np.int32]] = {}

    def document_parts(self, segment: SegmentView) -> NDArray[np.float64]:
        """``[document]`` what each document adds to the score of its phrases."""
        found = self._documents.get(segment)
        if found is None:
            found = np.zeros(segment.reader.counts.documents)
            if self.sparse_weight:
                found = self.sparse_weight * segment.reader.postings.document_scores(self.sparse)
            self._documents[segment] = found
        return found

    def paragraph_parts(self, segment: SegmentView) -> NDArray[np.float64]:
        """``[paragraph]`` what each paragraph adds to the score of its phrases."""
        found = self._paragraphs.get(segment)
        if found is None:
            found = np.zeros(segment.reader.counts.paragraphs)
            if self.sparse_weight:
                found = self.sparse_weight * segment.reader.postings.paragraph_scores(self.sparse)
            self._paragraphs[segment] = found
        return found

    def sparse_parts(
        self, segment: SegmentView, paragraphs: NDArray[np.int64] | None = None
    ) -> NDArray[np.float64]:
        """Both together, of these paragraphs or of all."""
        of_documents, of_paragraphs = self.document_parts(segment), self.paragraph_parts(segment)
        if paragraphs is None:
            return of_documents[segment.documents] + of_paragraphs
        return of_documents[segment.documents[paragraphs]] + of_paragraphs[paragraphs]

    def maxima(self, view: SearchView, segment: SegmentView) -> NDArray[np.int32]:
        """``[paragraph]`` the highest score of a start row of each paragraph that may be found."""
        if segment not in self._maxima:
            scan([self], view, segment)
        return self._maxima[segment]


def scan(questions: Sequence[AskedQuestion], view: SearchView, segment: SegmentView) -> None:
    """Compute the maxima of several questions in one pass over the start rows."""
    rows = segment.reader.starts
    if segment.allows_all:
        codes = rows.codes.whole()
    else:  # what may not be found is not read either
        allowed = np.flatnonzero(segment.allowed_paragraphs)
        codes = rows.codes.within(rows.offsets[allowed], rows.offsets[allowed + 1])
    weights = np.stack([each.fixed.start_weights for each in questions])
    found = view.kernels.maxima(codes, rows.offsets, weights, segment.allowed_paragraphs)
    for question, maxima in zip(questions, found, strict=True):
        question._maxima[segment] = maxima
