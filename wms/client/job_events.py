"""Events of jobs as a signal: when a job changes its state, a client that waits for it polls at once.

The client takes states from its polls alone, never from an event. So a lost or late event costs time, but never shows a wrong
state. A client that may not read the topic of events polls at intervals instead.
"""

import asyncio
import contextlib
from types import TracebackType
from typing import Self

from wms.bus.topics import find
from wms.client.channel import Channel
from wms.errors import Rejected, Unavailable
from wms.messages.events import TOPIC, ElementState, Fact, JobEvent, JobsMoved, WaitReason
from wms.messages.wire import Codec

POLL_SECONDS = 5.0
RETRY_SECONDS = 5.0
RECORDS = 1_000

_CODEC: Codec[Fact] = Codec(Fact, rules=False)
Ranges = tuple[tuple[int, int], ...]


class JobEvents:
    """A context manager that reads the topic of job events and signals state changes of jobs in these ranges of ids.

    Without ranges it signals changes of any job.
    """

    def __init__(self, exchange: Channel, ranges: Ranges) -> None:
        self._exchange = exchange
        self._ranges = ranges
        self._moved = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.readable = False
        """Whether the topic can be read. While it is False the client must poll at intervals."""

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._read(), name="job events")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def moved(self, within: float) -> bool:
        """Wait at most `within` seconds for a state change since the last call of `moved`; return whether there was one."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._moved.wait()
        moved = self._moved.is_set()
        self._moved.clear()
        return moved

    def look_again(self) -> None:
        """Let the next call of `moved` return at once, as after a state change."""
        self._moved.set()

    async def _read(self) -> None:
        while True:
            with contextlib.suppress(Unavailable, OSError):
                await self._read_on()
            self.readable = False
            await asyncio.sleep(RETRY_SECONDS)

    async def _read_on(self) -> None:
        reader = await self._exchange.end_of(find(TOPIC))
        try:
            self.readable = True
            # Events from before the reader reached the end of the topic were not read.
            self._moved.set()
            while True:
                for record in await reader.poll(POLL_SECONDS, RECORDS):
                    if not self._moved.is_set() and self._concerns(record.payload):
                        self._moved.set()
        finally:
            await reader.close()

    def _concerns(self, payload: bytes) -> bool:
        try:
            return concerns(_CODEC.decode(payload), self._ranges)
        except Rejected:
            return False


def concerns(fact: Fact, ranges: Ranges) -> bool:
    """Return whether a message of the events topic is a state change of a job in these ranges of ids. Without ranges any job counts."""
    if isinstance(fact, WaitReason | ElementState):
        return False
    if isinstance(fact, JobsMoved):
        return any(concerns(each, ranges) for each in fact.events)
    first, last = (
        (fact.job_id, fact.job_id)
        if isinstance(fact, JobEvent)
        else (fact.first, fact.first + fact.count - 1)
    )
    return not ranges or any(low <= last and first <= high for low, high in ranges)
