"""The phrase model on paragraphs with all their questions, as a `loop.Task`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from denspi.dense.encoder import PhraseEncoder, WindowSettings
from denspi.dense.model import PhraseModel
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
    ) -> None:
        self.model, self.tokenizer, self.held_out = model, tokenizer, held_out
        self.examples = [e for e in examples if any(q.gold for q in e.questions)]
        self.written = len(self.examples)
        self.examples += [e for e in asked if any(q.gold for q in e.questions)]
        self.stage, self.seed = stage, seed
        self.teacher = teacher if stage.loss.distillation else None
        self.asked = [(n, q) for n, e in enumerate(self.examples) for q in e.questions if q.gold]
        self.neighbours = None if stage.negatives == "none" else self._find_neighbours()

    def order(self, epoch: int) -> list[list[int]]:
        """Paragraphs in runs of one article: all written ones, and a draw of the asked ones."""
        random = np.random.default_rng([self.seed, epoch, 2])
        asked = random.permutation(np.arange(self.written, len(self.examples)))[: self.stage.asked]
        numbers = np.concatenate([np.arange(self.written), np.sort(asked)])
        articles = [self.examples[n].article for n in numbers]
        order = epoch_order(articles, self.stage.batch, self.stage.article_group, self.seed, epoch)
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
        starts, _, phrases = phrase_logits(
            questions, words, batch.first_piece >= 0, batch.last_piece >= 0, MAX_PHRASE_WORDS
        )
        own = phrases[torch.arange(len(batch.own), device=phrases.device), batch.own]
        gold = gold_band(batch.gold, tuple(own.shape))
        no_answer = self.model.no_answer_bias if weights.no_answer else None
        logged = {"reading": reading_loss(own, gold, no_answer).mean()}
        total = weights.reading * logged["reading"]
        asked = slice(0, batch.asked)  # the others have no gold, and no teacher has read them
        if weights.in_batch:
            same = gold_band(batch.same_answer, tuple(phrases[asked].shape))
            logged["in_batch"] = in_batch_loss(
                phrases[asked], starts[asked], gold[asked], same, batch.own[asked]
            ).mean()
            total = total + weights.in_batch * logged["in_batch"]
        if batch.teacher_start is not None and batch.teacher_end is not None:
            teacher = batch.teacher_start[..., None] + band(batch.teacher_end, MAX_PHRASE_WORDS, -torch.inf)
            logged["distillation"] = distillation_loss(own[asked], teacher, weights.temperature).mean()
            total = total + weights.distillation * logged["distillation"]
        return total, logged

    def validate(self) -> dict[str, float]:
        """EM and F1 of reading on the held-out articles."""
        encoder = self._encoder()
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

    def _encoder(self) -> PhraseEncoder:
        is_cuda = self.model.no_answer_bias.is_cuda
        return torch_encoder(self.model, self.tokenizer, WindowSettings(batch=512), use_bfloat16=is_cuda)

    def _find_neighbours(self) -> Neighbours:
        self.model.eval()
        vectors = self._encoder().encode_questions([q.text for _, q in self.asked])
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
