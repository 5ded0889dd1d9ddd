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
ENDLESS_ROUND_SECONDS = 300.0
"""A round that takes so long hangs: it is cancelled, and the loop goes on."""
LONGEST_PAUSE_SECONDS = 30.0
"""After rounds that failed by a fault of ours; each makes the pause longer."""


class Every:
    """Calls `act` every `seconds`, the first time at once. When it returns True there is more to do: again at once."""

    def __init__(
        self,
        name: str,
        seconds: float,
        act: Callable[[], Awaitable[bool | None]],
        *,
        endless_after: float = ENDLESS_ROUND_SECONDS,
    ) -> None:
        """`endless_after`: seconds after which a round of `act` is cancelled, since it hangs."""
        self.name = name
        self._seconds = seconds
        self._endless_after = endless_after
        self._act = act
        self._wake = asyncio.Event()
        self._began_at: float | None = None
        self._failing_since: float | None = None
        self._error = ""
        self._faults = 0
        """Rounds in a row that failed by a fault of ours."""

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
        """Go on until cancelled; what is not available now, or fails, is tried again: one loop's fault stops no other."""
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
            log.warning("will be tried again", loop=self.name, error=repr(error))
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
