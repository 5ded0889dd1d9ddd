"""The claim: a waiting job is given once, by who knows the limits, and a repeated request finds its offer."""

import asyncio

from tests.services.world import World
from wms.db import claim as db_claim
from wms.db.claim import ClaimedJob, JobClaim
from wms.db.database import Transaction
from wms.ids import JobId, PilotId, RequestId, TaskQueueId


async def claims(the_world: World, *job_ids: JobId, request: str = "r") -> list[JobClaim]:
    queues = {job_id: TaskQueueId((await the_world.job(job_id))["tq_id"]) for job_id in job_ids}
    return [
        JobClaim(job_id, PilotId("p-1"), RequestId(request), "A", "ce", queues[job_id]) for job_id in job_ids
    ]


async def claim(tx: Transaction, wanted: list[JobClaim]) -> list[ClaimedJob] | None:
    return await db_claim.claim(
        tx, wanted, 60.0, await tx.fetchval("select last_value from limit_generation")
    )


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
        assert await db_claim.claim(tx, wanted, 60.0, known - 1) is None
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
        found = await db_claim.offered(tx, ids)
        assert {name: [each.job_id for each in offers] for name, offers in found.items()} == {
            "r1": [one],
            "r2": [two],
        }
        await tx.execute("update lease set expires_at = now() - interval '1 s' where job_id = $1", one)
        assert set(await db_claim.offered(tx, ids)) == {"r2"}


async def test_offers_that_are_too_large_are_found(the_world: World) -> None:
    small, large = (await the_world.submitted())[0], (await the_world.submitted(arguments=["x" * 5_000]))[0]
    async with the_world.db.transaction() as tx:
        await claim(tx, await claims(the_world, small, large))
        assert [each.job_id for each in await db_claim.large_offers(tx, [small, large], 3_000)] == [large]
        assert await db_claim.large_offers(tx, [], 1) == []
