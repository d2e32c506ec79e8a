"""A trained torch model as a folder: model.json (what it is), model.safetensors, tokenizer.json.

A phrase model with a filter has its thresholds in model.json, its quantizer in quantizer.npz and, where one
was fitted, its compact code in compact.npz; model.json holds the fingerprints of both.

Loading is strict: every tensor is there and fits, and there is no other, or the model is not loaded at all.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn

from denspi.dense.backbone import AnyBackbone, make_backbone, one_line
from denspi.dense.calibration import ModelCalibration
from denspi.dense.codec import RowCodec
from denspi.dense.compact import COMPACT, load_compact, save_compact
from denspi.dense.filter import FilterThresholds
from denspi.dense.lstm import MODEL_TYPE as LSTM
from denspi.dense.lstm import make_lstm
from denspi.dense.model import PhraseModel, PhraseSettings, ReaderModel
from denspi.dense.quantizer import QUANTIZER, load_quantizer, save_quantizer
from denspi.errors import ModelError, SettingsError
from denspi.settings import from_table
from denspi.text.tokens import Tokenizer

LAYOUT_VERSION = 1
WEIGHTS = "model.safetensors"
Model = TypeVar("Model", bound=nn.Module)


def save_model(model: PhraseModel | ReaderModel, tokenizer: Path, folder: Path, half: bool = False) -> None:
    """Write the model and a copy of its tokenizer.json; with `half`, weights in float16 (half the size)."""
    folder.mkdir(parents=True, exist_ok=True)
    record: dict[str, Any] = {
        "layout_version": LAYOUT_VERSION,
        "kind": "phrase" if isinstance(model, PhraseModel) else "reader",
        "encoder": model.backbone.record(),
    }
    if isinstance(model, PhraseModel):
        record["phrase"] = dataclasses.asdict(model.settings)
        for name in (QUANTIZER, COMPACT):
            (folder / name).unlink(missing_ok=True)
        if model.filter_thresholds is not None:
            record["filter"] = dataclasses.asdict(model.filter_thresholds)
        if model.calibration is not None:
            record["calibration"] = dataclasses.asdict(model.calibration)
        if model.quantizer is not None:
            record["quantizer"] = model.quantizer.fingerprint
            save_quantizer(model.quantizer, folder / QUANTIZER)
        if model.compact is not None:
            record["compact"] = model.compact.fingerprint
            save_compact(model.compact, folder / COMPACT)
    weights = {name: (w.half() if half else w).cpu().contiguous() for name, w in model.state_dict().items()}
    try:
        save_file(weights, folder / WEIGHTS)
    except SafetensorError as error:
        raise ModelError(f"{folder / 'model.safetensors'}: cannot be written ({one_line(error)})") from None
    if tokenizer.resolve() != (folder / "tokenizer.json").resolve():
        shutil.copyfile(tokenizer, folder / "tokenizer.json")
    (folder / "model.json").write_text(json.dumps(record, indent=1) + "\n")


def load_phrase_model(folder: Path) -> PhraseModel:
    """A phrase model, float32 on the CPU."""
    record = read_model_record(folder, "phrase")
    try:
        settings = from_table(PhraseSettings, record["phrase"])
        thresholds = from_table(FilterThresholds, record["filter"]) if "filter" in record else None
        calibration = from_table(ModelCalibration, record["calibration"]) if "calibration" in record else None
        second = _backbone(record, folder) if settings.independent_encoders else None
        fresh = PhraseModel(_backbone(record, folder), settings, second)
    except (KeyError, TypeError, SettingsError) as error:
        raise ModelError(f"{folder / 'model.json'}: not a phrase model's settings ({error})") from None
    model = _filled(fresh, folder)
    _check_tokenizer(model, folder)
    model.filter_thresholds, model.calibration = thresholds, calibration
    if "quantizer" in record:
        model.quantizer = load_quantizer(folder / QUANTIZER)
        _check_codec(model.quantizer, record["quantizer"], model, folder / QUANTIZER, "quantizer")
    if "compact" in record:
        model.compact = load_compact(folder / COMPACT)
        _check_codec(model.compact, record["compact"], model, folder / COMPACT, "compact code")
    return model


def load_reader_model(folder: Path) -> ReaderModel:
    """A reader, float32 on the CPU."""
    model = _filled(ReaderModel(_backbone(read_model_record(folder, "reader"), folder)), folder)
    _check_tokenizer(model, folder)
    return model


def _check_tokenizer(model: PhraseModel | ReaderModel, folder: Path) -> None:
    pieces, rows = Tokenizer(folder / "tokenizer.json").vocab_size, model.backbone.vocab_size
    if pieces > rows:
        raise ModelError(
            f"{folder / 'tokenizer.json'}: not the tokenizer of this model, it has {pieces} pieces where the "
            f"weights have {rows}; copy or train the model again"
        )


def _check_codec(codec: RowCodec, fingerprint: str, model: PhraseModel, path: Path, what: str) -> None:
    is_its_own = codec.fingerprint == fingerprint
    if not is_its_own or not codec.fits(model.vector_dim, model.settings.coherency_dim):
        raise ModelError(f"{path}: not the {what} of this model; copy or train it again")


def _backbone(record: dict[str, Any], folder: Path) -> AnyBackbone:
    encoder = record["encoder"]
    try:
        return make_lstm(encoder) if encoder["model_type"] == LSTM else make_backbone(encoder)
    except Exception as error:  # as in `load_backbone`
        raise ModelError(f"{folder / 'model.json'}: not an encoder's config ({one_line(error)})") from None


def read_model_record(folder: Path, kind: str) -> dict[str, Any]:
    """What model.json says; `ModelError` where the folder is not complete or holds another kind."""
    for name in ("model.json", WEIGHTS, "tokenizer.json"):
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
            f"{folder}: holds a {found[1]} model of layout {found[0]}; "
            f"expected a {kind} model of layout {LAYOUT_VERSION}"
        )
    return record


def _filled(model: Model, folder: Path) -> Model:
    path = folder / WEIGHTS
    try:
        weights = load_file(path)
    except SafetensorError as error:
        raise ModelError(f"{path}: cannot be read ({one_line(error)})") from None
    expected = model.state_dict()
    wrong = sorted(expected.keys() ^ weights.keys())
    wrong += [name for name, w in weights.items() if name in expected and w.shape != expected[name].shape]
    if wrong:
        raise ModelError(
            f"{path}: weights do not fit model.json ({len(wrong)} missing, unknown or of another shape: "
            f"{', '.join(wrong[:3])}{', ...' if len(wrong) > 3 else ''})"
        )
    model.load_state_dict({name: w.to(torch.float32) for name, w in weights.items()}, strict=True)
    return model.eval()
