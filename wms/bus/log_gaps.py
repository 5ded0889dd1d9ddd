"""The gaps of one consumer: where its log does not go on at the stored offset, and messages that were not meant for this state of the database.

Messages may be deleted before they are read, or the topic made anew: that is seen by the offsets of the messages that are read, in each batch. A
database that was restored keeps aside, as dead letters, the orders that the log holds for the state that the restore has undone.
"""

from collections.abc import Sequence
from typing import Final, Generic, TypeVar

import msgspec
import structlog

from wms.bus.delivery import Decoded
from wms.bus.handling import Handling
from wms.bus.kafka import Kafka, Message, Reader
from wms.db import log_gap, offset
from wms.db.database import Transaction
from wms.db.log_gap import Cause, LogGap, RestoredRange
from wms.errors import Rejected, Unavailable

log = structlog.get_logger()

M = TypeVar("M")

KEPT_ASIDE: Final = Rejected(
    "KEPT_ASIDE",
    "this was sent before the database was restored, and is kept aside",
    "an operator takes it in or drops it: `wms log-gaps`",
)


class LogGaps(Generic[M]):
    """Finds the gaps in the partitions of one consumer, and keeps aside what was sent before the database was restored."""

    def __init__(self, handling: Handling[M], kafka: Kafka) -> None:
        self._handling = handling
        self._kafka = kafka
        self._restored: dict[int, RestoredRange] = {}
        self._recent: dict[tuple[int, int], Message] = {}
        """The records of the last poll, by partition and offset."""

    async def load(self, tx: Transaction, partitions: Sequence[int]) -> None:
        """Read from the database which messages of these partitions are to be kept aside."""
        self._restored = await log_gap.restored(tx, self._handling.feed, partitions)

    async def follow(self, reader: Reader, records: Sequence[Message]) -> list[Message]:
        """Store the gaps before and between these records, which are the next ones that the reader read.

        Return the records without those that the reader had read before, as it may when a connection breaks. Where the log begins
        again, the stored offset moves back. Raise Unavailable if the broker now belongs to another cluster.
        """
        following = dict(self._handling.offsets)
        new: list[Message] = []
        before, self._recent = self._recent, {}
        for record in records:
            place = record.partition, record.offset
            expected = following[record.partition]
            if record.offset < expected:
                if record in (before.get(place), self._recent.get(place)):
                    continue
                await self._begin_again(record, expected)
            elif record.offset > expected and not record.fault:
                await self._pass_deleted(reader, record, expected)
            new.append(record)
            self._recent[place] = record
            following[record.partition] = record.offset + 1
        return new

    async def _begin_again(self, record: Message, expected: int) -> None:
        """Move the stored offset back to that of `record`, as the topic was deleted and created again."""
        if await self._kafka.read_cluster_id() != self._kafka.cluster_id:
            raise Unavailable("the broker is another cluster now")
        behind = self._handling.offsets[record.partition]
        async with self._handling.db.transaction() as tx:
            await self._store(tx, record, "begun anew", expected, None)
            await offset.advance(tx, self._handling.feed, {record.partition: (behind, record.offset)})
        self._handling.offsets[record.partition] = record.offset

    async def _pass_deleted(self, reader: Reader, record: Message, expected: int) -> None:
        """Store a gap from `expected` on, if messages were deleted. Else the offsets before `record` are marks of the broker's own."""
        start = await reader.log_start(record.partition)
        if start > expected:
            async with self._handling.db.transaction() as tx:
                await self._store(tx, record, "deleted", expected, min(start, record.offset))

    async def _store(
        self, tx: Transaction, record: Message, cause: Cause, first: int, until: int | None
    ) -> None:
        gap = LogGap(
            partition=record.partition,
            cause=cause,
            first_offset=first,
            until_offset=until,
            goes_on_at=record.time,
        )
        feed = self._handling.feed
        log.error("gap in the log", consumer=feed.consumer, topic=feed.topic, gap=msgspec.to_builtins(gap))
        await log_gap.record(tx, feed, gap)

    def kept_aside(self, record: Message) -> Decoded[M] | None:
        """Return the record with the fault KEPT_ASIDE, if it was sent before the database was restored; else None.

        Its sender is verified as of when it was sent, which was then: while the state was the database's that the restore has undone.
        """
        aside = self._restored.get(record.partition)
        if aside is None:
            return None
        if record.offset >= aside.until_offset:
            del self._restored[record.partition]
            return None
        # A sender may say any time. An old token does not become valid by it, if it had expired before.
        earliest = aside.handled_at.timestamp() if aside.handled_at else 0.0
        decoded = self._handling.decode(record, max(record.sent_at, earliest))
        error = f"{KEPT_ASIDE.code}: {decoded.fault or KEPT_ASIDE.message}"
        return msgspec.structs.replace(decoded, fault=KEPT_ASIDE, error=error, log_gap_id=aside.log_gap_id)
