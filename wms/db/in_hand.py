"""Notes in the database on messages that a consumer takes unusually long to handle. If the consumer dies, such a message may be the cause."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import asyncpg

from wms.db.database import Transaction
from wms.db.instance import DEAD_AFTER_SECONDS
from wms.db.offset import ConsumedTopic
from wms.db.sql import load
from wms.ids import InstanceId

SQL = load(__file__)

Span = tuple[int, int]
"""The first and the last offset of a range of messages in one partition."""


class Suspects(NamedTuple):
    """Messages of one partition that were in hand when a process died. It may have died of one of them, or of anything else."""

    first: int
    last: int
    """The first and the last of their offsets."""
    deaths: int
    """How many processes have died with them in hand."""


async def note(
    tx: Transaction,
    feed: ConsumedTopic,
    spans: Mapping[int, Span],
    instance_id: InstanceId,
    deaths: int = 0,
) -> None:
    """Store which messages this service instance handles now: a range of offsets for each partition of the topic.

    `deaths` is the number of processes that have died with these messages in hand already.
    """
    first, last = [each[0] for each in spans.values()], [each[1] for each in spans.values()]
    await tx.execute(
        SQL["note"], feed.consumer, feed.cluster_id, feed.topic, list(spans), first, last, instance_id, deaths
    )


async def note_alone(
    url: str, spans: Mapping[ConsumedTopic, Mapping[int, Span]], instance_id: InstanceId, within: float
) -> None:
    """Store which messages of several topics end this service instance, over a new connection to `url`.

    The process knows that it dies of them, so that its death counts already. It commits by itself. Raise TimeoutError after `within` seconds.
    """
    async with asyncio.timeout(within):
        connection = await asyncpg.connect(url)
        async with connection.transaction():
            for feed, each in spans.items():
                await note(Transaction(connection), feed, each, instance_id, deaths=1)
        await connection.close()


async def forget(
    tx: Transaction, feed: ConsumedTopic, partitions: Sequence[int], instance_id: InstanceId
) -> None:
    """Delete the notes of this service instance on these partitions."""
    await tx.execute(SQL["forget"], feed.consumer, feed.cluster_id, feed.topic, partitions, instance_id)


async def left(
    tx: Transaction, feed: ConsumedTopic, partitions: Sequence[int], instance_id: InstanceId
) -> dict[int, Suspects]:
    """Return, by partition, the messages that other instances were handling when they died."""
    rows = await tx.fetch(
        SQL["left"],
        feed.consumer,
        feed.cluster_id,
        feed.topic,
        partitions,
        instance_id,
        DEAD_AFTER_SECONDS,
    )
    return {
        row["partition"]: Suspects(row["first_offset"], row["last_offset"], row["deaths"]) for row in rows
    }
