"""Consumers' offsets: moved by compare-and-set, so that who lost a partition cannot commit."""

import asyncio

import asyncpg
import pytest

from tests.waiting import eventually
from wms.db import offset
from wms.db.database import LOCK_SECONDS, Database, Transaction
from wms.db.offset import ConsumedTopic, PartitionLost

FEED = ConsumedTopic("cluster", "job-manager", "wms.job.commands")


async def test_a_partition_begins_at_nothing_and_stays_where_it_was(tx: Transaction) -> None:
    assert await offset.find(tx, FEED, 0) is None
    assert await offset.begin(tx, FEED, [0, 1]) == {0: 0, 1: 0}
    await offset.advance(tx, FEED, {0: (0, 7)})
    assert await offset.begin(tx, FEED, [0, 1, 2]) == {0: 7, 1: 0, 2: 0}
    assert await offset.find(tx, FEED, 0) == 7


async def test_another_cluster_begins_at_the_beginning(tx: Transaction) -> None:
    await offset.begin(tx, FEED, [0])
    await offset.advance(tx, FEED, {0: (0, 7)})
    assert await offset.begin(tx, ConsumedTopic("new", FEED.consumer, FEED.topic), [0]) == {0: 0}
    assert [(row["partition"], row["next_offset"]) for row in await offset.of_cluster(tx, "cluster")] == [
        (0, 7)
    ]


async def test_who_expects_another_offset_has_lost_the_partition(tx: Transaction) -> None:
    await offset.begin(tx, FEED, [0, 1])
    await offset.advance(tx, FEED, {0: (0, 7), 1: (0, 3)})
    with pytest.raises(PartitionLost, match=r"\{0: 0, 1: 3\}"):
        await offset.advance(tx, FEED, {0: (0, 9), 1: (3, 4)})


async def test_one_of_two_that_move_an_offset_does_and_the_other_does_not(db: Database) -> None:
    async with db.transaction() as tx:
        await offset.begin(tx, FEED, [0])
    async with db.transaction() as one:
        await offset.advance(one, FEED, {0: (0, 5)})
        moves = []

        async def second() -> None:
            async with db.transaction() as other:
                moves.append(await offset.backend(other))
                with pytest.raises(PartitionLost):
                    await offset.advance(other, FEED, {0: (0, 6)})
                moves.append(0)

        task = asyncio.create_task(second())
        await eventually(lambda: moves)
    await task
    async with db.transaction() as tx:
        assert await offset.find(tx, FEED, 0) == 5


async def test_a_move_tells_the_databases_time(tx: Transaction) -> None:
    await offset.begin(tx, FEED, [0])
    await offset.advance(tx, FEED, {0: (0, 1)})
    asked: list[str] = []
    tx.on_statement = lambda: asked.append("")
    assert await tx.now() == await tx.fetchval("select now()")
    assert len(asked) == 1, "the time was known by the way"


async def test_who_keeps_others_from_going_on_is_ended(database: str, db: Database) -> None:
    async with db.transaction() as tx:
        await offset.begin(tx, FEED, [0])
    blocker = await asyncpg.connect(database)
    await blocker.execute("begin; update consumer_offset set next_offset = 1")
    waiting: list[int] = []

    async def held_up() -> None:
        async with db.transaction() as tx:
            waiting.append(await offset.backend(tx))
            await offset.advance(tx, FEED, {0: (0, 2)})

    task = asyncio.create_task(held_up())
    await eventually(lambda: waiting)

    async def goes_on() -> bool:
        async with db.transaction() as tx:
            await offset.end_blockers(tx, waiting[0])
        return task.done()

    await eventually(goes_on)
    await task
    await eventually(blocker.is_closed)
    async with db.transaction() as tx:
        assert await offset.find(tx, FEED, 0) == 2


async def test_a_transaction_that_is_to_wait_briefly_fails_at_a_lock(db: Database) -> None:
    async with db.transaction() as tx:
        await offset.begin(tx, FEED, [0])
        await offset.wait_briefly(tx)
        assert await tx.fetchval("show lock_timeout") == "3s"
    async with db.transaction() as tx:
        assert await tx.fetchval("show lock_timeout") == f"{LOCK_SECONDS}s", "of that transaction alone"
