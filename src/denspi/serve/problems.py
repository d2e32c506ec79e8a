"""Every error as a problem document (RFC 9457): one shape, one line of detail, never a traceback.

Owns which error gets which status. What went wrong inside goes to the log, not to the caller.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope

from denspi.errors import DenspiError, IndexLockedError, InputError
from denspi.search.reply_json import to_json
from denspi.serve.service import AwayError

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_SECONDS = 1
CLIENT_HAS_GONE = (499, "Client Closed Request")
"""Nobody reads it: what the log and the metrics say of a client that did not wait. In no standard."""
_LONGEST_FINDING, _MOST_FINDINGS = 300, 10
_OUR_FINDINGS = {  # pydantic's own do not say what to do
    "extra_forbidden": "there is no such field; see /openapi.json",
    "json_invalid": "is not JSON from this character on; send plain JSON",
    "missing": "is missing; send it",
}
_log = logging.getLogger("uvicorn.error")


class ProblemError(Exception):
    """An answer other than the one that was asked for."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, dict(headers or {})


def busy(detail: str) -> ProblemError:
    """Too much at once: come back soon."""
    return ProblemError(503, detail, {"Retry-After": str(RETRY_AFTER_SECONDS)})


def problem_response(
    status: int, detail: str, headers: Mapping[str, str] | None = None, **members: Any
) -> Response:
    """The document, with further members after the usual ones."""
    title = CLIENT_HAS_GONE[1] if status == CLIENT_HAS_GONE[0] else HTTPStatus(status).phrase
    fields = {"type": "about:blank", "title": title, "status": status, "detail": detail}
    return Response(to_json(fields | members), status, dict(headers or {}), MEDIA_TYPE)


def response_to(error: Exception) -> Response:
    """What the caller hears of an error."""
    match error:
        case ProblemError():
            return problem_response(error.status, error.detail, error.headers)
        case HTTPException():
            return problem_response(error.status_code, _detail(error), error.headers)
        case RequestValidationError():
            return _invalid(error)
        case InputError():
            return problem_response(422, str(error))
        case AwayError():
            return response_to(busy(str(error)))
        case IndexLockedError():
            return response_to(busy(str(error)))
        case DenspiError():
            # It names files of this machine, which are not the caller's business.
            _log.error("%s: %s", type(error).__name__, error)
            return problem_response(500, "the index cannot be used; the log of the service says why")
        case _:
            return problem_response(500, "a fault of the service; its log says more")


def refuse_repeated(request: Request, *may_repeat: str) -> None:
    """Raise where a parameter of the address is there more than once: which of them was meant?"""
    counts = Counter(name for name, _ in request.query_params.multi_items())
    repeated = [
        {"loc": ("query", name), "msg": f"is there {count} times; give it once", "type": "repeated"}
        for name, count in counts.items()
        if count > 1 and name not in may_repeat
    ]
    if repeated:
        raise RequestValidationError(repeated)


def add_handlers(app: FastAPI) -> None:
    """Let every error of `app` end as a problem."""

    async def handle(request: Request, error: Exception) -> Response:
        if isinstance(error, HTTPException) and error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            error.headers = {"Allow": ", ".join(_allowed(app, request.scope))}
        return response_to(error)

    for kind in (ProblemError, HTTPException, RequestValidationError, DenspiError, Exception):
        app.add_exception_handler(kind, handle)


def _allowed(app: FastAPI, scope: Scope) -> list[str]:
    """The methods of an address, over all its routes: the one that refused knows its own alone."""

    def fits(method: str) -> bool:
        asked = {**scope, "method": "GET" if method == "HEAD" else method}  # see `door`
        return any(route.matches(asked)[0] == Match.FULL for route in app.routes)

    return [method for method in ("GET", "HEAD", "POST", "DELETE") if fits(method)]


def _detail(error: HTTPException) -> str:
    """The frameworks' own errors in our words: theirs say neither what was found nor what to do."""
    ours = {
        400: "the body is not JSON in UTF-8, or nested too deeply; send plain JSON",
        404: "nothing is here; see /openapi.json",
        405: "not with this method; see the header Allow",
    }
    return ours.get(error.status_code, str(error.detail))


def _finding(found: Any) -> str:
    return _OUR_FINDINGS.get(found["type"]) or str(found["msg"]).removeprefix("Value error, ")


def _invalid(error: RequestValidationError) -> Response:
    """What is wrong where, as far as one wants to read on; 400 where the body is no JSON at all."""
    found = error.errors()[:_MOST_FINDINGS]
    findings = [
        {
            "where": ".".join(str(step) for step in each["loc"])[:_LONGEST_FINDING],
            "finding": _finding(each)[:_LONGEST_FINDING],
        }
        for each in found
    ]
    status = 400 if any(each["type"] == "json_invalid" for each in found) else 422
    first = findings[0] if findings else {"where": "request", "finding": "cannot be used"}
    return problem_response(status, f"{first['where']}: {first['finding']}", errors=findings)
