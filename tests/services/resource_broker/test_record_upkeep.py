"""What is done when jobs have ended."""

from tests.services.brokers import BrokerWorld
from tests.services.resource_broker.sites import Sites
from tests.services.world import World, user
from wms.messages import queries


async def test_predictions_are_scored_when_the_job_has_run(brokers: BrokerWorld, the_world: World) -> None:
    await brokers.advertise("A")
    (job_id,) = await brokers.submitted()
    await brokers.step()
    await the_world.sql("update placement set state = 'Ended', pilot_id = 'p-1'")
    await the_world.sql(
        "insert into ended_attempt (job_id, epoch, pilot_id, site, ce, offered_at, accepted_at, started_at, ended_at,"
        " outcome, reason, wall_seconds) select job_id, 1, 'p-1', 'A', 'ce', created_at + interval '4 s',"
        " created_at + interval '5 s', created_at + interval '15 s', created_at + interval '135 s', 'done', 'DONE', 100"
        " from placement"
    )
    await brokers.upkeep.score()
    rows = await the_world.sql("select part, actual from prediction where job_id = $1", job_id)
    actual = {row["part"]: row["actual"] for row in rows}
    expected = {"waiting": 4.0, "stage_in": 10.0, "execution": 100.0, "stage_out": 20.0, "delivery": 135.0}
    assert actual == {part: expected[part] for part in actual}
    assert "delivery" in actual
    answer = await the_world.ask(user(), queries.ListPredictions(query_id="q", by="site"))
    assert {(each.site, each.part) for each in answer.lines} == {("A", part) for part in actual}
    assert all(each.scored == 1 for each in answer.lines)


async def test_a_record_is_closed_when_its_job_has_ended(brokers: BrokerWorld, the_world: World) -> None:
    await brokers.advertise("A")
    (job_id,) = await brokers.submitted()
    await brokers.step()
    await the_world.order("kill", job_id)
    await brokers.upkeep.close()
    assert (await brokers.record(job_id)).phase == "Over"


async def test_nothing_stays_reserved_for_a_held_job(brokers: BrokerWorld, the_world: World) -> None:
    sites = Sites(brokers, A=30)
    await sites.advertise()
    (job_id,) = await brokers.submitted(wall_time=60)
    for _ in range(3):
        await brokers.step()
        await sites.decide(job_id)
    assert await sites.held() == 1
    await the_world.order("hold", job_id)
    await brokers.upkeep.close()
    await sites.decide()
    assert await sites.held() == 0
    assert (await brokers.record(job_id)).phase == "Over"
