"""The two things that are trained: a reader (cross-encoder) and a phrase model. Each is a `loop.Task`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from denspi.dense.encoder import WindowSettings
from denspi.dense.model import PhraseModel, ReaderModel
from denspi.dense.phrases import band, phrase_logits, word_parts
from denspi.dense.torch_encoder import torch_encoder
from denspi.search.reading import read_paragraph, rows_of
from denspi.text.answers import mean_scores
from denspi.text.tokens import Tokenizer
from denspi.training.batches import (
    PhraseBatch,
    ReaderBatch,
    Teacher,
    epoch_order,
    gold_band,
    phrase_batch,
    reader_batch,
    similar_lengths,
)
from denspi.training.examples import Example, ExampleQuestion
from denspi.training.losses import distillation_loss, in_batch_loss, reading_loss
from denspi.vectors import MAX_PHRASE_WORDS


@dataclass(frozen=True, slots=True)
class PhraseLoss:
    """What the phrase model is trained on. Weights of zero leave a part out.

    `no_answer` puts the trainable bias into every softmax (it is of use with intruders only).
    """

    reading: float = 1.0
    in_batch: float = 0.0
    distillation: float = 0.0
    temperature: float = 1.0
    no_answer: bool = False


class ReaderTask:
    """A cross-encoder on pairs of question and gold paragraph."""

    def __init__(
        self,
        model: ReaderModel,
        tokenizer: Tokenizer,
        examples: Sequence[Example],
        held_out: Sequence[Example],
        batch: int,
        seed: int,
    ) -> None:
        self.model, self.tokenizer, self.held_out, self.batch, self.seed = (
            model,
            tokenizer,
            held_out,
            batch,
            seed,
        )
        self.pairs = [(e, q) for e in examples for q in e.questions if q.gold]

    def order(self, epoch: int) -> list[list[int]]:
        """Pairs in random order, but for similar lengths in a batch: padding costs as much as text."""
        order = epoch_order(range(len(self.pairs)), self.batch, 1, self.seed, epoch)
        lengths = [len(e.tokens) + len(q.ids) for e, q in self.pairs]
        return similar_lengths(order, lengths, self.seed, epoch)

    def collate(self, items: list[int]) -> ReaderBatch:
        """Pairs to tensors."""
        return reader_batch([self.pairs[n] for n in items], self.tokenizer, self.model.backbone.has_types)

    def loss(self, batch: Any) -> tuple[Tensor, dict[str, Tensor]]:
        """The phrase model's own reading loss on the reader's logits."""
        start, end = reader_logits(self.model, batch)
        phrases = start[..., None] + band(end, MAX_PHRASE_WORDS, -torch.inf)
        return reading_loss(phrases, gold_band(batch.gold, tuple(phrases.shape))).mean(), {}

    def validate(self) -> dict[str, float]:
        """EM and F1 on the held-out articles."""
        pairs = [(e, q) for e in self.held_out for q in e.questions]
        predictions = []
        for (example, _), (start, end) in zip(
            pairs, read_pairs(self.model, self.tokenizer, pairs), strict=True
        ):
            scores = torch.from_numpy(start)[:, None] + band(
                torch.from_numpy(end), MAX_PHRASE_WORDS, -torch.inf
            )
            first, length = divmod(int(scores.argmax()), MAX_PHRASE_WORDS)
            tokens = example.tokens
            predictions.append(example.text[tokens.word_starts[first] : tokens.word_ends[first + length]])
        em, f1 = mean_scores(predictions, [q.answers for _, q in pairs])
        return {"em": em, "f1": f1}


def reader_logits(model: ReaderModel, batch: ReaderBatch) -> tuple[Tensor, Tensor]:
    """Start and end logits of words ``[pair, word]``; minus infinity where a word has no such border."""
    logits = model(batch.ids, batch.mask, batch.types).float()
    sides = []
    for side, pieces in enumerate((batch.first_piece, batch.last_piece)):
        words = logits[..., side].gather(1, pieces.clamp(min=0))
        sides.append(words.masked_fill(pieces < 0, -torch.inf))
    return sides[0], sides[1]


@torch.no_grad()
def read_pairs(
    model: ReaderModel,
    tokenizer: Tokenizer,
    pairs: Sequence[tuple[Example, ExampleQuestion]],
    pieces: int = 32768,
) -> Iterator[tuple[np.ndarray[Any, np.dtype[np.float32]], np.ndarray[Any, np.dtype[np.float32]]]]:
    """The reader's word logits for each pair, in order; similar lengths are computed together."""
    device = model.head.weight.device
    model.eval()
    order = sorted(range(len(pairs)), key=lambda n: len(pairs[n][0].tokens) + len(pairs[n][1].ids))
    found: dict[int, tuple[Any, Any]] = {}
    at = 0
    while at < len(order):
        longest = len(pairs[order[min(at + 512, len(order)) - 1]][0].tokens) + 64
        chosen = order[at : at + max(1, min(512, pieces // longest))]
        at += len(chosen)
        batch = reader_batch([pairs[n] for n in chosen], tokenizer, model.backbone.has_types).to(device)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            start, end = reader_logits(model, batch)  # type: ignore[arg-type]
        for row, n in enumerate(chosen):
            words = len(pairs[n][0].tokens.word_starts)
            found[n] = (start[row, :words].cpu().numpy(), end[row, :words].cpu().numpy())
    return (found[n] for n in range(len(pairs)))


class PhraseTask:
    """The phrase model on paragraphs with all their questions."""

    def __init__(
        self,
        model: PhraseModel,
        tokenizer: Tokenizer,
        examples: Sequence[Example],
        held_out: Sequence[Example],
        loss: PhraseLoss,
        batch: int,
        article_group: int,
        seed: int,
        teacher: dict[str, Teacher] | None = None,
    ) -> None:
        self.model, self.tokenizer, self.held_out = model, tokenizer, held_out
        self.examples = [e for e in examples if any(q.gold for q in e.questions)]
        self.weights, self.batch, self.article_group, self.seed = loss, batch, article_group, seed
        self.teacher = teacher if loss.distillation else None

    def order(self, epoch: int) -> list[list[int]]:
        """Paragraphs in runs of one article."""
        return epoch_order(
            [e.article for e in self.examples], self.batch, self.article_group, self.seed, epoch
        )

    def collate(self, items: list[int]) -> PhraseBatch:
        """Paragraphs with their questions to tensors."""
        return phrase_batch([self.examples[n] for n in items], self.tokenizer, self.teacher)

    def loss(self, batch: Any) -> tuple[Tensor, dict[str, Tensor]]:
        """The weighted sum of the parts, over the questions of the batch."""
        weights = self.weights
        parts = self.model.paragraphs(batch.paragraph_ids, batch.paragraph_mask)
        words = word_parts(parts, batch.first_piece, batch.last_piece)
        questions = self.model.questions(batch.question_ids, batch.question_mask)
        starts, _, phrases = phrase_logits(
            questions, words, batch.first_piece >= 0, batch.last_piece >= 0, MAX_PHRASE_WORDS
        )
        own = phrases[torch.arange(len(batch.own), device=phrases.device), batch.own]
        gold = gold_band(batch.gold, tuple(own.shape))
        no_answer = self.model.no_answer_bias if weights.no_answer else None
        logged = {"reading": reading_loss(own, gold, no_answer).mean()}
        total = weights.reading * logged["reading"]
        answerable = slice(0, int(batch.own.shape[0]) if not weights.no_answer else len(gold))
        if weights.in_batch:
            same = gold_band(batch.same_answer, tuple(phrases.shape))
            logged["in_batch"] = in_batch_loss(phrases, starts, gold, same, batch.own)[answerable].mean()
            total = total + weights.in_batch * logged["in_batch"]
        if batch.teacher_start is not None:
            taught = slice(0, len(batch.teacher_start))
            teacher = batch.teacher_start[..., None] + band(batch.teacher_end, MAX_PHRASE_WORDS, -torch.inf)
            logged["distillation"] = distillation_loss(own[taught], teacher, weights.temperature).mean()
            total = total + weights.distillation * logged["distillation"]
        return total, logged

    def validate(self) -> dict[str, float]:
        """EM and F1 of reading on the held-out articles."""
        is_cuda = self.model.no_answer_bias.is_cuda
        encoder = torch_encoder(self.model, self.tokenizer, WindowSettings(batch=512), use_bfloat16=is_cuda)
        questions = encoder.encode_questions([q.text for e in self.held_out for q in e.questions])
        runs = rows_of(questions, [len(e.questions) for e in self.held_out])
        predictions = [
            span.of(example.text)
            for example, run, paragraph in zip(
                self.held_out, runs, encoder.encode_paragraphs(e.text for e in self.held_out), strict=True
            )
            for span in read_paragraph(run, paragraph)
        ]
        em, f1 = mean_scores(predictions, [q.answers for e in self.held_out for q in e.questions])
        return {"em": em, "f1": f1}
