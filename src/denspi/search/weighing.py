"""A question as the floats that stored codes are multiplied with, and how they become whole numbers. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]
ROUNDED_UP = 1 + 1e-9
"""Makes a length that was rounded one that is not too short."""
_INT32 = (1 << 31) - 1
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, slots=True, eq=False)
class Weighing:
    """One question for rows of one kind."""

    weights: Doubles  # [weight]
    most: NDArray[Any]  # [weight] the largest size of what a row multiplies each with
    shift: float  # the same for every row
    dtype: np.dtype[Any]  # of the whole numbers that the weights become

    @property
    def finest_step(self) -> float:
        """The finest step at which weights fit into their type and the score of any row into 32 bits."""
        sizes = np.abs(self.weights)
        row_limit = _INT32 - float(self.most.sum())  # rounding may add a half to each weight
        largest = (1 << (8 * self.dtype.itemsize - 1)) - 1
        step = max(float(sizes.max(initial=0)) / largest, float(sizes @ self.most) / row_limit)
        return step if step > _TINY else 1.0

    def rounded(self, step: float) -> NDArray[Any]:
        """The weights as whole numbers of steps."""
        return np.rint(self.weights / step).astype(self.dtype)
