"""What a model knows about searching with it: a plain record that training fits and model folders carry."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ModelCalibration:
    """`sparse_weight` is the paper's scale of sparse against dense scores; the others turn a margin into a
    probability (see `denspi.search.confidence`)."""

    sparse_weight: float
    confidence_slope: float
    confidence_intercept: float
