"""The body of a request, up to a size and a time. Whatever is beyond is refused before it is read."""

from __future__ import annotations

import asyncio

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive

_MORE_BYTES, _MORE_SECONDS = 1 << 20, 1.0


class Body:
    """Stands in the place of an ASGI `receive`."""

    def __init__(self, receive: Receive, headers: Headers, limit_bytes: int, limit_seconds: float) -> None:
        self._receive, self._limit_bytes, self._limit_seconds = receive, limit_bytes, limit_seconds
        declared = headers.get("content-length", "0")
        # More digits than any length has are a large number too, which Python would refuse to read.
        self._declared_bytes = int(declared[:18]) if declared.isdecimal() else 0
        self._received_bytes = 0
        self._deadline = asyncio.get_running_loop().time() + limit_seconds
        self.is_whole = not self._declared_bytes and "transfer-encoding" not in headers

    @property
    def is_declared_too_large(self) -> bool:
        """Known from the head alone."""
        return self._declared_bytes > self._limit_bytes

    def too_large(self) -> HTTPException:
        """What to say then."""
        return HTTPException(413, f"the body has more than {self._limit_bytes:,} bytes; send less at once")

    async def receive(self) -> Message:
        """The next piece of it; what comes after it (a client that leaves), whenever it comes."""
        if self.is_whole:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await self._receive()
        except TimeoutError:
            detail = (
                f"the body did not come within {self._limit_seconds:g} s; send it faster, or less at once"
            )
            raise HTTPException(408, detail) from None
        # JSON has none in UTF-8, where a control character is escaped; Python would read UTF-16 as well.
        if b"\0" in message.get("body", b""):
            raise HTTPException(400)  # `problems` has the words
        self._received_bytes += len(message.get("body", b""))
        self.is_whole = not message.get("more_body", False)
        if self._received_bytes > self._limit_bytes:
            raise self.too_large()
        return message

    async def read_a_little_more(self) -> None:
        """Drop what is on its way already."""
        dropped_bytes = 0
        try:
            async with asyncio.timeout(_MORE_SECONDS):
                while not self.is_whole and dropped_bytes < _MORE_BYTES:
                    message = await self._receive()
                    dropped_bytes += len(message.get("body", b""))
                    self.is_whole = not message.get("more_body", False)
        except TimeoutError:
            return
