"""How much is done at once: a few threads, a short queue before them, and a quick no beyond it.

Computing is bound by the processor, so that more at once would only make everybody wait longer. Lives in one
event loop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from denspi.serve.problems import CLIENT_HAS_GONE, ProblemError, busy

T = TypeVar("T")


class Gate:
    """Lets so many calls run in threads and so many wait, each for a while."""

    def __init__(
        self,
        name: str,
        *,
        threads: int,
        waiting: int,
        max_wait_seconds: float,
        on_wait: Callable[[float], None] = lambda seconds: None,
    ) -> None:
        self._free = asyncio.Semaphore(threads)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._most_waiting, self._max_wait_seconds = waiting, max_wait_seconds
        self._waiting = 0
        self._on_wait = on_wait

    @property
    def is_full(self) -> bool:
        """Whether the next one would be refused."""
        return self._free.locked() and self._waiting >= self._most_waiting

    def refusal(self) -> ProblemError:
        """What it would hear."""
        return busy(f"{self._waiting} requests are waiting already; try again in a moment")

    async def run(self, work: Callable[[], T], is_gone: Callable[[], Awaitable[bool]]) -> T:
        """The result of `work`, done in a thread; not at all for a client that left while it waited."""
        return (await self.run_in_turns([work], is_gone))[0]

    async def run_in_turns(
        self, works: Sequence[Callable[[], T]], is_gone: Callable[[], Awaitable[bool]]
    ) -> list[T]:
        """The results of all, one after another; after each it is the turn of whoever waits.

        What has begun is not refused any more, however full it has become, and ends early only for a client
        that left.
        """
        found: list[T] = []
        for work in works:
            has_waited, came = self._free.locked(), time.perf_counter()
            await self._enter(has_begun=bool(found))
            try:
                self._on_wait(time.perf_counter() - came)
                # Pages that answer as one types leave behind requests that nobody waits for.
                if (has_waited or found) and await is_gone():
                    raise ProblemError(CLIENT_HAS_GONE[0], "the client has gone")
                found.append(await asyncio.get_running_loop().run_in_executor(self._pool, work))
            finally:
                self._free.release()
        return found

    def close(self) -> None:
        """Wait for what is running, and end the threads."""
        self._pool.shutdown()

    async def _enter(self, has_begun: bool) -> None:
        if self.is_full and not has_begun:
            raise self.refusal()
        self._waiting += 1
        try:
            async with asyncio.timeout(None if has_begun else self._max_wait_seconds):
                await self._free.acquire()
        except TimeoutError:
            raise busy(f"not begun within {self._max_wait_seconds:g} s; try again in a moment") from None
        finally:
            self._waiting -= 1
