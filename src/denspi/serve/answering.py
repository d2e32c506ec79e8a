"""The routes of questions: one in an address or a body, or a batch of them in a body."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from denspi.search.questions import clean_question
from denspi.search.searcher import SearchOptions
from denspi.serve.metrics import QUESTIONS, STAGE_SECONDS
from denspi.serve.models import AskBody, AskOptions, AskQuery, RepliesOut, ReplyOut
from denspi.serve.openapi import problems
from denspi.serve.problems import refuse_repeated
from denspi.serve.service import Answered, Asked
from denspi.serve.worker import Worker

JSON = "application/json"
NOT_KEPT = {"Cache-Control": "no-store"}
"""An answer is of one generation, and what people ask is nobody's business."""


def answer_routes(worker: Worker) -> APIRouter:
    """``/api/answers``."""
    router = APIRouter(tags=["answers"])

    async def ask(request: Request, questions: list[str], options: AskOptions, where: Any) -> list[Answered]:
        how: SearchOptions = {
            "where": where,
            "min_confidence": options.min_confidence,
            "sparse_weight": options.sparse_weight,
            "explain": options.explain,
            "repair": options.repair,
        }
        # All of them before the first is asked: a batch is refused as a whole.
        asked = Asked([clean_question(text) for text in questions], options.k, options.strategy, how)
        turns = [partial(worker.service.ask, some) for some in asked.in_turns()]
        parts = await worker.searching.run_in_turns(turns, request.is_disconnected)
        found = [each for part in parts for each in part]
        for each in found:
            worker.metrics.count(QUESTIONS, asked.strategy)
            for stage, ms in each.stages_ms.items():
                worker.metrics.observe(STAGE_SECONDS, ms / 1000, stage)
        return found

    @router.get("/api/answers", response_model=ReplyOut, responses=problems(422, 503))
    async def get_answers(request: Request, query: Annotated[AskQuery, Query()]) -> Response:
        """Answer a question: phrases of the documents, best first, each with its sentence and its source."""
        refuse_repeated(request, "where")
        found = await ask(request, [query.question], query, query.where)
        return Response(found[0].json, media_type=JSON, headers=NOT_KEPT)

    @router.post(
        "/api/answers", response_model=ReplyOut | RepliesOut, responses=problems(400, 408, 413, 415, 422, 503)
    )
    async def post_answers(request: Request, body: AskBody) -> Response:
        """Answer a question, or each of a batch: together they take less time than one by one."""
        many = body.questions is not None
        found = await ask(request, body.questions or [body.question or ""], body, body.where)
        replies = ", ".join(each.json for each in found)
        content = f'{{"replies": [{replies}]}}' if many else replies
        return Response(content, media_type=JSON, headers=NOT_KEPT)

    return router
