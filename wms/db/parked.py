"""Parked messages: moved from Kafka to the database until their owner's turn comes, so that other owners need not wait."""

from collections.abc import Sequence

import asyncpg
import msgspec

from wms.db.database import Transaction
from wms.db.dead_letter import DeadLetter
from wms.db.instance import DEAD_AFTER_SECONDS
from wms.db.offset import ConsumedTopic
from wms.db.sql import load
from wms.ids import InstanceId

SQL = load(__file__)


async def park(tx: Transaction, feed: ConsumedTopic, letters: Sequence[tuple[str, DeadLetter]]) -> None:
    """Store messages, each with the user who owns it. The same transaction moves the consumer's offset past them."""
    mine = [letter for _, letter in letters]
    await tx.execute(
        SQL["park"],
        feed.cluster_id,
        feed.consumer,
        feed.topic,
        [each.partition for each in mine],
        [each.offset for each in mine],
        [owner for owner, _ in letters],
        [each.key for each in mine],
        [each.payload for each in mine],
        [each.principal for each in mine],
    )


async def waiting(tx: Transaction, consumer: str, partitions: Sequence[int]) -> list[asyncpg.Record]:
    """Return a row for each partition and owner with parked messages of this consumer: the number of messages and of bytes."""
    return await tx.fetch(SQL["waiting"], consumer, partitions)


class Head(msgspec.Struct, frozen=True):
    """The limits on how many of one owner's parked messages are handled at once."""

    limit: int
    """The most messages."""
    size: int
    """The most bytes of payloads. The first message is handled whatever its size."""


async def first(
    tx: Transaction, consumer: str, whose: tuple[int, str], head: Head, instance_id: InstanceId
) -> list[asyncpg.Record]:
    """Return the oldest parked messages of one partition and owner, within `head`.

    `is_suspect` marks messages that another instance was handling when it died; `deaths` counts such instances, this one included.
    """
    columns = (*whose, head.limit, head.size, instance_id, DEAD_AFTER_SECONDS)
    return await tx.fetch(SQL["first"], consumer, *columns)


async def remove(tx: Transaction, parked_ids: Sequence[int]) -> set[int]:
    """Delete parked messages that this transaction handles. Return the ids that were still stored."""
    return {row["parked_id"] for row in await tx.fetch(SQL["remove"], parked_ids)}


async def take(
    tx: Transaction, parked_ids: Sequence[int], instance_id: InstanceId | None, deaths: int = 0
) -> None:
    """Store which instance handles these parked messages, if that takes longer than usual. None: no instance handles them any more.

    `deaths` is the number of processes that have died with these messages in hand already.
    """
    await tx.execute(SQL["take"], parked_ids, instance_id, deaths)
