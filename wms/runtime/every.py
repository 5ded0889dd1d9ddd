"""A loop that calls a function periodically."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import structlog

from wms.db.database import GONE, RETRIED
from wms.errors import Unavailable

log = structlog.get_logger()

TROUBLE_AFTER_SECONDS = 10.0
"""Seconds of failing, or of one unfinished round, after which a loop is reported. A loop with long pauses may take a minute."""
LONG_PAUSE_SECONDS = 10.0
LONG_ROUND_SECONDS = 60.0
ENDLESS_ROUND_SECONDS = 300.0
"""Seconds after which a round counts as hanging. It is cancelled, and the loop continues."""
LONGEST_PAUSE_SECONDS = 30.0
"""The longest pause in seconds after rounds that failed by a software fault. Each such round doubles the pause."""


class Every:
    """A loop that calls `act` every `seconds`, the first time at once.

    If `act` returns True, more work is left and it is called again at once.
    """

    def __init__(
        self,
        name: str,
        seconds: float,
        act: Callable[[], Awaitable[bool | None]],
        *,
        endless_after: float = ENDLESS_ROUND_SECONDS,
    ) -> None:
        """Build a loop; a round of `act` is cancelled after `endless_after` seconds."""
        self.name = name
        self._seconds = seconds
        self._endless_after = endless_after
        self._act = act
        self._wake = asyncio.Event()
        self._began_at: float | None = None
        self._failing_since: float | None = None
        self._error = ""
        self._faults = 0
        """The number of consecutive rounds that failed by a software fault."""

    def trouble(self) -> str:
        """The loop's trouble as a text: an unfinished round, or failing rounds. Empty if there is none."""
        now = time.monotonic()
        most = TROUBLE_AFTER_SECONDS if self._seconds < LONG_PAUSE_SECONDS else LONG_ROUND_SECONDS
        if self._began_at is not None and now - self._began_at > most:
            return f"at one round for {now - self._began_at:.0f} s"
        if self._failing_since is not None and now - self._failing_since > TROUBLE_AFTER_SECONDS:
            return f"fails for {now - self._failing_since:.0f} s: {self._error}"
        return ""

    def wake(self) -> None:
        """End the current pause, so that the next round begins at once."""
        self._wake.set()

    async def run(self) -> None:
        """Call `act` until cancelled. A failed round is repeated later, so that one loop's fault stops no other loop."""
        while True:
            self._wake.clear()
            if not await self._once():
                await self._pause()

    async def _once(self) -> bool:
        self._began_at = time.monotonic()
        try:
            async with asyncio.timeout(self._endless_after):
                more = bool(await self._act())
        except (*GONE, *RETRIED, Unavailable) as error:
            log.warning("round failed, will be tried again", loop=self.name, error=repr(error))
            self._failed(self._began_at, error)
            return False
        except Exception as error:
            log.exception("a fault, will be tried again", loop=self.name)
            self._failed(self._began_at, error)
            self._faults += 1
            return False
        else:
            self._failing_since, self._faults = None, 0
            return more
        finally:
            self._began_at = None

    def _failed(self, at: float, error: Exception) -> None:
        self._failing_since, self._error = self._failing_since or at, repr(error)[:200]

    def _pause_seconds(self) -> float:
        longer = self._seconds * 2 ** min(self._faults, 10)
        return self._seconds if not self._faults else max(self._seconds, min(longer, LONGEST_PAUSE_SECONDS))

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(self._pause_seconds()):
                await self._wake.wait()
        except TimeoutError:
            return
