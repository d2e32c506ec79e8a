"""The reader: a cross-encoder on pairs of question and paragraph, as a `loop.Task`; its logits in bulk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from denspi.dense.model import ReaderModel
from denspi.dense.phrases import band
from denspi.text.answers import mean_scores
from denspi.text.tokens import Tokenizer
from denspi.training.batches import ReaderBatch, epoch_order, gold_band, reader_batch
from denspi.training.examples import Example, ExampleQuestion
from denspi.training.losses import reading_loss
from denspi.vectors import MAX_PHRASE_WORDS, Floats

Pair = tuple[Example, ExampleQuestion]


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
        self.model, self.tokenizer, self.held_out = model, tokenizer, held_out
        self.batch, self.seed = batch, seed
        self.pairs = [(e, q) for e in examples for q in e.questions if q.gold]

    def order(self, epoch: int) -> list[list[int]]:
        """Pairs in random order, but for similar lengths in a batch."""
        lengths = [len(e.tokens) + len(q.ids) for e, q in self.pairs]
        return epoch_order(range(len(lengths)), lengths, self.batch, 1, self.seed, epoch)

    def collate(self, items: list[int], epoch: int) -> ReaderBatch:
        """Pairs to tensors."""
        return reader_batch([self.pairs[n] for n in items], self.tokenizer, self.model.backbone.has_types)

    def loss(self, batch: ReaderBatch) -> tuple[Tensor, dict[str, Tensor]]:
        """The phrase model's own reading loss on the reader's logits."""
        start, end = reader_logits(self.model, batch)
        phrases = start[..., None] + band(end, MAX_PHRASE_WORDS, -torch.inf)
        return reading_loss(phrases, gold_band(batch.gold, tuple(phrases.shape))).mean(), {}

    def validate(self) -> dict[str, float]:
        """EM and F1 on the held-out articles."""
        pairs = [(e, q) for e in self.held_out for q in e.questions]
        logits = read_pairs(self.model, self.tokenizer, pairs)
        predictions = [
            best_phrase(example, start, end) for (example, _), (start, end) in zip(pairs, logits, strict=True)
        ]
        em, f1 = mean_scores(predictions, [q.answers for _, q in pairs])
        return {"em": em, "f1": f1}


def best_phrase(example: Example, start: Floats, end: Floats) -> str:
    """The text of the phrase with the highest sum of logits ``[word]``; empty where there is no word."""
    if not len(start):
        return ""
    scores = torch.from_numpy(start)[:, None] + band(torch.from_numpy(end), MAX_PHRASE_WORDS, -torch.inf)
    first, length = divmod(int(scores.argmax()), MAX_PHRASE_WORDS)
    return example.text[example.tokens.word_starts[first] : example.tokens.word_ends[first + length]]


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
    pairs: Sequence[Pair],
    pieces: int = 32768,
    told: Callable[[int], None] = lambda count: None,
) -> Iterator[tuple[Floats, Floats]]:
    """The reader's word logits for each pair, in order; similar lengths are computed together."""
    device = model.head.weight.device
    model.eval()
    order = sorted(range(len(pairs)), key=lambda n: len(pairs[n][0].tokens) + len(pairs[n][1].ids))
    found: dict[int, tuple[Floats, Floats]] = {}
    at = 0
    waiting: tuple[list[int], Tensor] | None = None
    while at < len(order):
        longest = len(pairs[order[min(at + 512, len(order)) - 1]][0].tokens) + 64
        chosen = order[at : at + max(1, min(512, pieces // longest))]
        at += len(chosen)
        batch = reader_batch([pairs[n] for n in chosen], tokenizer, model.backbone.has_types).to(device)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            sides = torch.stack(reader_logits(model, batch))
        # A GPU computes this batch while the one before is taken apart.
        found |= _by_pair(pairs, waiting)
        waiting = chosen, sides
        told(len(chosen))
    found |= _by_pair(pairs, waiting)
    return (found[n] for n in range(len(pairs)))


def _by_pair(
    pairs: Sequence[Pair], read: tuple[list[int], Tensor] | None
) -> dict[int, tuple[Floats, Floats]]:
    if read is None:
        return {}
    numbers, logits = read[0], read[1].cpu().numpy()
    lengths = [len(pairs[n][0].tokens.word_starts) for n in numbers]
    return {
        n: (logits[0, row, :words].copy(), logits[1, row, :words].copy())
        for row, (n, words) in enumerate(zip(numbers, lengths, strict=True))
    }
