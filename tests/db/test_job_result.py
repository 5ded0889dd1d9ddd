"""How jobs went, as a table of results tells it: the last attempt of each."""

from tests.services.world import World, pilot, result
from wms.db import job_result
from wms.ids import JobId
from wms.job.reasons import Code
from wms.messages.replies import JobResult
from wms.messages.reports import Usage


async def of(the_world: World, *job_ids: JobId) -> dict[JobId, JobResult]:
    async with the_world.db.transaction() as tx:
        return await job_result.of_jobs(tx, list(job_ids))


async def test_the_last_attempt_of_each_job_is_told(the_world: World) -> None:
    (first,) = await the_world.running()
    await the_world.expire(first.job_id)
    (again,) = await the_world.match(pilot("p-2"))
    await the_world.report(pilot("p-2"), accept=(again,), start=(again,))
    usage = Usage(cpu_user_seconds=2.0, cpu_system_seconds=0.5, wall_seconds=3.0, max_rss_bytes=4_096)
    failed = result(again, "failed", Code.EXIT_CODE, exit_code=3, usage=usage)
    await the_world.report(pilot("p-2"), finish=(failed,))
    (waiting,) = await the_world.submitted(1)
    found = await of(the_world, first.job_id, waiting)
    told = found[first.job_id]
    assert (told.attempt, told.exit_code, told.ce) == (2, 3, "ce")
    assert (told.cpu_seconds, told.wall_seconds, told.max_rss_bytes) == (2.5, 3.0, 4_096)
    assert told.started_at is not None
    assert told.ended_at is not None
    assert found[waiting] == JobResult()


async def test_a_job_of_an_array_has_its_index_and_parameters(the_world: World) -> None:
    ids = await the_world.swept(3, parameters={"alpha": ["a", "b", "c"]})
    held = await the_world.running(1)
    assert held[0].job_id in ids
    told = (await of(the_world, held[0].job_id))[held[0].job_id]
    assert told.array_index == ids.index(held[0].job_id)
    assert told.parameters == {"alpha": "abc"[told.array_index]}
