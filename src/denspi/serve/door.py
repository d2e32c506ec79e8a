"""Who and what is let in: everything that can be said of a request from its head alone, before it is read.

Owns the names that the service answers to, the limits on bodies (`body`), who may write, and the refusal that
costs next to nothing where there is no room. Knows no route beyond its first words.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from denspi.serve.addresses import part_of
from denspi.serve.body import Body
from denspi.serve.problems import ProblemError, response_to
from denspi.serve.writing import may_write

if TYPE_CHECKING:
    from denspi.serve.gate import Gate
    from denspi.serve.settings import ServeSettings

REFUSAL_SECONDS = 0.1
_CHANGES = ("POST", "DELETE")
_CLOSE = (b"connection", b"close")


class Door:
    """An ASGI application around another."""

    def __init__(self, app: ASGIApp, settings: ServeSettings, searching: Gate) -> None:
        self._app, self._settings, self._searching = app, settings, searching

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or the life of the application."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        settings, headers, part = self._settings, Headers(scope=scope), part_of(scope["path"])
        limit_bytes = settings.documents_body_bytes if part == "documents" else settings.answers_body_bytes
        body = Body(receive, headers, limit_bytes, settings.body_seconds)

        async def send_on(message: Message) -> None:
            if body.is_whole:
                await send(message)
            elif message["type"] == "http.response.start":
                await send({**message, "headers": [*message["headers"], _CLOSE]})
            elif message.get("more_body"):
                await send(message)
            else:
                # Closed at once, the connection would be reset, and the reply lost on its way.
                await send({**message, "more_body": True})
                await body.read_a_little_more()
                await send({"type": "http.response.body", "body": b"", "more_body": False})

        try:
            await self._admit(scope["method"], part, headers, body)
        except (ProblemError, HTTPException) as error:
            await response_to(error)(scope, receive, send_on)
        else:
            if scope["method"] == "HEAD":  # is a GET whose content the server does not send
                scope = {**scope, "method": "GET"}
            await self._app(scope, body.receive, send_on)

    async def _admit(self, method: str, part: str, headers: Headers, body: Body) -> None:
        """Raise for whoever stays outside."""
        settings = self._settings
        if len(headers.getlist("host")) > 1:  # whoever stands before the service may have read the other
            raise ProblemError(400, "the request has several Host headers; send one")
        if settings.allowed_hosts is not None and _name(headers) not in settings.allowed_hosts:
            raise ProblemError(421, "the service does not answer to this name; allow it with --allow-host")
        if part == "documents" and method in _CHANGES:
            may_write(settings.token, headers.get("authorization"))
        if body.is_declared_too_large:
            raise body.too_large()
        if method == "POST" and not body.is_whole and not _is_json(headers):
            raise ProblemError(415, "the body must be JSON, with the header Content-Type: application/json")
        if part == "answers" and body.is_whole and await self._stays_full():
            raise self._searching.refusal()

    async def _stays_full(self) -> bool:
        """Whether there is no room for a question, and none soon.

        Made before anything is looked at, a refusal costs next to nothing; and clients that try again
        without a pause are slowed down to what leaves the searching thread its core.
        """
        if self._searching.is_full:
            await asyncio.sleep(REFUSAL_SECONDS)
        return self._searching.is_full


def _is_json(headers: Headers) -> bool:
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))


def _name(headers: Headers) -> str:
    """``LocalHost:8000`` -> ``localhost``, ``[::1]:8000`` -> ``::1``."""
    name = headers.get("host", "").lower()
    return name[1:].partition("]")[0] if name.startswith("[") else name.partition(":")[0]
