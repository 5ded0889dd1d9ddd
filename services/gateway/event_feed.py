"""The newest events of jobs, read once for all who follow them."""

import asyncio
import contextlib
from collections import deque
from itertools import islice

import msgspec
import structlog

from services.gateway.event_cursor import EventCursor, mark_of
from wms.bus.kafka import Kafka, Message, Reader
from wms.bus.topics import Topic
from wms.errors import Rejected, Unavailable
from wms.messages.events import Fact
from wms.messages.wire import Codec

log = structlog.get_logger()

KEPT = 5_000
"""The most records of a partition that are kept in memory; older ones are read from the broker by who needs them."""
KEPT_BYTES = 16 * 1024 * 1024
"""The most bytes of a partition's records that are kept."""
READ_AT_ONCE = 1_000
POLL_SECONDS = 1.0
AGAIN_SECONDS = 1.0

_CODEC: Codec[Fact] = Codec(Fact, rules=False)


class EventRecord(msgspec.Struct, frozen=True):
    """One record of the topic; `fact` is None if it cannot be read."""

    partition: int
    offset: int
    size: int
    fact: Fact | None


class EventFeed:
    """Reads the topic from somewhat before its end, and keeps the newest records."""

    name = "events"

    def __init__(self, kafka: Kafka, topic: Topic) -> None:
        self._kafka = kafka
        self._topic = topic
        self._cluster = mark_of(kafka.cluster_id)
        self._kept = [_Partition() for _ in range(topic.partitions)]
        self._ready = asyncio.Event()
        self._news = asyncio.Event()

    async def run(self) -> None:
        """Read until cancelled."""
        while True:
            with contextlib.suppress(Unavailable, OSError):
                await self._read_on()
            await asyncio.sleep(AGAIN_SECONDS)

    async def end(self) -> EventCursor:
        """Return the place behind the last record that was read, once the topic was read to its end."""
        await self._ready.wait()
        return EventCursor(self._cluster, tuple(each.following for each in self._kept))

    def covers(self, cursor: EventCursor) -> bool:
        """Return whether all records from the place on are kept."""
        return all(each.first <= at for each, at in zip(self._kept, cursor.offsets, strict=True))

    def after(self, cursor: EventCursor) -> list[EventRecord]:
        """Return the kept records from the place on, in their order within each partition."""
        return [
            record for each, at in zip(self._kept, cursor.offsets, strict=True) for record in each.since(at)
        ]

    async def news(self, within: float) -> None:
        """Wait for new records, at most `within` seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._news.wait()

    async def reader_from(self, cursor: EventCursor) -> Reader:
        """Return a reader from the place on, for records that are kept no more. Unavailable: no broker answers."""
        reader = await self._kafka.reader(self._topic.name)
        reader.assign(dict(enumerate(cursor.offsets)))
        return reader

    async def _read_on(self) -> None:
        reader = await self._kafka.reader(self._topic.name)
        try:
            await self._begin(reader)
            while True:
                self._keep(await reader.poll(POLL_SECONDS, READ_AT_ONCE))
        finally:
            await reader.close()

    async def _begin(self, reader: Reader) -> None:
        """Go on where it was; at first begin somewhat before the end, so that who comes from another gateway finds its place."""
        if self._ready.is_set():
            reader.assign({n: each.following for n, each in enumerate(self._kept)})
            return
        await reader.assign_end(self._topic.partitions)
        ends = await reader.positions()
        reader.assign({partition: max(0, end - KEPT) for partition, end in ends.items()})
        for partition, end in ends.items():
            self._kept[partition].begin(max(0, end - KEPT))
        while any(self._kept[partition].following < end for partition, end in ends.items()):
            self._keep(await reader.poll(POLL_SECONDS, READ_AT_ONCE))
        self._ready.set()

    def _keep(self, records: list[Message]) -> None:
        if not records:
            return
        for record in records:
            self._kept[record.partition].keep(parsed(record))
        self.wake()

    def wake(self) -> None:
        """Wake those who wait for news."""
        self._news.set()
        self._news = asyncio.Event()


class _Partition:
    """The newest records of one partition, without gaps."""

    def __init__(self) -> None:
        self.first = 0
        """The offset from which on records are kept."""
        self.following = 0
        """The offset of the next record."""
        self._records = deque[EventRecord]()
        self._bytes = 0

    def begin(self, offset: int) -> None:
        self.first = self.following = offset
        self._records.clear()
        self._bytes = 0

    def keep(self, record: EventRecord) -> None:
        if record.offset != self.following:
            # What lies between is gone from the broker.
            self.begin(record.offset)
        self._records.append(record)
        self._bytes += record.size
        self.following = record.offset + 1
        while len(self._records) > KEPT or self._bytes > KEPT_BYTES:
            self._bytes -= self._records.popleft().size
            self.first += 1

    def since(self, offset: int) -> list[EventRecord]:
        if offset >= self.following:
            return []
        return list(islice(self._records, max(0, offset - self.first), None))


def parsed(record: Message) -> EventRecord:
    """Return a record with its fact."""
    fact: Fact | None = None
    with contextlib.suppress(Rejected):
        fact = _CODEC.decode(record.payload)
    return EventRecord(record.partition, record.offset, record.size, fact)
