"""`wms why` of brokered jobs: where the broker has them."""

from datetime import UTC, datetime

from tests.services.placing import bound, brokered, placed
from tests.services.world import World, user
from wms.ids import JobId
from wms.messages import replies
from wms.messages.queries import WhyJob


async def why(world: World, job_id: int) -> str:
    answer = await world.ask(user(), WhyJob(query_id="q", job_id=JobId(job_id)))
    assert isinstance(answer, replies.JobWhy)
    return answer.summary


async def test_a_job_that_nobody_brokers_says_so(the_world: World) -> None:
    job_id = await brokered(the_world)
    said = await why(the_world, job_id)
    assert "the broker was asked at" in said
    assert "and has not yet" in said
    await the_world.sql("update broker_order set tries = 3")
    assert "3 times" in await why(the_world, job_id)


async def test_a_placed_job_says_where_and_by_when(the_world: World) -> None:
    job_id = await brokered(the_world)
    noon = datetime(2030, 1, 1, 12, tzinfo=UTC)
    await placed(the_world, job_id, rank=2, start_at=noon, latest_start=noon.replace(hour=13))
    said = await why(the_world, job_id)
    assert "A/ce (placement 1, rank 2), its pilot is about to be sent" in said
    assert "reserved from 2030-01-01 12:00:00 UTC, it must start by 2030-01-01 13:00:00 UTC" in said


async def test_an_element_that_hangs_is_told_with_what_is_waited_for(the_world: World) -> None:
    job_id = await brokered(the_world)
    await placed(the_world, job_id)
    await bound(the_world, job_id)
    await the_world.sql(
        "insert into ce_state (site, ce, state, reason) values ('A', 'ce', 'backing-off', 'sbatch: Socket timed out')"
    )
    said = await why(the_world, job_id)
    assert "is being sent since" in said
    assert (
        "has not said whether it has arrived (sbatch: Socket timed out); the next best element gets" in said
    )


async def test_where_it_failed_before_is_told(the_world: World) -> None:
    job_id = await brokered(the_world)
    await placed(the_world, job_id)
    mine = await bound(the_world, job_id)
    await the_world.match(mine)
    await the_world.expire(job_id)
    assert "; before that at A/ce: " in await why(the_world, job_id)
