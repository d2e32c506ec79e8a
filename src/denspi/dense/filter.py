"""Which words are worth a row in the index (the paper's "Filtering"): logits and thresholds -> masks.

Pure numpy. The model's filter heads give the logits; the thresholds are chosen in training and belong to the
model. A word that cannot start (or end) a phrase is never kept, whatever its logit.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from denspi.vectors import ParagraphVectors

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class FilterThresholds:
    """The smallest logits that are kept; float32 values, so that they compare as they were chosen."""

    start: float
    end: float

    def __post_init__(self) -> None:
        if math.isnan(self.start) or math.isnan(self.end):
            raise ValueError("a threshold is not a number")


def kept_starts(paragraph: ParagraphVectors, thresholds: FilterThresholds) -> Mask:
    """The words ``[word]`` whose start vectors are stored."""
    return paragraph.can_start & (paragraph.start_logits >= np.float32(thresholds.start))


def kept_ends(paragraph: ParagraphVectors, thresholds: FilterThresholds) -> Mask:
    """The words ``[word]`` whose end vectors are stored."""
    return paragraph.can_end & (paragraph.end_logits >= np.float32(thresholds.end))


def filtered(paragraph: ParagraphVectors, thresholds: FilterThresholds) -> ParagraphVectors:
    """The same paragraph where only kept words start and end phrases: what a search of an index sees."""
    return dataclasses.replace(
        paragraph, can_start=kept_starts(paragraph, thresholds), can_end=kept_ends(paragraph, thresholds)
    )
