"""Transfers of archives, up and down: how many are under way, for each holder and in all.

Further ones wait. A holder is an owner, or the pilot or payload with a token. A transfer that is slower than the least rate is ended, so that
each place becomes free in time; who reads may go on by `Range`.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from services.gateway.config import GatewaySettings
from services.gateway.problem import TooMany
from wms.errors import Unavailable

AGAIN_SECONDS = 2.0


class Transfers:
    """The turns of transfers."""

    def __init__(self, settings: GatewaySettings) -> None:
        self._seconds = settings.answer_seconds
        self._of_holder = settings.owner_transfers
        self._turns = asyncio.Semaphore(settings.transfers)
        self._holders: dict[str, asyncio.Semaphore] = {}
        self._waiting: dict[str, int] = {}

    @contextlib.asynccontextmanager
    async def under_way(self, holder: str) -> AsyncIterator[None]:
        """Hold a turn of the holder for the `async with` block. Raise TooMany or Unavailable if none becomes free in time."""
        mine = self._holders.setdefault(holder, asyncio.Semaphore(self._of_holder))
        self._waiting[holder] = self._waiting.get(holder, 0) + 1
        try:
            try:
                await self._acquired(mine)
            except TimeoutError:
                raise TooMany(
                    f"{self._of_holder} transfers of this user are under way", AGAIN_SECONDS
                ) from None
            try:
                await self._acquired(self._turns)
            except BaseException as error:
                mine.release()
                if isinstance(error, TimeoutError):
                    raise Unavailable("too many archives are on their way through this gateway") from None
                raise
            try:
                yield
            finally:
                self._turns.release()
                mine.release()
        finally:
            self._waiting[holder] -= 1
            if not self._waiting[holder]:
                del self._waiting[holder], self._holders[holder]

    async def _acquired(self, turns: asyncio.Semaphore) -> None:
        async with asyncio.timeout(self._seconds):
            await turns.acquire()
