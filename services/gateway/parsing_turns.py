"""Turns of owners at what takes the gateway long: one part at a time, and next is the owner who has used the least time.

Between two parts all other requests go on, so that whoever sends much delays others by one part at most.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from wms.fairness import levelled


class ParsingTurns:
    """Whose turn it is. The seconds that owners used are forgotten once nobody waits."""

    def __init__(self) -> None:
        self._is_taken = False
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._used: dict[str, float] = {}

    @asynccontextmanager
    async def turn(self, owner: str) -> AsyncIterator[None]:
        """Wait for a turn of the owner, which lasts as long as the body takes."""
        await self._wait(owner)
        began = time.monotonic()
        try:
            yield
        finally:
            self._used[owner] = self._used.get(owner, 0.0) + time.monotonic() - began
            self._give_on()

    async def _wait(self, owner: str) -> None:
        if not self._is_taken:
            self._is_taken = True
            return
        given = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append(given)
        try:
            await given
        except asyncio.CancelledError:
            if not given.cancelled():
                self._give_on()
            raise

    def _give_on(self) -> None:
        """Give the turn to the next who waits and was not cancelled."""
        while self._waiting:
            self._used = levelled(self._used, self._waiting, 0.0)
            owner = min(self._waiting, key=lambda each: (self._used[each], each))
            queue = self._waiting[owner]
            given = queue.popleft()
            if not queue:
                del self._waiting[owner]
            if not given.done():
                given.set_result(None)
                return
        self._is_taken = False
        self._used.clear()
