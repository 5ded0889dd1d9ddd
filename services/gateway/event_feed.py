"""Reads the newest job events once from Kafka, and keeps them in memory for all streams of events."""

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

KEPT = 5_000
"""The most records of a partition that are kept in memory. Streams read older records from the broker."""
KEPT_BYTES = 16 * 1024 * 1024
"""The most bytes of a partition's records that are kept in memory. Streams read older records from the broker."""
READ_AT_ONCE = 1_000
STEP_BYTES = 200_000
"""After parsing this many bytes of records, the feed lets other tasks run."""
POLL_SECONDS = 1.0


class EventFeed:
    """Reads the topic of job events from `KEPT` records before its end, keeps the newest, and passes them to followers (`EventFollower`)."""

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
        """Read the topic until cancelled, from where the last call ended. Raise Unavailable if the broker fails."""
        reader = await self._kafka.reader(self._topic.name)
        try:
            await self._begin(reader)
            while True:
                await self._keep(await reader.poll(POLL_SECONDS, READ_AT_ONCE))
        finally:
            await reader.close()

    async def end(self) -> EventCursor:
        """Return the position after the last record that was read. Wait first until the feed has once caught up with the end of the topic."""
        await self._ready.wait()
        return self.place()

    async def reached(self, cursor: EventCursor, within: float) -> EventCursor:
        """Wait until all records before `cursor` were read, at most `within` seconds.

        Return the position after the last record that was read, reached or not.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                while not cursor.is_before(self.place()):
                    await self._news.wait()
        return self.place()

    def place(self) -> EventCursor:
        """Return the position after the last record that was read, without waiting."""
        return EventCursor(self._cluster, tuple(each.following for each in self._kept))

    def covers(self, cursor: EventCursor) -> bool:
        """Return whether all records from this position on are still in memory."""
        return all(each.first <= at for each, at in zip(self._kept, cursor.offsets, strict=True))

    def after(self, cursor: EventCursor) -> list[EventRecord]:
        """Return the records in memory from this position on: partition by partition, each in the order of offsets."""
        return [
            record for each, at in zip(self._kept, cursor.offsets, strict=True) for record in each.since(at)
        ]

    async def _begin(self, reader: Reader) -> None:
        """Position the reader. The first one starts `KEPT` records before each partition's end and catches up; later ones continue.

        So a client from another gateway usually finds its position in memory.
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
    """The newest records of one partition, with consecutive offsets."""

    def __init__(self) -> None:
        self.first = 0
        """The offset of the oldest record in memory."""
        self.following = 0
        """The offset after the newest record, which is that of the next record expected."""
        self._records = deque[EventRecord]()
        self._bytes = 0

    def begin(self, offset: int) -> None:
        self.first = self.following = offset
        self._records.clear()
        self._bytes = 0

    def keep(self, record: EventRecord) -> bool:
        """Add a record, and discard the oldest beyond the limits.

        Return False if records before it were deleted at the broker; then only this record is kept.
        """
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
