"""The kernels as compiled loops, one set for each length of rows: a constant length is a fifth faster.

Nothing imports this unasked: loading the compiler takes longer than a question. Products of codes and weights
fit into 32 bits (`fixed_point` sees to it), and without `fastmath` doubles are rounded as numpy rounds them.
The product of a row and a question stands in each loop: numba keeps no cache of a function that calls another
one made in the same way.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from denspi.search.batch_lanes import FEWEST_QUESTIONS, maxima_of_many
from denspi.search.fixed_point import FixedQuestion, KeyTables
from denspi.search.kernels import NO_ROW, PER_PARAGRAPH, Chosen, Kernels, KeyBounds, Phrases, Side
from denspi.search.weighing import ROUNDED_UP
from denspi.sparse.asked_postings import AddUp
from denspi.sparse.compiled import add_up

HIGHEST = np.iinfo(np.int32).max
_TOUCHED_ROWS, _LINE_BYTES = 128, 64


@functools.cache
def kernels_for(vector_dim: int, coherency_dim: int) -> Kernels:
    """Compiled at their first call, and from then on read from numba's cache."""
    return CompiledKernels(
        _maxima(vector_dim),
        _reaching(vector_dim),
        _row_scores(vector_dim),
        _best_phrases(vector_dim, coherency_dim),
        _key_bounds(coherency_dim),
        add_up,
    )


@dataclass(frozen=True, slots=True, eq=False)
class CompiledKernels:
    """See `kernels.Kernels`."""

    _maxima: Any
    _reaching: Any
    _row_scores: Any
    _best_phrases: Any
    _key_bounds: Any
    add_up: AddUp

    def maxima(
        self,
        codes: NDArray[Any],
        offsets: NDArray[np.int64],
        weights: NDArray[Any],
        is_wanted: NDArray[np.bool_],
    ) -> NDArray[np.int32]:
        """Every question looks at a paragraph while its rows are in the cache; many do so side by side."""
        if len(weights) >= FEWEST_QUESTIONS and codes.dtype == np.int8 and weights.dtype == np.int16:
            return maxima_of_many(codes, offsets, weights, is_wanted)
        found = np.full((len(weights), len(is_wanted)), NO_ROW, np.int32)
        self._maxima(codes, offsets, weights, is_wanted, found)
        return found

    def reaching(
        self,
        codes: NDArray[Any],
        offsets: NDArray[np.int64],
        weights: NDArray[Any],
        paragraphs: NDArray[np.int64],
        threshold: int,
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """One pass."""
        room = int((offsets[paragraphs + 1] - offsets[paragraphs]).sum())
        rows, scores = np.empty(room, np.int64), np.empty(room, np.int32)
        found = self._reaching(codes, offsets, weights, paragraphs, np.int32(threshold), rows, scores)
        return rows[:found], scores[:found]

    def row_scores(
        self, codes: NDArray[Any], weights: NDArray[Any], rows: NDArray[np.int64]
    ) -> NDArray[np.int32]:
        """One pass."""
        found = np.empty(len(rows), np.int32)
        self._row_scores(codes, weights, rows, found)
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
        """Ends are scored when the first start needs them."""
        shape = (len(chosen.paragraphs), PER_PARAGRAPH)
        found = Phrases(np.full(shape, -np.inf), np.full(shape, -1, np.int64), np.full(shape, -1, np.int64))
        self._best_phrases(
            *(chosen.paragraphs, chosen.rows, chosen.offsets, chosen.sparse),
            *(starts.codes, starts.keys, starts.words),
            *(ends.codes, ends.keys, ends.words, ends.offsets),
            *(question.start_weights, question.end_weights, tables.start, tables.end),
            *(question.step, question.start_shift, question.end_shift, question.coherency_unit),
            *(max_words, tops, found.scores, found.starts, found.ends),
        )
        return found

    def key_bounds(self, tables: KeyTables, starts: Side, ends: Side, max_words: int) -> KeyBounds:
        """One pass over the keys."""
        count = len(starts.offsets) - 1
        found = KeyBounds(np.zeros(count, np.int32), np.zeros(count, np.int32), np.zeros(count, np.bool_))
        self._key_bounds(
            *(starts.keys, starts.words, starts.offsets, ends.keys, ends.words, ends.offsets),
            *(tables.start, tables.end, max_words, found.least, found.greatest, found.has_phrase),
        )
        return found


def _maxima(dim: int) -> Any:
    @njit(cache=True, nogil=True)
    def maxima(codes, offsets, weights, is_wanted, found):  # type: ignore[no-untyped-def]
        for paragraph in range(len(is_wanted)):
            if is_wanted[paragraph]:
                for question in range(len(weights)):
                    best = np.int32(NO_ROW)
                    for row in range(offsets[paragraph], offsets[paragraph + 1]):
                        total = np.int32(0)
                        for d in range(dim):
                            total = np.int32(total + np.int32(codes[row, d]) * np.int32(weights[question, d]))
                        best = max(best, total)
                    found[question, paragraph] = best

    return maxima


def _reaching(dim: int) -> Any:
    @njit(cache=True, nogil=True)
    def reaching(codes, offsets, weights, paragraphs, threshold, rows, scores):  # type: ignore[no-untyped-def]
        found = 0
        for paragraph in paragraphs:
            for row in range(offsets[paragraph], offsets[paragraph + 1]):
                score = np.int32(0)
                for d in range(dim):
                    score = np.int32(score + np.int32(codes[row, d]) * np.int32(weights[d]))
                if score >= threshold:
                    rows[found], scores[found] = row, score
                    found += 1
        return found

    return reaching


def _row_scores(dim: int) -> Any:
    @njit(cache=True, nogil=True)
    def row_scores(codes, weights, rows, found):  # type: ignore[no-untyped-def]
        touched = 0
        for first in range(0, len(rows), _TOUCHED_ROWS):
            last = min(first + _TOUCHED_ROWS, len(rows))
            # The rows lie anywhere. Looking at each of their cache lines first, which waits for nothing, has
            # many of them on their way from memory at once: half the time.
            for n in range(first, last):
                for d in range(0, dim, _LINE_BYTES):
                    touched ^= codes[rows[n], d]
                touched ^= codes[rows[n], dim - 1]
            for n in range(first, last):
                row = rows[n]
                score = np.int32(0)
                for d in range(dim):
                    score = np.int32(score + np.int32(codes[row, d]) * np.int32(weights[d]))
                found[n] = score
        return touched  # or the compiler would leave out the looking

    return row_scores


def _best_phrases(dim: int, key_dim: int) -> Any:
    @njit(cache=True, nogil=True)
    def best_phrases(  # type: ignore[no-untyped-def]
        paragraphs, rows, row_offsets, sparse,
        start_codes, start_keys, start_words,
        end_codes, end_keys, end_words, end_offsets,
        start_weights, end_weights, start_table, end_table,
        step, start_shift, end_shift, coherency_unit,
        max_words, tops, scores, firsts, lasts,
    ):  # fmt: skip
        most_ends, most_starts = 0, 0
        for n in range(len(paragraphs)):
            most_ends = max(most_ends, end_offsets[paragraphs[n] + 1] - end_offsets[paragraphs[n]])
            most_starts = max(most_starts, row_offsets[n + 1] - row_offsets[n])
        end_parts, end_norms = np.empty(most_ends), np.empty(most_ends)
        end_values, key = np.empty((most_ends, key_dim), np.int16), np.empty(key_dim, np.int16)
        best_scores, best_ends = np.empty(most_starts), np.empty(most_starts, np.int64)
        size = abs(coherency_unit)
        for n in range(len(paragraphs)):
            first_end, stop = end_offsets[paragraphs[n]], end_offsets[paragraphs[n] + 1]
            first_row, count = row_offsets[n], row_offsets[n + 1] - row_offsets[n]
            low = ready = first_end  # ends before `low` are too early, from `ready` on not scored yet
            for i in range(count):
                row = rows[first_row + i]
                word = np.int64(start_words[row])
                total = np.int32(0)
                for d in range(dim):
                    total = np.int32(total + np.int32(start_codes[row, d]) * np.int32(start_weights[d]))
                start = step * total + start_shift
                square = np.int64(0)
                for d in range(key_dim):
                    value = start_table[np.int64(start_keys[row, d]) + 128, d]
                    key[d] = value
                    square += np.int64(value) * np.int64(value)
                room = size * (np.sqrt(square) * ROUNDED_UP)
                while low < stop and np.int64(end_words[low]) < word:
                    low += 1
                ready = max(ready, low)
                best_ends[i] = -1
                floor = tops[0]
                end = low
                while end < stop and np.int64(end_words[end]) < word + max_words:
                    place = end - first_end
                    if end >= ready:
                        total = np.int32(0)
                        for d in range(dim):
                            total = np.int32(total + np.int32(end_codes[end, d]) * np.int32(end_weights[d]))
                        end_parts[place] = step * total + end_shift
                        square = np.int64(0)
                        for d in range(key_dim):
                            value = end_table[np.int64(end_keys[end, d]) + 128, d]
                            end_values[place, d] = value
                            square += np.int64(value) * np.int64(value)
                        end_norms[place] = np.sqrt(square) * ROUNDED_UP
                        ready = end + 1
                    both = start + end_parts[place]
                    # A product is at most that of the lengths: most pairs need no more than that.
                    if (both + room * end_norms[place]) + sparse[n] >= floor:
                        product = np.int32(0)
                        for d in range(key_dim):
                            product = np.int32(product + np.int32(key[d]) * np.int32(end_values[place, d]))
                        score = (both + coherency_unit * product) + sparse[n]
                        if score > floor or (score == floor and best_ends[i] < 0):
                            best_scores[i], best_ends[i] = score, end
                            floor = score
                    end += 1
            for nth in range(PER_PARAGRAPH):
                at = -1
                for i in range(count):
                    if best_ends[i] >= 0 and (at < 0 or best_scores[i] > best_scores[at]):
                        at = i
                if at < 0:
                    break
                score = best_scores[at]
                scores[n, nth], firsts[n, nth], lasts[n, nth] = score, rows[first_row + at], best_ends[at]
                place = 0
                while place < len(tops) and tops[place] < score:
                    if place:
                        tops[place - 1] = tops[place]
                    place += 1
                if place:
                    tops[place - 1] = score
                first_word, last_word = start_words[rows[first_row + at]], end_words[best_ends[at]]
                for i in range(count):
                    if (
                        best_ends[i] >= 0
                        and start_words[rows[first_row + i]] <= last_word
                        and end_words[best_ends[i]] >= first_word
                    ):
                        best_ends[i] = -1

    return best_phrases


def _key_bounds(key_dim: int) -> Any:
    @njit(cache=True, nogil=True)
    def key_bounds(  # type: ignore[no-untyped-def]
        start_keys, start_words, start_offsets, end_keys, end_words, end_offsets,
        start_table, end_table, max_words, least, greatest, has_phrase,
    ):  # fmt: skip
        most_ends = 0
        for paragraph in range(len(least)):
            most_ends = max(most_ends, end_offsets[paragraph + 1] - end_offsets[paragraph])
        keys, key = np.empty((most_ends, key_dim), np.int16), np.empty(key_dim, np.int16)
        for paragraph in range(len(least)):
            first_end, stop = end_offsets[paragraph], end_offsets[paragraph + 1]
            for end in range(first_end, stop):
                for d in range(key_dim):
                    keys[end - first_end, d] = end_table[np.int64(end_keys[end, d]) + 128, d]
            low, high = first_end, first_end  # the ends that a start may have
            lowest, highest = np.int32(HIGHEST), np.int32(NO_ROW)
            for row in range(start_offsets[paragraph], start_offsets[paragraph + 1]):
                word = np.int64(start_words[row])
                while low < stop and np.int64(end_words[low]) < word:
                    low += 1
                high = max(high, low)
                while high < stop and np.int64(end_words[high]) < word + max_words:
                    high += 1
                if low < high:
                    for d in range(key_dim):
                        key[d] = start_table[np.int64(start_keys[row, d]) + 128, d]
                for place in range(low - first_end, high - first_end):
                    product = np.int32(0)
                    for d in range(key_dim):
                        product = np.int32(product + np.int32(key[d]) * np.int32(keys[place, d]))
                    lowest, highest = min(lowest, product), max(highest, product)
            if lowest <= highest:
                least[paragraph], greatest[paragraph], has_phrase[paragraph] = lowest, highest, True

    return key_bounds
