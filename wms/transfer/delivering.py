"""Delivers one output file of a job to its targets, completely or not at all. It retries, as long as the attempt holds its lease."""

import asyncio
import time
from collections.abc import Callable
from random import Random

from wms.backoff import delays
from wms.errors import Rejected, Unavailable
from wms.transfer.fetching import Transferred
from wms.transfer.file_url import FileUrl, redacted
from wms.transfer.mover import OutgoingFile
from wms.transfer.movers import Movers
from wms.transfer.transfer_limits import Meter, TransferLimits

_LONGEST_PAUSE = 60.0


class Deliverer:
    """Delivers output files of one job under one set of limits. `on_bytes` is called with the number of bytes as they leave."""

    def __init__(
        self,
        movers: Movers,
        limits: TransferLimits,
        rng: Random,
        on_bytes: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._movers = movers
        self._limits = limits
        self._rng = rng
        self._on_bytes = on_bytes

    async def deliver(self, name: str, sending: OutgoingFile, targets: tuple[str, ...]) -> list[Transferred]:
        """Put an output file to each target URL in turn, with retries; return one result for each. `name` names the file in errors.

        Raise Rejected, with a code, at the first target that cannot take the file.
        """
        return [await self._deliver(name, sending, target) for target in targets]

    async def _deliver(self, name: str, sending: OutgoingFile, target: str) -> Transferred:
        last: Unavailable | None = None
        pauses = delays(self._limits.pause_seconds, _LONGEST_PAUSE, 2.0, self._rng.random)
        try:
            async with asyncio.timeout(self._limits.file_seconds):
                for attempt in range(self._limits.tries):
                    if attempt:
                        await asyncio.sleep(next(pauses))
                    try:
                        return await self._put(name, sending, target)
                    except Unavailable as error:
                        last = error
        except TimeoutError:
            last = Unavailable(
                f"{redacted(target)}: not delivered within {self._limits.file_seconds:g} s; {last or ''}"
            )
        raise Rejected("NOT_DELIVERED", f"{name}: {last.message if last else 'not tried'}")

    async def _put(self, name: str, sending: OutgoingFile, target: str) -> Transferred:
        url = FileUrl.parse(target)
        meter = Meter(self._limits, self._limits.file_bytes, self._on_bytes)
        meter.check_size(sending.size)
        began = time.monotonic()
        await self._movers.mover(url).put(sending, url, meter)
        return Transferred(name, sending.size, time.monotonic() - began, url.host)
