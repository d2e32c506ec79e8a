"""The routes of documents: read one, and, where the service is writable, add, replace and delete.

An id is any text, slashes and all. It is looked up in the index and never touches a file system.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.security import HTTPBearer
from starlette.responses import Response

from denspi.search.reply_json import document_json
from denspi.serve.answering import JSON, NOT_KEPT
from denspi.serve.models import DocumentOut, DocumentsIn, WrittenOut
from denspi.serve.openapi import problems
from denspi.serve.problems import ProblemError
from denspi.serve.worker import Worker

# For the OpenAPI document; the door does the checking, before the body is read, and says what is wrong.
_Token = Annotated[object, Depends(HTTPBearer(auto_error=False, description="With --writable."))]


def document_routes(worker: Worker) -> APIRouter:
    """``/api/documents``."""
    router = APIRouter(tags=["documents"])

    @router.get(
        "/api/documents/{document_id:path}", response_model=DocumentOut, responses=problems(404, 422, 503)
    )
    async def get_document(request: Request, document_id: str) -> Response:
        """A document's text, with the spans of its paragraphs; answers name their places in it."""

        def read() -> str | None:
            found = worker.service.document(document_id)
            return None if found is None else document_json(found)

        found = await worker.reading.run(read, request.is_disconnected)
        if found is None:
            raise ProblemError(404, "the index has no document with this id")
        return Response(found, media_type=JSON, headers=NOT_KEPT)

    @router.post(
        "/api/documents",
        response_model=WrittenOut,
        responses=problems(400, 401, 403, 408, 413, 415, 422, 503),
    )
    async def post_documents(request: Request, body: DocumentsIn, _: _Token) -> WrittenOut:
        """Add documents, or put them in the place of those with their ids; durable once it answers."""
        return await worker.changing.run(lambda: worker.writing.put(body.documents), request.is_disconnected)

    @router.delete(
        "/api/documents/{document_id:path}",
        response_model=WrittenOut,
        responses=problems(401, 403, 404, 422, 503),
    )
    async def delete_document(request: Request, document_id: str, _: _Token) -> WrittenOut:
        """Delete a document."""
        return await worker.changing.run(lambda: worker.writing.delete(document_id), request.is_disconnected)

    return router
