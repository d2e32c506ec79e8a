"""What a run tells: how far it is, on standard error, and a JSON line for each mean and each validation.

A resumed run goes on in the same log.jsonl: records beyond the step that it starts from are taken out first.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

from torch import Tensor

from denspi.training.status_line import StatusLine


class Progress:
    """Means of what each step hands in, written every `EVERY` steps; a `checkpoint.Part`."""

    EVERY = 50

    def __init__(self, folder: Path, total: int, is_quiet: bool) -> None:
        self.path, self.total, self.is_quiet = folder / "log.jsonl", total, is_quiet
        self.sums: dict[str, Tensor] = {}
        self.count = 0
        self.line = StatusLine(is_quiet)

    @contextlib.contextmanager
    def begin(self, done: int) -> Iterator[None]:
        """Start the clock after `done` steps, and the log with what they left; the steps are in the block."""
        self.seconds_before = 0.0 if self.is_quiet else _trim(self.path, done)
        self.began, self.done_before = time.monotonic(), done
        with self.line:
            yield

    def step(self, step: int, values: dict[str, Tensor]) -> None:
        """Take in the values of one step."""
        for name, value in values.items():
            value = value.detach()
            self.sums[name] = self.sums[name] + value if name in self.sums else value
        self.count += 1
        is_record = step % self.EVERY == 0 or step == self.total
        is_due = self.line.is_due(step / self.total)
        if not is_record and not is_due:
            return  # to read a sum makes the GPU wait
        means = {name: round(float(value) / self.count, 5) for name, value in self.sums.items()}
        if is_record:
            self.sums, self.count = {}, 0
            self._write({"step": step, **means})
        if step == self.total:
            self.line.keep(self._line(step, means))
        elif is_due:
            self.line.show(self._line(step, means), step / self.total)

    def validating(self, epoch: int) -> None:
        """A validation after `epoch` epochs begins, which may take a while."""
        self.line.pass_by(f"epoch {epoch}: validating")

    def scores(self, epoch: int, step: int, scores: dict[str, float]) -> None:
        """A validation after `epoch` epochs."""
        self._write({"step": step, "epoch": epoch, **scores})
        shown = "  ".join(f"{name} {value:.4g}" for name, value in scores.items())
        self.line.keep(f"epoch {epoch}: {shown}")

    def state_dict(self) -> dict[str, Any]:
        """The sums since the last record."""
        return {"sums": self.sums, "count": self.count}

    def load_state_dict(self, state: dict[str, Any], /) -> None:
        """Go on with those sums."""
        self.sums, self.count = state["sums"], state["count"]

    def _line(self, step: int, means: dict[str, float]) -> str:
        """The loss is the mean since the last record, as are the parts of it that follow."""
        shown = "  ".join(f"{name} {value:.3f}" for name, value in means.items())
        pace = _pace(step - self.done_before, self.total - step, self.began, "steps")
        return f"step {step:,}/{self.total:,}  {pace}  {shown}"

    def _write(self, record: dict[str, Any]) -> None:
        if not self.is_quiet:
            seconds = self.seconds_before + time.monotonic() - self.began
            with self.path.open("a") as file:
                file.write(json.dumps({"seconds": round(seconds, 1), **record}) + "\n")


@contextlib.contextmanager
def counting(what: str, things: str, total: int, is_quiet: bool = False) -> Iterator[Callable[[int], None]]:
    """Shows how far work without a loss is; within the block, tell the function how many more are done."""
    line, began, done = StatusLine(is_quiet), time.monotonic(), 0

    def more(count: int) -> None:
        nonlocal done
        done += count
        if line.is_due(done / total):
            line.show(f"{what} {done:,}/{total:,}  {_pace(done, total - done, began, things)}", done / total)

    with line:
        yield more


def _pace(done: int, left: int, began: float, things: str) -> str:
    rate = max(done, 1) / max(time.monotonic() - began, 1e-6)
    pace = f"{rate:.1f} {things}/s" if rate >= 1 else f"{1 / rate:.1f} s a {things.removesuffix('s')}"
    return f"{pace}  {timedelta(seconds=round(left / rate))} left"


def _trim(path: Path, done: int) -> float:
    """Keep the records of the first `done` steps; the seconds that the last of them tells."""
    if not path.exists():
        return 0.0
    kept = []
    for line in path.read_text().splitlines():
        try:
            record = json.loads(line)
        except ValueError:  # a line that was being written when the process was killed
            continue
        if record["step"] <= done:
            kept.append(record)
    half_written = path.with_suffix(".tmp")
    half_written.write_text("".join(json.dumps(record) + "\n" for record in kept))
    os.replace(half_written, path)
    return float(kept[-1]["seconds"]) if kept else 0.0
