"""The routes for those who run the service: is it alive, is it ready, what has it done.

They do not wait with the questions: a service that is busy is neither dead nor unready.
"""

from __future__ import annotations

import asyncio

from fastapi import APIRouter
from starlette.responses import Response

from denspi.serve.answering import NOT_KEPT
from denspi.serve.examples import METRICS
from denspi.serve.metrics import CONTENT_TYPE
from denspi.serve.models import HealthOut, ReadyOut
from denspi.serve.openapi import problems
from denspi.serve.problems import ProblemError
from denspi.serve.service import AwayError, Held
from denspi.serve.worker import Worker


def watch_routes(worker: Worker) -> APIRouter:
    """``/healthz``, ``/readyz`` and ``/metrics``."""
    router = APIRouter(tags=["watching"])

    @router.get("/healthz", responses=problems())
    async def get_health() -> HealthOut:
        """Whether the process answers at all."""
        return HealthOut(status="ok")

    @router.get("/readyz", response_model=ReadyOut, responses=problems(503))
    async def get_readiness() -> ReadyOut:
        """Whether it serves the newest generation, and what that holds."""
        try:
            held = await asyncio.to_thread(worker.service.held)
        except AwayError:
            raise ProblemError(503, f"{worker.service.why_not_ready}") from None
        if worker.service.why_not_ready is not None:
            raise ProblemError(
                503, f"{worker.service.why_not_ready}; still serving generation {held.generation}"
            )
        return ReadyOut(
            status="ready",
            generation=held.generation,
            documents=held.documents,
            paragraphs=held.paragraphs,
            words=held.words,
            model=held.model,
            precision=held.precision,
            writable=worker.settings.token is not None,
        )

    @router.get(
        "/metrics",
        response_class=Response,
        responses={
            200: {"content": {"text/plain": {"schema": {"type": "string"}, "example": METRICS}}},
            **problems(),
        },
    )
    async def get_metrics() -> Response:
        """Counts and times since the start, over all workers, in Prometheus' text format."""
        try:
            gauges = _gauges(await asyncio.to_thread(worker.service.held))
        except AwayError:  # what was counted is still true
            gauges = {}
        text = worker.metrics.text(gauges)
        return Response(text, media_type=CONTENT_TYPE, headers=NOT_KEPT)

    return router


def _gauges(held: Held) -> dict[str, tuple[str, float]]:
    return {
        "denspi_index_generation": ("The generation that is being served.", held.generation),
        "denspi_index_documents": ("Documents that can be found.", held.documents),
        "denspi_index_paragraphs": ("Paragraphs that can be found.", held.paragraphs),
        "denspi_index_words": ("Words that can be found.", held.words),
        "denspi_index_bytes": ("Size of the generation on disk.", held.bytes),
    }
