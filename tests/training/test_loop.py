"""The loop against one that is written out: warm-up, clipping, decay of matrices only, the average."""

import math
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from denspi.training.loop import LoopSettings, fit

BATCHES, SIZE = 5, 4


@dataclass
class Points:
    given: Tensor
    wanted: Tensor

    def to(self, device: torch.device) -> "Points":
        return self


class Line:
    """A linear layer that learns from points, as a task."""

    def __init__(self) -> None:
        torch.manual_seed(1)
        self.model = nn.Linear(3, 1)
        self.given, self.wanted = torch.randn(BATCHES * SIZE, 3), 5 * torch.randn(BATCHES * SIZE)

    def order(self, epoch: int) -> list[list[int]]:
        return [
            [(epoch + at + n) % (BATCHES * SIZE) for n in range(SIZE)]
            for at in range(0, BATCHES * SIZE, SIZE)
        ]

    def collate(self, items: list[int], epoch: int) -> Points:
        return Points(self.given[items], self.wanted[items])

    def loss(self, batch: Any) -> tuple[Tensor, dict[str, Tensor]]:
        return (self.model(batch.given)[:, 0] - batch.wanted).square().mean(), {}

    def validate(self) -> dict[str, float]:
        return {}


def written_out(task: Line, settings: LoopSettings) -> list[Tensor]:
    weight, bias = task.model.weight, task.model.bias
    means, moments = [weight.detach().clone(), bias.detach().clone()], [(0.0, 0.0), (0.0, 0.0)]
    steps, is_clipped = BATCHES * settings.epochs, set()
    for step in range(steps):
        epoch, nth = divmod(step, BATCHES)
        loss, _ = task.loss(task.collate(task.order(epoch)[nth], epoch))
        gradients = torch.autograd.grad(loss, (weight, bias))
        norm = math.sqrt(sum(float(g.square().sum()) for g in gradients))
        is_clipped.add(norm > settings.clip)
        rising, falling = step / (settings.warmup * steps), (steps - step) / ((1 - settings.warmup) * steps)
        rate = settings.learning_rate * min(rising, falling)
        decays = settings.weight_decay, 0.0
        for n, (parameter, gradient) in enumerate(zip((weight, bias), gradients, strict=True)):
            clipped = gradient * min(1.0, settings.clip / norm)
            first, second = (
                0.9 * moments[n][0] + 0.1 * clipped,
                0.999 * moments[n][1] + 0.001 * clipped.square(),
            )
            moments[n] = first, second
            corrected = first / (1 - 0.9 ** (step + 1)), second / (1 - 0.999 ** (step + 1))
            with torch.no_grad():
                parameter *= 1 - rate * decays[n]
                parameter -= rate * corrected[0] / (corrected[1].sqrt() + 1e-8)
                kept = min(settings.average, (step + 1) / (step + 11))
                means[n] = kept * means[n] + (1 - kept) * parameter
    assert is_clipped == {True, False}
    return means if settings.average else [weight.detach(), bias.detach()]


@pytest.mark.parametrize("average", [0.0, 0.6])
def test_the_loop_does_what_is_written_out(tmp_path: Path, average: float) -> None:
    settings = LoopSettings(6, 0.1, warmup=0.3, weight_decay=0.5, clip=8.0, average=average)
    task, other = Line(), Line()
    fit(task, settings, 1, tmp_path, torch.device("cpu"))
    for found, expected in zip(task.model.parameters(), written_out(other, settings), strict=True):
        torch.testing.assert_close(found.detach(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="needs /proc to see the memory of a process"
)
def test_gaps_in_the_heap_are_given_back() -> None:
    """In a process of its own: the heap of this one has gaps of other tests."""
    found = subprocess.run([sys.executable, "-c", GAPS], capture_output=True, text=True, check=True)
    before, after = map(int, found.stdout.split())
    assert before - after > 100


# Blocks too small to be mapped by themselves, each held in its place by a still smaller one behind it.
GAPS = """
import torch
from pathlib import Path
from denspi.training.loop import give_back_memory

def megabytes():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("RssAnon"))

blocks = [(torch.ones(16_000), torch.ones(100)) for _ in range(3000)]
kept = [small for _, small in blocks]
del blocks
before = megabytes()
give_back_memory()
print(before, megabytes())
"""
