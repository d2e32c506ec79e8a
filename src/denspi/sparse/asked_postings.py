"""One question put to one segment: its lists are read once, and every score of it comes from them.

score(question, paragraph) = s'.s_paragraph and score(question, document) = s'.s_document (paper, section
4.2). Only units are stored: a document's counts are the sums over its units. Every path adds the same numbers
in the same order, so the same pair has the same score to the last bit. Belongs to one thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from denspi.errors import InputError
from denspi.sparse.layout import COUNT_BITS, COUNT_MASK, Segment
from denspi.sparse.norms import Norms
from denspi.sparse.tfidf import SparseQuestion
from denspi.sparse.topk import Hits, best_of, reaching

LOG_COUNTS = np.log1p(np.arange(1024))


@dataclass(frozen=True, slots=True)
class _Lists:
    """The lists of those n-grams of a question that the segment holds, one after another."""

    units: NDArray[np.int64]  # [posting]; as numpy wants its indices
    counts: NDArray[np.uint32]  # [posting]
    lengths: list[int]  # [list]
    factors: list[float]  # [list] the question's weight times idf


class AskedPostings:
    """`allowed` is as in `Postings`."""

    def __init__(self, segment: Segment, norms: Norms, question: SparseQuestion) -> None:
        self._segment, self._norms, self._question = segment, norms, question

    @cached_property
    def document_scores(self) -> NDArray[np.float64]:
        """The score of every document of the segment."""
        lists = self._lists
        documents = self._segment.unit_documents.take(lists.units, mode="clip")
        begins = np.ones(len(documents), np.bool_)
        np.not_equal(documents[1:], documents[:-1], out=begins[1:])
        ends = np.cumsum(lists.lengths, dtype=np.int64)
        begins[ends[:-1]] = True  # two lists may meet in one document
        first = np.flatnonzero(begins)
        counts = np.add.reduceat(lists.counts, first) if len(first) else lists.counts
        documents = documents[first]
        list_starts = np.searchsorted(first, np.concatenate([[0], ends]))
        parts = _log_counts(counts) * np.repeat(lists.factors, np.diff(list_starts))
        parts *= self._norms.documents.take(documents, mode="clip")
        scores = np.zeros(self._segment.document_count)
        np.add.at(scores, documents, parts)
        return scores

    def paragraph_scores(self) -> NDArray[np.float64]:
        """The score of every paragraph of the segment."""
        return np.delete(self._unit_scores, self._segment.document_units[:-1])

    def paragraph_scores_of(
        self, paragraphs: NDArray[np.int64], documents: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """The scores of these paragraphs, each of which is in the document beside it."""
        return np.asarray(self._unit_scores[paragraphs + documents + 1])

    def top_paragraphs(self, k: int, allowed: NDArray[np.bool_] | None = None) -> Hits:
        """The k paragraphs closest to the question, by their own vectors alone."""
        scores = self._unit_scores.take(self._lists.units)
        self._forbid(scores, self._lists.units, allowed)
        return self._best_paragraphs(self._lists.units, scores, k, len(self._lists.lengths))

    def top_paragraphs_by_both(self, k: int, allowed: NDArray[np.bool_] | None = None) -> Hits:
        """The k paragraphs with the highest sum of paragraph and document score, as every phrase gets it."""
        units, by_document = self._lists.units, self.document_scores
        scores = self._unit_scores.take(units)
        scores += by_document.take(self._segment.unit_documents.take(units))
        scores[self._norms.units.take(units) == 0] = 0  # titles
        self._forbid(scores, units, allowed)
        hits = self._best_paragraphs(units, scores, k, len(self._lists.lengths))
        # A paragraph that shares nothing with the question has its document's score alone, seldom enough.
        needed = hits.scores[-1] if len(hits.scores) == k > 0 else 0.0
        close = np.flatnonzero((by_document >= needed) & (by_document > 0))
        if allowed is not None and len(close):
            close = close[self._holds_allowed(close, allowed)]
        if not len(close):
            return hits
        titles = self._segment.document_units[close].astype(np.int64)
        rest = np.setdiff1d(self._segment.units_of_documents(close), np.concatenate([units, titles]))
        rest_scores = by_document.take(self._segment.unit_documents.take(rest))
        self._forbid(rest_scores, rest, allowed)
        more = self._best_paragraphs(rest, rest_scores, k, 1)
        numbers = np.concatenate([hits.numbers, more.numbers])
        order = np.argsort(numbers)
        return best_of(numbers[order], np.concatenate([hits.scores, more.scores])[order], k)

    @cached_property
    def _unit_scores(self) -> NDArray[np.float64]:
        """``[unit]`` the score of each; of zeros only those pages are touched that get another number."""
        lists = self._lists
        parts = _log_counts(lists.counts)
        parts *= np.repeat(lists.factors, lists.lengths)
        parts *= self._norms.units.take(lists.units, mode="clip")
        scores = np.zeros(self._segment.unit_count)
        np.add.at(scores, lists.units, parts)
        return scores

    @cached_property
    def _lists(self) -> _Lists:
        segment, question = self._segment, self._question
        lengths, places = segment.lengths.look_up(question.ids)
        factors = (question.weights * question.idf).tolist()
        held = [each for each in zip(places, lengths, factors, strict=True) if each[1]]
        stored = [segment.read(place, place + length) for place, length, _ in held]
        packed = np.concatenate([np.zeros(0, np.uint32), *stored])
        counts = packed & COUNT_MASK
        if counts.max(initial=0) == COUNT_MASK:
            slices = (segment.counts_at(place, place + length) for place, length, _ in held)
            counts = np.concatenate([*slices])
        units = (packed >> COUNT_BITS).astype(np.int64)
        return _Lists(units, counts, [each[1] for each in held], [each[2] for each in held])

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
