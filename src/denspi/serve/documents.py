"""The routes of documents: read one, and, where the service is writable, add, replace and delete.

An id is any text, slashes and all. It is looked up in the index and never touches a file system.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.security import HTTPBearer
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.responses import Response

from denspi.search.reply_json import document_json
from denspi.serve.answering import JSON, NOT_KEPT
from denspi.serve.models import DocumentOut, DocumentsIn, WrittenOut
from denspi.serve.openapi import problems
from denspi.serve.problems import ProblemError, refuse_repeated
from denspi.serve.worker import Worker


class _AnyId(PathConvertor):
    r"""Line breaks too: Starlette's own has a dot, which leaves them out, and a `$`, which drops the last."""

    regex = r"(?s:.*)\Z"


register_url_convertor("any_id", _AnyId())

# For the OpenAPI document; the door does the checking, before the body is read, and says what is wrong.
_Token = Annotated[object, Depends(HTTPBearer(auto_error=False, description="With --writable."))]


# A browser takes the ids "." and ".." for steps of a path, escaped or not: a query has room for any id.
_InPath = Annotated[str, Path(description="Escaped, slashes or not.", examples=["penicillin"])]
_InQuery = Annotated[str, Query(description="As it was indexed.", examples=["penicillin"])]


def document_routes(worker: Worker) -> APIRouter:
    """``/api/documents``."""
    router = APIRouter(tags=["documents"])
    reading, deleting = problems(404, 422, 503), problems(401, 403, 404, 422, 503)
    writing = problems(400, 401, 403, 408, 413, 415, 422, 503)

    async def read(request: Request, document_id: str) -> Response:
        def found_json() -> str | None:
            found = worker.service.document(document_id)
            return None if found is None else document_json(found)

        found = await worker.reading.run(found_json, request.is_disconnected)
        if found is None:
            raise ProblemError(404, "the index has no document with this id")
        return Response(found, media_type=JSON, headers=NOT_KEPT)

    async def delete(request: Request, document_id: str) -> WrittenOut:
        return await worker.changing.run(lambda: worker.writing.delete(document_id), request.is_disconnected)

    @router.get("/api/documents/{document_id:any_id}", response_model=DocumentOut, responses=reading)
    async def get_document(request: Request, document_id: _InPath) -> Response:
        """A document's text, with the spans of its paragraphs; answers name their places in it."""
        return await read(request, document_id)

    @router.get("/api/documents", response_model=DocumentOut, responses=reading)
    async def get_document_of_any_id(request: Request, id: _InQuery) -> Response:
        """A document's text by an id of any form, `.` and `..` included."""
        refuse_repeated(request)
        return await read(request, id)

    @router.post("/api/documents", response_model=WrittenOut, responses=writing)
    async def post_documents(request: Request, body: DocumentsIn, _: _Token) -> WrittenOut:
        """Add documents, or put them in the place of those with their ids; durable once it answers."""
        return await worker.changing.run(lambda: worker.writing.put(body.documents), request.is_disconnected)

    @router.delete("/api/documents/{document_id:any_id}", response_model=WrittenOut, responses=deleting)
    async def delete_document(request: Request, document_id: _InPath, _: _Token) -> WrittenOut:
        """Delete a document."""
        return await delete(request, document_id)

    @router.delete("/api/documents", response_model=WrittenOut, responses=deleting)
    async def delete_document_of_any_id(request: Request, id: _InQuery, _: _Token) -> WrittenOut:
        """Delete a document by an id of any form."""
        refuse_repeated(request)
        return await delete(request, id)

    return router
