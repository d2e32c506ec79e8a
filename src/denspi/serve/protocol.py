"""uvicorn's HTTP protocol with limits on the head of a request, which it reads without any of its own.

A connection that does not send a whole head in time is closed, one whose head has no end is refused, and what
is no HTTP at all gets a problem document like any other error.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from denspi.serve.problems import problem_response

HEAD_SECONDS = 20.0
HEAD_BYTES = 1 << 16
"""Enough for a question of 4000 characters, however they are escaped."""


class GuardedProtocol(HttpToolsProtocol):
    """One connection."""

    _head_timer: asyncio.TimerHandle | None = None
    _head_bytes = 0
    _is_in_head = True

    def connection_made(self, transport: Any) -> None:
        """From now on the head of the first request is waited for."""
        super().connection_made(transport)
        self._head_timer = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        """The end."""
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Some bytes; the first ones of a further request start its time."""
        if self._is_in_head:
            if self._head_timer is None:
                self._head_timer = self.loop.call_later(HEAD_SECONDS, self.transport.close)
            self._head_bytes += len(data)
        super().data_received(data)
        if self._is_in_head and self._head_bytes > HEAD_BYTES and not self.transport.is_closing():
            self._refuse(431, f"the head of the request has more than {HEAD_BYTES:,} bytes; ask in a body")

    def on_headers_complete(self) -> None:
        """The head is whole."""
        self._is_in_head, self._head_bytes = False, 0
        self._stop_timer()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The request is whole; what follows is the head of the next."""
        self._is_in_head = True
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """What uvicorn cannot read."""
        self._refuse(400, "not an HTTP request")

    def _refuse(self, status: int, detail: str) -> None:
        response = problem_response(status, detail, {"Connection": "close"})
        lines = [b": ".join(pair) + b"\r\n" for pair in response.raw_headers]
        self.transport.write(b"".join([STATUS_LINE[status], *lines, b"\r\n", bytes(response.body)]))
        self.transport.close()

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
