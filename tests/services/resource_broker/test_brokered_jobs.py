"""Jobs as the broker loads them."""

from services.resource_broker import brokered_jobs
from services.resource_broker.brokered_jobs import BrokeredJob
from tests.services.brokers import BrokerWorld
from tests.services.world import World
from wms.db import job_record


async def loaded(brokers: BrokerWorld, world: World) -> list[BrokeredJob]:
    await brokers.told()
    async with world.db.transaction() as tx:
        return await brokered_jobs.load(tx, await job_record.claim(tx, "b", 30.0, 10))


async def test_the_tag_that_binds_a_pilot_is_no_requirement_of_elements(
    brokers: BrokerWorld, the_world: World
) -> None:
    await brokers.submitted(tags=["gpu"])
    (job,) = await loaded(brokers, the_world)
    assert job.requirements.tags == ("gpu",)


async def test_jobs_of_one_program_and_owner_tell_of_each_other(
    brokers: BrokerWorld, the_world: World
) -> None:
    await brokers.submitted(1, arguments=["1"])
    await brokers.submitted(1, arguments=["2"])
    await brokers.submitted(1, executable="/bin/false")
    one, other, third = await loaded(brokers, the_world)
    assert one.job_class == other.job_class != third.job_class


async def test_only_failures_since_it_was_sent_to_the_broker_count(
    brokers: BrokerWorld, the_world: World
) -> None:
    await brokers.advertise("A")
    (job_id,) = await brokers.submitted()
    await brokers.step()
    await brokers.fail(job_id)
    (job,) = await loaded(brokers, the_world)
    assert [each.place.site for each in job.facts.failed] == ["A"]
    await the_world.sql("update job_record set since = now(), claimed_by = null, claimed_until = null")
    (job,) = await loaded(brokers, the_world)
    assert job.facts.failed == ()
