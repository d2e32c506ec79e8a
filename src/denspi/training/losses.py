"""The losses, pure: logits in, one number per question out. Bands are laid out as in `denspi.dense.phrases`.

Deviations from the paper's section 5.1, each on purpose: impossible phrases are masked; every occurrence of
the answer counts as right (log of the summed probability); the auxiliary losses are proper softmaxes over the
same means, where the paper's numerator leaves the mean out.
"""

from __future__ import annotations

import torch
from torch import Tensor


def reading_loss(phrases: Tensor, gold: Tensor, no_answer: Tensor | None = None) -> Tensor:
    """``L/2 + (L1 + L2)/4`` for each question, over the phrases of the paragraph it is asked of.

    `phrases` and `gold` are ``[question, word, length]``. With `no_answer`, a scalar, one more outcome is in
    every softmax; it is the right one for a question without gold (Levy et al. 2017).
    """
    starts, ends = border_means(phrases)
    gold_starts, gold_ends = gold.any(2), by_end(gold, False).any(2)
    losses = (
        _nll(phrases.flatten(1), gold.flatten(1), no_answer) / 2,
        _nll(starts, gold_starts, no_answer) / 4,
        _nll(ends, gold_ends, no_answer) / 4,
    )
    return losses[0] + losses[1] + losses[2]


def in_batch_loss(phrases: Tensor, starts: Tensor, gold: Tensor, same_answer: Tensor, own: Tensor) -> Tensor:
    """The right phrase, and the right start by its vector alone, among those of all paragraphs of the batch.

    `phrases` ``[question, paragraph, word, length]``, `starts` ``[question, paragraph, word]``; `gold` marks
    phrases of each question's `own` paragraph; `same_answer` marks phrases elsewhere that read the same as
    the answer: they are neither right nor wrong, and left out.
    """
    rows = torch.arange(len(phrases), device=phrases.device)
    right = torch.zeros_like(phrases, dtype=torch.bool)
    right[rows, own] = gold
    phrases = phrases.masked_fill(same_answer, -torch.inf)
    starts = starts.masked_fill(same_answer.any(3), -torch.inf)
    whole = _nll(phrases.flatten(1), right.flatten(1), None)
    alone = _nll(starts.flatten(1), right.any(3).flatten(1), None)
    return (whole + alone) / 2


def distillation_loss(phrases: Tensor, teacher: Tensor, temperature: float) -> Tensor:
    """KL from the teacher's distribution over phrases and over borders, weighted as `reading_loss` is."""
    pairs = (
        (phrases, teacher, 0.5),
        *zip(border_means(phrases), border_means(teacher), (0.25, 0.25), strict=True),
    )
    return sum(
        (
            weight * _kl(student.flatten(1), target.flatten(1), temperature)
            for student, target, weight in pairs
        ),
        start=torch.zeros((), device=phrases.device),
    )


def border_means(phrases: Tensor) -> tuple[Tensor, Tensor]:
    """The mean logit of the phrases that start, and that end, at each word: ``[question, word]`` each."""
    return _masked_mean(phrases), _masked_mean(by_end(phrases, -torch.inf))


def by_end(phrases: Tensor, fill: float | bool) -> Tensor:
    """Re-align a band so that entry (w, k) is the phrase that *ends* at word w and starts k words before."""
    words, width = phrases.shape[1:]
    first = torch.arange(words, device=phrases.device)[:, None] - torch.arange(width, device=phrases.device)
    aligned = phrases.gather(1, first.clamp(min=0).expand(len(phrases), -1, -1))
    return aligned.masked_fill(first < 0, fill)


def _masked_mean(band: Tensor) -> Tensor:
    possible = band > -torch.inf
    count = possible.sum(2)
    mean = band.masked_fill(~possible, 0.0).sum(2) / count.clamp(min=1)
    return mean.masked_fill(count == 0, -torch.inf)


def _nll(logits: Tensor, right: Tensor, no_answer: Tensor | None) -> Tensor:
    if no_answer is not None:
        column = no_answer.to(logits.dtype).expand(len(logits), 1)
        logits = torch.cat([logits, column], dim=1)
        right = torch.cat([right, ~right.any(1, keepdim=True)], dim=1)
    return logits.logsumexp(1) - logits.masked_fill(~right, -torch.inf).logsumexp(1)


def _kl(student: Tensor, teacher: Tensor, temperature: float) -> Tensor:
    # What only one of them can cut out has no weight: another tokenizer has other borders within words.
    taught = (student > -torch.inf) & (teacher > -torch.inf)
    teacher = teacher.masked_fill(~taught, -torch.inf)
    target = (teacher / temperature).log_softmax(1).masked_fill(~taught, 0.0)
    found = (student / temperature).log_softmax(1).masked_fill(~taught, 0.0)
    weight = target.exp().masked_fill(~taught, 0.0)
    return temperature**2 * (weight * (target - found)).sum(1)
