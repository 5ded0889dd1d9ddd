"""What jobs used, by whom and where, equals what their attempts say."""

from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from tests.services.world import World, pilot, result, user
from wms.audit import audit
from wms.db import usage_hour
from wms.job.reasons import Code
from wms.messages import replies
from wms.messages.queries import ShowJob, ShowUsage
from wms.messages.reports import Usage

LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
OZ = user("oz", "operator", group="ops", vo="ops")
USED = Usage(cpu_user_seconds=50.0, cpu_system_seconds=10.0, wall_seconds=100.0, max_rss_bytes=1_000)


async def shown(
    world: World, *by: Any, who: Any = OZ, **said: Any
) -> dict[tuple[str, ...], replies.UsageLine]:
    answer = await world.ask(who, ShowUsage(query_id="q", by=by, **{"since": LONG_AGO, **said}))
    assert isinstance(answer, replies.UsageReport), answer
    return {line.key: line for line in answer.lines}


async def ended(world: World) -> None:
    """Jobs of two owners at one site: ann's three, of which one has four processors and one fails; bob's one."""
    await world.submit({}, {}, {"processors": 4}, who=user("ann"))
    await world.submit({}, who=user("bob"))
    held = await world.match(pilot(), 8)
    assert len(held) == 4
    await world.report(pilot(), accept=tuple(held), start=tuple(held))
    await world.wait_hours()
    wide = (
        await world.sql(
            "select job_id from job join task_queue using (tq_id) where processors_of(requirements) = 4"
        )
    )[0]["job_id"]
    last = max(each[0] for each in held if each[0] != wide and each[0] != held[-1][0])
    finished = [
        replace(result(each, "failed", Code.EXIT_CODE, exit_code=1), usage=USED)
        if each[0] == last
        else replace(result(each), usage=USED)
        for each in held
    ]
    await world.report(pilot(), finish=tuple(finished))


async def close(world: World) -> None:
    """Let the attempts have ended five hours ago, and sum up the hours."""
    await world.sql("update ended_attempt set ended_at = ended_at - interval '5 h'")
    await world.sql(
        "update usage_rollup set began_at = began_at - interval '30 h', closed_until = began_at - interval '30 h'"
    )
    while True:
        async with world.db.transaction() as tx:
            if not await usage_hour.close(tx):
                return


async def test_usage_is_the_sum_of_attempts_before_and_after_hours_are_closed(the_world: World) -> None:
    await ended(the_world)
    live = await shown(the_world, "vo", "owner", "site")
    total = sum(each.attempts for each in live.values())
    assert (total, sum(each.wall_seconds for each in live.values())) == (4, 400.0)
    assert sum(each.slot_seconds for each in live.values()) == 100.0 * (3 + 4)
    assert sum(each.cpu_seconds for each in live.values()) == 4 * 60.0
    assert all(each.mean_rss_bytes == each.max_rss_bytes == 1_000 for each in live.values())
    assert {key[:2] for key in live} == {("lhcb", "ann"), ("lhcb", "bob")}
    await close(the_world)
    assert await shown(the_world, "vo", "owner", "site") == live
    assert await the_world.sql("select from usage_hour") != []


async def test_what_failed_is_waste_for_its_reason(the_world: World) -> None:
    await ended(the_world)
    (line,) = (await shown(the_world, "vo")).values()
    assert (line.attempts, line.done) == (4, 3)
    assert [each.reason for each in line.waste] == ["EXIT_CODE"]
    assert line.wasted_seconds == 100.0


async def test_usage_outlives_the_jobs(the_world: World) -> None:
    await ended(the_world)
    before = await shown(the_world, "owner")
    await close(the_world)
    await the_world.sql("delete from ended_attempt")
    assert await shown(the_world, "owner") == before


async def test_each_sees_what_is_in_reach(the_world: World) -> None:
    await ended(the_world)
    assert set(await shown(the_world, "owner", who=user("ann"))) == {("ann",)}
    assert set(await shown(the_world, "owner", who=user("ada", "job_monitor"))) == {("ann",), ("bob",)}
    assert await shown(the_world, "owner", who=user("ann", vo="cms")) == {}
    assert set(await shown(the_world, "owner")) == {("ann",), ("bob",)}


async def test_times_bound_what_is_counted_by_whole_hours(the_world: World) -> None:
    await ended(the_world)
    now = datetime.now(UTC)
    assert await shown(the_world, "vo", since=now + timedelta(hours=2)) == {}
    assert await shown(the_world, "vo", until=now - timedelta(hours=2)) == {}
    assert len(await shown(the_world, "vo", since=now - timedelta(hours=2), until=now)) == 1
    ((day,),) = await shown(the_world, "day")
    assert day in {f"{now:%Y-%m-%d}", f"{now - timedelta(minutes=5):%Y-%m-%d}"}


async def test_pages_follow_each_other(the_world: World) -> None:
    await ended(the_world)
    first = await the_world.ask(OZ, ShowUsage(query_id="q", by=("owner",), since=LONG_AGO, limit=1))
    rest = await the_world.ask(OZ, ShowUsage(query_id="q", by=("owner",), since=LONG_AGO, after=first.after))
    assert [line.key for line in (*first.lines, *rest.lines)] == [("ann",), ("bob",)]
    assert rest.after is None


async def test_the_auditor_finds_an_hour_that_is_not_its_attempts(the_world: World) -> None:
    await ended(the_world)
    await close(the_world)
    rule = "the usage of an hour is that of the attempts that ended in it"
    assert rule not in _broken(await audit(the_world.url))
    await the_world.sql("update usage_hour set wall_seconds = wall_seconds + 1")
    assert rule in _broken(await audit(the_world.url))


def _broken(report: Any) -> set[str]:
    return {check.name for check in report.checks if check.violations}


async def test_a_withdrawn_offer_is_neither_usage_nor_an_attempt(the_world: World) -> None:
    (job_id,) = await the_world.submitted(1)
    (declined,) = await the_world.match(pilot(), 1)
    await the_world.report(pilot(), decline=(declined,))
    assert not await shown(the_world, "owner")
    (taken,) = await the_world.match(pilot(), 1)
    await the_world.report(pilot(), accept=(taken,), start=(taken,))
    await the_world.report(pilot(), finish=(replace(result(taken), usage=USED),))
    (open_line,) = (await shown(the_world, "owner")).values()
    await close(the_world)
    (closed_line,) = (await shown(the_world, "owner")).values()
    assert (open_line.attempts, open_line.done) == (closed_line.attempts, closed_line.done) == (1, 1)
    assert "the usage of an hour is that of the attempts that ended in it" not in _broken(
        await audit(the_world.url)
    )
    detail = await the_world.ask(OZ, ShowJob(query_id="q", job_id=job_id))
    assert [each.epoch for each in detail.attempts] == [2]
