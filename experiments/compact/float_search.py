"""The hybrid search in unfiltered floats: what every index is measured against. Slow, plain, in blocks.

The candidates are those of `denspi.search.strategies.hybrid` (the closest starts, and all phrases of the
paragraphs closest by words), the score is Equation 2, and the sparse half is that of an index of the same
documents. Run on the decoded rows of an int8 index, it must answer as the product does on that index.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from stored_vectors import StoredVectors

from denspi.search.asked import AskedQuestion
from denspi.search.candidates import Limits
from denspi.search.strategies import top_paragraphs
from denspi.search.view import SearchView
from denspi.vectors import MAX_PHRASE_WORDS, QuestionVectors

_BLOCK_WORDS = 1 << 15


@dataclass(frozen=True)
class Rows:
    """Vectors of all words; those that an index would give back, or the model's own."""

    starts: np.ndarray  # [word, dim]
    ends: np.ndarray
    start_keys: np.ndarray  # [word, coherency_dim]
    end_keys: np.ndarray


class FloatSearch:
    """Over the words of `stored`; `view` is an index of the same documents in one segment."""

    def __init__(self, stored: StoredVectors, view: SearchView) -> None:
        (self._segment,) = view.segments
        self._view, self._words = view, stored.words
        self._can_start, self._can_end = (np.asarray(stored.words[f"can_{s}"]) for s in ("start", "end"))
        self._ends_at = np.cumsum(stored.lengths)  # [paragraph] one past its last word
        self._paragraph = np.repeat(np.arange(len(stored.lengths)), stored.lengths)
        self._texts = [text for document in stored.documents for text in document.paragraph_texts()]
        assert self._segment.reader.counts.paragraphs == len(self._texts)

    def answers(
        self, questions: QuestionVectors, asked: list[AskedQuestion], rows: Rows, limits: Limits
    ) -> list[tuple[int, int, int, str]]:
        """Of each question, the best phrase: number of its paragraph, first and last character, text."""
        tops = self._top_starts(questions.starts, rows.starts, limits.reach("hybrid").starts)
        end_scores = np.zeros(len(self._paragraph), np.float32)
        found = []
        for number, (top, each) in enumerate(zip(tops, asked, strict=True)):
            chosen = np.zeros(len(self._ends_at), bool)
            for _, paragraphs in top_paragraphs(self._view, each, limits.top_paragraphs):
                chosen[paragraphs] = True
            within = [
                np.arange(self._ends_at[p - 1] if p else 0, self._ends_at[p]) for p in np.flatnonzero(chosen)
            ]
            starts = np.unique(np.concatenate([top, *within]))
            starts = starts[self._can_start[starts]]
            sparse = each.sparse_parts(self._segment)[self._paragraph[starts]]
            scores = rows.starts[starts] @ questions.starts[number] + sparse
            reach = np.unique(np.minimum(starts[:, None] + np.arange(MAX_PHRASE_WORDS), len(end_scores) - 1))
            end_scores[reach] = rows.ends[reach] @ questions.ends[number]
            found.append(self._best(starts, scores, end_scores, rows, float(questions.coherency[number])))
        return found

    def _best(
        self,
        starts: np.ndarray,
        scores: np.ndarray,
        end_scores: np.ndarray,
        rows: Rows,
        coherency: float,
    ) -> tuple[int, int, int, str]:
        keys, last = rows.start_keys[starts], self._ends_at[self._paragraph[starts]]
        best, start, end = -np.inf, 0, 0
        for length in range(MAX_PHRASE_WORDS):
            ends = starts + length
            is_phrase = ends < last
            ends = np.where(is_phrase, ends, starts)
            products = np.einsum("rd,rd->r", keys, rows.end_keys[ends])
            totals = np.where(
                is_phrase & self._can_end[ends], scores + end_scores[ends] + coherency * products, -np.inf
            )
            at = int(totals.argmax())
            if totals[at] > best:
                best, start, end = float(totals[at]), int(starts[at]), int(ends[at])
        paragraph = int(self._paragraph[start])
        begin_char = int(self._words["word_starts"][start])
        end_char = int(self._words["word_ends"][end])
        return paragraph, begin_char, end_char, self._texts[paragraph][begin_char:end_char]

    def _top_starts(self, questions: np.ndarray, rows: np.ndarray, count: int) -> np.ndarray:
        """``[question, count]`` the words with the highest start scores."""
        best = np.full((len(questions), 0), -np.inf, np.float32)
        numbers = np.zeros((len(questions), 0), np.int64)
        for first in range(0, len(rows), _BLOCK_WORDS):
            block = slice(first, min(first + _BLOCK_WORDS, len(rows)))
            scores = questions @ np.asarray(rows[block]).T
            scores[:, ~self._can_start[block]] = -np.inf
            places = np.broadcast_to(np.arange(block.start, block.stop), scores.shape)
            best, numbers = np.hstack([best, scores]), np.hstack([numbers, places])
            if best.shape[1] > count:
                kept = np.argpartition(-best, count - 1, axis=1)[:, :count]
                best, numbers = np.take_along_axis(best, kept, 1), np.take_along_axis(numbers, kept, 1)
            print(f"\rfloat scan: {block.stop:,} of {len(rows):,} words ", end="", flush=True)
        print()
        return numbers
