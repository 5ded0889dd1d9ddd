"""What is known of elements while jobs are placed there."""

from tests.services.brokers import BrokerWorld


async def test_many_jobs_are_spread_over_elements(brokers: BrokerWorld) -> None:
    for site in ("A", "B"):
        await brokers.advertise(site, slots=4, GlueCEStateFreeJobSlots=4, GlueCEStateWaitingJobs=0)
    jobs = await brokers.submitted(8)
    await brokers.step()
    sites = [(await brokers.placements(each))[0].site for each in jobs]
    assert sorted(sites) == ["A"] * 4 + ["B"] * 4
