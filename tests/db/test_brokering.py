"""Placements follow their jobs, and the broker is asked for jobs that are Checking."""

import pytest

from tests.services.placing import bound, brokered, placed, placements, told_broker
from tests.services.world import World
from wms.db import brokering


async def test_an_order_is_there_exactly_while_the_job_is_checking(the_world: World) -> None:
    job_id = await brokered(the_world)
    async with the_world.db.transaction() as tx:
        found = await brokering.asked(tx, job_id)
        assert found is not None
        assert (found.seq, found.tries) == (3, 1)
    await placed(the_world, job_id)
    async with the_world.db.transaction() as tx:
        assert await brokering.asked(tx, job_id) is None


@pytest.mark.parametrize("ends_as", ["Failed", "Ended"])
async def test_a_job_whose_pilot_is_lost_is_placed_anew(the_world: World, ends_as: str) -> None:
    job_id = await brokered(the_world)
    await placed(the_world, job_id)
    told_broker(the_world)
    mine = await bound(the_world, job_id)
    held = await the_world.match(mine)
    await the_world.report(mine, accept=tuple(held), start=tuple(held) if ends_as == "Ended" else ())
    await the_world.expire(job_id)
    assert await the_world.state(job_id) == "Checking"
    (one,) = await placements(the_world, job_id)
    assert (one.state, one.reason) == (ends_as, "LEASE_EXPIRED")
    assert [each.job_id for each in told_broker(the_world)] == [job_id]
