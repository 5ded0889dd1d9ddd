"""Placements are carried out: each by a pilot of its own, unless it is refused."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from services.pilot_submitter.ce_endpoints import CeEndpoint, CeEndpoints
from services.pilot_submitter.element_calls import ElementCalls
from services.pilot_submitter.pilot_tracking import PilotTracking
from services.pilot_submitter.placement_execution import Placing
from tests.services.pilot_submitter.elements import ENDS, Site
from tests.services.pilot_submitter.placing import SLURM, FakeFrozen, FakeQueue, FakeRefusal, Submitter, order
from tests.services.placing import brokered, placed, told_broker
from tests.waiting import eventually
from wms.db import placement
from wms.db.database import Transaction
from wms.dispatch.local import LocalDispatcher
from wms.ids import CeId, InstanceId


async def test_a_refused_placement_fails_and_the_broker_is_told(site: Site) -> None:
    submitter = Submitter(site, site.dispatcher(FakeRefusal, "first", ENDS))
    job_id = await order(site)
    await submitter.placing.send()
    assert await submitter.last(job_id) == ("Failed", "REFUSED")
    assert await site.world.state(job_id) == "Checking"
    (told,) = told_broker(site.world)
    assert (told.job_id, told.attempt, told.code, told.seq) == (job_id, 1, "REFUSED", 5)
    assert "no such reservation" in told.text
    assert await placed(site.world, job_id, site="B") == [job_id], "the second best"
    await submitter.audited()


async def test_a_placement_that_is_abandoned_as_it_is_taken_gets_no_pilot(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = site.dispatcher(FakeQueue, "first", ENDS)
    assert isinstance(queue, FakeQueue)
    submitter = Submitter(site, queue)
    await order(site)
    take = placement.take

    async def taken_late(tx: Transaction, *args: Any, **options: Any) -> Any:
        taken = await take(tx, *args, **options)
        await tx.execute("update placement set state = 'Abandoned'")
        return taken

    monkeypatch.setattr(placement, "take", taken_late)
    await submitter.placing.send()
    assert await site.world.sql("select from pilot") == []
    assert not queue.taken


async def test_a_placement_at_an_unknown_element_fails(site: Site) -> None:
    submitter = Submitter(site, site.dispatcher(FakeQueue, "first", ENDS))
    job_id = await brokered(site.world)
    await placed(site.world, job_id, ce="second")
    await submitter.placing.send()
    assert await submitter.last(job_id) == ("Failed", "NO_ELEMENT")


@pytest.mark.parametrize(("kind", "sent"), [("slurm", 1), ("local", 0)])
async def test_a_later_start_is_kept_by_the_element_that_has_the_reservation(
    site: Site, kind: str, sent: int
) -> None:
    queue = site.dispatcher(FakeQueue, "first", ENDS)
    assert isinstance(queue, FakeQueue)
    submitter = Submitter(site, queue, SLURM._replace(kind=kind))
    await order(site, reservation="r", start_at=datetime.now(UTC) + timedelta(hours=1))
    changed = f'{{"dispatcher": "{kind}"}}'
    await site.world.sql("update ad set element = element || $1::text::jsonb, received_at = now()", changed)
    await submitter.placing.send()
    assert len(queue.taken) == sent
    await site.world.sql("update placement set start_at = now() - interval '1 s'")
    await submitter.placing.send()
    assert len(queue.taken) == 1


async def test_no_usual_pilots_are_planned_for_placed_jobs(site: Site) -> None:
    queue = site.dispatcher(FakeQueue, "first", ENDS)
    provisioning, _ = site.build(SLURM, first=queue)
    await order(site)
    await site.world.reconcile()
    await provisioning.provide()
    assert await site.pilots() == []
    await site.world.submitted(cpu_time=400)
    provisioning._not_before = 0.0
    await provisioning.provide()
    assert await site.pilots() == [("first", "Submitted")]


async def test_where_a_flexible_reservation_was_moved_its_new_start_counts(site: Site) -> None:
    queue = site.dispatcher(FakeQueue, "first", ENDS)
    assert isinstance(queue, FakeQueue)
    submitter = Submitter(site, queue, SLURM._replace(kind="local"))
    later = datetime.now(UTC) + timedelta(hours=1)
    await site.world.sql(
        """insert into agreement (agreement_id, job_id, vo, owner, "group", site, ce, cpus, duration_seconds, flexible,
               expires_in_seconds, state, start_at, ends_at, expires_at)
           values ('a-1', 1, 'lhcb', 'ann', 'physics', 'A', 'first', 1, 900, true, 60, 'Confirmed', $1, $1::timestamptz + interval '900 s', now())""",
        later,
    )
    await order(site, agreement_id="a-1", reservation="r", start_at=datetime.now(UTC) - timedelta(hours=1))
    await site.world.sql(
        'update ad set element = element || \'{"dispatcher": "local"}\', received_at = now()'
    )
    await submitter.placing.send()
    assert queue.taken == ()
    await site.world.sql("update agreement set start_at = now() - interval '1 s'")
    await submitter.placing.send()
    assert len(queue.taken) == 1


async def test_a_frozen_element_delays_no_placement_at_another(site: Site) -> None:
    frozen, queue = site.dispatcher(FakeFrozen, "first", ENDS), site.dispatcher(FakeQueue, "second", ENDS)
    assert isinstance(frozen, FakeFrozen)
    assert isinstance(queue, FakeQueue)
    ways = [
        CeEndpoint(CeId("A", ce), to, lambda: site.now, SLURM)
        for ce, to in (("first", frozen), ("second", queue))
    ]
    endpoints = CeEndpoints(LocalDispatcher(site.place / "local", ENDS, {}), lambda: site.now, ways)
    following = PilotTracking(site.world.db, endpoints, settled_seconds=0.0)
    placing = Placing(
        site.world.db, endpoints, site.maker, following, InstanceId("s-1"), calls=ElementCalls(0.01)
    )
    await site.advertise("first", "second")
    for ce in ("first", "first", "second", "second"):
        await placed(site.world, await brokered(site.world, cpu_time=400), ce=ce)
        await placing.send()

    async def sent(to: FakeQueue) -> bool:
        await placing.send()
        return len(to.taken) == 2

    await eventually(lambda: sent(queue))
    assert frozen.taken == ()
    states = [row["state"] for row in await site.world.sql("select state from placement where ce = 'first'")]
    assert states == ["Ordered"] * 2
    pilots = await site.world.sql("select count(*) as n from pilot where ce = 'first'")
    assert pilots[0]["n"] == 1, "nothing more is taken for an element that does not answer"
    frozen.thawed.set()
    await eventually(lambda: sent(frozen))
    await eventually(lambda: not placing._calls.busy())
