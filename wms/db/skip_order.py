"""Operators' orders to skip a message, in the database, until a job manager has carried them out."""

import asyncpg
import msgspec

from wms.db.database import Transaction
from wms.db.offset import ConsumedTopic
from wms.db.sql import load

SQL = load(__file__)


class SkipRequest(msgspec.Struct, frozen=True, kw_only=True):
    """An order to skip the message at one offset of a partition."""

    operator: str
    feed: ConsumedTopic
    """The cluster, the consumer and the topic."""
    partition: int
    offset: int
    reason: str


async def put(tx: Transaction, wanted: SkipRequest) -> None:
    """Store an order. If that message is to be skipped already, nothing changes."""
    feed = wanted.feed
    await tx.execute(
        SQL["put"],
        wanted.operator,
        feed.cluster_id,
        feed.consumer,
        feed.topic,
        wanted.partition,
        wanted.offset,
        wanted.reason,
    )


async def claim(tx: Transaction, cluster_id: str, seconds: float) -> asyncpg.Record | None:
    """Claim the oldest order of this cluster that nobody works on, for `seconds` seconds, and count the attempt. None if there is none."""
    return await tx.fetchrow(SQL["claim"], cluster_id, seconds)


async def finish(tx: Transaction, skip_order_id: int) -> None:
    """Delete an order that was carried out, or has failed for good."""
    await tx.execute(SQL["finish"], skip_order_id)


async def forget(tx: Transaction, age: float) -> int:
    """Delete orders older than `age` seconds; return the number of deleted orders."""
    return await tx.execute(SQL["forget"], age)
