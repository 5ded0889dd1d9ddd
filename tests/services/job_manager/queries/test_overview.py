"""What ended lately, waits, died or is out of order, for whoever may see it."""

import itertools

from services.job_manager.queries.kept_counts import KeptCounts
from services.job_manager.queries.overview import KeptOutcomes, recent_outcomes
from tests.services.world import World, pilot, result, user
from wms.auth.policy import Scope
from wms.auth.principal import Principal
from wms.job.reasons import Code
from wms.messages import replies
from wms.messages.queries import ShowOverview

OZ = user("oz", "operator", group="ops", vo="ops")


async def overview(world: World, who: Principal = OZ) -> replies.Overview:
    answer = await world.ask(who, ShowOverview(query_id="q"))
    assert isinstance(answer, replies.Overview), answer
    return answer


async def ended(world: World) -> int:
    """Two jobs of ann's end well and one fails. Return the last."""
    await world.submit({}, {}, {}, who=user("ann"))
    held = await world.match(pilot(), 3)
    await world.report(pilot(), accept=tuple(held), start=tuple(held))
    failed = result(held[2], "failed", Code.EXIT_CODE, exit_code=1)
    await world.report(pilot(), finish=(result(held[0]), result(held[1]), failed))
    return held[2][0]


async def test_attempts_are_counted_by_how_they_ended(the_world: World) -> None:
    failed = await ended(the_world)
    for who in (OZ, user("ann"), user("mo", "job_monitor")):
        good, bad = (await overview(the_world, who)).outcomes
        assert (good.outcome, good.attempts, good.site) == ("done", 2, "A")
        assert (bad.outcome, bad.reason, bad.attempts, bad.last_job) == ("failed", "EXIT_CODE", 1, failed)
    assert (await overview(the_world, user("bob"))).outcomes == ()


async def test_outcomes_of_all_owners_are_counted_once_and_kept(the_world: World) -> None:
    kept: KeptOutcomes = KeptCounts(1, itertools.count().__next__)
    ann = Scope(reach="owner", owner="ann", group="physics", vo="lhcb")
    await ended(the_world)
    async with the_world.db.transaction() as tx:
        assert [line.attempts for line in await recent_outcomes(tx, ann, kept)] == [2, 1]
    await the_world.sql("delete from ended_attempt")
    async with the_world.db.transaction() as tx:
        vo = Scope(reach="vo", vo="lhcb")
        assert [line.attempts for line in await recent_outcomes(tx, vo, kept)] == [2, 1], "kept"
        assert await recent_outcomes(tx, Scope(reach="all"), kept) == []


async def test_attempts_of_more_than_an_hour_ago_are_not_counted(the_world: World) -> None:
    await ended(the_world)
    await the_world.sql("update ended_attempt set ended_at = now() - interval '61 min'")
    assert (await overview(the_world)).outcomes == ()


async def test_waits_are_told_by_reason_with_the_largest_queue(the_world: World) -> None:
    await the_world.submit({}, {}, {"memory_mb": 50_000}, who=user("ann"))
    await the_world.submit({}, who=user("bob"))
    await the_world.look()
    for watched in (True, False):
        (mine,) = (await overview(the_world, user("ann"))).waits
        assert (mine.code, mine.jobs, mine.queues) == ("IMPOSSIBLE_NOW", 3, 2)
        assert mine.text
        assert mine.advice
        (all_,) = (await overview(the_world)).waits
        assert (all_.jobs, all_.queues) == (4, 3)
        assert mine.tq_id == all_.tq_id
        if watched:
            await the_world.sql("delete from queue_watch")


async def test_pilots_that_died_are_told_to_their_vo(the_world: World) -> None:
    for name, cause in (("p1", "NODE_LOST"), ("p2", "NODE_LOST"), ("p3", None)):
        await the_world.add_pilot(pilot(name))
        await the_world.sql(
            "update pilot set ended_at = now(), state = 'Done', cause = $2 where pilot_id = $1", name, cause
        )
    for who in (OZ, user("ann")):
        (line,) = (await overview(the_world, who)).pilot_ends
        assert (line.cause, line.pilots) == ("NODE_LOST", 2)
    assert (await overview(the_world, user("eve", vo="other"))).pilot_ends == ()


async def test_a_service_is_told_by_its_living_instances(the_world: World) -> None:
    beat = (
        "insert into service_instance (instance_id, service, consumers, host, pid, version, health, heartbeat_at)"
        " values ($1, $2, '{}', 'h', 1, '0', $3::text::jsonb, now() - make_interval(secs => $4))"
    )
    await the_world.sql(beat, "m-1", "matcher", '{"lag": {"q": 3}, "troubles": {"write": "failed"}}', 0.0)
    await the_world.sql(beat, "m-2", "matcher", '{"lag": {"q": 4}}', 0.0)
    await the_world.sql(beat, "g-1", "gateway", "{}", 60.0)
    gateway, matcher = (await overview(the_world)).services
    assert (gateway.service, gateway.instances) == ("gateway", 0)
    assert (matcher.instances, matcher.lag, matcher.problems) == (2, 7, ("write failed",))
