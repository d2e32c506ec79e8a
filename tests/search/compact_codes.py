"""Compact codes that were never fitted: any numbers will do."""

from __future__ import annotations

import numpy as np

from denspi.dense.compact import CompactCode, CompactQuantizer, Grid


def compact_quantizer(
    dim: int, keys: int, wides: tuple[int, int] = (1, 1), vector_bytes: int = 4, seed: int = 7
) -> CompactQuantizer:
    """So many columns of 8 bits for starts and for ends, and columns of 4 bits in what is left of a row."""
    random = np.random.default_rng(seed)

    def grid(columns: int, wide: int) -> Grid:
        levels = np.where(np.arange(columns) < wide, 255, 15)
        lowest = random.normal(-1, 0.3, columns)
        return Grid(
            *(each.astype(np.float32) for each in (lowest, random.uniform(1, 3, columns) / levels)), wide
        )

    def code(wide: int) -> CompactCode:
        kept = wide + 2 * (vector_bytes - 1 - wide)
        parts = random.normal(0, 0.3, dim), np.eye(dim), random.standard_normal((kept, dim))
        return CompactCode(*(each.astype(np.float32) for each in parts), grid(kept, wide))

    return CompactQuantizer(*(code(wide) for wide in wides), grid(keys, keys % 2), grid(keys, keys % 2))
