"""Why a job waits, as its user is told it: over a real database with real ads and pilots in it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.services.job_manager.queries.explained import advertise, expire, line_of, run_pilot, why
from tests.services.world import World, pilot, result, user
from tests.unit.why.plan_decisions import decision
from wms.db import ad, ce_plan, limit
from wms.matching.limits import LimitRule
from wms.messages import replies
from wms.messages.ads import Advertise, Withdraw
from wms.messages.queries import ShowPilot, WhyJob
from wms.site import ComputingElement

pytestmark = pytest.mark.asyncio(loop_scope="session")


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


@pytest.mark.parametrize("isolation", ["namespaces", "none"])
async def test_a_job_with_an_attempt_is_told_how_its_pilot_isolates_payloads(
    the_world: World, isolation: str
) -> None:
    (held,) = await the_world.running()
    assert (await why(the_world, held.job_id)).isolation == ""
    await the_world.report(isolation=isolation)
    await the_world.report(finish=(result(held),))
    assert (await why(the_world, held.job_id)).isolation == isolation
    shown = await the_world.ask(user(), ShowPilot(query_id="q", client="c", pilot_id="p-1"))
    assert shown.isolation == isolation, "a report without the word changes nothing"


async def test_a_place_and_a_start_are_foretold_by_what_was_matched(the_world: World) -> None:
    jobs = await the_world.submitted(30)
    await advertise(the_world)
    await the_world.watch()
    last = await why(the_world, jobs[-1])
    assert last.ahead == 29
    assert last.forecast is not None
    assert (last.forecast.older_least, last.forecast.older_most) == (29, 29)
    assert last.forecast.matched_per_minute is None
    assert len(await the_world.match(slots=6)) == 6
    await the_world.watch()
    await the_world.sql("update queue_state set since = now() - interval '1 min'")
    last = await why(the_world, jobs[-1])
    told = last.forecast
    assert last.ahead == 23
    assert told is not None
    assert told.older_most == 23
    assert told.matched_per_minute == pytest.approx(6, rel=0.1)
    assert told.earliest_seconds is not None
    assert told.latest_seconds is not None
    assert told.likely_seconds is not None
    assert told.earliest_seconds < told.likely_seconds < told.latest_seconds
    assert 60 < told.likely_seconds < 600


async def test_a_limit_that_holds_a_job_is_named_with_its_numbers(the_world: World) -> None:
    first, second = await the_world.submitted(2)
    await advertise(the_world)
    async with the_world.db.transaction() as tx:
        await limit.set_limit(tx, LimitRule(site="A", attribute="owner", value="ann", most=1), "oz")
    await the_world.rules.refresh()
    assert (await why(the_world, second)).code == "NO_PILOT"
    (held,) = await the_world.match()
    waits = second if held[0] == first else first
    await run_pilot(the_world, busy=1)
    said = await why(the_world, waits)
    assert said.code == "HELD_BY_LIMIT"
    assert "1 of 1 running" in said.summary
    assert said.elements[0].limits
    assert said.forecast is None
    assert [each.code for each in await the_world.look()] == ["HELD_BY_LIMIT"]
    assert (await line_of(the_world, waits)).reason == "HELD_BY_LIMIT"


async def planned(world: World, ce: str, **share: Any) -> None:
    """Store what the pilot submitter decided on an element at its last plan, for jobs such as these tests submit."""
    async with world.db.transaction() as tx:
        await ce_plan.write(tx, [decision(ce, vo="lhcb", **share)])


async def test_pilots_that_the_batch_system_refuses_are_told_to_the_jobs_owner(the_world: World) -> None:
    refused = "backing-off: refused: sbatch: error: Invalid feature specification"
    (job_id,) = await the_world.submitted(cpu_time=400, requirements="other.CPUTime > 1")
    (plain,) = await the_world.submitted(cpu_time=400)
    await advertise(the_world)
    assert "sent within seconds" in (await why(the_world, job_id)).advice
    await planned(the_world, "ce", held="BACKOFF", why=refused)
    said = await why(the_world, job_id)
    assert said.code == "NO_PILOT"
    assert f"no more are sent to A/ce: {refused}" in said.summary
    assert "sent within seconds" not in said.advice
    assert "refused" not in (await why(the_world, plain)).summary, "its pilots are others"


async def test_a_full_element_is_told_where_no_pilot_runs(the_world: World) -> None:
    (job_id,) = await the_world.submitted(cpu_time=400)
    await advertise(the_world)
    await planned(the_world, "ce", held="LIMIT", why="its ad lets no more pilots come")
    assert (
        "no more are sent to A/ce: its ad lets no more pilots come" in (await why(the_world, job_id)).summary
    )
