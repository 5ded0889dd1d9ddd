"""Why a job waits, as its user is told it: over a real database with real ads and pilots in it."""

import itertools
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import msgspec
import pytest

from services.matcher.queue_stats import QueueStatsWriter
from tests.services.world import World, pilot, user
from wms.bus.consumer import Delivery
from wms.db import ad, limit
from wms.ids import CommandId, JobId, PilotId, RequestId
from wms.matching.limits import LimitRule
from wms.messages import replies
from wms.messages.ads import Advertise, Withdraw
from wms.messages.commands import Selector, Submit
from wms.messages.queries import ListJobs, ListQueues, ShowJob, WhyJob
from wms.messages.requests import MatchRequest
from wms.queue_index.index import QueueIndex
from wms.site import ComputingElement, Resource

_NUMBERS = itertools.count(1)

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


# --- how queues do, by a matcher ------------------------------------------------------------------------------------


async def queue_lines(world: World) -> list[int]:
    reply = await world.ask(user(), ListQueues(query_id="q"))
    return [line.waiting for line in reply.queues]


async def test_queues_are_counted_until_a_matcher_says_how_they_do(the_world: World) -> None:
    await the_world.submitted(3)
    await the_world.submitted(2, memory_mb=1)
    assert await queue_lines(the_world) == [3, 2]
    await the_world.watch()
    assert await queue_lines(the_world) == [3, 2]
    await the_world.submitted(4)
    assert await queue_lines(the_world) == [3, 2], "it has not looked again"
    await the_world.watch()
    assert await queue_lines(the_world) == [7, 2]
    await the_world.sql("update queue_watch set at = now() - interval '1 min'")
    await the_world.submitted()
    assert await queue_lines(the_world) == [8, 2], "it is silent"


async def test_a_matcher_writes_what_changed_and_forgets_what_is_gone(the_world: World) -> None:
    first, _ = await the_world.submitted(2)
    (other,) = await the_world.submitted(memory_mb=1)
    await the_world.watch()
    rows = "select tq_id, waiting, weight, xmin::text as version from queue_state order by tq_id"
    before = await the_world.sql(rows)
    await the_world.order("kill", first)
    await the_world.watch()
    after = await the_world.sql(rows)
    assert [row["waiting"] for row in after] == [1, 1]
    assert [old["version"] == new["version"] for old, new in zip(before, after, strict=True)] == [False, True]
    await the_world.order("kill", other)
    await the_world.watch()
    assert len(await the_world.sql(rows)) == 1


async def test_one_matcher_watches_and_another_takes_over(the_world: World) -> None:
    await the_world.submitted(2)
    await the_world.watch()
    empty = QueueIndex()
    other = QueueStatsWriter(the_world.db, empty, Counter(), "dirac", "another")
    await other.write()
    assert await queue_lines(the_world) == [2]
    await the_world.sql("update queue_watch set at = now() - interval '1 min'")
    await other.write()
    assert await queue_lines(the_world) == [], "it knows of none, and forgot what the first said"
    await the_world.watch()
    assert await queue_lines(the_world) == [], "the first has lost the watch"
    await the_world.sql("update queue_watch set at = now() - interval '1 min'")
    await the_world.watch()
    assert await queue_lines(the_world) == [2], "and says all anew when it has it again"


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


async def test_matches_of_a_transaction_that_failed_are_not_counted(the_world: World) -> None:
    await the_world.submitted(3)
    await the_world.match()
    assert sum(the_world._matching.by_queue.values()) == 1
    with pytest.raises(asyncpg.DivisionByZeroError):
        await failing_match(the_world)
    assert sum(the_world._matching.by_queue.values()) == 1


async def failing_match(world: World) -> None:
    request = MatchRequest(
        request_id=RequestId("r"),
        pilot_id=PilotId("p-1"),
        resource=Resource(setup="default", vo="lhcb", cpu_time=10**6),
    )
    async with world.db.transaction() as tx:
        await world._matching.handle(tx, [Delivery(pilot(), request)])
        await tx.fetch("select 1 / 0")


# --- reasons, kept and told ----------------------------------------------------------------------------------------


async def line_of(world: World, job_id: JobId) -> replies.JobLine:
    reply = await world.ask(user(), ListJobs(query_id="q", selector=Selector(ids=((job_id, job_id),))))
    (line,) = reply.jobs
    assert isinstance(line, replies.JobLine)
    return line


async def test_a_reason_is_kept_with_its_queue_and_told_when_it_changes(the_world: World) -> None:
    first, second = await the_world.submitted(2, memory_mb=8_000)
    (fact,) = await the_world.look()
    assert (fact.code, fact.waiting, fact.owner, fact.vo) == ("IMPOSSIBLE_NOW", 2, "ann", "lhcb")
    assert [(await line_of(the_world, each)).reason for each in (first, second)] == ["IMPOSSIBLE_NOW"] * 2
    detail = await the_world.ask(user(), ShowJob(query_id="q", job_id=first))
    assert (detail.job.reason, detail.reason_text) == ("IMPOSSIBLE_NOW", fact.text)
    assert await the_world.look() == [], "nothing has changed"
    await advertise(the_world)
    assert [each.code for each in await the_world.look()] == ["NEVER_POSSIBLE"]
    await advertise(the_world, "large", memory_mb=16_000)
    assert [each.code for each in await the_world.look()] == ["NO_PILOT"]
    assert (await line_of(the_world, first)).reason == "NO_PILOT"


async def test_what_waits_no_more_has_no_reason(the_world: World) -> None:
    (job_id,) = await the_world.submitted()
    await the_world.look()
    await the_world.order("kill", job_id)
    assert (await line_of(the_world, job_id)).reason == "KILLED_BY_USER"
    assert await the_world.look() == []
    assert await the_world.sql("select 1 from wait_reason") == []


async def test_queues_that_are_served_are_not_told_of_all_the_time(the_world: World) -> None:
    await the_world.submitted(9)
    await advertise(the_world)
    await run_pilot(the_world, busy=4)
    assert [each.code for each in await the_world.look()] == ["SLOTS_BUSY"]
    await run_pilot(the_world, busy=0)
    assert await the_world.look() == []
    await the_world.sql("update wait_reason set since = since - interval '1 min'")
    assert [each.code for each in await the_world.look()] == ["SOON"]
    await expire(the_world)
    assert [each.code for each in await the_world.look()] == ["IMPOSSIBLE_NOW"], "graver news go at once"


async def test_a_queue_whose_turn_never_comes_is_behind_others(the_world: World) -> None:
    """The highest CPU segment goes first: while it has jobs, the others get nothing."""
    await the_world.submitted(50, cpu_time=200_000)
    (short,) = await the_world.submitted(cpu_time=100)
    await advertise(the_world)
    await run_pilot(the_world, busy=2)
    assert sorted(each.code for each in await the_world.look()) == ["BEHIND_OTHERS", "SOON"]
    said = await why(the_world, short)
    assert said.code == "BEHIND_OTHERS"
    assert (await line_of(the_world, short)).reason == "BEHIND_OTHERS"


async def test_without_a_matcher_that_says_how_queues_do_reasons_stay(the_world: World) -> None:
    (job_id,) = await the_world.submitted()
    await the_world.look()
    await the_world.sql("update queue_watch set at = now() - interval '1 min'")
    await advertise(the_world)
    await the_world._reasons.look()
    assert (await line_of(the_world, job_id)).reason == "IMPOSSIBLE_NOW"


async def test_queues_come_and_go_and_come_again(the_world: World) -> None:
    """What is numbered in memory is begun anew when most of it is gone, and says the same as before."""
    for n in range(4):
        (job_id,) = await the_world.submitted(memory_mb=n + 1)
        assert [each.code for each in await the_world.look()] == ["IMPOSSIBLE_NOW"]
        await the_world.order("kill", job_id)
    assert len(the_world._reasons._numbers) == 4
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("services.job_manager.maintenance.wait_reasons.DEAD_QUEUES", 0)
        await the_world.submitted(memory_mb=3)
        assert [each.code for each in await the_world.look()] == ["IMPOSSIBLE_NOW"]
        assert len(the_world._reasons._numbers) == 1


# --- already at the submission --------------------------------------------------------------------------------------


async def offered(world: World, *jobs: dict[str, Any], strict: bool = False, rehearsal: bool = False) -> Any:
    raw = tuple(msgspec.Raw(msgspec.json.encode({"executable": "/bin/true", **each})) for each in jobs)
    submit = Submit(command_id=CommandId(f"c-{next(_NUMBERS)}"), jobs=raw, strict=strict, rehearsal=rehearsal)
    (reply,) = await world.command(user(), submit)
    return reply


async def test_a_submission_is_warned_of_what_cannot_run(the_world: World) -> None:
    await advertise(the_world)
    await advertise(the_world, "gone", tags=("gpu",))
    await expire(the_world, "gone")
    reply = await offered(
        the_world, {}, {"memory_mb": 9_000, "array": 5}, {"tags": ["gpu"]}, {"memory_mb": 9_000}
    )
    assert [(each.code, each.jobs) for each in reply.foreseen] == [
        ("NEVER_POSSIBLE", 6),
        ("IMPOSSIBLE_NOW", 1),
    ]
    assert reply.foreseen[0].relaxations[0].changes == ("memory 4000 MB instead of 9000",)
    assert "NEVER_POSSIBLE: 6 jobs can never run as they are" in reply.warnings[0]
    assert "memory 4000 MB instead of 9000 (4 slots at A) would do" in reply.warnings[0]
    assert reply.ids, "they are taken all the same"
    assert (await offered(the_world, {})).foreseen == ()


async def test_a_strict_submission_is_refused_whole(the_world: World) -> None:
    await advertise(the_world)
    reply = await offered(the_world, {}, {"memory_mb": 9_000}, strict=True)
    assert (reply.code, len(reply.details)) == ("CANNOT_RUN", 1)
    for table in ("job", "description", "submission", "task_queue"):
        assert not await the_world.sql(f"select 1 from {table}"), table
    assert (await offered(the_world, {}, strict=True)).ids


async def test_a_rehearsal_stores_nothing(the_world: World) -> None:
    reply = await offered(the_world, {"memory_mb": 9_000}, rehearsal=True)
    assert isinstance(reply, replies.Submitted)
    assert reply.ids == ()
    assert [each.code for each in reply.foreseen] == ["IMPOSSIBLE_NOW"]
    assert not await the_world.sql("select 1 from job")


async def test_what_is_foreseen_changes_with_the_ads(the_world: World) -> None:
    assert [each.code for each in (await offered(the_world, {})).foreseen] == ["IMPOSSIBLE_NOW"]
    await advertise(the_world)
    assert (await offered(the_world, {})).foreseen == ()
    await expire(the_world)
    assert [each.code for each in (await offered(the_world, {})).foreseen] == ["IMPOSSIBLE_NOW"]


async def test_requirements_are_judged_once_until_ads_change(the_world: World) -> None:
    await advertise(the_world)
    foresight = the_world._commands.submissions.foresight
    await offered(the_world, {"memory_mb": 9_000})
    (judged,) = foresight._obstacles.values()
    await advertise(the_world, load=3.5, current_jobs=4)
    await offered(the_world, *[{"memory_mb": 9_000}] * 5)
    assert next(iter(foresight._obstacles.values())) is judged, "what changes all the time is no news"
    await advertise(the_world, memory_mb=5_000)
    reply = await offered(the_world, {"memory_mb": 9_000})
    assert reply.foreseen[0].relaxations[0].changes == ("memory 5000 MB instead of 9000",)


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
