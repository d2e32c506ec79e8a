"""Long paragraphs -> overlapping windows -> stitched rows, every token exactly once.

Pure arithmetic on token positions; knows nothing of models or special tokens. Each token's row comes from the
window in which it has the most context on its shorter side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Scalar = TypeVar("Scalar", bound=np.generic)


@dataclass(frozen=True, slots=True)
class Window:
    """The model is shown tokens ``[start_token, end_token)``; rows of ``[keep_start, keep_end)`` are kept."""

    start_token: int
    end_token: int
    keep_start: int
    keep_end: int


def plan_windows(token_count: int, size: int, overlap: int) -> list[Window]:
    """Cover `token_count` tokens with windows of at most `size` that share at least `overlap` tokens.

    The last window is as long as the others: it reaches back rather than being short of context. Neighbours
    meet in the middle of what they share.
    """
    if token_count < 0 or not 0 <= overlap < size:
        raise ValueError(f"{token_count} tokens: windows of {size} cannot overlap by {overlap}")
    if token_count <= size:
        return [Window(0, token_count, 0, token_count)] if token_count else []
    starts = [*range(0, token_count - size, size - overlap), token_count - size]
    borders = [0]
    borders += [(left + size + right) // 2 for left, right in pairwise(starts)]
    borders.append(token_count)
    return [
        Window(start, start + size, low, high)
        for start, low, high in zip(starts, borders, borders[1:], strict=False)
    ]


def stitch(windows: Sequence[Window], rows_of_windows: Sequence[NDArray[Scalar]]) -> NDArray[Scalar]:
    """One row per token of one window or more, from one array ``[window_token, ...]`` per window."""
    kept = [
        rows[window.keep_start - window.start_token : window.keep_end - window.start_token]
        for window, rows in zip(windows, rows_of_windows, strict=True)
    ]
    return kept[0] if len(kept) == 1 else np.concatenate(kept)
