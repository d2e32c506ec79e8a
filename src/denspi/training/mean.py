"""The mean of several phrase models' weights, which can read better than any of them and costs no more.

Models that were trained from the same pretrained weights, on the same data in other orders, lie in one basin:
between them the loss is lower than where each one stopped (Wortsman et al. 2022, "Model soups"). Of models
that started elsewhere the mean is of no use, which nothing here can see.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from denspi.dense.model import PhraseModel
from denspi.dense.model_folder import load_phrase_model
from denspi.errors import ModelError

# What a config says beside how the encoder computes.
_ASIDE = {"_name_or_path", "architectures", "transformers_version", "use_cache"}


def mean_model(folders: Sequence[Path]) -> PhraseModel:
    """Of the architecture of the folders; without filter, codecs and calibration, which fit one model.

    Its dropout, where it is trained on, is that of the first.
    """
    mean = load_phrase_model(folders[0])
    mean.filter_thresholds = mean.quantizer = mean.compact = mean.calibration = None
    sums = mean.state_dict()
    for folder in folders[1:]:
        other = load_phrase_model(folder)
        weights = other.state_dict()
        ours, theirs = architecture_of(mean), architecture_of(other)
        if differs := sorted(key for key in ours.keys() & theirs.keys() if ours[key] != theirs[key]):
            raise ModelError(
                f"{folder}: {differs[0]} is {theirs[differs[0]]!r}, of {folders[0]} {ours[differs[0]]!r}; "
                "a mean needs models of one architecture"
            )
        for name, total in sums.items():
            total += weights[name]
    for total in sums.values():
        total /= len(folders)
    return mean


def architecture_of(model: PhraseModel) -> dict[str, Any]:
    """What must be the same for two models to compute in the same way, but for their weights."""
    config = model.backbone.record() | dataclasses.asdict(model.settings)
    return {key: value for key, value in config.items() if "dropout" not in key and key not in _ASIDE}
