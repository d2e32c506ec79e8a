"""Top documents and paragraphs of one segment for a sparse question, exactly. Reads lists, writes nothing.

score(question, paragraph) = s'.s_paragraph and score(question, document) = s'.s_document; a phrase gets the
sum of both (paper, section 4.2). Only units are stored: a document's counts are the sums over its units.
Every path adds the same numbers in the same order, so the same pair has the same score to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from denspi.errors import InputError, MissingExtraError
from denspi.sparse.layout import COUNT_BITS, COUNT_MASK, Segment
from denspi.sparse.norms import Norms
from denspi.sparse.tfidf import SparseQuestion
from denspi.sparse.topk import Hits, best_of, reaching, top_positive

_LOG_COUNTS = np.log1p(np.arange(1024))


@dataclass(frozen=True, slots=True)
class _Lists:
    """The lists of those n-grams of a question that the segment holds, one after another."""

    units: NDArray[np.int64]  # [posting]; as numpy wants its indices
    counts: NDArray[np.uint32]  # [posting]
    lengths: list[int]  # [list]
    factors: list[float]  # [list] the question's weight times idf


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

    def top_documents(
        self, question: SparseQuestion, k: int, allowed: NDArray[np.bool_] | None = None
    ) -> Hits:
        """The k documents closest to the question."""
        scores = self.document_scores(question)
        if allowed is not None:
            scores[~_checked(allowed, len(scores), "documents")] = 0
        return top_positive(scores, k)

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
        lists = self._read(question)
        scores = self._touched_scores(lists)
        self._forbid(scores, lists.units, allowed)
        return self._best_paragraphs(lists.units, scores, k, len(lists.lengths))

    def top_paragraphs_by_both(
        self, question: SparseQuestion, k: int, allowed: NDArray[np.bool_] | None = None
    ) -> Hits:
        """The k paragraphs with the highest sum of paragraph and document score, as every phrase gets it."""
        lists = self._read(question)
        by_document = self._document_scores(lists)
        units = lists.units
        scores = self._touched_scores(lists)
        scores += by_document.take(self.segment.unit_documents.take(units))
        scores[self.norms.units.take(units) == 0] = 0  # titles
        self._forbid(scores, units, allowed)
        hits = self._best_paragraphs(units, scores, k, len(lists.lengths))
        # A paragraph that shares nothing with the question has its document's score alone, seldom enough.
        needed = hits.scores[-1] if len(hits.scores) == k > 0 else 0.0
        close = np.flatnonzero((by_document >= needed) & (by_document > 0))
        if not len(close):
            return hits
        rest = np.concatenate([np.arange(*self.segment.document_units[each : each + 2]) for each in close])
        rest = np.setdiff1d(rest, np.concatenate([units, self.segment.document_units[close]]))
        rest_scores = by_document.take(self.segment.unit_documents.take(rest))
        self._forbid(rest_scores, rest, allowed)
        more = self._best_paragraphs(rest, rest_scores, k, 1)
        numbers = np.concatenate([hits.numbers, more.numbers])
        order = np.argsort(numbers)
        return best_of(numbers[order], np.concatenate([hits.scores, more.scores])[order], k)

    def document_scores(self, question: SparseQuestion) -> NDArray[np.float64]:
        """The score of every document of the segment."""
        return self._document_scores(self._read(question))

    def paragraph_scores(self, question: SparseQuestion) -> NDArray[np.float64]:
        """The score of every paragraph of the segment."""
        lists = self._read(question)
        scores = np.zeros(self.segment.unit_count)
        np.add.at(scores, lists.units, self._unit_parts(lists))
        return np.delete(scores, self.segment.document_units[:-1])

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
        stored = self.segment.postings, places, lengths, factors, self.norms.units, _LOG_COUNTS
        found = self._best_units(*stored, sums, units, scores)
        self._spare.append(sums)
        return Hits(self._paragraphs(units[:found].astype(np.int64)), scores[:found]) if found >= 0 else None

    def _document_scores(self, lists: _Lists) -> NDArray[np.float64]:
        documents = self.segment.unit_documents.take(lists.units, mode="clip")
        begins = np.ones(len(documents), np.bool_)
        np.not_equal(documents[1:], documents[:-1], out=begins[1:])
        ends = np.cumsum(lists.lengths, dtype=np.int64)
        begins[ends[:-1]] = True  # two lists may meet in one document
        first = np.flatnonzero(begins)
        counts = np.add.reduceat(lists.counts, first) if len(first) else lists.counts
        documents = documents[first]
        list_starts = np.searchsorted(first, np.concatenate([[0], ends]))
        parts = _log_counts(counts) * np.repeat(lists.factors, np.diff(list_starts))
        parts *= self.norms.documents.take(documents, mode="clip")
        scores = np.zeros(self.segment.document_count)
        np.add.at(scores, documents, parts)
        return scores

    def _touched_scores(self, lists: _Lists) -> NDArray[np.float64]:
        """The paragraph score of each posting's unit: a unit stands there once for each of its lists."""
        sums = self._zeroed_sums()
        np.add.at(sums, lists.units, self._unit_parts(lists))
        scores = sums.take(lists.units, mode="clip")
        sums[lists.units] = 0
        self._spare.append(sums)
        return scores

    def _zeroed_sums(self) -> NDArray[np.float64]:
        try:
            return self._spare.pop()
        except IndexError:  # every array is at work in another thread
            return np.zeros(self.segment.unit_count)

    def _best_paragraphs(
        self, units: NDArray[np.int64], scores: NDArray[np.float64], k: int, most_repeats: int
    ) -> Hits:
        """The k best of units that are no titles or score 0; each stands there up to `most_repeats` times."""
        places = reaching(scores, k * most_repeats)
        best_units, place = np.unique(units[places], return_index=True)
        return best_of(self._paragraphs(best_units), scores[places][place], k)

    def _forbid(
        self, scores: NDArray[np.float64], units: NDArray[np.int64], allowed: NDArray[np.bool_] | None
    ) -> None:
        if allowed is not None:
            is_allowed = _checked(allowed, self.segment.paragraph_count, "paragraphs")
            scores[~is_allowed.take(self._paragraphs(units), mode="clip")] = 0  # a title scores 0 as it is

    def _paragraphs(self, units: NDArray[np.int64]) -> NDArray[np.int64]:
        return units - self.segment.unit_documents.take(units, mode="clip") - 1

    def _unit_parts(self, lists: _Lists) -> NDArray[np.float64]:
        """What each posting adds to the score of its unit."""
        parts = _log_counts(lists.counts)
        parts *= np.repeat(lists.factors, lists.lengths)
        parts *= self.norms.units.take(lists.units, mode="clip")
        return parts

    def _read(self, question: SparseQuestion) -> _Lists:
        lengths, places = self.segment.lengths.look_up(question.ids)
        factors = (question.weights * question.idf).tolist()
        held = [each for each in zip(places, lengths, factors, strict=True) if each[1]]
        packed = np.concatenate(
            [
                np.zeros(0, np.uint32),
                *(self.segment.read(place, place + length) for place, length, _ in held),
            ]
        )
        counts = packed & COUNT_MASK
        if counts.max(initial=0) == COUNT_MASK:
            slices = (self.segment.counts_at(place, place + length) for place, length, _ in held)
            counts = np.concatenate([*slices])
        units = (packed >> COUNT_BITS).astype(np.int64)
        return _Lists(units, counts, [each[1] for each in held], [each[2] for each in held])


def _compiled_search() -> Callable[..., int]:
    try:
        from denspi.sparse.compiled import best_units
    except ImportError:
        raise MissingExtraError("the compiled search", "fast") from None
    return cast(Callable[..., int], best_units)


def _log_counts(counts: NDArray[np.uint32]) -> NDArray[np.float64]:
    if counts.max(initial=0) < len(_LOG_COUNTS):
        return _LOG_COUNTS.take(counts, mode="clip")
    return np.log1p(counts.astype(np.float64))


def _checked(allowed: NDArray[np.bool_], expected: int, what: str) -> NDArray[np.bool_]:
    if allowed.dtype != np.bool_ or allowed.shape != (expected,):
        raise InputError(
            f"the mask of allowed {what} has shape {allowed.shape}; this segment has {expected} {what}"
        )
    return allowed
