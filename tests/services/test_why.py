"""Why a job waits, as its user is told it: over a real database with real ads and pilots in it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.services.world import World, pilot, user
from wms.db import ad
from wms.ids import JobId
from wms.messages import replies
from wms.messages.ads import Advertise, Withdraw
from wms.messages.queries import WhyJob
from wms.site import ComputingElement

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def advertise(world: World, ce: str = "ce", *, site: str = "A", **offered: Any) -> None:
    given: dict[str, Any] = {"setup": "default", "slots": 4, "max_cpu_time": 10**6, "memory_mb": 4_000}
    element = ComputingElement(site=site, ce=ce, **(given | offered))
    async with world.db.transaction() as tx:
        await ad.store(tx, [Advertise(element=element, advertised_at=datetime.now(UTC))])


async def expire(world: World, ce: str = "ce") -> None:
    await world.sql("update ad set expires_at = now() - interval '1 s' where ce = $1", ce)


async def run_pilot(world: World, *, slots: int = 4, busy: int = 0, who: Any = None) -> None:
    who = await world.add_pilot(who, slots)
    await world.sql("update pilot set state = 'Running', busy = $2 where pilot_id = $1", who.pilot_id, busy)


async def why(world: World, job_id: JobId, who: Any = None) -> replies.JobWhy:
    reply = await world.ask(who or user(), WhyJob(query_id="q", job_id=job_id))
    assert isinstance(reply, replies.JobWhy), reply
    return reply


async def test_the_tiers_from_impossible_to_soon(the_world: World) -> None:
    (job_id,) = await the_world.submitted(memory_mb=2_000)
    assert (await why(the_world, job_id)).code == "IMPOSSIBLE_NOW"
    await advertise(the_world)
    assert (await why(the_world, job_id)).code == "NO_PILOT"
    await run_pilot(the_world, who=pilot("p-other", vo="other"))
    assert (await why(the_world, job_id)).code == "NO_PILOT"
    await run_pilot(the_world, busy=4)
    assert (await why(the_world, job_id)).code == "SLOTS_BUSY"
    await run_pilot(the_world, busy=3)
    said = await why(the_world, job_id)
    assert said.code == "SOON"
    (element,) = said.elements
    assert (element.pilots, element.slots, element.free_slots, element.fits) == (1, 4, 1, True)


async def test_never_and_now_are_told_apart_by_what_was_there(the_world: World) -> None:
    (job_id,) = await the_world.submitted(memory_mb=8_000)
    await advertise(the_world)
    said = await why(the_world, job_id)
    assert said.code == "NEVER_POSSIBLE"
    assert said.failing == {"memory": 1}
    (relaxation,) = said.relaxations
    assert relaxation.changes == ("memory 4000 MB instead of 8000",)
    assert (relaxation.slots, relaxation.sites) == (4, ("A",))
    await advertise(the_world, "large", memory_mb=16_000)
    await expire(the_world, "large")
    said = await why(the_world, job_id)
    assert said.code == "IMPOSSIBLE_NOW"
    assert [each.fresh for each in said.elements] == [True, False]


async def test_what_was_withdrawn_is_known_until_it_is_long_gone(the_world: World) -> None:
    (job_id,) = await the_world.submitted(memory_mb=8_000)
    await advertise(the_world, "large", memory_mb=16_000)
    await advertise(the_world)
    now = datetime.now(UTC)
    async with the_world.db.transaction() as tx:
        await ad.withdraw(tx, [Withdraw(site="A", ce="large", advertised_at=now)])
    assert (await why(the_world, job_id)).code == "IMPOSSIBLE_NOW"
    async with the_world.db.transaction() as tx:
        assert [each.ce for each in await ad.fresh(tx)] == ["ce"]
        late = ComputingElement(site="A", ce="large", slots=1, max_cpu_time=1)
        await ad.store(tx, [Advertise(element=late, advertised_at=now - timedelta(seconds=1))])
        assert [each.ce for each in await ad.fresh(tx)] == ["ce"], "an older ad came late"
        assert await ad.forget_expired(tx) == 0
    await the_world.sql("update ad set expires_at = now() - interval '31 d' where ce = 'large'")
    async with the_world.db.transaction() as tx:
        assert await ad.forget_expired(tx) == 1
    assert (await why(the_world, job_id)).code == "NEVER_POSSIBLE"


async def test_another_who_may_not_see_the_job_is_told_that_there_is_none(the_world: World) -> None:
    (job_id,) = await the_world.submitted()
    for stranger in (user("bob"), user("ann", vo="other")):
        reply = await the_world.ask(stranger, WhyJob(query_id="q", job_id=job_id))
        assert isinstance(reply, replies.Refused)
        assert reply.code == "NO_SUCH_JOB"


async def test_one_who_may_see_but_not_look_into_is_told_so(the_world: World) -> None:
    (job_id,) = await the_world.submitted()
    reply = await the_world.ask(user("bob", "job_monitor"), WhyJob(query_id="q", job_id=job_id))
    assert isinstance(reply, replies.Refused)
    assert reply.code == "NOT_ALLOWED"
