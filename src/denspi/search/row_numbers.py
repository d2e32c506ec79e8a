"""Stored rows as whole numbers, whatever the precision: what questions are multiplied with. Pure.

`Int8Vectors` and `Int8Keys` are here, those of compact rows in `compact_numbers`; `vectors_of` and `keys_of`
choose. Products are whole numbers in doubles, which hold them exactly, so the order of a sum does
not matter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from denspi.dense.codec import RowCode
from denspi.dense.compact import CompactCode, Grid
from denspi.dense.quantizer import Int8Code
from denspi.search.compact_numbers import CompactKeys, CompactVectors
from denspi.search.weighing import ROUNDED_UP, Doubles, Weighing

_BLOCK_ROWS = 1024  # as doubles they stay in the cache
_CODE = 128  # the largest size of a code


class VectorNumbers(Protocol):
    """Start rows or end rows. A row's score is its product with the weights, plus a shift."""

    def weigh(self, question: Doubles) -> Weighing:
        """What codes are to be multiplied with, before it is rounded to whole numbers."""

    def reach(self, weights: Doubles) -> tuple[float, float]:
        """Length and slack: a product with these weights is at most length * `lengths` of the row + slack."""

    def lengths(self, codes: NDArray[Any]) -> Doubles:
        """``[row]`` how long each row is, measured from where the shift puts it; at least."""

    def products(self, codes: NDArray[Any], weights: NDArray[Any]) -> Doubles:
        """``[row, question]`` of weights ``[question, weight]``: whole numbers of 32 bits."""


class KeyNumbers(Protocol):
    """Coherency keys."""

    def values(self) -> Doubles:
        """``[code + 128, dim]`` what codes mean; 0 for codes that there are none of."""

    def codes(self, stored: NDArray[Any]) -> NDArray[np.int8]:
        """``[row, dim]`` one code for each value."""


@dataclass(frozen=True, slots=True, eq=False)
class Int8Vectors:
    """See `VectorNumbers`."""

    code: Int8Code

    def weigh(self, question: Doubles) -> Weighing:
        """The question times the scale."""
        shift = math.fsum((question * self.code.offset).tolist())
        return Weighing(question * self.code.scale, np.full(len(question), _CODE), shift, np.dtype(np.int16))

    def reach(self, weights: Doubles) -> tuple[float, float]:
        """The length of the question that these weights stand for."""
        asked = weights / self.code.scale
        return float(np.sqrt((asked * asked).sum())) * ROUNDED_UP, 0.0

    def lengths(self, codes: NDArray[Any]) -> Doubles:
        """The length of what each row adds to the offset."""
        lengths, squares = np.empty(len(codes)), self.code.scale.astype(np.float64) ** 2
        for first in range(0, len(codes), _BLOCK_ROWS):
            block = codes[first : first + _BLOCK_ROWS].astype(np.float64)
            lengths[first : first + _BLOCK_ROWS] = np.sqrt((block * block) @ squares) * ROUNDED_UP
        return lengths

    def products(self, codes: NDArray[Any], weights: NDArray[Any]) -> Doubles:
        """Codes times weights."""
        return plain_products(codes, weights)


@dataclass(frozen=True, slots=True, eq=False)
class Int8Keys:
    """See `KeyNumbers`."""

    code: Int8Code

    def values(self) -> Doubles:
        """All 256 of each dimension."""
        codes = np.arange(-_CODE, _CODE, dtype=np.float64)
        return np.asarray(
            self.code.offset.astype(np.float64) + codes[:, None] * self.code.scale.astype(np.float64)
        )

    def codes(self, stored: NDArray[Any]) -> NDArray[np.int8]:
        """As they are stored."""
        return stored


def plain_products(codes: NDArray[Any], weights: NDArray[Any]) -> Doubles:
    """``[row, question]`` where a code is a whole number, and each has a weight."""
    return np.asarray(codes.astype(np.float64) @ weights.T.astype(np.float64))


def vectors_of(code: RowCode) -> VectorNumbers:
    """The numbers of start rows or end rows that are stored by this code."""
    if isinstance(code, CompactCode):
        return CompactVectors(code)
    if isinstance(code, Int8Code):
        return Int8Vectors(code)
    raise TypeError(f"{type(code).__name__} is no code of vectors that searches know")


def keys_of(code: RowCode) -> KeyNumbers:
    """The numbers of keys that are stored by this code."""
    if isinstance(code, Grid):
        return CompactKeys(code)
    if isinstance(code, Int8Code):
        return Int8Keys(code)
    raise TypeError(f"{type(code).__name__} is no code of keys that searches know")
