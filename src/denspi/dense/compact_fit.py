"""Fitting a compact code to training rows and training questions, and how far it is off. Pure numpy.

Never fed with a corpus: segments of an index, and indexes of a model, must be comparable.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from denspi.dense.compact import CompactCode, CompactQuantizer, Grid
from denspi.vectors import Floats, QuestionVectors

Doubles = NDArray[np.float64]

_LEFT = 0.0095, 0.00004  # what 4 and 8 bits leave of a variance, for a bell curve
# Directions that training questions never take keep this share of the mean weight: other people's may.
_RIDGE = 0.05
_ROOM = 1.1  # how much wider than the fitted rows an 8-bit range is, as in the int8 quantizer
_RANGES = np.linspace(0.15, _ROOM, 20)  # shares of the fitted rows' range that are tried for 4 bits
_SAMPLE = 20000  # rows that those are tried on


def fit_compact_quantizer(
    starts: Floats,
    ends: Floats,
    start_keys: Floats,
    end_keys: Floats,
    questions: QuestionVectors,
    vector_bytes: int,
) -> CompactQuantizer:
    """Codes of at most `vector_bytes` for vectors ``[row, dim]``; keys get four bits a dimension."""
    odd = start_keys.shape[1] % 2  # four bits come in pairs
    return CompactQuantizer(
        fit_compact(starts, questions.starts, vector_bytes),
        fit_compact(ends, questions.ends, vector_bytes),
        fit_grid(start_keys, odd),
        fit_grid(end_keys, odd),
    )


def fit_compact(rows: Floats, questions: Floats, bytes_per_row: int) -> CompactCode:
    """A code of at most `bytes_per_row` for rows ``[row, dim]`` and those who ask ``[question, dim]``.

    The components are the principal axes of the rows after weighing each direction by how much questions
    use it: then the mean square of a score's error is the sum over components of the squares of theirs, and
    bits go where they save most of it.
    """
    if bytes_per_row < 2 or len(rows) < 2 or not len(questions):
        raise ValueError("a compact code takes two bytes, two rows and a question to fit")
    mean = rows.mean(axis=0, dtype=np.float64)
    centred = rows - mean
    asked = questions.astype(np.float64)
    weight, axes = np.linalg.eigh(asked.T @ asked / len(asked))
    mean_weight = float(weight.mean())
    if mean_weight <= 0:
        raise ValueError("all questions are zero")
    weight = np.maximum(weight, 0) + _RIDGE * mean_weight
    root = (axes * np.sqrt(weight)) @ axes.T
    variance, turn = np.linalg.eigh(root @ (centred.T @ centred / len(rows)) @ root)
    variance, turn = variance[::-1].clip(0), turn[:, ::-1]
    basis, back = root @ turn, turn.T @ ((axes / np.sqrt(weight)) @ axes.T)
    wide, kept = _share_bits(variance, bytes_per_row - 1)
    grid = fit_grid(centred @ basis[:, :kept], wide)
    return CompactCode(
        mean.astype(np.float32), basis.astype(np.float32), back[:kept].astype(np.float32), grid
    )


def fit_grid(rows: NDArray[np.floating], wide: int) -> Grid:
    """Ranges for each column of rows ``[row, column]``: all of it and more for 8 bits, the best for 4."""
    if not len(rows):
        raise ValueError("no row to fit a grid to")
    low, high = rows.min(axis=0).astype(np.float64), rows.max(axis=0).astype(np.float64)
    middle, reach = (low + high) / 2, (high - low) / 2
    share = np.full(rows.shape[1], _ROOM)
    sample = rows[:: max(1, len(rows) // _SAMPLE), wide:].astype(np.float64)
    if sample.size:
        centre, width = middle[wide:], np.where(reach[wide:] > 0, reach[wide:], 1)
        place = (sample - centre) / width  # -1 .. 1
        errors = [np.square(place - _on_levels(place, each)).mean(axis=0) for each in _RANGES]
        share[wide:] = _RANGES[np.argmin(errors, axis=0)]
    levels = np.where(np.arange(rows.shape[1]) < wide, 255, 15)
    step = 2 * reach * share / levels
    step = np.where(step >= np.finfo(np.float32).tiny, step, 1)  # a column that never varies is code 0
    lowest = np.where(reach > 0, middle - reach * share, middle)
    return Grid(lowest.astype(np.float32), step.astype(np.float32), wide)


def compact_error(code: CompactCode, rows: Floats, questions: Floats) -> float:
    """Root mean square error of the inner products, as a share of their standard deviation over the rows.

    What shifts all rows of a question alike is left out: it changes no order.
    """
    exact = questions @ rows.T
    error: Floats = code.inner_products(questions, code.encode(rows)) - exact
    return float(np.sqrt(error.var(axis=1).mean() / exact.var(axis=1).mean()))


def _share_bits(variance: Doubles, bytes_per_row: int) -> tuple[int, int]:
    """How many components get 8 bits, and how many are kept at all: all ways are tried.

    All of them use as many bytes as there is use for, so that rows of any two fits take the same.
    """
    dim, total = len(variance), np.concatenate([[0.0], np.cumsum(variance)])
    choices: list[tuple[float, int, int]] = []
    for wide in range(min(bytes_per_row, dim) + 1):
        kept = wide + 2 * min(bytes_per_row - wide, (dim - wide) // 2)
        if wide + (kept - wide) // 2 < min(bytes_per_row, dim):
            continue  # more bits can only be better
        left = total[wide] * _LEFT[1] + (total[kept] - total[wide]) * _LEFT[0] + total[dim] - total[kept]
        choices.append((float(left), wide, kept))
    _, wide, kept = min(choices)
    return wide, kept


def _on_levels(place: Doubles, share: float) -> Doubles:
    step = 2 * share / 15
    found: Doubles = np.rint((place + share) / step).clip(0, 15) * step - share
    return found
