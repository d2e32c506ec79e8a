"""Examples -> batches of padded tensors. The order of an epoch follows from (seed, epoch) alone.

A phrase batch encodes each paragraph once for all its questions. Paragraphs come in groups of one article, so
that its other paragraphs are hard negatives for free.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from denspi.dense.pairs import frame_pair, separators_for
from denspi.text.tokens import Tokenizer, Tokens
from denspi.training.examples import Example, ExampleQuestion, occurrences

_BLUR = 0.1  # how far lengths are off, as a share, when paragraphs of an article are put side by side
_STRETCH = 64  # batches that are sorted by length together

Teacher = tuple[NDArray[np.float16], NDArray[np.float16]]  # start and end logits [word] of one question


@dataclass(frozen=True, slots=True)
class TensorRecord:
    """Tensors that move to a device together."""

    def to(self, device: torch.device) -> Self:
        """The same record on `device`; what is no tensor stays as it is."""
        values = (getattr(self, field.name) for field in fields(self))
        return type(self)(*(_moved(v, device) if isinstance(v, Tensor) else v for v in values))


@dataclass(frozen=True, slots=True)
class PhraseBatch(TensorRecord):
    """Paragraphs [paragraph, ...], questions [question, ...] and where the right phrases are.

    The first `asked` questions have an answer in their paragraph; those after them have none.
    """

    paragraph_ids: Tensor  # [paragraph, piece]
    paragraph_mask: Tensor
    first_piece: Tensor  # [paragraph, word], positions in paragraph_ids; -1 for none
    last_piece: Tensor
    question_ids: Tensor  # [question, piece]
    question_mask: Tensor
    own: Tensor  # [question] the paragraph that a question is asked of
    asked: int
    gold: Tensor  # [right phrase, 3] question, word, length - 1
    same_answer: Tensor  # [phrase, 4] question, other paragraph, word, length - 1
    teacher_start: Tensor | None  # [asked, word]; minus infinity beyond the paragraph
    teacher_end: Tensor | None


@dataclass(frozen=True, slots=True)
class ReaderBatch(TensorRecord):
    """Pairs of question and paragraph, read together."""

    ids: Tensor  # [pair, piece]
    mask: Tensor
    types: Tensor
    first_piece: Tensor  # [pair, word]
    last_piece: Tensor
    gold: Tensor  # [right phrase, 3] pair, word, length - 1


def epoch_order(
    groups: Sequence[int], lengths: Sequence[int], size: int, group: int, seed: int, epoch: int
) -> list[list[int]]:
    """Batches of `size` item numbers, made of runs of up to `group` items with the same entry in `groups`.

    A batch is padded to its longest item, and padding costs as much as text: items of a run are of similar
    lengths, and so are the runs of a batch. Which ones meet differs from epoch to epoch all the same.
    """
    random = np.random.default_rng([seed, epoch])
    blurred = np.asarray(lengths) * random.lognormal(sigma=_BLUR, size=len(lengths))
    runs: list[list[int]] = []
    for item in np.lexsort((blurred, np.asarray(groups))).tolist():
        if runs and len(runs[-1]) < group and groups[runs[-1][0]] == groups[item]:
            runs[-1].append(item)
        else:
            runs.append([item])
    shuffled = random.permutation(len(runs)).tolist()
    order: list[int] = []
    stretch = _STRETCH * max(1, size // group)
    for number, at in enumerate(range(0, len(runs), stretch)):
        chosen = [runs[n] for n in shuffled[at : at + stretch]]
        # Up and down in turn, so that a batch across two stretches is of similar lengths too.
        chosen.sort(key=lambda run: max(lengths[item] for item in run), reverse=number % 2 > 0)
        order += [item for run in chosen for item in run]
    batches = [order[at : at + size] for at in range(0, len(order), size)]
    return [batches[n] for n in random.permutation(len(batches)).tolist()]


def phrase_batch(
    examples: Sequence[Example],
    tokenizer: Tokenizer,
    teacher: dict[str, Teacher] | None = None,
    strangers: Sequence[Example] = (),
    intruders: Sequence[tuple[int, ExampleQuestion]] = (),
) -> PhraseBatch:
    """Collate paragraphs with all their answerable questions.

    `strangers` are further paragraphs whose own questions are not asked. `intruders` are (paragraph in the
    batch, strangers counted on from the examples; question of another one): the right answer is none.
    """
    paragraphs = [*examples, *strangers]
    asked = [
        (number, question)
        for number, example in enumerate(examples)
        for question in example.questions
        if question.gold
    ]
    rows = [*asked, *intruders]
    gold = [(row, *phrase) for row, (_, question) in enumerate(asked) for phrase in question.gold]
    elsewhere = [
        (row, other, *phrase)
        for row, (number, question) in enumerate(asked)
        for other, example in enumerate(paragraphs)
        if other != number
        for phrase in same_answer(question, example)
    ]
    paragraph_ids, paragraph_mask = pad_ids(
        [_framed(e.tokens.ids, tokenizer) for e in paragraphs], tokenizer.pad_id
    )
    question_ids, question_mask = pad_ids([_framed(q.ids, tokenizer) for _, q in rows], tokenizer.pad_id)
    first, last = pad_words([e.tokens for e in paragraphs], [1] * len(paragraphs))
    teacher_start = teacher_end = None
    if teacher is not None:
        teacher_start, teacher_end = (
            _pad_logits([teacher[q.question_id][side] for _, q in asked], first.shape[1]) for side in (0, 1)
        )
    return PhraseBatch(
        paragraph_ids,
        paragraph_mask,
        first,
        last,
        question_ids,
        question_mask,
        torch.tensor([number for number, _ in rows]),
        len(asked),
        torch.tensor(gold, dtype=torch.long).reshape(-1, 3),
        torch.tensor(elsewhere, dtype=torch.long).reshape(-1, 4),
        teacher_start,
        teacher_end,
    )


def reader_batch(
    pairs: Sequence[tuple[Example, ExampleQuestion]], tokenizer: Tokenizer, has_types: bool
) -> ReaderBatch:
    """Collate pairs, framed as `denspi.dense.pairs` says."""
    separators = separators_for(has_types)
    framed = [frame_pair(tokenizer, question.ids, e.tokens.ids, separators) for e, question in pairs]
    padded, mask = pad_ids([ids for ids, _, _ in framed], tokenizer.pad_id)
    padded_types, _ = pad_ids([types for _, types, _ in framed], 0)
    first, last = pad_words([e.tokens for e, _ in pairs], [offset for _, _, offset in framed])
    gold = [(row, *phrase) for row, (_, question) in enumerate(pairs) for phrase in question.gold]
    return ReaderBatch(
        padded, mask, padded_types, first, last, torch.tensor(gold, dtype=torch.long).reshape(-1, 3)
    )


def pad_ids(rows: Sequence[NDArray[np.int32]], fill: int) -> tuple[Tensor, Tensor]:
    """``[row, piece]`` padded with `fill`, and its mask."""
    length = max(map(len, rows))
    ids = np.full((len(rows), length), fill, dtype=np.int64)
    mask = np.zeros((len(rows), length), dtype=np.int64)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = row
        mask[number, : len(row)] = 1
    return torch.from_numpy(ids), torch.from_numpy(mask)


def pad_words(tokens: Sequence[Tokens], offsets: Sequence[int]) -> tuple[Tensor, Tensor]:
    """First and last piece of every word ``[row, word]``, moved by each row's offset; -1 for none."""
    words = max(len(t.word_starts) for t in tokens)
    first = np.full((len(tokens), words), -1, dtype=np.int64)
    last = first.copy()
    for number, (t, offset) in enumerate(zip(tokens, offsets, strict=True)):
        for target, pieces in ((first, t.first_piece), (last, t.last_piece)):
            target[number, : len(pieces)] = np.where(pieces >= 0, pieces + offset, -1)
    return torch.from_numpy(first), torch.from_numpy(last)


def gold_band(gold: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A boolean tensor of `shape` that is true at the listed places."""
    marks = torch.zeros(shape, dtype=torch.bool, device=gold.device)
    # A plain True would come from the CPU, and the GPU would wait for it.
    return marks.index_put_(tuple(gold.T), torch.ones((), dtype=torch.bool, device=gold.device))


def same_answer(question: ExampleQuestion, example: Example) -> Iterator[tuple[int, int]]:
    """(first word, length - 1) of the phrases of another paragraph that read as an answer of the question."""
    for answer in question.answers:
        if answer in example.text:
            yield from occurrences(answer, example.text, example.tokens)


def _moved(tensor: Tensor, device: torch.device) -> Tensor:
    """A copy to a GPU waits for all its work unless it comes from pinned memory."""
    pinned = tensor.pin_memory() if device.type == "cuda" and not tensor.is_cuda else tensor
    return pinned.to(device, non_blocking=True)


def _framed(ids: NDArray[np.int32], tokenizer: Tokenizer) -> NDArray[np.int32]:
    return np.concatenate([[tokenizer.cls_id], ids, [tokenizer.sep_id]]).astype(np.int32)


def _pad_logits(rows: Sequence[NDArray[np.float16]], words: int) -> Tensor:
    padded = np.full((len(rows), words), -np.inf, dtype=np.float32)
    for number, row in enumerate(rows):
        padded[number, : len(row)] = row
    return torch.from_numpy(padded)
