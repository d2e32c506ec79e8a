"""The paragraph search of `postings` as one compiled loop: the same hits, bit for bit. Needs numba.

Loading the compiler costs more than some hundred questions, so nothing imports this unasked: it is for
programs that stay, such as a service.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from denspi.sparse.layout import COUNT_BITS, COUNT_MASK

OVERFLOW = -1


@njit(cache=True)
def best_units(
    postings: NDArray[np.uint32],
    places: NDArray[np.int64],  # [list]
    lengths: NDArray[np.int64],  # [list]
    factors: NDArray[np.float64],  # [list]
    norms: NDArray[np.float32],  # [unit]
    log_counts: NDArray[np.float64],
    sums: NDArray[np.float64],  # [unit] zeros, and zeros again afterwards
    units: NDArray[np.uint32],  # [k] filled with the best units, best first; the lower number wins a tie
    scores: NDArray[np.float64],  # [k] their scores
) -> int:
    """How many of the k there are, or `OVERFLOW` if a list holds a count that its posting has no room for."""
    touched = np.empty(lengths.sum(), np.uint32)
    seen = 0
    overflows = False
    for row in range(len(places)):
        for place in range(places[row], places[row] + lengths[row]):
            posting = postings[place]
            unit, count = posting >> COUNT_BITS, posting & COUNT_MASK
            overflows |= count == COUNT_MASK
            if sums[unit] == 0.0:
                touched[seen] = unit
                seen += 1
            # The same products in the same order as everywhere else.
            sums[unit] += log_counts[count] * factors[row] * norms[unit]
    found = 0
    for n in range(seen):
        unit, score = touched[n], sums[touched[n]]
        sums[unit] = 0.0
        last = found - 1
        if score <= 0.0 or (
            found == len(units) and (score < scores[last] or (score == scores[last] and unit > units[last]))
        ):
            continue
        place = min(found, len(units) - 1)
        while place > 0 and (
            scores[place - 1] < score or (scores[place - 1] == score and units[place - 1] > unit)
        ):
            scores[place], units[place] = scores[place - 1], units[place - 1]
            place -= 1
        scores[place], units[place] = score, unit
        found = min(found + 1, len(units))
    return OVERFLOW if overflows else found
