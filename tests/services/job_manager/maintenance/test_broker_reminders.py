"""The broker is asked again for jobs that it has not placed in time."""

from services.job_manager.maintenance.broker_reminders import BrokerReminders
from tests.services.placing import brokered, placed, told_broker
from tests.services.world import World


async def test_the_broker_is_asked_again_for_what_it_does_not_answer(the_world: World) -> None:
    job_id = await brokered(the_world)
    told_broker(the_world)
    orders = BrokerReminders(the_world.db)
    await orders.look()
    assert told_broker(the_world) == [], "not due yet"
    await the_world.sql("update broker_order set due_at = now()")
    await orders.look()
    (again,) = told_broker(the_world)
    assert (again.job_id, again.seq) == (job_id, 3)
    await orders.look()
    assert told_broker(the_world) == [], "not before a while has passed"


async def test_it_is_asked_no_more_once_the_job_is_placed_or_ended(the_world: World) -> None:
    one, other = await brokered(the_world), await brokered(the_world)
    told_broker(the_world)
    await placed(the_world, one)
    await the_world.order("kill", other)
    await the_world.sql("update broker_order set due_at = now()")
    await BrokerReminders(the_world.db).look()
    assert told_broker(the_world) == []
