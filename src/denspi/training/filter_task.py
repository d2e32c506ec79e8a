"""The filter heads on frozen vectors, as a `loop.Task`: does any answer start (end) here, whatever is asked?

Paragraphs are encoded once, in float32 and without dropout, and held in memory; only the two linear layers
are trained. Every answer of every question of a paragraph is right, everything else in it wrong.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from denspi.dense.encoder import WindowSettings
from denspi.dense.model import PhraseModel
from denspi.dense.torch_encoder import torch_encoder
from denspi.text.tokens import Tokenizer
from denspi.training.batches import TensorRecord, epoch_order
from denspi.training.examples import Example
from denspi.training.settings import FilterStage
from denspi.training.thresholds import (
    BorderLogits,
    area_under_curve,
    border_labels,
    border_logits,
    choose_thresholds,
    survival,
)
from denspi.vectors import ParagraphVectors, QuestionVectors

_EMPHASIS = 1.5  # of 0 to 2, on held-out articles: few rows kept at high recall without losing in rank order


@dataclass(frozen=True, slots=True)
class FilterBatch(TensorRecord):
    """The words of some paragraphs that can start (end) a phrase, and whether an answer does."""

    starts: Tensor  # [start, dim]
    is_start: Tensor  # [start] 0 or 1
    ends: Tensor  # [end, dim]
    is_end: Tensor


class FilterTask:
    """Freezes all of the model but the filter heads."""

    def __init__(
        self,
        model: PhraseModel,
        tokenizer: Tokenizer,
        examples: Sequence[Example],
        held_out: Sequence[Example],
        stage: FilterStage,
        seed: int,
    ) -> None:
        self.model, self.stage, self.seed = model.eval().requires_grad_(False), stage, seed
        for head in (model.start_filter, model.end_filter):
            head.requires_grad_(True)
        asked = [e for e in examples if any(q.gold for q in e.questions)]
        sample = np.random.default_rng([seed, 2]).permutation(len(asked))[: stage.paragraphs]
        self.examples, self.held_out = [asked[n] for n in sorted(sample.tolist())], held_out
        self.encoder = torch_encoder(model, tokenizer, WindowSettings(batch=512))
        self.vectors = self.encode(self.examples)
        self.held_out_vectors = self.encode(held_out)
        self.weights = self._weights()

    def order(self, epoch: int) -> list[list[int]]:
        """Paragraphs at random."""
        count = len(self.examples)
        return epoch_order(range(count), [1] * count, self.stage.batch, 1, self.seed, epoch)

    def collate(self, items: list[int], epoch: int) -> FilterBatch:
        """Rows of all words of the paragraphs, one below the other."""
        parts = [_rows(self.examples[n], self.vectors[n]) for n in items]
        return FilterBatch(*(torch.from_numpy(np.concatenate(column)) for column in zip(*parts, strict=True)))

    def loss(self, batch: FilterBatch) -> tuple[Tensor, dict[str, Tensor]]:
        """Binary cross-entropy of both heads, right places weighted up (see `_weights`)."""
        start = binary_cross_entropy_with_logits(
            self.model.start_filter(batch.starts)[:, 0].float(), batch.is_start, pos_weight=self.weights[0]
        )
        end = binary_cross_entropy_with_logits(
            self.model.end_filter(batch.ends)[:, 0].float(), batch.is_end, pos_weight=self.weights[1]
        )
        return start + end, {"start": start, "end": end}

    def validate(self) -> dict[str, float]:
        """On the held-out articles: areas under the curves, and what is kept at the target recall."""
        logits = self.held_out_logits()
        found = survival(logits, choose_thresholds(logits, self.stage.recall))
        return {
            "start_auc": area_under_curve(logits.starts, logits.is_start),
            "end_auc": area_under_curve(logits.ends, logits.is_end),
            **dataclasses.asdict(found),
        }

    def held_out_logits(self) -> BorderLogits:
        """The logits of the held-out articles with the heads as they are now."""
        return border_logits(self.held_out, self.scored(self.held_out_vectors))

    def encode_questions(self, most: int) -> QuestionVectors:
        """The vectors of the questions about the training paragraphs, or of so many of them, sampled."""
        texts = [question.text for example in self.examples for question in example.questions]
        sample = np.random.default_rng([self.seed, 3]).permutation(len(texts))[:most]
        return self.encoder.encode_questions([texts[n] for n in sorted(sample.tolist())])

    def encode(self, examples: Sequence[Example]) -> list[ParagraphVectors]:
        """The vectors of whole paragraphs, however long."""
        return list(self.encoder.encode_paragraphs(e.text for e in examples))

    @torch.no_grad()
    def scored(self, vectors: Sequence[ParagraphVectors]) -> Iterator[ParagraphVectors]:
        """The same vectors with the logits that the heads give them now."""
        device = self.model.no_answer_bias.device
        for each in vectors:
            start = self.model.start_filter(torch.from_numpy(each.starts).to(device))[:, 0]
            end = self.model.end_filter(torch.from_numpy(each.ends).to(device))[:, 0]
            yield dataclasses.replace(
                each, start_logits=start.float().cpu().numpy(), end_logits=end.float().cpu().numpy()
            )

    def _weights(self) -> tuple[Tensor, Tensor]:
        """The number of other places for each right one, to the power of `_EMPHASIS`.

        With a power of one, both kinds count the same; more moves the heads towards the weakest right places,
        which is where a threshold of high recall lies.
        """
        labels = [_rows(e, v)[1::2] for e, v in zip(self.examples, self.vectors, strict=True)]
        shares = [np.concatenate(side).mean() for side in zip(*labels, strict=True)]
        start, end = (torch.tensor(((1 - share) / share) ** _EMPHASIS) for share in shares)
        device = self.model.no_answer_bias.device
        return start.float().to(device), end.float().to(device)


def _rows(example: Example, paragraph: ParagraphVectors) -> tuple[np.ndarray, ...]:
    """Starts, is_start, ends, is_end, as far as training reads; beyond, answers were not looked for."""
    words = len(example.tokens.word_starts)
    is_start, is_end = border_labels(example, words)
    can_start, can_end = paragraph.can_start[:words], paragraph.can_end[:words]
    return (
        paragraph.starts[:words][can_start],
        is_start[can_start].astype(np.float32),
        paragraph.ends[:words][can_end],
        is_end[can_end].astype(np.float32),
    )
