"""The newest events of jobs, read once from Kafka for all streams of events."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Sequence
from itertools import islice

from services.gateway.event_cursor import EventCursor, mark_of
from services.gateway.event_follower import EventFollowers
from services.gateway.event_record import EventRecord, parsed
from wms.bus.kafka import Kafka, Message, Reader
from wms.bus.topics import Topic
from wms.errors import Unavailable

KEPT = 5_000
"""The greatest number of records of a partition that are kept in memory. Streams read older records from the broker."""
KEPT_BYTES = 16 * 1024 * 1024
"""The greatest number of bytes of a partition's records that are kept in memory."""
READ_AT_ONCE = 1_000
STEP_BYTES = 200_000
"""The bytes of records that are parsed before other tasks get a turn."""
POLL_SECONDS = 1.0
AGAIN_SECONDS = 1.0


class EventFeed:
    """Reads the topic from somewhat before its end, keeps the newest records, and gives them to those who follow."""

    name = "events"

    def __init__(self, kafka: Kafka, topic: Topic) -> None:
        self.followers = EventFollowers()
        self._kafka = kafka
        self._topic = topic
        self._cluster = mark_of(kafka.cluster_id)
        self._kept = [_Partition() for _ in range(topic.partitions)]
        self._ready = asyncio.Event()
        self._news = asyncio.Event()

    async def run(self) -> None:
        """Read the topic until cancelled, and begin again after errors."""
        while True:
            with contextlib.suppress(Unavailable, OSError):
                await self._read_on()
            await asyncio.sleep(AGAIN_SECONDS)

    async def end(self) -> EventCursor:
        """Return the position after the last record that was read. Wait until the topic was read to its end once."""
        await self._ready.wait()
        return self.place()

    async def reached(self, cursor: EventCursor, within: float) -> EventCursor:
        """Wait until all records before the place were read, at most `within` seconds; return the place that was reached."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                while not cursor.is_before(self.place()):
                    await self._news.wait()
        return self.place()

    def place(self) -> EventCursor:
        """Return the place behind the last record that was read."""
        return EventCursor(self._cluster, tuple(each.following for each in self._kept))

    def covers(self, cursor: EventCursor) -> bool:
        """Return whether all records from the position on are kept."""
        return all(each.first <= at for each, at in zip(self._kept, cursor.offsets, strict=True))

    def after(self, cursor: EventCursor) -> list[EventRecord]:
        """Return the kept records from the position on, in their order within each partition."""
        return [
            record for each, at in zip(self._kept, cursor.offsets, strict=True) for record in each.since(at)
        ]

    async def _read_on(self) -> None:
        reader = await self._kafka.reader(self._topic.name)
        try:
            await self._begin(reader)
            while True:
                await self._keep(await reader.poll(POLL_SECONDS, READ_AT_ONCE))
        finally:
            await reader.close()

    async def _begin(self, reader: Reader) -> None:
        """Let the reader go on where the last one ended. The first reader begins 5,000 records before the end of each partition.

        So clients that come from another gateway find their position here.
        """
        if self._ready.is_set():
            reader.assign({n: each.following for n, each in enumerate(self._kept)})
            return
        await reader.assign_end(self._topic.partitions)
        ends = await reader.positions()
        reader.assign({partition: max(0, end - KEPT) for partition, end in ends.items()})
        for partition, end in ends.items():
            self._kept[partition].begin(max(0, end - KEPT))
        while any(self._kept[partition].following < end for partition, end in ends.items()):
            await self._keep(await reader.poll(POLL_SECONDS, READ_AT_ONCE))
        self._ready.set()

    async def _keep(self, records: Sequence[Message]) -> None:
        size = 0
        for record in records:
            size += record.size
            if size > STEP_BYTES:
                size = 0
                await asyncio.sleep(0)
            self._take(parsed(record))
        if records:
            self._news.set()
            self._news = asyncio.Event()

    def _take(self, record: EventRecord) -> None:
        if not self._kept[record.partition].keep(record):
            self.followers.miss()
        self.followers.give(record, self.place)


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

    def keep(self, record: EventRecord) -> bool:
        """Keep a record. Return whether it follows the last one: else those between are gone from the broker."""
        follows = record.offset == self.following
        if not follows:
            self.begin(record.offset)
        self._records.append(record)
        self._bytes += record.size
        self.following = record.offset + 1
        while len(self._records) > KEPT or self._bytes > KEPT_BYTES:
            self._bytes -= self._records.popleft().size
            self.first += 1
        return follows

    def since(self, offset: int) -> list[EventRecord]:
        if offset >= self.following:
            return []
        return list(islice(self._records, max(0, offset - self.first), None))
