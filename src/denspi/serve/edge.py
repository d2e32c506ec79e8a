"""The outermost layer: what holds for every request, whichever route it takes.

Owns the names that the service answers to, the headers that keep pages from running what documents hold, and
the count of requests. The limits on bodies are those of `body`. Knows no route beyond its first words.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from denspi.serve.body import Body
from denspi.serve.metrics import REQUEST_SECONDS, REQUESTS
from denspi.serve.problems import CLIENT_HAS_GONE, problem_response, response_to

if TYPE_CHECKING:
    from denspi.serve.gate import Gate
    from denspi.serve.metrics import Metrics
    from denspi.serve.settings import ServeSettings

# No script, style or picture but our own files, nothing inline, and nobody may frame the page: whatever a
# document or a question holds, a browser does not run it.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_HEADERS = [
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
]
REFUSAL_SECONDS = 0.1
_CLOSE = (b"connection", b"close")
_ROUTES = (("/api/answers", "answers"), ("/api/documents", "documents"))
_WATCHING = ("/healthz", "/readyz", "/metrics", "/openapi.json")


class Edge:
    """An ASGI application around another."""

    def __init__(self, app: ASGIApp, settings: ServeSettings, searching: Gate, metrics: Metrics) -> None:
        self._app, self._settings, self._metrics = app, settings, metrics
        self._searching = searching

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or the life of the application."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        settings, headers = self._settings, Headers(scope=scope)
        route, came, status = route_of(scope["path"]), time.perf_counter(), str(CLIENT_HAS_GONE[0])
        limit_bytes = settings.documents_body_bytes if route == "documents" else settings.answers_body_bytes
        body = Body(receive, headers, limit_bytes, settings.body_seconds)

        async def send_on(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = str(message["status"])
                closing = [] if body.is_whole else [_CLOSE]
                message = {**message, "headers": [*message["headers"], *_HEADERS, *closing]}
            elif not message.get("more_body") and not body.is_whole:
                # Closed at once, the connection would be reset, and the reply lost on its way.
                await send({**message, "more_body": True})
                await body.read_a_little_more()
                message = {"type": "http.response.body", "body": b"", "more_body": False}
            await send(message)

        try:
            if settings.allowed_hosts is not None and _name(headers) not in settings.allowed_hosts:
                detail = "the service does not answer to this name; allow it with --allow-host"
                await problem_response(421, detail)(scope, receive, send_on)
            elif body.is_declared_too_large:
                await response_to(body.too_large())(scope, receive, send_on)
            elif route == "answers" and body.is_whole and await self._stays_full():
                await response_to(self._searching.refusal())(scope, receive, send_on)
            else:
                await self._app(scope, body.receive, send_on)
        finally:
            self._metrics.count(REQUESTS, route, status)
            self._metrics.observe(REQUEST_SECONDS, time.perf_counter() - came, route)

    async def _stays_full(self) -> bool:
        """Whether there is no room for a question, and none soon.

        Made before anything is looked at, a refusal costs next to nothing; and clients that try again
        without a pause are slowed down to what leaves the searching thread its core.
        """
        if self._searching.is_full:
            await asyncio.sleep(REFUSAL_SECONDS)
        return self._searching.is_full


def route_of(path: str) -> str:
    """Under which name a request is counted."""
    if path in _WATCHING:
        return "watch"
    return next((name for start, name in _ROUTES if path.startswith(start)), "page")


def _name(headers: Headers) -> str:
    """``LocalHost:8000`` -> ``localhost``, ``[::1]:8000`` -> ``::1``."""
    name = headers.get("host", "").lower()
    return name[1:].partition("]")[0] if name.startswith("[") else name.partition(":")[0]
