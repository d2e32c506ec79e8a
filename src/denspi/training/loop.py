"""The one training loop: order, step, schedule, average, checkpoint, resume. Knows no particular model or loss.

A task says what its batches are and how one is scored; the loop does the rest, on one GPU, several (started by
torchrun) or the CPU. Interrupted and resumed, it ends with the same weights (bit for bit on the CPU).
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from denspi.errors import ModelError


@dataclass(frozen=True, slots=True)
class LoopSettings:
    """How long and how hard to train. `average` is the decay of the exponential average that is kept at the end."""

    epochs: int = 3
    learning_rate: float = 5e-5
    warmup: float = 0.1
    weight_decay: float = 0.01
    clip: float = 1.0
    average: float = 0.0
    validate_every_epochs: int = 1
    checkpoint_every_seconds: float = 120.0
    workers: int = 0

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.learning_rate <= 0 or not 0 <= self.average < 1:
            raise ValueError("epochs and learning_rate are positive, average lies in [0, 1)")


class Task(Protocol):
    """What is trained: a model, its batches, its loss, and how good it is on validation."""

    model: nn.Module

    def order(self, epoch: int) -> list[list[int]]:
        """The batches of an epoch, as lists of item numbers; the same for the same epoch."""

    def collate(self, items: list[int]) -> Any:
        """A batch on the CPU, with a method ``to(device)``."""

    def loss(self, batch: Any) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss to minimise, and parts of it to log."""

    def validate(self) -> dict[str, float]:
        """Scores on validation."""


class _Collated(Dataset[Any]):
    def __init__(self, batches: Sequence[list[int]], collate: Callable[[list[int]], Any]) -> None:
        self.batches, self.collate = batches, collate

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, number: int) -> Any:
        return self.collate(self.batches[number])


def fit(
    task: Task, settings: LoopSettings, seed: int, folder: Path, device: torch.device
) -> dict[str, float]:
    """Train `task.model` in place; returns its last validation scores. Resumes from `folder` if it can."""
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
    total = steps_per_epoch * settings.epochs
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _rate(step, total, settings.warmup))
    average = [p.detach().clone() for p in trained] if settings.average else None
    state = _State(model, optimizer, schedule, average, folder / "checkpoint.pt")
    step = state.restore(device)
    log = _Log(folder, total, step, quiet=rank > 0)
    scores: dict[str, float] = {}
    while step < total:
        epoch, done = divmod(step, steps_per_epoch)
        batches = task.order(epoch)[rank::world][done:steps_per_epoch]
        model.train()
        for batch in _loaded(batches, task.collate, settings.workers, device):
            with torch.autocast("cuda", torch.bfloat16, enabled=device.type == "cuda"):
                loss, parts = task.loss(batch.to(device))
            loss.backward()  # type: ignore[no-untyped-call]
            _share_gradients(trained, world)
            norm = nn.utils.clip_grad_norm_(trained, settings.clip)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad(set_to_none=True)
            step += 1
            if average is not None:
                # Warmed up, so that the first weights do not linger in the average.
                decay = min(settings.average, step / (step + 10))
                torch._foreach_lerp_(average, [p.detach() for p in trained], 1 - decay)
            log.step(step, {"loss": loss.detach(), "gradient": norm, **parts})
            if rank == 0 and state.is_due(settings.checkpoint_every_seconds):
                state.save(step)
        last = step >= total
        if last or (epoch + 1) % settings.validate_every_epochs == 0:
            with averaged(trained, average):
                scores = evaluated(model, task.validate)
            log.scores(epoch + 1, step, scores)
    if average is not None:
        for parameter, mean in zip(trained, average, strict=True):
            parameter.data.copy_(mean)
    if not scores:
        scores = evaluated(model, task.validate)
    return scores


def evaluated(model: nn.Module, function: Callable[[], dict[str, float]]) -> dict[str, float]:
    """Call `function` with dropout and gradients off."""
    model.eval()
    with torch.no_grad():
        return function()


@contextlib.contextmanager
def averaged(trained: list[nn.Parameter], average: list[Tensor] | None) -> Iterator[None]:
    """Within the block, the parameters hold their averages."""
    if average is None:
        yield
        return
    kept = [p.detach().clone() for p in trained]
    for parameter, mean in zip(trained, average, strict=True):
        parameter.data.copy_(mean)
    yield
    for parameter, value in zip(trained, kept, strict=True):
        parameter.data.copy_(value)


def _rate(step: int, total: int, warmup: float) -> float:
    rising = step / max(1.0, warmup * total)
    falling = (total - step) / max(1.0, (1 - warmup) * total)
    return max(0.0, min(rising, falling, 1.0))


def _loaded(
    batches: Sequence[list[int]], collate: Callable[[list[int]], Any], workers: int, device: torch.device
) -> Iterator[Any]:
    loader = DataLoader(
        _Collated(batches, collate),
        batch_size=None,
        num_workers=workers,
        pin_memory=False,
        prefetch_factor=None if workers == 0 else 8,
    )
    return iter(loader)


def _share_gradients(trained: list[nn.Parameter], world: int) -> None:
    if world == 1:
        return
    for parameter in trained:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        dist.all_reduce(parameter.grad)
        parameter.grad /= world


class _State:
    """Everything that a resumed run needs, written whole or not at all."""

    def __init__(
        self, model: nn.Module, optimizer: Any, schedule: Any, average: list[Tensor] | None, path: Path
    ) -> None:
        self.model, self.optimizer, self.schedule, self.average, self.path = (
            model,
            optimizer,
            schedule,
            average,
            path,
        )
        self.saved_at = time.monotonic()

    def is_due(self, every_seconds: float) -> bool:
        return time.monotonic() - self.saved_at >= every_seconds

    def save(self, step: int) -> None:
        content = {
            "step": step,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
            "average": self.average,
            "random": torch.get_rng_state(),
            "random_cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
        }
        half_written = self.path.with_suffix(".tmp")
        torch.save(content, half_written)
        os.replace(half_written, self.path)
        self.saved_at = time.monotonic()

    def restore(self, device: torch.device) -> int:
        if not self.path.exists():
            return 0
        try:
            content = torch.load(self.path, map_location=device, weights_only=True)
            self.model.load_state_dict(content["model"])
            self.optimizer.load_state_dict(content["optimizer"])
        except (RuntimeError, KeyError, ValueError) as error:
            first = str(error).strip().splitlines()[0]
            raise ModelError(f"{self.path}: is of another run ({first}); remove it to start again") from None
        self.schedule.load_state_dict(content["schedule"])
        if self.average is not None:
            for mean, value in zip(self.average, content["average"], strict=True):
                mean.copy_(value)
        torch.set_rng_state(content["random"].cpu())
        if content["random_cuda"]:
            torch.cuda.set_rng_state_all([state.cpu() for state in content["random_cuda"]])
        return int(content["step"])


class _Log:
    """A line on the terminal now and then, and a JSON line in log.jsonl for each mean and each validation."""

    EVERY = 50

    def __init__(self, folder: Path, total: int, done: int, quiet: bool) -> None:
        self.path, self.total, self.quiet = folder / "log.jsonl", total, quiet
        self.began, self.done_before = time.monotonic(), done
        self.sums: dict[str, Tensor] = {}
        self.count = 0

    def step(self, step: int, values: dict[str, Tensor]) -> None:
        for name, value in values.items():
            self.sums[name] = self.sums.get(name, torch.zeros((), device=value.device)) + value.detach()
        self.count += 1
        if self.count == self.EVERY or step == self.total:
            means = {name: round(float(value) / self.count, 5) for name, value in self.sums.items()}
            self.sums, self.count = {}, 0
            self.write({"step": step, **means})
            rate = (step - self.done_before) / (time.monotonic() - self.began)
            shown = "  ".join(f"{name} {value:.3f}" for name, value in means.items())
            left = (self.total - step) / rate
            self.say(
                f"step {step}/{self.total}  {rate:.1f} steps/s  {left:.0f} s left  {shown}",
                step != self.total,
            )

    def scores(self, epoch: int, step: int, scores: dict[str, float]) -> None:
        self.write({"step": step, "epoch": epoch, **scores})
        self.say(
            f"epoch {epoch}: " + "  ".join(f"{name} {value:.4g}" for name, value in scores.items()), False
        )

    def write(self, record: dict[str, Any]) -> None:
        if not self.quiet:
            with self.path.open("a") as file:
                file.write(json.dumps({"seconds": round(time.monotonic() - self.began, 1), **record}) + "\n")

    def say(self, line: str, passing: bool) -> None:
        if not self.quiet and (sys.stderr.isatty() or not passing):
            print(
                f"\r\033[K{line}" if sys.stderr.isatty() else line,
                end="" if passing else "\n",
                file=sys.stderr,
                flush=True,
            )
