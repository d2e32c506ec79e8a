"""The text encoder under a model: any transformers encoder, from a folder or a hub. Never a partial load.
(`lstm` has another one.)

A backbone maps ``ids, mask, types`` (all ``[text, piece]``) to hidden states ``[text, piece, dim]``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, PretrainedConfig
from transformers.utils import logging as transformers_logging

from denspi.errors import ModelError

_POSITIONS_AFTER_PADDING = {"mpnet", "roberta", "xlm-roberta", "camembert"}
# Encoders that add a mask of four dimensions to attention as it is. DeBERTa would read it as ones and zeros,
# and attend to nothing but padding.
_ADDS_MASK = {"albert", "bert", "distilbert", "electra", "modernbert", *_POSITIONS_AFTER_PADDING}


class AnyBackbone(nn.Module):
    """What models need of a backbone."""

    dim: int
    has_types: bool  # tells questions from paragraphs by `types`
    max_pieces: int  # longest input, special tokens included
    vocab_size: int  # rows of the table of pieces

    def forward(self, ids: Tensor, mask: Tensor, types: Tensor, slot: int = 0) -> Tensor:
        """Hidden states ``[text, piece, dim]``; `slot` keeps the calls of one training step apart."""
        raise NotImplementedError

    def record(self) -> dict[str, Any]:
        """What makes the same architecture again; `model_type` says whose it is."""
        raise NotImplementedError


class Backbone(AnyBackbone):
    """A transformers encoder without its pooler, which nothing here uses."""

    encoder: Any

    def __init__(self, encoder: Any) -> None:
        super().__init__()
        encoder.pooler = None
        self.encoder = encoder
        config = encoder.config
        self.dim = config.hidden_size
        self.has_types = getattr(config, "type_vocab_size", 0) > 1
        # Some encoders number positions from the padding id on, and so hold fewer than their table has rows.
        unused = config.pad_token_id + 1 if config.model_type in _POSITIONS_AFTER_PADDING else 0
        self.max_pieces = config.max_position_embeddings - unused
        self.vocab_size = encoder.get_input_embeddings().num_embeddings
        self.replay: Callable[[Tensor, Tensor, Tensor, int], Tensor] | None = None

    def forward(self, ids: Tensor, mask: Tensor, types: Tensor, slot: int = 0) -> Tensor:
        """Hidden states ``[text, piece, dim]``; `slot` keeps the calls of one training step apart."""
        if self.replay is not None and self.training and torch.is_grad_enabled():
            return self.replay(ids, mask, types, slot)
        return self.hidden(ids, mask, types)

    def record(self) -> dict[str, Any]:
        """The encoder's whole config."""
        config: dict[str, Any] = json.loads(self.encoder.config.to_json_string(use_diff=False))
        return config

    def hidden(self, ids: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        """The encoder's last hidden state."""
        extra = {"token_type_ids": types} if self.has_types else {}
        config = self.encoder.config
        if config._attn_implementation == "eager" and config.model_type in _ADDS_MASK:
            # What the encoder would make of the mask itself, without a copy from the CPU (training.graphs).
            mask = (mask[:, None, None, :] - 1) * 1e9
        with ids.device:  # some encoders make helper tensors on the default device and then move them
            output = self.encoder(input_ids=ids, attention_mask=mask, **extra)
        hidden: Tensor = output.last_hidden_state
        return hidden


def load_backbone(name: str, dropout: float | None = None) -> Backbone:
    """Load pretrained weights from a folder (config.json, model.safetensors) or a hub id.

    With `dropout`, every one that the config names is that, in training and in what is saved.
    """
    folder = Path(name)
    if folder.exists() or folder.is_absolute() or name.startswith("."):
        for file in ("config.json", "model.safetensors"):
            if not (folder / file).is_file():
                raise ModelError(f"{folder}: not an encoder folder, {file} is missing")
    transformers_logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        config = AutoConfig.from_pretrained(name)
        if dropout is not None:
            _set_dropout(config, dropout)
        # Tensors of another shape are let through only to be named below: nothing is loaded in part.
        encoder, info = AutoModel.from_pretrained(
            name, config=config, output_loading_info=True, ignore_mismatched_sizes=True, dtype=torch.float32
        )
    except Exception as error:  # a config of other types, sizes or names fails anywhere in the library
        raise ModelError(f"{name}: cannot be loaded as an encoder ({one_line(error)})") from None
    mismatched = [key if isinstance(key, str) else key[0] for key in info["mismatched_keys"]]
    wrong = [key for key in sorted({*info["missing_keys"], *mismatched}) if not key.startswith("pooler.")]
    if wrong:
        raise ModelError(
            f"{name}: weights do not fit the config (missing or of another shape: "
            f"{', '.join(wrong[:3])}{', ...' if len(wrong) > 3 else ''})"
        )
    try:
        return Backbone(encoder)
    except AttributeError as error:  # T5 and its kind
        raise ModelError(f"{name}: not an encoder of BERT's kind ({one_line(error)})") from None


def _set_dropout(config: PretrainedConfig, dropout: float) -> None:
    keys = [
        key for key, value in config.to_dict().items() if "dropout" in key and type(value) in (float, int)
    ]
    if not keys:
        raise ValueError("its config names no dropout to set")
    for key in keys:
        setattr(config, key, dropout)


def make_backbone(config: dict[str, Any]) -> Backbone:
    """The same architecture with fresh weights, from its `record()`."""
    return Backbone(AutoModel.from_config(AutoConfig.for_model(**config)))  # type: ignore[no-untyped-call]


def one_line(error: Exception) -> str:
    """What a library's error says, fit to be quoted in ours."""
    return " ".join((str(error).strip() or type(error).__name__).splitlines()[0].split()).rstrip(":")
