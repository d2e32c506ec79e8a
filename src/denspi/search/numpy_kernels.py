"""The kernels in numpy. Integers are multiplied as doubles, which hold them exactly: BLAS may sum at will."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from denspi.index.rows import rows_of
from denspi.search.fixed_point import FixedQuestion, KeyTables
from denspi.search.kernels import NO_ROW, PER_PARAGRAPH, Chosen, KeyBounds, Phrases, Side
from denspi.search.row_numbers import plain_products
from denspi.search.weighing import Doubles

_BLOCK_ROWS = 1024  # as doubles they stay in the cache
Products = Callable[[NDArray[Any], NDArray[Any]], Doubles]
"""Scores ``[row, question]`` of rows of codes and weights ``[question, weight]``."""


@dataclass(frozen=True, slots=True, eq=False)
class NumpyKernels:
    """See `kernels.Kernels`."""

    products: Products = plain_products
    add_up: None = None

    def maxima(
        self,
        codes: NDArray[Any],
        offsets: NDArray[np.int64],
        weights: NDArray[Any],
        is_wanted: NDArray[np.bool_],
    ) -> NDArray[np.int32]:
        """By blocks of rows; unwanted paragraphs are not read."""
        found = np.full((len(weights), len(is_wanted)), NO_ROW, np.int32)
        paragraphs = np.flatnonzero(is_wanted & (offsets[1:] > offsets[:-1]))
        for part in blocks(offsets, paragraphs):
            rows = rows_of(offsets, part)
            scores = self.products(codes[rows], weights)  # [row, question]
            firsts = np.cumsum(offsets[part + 1] - offsets[part]) - (offsets[part + 1] - offsets[part])
            found[:, part] = np.maximum.reduceat(scores, firsts, axis=0).T
        return found

    def reaching(
        self,
        codes: NDArray[Any],
        offsets: NDArray[np.int64],
        weights: NDArray[Any],
        paragraphs: NDArray[np.int64],
        threshold: int,
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """By blocks of rows."""
        rows, scores = [np.zeros(0, np.int64)], [np.zeros(0, np.int32)]
        for part in blocks(offsets, paragraphs):
            numbers = rows_of(offsets, part)
            found = self.products(codes[numbers], weights[None])[:, 0]
            reaches = found >= threshold
            rows.append(numbers[reaches])
            scores.append(found[reaches].astype(np.int32))
        return np.concatenate(rows), np.concatenate(scores)

    def row_scores(
        self, codes: NDArray[Any], weights: NDArray[Any], rows: NDArray[np.int64]
    ) -> NDArray[np.int32]:
        """By blocks of rows."""
        found = np.empty(len(rows), np.int32)
        for first in range(0, len(rows), _BLOCK_ROWS):
            block = codes[rows[first : first + _BLOCK_ROWS]]
            found[first : first + _BLOCK_ROWS] = self.products(block, weights[None])[:, 0]
        return found

    def best_phrases(
        self,
        question: FixedQuestion,
        tables: KeyTables,
        starts: Side,
        ends: Side,
        chosen: Chosen,
        max_words: int,
        tops: NDArray[np.float64],
    ) -> Phrases:
        """Paragraph by paragraph, as a table of all its starts and ends."""
        shape = (len(chosen.paragraphs), PER_PARAGRAPH)
        scores = np.full(shape, -np.inf)
        first, last = np.full(shape, -1, np.int64), np.full(shape, -1, np.int64)
        start_weights, end_weights = question.start_weights[None], question.end_weights[None]
        for n, paragraph in enumerate(chosen.paragraphs.tolist()):
            rows = chosen.rows[chosen.offsets[n] : chosen.offsets[n + 1]]
            stop = slice(*ends.offsets[paragraph : paragraph + 2].tolist())
            words, end_words = starts.words[rows].astype(np.int64), ends.words[stop].astype(np.int64)
            if not len(words) or not len(end_words):
                continue
            start = question.step * self.products(starts.codes[rows], start_weights)[:, 0]
            end = question.step * self.products(ends.codes[stop], end_weights)[:, 0]
            products = _products(tables, starts.keys[rows], ends.keys[stop])
            table = (start + question.start_shift)[:, None] + (end + question.end_shift)
            table += question.coherency_unit * products
            table += chosen.sparse[n]
            table[~_is_phrase(words, end_words, max_words)] = -np.inf
            best = table.argmax(axis=1)  # the best end of each start
            best_scores, best_words = table[np.arange(len(rows)), best], end_words[best]
            for nth in range(PER_PARAGRAPH):
                at = int(best_scores.argmax())
                if best_scores[at] == -np.inf:
                    break
                scores[n, nth] = best_scores[at]
                first[n, nth], last[n, nth] = rows[at], stop.start + best[at]
                best_scores[(words <= best_words[at]) & (best_words >= words[at])] = -np.inf
        tops[:] = np.sort(np.concatenate([tops, scores.ravel()]))[-len(tops) :]
        return Phrases(scores, first, last)

    def key_bounds(self, tables: KeyTables, starts: Side, ends: Side, max_words: int) -> KeyBounds:
        """Paragraph by paragraph."""
        count = len(starts.offsets) - 1
        least, greatest = np.zeros(count, np.int32), np.zeros(count, np.int32)
        has_phrase = np.zeros(count, np.bool_)
        for paragraph in range(count):
            rows = slice(*starts.offsets[paragraph : paragraph + 2].tolist())
            stop = slice(*ends.offsets[paragraph : paragraph + 2].tolist())
            words, end_words = starts.words[rows].astype(np.int64), ends.words[stop].astype(np.int64)
            products = _products(tables, starts.keys[rows], ends.keys[stop])[
                _is_phrase(words, end_words, max_words)
            ]
            if len(products):
                least[paragraph], greatest[paragraph] = products.min(), products.max()
                has_phrase[paragraph] = True
        return KeyBounds(least, greatest, has_phrase)


def blocks(offsets: NDArray[np.int64], paragraphs: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Runs of paragraphs of about `_BLOCK_ROWS` rows; one with more rows is a run of its own."""
    before = np.cumsum(offsets[paragraphs + 1] - offsets[paragraphs]) // _BLOCK_ROWS
    return np.split(paragraphs, np.flatnonzero(before[1:] != before[:-1]) + 1) if len(paragraphs) else []


def _products(tables: KeyTables, start_keys: NDArray[np.int8], end_keys: NDArray[np.int8]) -> Doubles:
    """Products of keys ``[start, end]``: whole numbers."""
    columns = np.arange(start_keys.shape[1])
    start = tables.start[start_keys.astype(np.intp) + 128, columns].astype(np.float64)
    end = tables.end[end_keys.astype(np.intp) + 128, columns].astype(np.float64)
    return np.asarray(start @ end.T)


def _is_phrase(words: NDArray[np.int64], end_words: NDArray[np.int64], max_words: int) -> NDArray[np.bool_]:
    lengths = end_words - words[:, None]  # in words, less one
    return (lengths >= 0) & (lengths < max_words)
