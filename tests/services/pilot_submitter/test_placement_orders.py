"""A message on new placements wakes the loop that carries them out, once its transaction is over."""

from services.pilot_submitter.placement_orders import PlacementOrders
from tests.services.placing import brokered, placed
from tests.services.world import World
from wms.messages.broker import PLACEMENTS_TOPIC, PlacementsOrdered
from wms.messages.wire import Codec


async def test_one_message_tells_of_all_jobs_that_were_placed_together(the_world: World) -> None:
    job_id = await brokered(the_world)
    assert the_world.take(PLACEMENTS_TOPIC) == []
    assert await placed(the_world, job_id) == [job_id]
    (told,) = the_world.take(PLACEMENTS_TOPIC)
    assert Codec[PlacementsOrdered](PlacementsOrdered).decode(told).jobs == 1
    assert await placed(the_world, job_id) == [], "it waits for its pilot already"
    assert the_world.take(PLACEMENTS_TOPIC) == []


async def test_the_loop_is_woken_after_the_commit(the_world: World) -> None:
    woken: list[bool] = []
    orders = PlacementOrders(lambda: woken.append(True))
    async with the_world.db.transaction() as tx:
        await orders.handle(tx, [])
        assert not woken
    assert woken == [True]
