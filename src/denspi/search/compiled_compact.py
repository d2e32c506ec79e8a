"""The scores of compact rows as a compiled loop: the same numbers as `compact_numbers.compact_products`.

Nothing imports this unasked, as `compiled`. A row is unpacked once for all questions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from denspi.search.compact_numbers import FACTORS, PLACES
from denspi.search.weighing import Doubles


def compiled_compact_products(packed: NDArray[np.uint8], weights: NDArray[Any]) -> Doubles:
    """``[row, question]`` scores of rows of bytes, for weights ``[question, column + 1]``."""
    found = np.empty((len(packed), len(weights)))
    _products(packed, weights, FACTORS, found)
    return found


@njit(cache=True, nogil=True)
def _products(packed, weights, factors, found):  # type: ignore[no-untyped-def]
    columns, size = weights.shape[1] - 1, packed.shape[1] - 1
    wide, half = 2 * size - columns, columns - size
    codes = np.empty(columns, np.int32)
    for row in range(len(packed)):
        for i in range(wide):
            codes[i] = packed[row, 1 + i]
        for i in range(half):
            byte = packed[row, 1 + wide + i]
            codes[wide + i] = byte & 15
            codes[wide + half + i] = byte >> 4
        for question in range(len(weights)):
            total = np.int32(weights[question, columns])
            for k in range(columns):
                total = np.int32(total + codes[k] * np.int32(weights[question, k]))
            # Shifting rounds down, whatever the sign.
            found[row, question] = (np.int64(total) * factors[packed[row, 0]]) >> PLACES
