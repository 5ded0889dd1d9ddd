"""Placements follow their pilots, and leave none behind."""

import tomllib
from datetime import UTC, datetime, timedelta

import pytest

from tests.services.pilot_submitter.elements import ENDS, STAYS, FakeAway, Site
from tests.services.pilot_submitter.placing import FakeQueue, Submitter, order
from tests.services.placing import placed, told_broker
from tests.services.world import pilot
from tests.waiting import eventually
from wms.dispatch.local import LocalDispatcher


async def test_a_placement_fails_once_its_pilot_has_ended(site: Site) -> None:
    submitter = Submitter(site, site.dispatcher(LocalDispatcher, "first", ENDS))
    job_id = await order(site)
    await submitter.placing.send()

    async def failed() -> bool:
        await submitter.following.follow()
        await submitter.watch.look()
        return await submitter.last(job_id) == ("Failed", "PILOT_ENDED")

    await eventually(failed)
    assert await site.world.state(job_id) == "Checking"
    assert [each.code for each in told_broker(site.world)] == ["PILOT_ENDED"]
    await submitter.audited()


async def test_a_placement_fails_at_its_latest_start_and_its_pilot_is_cancelled(site: Site) -> None:
    queue = site.dispatcher(FakeQueue, "first", ENDS)
    assert isinstance(queue, FakeQueue)
    submitter = Submitter(site, queue)
    job_id = await order(site, latest_start=datetime.now(UTC) + timedelta(hours=1))
    await submitter.placing.send()
    name = await submitter.pilot_of(job_id)
    await submitter.watch.look()
    await submitter.watch.clear()
    assert (await submitter.last(job_id), queue.cancelled) == (("Sent", ""), ())
    await site.world.sql("update placement set latest_start = now() - interval '1 s'")
    await submitter.watch.look()
    assert await submitter.last(job_id) == ("Failed", "TOO_LATE")
    await submitter.watch.clear()
    assert queue.cancelled == (name,)
    assert await site.pilots() == [("first", "Done")]
    await submitter.audited()


async def test_a_late_pilot_of_a_failed_placement_does_not_get_the_job(site: Site) -> None:
    submitter = Submitter(site, site.dispatcher(FakeQueue, "first", ENDS))
    job_id = await order(site)
    await submitter.placing.send()
    late = pilot(await submitter.pilot_of(job_id), job_id=job_id)
    await site.world.sql("update placement set latest_start = now() - interval '1 s'")
    await submitter.watch.look()
    await placed(site.world, job_id, ce="first")
    await submitter.placing.send()
    assert await site.world.match(late) == []
    punctual = pilot(await submitter.pilot_of(job_id), job_id=job_id)
    matched = await site.world.match(punctual, reconciled=False)
    assert [each.job_id for each in matched] == [job_id], "the late one took it from nobody's index"


async def test_a_matched_job_is_not_too_late(site: Site) -> None:
    submitter = Submitter(site, site.dispatcher(FakeQueue, "first", ENDS))
    job_id = await order(site)
    await submitter.placing.send()
    mine = pilot(await submitter.pilot_of(job_id), job_id=job_id)
    held = await site.world.match(mine)
    await site.world.sql("update placement set latest_start = now() - interval '1 s'")
    await submitter.watch.look()
    assert await submitter.last(job_id) == ("Sent", "")
    await site.world.report(mine, accept=tuple(held), start=tuple(held))
    assert await submitter.last(job_id) == ("Started", "")


@pytest.mark.parametrize("action", ["kill", "hold", "reschedule"])
async def test_the_pilot_of_an_ordered_job_is_cancelled(site: Site, action: str) -> None:
    queue = site.dispatcher(FakeQueue, "first", ENDS)
    assert isinstance(queue, FakeQueue)
    submitter = Submitter(site, queue)
    job_id = await order(site)
    await submitter.placing.send()
    name = await submitter.pilot_of(job_id)
    await site.world.order(action, job_id)
    await submitter.watch.clear()
    assert queue.cancelled == (name,)
    await submitter.watch.clear()
    assert queue.cancelled == (name,), "once"
    await submitter.audited()


async def test_a_sender_that_died_leaves_a_pilot_that_is_found_or_a_failure(site: Site) -> None:
    away = site.dispatcher(FakeAway, "first", STAYS)
    assert isinstance(away, FakeAway)
    submitter = Submitter(site, away)
    job_id = await order(site)
    await submitter.placing.send()
    assert await submitter.last(job_id) == ("Ordered", "")
    await submitter.watch.look()
    assert await submitter.last(job_id) == ("Ordered", ""), "it may have arrived"
    away.away, site.now = False, site.now + 1_000
    await site.world.sql("update pilot set submitted_at = submitted_at - interval '1 h'")
    await submitter.following.follow()
    await submitter.watch.look()
    assert await submitter.last(job_id) == ("Failed", "NOT_ARRIVED")
    assert submitter.endpoint.open, "the element lost nothing"


async def test_what_arrived_though_nobody_wrote_it_was_sent(site: Site) -> None:
    submitter = Submitter(site, site.dispatcher(FakeQueue, "first", ENDS))
    job_id = await order(site)
    await submitter.placing.send()
    await site.world.sql("update placement set state = 'Ordered'")
    await submitter.watch.look()
    assert await submitter.last(job_id) == ("Sent", "")


async def test_a_bound_pilot_asks_for_longer_than_a_matcher_needs_to_find_its_job(site: Site) -> None:
    queue = site.dispatcher(FakeQueue, "first", ENDS)
    assert isinstance(queue, FakeQueue)
    submitter = Submitter(site, queue)
    await order(site)
    await submitter.placing.send()
    (sent,) = queue.taken
    assert tomllib.loads(sent.config)["pilot"]["idle_seconds"] == 90.0
