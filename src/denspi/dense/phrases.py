"""Phrases of padded batches in torch: pieces -> words -> the band of all phrases.

The same layout as `denspi.search.scoring`, on tensors with gradients: entry (w, k) of a band ``[..., word,
length]`` is the phrase from word w to word w + k.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from denspi.dense.model import PhraseParts, Questions


def word_parts(parts: PhraseParts, first_piece: Tensor, last_piece: Tensor) -> PhraseParts:
    """Rows of words ``[paragraph, word, dim]`` from rows of pieces; -1 takes a row that masks must hide."""

    def take(rows: Tensor, pieces: Tensor) -> Tensor:
        index = pieces.clamp(min=0)[..., None].expand(-1, -1, rows.shape[-1])
        return rows.gather(1, index)

    return PhraseParts(
        take(parts.start, first_piece),
        take(parts.end, last_piece),
        take(parts.start_key, first_piece),
        take(parts.end_key, last_piece),
    )


def band(rows: Tensor, width: int, fill: float) -> Tensor:
    """``[..., word]`` -> ``[..., word, width]``: the value at each word and at the `width` - 1 after it."""
    return pad(rows, (0, width - 1), value=fill).unfold(-1, width, 1)


def coherency_band(parts: PhraseParts, width: int) -> Tensor:
    """h3_i . h4_j of every phrase: ``[paragraph, word, length]``."""
    products = parts.start_key @ parts.end_key.transpose(1, 2)  # [paragraph, word, word]
    words = products.shape[1]
    offsets = torch.arange(words, device=products.device)[:, None] + torch.arange(
        width, device=products.device
    )
    inside = offsets < words
    index = offsets.clamp(max=words - 1).expand(len(products), -1, -1)
    return products.gather(2, index) * inside


def phrase_logits(
    questions: Questions, parts: PhraseParts, can_start: Tensor, can_end: Tensor, width: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Start logits and end logits ``[question, paragraph, word]``, and the band of phrase logits.

    Every question meets every paragraph. Impossible borders are minus infinity in all three.
    """
    start = torch.einsum("qd,pwd->qpw", questions.start, parts.start).float()
    end = torch.einsum("qd,pwd->qpw", questions.end, parts.end).float()
    start = start.masked_fill(~can_start, -torch.inf)
    end = end.masked_fill(~can_end, -torch.inf)
    phrases = start[..., None] + band(end, width, -torch.inf)
    if parts.start_key.shape[-1]:
        coherency = coherency_band(parts, width).float()
        phrases = phrases + questions.coherency.float()[:, None, None, None] * coherency
    return start, end, phrases
