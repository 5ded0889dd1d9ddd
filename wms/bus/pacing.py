"""How often to ask a broker that does not wake a fetch for what has come: the longer nothing has, the more seldom.

The embedded broker looks when it is asked and, if there was nothing, once more when the fetch has waited for as long as it
may. So it is told to wait for a moment only, and the reader rests between its questions. A rest is a share of the silence
so far: a message is late by no more than that share of the time since the one before, and what is idle costs next to nothing.

That moment is also all the time that the broker takes to find messages, and the longer a partition's log, the more it needs:
it then says where the log ends and brings nothing of it. Whoever knows that there is something allows as much as it takes.
"""

import asyncio
import time
from collections.abc import Callable

SHORTEST_SECONDS = 0.004
LONGEST_SECONDS = 0.1
SHARE_OF_SILENCE = 1 / 6
MOMENT_MS = 4
AMPLE_MS = 4_000
"""Enough to find the end of a log that takes all the memory that the embedded broker is given."""


def fetch_wait_ms(*, behind: bool) -> int:
    """Return how long a fetch may take that is `behind` what the broker is known to have, or that is not."""
    return AMPLE_MS if behind else MOMENT_MS


def rest_seconds(silent_seconds: float) -> float:
    """Return how long to rest after a fetch that found nothing, when nothing has come for so long."""
    return min(max(silent_seconds * SHARE_OF_SILENCE, SHORTEST_SECONDS), LONGEST_SECONDS)


class Pacing:
    """The rests of one reader; `clock` tells monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._news_at = clock()
        self._resting: asyncio.Future[None] | None = None

    def next_rest_seconds(self) -> float:
        """Return how long a rest would be that began now."""
        return rest_seconds(self._clock() - self._news_at)

    def hurry(self) -> None:
        """Something has come, or is expected to: rest no longer, and shortly from now on."""
        self._news_at = self._clock()
        _wake(self._resting)

    async def rest(self) -> None:
        """Wait until it is time to ask again."""
        loop = asyncio.get_running_loop()
        self._resting = loop.create_future()
        timer = loop.call_later(self.next_rest_seconds(), _wake, self._resting)
        try:
            await self._resting
        finally:
            timer.cancel()


def _wake(resting: asyncio.Future[None] | None) -> None:
    if resting is not None and not resting.done():
        resting.set_result(None)
