"""Everything that one process of the service holds, put together from its settings."""

from __future__ import annotations

from dataclasses import dataclass

from denspi.serve.gate import Gate
from denspi.serve.metrics import STAGE_SECONDS, Metrics
from denspi.serve.service import Service
from denspi.serve.settings import ServeSettings
from denspi.serve.writing import Writing

_CHANGES_WAITING, _CHANGE_SECONDS = 8, 30.0


@dataclass(frozen=True, slots=True)
class Worker:
    """One process: what it answers from, and what it lets happen at once."""

    settings: ServeSettings
    service: Service
    searching: Gate  # one thread: a worker is meant for one core
    reading: Gate  # documents, which are quick to read and do not wait for questions
    writing: Writing
    changing: Gate
    metrics: Metrics

    @classmethod
    def of(cls, settings: ServeSettings) -> Worker:
        """Open the index; `DenspiError` where it cannot be served."""
        metrics = Metrics.shared(settings.counters) if settings.counters else Metrics.alone()
        return cls(
            settings,
            Service(settings.index),
            Gate(
                "search",
                threads=1,
                waiting=settings.queue,
                max_wait_seconds=settings.max_wait_seconds,
                on_wait=lambda seconds: metrics.observe(STAGE_SECONDS, seconds, "queue"),
            ),
            Gate("read", threads=1, waiting=settings.queue, max_wait_seconds=settings.max_wait_seconds),
            Writing(settings.index, settings.lock_seconds),
            Gate("change", threads=1, waiting=_CHANGES_WAITING, max_wait_seconds=_CHANGE_SECONDS),
            metrics,
        )

    def close(self) -> None:
        """After the last request; a change whose time is over goes on in its thread until it is told."""
        self.writing.give_up()
        self.searching.close()
        self.reading.close()
        self.changing.close()
