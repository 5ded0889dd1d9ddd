"""Fair turns for long computations, such as parsing: next is the owner who has used the least time.

Other requests are handled between two turns. So an owner who sends much delays others by one turn at most.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from wms.fairness import levelled


class OwnerTurns:
    """Grants turns to owners. The seconds that each has used are reset once nobody waits and no turn is held."""

    def __init__(self, at_once: int = 1) -> None:
        """Grant `at_once` turns at a time, of which an owner holds one at most."""
        self._free = at_once
        self._holding: set[str] = set()
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
            self._give_back(owner)

    async def _wait(self, owner: str) -> None:
        given = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append(given)
        self._give()
        try:
            await given
        except asyncio.CancelledError:
            if not given.cancelled():
                self._give_back(owner)
            raise

    def _give_back(self, owner: str) -> None:
        self._free += 1
        self._holding.discard(owner)
        self._give()
        if not self._waiting and not self._holding:
            self._used.clear()

    def _give(self) -> None:
        """Grant free turns to the waiting owners who have used the least time and hold none, skipping cancelled waiters."""
        while self._free and (ready := self._waiting.keys() - self._holding):
            self._used = levelled(self._used, self._waiting.keys() | self._holding, 0.0)
            owner = min(ready, key=lambda each: (self._used[each], each))
            queue = self._waiting[owner]
            given = queue.popleft()
            if not queue:
                del self._waiting[owner]
            if not given.done():
                self._free -= 1
                self._holding.add(owner)
                given.set_result(None)
