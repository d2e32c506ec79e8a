"""The asker: a model that writes questions about marked words of a paragraph, as a `loop.Task`.

A pretrained encoder of BERT's kind reads ``[CLS] paragraph [SEP]`` both ways and goes on from there, piece by
piece, seeing only what it has written so far (the attention of UniLM, Dong et al. 2019). What it is asked
about has type 1. Nothing but training uses it: there are only so many written questions to learn from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from transformers import DynamicCache

from denspi.dense.backbone import AnyBackbone
from denspi.errors import SettingsError
from denspi.text.tokens import Tokenizer, Tokens
from denspi.training.batches import TensorRecord, epoch_order, pad_ids
from denspi.training.examples import Example

_WIDEST = 6  # words on either side of an answer that training marks too: a region is asked about, not a word
_CHOICES = 20  # the likeliest pieces, one of which is drawn
LONGEST = 32  # pieces of a question


@dataclass(frozen=True, slots=True)
class Prompt:
    """A paragraph and the words of it, both ends included, that a question shall be about."""

    tokens: Tokens
    first_word: int
    last_word: int


@dataclass(frozen=True, slots=True)
class AskerBatch(TensorRecord):
    """Paragraphs, each followed by its question."""

    ids: Tensor  # [row, piece]
    types: Tensor
    heads: Tensor  # [row] pieces of the paragraph and its frame
    lengths: Tensor  # [row] pieces of both
    before: Tensor  # [written, 2] row and place of the piece before each piece of a question
    written: Tensor  # [written] the piece itself

    @property
    def seen(self) -> Tensor:
        """What each piece attends to, ``[row, 1, piece, piece]``: large, so made where the batch lies."""
        place = torch.arange(self.ids.shape[1], device=self.ids.device)
        is_text = place < self.lengths[:, None]
        seen = (place < self.heads[:, None])[:, None, :] | (place <= place[:, None])
        return (seen & is_text[:, None, :])[:, None]


class AskerModel(nn.Module):
    """The encoder, and a head over its own table of pieces."""

    def __init__(self, backbone: AnyBackbone) -> None:
        super().__init__()
        if backbone.record().get("model_type") != "bert":
            raise SettingsError("ask needs an encoder of BERT's kind; set encoder to one")
        self.backbone = backbone
        self.transform = nn.Sequential(
            nn.Linear(backbone.dim, backbone.dim), nn.GELU(), nn.LayerNorm(backbone.dim)
        )
        self.bias = nn.Parameter(torch.zeros(len(self._table)))

    def logits(self, hidden: Tensor) -> Tensor:
        """``[..., dim]`` -> ``[..., vocabulary]``: which piece comes next."""
        logits: Tensor = self.transform(hidden) @ self._table.T + self.bias
        return logits

    def hidden(self, ids: Tensor, types: Tensor, seen: Tensor, **extra: Any) -> Tensor:
        """Hidden states of pieces that attend to what `seen` says."""
        output = self._encoder(input_ids=ids, token_type_ids=types, attention_mask=seen, **extra)
        hidden: Tensor = output.last_hidden_state
        return hidden

    @property
    def _encoder(self) -> Any:
        return self.backbone.encoder

    @property
    def _table(self) -> Tensor:
        table: Tensor = self._encoder.embeddings.word_embeddings.weight
        return table


class AskerTask:
    """Learns to write the questions of the training articles."""

    def __init__(
        self,
        model: AskerModel,
        tokenizer: Tokenizer,
        examples: Sequence[Example],
        held_out: Sequence[Example],
        batch: int,
        seed: int,
    ) -> None:
        self.model, self.tokenizer = model, tokenizer
        self.batch, self.seed = batch, seed
        self.pairs = [(e, q) for e in examples for q in e.questions if q.gold]
        self.held_out = [(e, q) for e in held_out for q in e.questions if q.gold]

    def order(self, epoch: int) -> list[list[int]]:
        """Pairs in random order, but for similar lengths in a batch."""
        lengths = [len(e.tokens) for e, _ in self.pairs]
        return epoch_order(range(len(lengths)), lengths, self.batch, 1, self.seed, epoch)

    def collate(self, items: list[int], epoch: int) -> AskerBatch:
        """Pairs to tensors; how wide a region is marked differs from epoch to epoch."""
        prompts = []
        for item in items:
            example, question = self.pairs[item]
            first, length = question.gold[0]
            random = np.random.default_rng([self.seed, epoch, item])
            room = random.integers(0, _WIDEST + 1, 2) if random.random() < 0.5 else np.zeros(2, int)
            last = min(first + length + int(room[1]), len(example.tokens.word_starts) - 1)
            prompts.append(Prompt(example.tokens, max(0, first - int(room[0])), last))
        return asker_batch(prompts, [self.pairs[item][1].ids for item in items], self.tokenizer)

    def loss(self, batch: AskerBatch) -> tuple[Tensor, dict[str, Tensor]]:
        """Cross entropy of every piece of the questions."""
        hidden = self.model.hidden(batch.ids, batch.types, batch.seen)
        logits = self.model.logits(hidden[batch.before[:, 0], batch.before[:, 1]])
        return cross_entropy(logits.float(), batch.written), {}

    def validate(self) -> dict[str, float]:
        """The mean cross entropy of a piece on the held-out articles."""
        device, total, count = self.model.bias.device, 0.0, 0
        for at in range(0, len(self.held_out), self.batch):
            pairs = self.held_out[at : at + self.batch]
            prompts = [Prompt(e.tokens, q.gold[0][0], sum(q.gold[0])) for e, q in pairs]
            batch = asker_batch(prompts, [q.ids for _, q in pairs], self.tokenizer).to(device)
            with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
                total += float(self.loss(batch)[0]) * len(batch.written)
            count += len(batch.written)
        return {"cross_entropy": total / max(1, count)}


def asker_batch(
    prompts: Sequence[Prompt], questions: Sequence[NDArray[np.int32]], tokenizer: Tokenizer
) -> AskerBatch:
    """Collate prompts with their questions."""
    heads = [_read(prompt, tokenizer) for prompt in prompts]
    tails = [np.append(question, tokenizer.sep_id).astype(np.int32) for question in questions]
    rows = list(zip(heads, tails, strict=True))
    ids, mask = pad_ids([np.concatenate([head, tail]) for (head, _), tail in rows], tokenizer.pad_id)
    types, _ = pad_ids([np.concatenate([marks, np.ones_like(tail)]) for (_, marks), tail in rows], 1)
    head_lengths, written = np.array([len(head) for head, _ in heads]), [len(tail) for tail in tails]
    places = np.repeat(head_lengths - 1, written) + np.concatenate([np.arange(count) for count in written])
    before = torch.from_numpy(np.stack([np.repeat(np.arange(len(rows)), written), places], axis=1))
    return AskerBatch(
        ids, types, torch.from_numpy(head_lengths), mask.sum(1), before, ids[before[:, 0], before[:, 1] + 1]
    )


@torch.no_grad()
def write_questions(
    model: AskerModel,
    tokenizer: Tokenizer,
    prompts: Sequence[Prompt],
    seed: int,
    temperature: float = 0.8,
    batch: int = 1024,
    longest: int = LONGEST,
    told: Callable[[int], None] = lambda count: None,
) -> list[str]:
    """One question for each prompt, drawn at random, of at most `longest` pieces; `told` how many more.

    The same for the same seed and device.
    """
    device = model.bias.device
    model.eval()
    random = torch.Generator(device).manual_seed(seed)
    order = sorted(range(len(prompts)), key=lambda n: len(prompts[n].tokens))
    found: dict[int, str] = {}
    for at in range(0, len(order), batch):
        chosen = order[at : at + batch]
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            rows = _written(model, tokenizer, [prompts[n] for n in chosen], temperature, random, longest)
        for n, row in zip(chosen, rows.tolist(), strict=True):
            pieces = row[: row.index(tokenizer.sep_id)] if tokenizer.sep_id in row else row
            found[n] = tokenizer.decode(pieces)
        told(len(chosen))
    return [found[n] for n in range(len(prompts))]


def _written(
    model: AskerModel,
    tokenizer: Tokenizer,
    prompts: Sequence[Prompt],
    temperature: float,
    random: torch.Generator,
    longest: int,
) -> Tensor:
    """Pieces ``[prompt, piece]``, a separator after the last of each."""
    device = model.bias.device
    heads = [_read(prompt, tokenizer) for prompt in prompts]
    ids, mask = (each.to(device) for each in pad_ids([head for head, _ in heads], tokenizer.pad_id))
    types = pad_ids([marks for _, marks in heads], 0)[0].to(device)
    lengths = mask.sum(1)
    seen = mask[:, None, None, :] > 0
    cache = DynamicCache()  # keys and values of all pieces so far: each is read once
    read = seen.expand(-1, 1, ids.shape[1], -1)
    hidden = model.hidden(ids, types, read, past_key_values=cache)
    last = hidden[torch.arange(len(ids), device=device), lengths - 1]
    pieces = torch.full((len(ids), longest), tokenizer.sep_id, device=device)
    is_done = torch.zeros(len(ids), dtype=torch.bool, device=device)
    for step in range(longest):
        scores, choices = (model.logits(last).float() / temperature).topk(_CHOICES)
        drawn = torch.multinomial(scores.softmax(1), 1, generator=random)
        piece = choices.gather(1, drawn)[:, 0].masked_fill(is_done, tokenizer.sep_id)
        pieces[:, step] = piece
        is_done = is_done | (piece == tokenizer.sep_id)
        if is_done.all():
            break
        seen = torch.cat([seen, torch.ones_like(seen[..., :1])], dim=3)
        places = (lengths + step)[:, None]
        one = torch.ones_like(piece[:, None])
        last = model.hidden(piece[:, None], one, seen, past_key_values=cache, position_ids=places)[:, 0]
    return pieces


def _read(prompt: Prompt, tokenizer: Tokenizer) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Ids and types of ``[CLS] paragraph [SEP]``."""
    tokens = prompt.tokens
    ids = np.concatenate([[tokenizer.cls_id], tokens.ids, [tokenizer.sep_id]]).astype(np.int32)
    first, end = tokens.word_starts[prompt.first_word], tokens.word_ends[prompt.last_word]
    marks = np.zeros(len(ids), np.int32)
    marks[1:-1] = (tokens.starts >= first) & (tokens.ends <= end)
    return ids, marks
