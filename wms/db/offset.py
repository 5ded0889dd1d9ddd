"""Positions of consumers in their Kafka partitions, stored in Postgres.

The transaction that handles messages also moves the offset past them.
"""

from collections.abc import Mapping, Sequence

import asyncpg
import msgspec

from wms.db.database import Transaction
from wms.db.sql import load
from wms.errors import WmsError

SQL = load(__file__)


class PartitionLost(WmsError):  # noqa: N818 - an outcome, not a fault
    """Another instance of the service has moved the offset of a partition, so this transaction must not commit."""


class ConsumedTopic(msgspec.Struct, frozen=True):
    """A consumer that reads one topic of one Kafka cluster."""

    cluster_id: str
    consumer: str
    topic: str


async def begin(tx: Transaction, feed: ConsumedTopic, partitions: Sequence[int]) -> dict[int, int]:
    """Return the offset of the next message to read, by partition. Partitions that were never read begin at 0."""
    await tx.execute(SQL["begin"], feed.cluster_id, feed.consumer, feed.topic, partitions)
    rows = await tx.fetch(SQL["read"], feed.cluster_id, feed.consumer, feed.topic, partitions)
    return {row["partition"]: row["next_offset"] for row in rows}


async def advance(tx: Transaction, feed: ConsumedTopic, moves: Mapping[int, tuple[int, int]]) -> None:
    """Move the offsets of partitions. `moves` gives, by partition, the offset that must be stored now and the next one.

    Raise PartitionLost if another offset is stored, as another instance has taken over.
    """
    partitions = sorted(moves)
    moved = await tx.fetch(
        SQL["advance"],
        feed.cluster_id,
        feed.consumer,
        feed.topic,
        partitions,
        [moves[partition][0] for partition in partitions],
        [moves[partition][1] for partition in partitions],
    )
    if len(moved) < len(partitions):
        expected = {partition: before for partition, (before, _) in moves.items()}
        raise PartitionLost(f"{feed.consumer}: {feed.topic} is no longer at all of {expected}")
    if moved:
        tx.learn_now(moved[0]["now"])


async def find(tx: Transaction, feed: ConsumedTopic, partition: int) -> int | None:
    """Return the offset of the next message to read in one partition; None if the consumer never read it."""
    following: int | None = await tx.fetchval(
        SQL["find"], feed.cluster_id, feed.consumer, feed.topic, partition
    )
    return following


async def wait_briefly(tx: Transaction) -> None:
    """Let statements of this transaction wait for a lock for 3 s at most; then they raise LockNotAvailableError."""
    await tx.execute(SQL["wait_briefly"])


async def backend(tx: Transaction) -> int:
    """Return the process id of the Postgres server process that runs this transaction."""
    pid: int = await tx.fetchval(SQL["backend"])
    return pid


async def end_blockers(tx: Transaction, backend_pid: int) -> None:
    """End the database sessions that hold locks for which the server process `backend_pid` waits."""
    await tx.fetch(SQL["end_blockers"], backend_pid)


async def of_cluster(tx: Transaction, cluster_id: str) -> list[asyncpg.Record]:
    """Return a row for each consumer and partition of a cluster: its next offset, and the seconds since that last moved."""
    return await tx.fetch(SQL["of_cluster"], cluster_id)
