"""The ranking of real ads for a job, as its record keeps it."""

from tests.services.brokers import BrokerWorld
from tests.services.world import World


async def test_the_benchmarks_of_its_user_choose_the_faster_element(brokers: BrokerWorld) -> None:
    await brokers.advertise("slow", GlueHostBenchmarkSI00=500)
    await brokers.advertise("fast", GlueHostBenchmarkSI00=2_000)
    benchmark = {"name": "SI00", "result": 1_000, "seconds": 36_000}
    (job_id,) = await brokers.submitted(preferences={"benchmarks": [benchmark]})
    await brokers.step()
    assert [each.site for each in (await brokers.record(job_id)).ranking] == ["fast", "slow"]


async def test_an_element_that_is_shut_is_rejected_with_its_reason(
    brokers: BrokerWorld, the_world: World
) -> None:
    for site in ("A", "B"):
        await brokers.advertise(site)
    await the_world.sql(
        "insert into ce_state (site, ce, state, reason, said_by) values ('A', 'ce', 'banned', 'its disk is full', 'op')"
    )
    (job_id,) = await brokers.submitted()
    await brokers.step()
    best, shut = (await brokers.record(job_id)).ranking
    assert (best.site, best.rank, shut.site, shut.rank) == ("B", 1, "A", 0)
    assert "its disk is full" in shut.reasons[0]


async def test_elements_that_are_not_there_draw_no_job(brokers: BrokerWorld, the_world: World) -> None:
    for n in range(brokers.settings.most_attempts):
        await brokers.advertise("hole", f"ce-{n}", slots=10**6, GlueHostBenchmarkSI00=10**6)
    await brokers.advertise("A", GlueHostBenchmarkSI00=500)
    await the_world.sql("update ad set pilot_seconds = 1000000 where site = 'A'")
    benchmark = {"name": "SI00", "result": 1_000, "seconds": 36_000}
    (job_id,) = await brokers.submitted(preferences={"benchmarks": [benchmark]})
    await brokers.step()
    best, *holes = (await brokers.record(job_id)).ranking
    assert (best.site, best.rank) == ("A", 1)
    assert {each.rank for each in holes} == {0}
    assert "no endpoint" in holes[0].reasons[0]
    (placed,) = await brokers.placements(job_id)
    assert placed.site == "A"
