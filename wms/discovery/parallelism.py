"""Bounds how many servers are asked at a time. Slow servers have a bound of their own, so they do not keep others from being asked.

With one bound alone, a few dead servers would use up the bound until their time limit.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class _Place:
    aside = False
    timer: asyncio.TimerHandle


class Parallelism:
    """A limit on parallel queries: `quick` at a time, and `slow` more that have each run for over `slow_after_seconds` seconds."""

    def __init__(self, quick: int, slow: int, slow_after_seconds: float) -> None:
        self._quick = asyncio.Semaphore(quick)
        self._slow_left = slow
        self._after = slow_after_seconds

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Wait until another query may run, and count it as running during the `async with` block."""
        await self._quick.acquire()
        place = _Place()
        self._watch(place)
        try:
            yield
        finally:
            place.timer.cancel()
            if place.aside:
                self._slow_left += 1
            else:
                self._quick.release()

    def _watch(self, place: _Place) -> None:
        place.timer = asyncio.get_running_loop().call_later(self._after, self._step_aside, place)

    def _step_aside(self, place: _Place) -> None:
        if not self._slow_left:
            self._watch(place)
            return
        place.aside = True
        self._slow_left -= 1
        self._quick.release()
