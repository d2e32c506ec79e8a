"""How sure an answer is: its margin over the best rival, as a probability. Pure.

Raw scores shift with the size of a collection; the distance to the next different answer shifts less. The two
numbers of the curve are fitted in training, on held-out articles, and belong to the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_LARGEST_EXPONENT = 700.0
"""Of what a double holds the power of e; a great sparse weight puts answers further apart than this."""


@dataclass(frozen=True, slots=True)
class Confidence:
    """``1 / (1 + exp(-(slope * margin + intercept)))``."""

    slope: float
    intercept: float

    def of(self, margin: NDArray[np.float64]) -> NDArray[np.float64]:
        """The probability that an answer with this margin is right."""
        exponent = np.minimum(-(self.slope * margin + self.intercept), _LARGEST_EXPONENT)
        return 1 / (1 + np.exp(exponent))


def fit_confidence(margin: NDArray[np.float64], is_right: NDArray[np.bool_], steps: int = 50) -> Confidence:
    """Logistic regression of right answers on margins, by Newton's method with a slight pull towards zero."""
    inputs = np.stack([margin, np.ones_like(margin)], axis=1)
    weights = np.zeros(2)
    pull = 1e-3 * np.eye(2)
    for _ in range(steps):
        found = 1 / (1 + np.exp(-inputs @ weights))
        gradient = inputs.T @ (found - is_right) + pull @ weights
        curvature = (inputs * (found * (1 - found))[:, None]).T @ inputs + pull
        weights = weights - np.linalg.solve(curvature, gradient)
    return Confidence(float(weights[0]), float(weights[1]))


@dataclass(frozen=True, slots=True)
class ConfidenceBin:
    """Answers of similar confidence: what was stated of them on average, and how many were right."""

    answers: int
    confidence: float
    accuracy: float


def reliability(
    confidence: NDArray[np.float64], is_right: NDArray[np.bool_], bins: int = 10
) -> tuple[ConfidenceBin, ...]:
    """Bins of equal size, from the least sure answers to the surest."""
    order = np.argsort(confidence, kind="stable")
    return tuple(
        ConfidenceBin(len(part), float(confidence[part].mean()), float(is_right[part].mean()))
        for part in np.array_split(order, bins)
        if len(part)
    )


def calibration_error(bins: Sequence[ConfidenceBin]) -> float:
    """Expected calibration error: the mean distance of stated and true accuracy."""
    gaps = sum(each.answers * abs(each.confidence - each.accuracy) for each in bins)
    return gaps / max(1, sum(each.answers for each in bins))


def risk_coverage(
    confidence: NDArray[np.float64], is_right: NDArray[np.bool_], coverages: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The share of wrong answers among the surest ones, for each share of questions that is answered."""
    wrong = ~is_right[np.argsort(-confidence, kind="stable")]
    counts = np.maximum(1, np.round(coverages * len(wrong)).astype(int))
    return np.asarray(np.cumsum(wrong)[counts - 1] / counts, dtype=np.float64)
