"""The loops that search is made of, as two implementations with the same results to the last bit.

`numpy_kernels` runs everywhere; `compiled_kernels` needs numba (extra `fast`) and some tenths of a second to
load. All arithmetic on stored codes is in integers (see `fixed_point`), so nothing depends on the order of a
sum. Kernels get plain arrays that were checked before, allocate their results, and touch nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from denspi.errors import MissingExtraError
from denspi.search.fixed_point import FixedQuestion, KeyTables
from denspi.sparse.asked_postings import AddUp

PER_PARAGRAPH = 3
"""Phrases that a paragraph offers at most: the best that do not overlap, each with its start's best end."""
NO_ROW = np.iinfo(np.int32).min
"""The maximum over no rows; no row scores so low."""


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """Start rows or end rows of a segment, as plain arrays."""

    codes: NDArray[Any]  # [row, vector_bytes] int8, or bytes
    keys: NDArray[Any]  # [row, key_bytes] int8, or bytes
    words: NDArray[Any]  # [row] uint16 or uint32
    offsets: NDArray[np.int64]  # [paragraph + 1]


@dataclass(frozen=True, slots=True, eq=False)
class Chosen:
    """Paragraphs to be read and, of each, the start rows to be tried."""

    paragraphs: NDArray[np.int64]  # [chosen] ascending
    rows: NDArray[np.int64]  # [row] ascending
    offsets: NDArray[np.int64]  # [chosen + 1] the first of `rows` of each paragraph
    sparse: NDArray[np.float64]  # [chosen] weighted sparse score, document and paragraph together


@dataclass(frozen=True, slots=True, eq=False)
class Phrases:
    """What each chosen paragraph offers, best first; minus infinity where it has no more."""

    scores: NDArray[np.float64]  # [chosen, PER_PARAGRAPH]
    starts: NDArray[np.int64]  # [chosen, PER_PARAGRAPH] start row
    ends: NDArray[np.int64]  # [chosen, PER_PARAGRAPH] end row


@dataclass(frozen=True, slots=True, eq=False)
class KeyBounds:
    """The least and the greatest product of keys over all phrases of each paragraph."""

    least: NDArray[np.int32]  # [paragraph]
    greatest: NDArray[np.int32]  # [paragraph]
    has_phrase: NDArray[np.bool_]  # [paragraph] elsewhere both are 0


class Kernels(Protocol):
    """What an implementation offers. Phrases have at most `max_words` words."""

    @property
    def add_up(self) -> AddUp | None:
        """What adds up the words of a question; None: numpy does."""

    def maxima(
        self,
        codes: NDArray[Any],
        offsets: NDArray[np.int64],
        weights: NDArray[Any],  # [question, weight]
        is_wanted: NDArray[np.bool_],  # [paragraph]
    ) -> NDArray[np.int32]:
        """``[question, paragraph]`` the highest score of a row of each paragraph, `NO_ROW` if not wanted."""

    def reaching(
        self,
        codes: NDArray[Any],
        offsets: NDArray[np.int64],
        weights: NDArray[Any],  # [weight]
        paragraphs: NDArray[np.int64],
        threshold: int,
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The rows of these paragraphs that score at least the threshold, in their order, and the scores."""

    def row_scores(
        self,
        codes: NDArray[Any],
        weights: NDArray[Any],  # [weight]
        rows: NDArray[np.int64],
    ) -> NDArray[np.int32]:
        """The scores of these rows, in their order."""

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
        """The best phrases of each chosen paragraph. Of equals, the earlier start and the earlier end win.

        `tops` are the best scores so far, ascending, at least one; what is found is put in. Phrases below the
        first of them may be left out, together with all that a paragraph would have offered after them.
        """

    def key_bounds(self, tables: KeyTables, starts: Side, ends: Side, max_words: int) -> KeyBounds:
        """Bounds of coherency, for any question."""


def numpy_kernels() -> Kernels:
    """Without a compiler."""
    from denspi.search.numpy_kernels import NumpyKernels

    return NumpyKernels()


def compiled_kernels(vector_dim: int, coherency_dim: int) -> Kernels:
    """For rows of this length; `MissingExtraError` where numba is absent."""
    try:
        from denspi.search.compiled import kernels_for
    except ImportError:
        raise MissingExtraError("the compiled search", "fast") from None
    return kernels_for(vector_dim, coherency_dim)


def fastest_kernels(vector_dim: int, coherency_dim: int) -> Kernels:
    """Compiled ones where numba is there and has a place for its cache, numpy's elsewhere."""
    try:
        return compiled_kernels(vector_dim, coherency_dim)
    except (MissingExtraError, RuntimeError):  # numba says RuntimeError where no folder can be written
        return numpy_kernels()
