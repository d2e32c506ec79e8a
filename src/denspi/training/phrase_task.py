"""The phrase model on paragraphs with all their questions, as a `loop.Task`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from denspi.dense.encoder import PhraseEncoder, WindowSettings
from denspi.dense.model import PhraseModel, PhraseParts, Questions
from denspi.dense.phrases import band, phrase_logits, word_parts
from denspi.dense.torch_encoder import torch_encoder
from denspi.search.reading import read_paragraph, rows_of
from denspi.text.answers import mean_scores
from denspi.text.tokens import Tokenizer
from denspi.training.batches import PhraseBatch, Teacher, epoch_order, gold_band, phrase_batch, same_answer
from denspi.training.examples import Example, ExampleQuestion
from denspi.training.losses import distillation_loss, in_batch_loss, reading_loss
from denspi.training.negatives import INTRUDERS, Intruders, Neighbours, find_neighbours
from denspi.training.settings import PhraseStage
from denspi.vectors import MAX_PHRASE_WORDS


class PhraseTask:
    """Where the stage asks for negatives, the model handed in finds them: it should be a trained one."""

    def __init__(
        self,
        model: PhraseModel,
        tokenizer: Tokenizer,
        examples: Sequence[Example],
        held_out: Sequence[Example],
        stage: PhraseStage,
        seed: int,
        teacher: dict[str, Teacher] | None = None,
        asked: Sequence[Example] = (),
        is_compiled: bool = False,
    ) -> None:
        self.model, self.tokenizer, self.held_out = model, tokenizer, held_out
        self.examples = [e for e in examples if any(q.gold for q in e.questions)]
        self.written = len(self.examples)
        self.examples += [e for e in asked if any(q.gold for q in e.questions)]
        self.stage, self.seed = stage, seed
        # Sizes differ from batch to batch; one compilation serves all.
        self.losses = torch.compile(phrase_losses, dynamic=True) if is_compiled else phrase_losses
        self.teacher = teacher if stage.loss.distillation else None
        self.asked = [(n, q) for n, e in enumerate(self.examples) for q in e.questions if q.gold]
        self.neighbours = None if stage.negatives == "none" else self._find_neighbours()

    def order(self, epoch: int) -> list[list[int]]:
        """Paragraphs in runs of one article: all written ones, and a draw of the asked ones."""
        random = np.random.default_rng([self.seed, epoch, 2])
        asked = random.permutation(np.arange(self.written, len(self.examples)))[: self.stage.asked]
        numbers = np.concatenate([np.arange(self.written), np.sort(asked)])
        articles = [self.examples[n].article for n in numbers]
        lengths = [len(self.examples[n].tokens) for n in numbers]
        order = epoch_order(articles, lengths, self.stage.batch, self.stage.article_group, self.seed, epoch)
        return [numbers[batch].tolist() for batch in order]

    def collate(self, items: list[int], epoch: int) -> PhraseBatch:
        """Paragraphs with their questions, and the negatives of this epoch, to tensors."""
        found = Intruders(())
        if self.neighbours is not None:
            found = INTRUDERS[self.stage.negatives](self.neighbours, items, self.seed, epoch)
        paragraphs = [self.examples[n] for n in (*items, *found.strangers)]
        return phrase_batch(
            paragraphs[: len(items)],
            self.tokenizer,
            self.teacher,
            paragraphs[len(items) :],
            list(self._unanswered(found, paragraphs)),
        )

    def loss(self, batch: PhraseBatch) -> tuple[Tensor, dict[str, Tensor]]:
        """The weighted sum of the parts, each a mean over the questions that it is defined for."""
        weights = self.stage.loss
        parts = self.model.paragraphs(batch.paragraph_ids, batch.paragraph_mask)
        words = word_parts(parts, batch.first_piece, batch.last_piece)
        questions = self.model.questions(batch.question_ids, batch.question_mask)
        shape = len(batch.own), *batch.first_piece.shape, MAX_PHRASE_WORDS
        logged = self.losses(
            questions,
            words,
            batch.first_piece >= 0,
            batch.last_piece >= 0,
            batch.own,
            gold_band(batch.gold, (shape[0], *shape[2:])),
            batch.asked,
            gold_band(batch.same_answer, (batch.asked, *shape[1:])) if weights.in_batch else None,
            (batch.teacher_start, batch.teacher_end),
            self.model.no_answer_bias if weights.no_answer else None,
            weights.temperature,
        )
        total = sum(
            (getattr(weights, name) * part for name, part in logged.items()), start=0.0 * logged["reading"]
        )
        return total, logged

    def validate(self) -> dict[str, float]:
        """EM and F1 of reading on the held-out articles."""
        return read_scores(self.model, self.tokenizer, self.held_out)

    def _find_neighbours(self) -> Neighbours:
        self.model.eval()
        encoder = _encoder(self.model, self.tokenizer)
        vectors = encoder.encode_questions([q.text for _, q in self.asked])
        return find_neighbours(
            np.concatenate([vectors.starts, vectors.ends, vectors.coherency[:, None]], axis=1),
            np.array([n for n, _ in self.asked]),
            np.array([self.examples[n].article for n, _ in self.asked]),
        )

    def _unanswered(
        self, found: Intruders, paragraphs: Sequence[Example]
    ) -> Iterator[tuple[int, ExampleQuestion]]:
        """Leaves out a question whose answer the paragraph reads by chance: it may well answer it."""
        for row, number in found.pairs:
            _, question = self.asked[number]
            if not any(same_answer(question, paragraphs[row])):
                yield row, question


def read_scores(model: PhraseModel, tokenizer: Tokenizer, examples: Sequence[Example]) -> dict[str, float]:
    """EM and F1 of every question put to its own paragraph, which is read to its end."""
    encoder = _encoder(model, tokenizer)
    questions = encoder.encode_questions([q.text for e in examples for q in e.questions])
    runs = rows_of(questions, [len(e.questions) for e in examples])
    predictions = [
        span.of(example.text)
        for example, run, paragraph in zip(
            examples, runs, encoder.encode_paragraphs(e.text for e in examples), strict=True
        )
        for span in read_paragraph(run, paragraph)
    ]
    em, f1 = mean_scores(predictions, [q.answers for e in examples for q in e.questions])
    return {"em": em, "f1": f1}


def _encoder(model: PhraseModel, tokenizer: Tokenizer) -> PhraseEncoder:
    is_cuda = model.no_answer_bias.is_cuda
    return torch_encoder(model, tokenizer, WindowSettings(batch=512), use_bfloat16=is_cuda)


def phrase_losses(
    questions: Questions,
    words: PhraseParts,
    can_start: Tensor,
    can_end: Tensor,
    own: Tensor,
    gold: Tensor,
    asked: int,
    same_answer: Tensor | None,
    teacher: tuple[Tensor | None, Tensor | None],
    no_answer: Tensor | None,
    temperature: float,
) -> dict[str, Tensor]:
    """The parts of the loss that there is something for, by the names of their weights.

    Questions after the first `asked` have no gold, and no teacher has read them. `same_answer` is that of
    `in_batch_loss`. One function of tensors, to be compiled whole.
    """
    starts, _, phrases = phrase_logits(questions, words, can_start, can_end, MAX_PHRASE_WORDS)
    read = phrases[torch.arange(own.shape[0], device=phrases.device), own]
    losses = {"reading": reading_loss(read, gold, no_answer).mean()}
    if asked < own.shape[0]:
        phrases, starts, read, gold, own = (
            phrases[:asked],
            starts[:asked],
            read[:asked],
            gold[:asked],
            own[:asked],
        )
    if same_answer is not None:
        losses["in_batch"] = in_batch_loss(phrases, starts, gold, same_answer, own).mean()
    start, end = teacher
    if start is not None and end is not None:
        told = start[..., None] + band(end, MAX_PHRASE_WORDS, -torch.inf)
        losses["distillation"] = distillation_loss(read, told, temperature).mean()
    return losses
