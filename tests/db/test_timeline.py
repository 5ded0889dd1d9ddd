"""When jobs were submitted, offered, begun and ended, with rows of their own or in blocks."""

from tests.services.world import World, pilot, result
from wms.db import timeline
from wms.db.timeline import JobTimes
from wms.ids import JobId
from wms.job.reasons import Code


async def times(the_world: World, *ranges: tuple[int, int]) -> list[JobTimes]:
    async with the_world.db.transaction() as tx:
        return await timeline.of_ranges(tx, ranges)


async def test_a_life_has_its_times_in_order(the_world: World) -> None:
    (held,) = await the_world.running(1, name="sim")
    failed = result(held, "failed", Code.EXIT_CODE, exit_code=3)
    await the_world.report(finish=(failed,))
    (found,) = await times(the_world, (held.job_id, held.job_id))
    assert (found.name, found.state, found.exit_code, found.attempts) == ("sim", "Failed", 3, 1)
    assert found.offered_at
    assert found.started_at
    assert found.ended_at
    assert found.submitted_at <= found.offered_at <= found.started_at <= found.ended_at
    assert found.wait_seconds == (found.started_at - found.submitted_at).total_seconds()


async def test_of_several_attempts_the_first_offer_and_the_last_end_count(the_world: World) -> None:
    (held,) = await the_world.running()
    await the_world.expire(held.job_id)
    ((job_id, epoch),) = await the_world.match(pilot("p-2"))
    assert (job_id, epoch) == (held.job_id, 2)
    (found,) = await times(the_world, (job_id, job_id))
    first, second = await the_world.attempts(job_id)
    assert (found.offered_at, found.ended_at) == (first["offered_at"], first["ended_at"])
    assert second["offered_at"] > first["offered_at"]
    assert found.pilot_id == "p-2"


async def test_a_job_that_never_began_did_not_wait_for_a_known_time(the_world: World) -> None:
    (job_id,) = await the_world.submitted()
    (found,) = await times(the_world, (job_id, job_id))
    assert (found.offered_at, found.started_at, found.wait_seconds) == (None, None, None)


async def test_jobs_in_blocks_are_among_those_of_a_range(the_world: World) -> None:
    ids = await the_world.swept(100, name="s%n")
    (single,) = await the_world.submitted()
    await the_world.order("kill", *ids[10:20])
    found = await times(the_world, (ids[5], ids[14]), (single, single), (10**6, 10**7))
    assert [each.job_id for each in found] == [*ids[5:15], single]
    assert [each.state for each in found] == ["Waiting"] * 5 + ["Killed"] * 5 + ["Waiting"]


async def test_pilots_are_counted_since_a_time_and_those_that_had_work(the_world: World) -> None:
    (held,) = await the_world.running()
    await the_world.report(finish=(result(held),))
    await the_world.add_pilot(pilot("p-idle"))
    await the_world.add_pilot(pilot("p-old"))
    await the_world.sql("update pilot set submitted_at = now() - interval '1 d' where pilot_id = 'p-old'")
    async with the_world.db.transaction() as tx:
        began = await tx.fetchval("select now() - interval '1 h'")
        assert await timeline.pilots_since(tx, began) == (2, 1)
    assert await times(the_world, (JobId(10**6), JobId(10**6))) == []
