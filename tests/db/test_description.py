"""Descriptions of jobs that are there: a job's own is rewritten, and one of a sweep gets its own."""

import msgspec

from tests.services.world import World
from wms.db import description, job
from wms.db.block import expand
from wms.db.description import Requeued, StoredDescription
from wms.ids import JobId, TaskQueueId
from wms.job.reasons import Code

CHANGED = '{"executable":"/bin/false"}'


async def stored(the_world: World, *job_ids: JobId) -> list[StoredDescription]:
    async with the_world.db.transaction() as tx:
        return await description.of_jobs(tx, job_ids)


async def replace(the_world: World, *found: StoredDescription) -> None:
    async with the_world.db.transaction() as tx:
        queue = TaskQueueId(await tx.fetchval("select min(tq_id) from task_queue"))
        await description.replace(tx, [Requeued(each, CHANGED, queue, 7.0, 9) for each in found])


async def rows_of(the_world: World, job_ids: list[JobId]) -> None:
    async with the_world.db.transaction() as tx:
        assert await expand(tx, job_ids)


async def test_jobs_of_their_own_and_of_sweeps_are_told_apart(the_world: World) -> None:
    (single,) = await the_world.submitted(name="one")
    swept = await the_world.swept(10)
    assert await stored(the_world, swept[3]) == [], "it has no row"
    await rows_of(the_world, swept[:2])
    found = await stored(the_world, swept[1], single)
    assert [(each.job_id, each.shared) for each in found] == [(single, False), (swept[1], True)]
    assert msgspec.json.decode(found[0].body)["name"] == "one"


async def test_a_job_of_its_own_has_another_description_and_queue(the_world: World) -> None:
    await the_world.submitted(memory_mb=1)
    one, other = await the_world.submitted(2)
    before = (await stored(the_world, one))[0]
    await replace(the_world, before)
    after = (await stored(the_world, one))[0]
    assert (after.description_id, after.body) == (before.description_id, CHANGED)
    moved = await the_world.job(one)
    assert (moved["user_priority"], moved["max_attempts"]) == (7.0, 9)
    assert moved["tq_id"] != (await the_world.job(other))["tq_id"]
    assert (await stored(the_world, other))[0].body != CHANGED


async def test_a_job_of_a_sweep_gets_one_of_its_own_and_the_others_keep_theirs(the_world: World) -> None:
    swept = await the_world.swept(10)
    await rows_of(the_world, swept[:3])
    one, other, _ = await stored(the_world, *swept[:3])
    await replace(the_world, one)
    mine, theirs = await stored(the_world, swept[0], swept[1])
    assert (mine.body, mine.shared, mine.description_id != one.description_id) == (CHANGED, False, True)
    assert theirs == other


async def test_why_jobs_moved_last_is_told_with_who_moved_them(the_world: World) -> None:
    held, killed = await the_world.submitted(2)
    await the_world.order("hold", held, reason="wait for data")
    await the_world.order("kill", killed)
    async with the_world.db.transaction() as tx:
        jobs = await job.read(tx, [held, killed])
        found = await description.last_reasons(tx, list(jobs.values()))
    reason, source = found[held]
    assert (reason.code, "wait for data" in reason.text) == (Code.HELD_BY_USER, True)
    assert source == "user ann"
    assert found[killed][0].code == Code.KILLED_BY_USER
