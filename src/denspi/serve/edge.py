"""The outermost layer: what every reply carries, and what is counted of every request.

Owns the headers that keep pages from running what documents hold, and the last word where the service ends
before a request is done. Lets everything through.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from denspi.serve.addresses import part_of
from denspi.serve.metrics import REQUEST_SECONDS, REQUESTS
from denspi.serve.problems import CLIENT_HAS_GONE, busy, response_to

if TYPE_CHECKING:
    from denspi.serve.metrics import Metrics

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


class Edge:
    """An ASGI application around another."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or the life of the application."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        part, came, status = part_of(scope["path"]), time.perf_counter(), str(CLIENT_HAS_GONE[0])
        is_begun = False

        async def send_on(message: Message) -> None:
            nonlocal status, is_begun
            if message["type"] == "http.response.start":
                status, is_begun = str(message["status"]), True
                message = {**message, "headers": [*message["headers"], *_HEADERS]}
            await send(message)

        try:
            await self._app(scope, receive, send_on)
        except asyncio.CancelledError:
            # Its time was over when the service ended; uvicorn would log a traceback for each.
            if not is_begun:
                with suppress(asyncio.CancelledError):
                    await response_to(busy("the service ends; try again in a moment"))(
                        scope, receive, send_on
                    )
        finally:
            self._metrics.count(REQUESTS, part, status)
            self._metrics.observe(REQUEST_SECONDS, time.perf_counter() - came, part)
