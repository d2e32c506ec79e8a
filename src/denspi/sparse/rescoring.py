"""Sparse scores of given documents and paragraphs, and why they are so. Reads single postings, ranks nothing.

For rescoring candidates found elsewhere, and for `--explain`. Agrees with `Postings` to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from denspi.errors import InputError
from denspi.sparse.layout import COUNT_BITS, Segment
from denspi.sparse.ngrams import name_ngrams
from denspi.sparse.postings import Postings
from denspi.sparse.tfidf import SparseQuestion


@dataclass(frozen=True, slots=True)
class Match:
    """An n-gram of the question that a document or paragraph holds, how often, and its part of the score."""

    ngram: str
    count: int
    score: float


def paragraph_scores_of(
    postings: Postings, question: SparseQuestion, paragraphs: NDArray[np.integer]
) -> NDArray[np.float64]:
    """The scores of the paragraphs with these numbers."""
    segment = postings.segment
    units = segment.units_of(_checked(paragraphs, segment.paragraph_count, "paragraph"))
    norms = postings.norms.units[units].astype(np.float64)
    return _total(_counts_between(segment, question, units, units + 1), norms)


def document_scores_of(
    postings: Postings, question: SparseQuestion, documents: NDArray[np.integer]
) -> NDArray[np.float64]:
    """The scores of the documents with these numbers."""
    segment = postings.segment
    documents = _checked(documents, segment.document_count, "document")
    begins, ends = segment.document_units[documents], segment.document_units[documents + 1]
    norms = postings.norms.documents[documents].astype(np.float64)
    return _total(_counts_between(segment, question, begins, ends), norms)


def explain_paragraph(postings: Postings, question: SparseQuestion, paragraph: int) -> list[Match]:
    """The n-grams that the question shares with a paragraph, heaviest first; they add up to its score."""
    segment = postings.segment
    units = segment.units_of(_checked(np.array([paragraph]), segment.paragraph_count, "paragraph"))
    return _matches(segment, question, units, units + 1, float(postings.norms.units[units[0]]))


def explain_document(postings: Postings, question: SparseQuestion, document: int) -> list[Match]:
    """The n-grams that the question shares with a document, heaviest first; they add up to its score."""
    segment = postings.segment
    number = _checked(np.array([document]), segment.document_count, "document")
    begins, ends = segment.document_units[number], segment.document_units[number + 1]
    return _matches(segment, question, begins, ends, float(postings.norms.documents[document]))


def _counts_between(
    segment: Segment, question: SparseQuestion, begins: NDArray[np.integer], ends: NDArray[np.integer]
) -> Iterator[tuple[int, float, NDArray[np.int64]]]:
    """For each n-gram that the segment holds: its id, its factor, and its count in each unit range."""
    factors = (question.weights * question.idf).tolist()
    lengths, places = segment.lengths.look_up(question.ids)
    for ngram_id, factor, length, place in zip(question.ids.tolist(), factors, lengths, places, strict=True):
        if length:
            units = segment.read(place, place + length) >> COUNT_BITS
            running = np.concatenate(
                [[0], np.cumsum(segment.counts_at(place, place + length), dtype=np.int64)]
            )
            yield (
                ngram_id,
                factor,
                running[np.searchsorted(units, ends)] - running[np.searchsorted(units, begins)],
            )


def _total(
    counted: Iterator[tuple[int, float, NDArray[np.int64]]], norms: NDArray[np.float64]
) -> NDArray[np.float64]:
    total = np.zeros(len(norms))
    for _, factor, counts in counted:
        total += np.log1p(counts) * factor * norms
    return total


def _matches(
    segment: Segment,
    question: SparseQuestion,
    begins: NDArray[np.integer],
    ends: NDArray[np.integer],
    norm: float,
) -> list[Match]:
    names = name_ngrams(question.text)
    found = [
        Match(names[ngram_id], int(counts[0]), float(np.log1p(counts[0]) * factor * norm))
        for ngram_id, factor, counts in _counts_between(segment, question, begins, ends)
        if counts[0]
    ]
    return sorted(found, key=lambda match: (-match.score, match.ngram))


def _checked(numbers: NDArray[np.integer], limit: int, what: str) -> NDArray[np.int64]:
    if len(numbers) and not 0 <= int(numbers.min()) <= int(numbers.max()) < limit:
        raise InputError(f"no such {what} in this segment: its {limit} are numbered from 0")
    return numbers.astype(np.int64)
