"""The open exchanges with the services: one for each token, so that no request can go out under another's."""

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from wms.bus.kafka import BrokerSettings
from wms.client.credential import HeldToken, UserCredential
from wms.client.exchange import Exchange
from wms.errors import Unavailable

OPEN_SECONDS = 15.0


class Caller:
    """The exchange of one token, open or being opened, and who uses it."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.opened = asyncio.create_task(exchange.open(OPEN_SECONDS), name="open exchange")
        self.in_use = 0
        self.idle_since = time.monotonic()

    def has_failed(self) -> bool:
        """Return whether the exchange could not be opened."""
        return self.opened.done() and (self.opened.cancelled() or self.opened.exception() is not None)

    async def close(self) -> None:
        """Close the exchange; calls that wait for an answer are given up."""
        self.opened.cancel()
        await asyncio.wait([self.opened])
        await self.exchange.close()


class Callers:
    """Opens an exchange at the first request of a token, and closes it `idle_seconds` after the last; at most `most` are open."""

    def __init__(self, kafka: BrokerSettings, most: int, idle_seconds: float) -> None:
        self._kafka = kafka
        self._most = most
        self._idle_seconds = idle_seconds
        self._callers: dict[bytes, Caller] = {}

    @property
    def count(self) -> int:
        """The number of tokens with an exchange."""
        return len(self._callers)

    @asynccontextmanager
    async def exchange(self, credential: UserCredential) -> AsyncIterator[Exchange]:
        """Lend the exchange of a verified token. Unavailable: no broker answers, or too many others use the gateway."""
        caller = await self._caller(credential)
        caller.in_use += 1
        try:
            # Shielded: others wait for the same opening.
            await asyncio.shield(caller.opened)
            yield caller.exchange
        finally:
            caller.in_use -= 1
            caller.idle_since = time.monotonic()

    async def close_idle(self) -> None:
        """Close the exchanges that nobody has used for a while."""
        before = time.monotonic() - self._idle_seconds
        await self._drop(
            key for key, each in self._callers.items() if not each.in_use and each.idle_since < before
        )

    async def close(self) -> None:
        """Close all."""
        await self._drop(self._callers)

    async def _caller(self, credential: UserCredential) -> Caller:
        key = hashlib.sha256(credential.token.encode()).digest()
        found = self._callers.get(key)
        if found is None or found.has_failed():
            await self._make_room()
            # Another request of this token may have been faster meanwhile.
            found = self._callers.get(key)
        if found is None or found.has_failed():
            found = self._callers[key] = Caller(Exchange(self._kafka, HeldToken(credential)))
        return found

    async def _make_room(self) -> None:
        if len(self._callers) < self._most:
            return
        idle = [(each.idle_since, key) for key, each in self._callers.items() if not each.in_use]
        if not idle:
            raise Unavailable(f"the gateway serves {self._most:,} users at a time, and as many are here")
        await self._drop([min(idle)[1]])

    async def _drop(self, keys: Iterable[bytes]) -> None:
        dropped = [self._callers.pop(key) for key in list(keys)]
        await asyncio.gather(*(each.close() for each in dropped))
