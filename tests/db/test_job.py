"""Jobs: born waiting, locked in order, claimed once, and moved with their history."""

import asyncio
import json
from typing import Any

import asyncpg
import pytest

from tests.services.world import World, pilot
from tests.waiting import eventually
from wms.db import job
from wms.db.database import Transaction
from wms.db.job import Claim, Claimed, JobMove
from wms.ids import JobId, PilotId, RequestId, TaskQueueId
from wms.job.job import Action, StopOrder, ordered
from wms.job.state import State
from wms.messages import changes, events


async def claims(the_world: World, *job_ids: JobId, request: str = "r") -> list[Claim]:
    queues = {job_id: TaskQueueId((await the_world.job(job_id))["tq_id"]) for job_id in job_ids}
    return [
        Claim(job_id, PilotId("p-1"), RequestId(request), "A", "ce", queues[job_id]) for job_id in job_ids
    ]


async def claim(tx: Transaction, wanted: list[Claim]) -> list[Claimed] | None:
    return await job.claim(tx, wanted, 60.0, await tx.fetchval("select last_value from limit_generation"))


async def test_ids_follow_each_other_and_are_nobody_elses(the_world: World) -> None:
    async with the_world.db.transaction() as one, the_world.db.transaction() as other:
        first, second, third = (
            await job.reserve(one, 5),
            await job.reserve(other, 3),
            await job.reserve(one, 1),
        )
    taken = [*range(first, first + 5), *range(second, second + 3), third]
    assert len(set(taken)) == 9


async def test_a_waiting_job_is_claimed_once(the_world: World) -> None:
    one, two = await the_world.submitted(2)
    wanted = await claims(the_world, two, one)
    async with the_world.db.transaction() as tx:
        first = await claim(tx, wanted[:1])
        again = await claim(tx, wanted)
        nothing = await claim(tx, [])
    assert first
    assert again
    assert [(each.job_id, each.epoch, each.pilot_id) for each in first] == [(two, 1, "p-1")]
    assert [each.job_id for each in again] == [one]
    assert nothing == []
    assert first[0].offered().attempt_id == (two, 1)
    assert await the_world.state(two) == "Matched"


async def test_a_job_that_was_edited_into_another_queue_is_not_claimed(the_world: World) -> None:
    (job_id,) = await the_world.submitted()
    wanted = await claims(the_world, job_id)
    await the_world.submitted(memory_mb=5)
    await the_world.sql(
        "update job set tq_id = (select max(tq_id) from task_queue) where job_id = $1", job_id
    )
    async with the_world.db.transaction() as tx:
        assert await claim(tx, wanted) == []


async def test_nothing_is_claimed_by_who_does_not_know_of_limits_that_came(the_world: World) -> None:
    (job_id,) = await the_world.submitted()
    wanted = await claims(the_world, job_id)
    async with the_world.db.transaction() as tx:
        known = await tx.fetchval("select last_value from limit_generation")
        assert await job.claim(tx, wanted, 60.0, known - 1) is None
    assert await the_world.state(job_id) == "Waiting"


async def test_a_claim_does_not_wait_for_a_job_that_another_has_its_hands_on(the_world: World) -> None:
    busy, free = await the_world.submitted(2)
    wanted = await claims(the_world, busy, free)
    seen: list[bool] = []

    async def work(tx: Transaction) -> list[JobId]:
        seen.append(tx.wary)
        return [each.job_id for each in await claim(tx, wanted) or []]

    async with the_world.db.transaction() as other:
        await other.execute("select from job where job_id = $1 for update", busy)
        async with asyncio.timeout(20):
            assert await the_world.db.attempt(work) == [free]
    assert seen == [False, True]


async def test_a_request_that_is_asked_again_finds_what_it_was_offered(the_world: World) -> None:
    one, two = await the_world.submitted(2)
    async with the_world.db.transaction() as tx:
        await claim(tx, await claims(the_world, one, request="r1"))
    async with the_world.db.transaction() as tx:
        await claim(tx, await claims(the_world, two, request="r2"))
        ids = [RequestId(name) for name in ("r1", "r2", "r3")]
        found = await job.offered(tx, ids)
        assert {name: [each.job_id for each in offers] for name, offers in found.items()} == {
            "r1": [one],
            "r2": [two],
        }
        await tx.execute("update lease set expires_at = now() - interval '1 s' where job_id = $1", one)
        assert set(await job.offered(tx, ids)) == {"r2"}


async def test_offers_that_are_too_large_are_found(the_world: World) -> None:
    small, large = (await the_world.submitted())[0], (await the_world.submitted(arguments=["x" * 5_000]))[0]
    async with the_world.db.transaction() as tx:
        await claim(tx, await claims(the_world, small, large))
        assert [each.job_id for each in await job.large_offers(tx, [small, large], 3_000)] == [large]
        assert await job.large_offers(tx, [], 1) == []


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
    the_world.take(changes.TOPIC)
    await moved(the_world, "hold", one, two)
    assert await the_world.state(one) == "Held"
    assert (await the_world.history(one))[-1] == "Held"
    rows = await the_world.sql("select distinct source from job_move")
    assert [row["source"] for row in rows] == ["a test"]
    facts = [json.loads(each) for each in the_world.take(events.TOPIC)]
    assert sorted(each["job_id"] for fact in facts for each in fact["events"]) == [one, two]
    (left,) = [json.loads(each) for each in the_world.take(changes.TOPIC)]
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
