"""Steps are carried out once, and not for jobs that have moved on."""

from tests.services.brokers import BrokerWorld
from tests.services.world import World


async def test_what_was_taken_over_is_carried_out_once(brokers: BrokerWorld, the_world: World) -> None:
    await brokers.advertise("A")
    (job_id,) = await brokers.submitted()
    await brokers.told()
    records = await brokers.brokering._claim()
    await the_world.sql("update job_record set claimed_until = now() - interval '1 s'")
    await BrokerWorld(the_world, "b-2").step()
    await brokers.brokering._take(records)
    assert len(await brokers.placements(job_id)) == 1


async def test_a_killed_job_is_not_placed(brokers: BrokerWorld, the_world: World) -> None:
    await brokers.advertise("A")
    (job_id,) = await brokers.submitted()
    await brokers.told()
    await the_world.order("kill", job_id)
    await brokers.step()
    assert await brokers.placements(job_id) == []
    assert (await brokers.record(job_id)).phase == "Over"
