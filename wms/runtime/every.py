"""A loop that does one thing every so often."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import structlog

from wms.db.database import GONE, RETRIED
from wms.errors import Unavailable

log = structlog.get_logger()

TROUBLE_AFTER_SECONDS = 10.0
"""A loop that has failed for so long, or been at one round, is told of; one with long pauses may take a minute."""
LONG_PAUSE_SECONDS = 10.0
LONG_ROUND_SECONDS = 60.0


class Every:
    """Calls `act` every `seconds`, the first time at once. When it returns True there is more to do: again at once."""

    def __init__(self, name: str, seconds: float, act: Callable[[], Awaitable[bool | None]]) -> None:
        self.name = name
        self._seconds = seconds
        self._act = act
        self._wake = asyncio.Event()
        self._began_at: float | None = None
        self._failing_since: float | None = None
        self._error = ""

    def trouble(self) -> str:
        """Return what is wrong with the loop, empty if nothing is: a round that does not end, or rounds that fail."""
        now = time.monotonic()
        most = TROUBLE_AFTER_SECONDS if self._seconds < LONG_PAUSE_SECONDS else LONG_ROUND_SECONDS
        if self._began_at is not None and now - self._began_at > most:
            return f"at one round for {now - self._began_at:.0f} s"
        if self._failing_since is not None and now - self._failing_since > TROUBLE_AFTER_SECONDS:
            return f"fails for {now - self._failing_since:.0f} s: {self._error}"
        return ""

    def wake(self) -> None:
        """Do it now instead of waiting."""
        self._wake.set()

    async def run(self) -> None:
        """Go on until cancelled; what is not available now is tried again next time."""
        while True:
            self._wake.clear()
            if not await self._once():
                await self._pause()

    async def _once(self) -> bool:
        self._began_at = time.monotonic()
        try:
            more = bool(await self._act())
        except (*GONE, *RETRIED, Unavailable) as error:
            log.warning("will be tried again", loop=self.name, error=repr(error))
            self._failing_since, self._error = self._failing_since or self._began_at, repr(error)[:200]
            return False
        else:
            self._failing_since = None
            return more
        finally:
            self._began_at = None

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(self._seconds):
                await self._wake.wait()
        except TimeoutError:
            return
