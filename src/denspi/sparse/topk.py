"""The best k of many scores. Pure; exact, and the lower number wins a tie.

Partitioning all scores would cost more than computing them: the maxima of blocks give a threshold that at
least k scores reach, and only what reaches it is sorted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_LONGEST_BLOCK = 64


@dataclass(frozen=True, slots=True)
class Hits:
    """Numbers (of documents or of paragraphs in a segment) with their scores, best first."""

    numbers: NDArray[np.int64]  # [hit]
    scores: NDArray[np.float64]  # [hit]


def top_positive(scores: NDArray[np.float64], k: int) -> Hits:
    """The k highest scores above 0, or as many as there are; their numbers are their places."""
    candidates = reaching(scores, k)
    return best_of(candidates, scores[candidates], k)


def best_of(numbers: NDArray[np.int64], scores: NDArray[np.float64], k: int) -> Hits:
    """The k best of ascending `numbers`."""
    order = np.argsort(-scores, kind="stable")[: max(k, 0)]
    return Hits(numbers[order], scores[order])


def reaching(scores: NDArray[np.float64], k: int) -> NDArray[np.int64]:
    """Ascending places that hold at least the k highest positive scores, and hardly more."""
    threshold = 0.0
    block = min(_LONGEST_BLOCK, len(scores) // max(1, 4 * k))  # some 4k blocks: few of the best share one
    if k > 0 and block > 1:
        blocks = len(scores) // block
        # A block is every blocks-th score: numpy takes maxima fast down columns, slowly along short rows.
        best = scores[: blocks * block].reshape(block, blocks).max(axis=0)
        threshold = float(np.partition(best, blocks - k)[blocks - k])
    return np.flatnonzero(scores >= threshold if threshold > 0 else scores > 0)
