"""The loops over postings, compiled: the same scores and hits as without, bit for bit. Needs numba.

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


@njit(cache=True, nogil=True)
def add_up(
    postings: NDArray[np.uint32],
    places: NDArray[np.int64],  # [list]
    lengths: NDArray[np.int64],  # [list]
    factors: NDArray[np.float64],  # [list]
    unit_norms: NDArray[np.float32],  # [unit]
    unit_documents: NDArray[np.uint32],  # [unit]
    document_norms: NDArray[np.float32],  # [document]
    log_counts: NDArray[np.float64],
    unit_scores: NDArray[np.float64],  # [unit] zeros, to be filled
    document_scores: NDArray[np.float64],  # [document] zeros, to be filled
    touched: NDArray[np.int64],  # [posting] room for the units with a score, each once
) -> int:
    """How many units have a score, or `OVERFLOW` if a count is beyond `log_counts` or has no room."""
    seen = 0
    for row in range(len(places)):
        document, count_of_document = np.int64(-1), np.int64(0)
        for place in range(places[row], places[row] + lengths[row]):
            posting = postings[place]
            unit, count = np.int64(posting >> COUNT_BITS), np.int64(posting & COUNT_MASK)
            if count == COUNT_MASK:
                return OVERFLOW
            before = unit_scores[unit]
            unit_scores[unit] = before + log_counts[count] * factors[row] * unit_norms[unit]
            if before == 0.0 and unit_scores[unit] != 0.0:
                touched[seen] = unit
                seen += 1
            if unit_documents[unit] != document:  # those of one document stand together
                if document >= 0:
                    part = log_counts[count_of_document] * factors[row] * document_norms[document]
                    document_scores[document] += part
                document, count_of_document = np.int64(unit_documents[unit]), np.int64(0)
            count_of_document += count
            if count_of_document >= len(log_counts):
                return OVERFLOW
        if document >= 0:
            part = log_counts[count_of_document] * factors[row] * document_norms[document]
            document_scores[document] += part
    return seen
