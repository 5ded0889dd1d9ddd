"""Pilots are asked once, site by site, to stop the jobs that they have."""

from tests.services.world import World
from wms.db import job, stop_order
from wms.job.job import StopOrder
from wms.messages.site_inbox import Kill


async def test_an_order_is_stored_and_sent_to_the_pilot_that_has_the_job(the_world: World) -> None:
    (held,) = await the_world.running()
    (free,) = await the_world.submitted()
    async with the_world.db.transaction() as tx:
        found = await job.lock(tx, [held.job_id])
        await stop_order.order(tx, list(found.values()), "hold", StopOrder("user ann", "enough"))
        now = await job.read(tx, [held.job_id, free])
    assert (now[held.job_id].stop_requested, now[free].stop_requested) == ("hold", "")
    (told,) = [each for each in the_world.told() if isinstance(each, Kill)]
    assert (told.pilot_id, told.jobs) == ("p-1", (held,))
