"""Offsets of consumers, moved by compare-and-set in the transaction that handles the messages."""

from collections.abc import Mapping, Sequence

import asyncpg
import msgspec

from wms.db.database import Transaction
from wms.db.sql import load
from wms.errors import WmsError

SQL = load(__file__)


class PartitionLost(WmsError):  # noqa: N818 - an outcome, not a fault
    """Another instance has moved the offset: this transaction must not commit."""


class Feed(msgspec.Struct, frozen=True):
    """One consumer of one topic in one cluster."""

    cluster_id: str
    consumer: str
    topic: str


async def begin(tx: Transaction, feed: Feed, partitions: Sequence[int]) -> dict[int, int]:
    """Return the next offset of each partition; 0 for a new one, or a new cluster."""
    await tx.execute(SQL["begin"], feed.cluster_id, feed.consumer, feed.topic, partitions)
    rows = await tx.fetch(SQL["read"], feed.cluster_id, feed.consumer, feed.topic, partitions)
    return {row["partition"]: row["next_offset"] for row in rows}


async def advance(tx: Transaction, feed: Feed, moves: Mapping[int, tuple[int, int]]) -> None:
    """Move the offset of each partition from the expected to the next, or raise PartitionLost."""
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
    """Return the next offset of one partition, None if the consumer has never read it."""
    following: int | None = await tx.fetchval(
        SQL["find"], feed.cluster_id, feed.consumer, feed.topic, partition
    )
    return following


async def wait_briefly(tx: Transaction) -> None:
    """Make the transaction fail with LockNotAvailableError instead of waiting long for a lock."""
    await tx.execute(SQL["wait_briefly"])


async def backend(tx: Transaction) -> int:
    """Return the Postgres process of this transaction."""
    pid: int = await tx.fetchval(SQL["backend"])
    return pid


async def end_blockers(tx: Transaction, backend_pid: int) -> None:
    """End the sessions whose locks another session waits for."""
    await tx.fetch(SQL["end_blockers"], backend_pid)


async def of_cluster(tx: Transaction, cluster_id: str) -> list[asyncpg.Record]:
    """Return the position of every consumer in every partition of a cluster, with its age in seconds."""
    return await tx.fetch(SQL["of_cluster"], cluster_id)
