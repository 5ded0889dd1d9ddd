"""Candidates: elements with their load, and the placements that their ads cannot know of."""

import pytest

from tests.services.brokers import BrokerWorld
from tests.services.world import World
from wms.db import candidate
from wms.ids import CeId


async def test_placements_that_an_ad_does_not_count_yet_are_counted(the_world: World) -> None:
    brokers = BrokerWorld(the_world)
    await brokers.advertise("A", GlueCEStateFreeJobSlots=8)
    await brokers.submitted(3)
    await brokers.step()
    async with the_world.db.transaction() as tx:
        (found,) = await candidate.fresh(tx)
    assert (found.element.ce_id, found.coming) == (CeId("A", "ce"), 3)
    assert found.attributes["GlueCEStateFreeJobSlots"] == 8
    await the_world.sql("update placement set state = 'Sent'")
    await the_world.sql("update ad set received_at = now() + interval '1 s'")
    async with the_world.db.transaction() as tx:
        assert [each.coming for each in await candidate.fresh(tx)] == [0]


async def test_an_element_whose_ad_has_expired_is_none(the_world: World) -> None:
    await BrokerWorld(the_world).advertise("A")
    await the_world.sql("update ad set expires_at = now()")
    async with the_world.db.transaction() as tx:
        assert await candidate.fresh(tx) == []


async def test_jobs_that_have_not_started_wait_where_they_were_placed(the_world: World) -> None:
    brokers = BrokerWorld(the_world)
    await brokers.advertise("A")
    started, reserved, *_ = await brokers.submitted(4)
    await brokers.step()
    await the_world.sql("update placement set state = 'Started' where job_id = $1", started)
    await the_world.sql("update placement set agreement_id = 'a-1' where job_id = $1", reserved)
    await the_world.sql("update placement set created_at = now() - make_interval(secs => 100 * job_id)")
    async with the_world.db.transaction() as tx:
        found = await candidate.waiting(tx, 5)
        assert await candidate.waiting(tx, 1) == found[:1]
    assert {each.place for each in found} == {CeId("A", "ce")}
    longest, other = (each.seconds for each in found)
    assert longest - other == pytest.approx(100, abs=1)


async def test_failures_are_told_first_to_last(the_world: World) -> None:
    brokers = BrokerWorld(the_world)
    await brokers.advertise("A")
    await brokers.advertise("B")
    (job_id,) = await brokers.submitted()
    for text in ("no room", "no power"):
        await brokers.step()
        await brokers.fail(job_id, text)
    async with the_world.db.transaction() as tx:
        found = await candidate.failures(tx, [job_id])
    assert [each.reason for each in found] == ["REFUSED: no room", "REFUSED: no power"]
