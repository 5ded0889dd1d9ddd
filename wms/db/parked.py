"""Parked messages: taken off the log and stored until their owner's turn comes, so that other owners need not wait."""

from collections.abc import Sequence

import asyncpg
import msgspec

from wms.db.database import Transaction
from wms.db.dead_letter import DeadLetter
from wms.db.instance import DEAD_AFTER_SECONDS
from wms.db.offset import Feed
from wms.db.sql import load
from wms.ids import InstanceId

SQL = load(__file__)


async def park(tx: Transaction, feed: Feed, letters: Sequence[tuple[str, DeadLetter]]) -> None:
    """Store messages, each with its owner. The same transaction moves the offset past them."""
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
    """Return the number and the bytes of parked messages by partition and owner."""
    return await tx.fetch(SQL["waiting"], consumer, partitions)


class Head(msgspec.Struct, frozen=True):
    """The most messages and bytes that are taken of one owner at once. The first message is taken whatever its size."""

    limit: int
    """The most messages."""
    size: int
    """The greatest total size of the payloads that are taken at once, in bytes; the first is taken whatever its size."""


async def first(
    tx: Transaction, consumer: str, whose: tuple[int, str], head: Head, instance_id: InstanceId
) -> list[asyncpg.Record]:
    """Return the oldest parked messages of `whose` (partition, owner). `is_suspect` marks those that an instance handled when it died."""
    columns = (*whose, head.limit, head.size, instance_id, DEAD_AFTER_SECONDS)
    return await tx.fetch(SQL["first"], consumer, *columns)


async def remove(tx: Transaction, parked_ids: Sequence[int]) -> set[int]:
    """Delete messages that this transaction handles; return the ids that were still stored."""
    return {row["parked_id"] for row in await tx.fetch(SQL["remove"], parked_ids)}


async def take(tx: Transaction, parked_ids: Sequence[int], instance_id: InstanceId | None) -> None:
    """Store which instance handles these messages for longer than usual; None clears the note."""
    await tx.execute(SQL["take"], parked_ids, instance_id)
