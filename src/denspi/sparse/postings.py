"""Top documents and paragraphs of one segment for a sparse question, exactly. Reads lists, writes nothing.

A phrase gets the sum of its paragraph's and its document's score (`asked_postings`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np
from numpy.typing import NDArray

from denspi.errors import MissingExtraError
from denspi.sparse.asked_postings import LOG_COUNTS, AddUp, AskedPostings
from denspi.sparse.layout import Segment
from denspi.sparse.norms import Norms
from denspi.sparse.tfidf import SparseQuestion
from denspi.sparse.topk import Hits


class Postings:
    """One searchable segment. Threads may share it.

    `allowed` is a mask over all documents or paragraphs of the segment; what it forbids is left out *before*
    the cut to k. Only scores above 0 are hits. With `compiled`, `top_paragraphs` without a mask is a compiled
    loop (see `compiled`), worth its start in programs that answer many questions.
    """

    def __init__(self, segment: Segment, norms: Norms, compiled: bool = False) -> None:
        self.segment = segment
        self.norms = norms
        self._best_units = _compiled_search() if compiled else None
        self._spare: list[NDArray[np.float64]] = []  # zeroed sums, one per thread at work

    def asked(self, question: SparseQuestion, add_up: AddUp | None = None) -> AskedPostings:
        """For several scores of one question: its lists are read once, with `add_up` by a compiled loop."""
        return AskedPostings(self.segment, self.norms, question, add_up)

    def top_documents(
        self, question: SparseQuestion, k: int, allowed: NDArray[np.bool_] | None = None
    ) -> Hits:
        """The k documents closest to the question."""
        return self.asked(question).top_documents(k, allowed)

    def top_paragraphs(
        self, question: SparseQuestion, k: int, allowed: NDArray[np.bool_] | None = None
    ) -> Hits:
        """The k paragraphs closest to the question, by their own vectors alone.

        Looks at the paragraphs in the question's lists only, so its time does not grow with the segment.
        """
        if self._best_units is not None and allowed is None and k > 0 and self.segment.paragraph_count:
            hits = self._compiled_paragraphs(question, k)
            if hits is not None:
                return hits
        return self.asked(question).top_paragraphs(k, allowed)

    def top_paragraphs_by_both(
        self, question: SparseQuestion, k: int, allowed: NDArray[np.bool_] | None = None
    ) -> Hits:
        """The k paragraphs with the highest sum of paragraph and document score, as every phrase gets it."""
        return self.asked(question).top_paragraphs_by_both(k, allowed)

    def document_scores(self, question: SparseQuestion) -> NDArray[np.float64]:
        """The score of every document of the segment."""
        return self.asked(question).document_scores

    def paragraph_scores(self, question: SparseQuestion) -> NDArray[np.float64]:
        """The score of every paragraph of the segment."""
        return self.asked(question).paragraph_scores()

    def documents_of_paragraphs(self) -> NDArray[np.uint32]:
        """The document number of every paragraph of the segment."""
        return np.delete(self.segment.unit_documents, self.segment.document_units[:-1])

    def _compiled_paragraphs(self, question: SparseQuestion, k: int) -> Hits | None:
        """The same as the rest of `top_paragraphs`; None where a count overflows its posting."""
        assert self._best_units is not None
        lengths, places = (np.array(each, np.int64) for each in self.segment.lengths.look_up(question.ids))
        for place, length in zip(places.tolist(), lengths.tolist(), strict=True):
            self.segment.check(place, place + length)
        k = min(k, self.segment.paragraph_count)
        units, scores = np.zeros(k, np.uint32), np.zeros(k)
        sums = self._zeroed_sums()
        factors = question.weights * question.idf
        stored = self.segment.postings, places, lengths, factors, self.norms.units, LOG_COUNTS
        found = self._best_units(*stored, sums, units, scores)
        self._spare.append(sums)
        return Hits(self._paragraphs(units[:found].astype(np.int64)), scores[:found]) if found >= 0 else None

    def _zeroed_sums(self) -> NDArray[np.float64]:
        try:
            return self._spare.pop()
        except IndexError:  # every array is at work in another thread
            return np.zeros(self.segment.unit_count)

    def _paragraphs(self, units: NDArray[np.int64]) -> NDArray[np.int64]:
        return units - self.segment.unit_documents.take(units, mode="clip") - 1


def _compiled_search() -> Callable[..., int]:
    try:
        from denspi.sparse.compiled import best_units
    except ImportError:
        raise MissingExtraError("the compiled search", "fast") from None
    return cast(Callable[..., int], best_units)
