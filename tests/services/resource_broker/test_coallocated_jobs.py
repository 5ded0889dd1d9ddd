"""Co-allocated jobs over a real database: placed together or not at all, and taken back together."""

from services.resource_broker import brokered_jobs
from services.resource_broker.step_execution import carry_out
from tests.services.brokers import BrokerWorld, sound
from tests.services.resource_broker.sites import Sites, settled, states, submitted
from tests.services.world import World, user
from wms.messages import queries


async def test_the_ids_of_one_array_are_contiguous(the_world: World) -> None:
    ids = await submitted(the_world, 3)
    rows = await the_world.sql("select job_id, array_index from job order by job_id")
    assert [(row["job_id"], row["array_index"]) for row in rows] == [(ids[0] + n, n) for n in range(3)]


async def test_jobs_are_placed_together_at_the_earliest_common_start(
    brokers: BrokerWorld, the_world: World, sites: Sites
) -> None:
    ids = await submitted(the_world)
    await settled(brokers, sites, *ids)
    placed = [(await brokers.placements(each))[0] for each in ids]
    assert {each.site for each in placed} == {"A", "B"}
    starts = [each.start_at for each in placed if each.start_at]
    assert (max(starts) - min(starts)).total_seconds() <= 1
    assert await states(the_world, ids) == ["Waiting", "Waiting"]
    await sites.decide()
    assert await sites.held() == 2
    rows = await the_world.sql(
        "select agreement_id, job_id, flexible from agreement where state = 'Confirmed'"
    )
    assert {(row["agreement_id"], row["job_id"], row["flexible"]) for row in rows} == {
        (each.agreement_id, each.job_id, False) for each in placed
    }
    for each in placed:
        answer = await the_world.ask(user(), queries.ShowRanking(query_id="q", job_id=each.job_id))
        assert answer.phase == "Placed"
        assert {one.agreement for one in answer.elements if one.site in ("A", "B")} == {"Confirmed"}
    await sound(the_world)


async def test_too_few_sites_leave_nothing_reserved_and_a_reason(
    brokers: BrokerWorld, the_world: World, sites: Sites
) -> None:
    ids = await submitted(the_world, 4)
    await brokers.step()
    record = await brokers.record(ids[0])
    assert (record.phase, record.reason) == ("Choosing", "NO_AGREEMENT")
    assert "4 elements that take reservations are needed, and 3 fit now" in record.reason_text
    why = await the_world.ask(user(), queries.WhyJob(query_id="q", job_id=ids[1]))
    assert f"it starts together with job {ids[0]}" in str(why)
    assert await sites.held() == 0


async def test_agreements_that_are_not_confirmed_leave_nothing_reserved(
    brokers: BrokerWorld, the_world: World, sites: Sites
) -> None:
    ids = await submitted(the_world)
    sites.confirming = False
    await settled(brokers, sites, *ids, phase="Confirming")
    await sites.decide(*ids)
    await brokers.step()
    assert (await brokers.record(ids[0])).reason == "AGREEMENT_LOST"
    await sites.decide()
    assert await sites.held() == 0
    assert await states(the_world, ids) == ["Checking", "Checking"]


async def test_a_killed_job_keeps_the_others_from_running_alone(
    brokers: BrokerWorld, the_world: World, sites: Sites
) -> None:
    ids = await submitted(the_world)
    await settled(brokers, sites, *ids, phase="Confirming")
    await sites.decide(*ids)
    await the_world.order("kill", ids[1])
    await brokers.due()
    await brokers.step()
    assert await states(the_world, ids) == ["Failed", "Killed"]
    assert (await the_world.reasons(ids[0]))[-1] == "COALLOCATION_BROKEN"
    await sites.decide()
    assert await sites.held() == 0
    await sound(the_world)


async def test_a_job_that_was_killed_amid_the_last_step_is_not_missed(
    brokers: BrokerWorld, the_world: World, sites: Sites
) -> None:
    ids = await submitted(the_world)
    await settled(brokers, sites, *ids, phase="Confirming")
    await sites.decide(*ids)
    records = await brokers.brokering._claim()
    async with the_world.db.transaction() as tx:
        jobs = await brokered_jobs.load(tx, records)
        snapshot = await brokers.brokering._snapshot.read(tx, {each.job_class for each in jobs})
    decided = brokers.brokering._decide(jobs, dict.fromkeys(ids), snapshot)
    await the_world.order("kill", ids[1])
    async with the_world.db.transaction() as tx:
        assert await carry_out(tx, decided, "b-1", 60.0) == []
    assert [await brokers.placements(each) for each in ids] == [[], []]
    await brokers.due()
    await brokers.step()
    assert await states(the_world, ids) == ["Failed", "Killed"]
    await sites.decide()
    assert await sites.held() == 0


async def test_a_group_that_cannot_be_placed_is_held_and_released_as_one(
    brokers: BrokerWorld, the_world: World, sites: Sites
) -> None:
    ids = await submitted(the_world)
    for _ in range(2):
        await settled(brokers, sites, *ids)
        await brokers.fail(ids[0])
        await brokers.regrouping.gather()
        await sites.decide()
        await brokers.due()
    await brokers.step()
    assert await states(the_world, ids) == ["Held", "Held"]
    assert [(await the_world.reasons(each))[-1] for each in ids] == ["NOT_PLACED", "NOT_PLACED"]
    await brokers.upkeep.close()
    await sites.decide()
    assert await sites.held() == 0
    await the_world.order("release", *ids)
    await settled(brokers, sites, *ids)
    assert await states(the_world, ids) == ["Waiting", "Waiting"]
    await sound(the_world)


async def test_a_job_of_a_broken_group_that_is_rescheduled_fails_again(
    brokers: BrokerWorld, the_world: World, sites: Sites
) -> None:
    ids = await submitted(the_world)
    await the_world.order("kill", ids[1])
    await brokers.step()
    await the_world.order("reschedule", ids[0])
    await brokers.step()
    assert await states(the_world, ids) == ["Failed", "Killed"]
    assert (await the_world.reasons(ids[0]))[-1] == "COALLOCATION_BROKEN"
    await sound(the_world)
