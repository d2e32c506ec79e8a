"""Progress of commands that take a while, on standard error: a bar on a terminal, else a line a minute."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Protocol

from denspi.cli.wording import size_shown

LINE_SECONDS = 60.0


class Show(Protocol):
    """Moves the bar on by `advance` and sets the figures that stand beside it."""

    def __call__(self, advance: int = 0, **figures: float) -> None:
        """Show what has changed."""


@contextmanager
def progress_bar(
    text: str, total: Callable[[], int], in_bytes: bool = False, **figures: float
) -> Iterator[Show]:
    """Show a bar while the block runs; `total` is asked once there is something to show. 0 is unknown.

    `text` stands beside it, the figures written as rich does: ``"{task.fields[documents]:,} documents"``.
    """
    if not sys.stderr.isatty():
        yield _Lines(text, total, in_bytes, figures)
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    count = DownloadColumn() if in_bytes else MofNCompleteColumn()
    columns = (TextColumn(text), BarColumn(), count, TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=total(), **figures)  # type: ignore[arg-type]

        def show(advance: int = 0, **changed: float) -> None:
            progress.update(task, advance=advance, **changed)  # type: ignore[arg-type]

        yield show


class _Lines:
    """For a file or a pipe. The time left is by what was done since the line before."""

    def __init__(
        self, text: str, total: Callable[[], int], in_bytes: bool, figures: dict[str, float]
    ) -> None:
        self._text, self._total, self._figures = text, total, figures
        self._number = size_shown if in_bytes else "{:,}".format
        self._done = self._done_then = 0
        self._then = time.monotonic()

    def __call__(self, advance: int = 0, **figures: float) -> None:
        self._done += advance
        self._figures |= figures
        seconds = time.monotonic() - self._then
        if seconds >= LINE_SECONDS:
            print(self._line(seconds), file=sys.stderr, flush=True)
            self._then, self._done_then = time.monotonic(), self._done

    def _line(self, seconds: float) -> str:
        line = f"{self._text.format(task=SimpleNamespace(fields=self._figures))}; {self._number(self._done)}"
        if total := self._total():
            line += f" of {self._number(total)}"
            if gained := self._done - self._done_then:
                line += f", {math.ceil((total - self._done) * seconds / gained / 60):,} min left"
        return line
