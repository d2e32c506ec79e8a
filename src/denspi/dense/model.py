"""The phrase model of the paper's section 4 in torch: one encoder, its last hidden state split four ways.

Owns the split, the question vector, the no-answer bias and the filter heads, and carries the thresholds and
the codecs that training fitted to them. Works on word pieces already numbered and padded; tokens, windows
and answers are other modules' business.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from denspi.dense.backbone import AnyBackbone
from denspi.dense.calibration import ModelCalibration
from denspi.dense.compact import CompactQuantizer
from denspi.dense.filter import FilterThresholds
from denspi.dense.quantizer import Quantizer
from denspi.errors import SettingsError


@dataclass(frozen=True, slots=True)
class PhraseSettings:
    """What the paper's ablations (Table 1) and ours switch.

    `coherency`: "free" is h3_i . h4_j as it is; "product" multiplies it by the question's own h3' . h4', as
    Equations 1-3 say; "none" leaves it out. `question_pooling` says what of a question is split.
    """

    coherency_dim: int = 16
    coherency: Literal["free", "product", "none"] = "free"
    linear_layer: bool = False
    independent_encoders: bool = False
    question_pooling: Literal["first", "mean"] = "first"

    def __post_init__(self) -> None:
        if self.coherency_dim < 0:
            raise ValueError("coherency_dim is negative")
        if (self.coherency == "none") != (self.coherency_dim == 0):
            raise ValueError('coherency = "none" goes with coherency_dim = 0, and only with it')


class PhraseParts(NamedTuple):
    """The four-way split h1, h2, h3, h4; the leading dimensions are those of the hidden states."""

    start: Tensor
    end: Tensor
    start_key: Tensor
    end_key: Tensor


class Questions(NamedTuple):
    """Question vectors: a' and b' ``[question, dim]``, c' ``[question]``."""

    start: Tensor
    end: Tensor
    coherency: Tensor


class PhraseModel(nn.Module):
    """Encodes paragraphs and questions into one space (Equations 4 and 5)."""

    def __init__(
        self, backbone: AnyBackbone, settings: PhraseSettings, question_backbone: AnyBackbone | None = None
    ) -> None:
        super().__init__()
        if (question_backbone is not None) != settings.independent_encoders:
            raise ValueError("a second backbone goes with independent_encoders, and only with it")
        self.settings = settings
        self.backbone = backbone
        self.question_backbone = question_backbone
        self.linear = nn.Linear(backbone.dim, backbone.dim) if settings.linear_layer else None
        self.vector_dim = (backbone.dim - 2 * settings.coherency_dim) // 2
        if self.vector_dim < 1:
            raise SettingsError(
                f"model.coherency_dim: {settings.coherency_dim} leaves nothing of the encoder's"
                f" {backbone.dim} dimensions for vectors; set it to at most {(backbone.dim - 2) // 2}"
            )
        self.no_answer_bias = nn.Parameter(torch.zeros(()))
        self.start_filter = nn.Linear(self.vector_dim, 1)
        self.end_filter = nn.Linear(self.vector_dim, 1)
        # None until the filter stage has chosen them; they fit these weights and no others.
        self.filter_thresholds: FilterThresholds | None = None
        self.quantizer: Quantizer | None = None
        self.compact: CompactQuantizer | None = None
        self.calibration: ModelCalibration | None = None  # the same, of the calibrate stage

    def paragraphs(self, ids: Tensor, mask: Tensor) -> PhraseParts:
        """The parts of every piece: ``[paragraph, piece, dim]`` each."""
        return self._split(self._hidden(ids, mask, is_question=False))

    def questions(self, ids: Tensor, mask: Tensor) -> Questions:
        """The vectors of questions, framed by special tokens as paragraphs are."""
        hidden = self._hidden(ids, mask, is_question=True)
        if self.settings.question_pooling == "first":
            pooled = hidden[:, 0]
        else:
            weights = mask.to(hidden.dtype)[..., None]
            pooled = (hidden * weights).sum(1) / weights.sum(1)
        parts = self._split(pooled)
        if self.settings.coherency == "product":
            coherency = (parts.start_key * parts.end_key).sum(-1)
        else:
            coherency = torch.ones_like(pooled[:, 0])
        return Questions(parts.start, parts.end, coherency)

    def rows(self, ids: Tensor, mask: Tensor, is_question: bool) -> Tensor:
        """All that a runtime hands out, ``[text, piece, columns]``: the four parts and the filter logits."""
        return self.rows_of(self._hidden(ids, mask, is_question))

    def rows_of(self, hidden: Tensor) -> Tensor:
        """The same from the encoder's last hidden state."""
        parts = self._split(hidden)
        return torch.cat([*parts, *self.filter_logits(parts)], dim=-1)

    def filter_logits(self, parts: PhraseParts) -> tuple[Tensor, Tensor]:
        """How likely any answer starts, or ends, at each row, whatever the question: ``[..., 1]`` each."""
        return self.start_filter(parts.start), self.end_filter(parts.end)

    def _hidden(self, ids: Tensor, mask: Tensor, is_question: bool) -> Tensor:
        backbone = (self.question_backbone or self.backbone) if is_question else self.backbone
        # Type 1 tells a shared encoder that it reads a question, where the encoder knows types.
        hidden: Tensor = backbone(ids, mask, torch.full_like(ids, int(is_question)), slot=int(is_question))
        return hidden

    def _split(self, hidden: Tensor) -> PhraseParts:
        if self.linear is not None:
            hidden = self.linear(hidden)
        d, c = self.vector_dim, self.settings.coherency_dim
        # An odd hidden size leaves one dimension over; it is not used.
        return PhraseParts(*hidden[..., : 2 * d + 2 * c].split_with_sizes([d, d, c, c], dim=-1))


class ReaderModel(nn.Module):
    """A cross-encoder that reads question and paragraph together: the teacher and the re-reading baseline."""

    def __init__(self, backbone: AnyBackbone) -> None:
        super().__init__()
        self.backbone = backbone
        self.head = nn.Linear(backbone.dim, 2)

    def forward(self, ids: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        """Start and end logits ``[pair, piece, 2]``."""
        logits: Tensor = self.head(self.backbone(ids, mask, types))
        return logits
