"""A periodic loop: calls a function every few seconds until it is cancelled, and survives the function's failures."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import structlog

from wms.db.database import GONE, RETRIED
from wms.errors import Unavailable

log = structlog.get_logger()

LONG_ROUND_SECONDS = 10.0, 60.0
"""Seconds after which one call that has not ended is a trouble: of a loop whose pause is shorter than the first of them, and of any other."""
ENDLESS_ROUND_SECONDS = 300.0
"""The time limit in seconds of one call of a periodic loop. Then the call is cancelled, and the loop goes on."""
RETRY_SECONDS = 2.0
"""The longest pause in seconds after a call that failed because something was unavailable: then it is tried again, whatever the period."""
LONGEST_PAUSE_SECONDS = 30.0
"""The longest pause in seconds of a periodic loop whose calls fail by a bug. Each such failure doubles the pause."""
STUCK_AFTER = 3, 10.0
"""A loop is stuck once this many calls in a row have failed, over at least so many seconds."""


class Every:
    """A loop that calls `act` at once and then every `seconds`, until it is cancelled.

    If `act` returns True, more work is left and it is called again without a pause.
    """

    def __init__(
        self,
        name: str,
        seconds: float,
        act: Callable[[], Awaitable[bool | None]],
        *,
        endless_after: float = ENDLESS_ROUND_SECONDS,
    ) -> None:
        """Prepare a loop that `run` starts. `name` names it in logs, and `seconds` is the pause between two calls of `act`.

        A call of `act` that lasts `endless_after` seconds is cancelled; the loop then goes on after its pause.
        """
        self.name = name
        self._seconds = seconds
        self._endless_after = endless_after
        self._act = act
        self._wake = asyncio.Event()
        self._began_at: float | None = None
        self._failing_since: float | None = None
        self._error = ""
        self._failures, self._faults = 0, 0
        """The numbers of consecutive calls that failed, and of those among them that failed by a bug."""

    def trouble(self) -> str:
        """Return what is wrong with the loop, for the operator: a call that does not end, or repeated failures. Empty if nothing is."""
        now = time.monotonic()
        short, long = LONG_ROUND_SECONDS
        if self._began_at is not None and now - self._began_at > (short if self._seconds < short else long):
            return f"at one round for {now - self._began_at:.0f} s"
        failures, seconds = STUCK_AFTER
        if self._failing_since is None or self._failures < failures or now - self._failing_since < seconds:
            return ""
        return f"failed {self._failures} times in {now - self._failing_since:.0f} s: {self._error}"

    def wake(self) -> None:
        """End the present pause, so that `act` is called at once."""
        self._wake.set()

    async def run(self) -> None:
        """Call `act` periodically until cancelled. A failure of `act` is logged, and it is called again later."""
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
        except Exception as error:
            log.exception("a fault, will be tried again", loop=self.name)
            self._failed(self._began_at, error)
            self._faults += 1
        else:
            self._failing_since, self._failures, self._faults = None, 0, 0
            return more
        finally:
            self._began_at = None
        return False

    def _failed(self, at: float, error: Exception) -> None:
        self._failing_since, self._error = self._failing_since or at, repr(error)[:200]
        self._failures += 1

    def _pause_seconds(self) -> float:
        if not self._failures:
            return self._seconds
        retry = min(self._seconds, RETRY_SECONDS)
        return min(retry * float(2 ** min(self._faults, 10)), LONGEST_PAUSE_SECONDS)

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(self._pause_seconds()):
                await self._wake.wait()
        except TimeoutError:
            return
