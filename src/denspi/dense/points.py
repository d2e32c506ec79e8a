"""Stored vectors as small whole numbers that are about as far apart as the vectors are, and back. Pure.

Int8 codes are such numbers already. Of compact rows they are the components, which keep all distances,
in steps of a common size. For grouping rows only: nothing is scored by them.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from denspi.dense.compact import CORRECTION, CompactCode
from denspi.vectors import Floats

_LARGEST = 127
_NO_CORRECTION = 128  # the byte that stands for a factor of 1


class PointCode(Protocol):
    """Rows of codes as points."""

    def points(self, rows: NDArray[Any]) -> NDArray[np.int8]:
        """``[row, dim]`` of rows of codes ``[row, vector_bytes]``."""

    def rows(self, points: NDArray[np.int8]) -> NDArray[Any]:
        """Rows of codes that lie about there."""


class Int8Points:
    """Int8 codes, as they are: all dimensions have about the same spread in them."""

    def points(self, rows: NDArray[Any]) -> NDArray[np.int8]:
        """The codes."""
        return rows

    def rows(self, points: NDArray[np.int8]) -> NDArray[Any]:
        """The codes."""
        return points


class CompactPoints:
    """Components of compact rows, with their corrections."""

    def __init__(self, code: CompactCode) -> None:
        grid, self._code = code.grid, code
        most = np.where(np.arange(grid.dim) < grid.wide, 255, 15).astype(np.float32)
        sizes = np.maximum(np.abs(grid.lowest), np.abs(grid.lowest + grid.step * most))
        self._step = np.float32(max(float(sizes.max(initial=0)) / _LARGEST, float(np.finfo(np.float32).tiny)))

    def points(self, rows: NDArray[Any]) -> NDArray[np.int8]:
        """Each value by itself, so that nothing depends on the order of a sum."""
        components: Floats = self._code.grid.decode(rows[:, 1:]) * CORRECTION[rows[:, :1]]
        return np.asarray(np.rint(components / self._step).clip(-_LARGEST, _LARGEST), np.int8)

    def rows(self, points: NDArray[np.int8]) -> NDArray[Any]:
        """Without a correction."""
        packed = self._code.grid.encode(points.astype(np.float64) * self._step)
        return np.concatenate([np.full((len(points), 1), _NO_CORRECTION, np.uint8), packed], axis=1)
