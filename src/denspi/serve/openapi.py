"""The OpenAPI document: what FastAPI makes of the routes, and the problems that every route may end in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from denspi import __version__
from denspi.serve.examples import problem_of
from denspi.serve.models import Problem
from denspi.serve.problems import MEDIA_TYPE

_DESCRIPTIONS = {
    400: "The body is not JSON.",
    401: "The token is missing or wrong.",
    403: "The service is read-only.",
    404: "There is no such document.",
    408: "The body came too slowly.",
    413: "The body is too large.",
    415: "The body is not declared as JSON.",
    421: "The service does not answer to the name in `Host`.",
    422: "The request does not fit; `errors` says where.",
    500: "A damaged index, or a fault of the service; its log says more.",
    503: "Too much at once, or another process is writing; `Retry-After` says when to try again.",
}
_ANYWHERE = (421, 500)
_SCHEMA = {"$ref": "#/components/schemas/Problem"}
_ABOUT = """Exact, sourced answers from your own documents. Spans count characters (code points), half-open,
in the text of the document. Every error is a problem document (RFC 9457)."""


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """How a route may fail, for its declaration: in these ways, and in those of any route."""
    return {
        status: {
            "description": _DESCRIPTIONS[status],
            "content": {MEDIA_TYPE: {"schema": _SCHEMA, "example": problem_of(status)}},
        }
        for status in sorted({*statuses, *_ANYWHERE})
    }


def openapi_of(app: FastAPI) -> Callable[[], dict[str, Any]]:
    """What `app.openapi` shall be: computed once."""
    made: dict[str, Any] = {}

    def openapi() -> dict[str, Any]:
        if not made:
            made.update(
                get_openapi(title="denspi", version=__version__, routes=app.routes, description=_ABOUT)
            )
            made["components"]["schemas"]["Problem"] = Problem.model_json_schema()
        return made

    return openapi
