"""The snapshot over a real database: what waits at an element that tells nothing of its load is told by the broker's own jobs."""

from collections import Counter

from services.resource_broker.grid_snapshot import SnapshotReader
from tests.services.brokers import BrokerWorld
from tests.services.world import World
from wms.ids import CeId

SILENT, BUSY = CeId("Silent", "ce"), CeId("Busy", "ce")


async def test_a_site_that_tells_no_load_does_not_take_all_jobs(
    brokers: BrokerWorld, the_world: World
) -> None:
    await brokers.advertise("Silent", slots=4)
    await brokers.advertise("Busy", slots=4, GlueCEStateFreeJobSlots=0, GlueCEStateWaitingJobs=6)
    for _ in range(3):  # each with a new ad, which counts what was placed before, where it counts anything
        await brokers.submitted(4)
        await brokers.step()
        await the_world.sql("update placement set state = 'Sent'")
        await the_world.sql("update placement set created_at = created_at - interval '10 min'")
        brokers.brokering._snapshot._looked_at = float("-inf")
    rows = await the_world.sql("select site, count(*) from placement group by site")
    placed = Counter({row["site"]: row["count"] for row in rows})
    assert placed["Busy"] >= 2, placed
    assert placed["Silent"] >= 4, placed


async def test_the_snapshot_knows_who_waits_and_who_is_not_counted_yet(
    brokers: BrokerWorld, the_world: World
) -> None:
    await brokers.advertise("Silent")
    await brokers.submitted(2)
    await brokers.step()
    async with the_world.db.transaction() as tx:
        found = await SnapshotReader().read(tx, [])
    assert len(found.knowledge.still_waiting[SILENT]) == 2
    assert found.knowledge.placed_since[SILENT] == 2
    more = found.with_job_at(SILENT).with_job_at(BUSY).knowledge
    assert [len(more.still_waiting[each]) for each in (SILENT, BUSY)] == [3, 1]
    assert [more.placed_since[each] for each in (SILENT, BUSY)] == [3, 1]


async def test_a_site_whose_agreement_service_is_frozen_is_not_asked(
    brokers: BrokerWorld, the_world: World
) -> None:
    for site in ("Silent", "Busy"):
        await brokers.advertise(site)
        await brokers.reserves(site)
    await the_world.sql(
        "update service_instance set heartbeat_at = now() - interval '6 s' where instance_id = 'agreement-Silent'"
    )
    async with the_world.db.transaction() as tx:
        found = await SnapshotReader().read(tx, [])
    assert found.reservable == {BUSY}
