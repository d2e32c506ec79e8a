"""The query-agnostic baseline of the paper's Table 1 as a backbone: a bidirectional LSTM with self-attention.

After Seo et al. 2018 (PIQA, https://arxiv.org/abs/1804.07726), not a copy: it has word pieces in place of
words and characters. Its embeddings are learned, or those of a pretrained encoder, which stay as they are;
everything else is learned from scratch. A text's hidden states do not depend on what it is padded with. It
has no graph replay and is not exported.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from denspi.dense.backbone import AnyBackbone
from denspi.errors import SettingsError
from denspi.settings import from_table

MODEL_TYPE = "lstm"
"""What stands in a model record where a transformers encoder has its `model_type`."""
_EMBEDDING_STD = 0.4  # of pretrained embeddings, as word vectors for LSTMs have it; encoders normalise theirs


@dataclass(frozen=True, slots=True)
class LstmSettings:
    """Sizes; `hidden_dim` counts both directions together, and is what the phrase model splits.

    `embeddings` are "learned", or those of the "encoder" that gives the tokenizer, at their own size.
    """

    embeddings: Literal["learned", "encoder"] = "learned"
    embedding_dim: int = 300
    hidden_dim: int = 512
    layers: int = 2
    heads: int = 4
    dropout: float = 0.2

    def __post_init__(self) -> None:
        if min(self.embedding_dim, self.hidden_dim, self.layers, self.heads) < 1:
            raise ValueError("sizes are positive")
        if self.hidden_dim % 2 or self.hidden_dim % self.heads:
            raise ValueError("hidden_dim is even and a multiple of heads")
        if not 0 <= self.dropout < 1:
            raise ValueError("dropout lies in [0, 1)")


class LstmBackbone(AnyBackbone):
    """Embeddings of pieces and types, the LSTM, one layer of self-attention added to its states."""

    def __init__(self, settings: LstmSettings, vocab_size: int) -> None:
        super().__init__()
        self.settings, self.vocab_size = settings, vocab_size
        self.dim, self.has_types = settings.hidden_dim, True
        self.max_pieces = 512  # no position is numbered; attention's memory grows with the square
        self.pieces = nn.Embedding(vocab_size, settings.embedding_dim)
        self.types = nn.Embedding(2, settings.embedding_dim)
        self.lstm = nn.LSTM(
            settings.embedding_dim,
            settings.hidden_dim // 2,
            settings.layers,
            batch_first=True,
            bidirectional=True,
            dropout=settings.dropout if settings.layers > 1 else 0.0,
        )
        self.attention_in = nn.Linear(self.dim, 3 * self.dim)
        self.attention_out = nn.Linear(self.dim, self.dim)
        self.norm = nn.LayerNorm(self.dim)
        self.dropout = nn.Dropout(settings.dropout)
        for table in (self.pieces, self.types):  # small, as encoders have it: a lookup is a sum of both
            nn.init.normal_(table.weight, std=0.1)

    def take_embeddings(self, table: Tensor) -> None:
        """Use pretrained embeddings ``[piece, dim]`` and keep them as they are."""
        if table.shape != self.pieces.weight.shape:
            raise SettingsError(
                f"lstm.embedding_dim: the encoder has embeddings of {' x '.join(map(str, table.shape))}, "
                f"the LSTM of {' x '.join(map(str, self.pieces.weight.shape))}; set it to {table.shape[1]}"
            )
        with torch.no_grad():
            self.pieces.weight.copy_(table * (_EMBEDDING_STD / table.std()))
        self.pieces.weight.requires_grad_(False)

    def forward(self, ids: Tensor, mask: Tensor, types: Tensor, slot: int = 0) -> Tensor:
        """Hidden states ``[text, piece, dim]``; `slot` is for graph replay, which this backbone has not."""
        embedded = self.dropout(self.pieces(ids) + self.types(types))
        # Packed, so that the backward direction starts at each text's own end. In float32: a recurrence adds
        # rounding errors up.
        with torch.autocast(ids.device.type, enabled=False):
            packed = pack_padded_sequence(
                embedded.float(), mask.sum(1).cpu(), batch_first=True, enforce_sorted=False
            )
            states, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=ids.shape[1])
        states = self.dropout(states)
        hidden: Tensor = self.norm(states + self.dropout(self._attended(states, mask)))
        return hidden

    def record(self) -> dict[str, Any]:
        """The sizes, and the number of pieces."""
        return {"model_type": MODEL_TYPE, "vocab_size": self.vocab_size, **asdict(self.settings)}

    def _attended(self, states: Tensor, mask: Tensor) -> Tensor:
        texts, pieces, _ = states.shape
        parts = self.attention_in(states).view(texts, pieces, 3, self.settings.heads, -1)
        query, key, value = parts.permute(2, 0, 3, 1, 4)  # [text, head, piece, dim of a head] each
        visible = mask[:, None, None, :].bool()
        found = scaled_dot_product_attention(query, key, value, attn_mask=visible)
        out: Tensor = self.attention_out(found.transpose(1, 2).reshape(texts, pieces, self.dim))
        return out


def make_lstm(record: dict[str, Any]) -> LstmBackbone:
    """The same architecture with fresh weights; `SettingsError` or `ValueError` if it is no LSTM's record."""
    table = {key: value for key, value in record.items() if key not in ("model_type", "vocab_size")}
    vocab_size = record.get("vocab_size")
    if not isinstance(vocab_size, int) or vocab_size < 1:
        raise ValueError(f"vocab_size is {vocab_size!r}")
    return LstmBackbone(from_table(LstmSettings, table), vocab_size)
