"""uvicorn's HTTP protocol with limits that it does not have: on heads, on unread replies, on connections.

A connection that does not send a whole head in time is closed, one whose head or trailers have no end is
refused, one that takes nothing of its reply is let go, and one too many hears so at once. What is no HTTP at
all gets a problem document like any other error, after the replies to what came before it.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from denspi.serve.problems import RETRY_AFTER_SECONDS, problem_response

HEAD_SECONDS = 20.0
HEAD_BYTES = 1 << 16
"""Enough for a question of 4000 characters, however they are escaped."""
UNREAD_SECONDS = 30.0  # in which a client must take something of its reply
UNREAD_AT_END_SECONDS = 2.0  # the same, once the service ends
MAX_CONNECTIONS = 1000
_NO_HTTP = "not an HTTP request; in an address, escape all but plain ASCII"
_TURNED_AWAY_SECONDS = 1.0  # for the request of one too many: closed before it came, it would lose the reply


class GuardedProtocol(HttpToolsProtocol):
    """One connection."""

    max_connections = MAX_CONNECTIONS  # of a worker; `run` sets what the process has room for

    _head_timer: asyncio.TimerHandle | None = None
    _unread_timer: asyncio.TimerHandle | None = None
    _unread_seconds = UNREAD_SECONDS
    _bytes = 0  # since the beginning of the head, or since the last piece of a body
    _is_in_head = True
    _is_one_too_many = False
    _running: RequestResponseCycle | None = None  # of several that were sent at once, the one being answered
    _refusal: tuple[int, str] | None = None  # to be said after the replies to what came before

    def connection_made(self, transport: Any) -> None:
        """From now on the head of the first request is waited for."""
        super().connection_made(transport)
        # Told of every byte that is not taken at once, and not from some size on: small replies may stay
        # unread just as well.
        self.transport.set_write_buffer_limits(high=0)
        self._unread_seconds = UNREAD_SECONDS
        self._is_one_too_many = len(self.connections) > self.max_connections
        if len(self.connections) > self.max_connections + self.max_connections // 4:
            self.transport.abort()  # not even room for those who are told
            return
        seconds = _TURNED_AWAY_SECONDS if self._is_one_too_many else HEAD_SECONDS
        self._head_timer = self.loop.call_later(seconds, self.transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        """The end."""
        self._stop_head_timer()
        self._stop_unread_timer()
        if self._running is not None and not self._running.response_complete:
            # uvicorn tells the newest request alone, and the one being answered would write to nobody.
            self._running.disconnected = True
            self._running.message_event.set()
        self.pipeline.clear()
        super().connection_lost(exc)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def data_received(self, data: bytes) -> None:
        """Some bytes; the first ones of a further request start its time."""
        if self._refusal is not None or self.transport.is_closing():
            return
        if self._is_one_too_many:
            detail = f"{self.max_connections:,} connections are open already; try again in a moment"
            self._refuse(503, detail, {"Retry-After": str(RETRY_AFTER_SECONDS)})
            return
        if self._is_in_head and self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_SECONDS, self.transport.close)
        self._bytes += len(data)
        super().data_received(data)
        if self._bytes > HEAD_BYTES and self._refusal is None and not self.transport.is_closing():
            self._refuse_after_replies(431, self._too_large())

    def on_header(self, name: bytes, value: bytes) -> None:
        """A line of the head; those after a body are not the request's, and nobody asks for them."""
        if self._is_in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The head is whole."""
        self._stop_head_timer()
        super().on_headers_complete()
        self._is_in_head, self._bytes = False, 0

    def on_body(self, body: bytes) -> None:
        """A piece of the body, whose size `body` limits; only what lies between the pieces counts here."""
        self._bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is whole; what follows is the head of the next."""
        self._is_in_head, self._bytes = True, 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """A reply is written; the last one before something that was refused lets the refusal follow."""
        is_last = not self.pipeline
        super().on_response_complete()
        if self._refusal is not None and is_last and not self.transport.is_closing():
            self._refuse(*self._refusal)

    def send_400_response(self, msg: str) -> None:
        """What uvicorn cannot read, an address that is too long among it."""
        if self._is_in_head and self._bytes > HEAD_BYTES:
            self._refuse_after_replies(431, self._too_large())
        else:
            self._refuse_after_replies(400, _NO_HTTP)

    def pause_writing(self) -> None:
        """Something of a reply is not taken yet."""
        super().pause_writing()
        self._watch_unread()

    def resume_writing(self) -> None:
        """All of it is."""
        self._stop_unread_timer()
        super().resume_writing()

    def shutdown(self) -> None:
        """The service ends: replies are finished for those who read them."""
        self._unread_seconds = UNREAD_AT_END_SECONDS
        if self._unread_timer is not None:
            self._watch_unread()
        self.pipeline.clear()  # not begun; their sender sees that the connection ends before them
        if self._running is not None:
            self._running.keep_alive = False
        super().shutdown()
        if self._running is not None and self._running.response_complete:
            self.transport.close()

    def _too_large(self) -> str:
        what = "head of the request has" if self._is_in_head else "trailers of the request have"
        return f"the {what} more than {HEAD_BYTES:,} bytes; ask in a body"

    def _refuse_after_replies(self, status: int, detail: str) -> None:
        """Whoever sends several requests at once gets the replies to the good ones first."""
        is_about_the_next = self._is_in_head
        if self.pipeline and not is_about_the_next:
            self.pipeline.popleft()  # has not begun, and never will
            is_about_the_next = True
        if self.cycle is None or self.cycle.response_complete:
            self._refuse(status, detail)
        elif is_about_the_next:
            self._refusal = (status, detail)
            self._stop_head_timer()
            self.flow.pause_reading()
        elif self.cycle.response_started:
            self.transport.close()
        else:
            self.cycle.disconnected = True  # nobody else answers it
            self._refuse(status, detail)

    def _refuse(self, status: int, detail: str, headers: dict[str, str] | None = None) -> None:
        response = problem_response(status, detail, {"Connection": "close", **(headers or {})})
        lines = [b": ".join(pair) + b"\r\n" for pair in response.raw_headers]
        self.transport.write(b"".join([STATUS_LINE[status], *lines, b"\r\n", bytes(response.body)]))
        self.transport.close()

    def _watch_unread(self) -> None:
        """Ask again after a while; `close` would wait for the client for ever."""
        self._stop_unread_timer()
        unread_bytes = self.transport.get_write_buffer_size()

        def look() -> None:
            if self.transport.get_write_buffer_size() >= unread_bytes:
                self.transport.abort()
            else:
                self._watch_unread()

        self._unread_timer = self.loop.call_later(self._unread_seconds, look)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _stop_unread_timer(self) -> None:
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None
