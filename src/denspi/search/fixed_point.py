"""Equation 2 in whole numbers, so that a phrase has one score, whoever computes it in whatever order. Pure.

A row's score is the question times the quantizer's scale, rounded once to 16 bits, times the stored codes: an
integer. Keys are read as integers from a table, so the product of two of them is one as well. A score is then

    ((start + end) + coherency) + (document + paragraph)

in doubles, in this order, where start = step * integer + shift and coherency = coherency_unit * integer. As
rounding is monotone, the same sum over upper bounds of the parts is an upper bound, to the last bit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from denspi.dense.quantizer import Int8Code, Quantizer
from denspi.errors import ModelError
from denspi.vectors import QuestionVectors

_INT16, _INT32 = (1 << 15) - 1, (1 << 31) - 1
ROUNDED_UP = 1 + 1e-9
"""Makes a length that was rounded one that is not too short."""
_BLOCK_ROWS = 1024  # as doubles they stay in the cache
_CODE = 128  # the largest size of a code


@dataclass(frozen=True, slots=True, eq=False)
class KeyTables:
    """What the codes of coherency keys mean, as integers; the same for every question of a model."""

    start: NDArray[np.int16]  # [code + 128, coherency_dim]
    end: NDArray[np.int16]
    unit: float  # what a product of 1 is worth

    @classmethod
    def of(cls, quantizer: Quantizer) -> KeyTables:
        """The finest integers whose products, summed over all dimensions, stay within 32 bits."""
        largest = min(_INT16, math.isqrt(_INT32 // max(1, len(quantizer.start_key.scale))))
        start, start_unit = _key_table(quantizer.start_key, largest)
        end, end_unit = _key_table(quantizer.end_key, largest)
        return cls(start, end, start_unit * end_unit)


@dataclass(frozen=True, slots=True, eq=False)
class FixedQuestion:
    """One question, ready to be multiplied with stored rows."""

    start_weights: NDArray[np.int16]  # [dim]
    end_weights: NDArray[np.int16]  # [dim]
    step: float  # what 1 of a row's score is worth, for starts and ends alike
    start_shift: float  # the question times the quantizer's offset
    end_shift: float
    coherency_unit: float  # what 1 of a product of keys is worth, the question's own c' included
    end_length: float  # of the vector that end rows are multiplied with; at least

    def start_part(self, score: int) -> float:
        """The start part of a phrase whose start row has this score."""
        return self.step * score + self.start_shift

    def end_part(self, score: int) -> float:
        """The end part of a phrase whose end row has this score."""
        return self.step * score + self.end_shift


def fix_questions(questions: QuestionVectors, quantizer: Quantizer, keys: KeyTables) -> list[FixedQuestion]:
    """Each of the questions in whole numbers."""
    vectors = (questions.starts, questions.ends, questions.coherency)
    if not all(np.isfinite(each).all() for each in vectors):
        raise ModelError("the model gives a question vector that is not a number; copy the model again")
    return [
        _fix(start, end, float(coherency), quantizer, keys)
        for start, end, coherency in zip(*vectors, strict=True)
    ]


def code_lengths(codes: NDArray[np.int8], scale: NDArray[np.float32]) -> NDArray[np.float64]:
    """The length of each row of codes times the scale: what it adds to the quantizer's offset; at least."""
    lengths, squares = np.empty(len(codes)), scale.astype(np.float64) ** 2
    for first in range(0, len(codes), _BLOCK_ROWS):
        block = codes[first : first + _BLOCK_ROWS].astype(np.float64)
        lengths[first : first + _BLOCK_ROWS] = np.sqrt((block * block) @ squares) * ROUNDED_UP
    return lengths


def _fix(
    start: NDArray[np.float32],
    end: NDArray[np.float32],
    coherency: float,
    quantizer: Quantizer,
    keys: KeyTables,
) -> FixedQuestion:
    sides = ((start, quantizer.start), (end, quantizer.end))
    scaled = [side.astype(np.float64) * code.scale for side, code in sides]
    shifts = [math.fsum((side.astype(np.float64) * code.offset).tolist()) for side, code in sides]
    step = max(_step(each) for each in scaled)
    weights = [np.rint(each / step).astype(np.int16) for each in scaled]
    asked = step * weights[1].astype(np.float64) / quantizer.end.scale
    end_length = float(np.sqrt((asked * asked).sum())) * ROUNDED_UP
    return FixedQuestion(
        weights[0], weights[1], step, shifts[0], shifts[1], coherency * keys.unit, end_length
    )


def _step(scaled: NDArray[np.float64]) -> float:
    """The finest step at which weights fit into 16 bits and the score of any row into 32."""
    sizes = np.abs(scaled)
    row_limit = _INT32 // _CODE - len(sizes)  # rounding may add a half to each weight
    step = max(float(sizes.max(initial=0)) / _INT16, float(sizes.sum()) / row_limit)
    return step if step > np.finfo(np.float64).tiny else 1.0


def _key_table(code: Int8Code, largest: int) -> tuple[NDArray[np.int16], float]:
    codes = np.arange(-_CODE, _CODE, dtype=np.float64)
    values = code.offset.astype(np.float64) + codes[:, None] * code.scale.astype(np.float64)
    unit = float(np.abs(values).max(initial=0)) / largest
    unit = unit if unit > np.finfo(np.float64).tiny else 1.0
    return np.rint(values / unit).astype(np.int16), unit
