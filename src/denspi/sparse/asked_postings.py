"""One question put to one segment: its lists are read once, and every score of it comes from them.

score(question, paragraph) = s'.s_paragraph and score(question, document) = s'.s_document (paper, section
4.2). Only units are stored: a document's counts are the sums over its units. Every path adds the same numbers
in the same order, so the same pair has the same score to the last bit. Belongs to one thread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from denspi.errors import InputError
from denspi.sparse.layout import COUNT_BITS, COUNT_MASK, Segment
from denspi.sparse.norms import Norms
from denspi.sparse.tfidf import SparseQuestion
from denspi.sparse.topk import Hits, best_of, reaching, top_positive

LOG_COUNTS = np.log1p(np.arange(1024))
AddUp = Callable[..., Any]
"""`compiled.add_up`."""


@dataclass(frozen=True, slots=True, eq=False)
class _Held:
    """The lists of those n-grams of a question that the segment holds."""

    places: NDArray[np.int64]  # [list] in the postings
    lengths: NDArray[np.int64]  # [list]
    factors: NDArray[np.float64]  # [list] the question's weight times idf


@dataclass(frozen=True, slots=True, eq=False)
class _Scores:
    """What a segment scores for a question."""

    units: NDArray[np.float64]  # [unit]
    documents: NDArray[np.float64]  # [document]
    touched: NDArray[np.int64]  # all units with a score, in no order
    repeats: int  # how often a unit may stand there


class AskedPostings:
    """`allowed` is as in `Postings`. With `add_up` (see `compiled`) lists are added up by a compiled loop."""

    def __init__(
        self, segment: Segment, norms: Norms, question: SparseQuestion, add_up: AddUp | None = None
    ) -> None:
        self._segment, self._norms, self._question, self._add_up = segment, norms, question, add_up

    @property
    def document_scores(self) -> NDArray[np.float64]:
        """The score of every document of the segment."""
        return self._scores.documents

    def paragraph_scores(self) -> NDArray[np.float64]:
        """The score of every paragraph of the segment."""
        return np.delete(self._scores.units, self._segment.document_units[:-1])

    def paragraph_scores_of(
        self, paragraphs: NDArray[np.int64], documents: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """The scores of these paragraphs, each of which is in the document beside it."""
        return np.asarray(self._scores.units[paragraphs + documents + 1])

    def top_documents(self, k: int, allowed: NDArray[np.bool_] | None = None) -> Hits:
        """The k documents closest to the question."""
        scores = self.document_scores
        if allowed is not None:
            scores = scores * checked_mask(allowed, len(scores), "documents")
        return top_positive(scores, k)

    def top_paragraphs(self, k: int, allowed: NDArray[np.bool_] | None = None) -> Hits:
        """The k paragraphs closest to the question, by their own vectors alone."""
        found = self._scores
        scores = found.units.take(found.touched)
        self._forbid(scores, found.touched, allowed)
        return self._best_paragraphs(found.touched, scores, k, found.repeats)

    def top_paragraphs_by_both(self, k: int, allowed: NDArray[np.bool_] | None = None) -> Hits:
        """The k paragraphs with the highest sum of paragraph and document score, as every phrase gets it."""
        found, documents = self._scores, self._segment.unit_documents
        scores = found.units.take(found.touched)
        scores += (scores > 0) * found.documents.take(documents.take(found.touched))  # nothing for titles
        self._forbid(scores, found.touched, allowed)
        hits = self._best_paragraphs(found.touched, scores, k, found.repeats)
        # A paragraph that shares nothing with the question has its document's score alone, seldom enough.
        needed = hits.scores[-1] if len(hits.scores) == k > 0 else 0.0
        close = np.flatnonzero((found.documents >= needed) & (found.documents > 0))
        if allowed is not None and len(close):
            close = close[self._holds_allowed(close, allowed)]
        if not len(close):
            return hits
        rest = self._segment.units_of_documents(close)
        of_rest = documents.take(rest)
        is_title = self._segment.document_units.take(of_rest) == rest
        is_other = (found.units.take(rest) == 0) & ~is_title
        rest, rest_scores = rest[is_other], found.documents.take(of_rest[is_other])
        self._forbid(rest_scores, rest, allowed)
        more = self._best_paragraphs(rest, rest_scores, k, 1)
        numbers = np.concatenate([hits.numbers, more.numbers])
        order = np.argsort(numbers)
        return best_of(numbers[order], np.concatenate([hits.scores, more.scores])[order], k)

    @cached_property
    def _scores(self) -> _Scores:
        return (self._added_up_compiled() if self._add_up else None) or self._added_up()

    def _added_up_compiled(self) -> _Scores | None:
        """The same by one loop; None where a count is too large for it."""
        assert self._add_up is not None
        held, segment, norms = self._held, self._segment, self._norms
        # Of zeros only those pages are touched that get another number.
        units, documents = np.zeros(segment.unit_count), np.zeros(segment.document_count)
        touched = np.empty(int(held.lengths.sum()), np.int64)
        seen = self._add_up(
            *(segment.postings, held.places, held.lengths, held.factors),
            *(norms.units, segment.unit_documents, norms.documents, LOG_COUNTS),
            *(units, documents, touched),
        )
        return _Scores(units, documents, touched[:seen], 1) if seen >= 0 else None

    @cached_property
    def _held(self) -> _Held:
        lengths, places = self._segment.lengths.look_up(self._question.ids)
        held = [each for each in zip(places, lengths, range(len(places)), strict=True) if each[1]]
        for place, length, _ in held:
            self._segment.check(place, place + length)
        columns = np.array(held, np.int64).reshape(-1, 3).T
        factors = self._question.weights * self._question.idf
        return _Held(columns[0], columns[1], factors[columns[2]])

    def _added_up(self) -> _Scores:
        """By numpy."""
        held, segment = self._held, self._segment
        slices = [(place, place + length) for place, length in zip(held.places, held.lengths, strict=True)]
        packed = np.concatenate([np.zeros(0, np.uint32), *(segment.postings[a:b] for a, b in slices)])
        counts = packed & COUNT_MASK
        if counts.max(initial=0) == COUNT_MASK:
            counts = np.concatenate([segment.counts_at(a, b) for a, b in slices])
        units = (packed >> COUNT_BITS).astype(np.int64)
        parts = _log_counts(counts)
        parts *= np.repeat(held.factors, held.lengths)
        parts *= self._norms.units.take(units, mode="clip")
        unit_scores = np.zeros(segment.unit_count)
        np.add.at(unit_scores, units, parts)
        document_scores = self._document_scores(units, counts)
        return _Scores(unit_scores, document_scores, units, len(held.lengths))

    def _document_scores(self, units: NDArray[np.int64], counts: NDArray[np.uint32]) -> NDArray[np.float64]:
        """Counts are added up within each list and document, which stand together."""
        held = self._held
        documents = self._segment.unit_documents.take(units, mode="clip")
        begins = np.ones(len(documents), np.bool_)
        np.not_equal(documents[1:], documents[:-1], out=begins[1:])
        ends = np.cumsum(held.lengths)
        begins[ends[:-1]] = True  # two lists may meet in one document
        first = np.flatnonzero(begins)
        sums = np.add.reduceat(counts, first) if len(first) else counts
        documents = documents[first]
        list_starts = np.searchsorted(first, np.concatenate([[0], ends]))
        parts = _log_counts(sums) * np.repeat(held.factors, np.diff(list_starts))
        parts *= self._norms.documents.take(documents, mode="clip")
        scores = np.zeros(self._segment.document_count)
        np.add.at(scores, documents, parts)
        return scores

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
            is_allowed = checked_mask(allowed, self._segment.paragraph_count, "paragraphs")
            scores[~is_allowed.take(self._paragraphs(units), mode="clip")] = 0  # a title scores 0 as it is

    def _holds_allowed(self, documents: NDArray[np.int64], allowed: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """``[document]`` whether one of its paragraphs may be found."""
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(allowed)])
        first = self._segment.document_units[documents].astype(np.int64) - documents
        last = self._segment.document_units[documents + 1].astype(np.int64) - documents - 1
        return np.asarray(before[last] > before[first])

    def _paragraphs(self, units: NDArray[np.int64]) -> NDArray[np.int64]:
        return units - self._segment.unit_documents.take(units, mode="clip") - 1


def checked_mask(allowed: NDArray[np.bool_], expected: int, what: str) -> NDArray[np.bool_]:
    """`InputError` unless it is a mask of so many."""
    if allowed.dtype != np.bool_ or allowed.shape != (expected,):
        raise InputError(
            f"the mask of allowed {what} has shape {allowed.shape}; this segment has {expected} {what}"
        )
    return allowed


def _log_counts(counts: NDArray[np.uint32]) -> NDArray[np.float64]:
    if counts.max(initial=0) < len(LOG_COUNTS):
        return LOG_COUNTS.take(counts, mode="clip")
    return np.log1p(counts.astype(np.float64))
