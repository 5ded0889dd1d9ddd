"""The broker over a real database: jobs are ranked and placed, looked at again, taken over, held or failed with reasons."""

from collections import Counter

from services.resource_broker import brokering
from services.resource_broker.config import RequestedIndexSettings
from services.resource_broker.index_searches import SEARCHES_LIMIT
from services.resource_broker.requested_indexes import RequestedIndexes
from tests.services.brokers import BrokerWorld, sound
from tests.services.world import World, user
from tests.waiting import eventually
from wms.db import job_record
from wms.discovery.address import Address
from wms.discovery.server_answers import FoundElement, ServerAnswer
from wms.glue.glue1 import GlueComputingElement
from wms.messages import queries


async def test_a_job_is_placed_and_its_ranking_kept(brokers: BrokerWorld, the_world: World) -> None:
    await brokers.advertise("A")
    (job_id,) = await brokers.submitted()
    assert await the_world.state(job_id) == "Checking"
    await brokers.step()
    assert await the_world.state(job_id) == "Waiting"
    (placed,) = await brokers.placements(job_id)
    assert (placed.site, placed.ce, placed.rank, placed.state) == ("A", "ce", 1, "Ordered")
    answer = await the_world.ask(user(), queries.ShowRanking(query_id="q", job_id=job_id))
    assert (answer.phase, answer.state, answer.elements_total) == ("Placed", "Waiting", 1)
    assert {each.part for each in answer.elements[0].parts} == {
        "stage_in", "waiting", "execution", "stage_out", "delivery",
    }  # fmt: skip
    assert [each.site for each in answer.placements] == ["A"]
    await sound(the_world)


async def test_without_a_candidate_it_is_looked_at_again_with_a_reason(
    brokers: BrokerWorld, the_world: World
) -> None:
    await brokers.advertise("A")
    (job_id,) = await brokers.submitted(sites=["elsewhere"])
    await brokers.step()
    assert await the_world.state(job_id) == "Checking"
    record = await brokers.record(job_id)
    assert (record.phase, record.reason) == ("Choosing", "NO_CANDIDATE")
    assert "A/ce" in record.reason_text
    await brokers.advertise("elsewhere")
    await brokers.due()
    brokers.brokering._snapshot._looked_at = 0.0
    await brokers.step()
    assert await the_world.state(job_id) == "Waiting"


async def test_a_job_that_cannot_start_in_time_fails(brokers: BrokerWorld, the_world: World) -> None:
    (job_id,) = await brokers.submitted(preferences={"latest_start_after": 60})
    await brokers.step()
    assert await the_world.state(job_id) == "Checking"
    await the_world.sql("update job set submitted_at = submitted_at - interval '2 min'")
    await brokers.due()
    await brokers.step()
    assert await the_world.state(job_id) == "Failed"
    assert (await the_world.reasons(job_id))[-1] == "TOO_LATE_TO_START"
    await sound(the_world)


async def test_an_earliest_start_is_waited_for(brokers: BrokerWorld, the_world: World) -> None:
    await brokers.advertise("A")
    (job_id,) = await brokers.submitted(preferences={"earliest_start_after": 3_600})
    await brokers.step()
    assert (await brokers.record(job_id)).reason == "NOT_BEFORE"
    await the_world.sql("update job set submitted_at = submitted_at - interval '2 h'")
    await brokers.due()
    await brokers.step()
    assert await the_world.state(job_id) == "Waiting"


async def test_a_step_is_taken_over_from_a_broker_that_died(brokers: BrokerWorld, the_world: World) -> None:
    await brokers.advertise("A")
    (job_id,) = await brokers.submitted()
    await brokers.told()
    async with the_world.db.transaction() as tx:
        assert len(await job_record.claim(tx, "dead", 30.0, 10)) == 1
    await brokers.step()
    assert await brokers.placements(job_id) == []
    await the_world.sql("update job_record set claimed_until = now() - interval '1 s'")
    await brokers.step()
    assert len(await brokers.placements(job_id)) == 1


async def test_a_step_that_fails_again_and_again_holds_its_job_alone(
    brokers: BrokerWorld, the_world: World
) -> None:
    await brokers.advertise("A")
    (bad,) = await brokers.submitted()
    await brokers.told()
    await the_world.sql("update job_record set tries = 5")
    (good,) = await brokers.submitted()
    await brokers.step()
    assert [await the_world.state(each) for each in (bad, good)] == ["Held", "Waiting"]
    assert (await the_world.reasons(bad))[-1] == "BROKER_FAULT"


async def test_an_index_server_that_may_not_be_asked_holds_the_job(
    brokers: BrokerWorld, the_world: World
) -> None:
    await brokers.advertise("A")
    (job_id,) = await brokers.submitted(index_servers=["https://index.example.org/glue"])
    await brokers.step()
    assert await the_world.state(job_id) == "Held"
    assert (await the_world.reasons(job_id))[-1] == "INDEX_REFUSED"


class IndexServer:
    """An index server that leads to one element."""

    async def ask(self, _: Address) -> ServerAnswer:
        return ServerAnswer(
            elements=(FoundElement(site="S1", glue=GlueComputingElement(id="S1/ce", name="ce")),)
        )


async def test_a_search_begins_though_so_many_jobs_are_ranked_in_a_thread(the_world: World) -> None:
    settings = RequestedIndexSettings(hosts=["index.example.org"])
    brokers = BrokerWorld(the_world, indexes=RequestedIndexes(settings, {"https": IndexServer()}))
    sites, jobs = 10, brokering.FEW_RANKED // 10 + 1
    for n in range(sites):
        await brokers.advertise(f"S{n}")
    ids = await brokers.submitted(jobs, index_servers=["https://index.example.org/glue"])
    await brokers.step()
    assert {(await brokers.record(each)).reason for each in ids} == {"DISCOVERING"}
    await eventually(lambda: brokers.indexes.found == set(ids))
    await brokers.step()
    assert {(await brokers.placements(each))[0].site for each in ids} == {"S1"}


async def test_a_job_beyond_the_searches_of_its_user_says_so_and_is_placed_in_its_turn(
    the_world: World,
) -> None:
    settings = RequestedIndexSettings(hosts=["*.example.org"])
    brokers = BrokerWorld(the_world, indexes=RequestedIndexes(settings, {"https": IndexServer()}))
    await brokers.advertise("S1")
    ids = []
    for n in range(SEARCHES_LIMIT + 1):
        ids += await brokers.submitted(index_servers=[f"https://index-{n}.example.org/glue"])
    await brokers.step()
    reasons = Counter([(await brokers.record(each)).reason for each in ids])
    assert reasons == {"DISCOVERING": SEARCHES_LIMIT, "SEARCH_QUEUED": 1}
    (last,) = [each for each in ids if (await brokers.record(each)).reason == "SEARCH_QUEUED"]
    told = await the_world.ask(user(), queries.WhyJob(query_id="q", job_id=last))
    assert f"SEARCH_QUEUED, {SEARCHES_LIMIT} searches of its user are under way" in told.summary

    async def placed() -> bool:
        await brokers.step()
        return all([await brokers.placements(each) for each in ids])

    await eventually(placed)


async def test_a_job_that_spoils_a_common_step_delays_no_other(
    brokers: BrokerWorld, the_world: World
) -> None:
    await brokers.advertise("A")
    (bad,) = await brokers.submitted(executable="bad")
    (good,) = await brokers.submitted(executable="good")
    await brokers.told()
    await the_world.sql(
        "update description set body = '{}' where description_id = (select description_id from job where job_id = $1)",
        bad,
    )
    await brokers.step()
    assert [await the_world.state(each) for each in (bad, good)] == ["Checking", "Waiting"]
