"""Everything that an interrupted run needs to go on as if nothing had happened: written whole or not at all.

Several processes keep one file: rank 0 writes it, with the random state of every rank.
"""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import torch
import torch.distributed as dist

from denspi.errors import ModelError, SettingsError


class Part(Protocol):
    """Something with a state: a model, an optimizer, a schedule, an average."""

    def state_dict(self) -> dict[str, Any]:
        """Tensors and plain values."""

    def load_state_dict(self, state_dict: dict[str, Any], /) -> Any:
        """Take over what `state_dict` gave."""


class Checkpoint:
    """One file of named parts. `made_with` tells which run it belongs to; another run's file is refused."""

    def __init__(
        self, path: Path, parts: Mapping[str, Part], made_with: dict[str, Any], device: torch.device
    ) -> None:
        self.path, self.parts, self.device = path, parts, device
        self.rank, self.world = (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)
        self.made_with = {**made_with, "processes": self.world}
        self.saved_at = time.monotonic()

    def save_if_due(self, step: int, every_seconds: float) -> None:
        """Save when the last time is long enough ago; every process calls this at every step."""
        due = torch.tensor(int(time.monotonic() - self.saved_at >= every_seconds))
        if self.world > 1:  # all hand in their random state, so all must agree that now is the time
            due = due.to(self.device)
            dist.broadcast(due, 0)
        if due:
            self.save(step)

    def save(self, step: int) -> None:
        """Write the state after `step`; what cannot be gone on from does not replace what can."""
        check_finite(self.parts["model"], step, self.path.parent)
        randoms = [_random_state()]
        if self.world > 1:
            randoms = [{}] * self.world
            dist.all_gather_object(randoms, _random_state())
        if self.rank == 0:
            content = {
                "step": step,
                "made_with": self.made_with,
                "parts": {name: part.state_dict() for name, part in self.parts.items()},
                "randoms": randoms,
            }
            _write(content, self.path)
        self.saved_at = time.monotonic()

    def restore(self) -> int:
        """Put every part into the saved state; the step it was saved after, 0 if there is none."""
        if not self.path.exists():
            return 0
        try:
            content = torch.load(self.path, map_location=self.device, weights_only=True)
            self._check(content["made_with"])
            for name, part in self.parts.items():
                part.load_state_dict(content["parts"][name])
            random = content["randoms"][self.rank]
            step = int(content["step"])
        except (RuntimeError, KeyError, ValueError, TypeError, EOFError, pickle.UnpicklingError) as error:
            first = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise ModelError(f"{self.path}: cannot be resumed ({first}); remove it to start again") from None
        torch.set_rng_state(random["cpu"].cpu())
        if "cuda" in random:
            torch.cuda.set_rng_state(random["cuda"].cpu())
        return step

    def _check(self, made_with: dict[str, Any]) -> None:
        for name in sorted(self.made_with.keys() | made_with.keys()):
            before, now = made_with.get(name), self.made_with.get(name)
            if before != now:
                raise ModelError(
                    f"{self.path}: was made with {name} = {before!r}, now {now!r}; remove it to start again"
                )


def check_finite(model: Part, step: int, folder: Path) -> None:
    """One gradient that is not a number makes all weights so, and no later step brings them back."""
    if not all(torch.isfinite(weight).all() for weight in model.state_dict().values()):
        raise SettingsError(
            f"{folder}: weights were not finite any more at step {step}; "
            f"lower loop.learning_rate, remove {folder} and train it again"
        )


def _write(content: dict[str, Any], path: Path) -> None:
    half_written = path.with_suffix(".tmp")
    try:
        with half_written.open("wb") as file:
            torch.save(content, file)
        os.replace(half_written, path)
    except RuntimeError as error:
        # On a full disk torch fails in its own words; the system's stand behind them.
        if isinstance(error.__context__, OSError):
            raise error.__context__ from None
        raise
    finally:
        half_written.unlink(missing_ok=True)


def _random_state() -> dict[str, torch.Tensor]:
    state = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.get_rng_state()
    return state
