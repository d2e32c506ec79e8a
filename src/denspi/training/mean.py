"""The mean of several phrase models' weights, which reads better than any of them and costs no more.

Models that were trained from the same pretrained weights, on the same data in other orders, lie in one basin:
between them the loss is lower than where each one stopped (Wortsman et al. 2022, "Model soups").
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from denspi.dense.model import PhraseModel
from denspi.dense.model_folder import load_phrase_model
from denspi.errors import ModelError


def mean_model(folders: Sequence[Path]) -> PhraseModel:
    """Of the architecture of the folders; without filter, codecs and calibration, which fit one model."""
    mean = load_phrase_model(folders[0])
    mean.filter_thresholds = mean.quantizer = mean.compact = mean.calibration = None
    sums = mean.state_dict()
    shapes = {name: weights.shape for name, weights in sums.items()}
    for folder in folders[1:]:
        other = load_phrase_model(folder)
        weights = other.state_dict()
        if other.settings != mean.settings or {k: w.shape for k, w in weights.items()} != shapes:
            raise ModelError(f"{folder}: not of the architecture of {folders[0]}; a mean needs models of one")
        for name, total in sums.items():
            total += weights[name]
    for total in sums.values():
        total /= len(folders)
    return mean
