"""Jobs that ran, as they are written down for simulations."""

import pytest

from tests.services.world import World, pilot, result
from wms.db import recording


async def test_jobs_that_ran_are_recorded_by_id_in_pages(the_world: World) -> None:
    held = await the_world.running(3, memory_mb=5, priority=2)
    await the_world.report(finish=tuple(result(each) for each in held))
    await the_world.sql("update ended_attempt set started_at = ended_at - make_interval(secs => 60 * job_id)")
    ids = sorted(each.job_id for each in held)
    async with the_world.db.transaction() as tx:
        last, first = await recording.jobs_after(tx, 0, 2)
        assert last == ids[1]
        end, rest = await recording.jobs_after(tx, last, 10)
        assert await recording.jobs_after(tx, end, 10) == (0, [])
    found = [*first, *rest]
    assert [each.run_seconds for each in found] == pytest.approx([60.0 * job_id for job_id in ids])
    assert {(each.site, each.user_priority, each.requirements.min_ram_mb) for each in found} == {
        ("A", 2.0, 5)
    }
    assert {each.requirements.owner for each in found} == {"ann"}


async def test_what_never_ran_or_runs_still_is_no_record(the_world: World) -> None:
    await the_world.submitted()
    await the_world.running()
    async with the_world.db.transaction() as tx:
        assert await recording.jobs_after(tx, 0, 10) == (0, [])


async def test_of_several_attempts_the_last_that_ran_counts(the_world: World) -> None:
    (held,) = await the_world.running()
    await the_world.expire(held.job_id)
    (again,) = await the_world.match(pilot("p-2", site="B"))
    await the_world.report(pilot("p-2", site="B"), accept=(again,), start=(again,))
    await the_world.report(pilot("p-2", site="B"), finish=(result(again),))
    async with the_world.db.transaction() as tx:
        _, (found,) = await recording.jobs_after(tx, 0, 10)
    assert found.site == "B"
