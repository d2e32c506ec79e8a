"""Compact rows as whole numbers (bytes as in `dense.compact`, contract as in `row_numbers`). Pure.

    score = floor((shift + sum over k of weight[k] * code[k]) * factor[byte 0] / 2 ** 20)

with whole numbers throughout: the correction of a row as a factor of 20 binary places, and the shift as the
last of the weights. All of it stays below 2 ** 53. Rows are unpacked a block at a time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from denspi.dense.compact import CompactCode, Grid
from denspi.search.weighing import ROUNDED_UP, Doubles, Weighing

PLACES = 20
"""Binary places of a correction."""
FACTORS: NDArray[np.int64] = np.rint(np.exp2((np.arange(256) - 128) / 128 + PLACES)).astype(np.int64)
"""``[byte]`` what the first byte of a row multiplies with: below 2, times 2 ** PLACES."""
_BLOCK_ROWS = 1024  # as doubles they stay in the cache
_WIDE, _NARROW = 255, 15  # the largest codes


@dataclass(frozen=True, slots=True, eq=False)
class CompactVectors:
    """See `row_numbers.VectorNumbers`."""

    code: CompactCode

    def weigh(self, question: Doubles) -> Weighing:
        """The question turned into components times the grid's steps; then its product with the lowest."""
        grid = self.code.grid
        asked = self.code.inverse.astype(np.float64) @ question
        inside = math.fsum((asked * grid.lowest).tolist())
        most = np.full(grid.dim + 1, _NARROW)
        most[: grid.wide], most[-1] = _WIDE, 1
        shift = math.fsum((question * self.code.mean).tolist())
        # Twice, as a correction is below 2.
        return Weighing(np.append(asked * grid.step, inside), 2 * most, shift, np.dtype(np.int32))

    def reach(self, weights: Doubles) -> tuple[float, float]:
        """The length of the question in components. The slack is what rounding left of the shift."""
        grid = self.code.grid
        asked = weights[:-1] / grid.step
        lowest = asked * grid.lowest
        left = abs(float(weights[-1]) - math.fsum(lowest.tolist()))
        left += (ROUNDED_UP - 1) * (abs(float(weights[-1])) + float(np.abs(lowest).sum()))
        return float(np.sqrt((asked * asked).sum())) * ROUNDED_UP, 2 * left

    def lengths(self, codes: NDArray[Any]) -> Doubles:
        """The length of each row in components, with its correction."""
        grid, lengths = self.code.grid, np.empty(len(codes))
        lowest, step = grid.lowest.astype(np.float64), grid.step.astype(np.float64)
        for first in range(0, len(codes), _BLOCK_ROWS):
            block = codes[first : first + _BLOCK_ROWS]
            components = lowest + step * unpacked(block[:, 1:], grid.dim)
            factors = FACTORS[block[:, 0]] / (1 << PLACES)
            found = np.sqrt((components * components).sum(axis=1)) * factors * ROUNDED_UP
            lengths[first : first + _BLOCK_ROWS] = found
        return lengths

    def products(self, codes: NDArray[Any], weights: NDArray[Any]) -> Doubles:
        """By the formula above."""
        return compact_products(codes, weights)


@dataclass(frozen=True, slots=True, eq=False)
class CompactKeys:
    """See `row_numbers.KeyNumbers`."""

    grid: Grid

    def values(self) -> Doubles:
        """256 of each wide dimension, 16 of the others."""
        codes = np.arange(_WIDE + 1, dtype=np.float64)[:, None]
        found = self.grid.lowest.astype(np.float64) + codes * self.grid.step.astype(np.float64)
        found[_NARROW + 1 :, self.grid.wide :] = 0
        return np.asarray(found)

    def codes(self, stored: NDArray[Any]) -> NDArray[np.int8]:
        """Less 128, so that code 0 is the first of `values`."""
        return key_codes(stored, self.grid.dim)


def compact_products(packed: NDArray[np.uint8], weights: NDArray[Any]) -> Doubles:
    """``[row, question]`` scores of rows of bytes, for weights ``[question, column + 1]``."""
    columns = weights.T.astype(np.float64)
    found = np.empty((len(packed), len(weights)))
    for first in range(0, len(packed), _BLOCK_ROWS):
        block = packed[first : first + _BLOCK_ROWS]
        sums = unpacked(block[:, 1:], len(columns) - 1).astype(np.float64) @ columns[:-1] + columns[-1]
        found[first : first + _BLOCK_ROWS] = np.floor(sums * FACTORS[block[:, 0], None] / (1 << PLACES))
    return found


def key_codes(packed: NDArray[np.uint8], columns: int) -> NDArray[np.int8]:
    """Keys ``[row, column]`` as the kernels take them."""
    return (unpacked(packed, columns) ^ 128).view(np.int8)


def unpacked(packed: NDArray[np.uint8], columns: int) -> NDArray[np.uint8]:
    """The codes ``[row, column]`` of bytes ``[row, byte]``: what columns there are more come in pairs."""
    wide = 2 * packed.shape[1] - columns
    codes = np.empty((len(packed), columns), np.uint8)
    codes[:, :wide] = packed[:, :wide]
    codes[:, wide : packed.shape[1]] = packed[:, wide:] & _NARROW
    codes[:, packed.shape[1] :] = packed[:, wide:] >> 4
    return codes
