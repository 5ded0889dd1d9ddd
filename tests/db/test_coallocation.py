"""Groups that cannot start together any more are found among those that are placed."""

from typing import Any

import pytest

from tests.services.world import World
from wms.db import coallocation, placement
from wms.db.placement import NewPlacement
from wms.ids import JobId


async def placed(world: World, **more: Any) -> list[JobId]:
    """Submit an array of two jobs and place both."""
    ids = await world.swept(2, **{"coallocate": True, "preferences": {}} | more)
    async with world.db.transaction() as tx:
        await placement.order(
            tx,
            [NewPlacement(job_id=each, site="A", ce="ce", agreement_id=f"a-{each}") for each in ids],
            "test",
        )
    return ids


async def torn(world: World) -> list[tuple[list[int], int, str]]:
    async with world.db.transaction() as tx:
        return [(list(ids), away, state) for ids, away, state in await coallocation.torn(tx, 10)]


@pytest.mark.parametrize(("order", "state"), [("hold", "Held"), ("kill", "Killed")])
async def test_a_group_is_torn_when_one_of_its_jobs_cannot_start(
    the_world: World, order: str, state: str
) -> None:
    ids = await placed(the_world)
    assert await torn(the_world) == []
    await the_world.order(order, ids[1])
    assert await torn(the_world) == [(list(ids), ids[1], state)]


async def test_a_job_that_began_and_ended_tears_no_group(the_world: World) -> None:
    ids = await placed(the_world)
    await the_world.sql("update placement set state = 'Started' where job_id = $1", ids[0])
    await the_world.order("kill", ids[0])
    assert await torn(the_world) == []


async def test_jobs_of_other_arrays_are_each_by_themselves(the_world: World) -> None:
    ids = await placed(the_world, coallocate=False)
    await the_world.order("hold", ids[1])
    assert await torn(the_world) == []
