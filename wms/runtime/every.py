"""A loop that does one thing every so often."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from wms.db.database import GONE, RETRIED
from wms.errors import Unavailable

log = structlog.get_logger()


class Every:
    """Calls `act` every `seconds`, the first time at once. When it returns True there is more to do: again at once."""

    def __init__(self, name: str, seconds: float, act: Callable[[], Awaitable[bool | None]]) -> None:
        self.name = name
        self._seconds = seconds
        self._act = act
        self._wake = asyncio.Event()

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
        try:
            return bool(await self._act())
        except (*GONE, *RETRIED, Unavailable) as error:
            log.warning("will be tried again", loop=self.name, error=repr(error))
            return False

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(self._seconds):
                await self._wake.wait()
        except TimeoutError:
            return
