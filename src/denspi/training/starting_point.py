"""What a run starts from: the tokenizer, and backbones with pretrained, handed-on or fresh weights."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from denspi.dense.backbone import AnyBackbone, Backbone, load_backbone
from denspi.dense.lstm import LstmBackbone, LstmSettings
from denspi.dense.model_folder import load_reader_model
from denspi.errors import ModelError, SettingsError
from denspi.text.tokens import Tokenizer
from denspi.training.examples import Limits
from denspi.training.graphs import GraphReplay
from denspi.training.settings import RunSettings


def find_tokenizer(encoder: str) -> Path:
    """The tokenizer.json of an encoder folder or of a hub id."""
    folder = Path(encoder)
    if folder.is_dir():
        return folder / "tokenizer.json"
    from huggingface_hub import hf_hub_download  # comes with transformers; only a hub id needs it
    from huggingface_hub.utils import logging

    # It would tell of every attempt; what became of them is said below.
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    try:
        return Path(hf_hub_download(encoder, "tokenizer.json"))
    except (OSError, ValueError) as error:
        first = str(error).strip().splitlines()[0]
        raise ModelError(f"{encoder}: neither a folder nor reachable on the hub ({first})") from None


def starting_backbone(settings: RunSettings, tokenizer: Tokenizer, device: torch.device) -> AnyBackbone:
    """A backbone as the settings want it; it takes their longest input, and every piece of the tokenizer."""
    backbone: AnyBackbone
    if settings.start:
        check_tokenizer(settings.start, settings.encoder)
        backbone = load_reader_model(settings.start).backbone
    elif settings.lstm:
        backbone = _lstm(settings.lstm, settings.encoder, tokenizer)
    else:
        backbone = load_backbone(settings.encoder, settings.dropout)
    check_limits(settings.limits, backbone, "the encoder")
    if tokenizer.vocab_size > backbone.vocab_size:
        raise ModelError(
            f"{settings.start or settings.encoder}: weights do not fit the tokenizer of {settings.encoder}, "
            f"which has {tokenizer.vocab_size} pieces where they have {backbone.vocab_size}"
        )
    use_graphs(backbone, settings, device)
    return backbone


def check_tokenizer(folder: Path, encoder: str) -> None:
    """A model goes on with the pieces that it was trained with: its table knows no others."""
    path = folder / "tokenizer.json"
    if path.exists() and path.read_bytes() != find_tokenizer(encoder).read_bytes():
        raise ModelError(f"{folder}: its tokenizer is not that of {encoder}; set encoder to it")


def check_limits(limits: Limits, backbone: AnyBackbone, whose: str) -> None:
    """The longest pair of question and paragraph has a place for each of its pieces."""
    needed = limits.longest_pair
    if needed > backbone.max_pieces:
        raise SettingsError(f"limits: {needed} pieces do not fit {whose}'s {backbone.max_pieces}; lower them")


def _lstm(settings: LstmSettings, encoder: str, tokenizer: Tokenizer) -> LstmBackbone:
    backbone = LstmBackbone(settings, tokenizer.vocab_size)
    if settings.embeddings == "encoder":
        backbone.take_embeddings(load_backbone(encoder).encoder.get_input_embeddings().weight)
    return backbone


def use_graphs(model: nn.Module, settings: RunSettings, device: torch.device) -> None:
    """On a GPU, let the encoders in `model` replay recorded kernels while they train."""
    if settings.graphs and device.type == "cuda":
        for module in model.modules():
            if isinstance(module, Backbone):
                module.replay = GraphReplay(module)
