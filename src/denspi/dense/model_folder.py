"""A trained torch model as a folder: model.json (what it is), model.safetensors, tokenizer.json. Strict both ways."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from denspi.dense.backbone import make_backbone
from denspi.dense.model import PhraseModel, PhraseSettings, ReaderModel
from denspi.errors import ModelError, SettingsError
from denspi.settings import from_table

LAYOUT_VERSION = 1
Model = TypeVar("Model", bound=nn.Module)


def save_model(model: PhraseModel | ReaderModel, tokenizer: Path, folder: Path, half: bool = False) -> None:
    """Write the model and a copy of its tokenizer.json; with `half`, weights in float16 (half the size)."""
    folder.mkdir(parents=True, exist_ok=True)
    record: dict[str, Any] = {
        "layout_version": LAYOUT_VERSION,
        "kind": "phrase" if isinstance(model, PhraseModel) else "reader",
        "encoder": json.loads(model.backbone.encoder.config.to_json_string(use_diff=False)),  # type: ignore[union-attr, operator]
    }
    if isinstance(model, PhraseModel):
        record["phrase"] = dataclasses.asdict(model.settings)
    weights = {name: (w.half() if half else w).cpu().contiguous() for name, w in model.state_dict().items()}
    save_file(weights, folder / "model.safetensors")
    if tokenizer.resolve() != (folder / "tokenizer.json").resolve():
        shutil.copyfile(tokenizer, folder / "tokenizer.json")
    (folder / "model.json").write_text(json.dumps(record, indent=1) + "\n")


def load_phrase_model(folder: Path) -> PhraseModel:
    """A phrase model, float32 on the CPU."""
    record = _record(folder, "phrase")
    try:
        settings = from_table(PhraseSettings, record["phrase"])
    except (KeyError, SettingsError) as error:
        raise ModelError(f"{folder / 'model.json'}: {error}") from None
    second = make_backbone(record["encoder"]) if settings.independent_encoders else None
    return _filled(PhraseModel(make_backbone(record["encoder"]), settings, second), folder)


def load_reader_model(folder: Path) -> ReaderModel:
    """A reader, float32 on the CPU."""
    return _filled(ReaderModel(make_backbone(_record(folder, "reader")["encoder"])), folder)


def _record(folder: Path, kind: str) -> dict[str, Any]:
    for name in ("model.json", "model.safetensors", "tokenizer.json"):
        if not (folder / name).is_file():
            raise ModelError(f"{folder}: not a trained model folder, {name} is missing")
    try:
        record: dict[str, Any] = json.loads((folder / "model.json").read_text())
        found = (record["layout_version"], record["kind"])
        _ = record["encoder"]["model_type"]
    except (ValueError, KeyError, TypeError):
        raise ModelError(f"{folder / 'model.json'}: not a model record") from None
    if found != (LAYOUT_VERSION, kind):
        raise ModelError(
            f"{folder}: holds a {found[1]} model of layout {found[0]}; expected a {kind} model of layout {LAYOUT_VERSION}"
        )
    return record


def _filled(model: Model, folder: Path) -> Model:
    weights = load_file(folder / "model.safetensors")
    try:
        model.load_state_dict({name: w.to(torch.float32) for name, w in weights.items()}, strict=True)
    except RuntimeError as error:
        detail = " ".join(str(error).split())[:200]
        raise ModelError(f"{folder / 'model.safetensors'}: weights do not fit the model ({detail})") from None
    return model.eval()
