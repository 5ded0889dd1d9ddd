"""Offsets of consumers, advanced by compare-and-set in the transaction that handles the messages."""

from collections.abc import Mapping, Sequence

import asyncpg
import msgspec

from wms.db.database import Transaction
from wms.db.sql import load
from wms.errors import WmsError

SQL = load(__file__)


class PartitionLost(WmsError):  # noqa: N818 - an outcome, not a fault
    """Another instance has moved the offset, so this transaction must not commit."""


class Feed(msgspec.Struct, frozen=True):
    """One consumer of one topic in one cluster."""

    cluster_id: str
    consumer: str
    topic: str


async def begin(tx: Transaction, feed: Feed, partitions: Sequence[int]) -> dict[int, int]:
    """Return the next offset of each partition. New partitions, and partitions of a new cluster, begin at 0."""
    await tx.execute(SQL["begin"], feed.cluster_id, feed.consumer, feed.topic, partitions)
    rows = await tx.fetch(SQL["read"], feed.cluster_id, feed.consumer, feed.topic, partitions)
    return {row["partition"]: row["next_offset"] for row in rows}


async def advance(tx: Transaction, feed: Feed, moves: Mapping[int, tuple[int, int]]) -> None:
    """Move each partition's offset; `moves` has the expected and the next offset by partition. Raise PartitionLost on a mismatch."""
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


async def find(tx: Transaction, feed: Feed, partition: int) -> int | None:
    """Return the next offset of one partition; None if the consumer has never read the partition."""
    following: int | None = await tx.fetchval(
        SQL["find"], feed.cluster_id, feed.consumer, feed.topic, partition
    )
    return following


async def wait_briefly(tx: Transaction) -> None:
    """Limit the wait for a lock in this transaction to 3 s; then statements raise LockNotAvailableError."""
    await tx.execute(SQL["wait_briefly"])


async def backend(tx: Transaction) -> int:
    """Return the process id of the Postgres backend that runs this transaction."""
    pid: int = await tx.fetchval(SQL["backend"])
    return pid


async def end_blockers(tx: Transaction, backend_pid: int) -> None:
    """End the sessions that hold locks for which the session of this backend waits."""
    await tx.fetch(SQL["end_blockers"], backend_pid)


async def of_cluster(tx: Transaction, cluster_id: str) -> list[asyncpg.Record]:
    """Return the offset of every consumer in every partition of a cluster, and the seconds since it last moved."""
    return await tx.fetch(SQL["of_cluster"], cluster_id)
