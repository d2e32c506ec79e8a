"""The losses against slow oracles that enumerate every phrase in plain Python."""

import math

import numpy as np
import pytest
import torch

from denspi.dense.model import PhraseParts, Questions
from denspi.dense.phrases import phrase_logits
from denspi.training.losses import distillation_loss, in_batch_loss, reading_loss

WORDS, WIDTH, QUESTIONS, PARAGRAPHS, DIM, KEYS = 6, 3, 4, 3, 5, 2


@pytest.fixture
def setting() -> dict[str, torch.Tensor]:
    torch.manual_seed(3)
    can_start = torch.rand(PARAGRAPHS, WORDS) < 0.8
    can_end = torch.rand(PARAGRAPHS, WORDS) < 0.8
    can_start[:, 0] = can_end[:, 0] = can_start[:, 2] = can_end[:, 3] = True
    can_start[1, 5] = can_end[1, 5] = False  # a padded word
    return {
        "q_start": torch.randn(QUESTIONS, DIM),
        "q_end": torch.randn(QUESTIONS, DIM),
        "q_coherency": torch.randn(QUESTIONS),
        "start": torch.randn(PARAGRAPHS, WORDS, DIM),
        "end": torch.randn(PARAGRAPHS, WORDS, DIM),
        "start_key": torch.randn(PARAGRAPHS, WORDS, KEYS),
        "end_key": torch.randn(PARAGRAPHS, WORDS, KEYS),
        "can_start": can_start,
        "can_end": can_end,
    }


def enumerate_scores(s: dict[str, torch.Tensor], q: int, p: int) -> dict[tuple[int, int], float]:
    """Every phrase (first word, last word) of paragraph p with its score for question q, by definition."""
    scores = {}
    for i in range(WORDS):
        for j in range(i, min(WORDS, i + WIDTH)):
            if s["can_start"][p, i] and s["can_end"][p, j]:
                coherency = float(s["start_key"][p, i] @ s["end_key"][p, j])
                scores[i, j] = (
                    float(s["q_start"][q] @ s["start"][p, i])
                    + float(s["q_end"][q] @ s["end"][p, j])
                    + float(s["q_coherency"][q]) * coherency
                )
    return scores


def fast(s: dict[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    questions = Questions(s["q_start"], s["q_end"], s["q_coherency"])
    parts = PhraseParts(s["start"], s["end"], s["start_key"], s["end_key"])
    return phrase_logits(questions, parts, s["can_start"], s["can_end"], WIDTH)


def logsum(values: list[float]) -> float:
    return math.log(sum(math.exp(v) for v in values))


def means(scores: dict[tuple[int, int], float], side: int) -> dict[int, float]:
    return {
        word: float(np.mean([v for pair, v in scores.items() if pair[side] == word]))
        for word in {pair[side] for pair in scores}
    }


def test_the_band_holds_exactly_the_enumerated_phrases(setting: dict[str, torch.Tensor]) -> None:
    _, _, phrases = fast(setting)
    for q in range(QUESTIONS):
        for p in range(PARAGRAPHS):
            slow = enumerate_scores(setting, q, p)
            for i in range(WORDS):
                for k in range(WIDTH):
                    value = float(phrases[q, p, i, k])
                    assert value == pytest.approx(slow.get((i, i + k), -math.inf), abs=1e-5)


@pytest.mark.parametrize("bias", [None, 0.7])
def test_reading_loss(setting: dict[str, torch.Tensor], bias: float | None) -> None:
    own = [0, 1, 2, 1]
    right = [{(0, 0), (2, 3)}, {(2, 3)}, {(0, 0)}, {(0, 0)}]
    if bias is not None:
        right[3] = set()  # a question that this paragraph does not answer
    _, _, phrases = fast(setting)
    gold = torch.zeros(QUESTIONS, WORDS, WIDTH, dtype=torch.bool)
    for q, pairs in enumerate(right):
        for i, j in pairs:
            gold[q, i, j - i] = True
    losses = reading_loss(
        phrases[torch.arange(QUESTIONS), own], gold, None if bias is None else torch.tensor(bias)
    )
    for q in range(QUESTIONS):
        slow = enumerate_scores(setting, q, own[q])
        extra = [] if bias is None else [bias]

        def nll(scores: dict, answers: set, extra: list[float] = extra) -> float:
            good = [scores[a] for a in answers] or extra
            return logsum([*scores.values(), *extra]) - logsum(good)

        expected = (
            nll(slow, right[q]) / 2
            + nll(means(slow, 0), {i for i, _ in right[q]}) / 4
            + nll(means(slow, 1), {j for _, j in right[q]}) / 4
        )
        assert float(losses[q]) == pytest.approx(expected, abs=1e-5)


def test_in_batch_loss_leaves_out_the_same_answer_elsewhere(setting: dict[str, torch.Tensor]) -> None:
    own, right, elsewhere = [0, 1, 2, 1], (2, 3), (0, 0, 0)  # in paragraph 0, words 0 to 0 read the same
    starts, _, phrases = fast(setting)
    gold = torch.zeros(QUESTIONS, WORDS, WIDTH, dtype=torch.bool)
    gold[:, right[0], right[1] - right[0]] = True
    same = torch.zeros(QUESTIONS, PARAGRAPHS, WORDS, WIDTH, dtype=torch.bool)
    same[1, elsewhere[0], elsewhere[1], elsewhere[2]] = True
    losses = in_batch_loss(phrases, starts, gold, same, torch.tensor(own))
    for q in range(QUESTIONS):
        everything = {
            (p, *pair): v for p in range(PARAGRAPHS) for pair, v in enumerate_scores(setting, q, p).items()
        }
        alone = {
            (p, i): float(setting["q_start"][q] @ setting["start"][p, i])
            for p in range(PARAGRAPHS)
            for i in range(WORDS)
            if setting["can_start"][p, i]
        }
        if q == 1:
            del (
                everything[elsewhere[0], elsewhere[1], elsewhere[1] + elsewhere[2]],
                alone[elsewhere[0], elsewhere[1]],
            )
        whole = logsum(list(everything.values())) - everything[own[q], *right]
        by_start = logsum(list(alone.values())) - alone[own[q], right[0]]
        assert float(losses[q]) == pytest.approx((whole + by_start) / 2, abs=1e-5)


@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_distillation_is_the_divergence_over_phrases_and_borders(
    setting: dict[str, torch.Tensor], temperature: float
) -> None:
    _, _, phrases = fast(setting)
    student = phrases[:, 0]
    other = {k: torch.randn_like(v) if v.is_floating_point() else v for k, v in setting.items()}
    teacher = fast(other)[2][:, 0]
    losses = distillation_loss(student, teacher, temperature)

    def divergence(a: dict, b: dict) -> float:
        log_a = {k: v / temperature - logsum([x / temperature for x in a.values()]) for k, v in a.items()}
        log_b = {k: v / temperature - logsum([x / temperature for x in b.values()]) for k, v in b.items()}
        return temperature**2 * sum(math.exp(log_a[k]) * (log_a[k] - log_b[k]) for k in a)

    for q in range(QUESTIONS):
        s, t = enumerate_scores(setting, q, 0), enumerate_scores(other, q, 0)
        expected = divergence(t, s) / 2
        expected += divergence(means(t, 0), means(s, 0)) / 4 + divergence(means(t, 1), means(s, 1)) / 4
        assert float(losses[q]) == pytest.approx(expected, abs=1e-4)
    assert torch.allclose(distillation_loss(student, student, temperature), torch.zeros(QUESTIONS), atol=1e-6)


def test_gradients_are_finite_where_much_is_impossible(setting: dict[str, torch.Tensor]) -> None:
    leaves = {k: v.clone().requires_grad_(v.is_floating_point()) for k, v in setting.items()}
    starts, _, phrases = fast(leaves)
    gold = torch.zeros(QUESTIONS, WORDS, WIDTH, dtype=torch.bool)
    gold[:, 0, 0] = True
    own = torch.tensor([0, 1, 2, 1])
    mine = phrases[torch.arange(QUESTIONS), own]
    same = torch.zeros_like(phrases, dtype=torch.bool)
    total = (
        reading_loss(mine, gold, torch.tensor(0.0)).sum()
        + in_batch_loss(phrases, starts, gold, same, own).sum()
    )
    (total + distillation_loss(mine, mine.detach() * 2, 1.0).sum()).backward()
    assert all(
        v.grad.isfinite().all() for v in leaves.values() if v.is_floating_point() and v.grad is not None
    )
