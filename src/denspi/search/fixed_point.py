"""Equation 2 in whole numbers, so that a phrase has one score, whoever computes it in whatever order. Pure.

A row's score is the question times the quantizer's scale, rounded once, times the stored codes: an integer
(`row_numbers`; compact rows have a correction each, in integers too). Keys are read as integers from a
table, so the product of two of them is one as well. A score is then

    ((start + end) + coherency) + (document + paragraph)

in doubles, in this order, where start = step * integer + shift and coherency = coherency_unit * integer. As
rounding is monotone, the same sum over upper bounds of the parts is an upper bound, to the last bit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from denspi.dense.codec import RowCodec
from denspi.errors import ModelError
from denspi.search.row_numbers import keys_of, vectors_of
from denspi.search.weighing import Doubles
from denspi.vectors import QuestionVectors

_INT16, _INT32 = (1 << 15) - 1, (1 << 31) - 1


@dataclass(frozen=True, slots=True, eq=False)
class KeyTables:
    """What the codes of coherency keys mean, as integers; the same for every question of a model."""

    start: NDArray[np.int16]  # [code + 128, coherency_dim]
    end: NDArray[np.int16]
    unit: float  # what a product of 1 is worth

    @classmethod
    def of(cls, codec: RowCodec) -> KeyTables:
        """The finest integers whose products, summed over all dimensions, stay within 32 bits."""
        largest = min(_INT16, math.isqrt(_INT32 // max(1, codec.start_key.dim)))
        start, start_unit = _key_table(keys_of(codec.start_key).values(), largest)
        end, end_unit = _key_table(keys_of(codec.end_key).values(), largest)
        return cls(start, end, start_unit * end_unit)


@dataclass(frozen=True, slots=True, eq=False)
class FixedQuestion:
    """One question, ready to be multiplied with stored rows."""

    start_weights: NDArray[np.signedinteger]  # [weight] see `row_numbers`
    end_weights: NDArray[np.signedinteger]  # [weight]
    step: float  # what 1 of a row's score is worth, for starts and ends alike
    start_shift: float  # the question times what all rows have in common
    end_shift: float
    coherency_unit: float  # what 1 of a product of keys is worth, the question's own c' included
    end_length: float  # of the vector that end rows are multiplied with; at least
    end_slack: float  # what an end row's score may exceed that length times its own by

    def start_part(self, score: int) -> float:
        """The start part of a phrase whose start row has this score."""
        return self.step * score + self.start_shift

    def end_part(self, score: int) -> float:
        """The end part of a phrase whose end row has this score."""
        return self.step * score + self.end_shift


def fix_questions(questions: QuestionVectors, codec: RowCodec, keys: KeyTables) -> list[FixedQuestion]:
    """Each of the questions in whole numbers."""
    vectors = (questions.starts, questions.ends, questions.coherency)
    if not all(np.isfinite(each).all() for each in vectors):
        raise ModelError("the model gives a question vector that is not a number; copy the model again")
    return [
        _fix(start, end, float(coherency), codec, keys)
        for start, end, coherency in zip(*vectors, strict=True)
    ]


def _fix(
    start: NDArray[np.float32],
    end: NDArray[np.float32],
    coherency: float,
    codec: RowCodec,
    keys: KeyTables,
) -> FixedQuestion:
    starts = vectors_of(codec.start).weigh(start.astype(np.float64))
    ends = vectors_of(codec.end).weigh(end.astype(np.float64))
    step = max(starts.finest_step, ends.finest_step)
    start_weights, end_weights = starts.rounded(step), ends.rounded(step)
    length, slack = vectors_of(codec.end).reach(step * end_weights.astype(np.float64))
    return FixedQuestion(
        *(start_weights, end_weights, step, starts.shift, ends.shift),
        *(coherency * keys.unit, length, slack),
    )


def _key_table(values: Doubles, largest: int) -> tuple[NDArray[np.int16], float]:
    unit = float(np.abs(values).max(initial=0)) / largest
    unit = unit if unit > np.finfo(np.float64).tiny else 1.0
    return np.rint(values / unit).astype(np.int16), unit
