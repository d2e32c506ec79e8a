"""The kernels for compact rows: rows become scores and keys are unpacked, then the loops are those of int8.

Only rows that a kernel may look at are read, and never more of them are unpacked than it looks at.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from denspi.index.rows import rows_of
from denspi.search.compact_numbers import compact_products, key_codes
from denspi.search.fixed_point import FixedQuestion, KeyTables
from denspi.search.kernels import Chosen, Kernels, KeyBounds, Phrases, Side
from denspi.search.numpy_kernels import NumpyKernels, Products, blocks
from denspi.sparse.asked_postings import AddUp

SCORE_DIM = 1
"""The rows of the kernels inside: each is one number, its score."""
_AS_IT_IS = np.ones(SCORE_DIM, np.int16)


@dataclass(frozen=True, slots=True, eq=False)
class CompactKernels:
    """See `kernels.Kernels`. `inside` are kernels for rows of `SCORE_DIM`."""

    inside: Kernels
    products: Products = compact_products

    @property
    def add_up(self) -> AddUp | None:
        """That of the kernels inside."""
        return self.inside.add_up

    def maxima(
        self,
        codes: NDArray[Any],
        offsets: NDArray[np.int64],
        weights: NDArray[Any],
        is_wanted: NDArray[np.bool_],
    ) -> NDArray[np.int32]:
        """By blocks of rows."""
        return NumpyKernels(self.products).maxima(codes, offsets, weights, is_wanted)

    def reaching(
        self,
        codes: NDArray[Any],
        offsets: NDArray[np.int64],
        weights: NDArray[Any],
        paragraphs: NDArray[np.int64],
        threshold: int,
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """By blocks of rows."""
        return NumpyKernels(self.products).reaching(codes, offsets, weights, paragraphs, threshold)

    def row_scores(
        self, codes: NDArray[Any], weights: NDArray[Any], rows: NDArray[np.int64]
    ) -> NDArray[np.int32]:
        """By blocks of rows."""
        return NumpyKernels(self.products).row_scores(codes, weights, rows)

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
        """On the rows at hand alone, numbered from 0."""
        end_rows, end_offsets = _cut(ends.offsets, chosen.paragraphs)
        renumbered = replace(
            chosen, paragraphs=np.arange(len(chosen.paragraphs)), rows=np.arange(len(chosen.rows))
        )
        found = self.inside.best_phrases(
            replace(question, start_weights=_AS_IT_IS, end_weights=_AS_IT_IS),
            tables,
            self._scored(starts, chosen.rows, chosen.offsets, question.start_weights, tables.start.shape[1]),
            self._scored(ends, end_rows, end_offsets, question.end_weights, tables.end.shape[1]),
            renumbered,
            max_words,
            tops,
        )
        # Where there is no phrase, -1 is the last place, which holds -1.
        starts_found = np.append(chosen.rows, -1)[found.starts]
        return Phrases(found.scores, starts_found, np.append(end_rows, -1)[found.ends])

    def key_bounds(self, tables: KeyTables, starts: Side, ends: Side, max_words: int) -> KeyBounds:
        """By blocks of paragraphs."""
        count = len(starts.offsets) - 1
        bounds = KeyBounds(np.zeros(count, np.int32), np.zeros(count, np.int32), np.zeros(count, np.bool_))
        for part in blocks(starts.offsets + ends.offsets, np.arange(count)):
            sides = []
            for side, table in ((starts, tables.start), (ends, tables.end)):
                rows, offsets = _cut(side.offsets, part)
                keys = key_codes(side.keys[rows], table.shape[1])
                sides.append(Side(np.zeros((0, SCORE_DIM), np.int32), keys, side.words[rows], offsets))
            found = self.inside.key_bounds(tables, sides[0], sides[1], max_words)
            bounds.least[part], bounds.greatest[part] = found.least, found.greatest
            bounds.has_phrase[part] = found.has_phrase
        return bounds

    def _scored(
        self,
        side: Side,
        rows: NDArray[np.int64],
        offsets: NDArray[np.int64],
        weights: NDArray[Any],
        key_dim: int,
    ) -> Side:
        """These rows, each with its score for a code."""
        scores = self.products(side.codes[rows], weights[None]).astype(np.int32)
        return Side(scores, key_codes(side.keys[rows], key_dim), side.words[rows], offsets)


def _cut(
    offsets: NDArray[np.int64], paragraphs: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows of these paragraphs, and their offsets among themselves."""
    lengths = offsets[paragraphs + 1] - offsets[paragraphs]
    return rows_of(offsets, paragraphs), np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
