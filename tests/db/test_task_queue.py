"""Task queues: one for each key, there while jobs wait or return, and removed when long empty."""

import asyncio
import json

import msgspec
import pytest

from tests.services.world import World
from tests.unit.matching.strategies import asks
from wms.db import task_queue
from wms.db.database import Database, Transaction
from wms.db.task_queue import IDS_IN_A_MESSAGE
from wms.ids import JobId, TaskQueueId
from wms.matching.grouping import Requirements, key
from wms.messages import queue_changes

WANTED = asks(sites=("A",), tags=("gpu",), requirements="other.a > 1")


async def made(tx: Transaction, *wanted: Requirements) -> list[TaskQueueId]:
    found = await task_queue.find_or_make(tx, {key(each): each for each in wanted})
    return [found[key(each)] for each in wanted]


async def test_equal_requirements_share_a_queue_and_others_do_not(tx: Transaction) -> None:
    one, other = await made(tx, WANTED, asks())
    assert await made(tx, asks(), asks(owner="p"), WANTED) == [other, max(await every(tx)), one]
    assert len(await every(tx)) == 3


async def every(tx: Transaction) -> list[TaskQueueId]:
    return [row["tq_id"] for row in await tx.fetch("select tq_id from task_queue where removed_at is null")]


async def test_a_queue_requires_what_it_was_made_of(tx: Transaction) -> None:
    (one,) = await made(tx, WANTED)
    assert await task_queue.read(tx, [one, one, TaskQueueId(10**6)]) == {one: WANTED}


async def empty(the_world: World, *, for_seconds: float = 600) -> int:
    async with the_world.db.transaction() as tx:
        await task_queue.remove_long_empty(tx, 10**6)  # notes which are empty
        await tx.execute(
            "update task_queue set empty_since = empty_since - make_interval(secs => $1)", for_seconds
        )
        return await task_queue.remove_long_empty(tx, 300)


async def test_a_queue_goes_when_nothing_has_waited_in_it_for_long(the_world: World) -> None:
    (job_id,) = await the_world.submitted()
    await the_world.submitted(memory_mb=5)
    assert await empty(the_world) == 0, "a job waits in each"
    await the_world.order("kill", job_id)
    assert await empty(the_world, for_seconds=100) == 0, "it may come back"
    assert await empty(the_world) == 1
    async with the_world.db.transaction() as tx:
        assert len(await every(tx)) == 1


async def test_a_removed_queue_is_the_same_when_it_comes_back(the_world: World) -> None:
    (job_id,) = await the_world.submitted()
    (queue,) = await the_world.sql("select tq_id from task_queue")
    await the_world.order("hold", job_id)
    assert await empty(the_world) == 1
    await the_world.order("release", job_id)
    async with the_world.db.transaction() as tx:
        assert await every(tx) == [queue["tq_id"]]
    await the_world.order("hold", job_id)
    assert await empty(the_world) == 1
    await the_world.submitted()
    async with the_world.db.transaction() as tx:
        assert await every(tx) == [queue["tq_id"]]


async def test_a_queue_that_a_job_is_about_to_enter_is_not_removed(db: Database) -> None:
    async with db.transaction() as tx:
        await made(tx, WANTED)
        await task_queue.remove_long_empty(tx, 10**6)
        await tx.execute("update task_queue set empty_since = now() - interval '1 d'")
    async with db.transaction() as submitting:
        await made(submitting, WANTED)
        async with asyncio.timeout(10), db.transaction() as cleaning:
            assert await task_queue.remove_long_empty(cleaning, 300) == 0


async def told(db: Database, tell: object) -> list[dict[str, object]]:
    payloads: list[bytes] = []
    db.on_posted = lambda parcels: payloads.extend(
        payload for each in parcels if each.topic == queue_changes.TOPIC for payload in each.payloads
    )
    async with db.transaction() as tx:
        tell(tx)  # type: ignore[operator]  # a function of the transaction
    return [json.loads(each) for each in payloads]


async def test_matchers_are_told_what_enters_by_queue_and_priority(db: Database) -> None:
    entering = [
        (TaskQueueId(q), p, JobId(j)) for q, p, j in ((1, 1.0, 5), (2, 1.0, 6), (1, 1.0, 7), (1, 9.0, 8))
    ]
    (message,) = await told(db, lambda tx: task_queue.tell_entered(tx, entering))
    assert message["levels"] == [[1, 1.0, [5, 7]], [2, 1.0, [6]], [1, 9.0, [8]]]


@pytest.mark.parametrize("count", [1, IDS_IN_A_MESSAGE, IDS_IN_A_MESSAGE + 1])
async def test_what_leaves_is_told_in_messages_of_a_bounded_size(db: Database, count: int) -> None:
    messages = await told(db, lambda tx: task_queue.tell_left(tx, [JobId(n) for n in range(count)]))
    left = [msgspec.convert(each, queue_changes.Left).job_ids for each in messages]
    assert [job_id for ids in left for job_id in ids] == list(range(count))
    assert max(map(len, left)) <= IDS_IN_A_MESSAGE
    assert len(left) == -(-count // IDS_IN_A_MESSAGE)
