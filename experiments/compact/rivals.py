"""Codes that the compact one was compared with: each fits to training rows and gives a map from rows to rows.

Plain and slow: what is looked for is what a code does to answers, not how fast this file does it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from denspi.dense.compact_fit import fit_compact
from denspi.dense.quantizer import fit_code

Code = Callable[[np.ndarray], np.ndarray]  # rows -> the rows that come back


def int8(rows, questions) -> Code:
    code = fit_code(rows)
    return lambda x: code.decode(code.encode(x))


def compact(bytes_per_row: int):
    def fit(rows, questions) -> Code:
        code = fit_compact(rows, questions, bytes_per_row)
        return lambda x: code.decode(code.encode(x))

    return fit


def lloyd(bits: int):
    """The levels of least square error for each dimension."""

    def fit(rows, questions=None) -> Code:
        levels = [_lloyd_levels(np.sort(column[::3].astype(np.float64)), 2**bits) for column in rows.T]

        def back(x):
            columns = [
                each[np.searchsorted((each[1:] + each[:-1]) / 2, c)]
                for each, c in zip(levels, x.T, strict=True)
            ]
            return np.stack(columns, 1).astype(np.float32)

        return back

    return fit


def rotated(inner):
    """Another code after a random rotation about the mean."""

    def fit(rows, questions) -> Code:
        mean, turn = rows.mean(0), _rotation(rows.shape[1])
        code = inner((rows - mean) @ turn, questions @ turn)
        return lambda x: code((x - mean) @ turn) @ turn.T + mean

    return fit


def rabitq(bits: int):
    """RaBitQ: random rotation, a grid scaled to each row, and a factor that makes its length right."""

    def fit(rows, questions) -> Code:
        mean, turn = rows.mean(0), _rotation(rows.shape[1])

        def back(x):
            y = (x - mean) @ turn
            length = np.maximum(np.linalg.norm(y, axis=1, keepdims=True), 1e-12)
            unit = y / length
            best, grid = np.full(len(x), -1.0), np.sign(unit)
            steps = {1: (), 2: (0.6, 1.3), 3: (0.35, 0.75), 4: (0.2, 0.4)}[bits]
            for step in np.linspace(*steps, 15) / np.sqrt(x.shape[1]) if steps else ():
                tried = np.floor(unit / step).clip(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) + 0.5
                cosine = (tried * unit).sum(1) / np.linalg.norm(tried, axis=1)
                better = cosine > best
                grid[better], best[better] = tried[better], cosine[better]
            return (grid * (length / (grid * unit).sum(1, keepdims=True))) @ turn.T + mean

        return back

    return fit


def product(size: int):
    """Product quantization: 256 centroids for every `size` dimensions."""

    def fit(rows, questions) -> Code:
        cuts = range(0, rows.shape[1], size)
        books = [_centroids(rows[:, a : a + size]) for a in cuts]

        def back(x):
            parts = [
                b[((b**2).sum(1) - 2 * x[:, a : a + size] @ b.T).argmin(1)]
                for a, b in zip(cuts, books, strict=True)
            ]
            return np.concatenate(parts, 1)

        return back

    return fit


def principal(count: int):
    """The first principal components in int8; questions are not looked at."""

    def fit(rows, questions) -> Code:
        mean = rows.mean(0)
        _, axes = np.linalg.eigh(np.cov(rows.T))
        axes = axes[:, ::-1][:, :count].astype(np.float32)
        code = fit_code((rows - mean) @ axes)
        return lambda x: code.decode(code.encode((x - mean) @ axes)) @ axes.T + mean

    return fit


def _rotation(dim: int):
    q, r = np.linalg.qr(np.random.default_rng(0).standard_normal((dim, dim)))
    return (q * np.sign(np.diag(r))).astype(np.float32)


def _lloyd_levels(ordered, count: int):
    levels = np.quantile(ordered, (np.arange(count) + 0.5) / count)
    total = np.concatenate([[0], np.cumsum(ordered)])
    for _ in range(25):
        cuts = np.concatenate([[0], np.searchsorted(ordered, (levels[1:] + levels[:-1]) / 2), [len(ordered)]])
        counts = np.diff(cuts)
        levels = np.sort(np.where(counts > 0, np.diff(total[cuts]) / np.maximum(counts, 1), levels))
    return levels


def _centroids(rows, count: int = 256):
    rng = np.random.default_rng(0)
    rows = rows[rng.permutation(len(rows))[:40000]]
    found = rows[:count].copy()
    for _ in range(12):
        nearest = ((found**2).sum(1) - 2 * rows @ found.T).argmin(1)
        counts = np.bincount(nearest, minlength=count)
        sums = np.stack([np.bincount(nearest, column, count) for column in rows.T], 1)
        other = rows[rng.integers(0, len(rows), count)]
        found = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], other).astype(np.float32)
    return found
