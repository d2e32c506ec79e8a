"""A tiny phrase model with random weights, trained by nobody, and its exported folder."""

from pathlib import Path

import torch
from tests.tiny import save_encoder

from denspi.dense.backbone import load_backbone
from denspi.dense.export import Calibration, ExportSettings, export_phrase_model
from denspi.dense.model import PhraseModel, PhraseSettings
from denspi.dense.model_folder import save_model

TEXTS = (
    "ada lives in oslo and works as a baker .",
    "bram lives in lima , and works as a pilot . cleo was a nurse in riga for 42 years .",
)
QUESTIONS = ("where does ada live ?", "what job does bram have ?")
CALIBRATION = Calibration(TEXTS, QUESTIONS)


def save_trained(folder: Path, settings: PhraseSettings | None = None) -> Path:
    """A torch phrase model's folder; the weights of the encoder are spread enough to make vectors differ."""
    settings = settings or PhraseSettings(coherency_dim=4)
    save_encoder(folder / "encoder")
    torch.manual_seed(1)
    backbone = load_backbone(str(folder / "encoder"))
    second = load_backbone(str(folder / "encoder")) if settings.independent_encoders else None
    model = PhraseModel(backbone, settings, second)
    with torch.no_grad():
        for weights in model.parameters():
            weights.add_(0.1 * torch.randn_like(weights))
    save_model(model.eval(), folder / "encoder" / "tokenizer.json", folder / "trained")
    return folder / "trained"


def save_exported(folder: Path) -> Path:
    """The same, exported."""
    export_phrase_model(save_trained(folder), folder / "exported", ExportSettings("int8"), CALIBRATION)
    return folder / "exported"
