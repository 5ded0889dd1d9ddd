"""Fair turns for long computations, such as parsing: one at a time, next the owner who has used the least time.

Other requests are handled between two turns. So an owner who sends much delays others by one turn at most.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from wms.fairness import levelled


class ParsingTurns:
    """Grants turns to owners. The seconds that each has used are reset once nobody waits."""

    def __init__(self) -> None:
        self._is_taken = False
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._used: dict[str, float] = {}

    @asynccontextmanager
    async def turn(self, owner: str) -> AsyncIterator[None]:
        """Wait for a turn of the owner, and hold it for the `async with` block, whose duration counts as used."""
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
        """Pass the turn to the waiting owner who has used the least time, skipping cancelled waiters. If none waits, the turn is free."""
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
