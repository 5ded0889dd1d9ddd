"""A periodic loop: calls a function every few seconds until it is cancelled, and survives the function's failures."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import structlog

from wms.db.database import GONE, RETRIED
from wms.errors import Unavailable

log = structlog.get_logger()

TROUBLE_AFTER_SECONDS = 10.0
"""Seconds after which a periodic loop counts as in trouble if its calls fail, or if one call has not ended.

For a loop with a long pause, a call may take LONG_ROUND_SECONDS.
"""
LONG_PAUSE_SECONDS = 10.0
LONG_ROUND_SECONDS = 60.0
ENDLESS_ROUND_SECONDS = 300.0
"""The time limit in seconds of one call of a periodic loop. Then the call is cancelled, and the loop goes on."""
LONGEST_PAUSE_SECONDS = 30.0
"""The longest pause in seconds of a periodic loop whose calls fail by a bug. Each such failure doubles the pause."""


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
        self._faults = 0
        """The number of consecutive calls that failed by a bug."""

    def trouble(self) -> str:
        """Return what is wrong with the loop, for the operator: a call that does not end, or repeated failures. Empty if nothing is."""
        now = time.monotonic()
        most = TROUBLE_AFTER_SECONDS if self._seconds < LONG_PAUSE_SECONDS else LONG_ROUND_SECONDS
        if self._began_at is not None and now - self._began_at > most:
            return f"at one round for {now - self._began_at:.0f} s"
        if self._failing_since is not None and now - self._failing_since > TROUBLE_AFTER_SECONDS:
            return f"fails for {now - self._failing_since:.0f} s: {self._error}"
        return ""

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
