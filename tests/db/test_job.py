"""Jobs: born waiting, locked in order, and moved with their history."""

import asyncio
import json
from typing import Any

import asyncpg
import pytest

from tests.db.test_claim import claim, claims
from tests.services.world import World, pilot
from tests.waiting import eventually
from wms.db import job
from wms.db.database import Transaction
from wms.db.job import JobMove
from wms.ids import JobId, TaskQueueId
from wms.job.job import Action, StopOrder, ordered
from wms.job.state import State
from wms.messages import events, queue_changes


async def test_ids_follow_each_other_and_are_nobody_elses(the_world: World) -> None:
    async with the_world.db.transaction() as one, the_world.db.transaction() as other:
        first, second, third = (
            await job.reserve(one, 5),
            await job.reserve(other, 3),
            await job.reserve(one, 1),
        )
    taken = [*range(first, first + 5), *range(second, second + 3), third]
    assert len(set(taken)) == 9


async def test_who_waits_for_a_lock_sees_what_the_other_did(the_world: World) -> None:
    (job_id,) = await the_world.submitted()
    begun: list[bool] = []

    async def second() -> Any:
        async with the_world.db.transaction() as tx:
            begun.append(True)
            return (await job.lock(tx, [job_id]))[job_id]

    async with the_world.db.transaction() as tx:
        await claim(tx, await claims(the_world, job_id))
        task = asyncio.create_task(second())
        await eventually(lambda: begun)
        assert not task.done()
    found = await task
    assert (found.state, found.lease.pilot_id) == (State.MATCHED, "p-1"), "its lease too"


async def test_facts_are_those_of_the_job_its_lease_and_who_wants_it_stopped(the_world: World) -> None:
    (held,) = await the_world.running()
    async with the_world.db.transaction() as tx:
        await job.ask_stop(tx, [held.job_id], "kill", StopOrder("user ann", "enough"))
        await job.ask_stop(tx, [], "kill", StopOrder("user ann", "enough"))
        found = await job.read(tx, [held.job_id, JobId(10**6)])
    assert set(found) == {held.job_id}
    facts = found[held.job_id]
    assert (facts.state, facts.site, facts.pilot_id, facts.stop_requested) == (
        State.RUNNING,
        "A",
        "p-1",
        "kill",
    )
    assert facts.stop_order == StopOrder("user ann", "enough")
    assert facts.lease is not None
    assert (facts.lease.epoch, facts.lease.phase) == (held.epoch, "accepted")


async def moved(the_world: World, action: Action, *job_ids: JobId) -> None:
    async with the_world.db.transaction() as tx:
        jobs = await job.lock(tx, job_ids)
        moves = [
            JobMove(job=each, steps=ordered(each, action, "a reason").steps, attempts=each.attempts)
            for each in jobs.values()
        ]
        await job.move(tx, moves, "a test")


async def test_a_move_writes_state_and_history_and_tells_everybody(the_world: World) -> None:
    one, two = await the_world.submitted(2)
    the_world.take(events.TOPIC)
    the_world.take(queue_changes.TOPIC)
    await moved(the_world, "hold", one, two)
    assert await the_world.state(one) == "Held"
    assert (await the_world.history(one))[-1] == "Held"
    rows = await the_world.sql("select distinct source from job_move")
    assert [row["source"] for row in rows] == ["a test"]
    facts = [json.loads(each) for each in the_world.take(events.TOPIC)]
    assert sorted(each["job_id"] for fact in facts for each in fact["events"]) == [one, two]
    (left,) = [json.loads(each) for each in the_world.take(queue_changes.TOPIC)]
    assert (left["type"], left["job_ids"]) == ("left", [one, two])


async def test_jobs_that_wait_are_listed_and_counted_by_queue(the_world: World) -> None:
    light = await the_world.submitted(2)
    urgent = await the_world.submitted(1, priority=5)
    other = await the_world.submitted(1, memory_mb=3)
    (held,) = await the_world.submitted()
    await the_world.order("hold", held)
    async with the_world.db.transaction() as tx:
        found = sorted((priority, ids) for _, priority, ids in await job.waiting(tx))
        assert found == [(1.0, light), (1.0, other), (5.0, urgent)]
        queue = TaskQueueId((await the_world.job(light[0]))["tq_id"])
        assert sorted(ids for _, _, ids in await job.waiting_in(tx, [queue])) == [light, urgent]
        assert (await job.count_waiting(tx))[queue] == 3


async def test_a_pilots_claims_end_with_its_transaction(the_world: World) -> None:
    (job_id,) = await the_world.submitted()
    wanted = await claims(the_world, job_id)

    async def failing(tx: Transaction) -> None:
        assert await claim(tx, wanted)
        await tx.fetchval("select 1 / 0")

    with pytest.raises(asyncpg.DivisionByZeroError):
        await the_world.db.attempt(failing)
    assert await the_world.state(job_id) == "Waiting"
    assert await the_world.match(pilot()) == [(job_id, 1)]
