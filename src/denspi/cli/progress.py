"""A progress bar on standard error for commands that take a while; nothing where that is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol


class Show(Protocol):
    """Moves the bar on by `advance` and sets the figures that stand beside it."""

    def __call__(self, advance: int = 0, **figures: float) -> None:
        """Show what has changed."""


@contextmanager
def progress_bar(
    text: str, total: Callable[[], int], in_bytes: bool = False, **figures: float
) -> Iterator[Show]:
    """Show a bar while the block runs; `total` is asked only if there is one.

    `text` stands beside it, the figures written as rich does: ``"{task.fields[documents]:,} documents"``.
    """
    if not sys.stderr.isatty():
        yield _show_nothing
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


def _show_nothing(advance: int = 0, **figures: float) -> None:
    """For where nobody watches."""
