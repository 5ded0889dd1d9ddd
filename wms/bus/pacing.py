"""Pauses between fetches from the embedded broker, which does not answer a held fetch when messages arrive. They grow while none come.

The embedded broker looks for messages at the start of a fetch and once more at the end of its wait. So a fetch waits only a few milliseconds, and the
reader pauses between fetches. A pause is a fixed fraction of the time since the last message. So a message is late by at most that fraction, and an
idle reader costs next to nothing.

The wait is also the time limit of the broker's search for messages. In a long log the search takes longer; the broker then returns nothing, as at the
log's end. A reader that knows of unread messages therefore allows ample time.
"""

import asyncio
import time
from collections.abc import Callable

SHORTEST_SECONDS = 0.004
LONGEST_SECONDS = 0.1
SHARE_OF_SILENCE = 1 / 6
MOMENT_MS = 4
AMPLE_MS = 4_000
"""A wait, in milliseconds, that suffices to search a log as long as the embedded broker's memory can hold."""


def fetch_wait_ms(*, behind: bool) -> int:
    """Return for how many milliseconds the Kafka broker may hold a fetch.

    It is longer with `behind`, when unread messages exist: the broker may need long to find them.
    """
    return AMPLE_MS if behind else MOMENT_MS


def rest_seconds(silent_seconds: float) -> float:
    """Return how many seconds to pause after an empty fetch, if the last message came `silent_seconds` seconds ago."""
    return min(max(silent_seconds * SHARE_OF_SILENCE, SHORTEST_SECONDS), LONGEST_SECONDS)


class Pacing:
    """The pauses between the fetches of one reader. `clock` is a function that returns monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._news_at = clock()
        self._resting: asyncio.Future[None] | None = None

    def next_rest_seconds(self) -> float:
        """Return how many seconds a pause would last if it began now."""
        return rest_seconds(self._clock() - self._news_at)

    def hurry(self) -> None:
        """End the present pause and make the next ones short, as a message has come or is expected."""
        self._news_at = self._clock()
        _wake(self._resting)

    async def rest(self) -> None:
        """Pause until the time is over or `hurry` is called."""
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
