"""The one training loop: order, step, schedule, average, checkpoint, resume. Knows no model and no loss.

A task says what its batches are and how one is scored; the loop does the rest, on one GPU, several (started
by torchrun) or the CPU. Interrupted and resumed, it ends with the same weights (bit for bit on the CPU).
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from denspi.errors import SettingsError
from denspi.training.checkpoint import Checkpoint, Part, check_finite
from denspi.training.progress import Progress

_TRIM_EVERY = 50  # steps on a CPU


@dataclass(frozen=True, slots=True)
class LoopSettings:
    """How long and how hard to train. `average` is the decay of the exponential average kept at the end."""

    epochs: int = 3
    learning_rate: float = 5e-5
    warmup: float = 0.1
    weight_decay: float = 0.01
    clip: float = 1.0
    average: float = 0.0
    validate_every_epochs: int = 1
    checkpoint_every_seconds: float = 120.0
    workers: int = 0
    bfloat16_on_cpu: bool = False

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.learning_rate <= 0 or not 0 <= self.average < 1:
            raise ValueError("epochs and learning_rate are positive, average lies in [0, 1)")
        if not 0 <= self.warmup <= 1 or self.clip <= 0 or self.validate_every_epochs < 1:
            raise ValueError("clip and validate_every_epochs are positive, warmup lies in [0, 1]")
        if self.weight_decay < 0 or self.workers < 0:
            raise ValueError("weight_decay and workers are not negative")


class Task(Protocol):
    """What is trained: a model, its batches, its loss, and how good it is on validation."""

    @property
    def model(self) -> nn.Module:
        """What the loop trains, in place."""

    def order(self, epoch: int) -> list[list[int]]:
        """The batches of an epoch, as lists of item numbers; the same for the same epoch."""

    def collate(self, items: list[int], epoch: int) -> Any:
        """A batch on the CPU, with a method ``to(device)``; the same for the same arguments."""

    def loss(self, batch: Any) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss to minimise, and parts of it to log."""

    def validate(self) -> dict[str, float]:
        """Scores on validation."""


def fit(
    task: Task,
    settings: LoopSettings,
    seed: int,
    folder: Path,
    device: torch.device,
    made_with: dict[str, Any] | None = None,
) -> dict[str, float]:
    """Train `task.model` in place; returns its last validation scores. Resumes from `folder` if it can.

    `made_with` are settings of the run; a checkpoint that was made with others is refused.
    """
    rank, world = (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)
    torch.manual_seed(seed + rank)
    model = task.model.to(device)
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(
        [
            {"params": [p for p in trained if p.ndim > 1], "weight_decay": settings.weight_decay},
            {"params": [p for p in trained if p.ndim <= 1], "weight_decay": 0.0},
        ],
        lr=settings.learning_rate,
        fused=device.type == "cuda",
    )
    steps_per_epoch = len(task.order(0)) // world
    if not steps_per_epoch:
        raise SettingsError(f"an epoch has {len(task.order(0))} batches, too few for {world} processes")
    total = steps_per_epoch * settings.epochs
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _rate(step, total, settings.warmup))
    average = Average(trained, settings.average)
    progress = Progress(folder, total, is_quiet=rank > 0)
    parts: dict[str, Part] = {
        "model": model,
        "optimizer": optimizer,
        "schedule": schedule,
        "average": average,
        "progress": progress,
    }
    checkpoint = Checkpoint(folder / "checkpoint.pt", parts, {**(made_with or {}), "steps": total}, device)
    step = checkpoint.restore()
    scores: dict[str, float] = {}
    is_mixed = device.type == "cuda" or settings.bfloat16_on_cpu
    with progress.begin(step):
        while step < total:
            epoch, done = divmod(step, steps_per_epoch)
            batches = task.order(epoch)[rank::world][done:steps_per_epoch]
            model.train()
            for batch in _loaded(batches, functools.partial(task.collate, epoch=epoch), settings.workers):
                with torch.autocast(device.type, torch.bfloat16, enabled=is_mixed):
                    loss, shown = task.loss(batch.to(device))
                torch.autograd.backward(loss)
                _share_gradients(trained, world)
                norm = nn.utils.clip_grad_norm_(trained, settings.clip)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad(set_to_none=True)
                step += 1
                average.update(step)
                progress.step(step, {"loss": loss.detach(), "gradient": norm, **shown})
                if device.type == "cpu" and step % _TRIM_EVERY == 0:
                    give_back_memory()
                if step % steps_per_epoch:  # at the end of an epoch: once it is validated
                    checkpoint.save_if_due(step, settings.checkpoint_every_seconds)
            if step == total or (epoch + 1) % settings.validate_every_epochs == 0:
                check_finite(model, step, folder)
                progress.validating(epoch + 1)
                with average.in_place():
                    scores = evaluated(model, task.validate)
                progress.scores(epoch + 1, step, scores)
            checkpoint.save_if_due(step, settings.checkpoint_every_seconds)
    average.adopt()
    return scores or evaluated(model, task.validate)


def evaluated(model: nn.Module, function: Callable[[], dict[str, float]]) -> dict[str, float]:
    """Call `function` with dropout and gradients off."""
    model.eval()
    with torch.no_grad():
        return function()


def give_back_memory() -> None:
    """Tensors of ever new sizes leave gaps in the heap: gigabytes, which glibc keeps unless it is told."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's alone
        if trim is not None:
            trim(0)


class Average:
    """An exponential average of parameters; with a decay of zero there is none. A `checkpoint.Part`."""

    def __init__(self, parameters: list[nn.Parameter], decay: float) -> None:
        self.parameters, self.decay = parameters, decay
        self.means = [p.detach().clone() for p in parameters] if decay else []

    def update(self, step: int) -> None:
        """Take in the parameters after `step`."""
        if self.means:
            # Warmed up, so that the first weights do not linger in the average.
            decay = min(self.decay, step / (step + 10))
            torch._foreach_lerp_(self.means, [p.detach() for p in self.parameters], 1 - decay)

    def adopt(self) -> None:
        """Set the parameters to their averages."""
        if self.means:
            _set(self.parameters, self.means)

    @contextlib.contextmanager
    def in_place(self) -> Iterator[None]:
        """Within the block, the parameters hold their averages."""
        kept = [p.detach().clone() for p in self.parameters]
        self.adopt()
        try:
            yield
        finally:
            _set(self.parameters, kept)

    def state_dict(self) -> dict[str, Any]:
        """The averages."""
        return {"means": self.means}

    def load_state_dict(self, state: dict[str, Any], /) -> None:
        """Go on with those averages."""
        for mean, value in zip(self.means, state["means"], strict=True):
            mean.copy_(value)


def _set(parameters: list[nn.Parameter], values: list[Tensor]) -> None:
    for parameter, value in zip(parameters, values, strict=True):
        parameter.data.copy_(value)


def _rate(step: int, total: int, warmup: float) -> float:
    rising = step / max(1.0, warmup * total)
    falling = (total - step) / max(1.0, (1 - warmup) * total)
    return max(0.0, min(rising, falling, 1.0))


class _Collated(Dataset[Any]):
    def __init__(self, batches: Sequence[list[int]], collate: Callable[[list[int]], Any]) -> None:
        self.batches, self.collate = batches, collate

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, number: int) -> Any:
        return self.collate(self.batches[number])


def _loaded(batches: Sequence[list[int]], collate: Callable[[list[int]], Any], workers: int) -> Iterator[Any]:
    loader = DataLoader(
        _Collated(batches, collate),
        batch_size=None,
        num_workers=workers,
        prefetch_factor=8 if workers else None,
        # A loader draws a seed when it starts; from the global generator, a resumed run would drift off.
        generator=torch.Generator(),
    )
    return iter(loader)


def _share_gradients(trained: list[nn.Parameter], world: int) -> None:
    if world == 1:
        return
    for parameter in trained:
        if parameter.grad is not None:  # a head that this loss does not use, the same in every process
            dist.all_reduce(parameter.grad)
            parameter.grad /= world
