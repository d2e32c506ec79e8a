"""What the service counts, and how it tells: Prometheus' text format, right for any number of workers.

Every worker adds to a row of its own in one shared array, so that no lock is needed, and whichever worker is
asked sums all rows. A worker that takes the place of one that died goes on in its row: no count goes back.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from denspi.errors import StorageError

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BOUNDS_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
OTHER = "other"
ROUTES = ("answers", "documents", "watch", "page")
STATUSES = tuple(map(str, (200, 304, 400, 401, 403, 404, 405, 408, 413, 415, 421, 422, 499, 500, 503)))
STAGES = ("queue", "encode", "scan", "sparse", "starts", "bounds", "read", "prove", "answers")
STRATEGIES = ("sparse_first", "dense_first", "hybrid", "exact")
Row = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Family:
    """Series of one name, in consecutive slots of a row; those of a histogram have a slot for each bound."""

    name: str
    help: str
    labels: tuple[str, ...]
    series: tuple[tuple[str, ...], ...]
    is_histogram: bool

    @property
    def width(self) -> int:
        """Slots of one series: the bounds and infinity, then the sum."""
        return len(BOUNDS_SECONDS) + 2 if self.is_histogram else 1


def _each(values: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    return tuple((value,) for value in (*values, OTHER))


REQUESTS = Family(
    "denspi_requests_total",
    "Requests by what was asked and how it ended.",
    ("route", "status"),
    tuple((route, status) for route in ROUTES for status in (*STATUSES, OTHER)),
    False,
)
REQUEST_SECONDS = Family(
    "denspi_request_seconds",
    "Time from a request's head to the end of its reply.",
    ("route",),
    _each(ROUTES),
    True,
)
STAGE_SECONDS = Family(
    "denspi_stage_seconds", "Time of each stage, a question.", ("stage",), _each(STAGES), True
)
QUESTIONS = Family("denspi_questions_total", "Questions answered.", ("strategy",), _each(STRATEGIES), False)
FAMILIES = (REQUESTS, REQUEST_SECONDS, STAGE_SECONDS, QUESTIONS)


def _slots() -> Iterator[tuple[tuple[str, ...], int]]:
    slot = 0
    for family in FAMILIES:
        for labels in family.series:
            yield (family.name, *labels), slot
            slot += family.width


_SLOT = dict(_slots())
_ROW_SLOTS = sum(len(family.series) * family.width for family in FAMILIES)


class Metrics:
    """One worker's row, and a view of all. Counted in by one thread."""

    def __init__(self, rows: Row, own: int) -> None:
        self._rows, self._own = rows, rows[own]  # [worker, slot]

    @classmethod
    def alone(cls) -> Metrics:
        """For a service of one worker."""
        return cls(np.zeros((1, _ROW_SLOTS)), 0)

    @classmethod
    def shared(cls, path: Path) -> Metrics:
        """A free row of the file that `make_counters` has made, until this process ends."""
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        rows = np.frombuffer(mmap.mmap(descriptor, 0), np.float64).reshape(-1, _ROW_SLOTS)
        for own in range(len(rows)):
            try:
                # Kept as long as the descriptor is open: until the process ends, however it does.
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, own)
            except OSError:
                continue
            return cls(rows, own)
        raise StorageError(f"{path}: no row is free to count in; start the service again")

    def count(self, family: Family, *labels: str) -> None:
        """One more."""
        self._own[_slot(family, labels)] += 1

    def observe(self, family: Family, seconds: float, *labels: str) -> None:
        """A time, in a histogram."""
        slot = _slot(family, labels)
        self._own[slot + bisect_left(BOUNDS_SECONDS, seconds)] += 1
        self._own[slot + family.width - 1] += seconds

    def text(self, gauges: Mapping[str, tuple[str, float]]) -> str:
        """All families, summed over the workers, and `gauges`: names with a help text and a value."""
        totals = self._rows.sum(axis=0)
        lines: list[str] = []
        for family in FAMILIES:
            kind = "histogram" if family.is_histogram else "counter"
            lines += [f"# HELP {family.name} {family.help}", f"# TYPE {family.name} {kind}"]
            for labels in family.series:
                slot = _SLOT[(family.name, *labels)]
                lines += _lines(family, labels, totals[slot : slot + family.width])
        for name, (about, value) in gauges.items():
            lines += [f"# HELP {name} {about}", f"# TYPE {name} gauge", f"{name} {value:.17g}"]
        return "\n".join(lines) + "\n"


def make_counters(path: Path, workers: int) -> None:
    """A file of zeros, with rows to spare for workers that start before others have ended."""
    path.write_bytes(bytes(8 * _ROW_SLOTS * 2 * workers))


def _slot(family: Family, labels: tuple[str, ...]) -> int:
    found = _SLOT.get((family.name, *labels))
    return _SLOT[(family.name, *labels[:-1], OTHER)] if found is None else found


def _lines(family: Family, labels: tuple[str, ...], values: Row) -> Iterator[str]:
    named = ",".join(f'{name}="{value}"' for name, value in zip(family.labels, labels, strict=True))
    if not family.is_histogram:
        yield f"{family.name}{{{named}}} {values[0]:.17g}"
        return
    cumulative = np.cumsum(values[:-1])
    for bound, count in zip([*map(str, BOUNDS_SECONDS), "+Inf"], cumulative.tolist(), strict=True):
        yield f'{family.name}_bucket{{{named},le="{bound}"}} {count:.17g}'
    yield f"{family.name}_sum{{{named}}} {values[-1]:.17g}"
    yield f"{family.name}_count{{{named}}} {cumulative[-1]:.17g}"
