"""When one of several jobs that start together cannot start, the others do not run alone."""

from tests.services.brokers import BrokerWorld, sound
from tests.services.resource_broker.sites import Sites, settled, states, submitted
from tests.services.world import World, pilot, result
from wms.auth.principal import Principal
from wms.ids import AttemptId, JobId
from wms.job.reasons import Code
from wms.messages.site_inbox import Kill


async def test_when_one_placement_fails_all_are_taken_back_and_placed_anew(
    brokers: BrokerWorld, the_world: World, sites: Sites
) -> None:
    ids = await submitted(the_world)
    await settled(brokers, sites, *ids)
    failed = (await brokers.placements(ids[1]))[0]
    await brokers.fail(ids[1])
    assert await states(the_world, ids) == ["Waiting", "Checking"]
    await brokers.regrouping.gather()
    assert await states(the_world, ids) == ["Checking", "Checking"]
    assert [each.reason for each in await brokers.placements(ids[0])] == ["NOT_TOGETHER"]
    await brokers.step()
    await sites.decide(*ids)
    await settled(brokers, sites, *ids)
    placed = [(await brokers.placements(each))[-1] for each in ids]
    assert failed.site not in {each.site for each in placed}
    assert len({each.site for each in placed}) == 2
    await sites.decide()
    assert await sites.held() == 2
    await sound(the_world)


async def test_a_job_that_its_user_holds_is_waited_for(
    brokers: BrokerWorld, the_world: World, sites: Sites
) -> None:
    ids = await submitted(the_world)
    await settled(brokers, sites, *ids)
    await the_world.order("hold", ids[0])
    await brokers.regrouping.gather()
    await brokers.step()
    assert await states(the_world, ids) == ["Held", "Checking"]
    record = await brokers.record(ids[1])
    assert (record.reason, record.reason_text) == ("WITH_OTHERS", f"job {ids[0]} of it is Held")
    await brokers.upkeep.close()
    await sites.decide()
    assert await sites.held() == 0
    await the_world.order("release", ids[0])
    await brokers.step()
    await sites.decide(*ids)
    await settled(brokers, sites, *ids)
    await sites.decide()
    assert await sites.held() == 2
    assert await states(the_world, ids) == ["Waiting", "Waiting"]
    await sound(the_world)


async def started_alone(the_world: World, job_id: JobId) -> tuple[Principal, AttemptId]:
    """Have a pilot start a placed job; return who the pilot is, and its attempt."""
    bound = pilot("p-9", job_id=job_id)
    await the_world.sql("update placement set state = 'Sent', pilot_id = 'p-9' where job_id = $1", job_id)
    (held,) = await the_world.match(bound)
    await the_world.report(bound, accept=(held,), busy=1)
    await the_world.report(bound, start=(held,), busy=1)
    return bound, held


async def test_jobs_that_run_without_the_others_are_stopped_and_held(
    brokers: BrokerWorld, the_world: World, sites: Sites
) -> None:
    ids = await submitted(the_world)
    await settled(brokers, sites, *ids)
    bound, held = await started_alone(the_world, ids[0])
    await brokers.fail(ids[1])
    await brokers.regrouping.gather()
    await brokers.regrouping.gather()
    kills = [each for each in the_world.told() if isinstance(each, Kill)]
    assert [each.jobs for each in kills] == [(held,)], "it is told once"
    await brokers.step()
    assert await states(the_world, ids) == ["Running", "Checking"]
    record = await brokers.record(ids[1])
    assert (record.reason, record.reason_text) == ("WITH_OTHERS", f"job {ids[0]} of it is Running")
    await the_world.report(bound, finish=(result(held, "killed", Code.KILLED_BY_USER),))
    assert await states(the_world, ids) == ["Held", "Checking"]
    assert (await the_world.reasons(ids[0]))[-1] == "COALLOCATION_BROKEN"
    await brokers.upkeep.close()
    await sites.decide()
    assert await sites.held() == 0
    await sound(the_world)
    await the_world.order("release", ids[0])
    await brokers.due()
    await settled(brokers, sites, *ids)
    assert await states(the_world, ids) == ["Waiting", "Waiting"]


async def test_a_job_that_is_left_when_another_has_ended_fails_for_that_reason(
    brokers: BrokerWorld, the_world: World, sites: Sites
) -> None:
    ids = await submitted(the_world)
    await settled(brokers, sites, *ids)
    bound, held = await started_alone(the_world, ids[0])
    await brokers.fail(ids[1])
    await the_world.report(bound, finish=(result(held),))
    await brokers.regrouping.gather()
    await brokers.step()
    assert await states(the_world, ids) == ["Done", "Failed"]
    assert (await the_world.reasons(ids[1]))[-1] == "COALLOCATION_BROKEN"
    await sites.decide()
    rows = await the_world.sql("select state from agreement where job_id = $1", ids[1])
    assert [row["state"] for row in rows] == ["Cancelled"]
    await sound(the_world)
