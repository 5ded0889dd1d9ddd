"""Reads job events that are no longer in memory from Kafka. Few streams read at a time, and only one of each owner."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Final
from weakref import WeakValueDictionary

from services.gateway.event_cursor import EventCursor
from services.gateway.event_record import EventRecord, parsed
from wms.bus.kafka import Kafka, Reader
from wms.bus.topics import Topic
from wms.parsing.owner_turns import OwnerTurns

AT_ONCE: Final = 8
"""The most Kafka readers of old events at a time; further streams wait for a free one."""
READ_AT_ONCE: Final = 1_000
POLL_SECONDS: Final = 1.0


class OlderEvents:
    """Reads old records of the topic of job events. Owners take turns in parsing, so one owner's backlog does not delay the others."""

    def __init__(self, kafka: Kafka, topic: Topic) -> None:
        self._kafka = kafka
        self._topic = topic
        self._turns = OwnerTurns()
        self._readers = asyncio.Semaphore(AT_ONCE)
        self._of_owner: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._closing: set[asyncio.Task[None]] = set()

    async def read(self, owner: str, place: EventCursor) -> AsyncGenerator[list[EventRecord], None]:
        """Yield batches of records from `place` on, endlessly; a batch may be empty. It first waits for the owner's other stream and a free reader.

        Raise Unavailable if no broker answers.
        """
        lock = self._of_owner.setdefault(owner, asyncio.Lock())
        async with lock, self._readers, self._reader(place) as reader:
            while True:
                messages = await reader.poll(POLL_SECONDS, READ_AT_ONCE)
                async with self._turns.turn(owner):
                    records = list(map(parsed, messages))
                yield records

    @contextlib.asynccontextmanager
    async def _reader(self, place: EventCursor) -> AsyncIterator[Reader]:
        reader = await self._kafka.reader(self._topic.name)
        try:
            reader.assign(dict(enumerate(place.offsets)))
            yield reader
        finally:
            # In a task of its own: if the client disconnected, this task is cancelled and could not wait here.
            self._closing.add(task := asyncio.create_task(reader.close()))
            task.add_done_callback(self._closing.discard)
