"""What users order for their jobs, and for other people's."""

from typing import Any

import pytest

from tests.services.world import World, pilot, result, user
from wms.audit import audit
from wms.ids import CommandId
from wms.job.reasons import Code
from wms.messages import replies
from wms.messages.commands import Control, Selector
from wms.messages.queries import CountJobs, ListJobs, ShowJob, WhyJob


@pytest.fixture(autouse=True)
async def _audited(the_world: World) -> Any:
    """Whatever a test did, the auditor finds nothing."""
    yield
    report = await audit(the_world.url)
    assert report.ok, report.text(brief=True)


async def test_a_waiting_job_is_killed_at_once_and_not_matched(the_world: World) -> None:
    (job_id,) = await the_world.submitted()
    assert (await the_world.order("kill", job_id)).changed == 1
    assert await the_world.state(job_id) == "Killed"
    assert await the_world.match() == []
    again = await the_world.order("kill", job_id)
    assert (again.changed, again.unchanged_total) == (0, 1)
    assert "Killed" in again.unchanged[0].why


async def test_a_matchers_stale_index_does_not_match_a_killed_job(the_world: World) -> None:
    (job_id,) = await the_world.submitted()
    await the_world._feed.reconcile()
    await the_world.order("kill", job_id)
    assert len(the_world.index) == 1
    assert await the_world.match() == []
    assert (await the_world.job(job_id))["epoch"] == 0


@pytest.mark.parametrize("outcome", ["done", "failed", "killed", "lost"])
async def test_a_running_job_that_is_to_be_killed_ends_killed(the_world: World, outcome: str) -> None:
    (held,) = await the_world.running()
    await the_world.order("kill", held[0])
    assert await the_world.state(held[0]) == "Running"
    await the_world.report(finish=(result(held, outcome, Code.SIGNAL),))
    assert await the_world.state(held[0]) == "Killed"


async def test_a_running_job_that_is_to_be_killed_ends_killed_with_its_pilots_lease(the_world: World) -> None:
    (held,) = await the_world.running()
    await the_world.order("kill", held[0])
    await the_world.expire(held[0])
    assert await the_world.state(held[0]) == "Killed"


async def test_a_job_killed_while_it_is_offered_is_never_granted(the_world: World) -> None:
    (job_id,) = await the_world.submitted()
    (held,) = await the_world.match()
    await the_world.order("kill", job_id)
    answer = await the_world.report(accept=(held,))
    assert answer.lost == (held,)
    assert await the_world.state(job_id) == "Killed"


async def test_a_held_job_waits_for_its_release(the_world: World) -> None:
    (job_id,) = await the_world.submitted()
    await the_world.order("hold", job_id)
    assert await the_world.match() == []
    assert (await the_world.job(job_id))["reason"] == "HELD_BY_USER"
    await the_world.order("release", job_id)
    ((matched, _),) = await the_world.match()
    assert matched == job_id


async def test_a_running_job_cannot_be_held_and_is_told_why(the_world: World) -> None:
    (held,) = await the_world.running()
    answer = await the_world.order("hold", held[0])
    assert answer.changed == 0
    assert "`wms hold --running` stops it and holds it" in answer.unchanged[0].why


@pytest.mark.parametrize("how", ["killed", "lost", "expired", "offered"])
async def test_a_running_job_is_stopped_and_held_until_it_is_released(the_world: World, how: str) -> None:
    (job_id,) = await the_world.submitted(max_attempts=1)
    (held,) = await the_world.match()
    if how != "offered":
        await the_world.report(accept=(held,), start=(held,))
    assert (await the_world.order("stop_and_hold", job_id)).changed == 1
    match how:
        case "killed" | "lost":
            await the_world.report(finish=(result(held, how, Code.SIGNAL),))
        case _:
            await the_world.expire(job_id)
    assert await the_world.state(job_id) == "Held"
    job = await the_world.job(job_id)
    assert (job["reason"], job["attempts"], job["site"]) == ("HELD_BY_USER", 0, None)
    assert await the_world.match(pilot("p-2")) == []
    assert (await the_world.order("release", job_id)).changed == 1
    assert len(await the_world.match(pilot("p-2"))) == 1


@pytest.mark.parametrize("how", ["killed", "lost", "expired", "offered"])
@pytest.mark.parametrize(
    ("action", "code"),
    [
        ("kill", "KILLED_BY_USER"),
        ("stop_and_hold", "HELD_BY_USER"),
        ("reschedule", "RESCHEDULED_BY_USER"),
    ],
)
async def test_a_history_says_who_had_a_pilot_stop_a_job_and_why(
    the_world: World, action: str, code: str, how: str
) -> None:
    (job_id,) = await the_world.submitted()
    (held,) = await the_world.match()
    if how != "offered":
        await the_world.report(accept=(held,), start=(held,))
    boss = user("boss", "operator")
    await the_world.order("stop_and_hold", job_id, reason="a first thought")
    await the_world.order(action, job_id, who=boss, reason="wrong input")
    pending = await the_world.ask(user(), WhyJob(query_id="q", job_id=job_id))
    assert "by boss: wrong input" in pending.summary
    if how in ("killed", "lost"):
        await the_world.report(finish=(result(held, how, Code.KILLED_BY_USER),))
    else:
        await the_world.expire(job_id)
    detail = await the_world.ask(user(), ShowJob(query_id="q", job_id=job_id))
    (move,) = [each for each in detail.history if each.reason == code]
    assert (move.source, move.text.partition(";")[0]) == ("user boss", "wrong input")
    why = await the_world.ask(user(), WhyJob(query_id="q", job_id=job_id))
    if action != "reschedule":
        assert "by boss" in why.summary
        assert "wrong input" in why.summary
    assert await the_world.sql("select from stop_order") == []


async def test_an_order_to_stop_that_came_too_late_is_forgotten(the_world: World) -> None:
    (held,) = await the_world.running()
    await the_world.order("stop_and_hold", held[0], reason="late")
    await the_world.report(finish=(result(held, "done", Code.DONE),))
    assert await the_world.sql("select from stop_order") == []


async def test_a_job_that_ends_before_it_is_stopped_is_done(the_world: World) -> None:
    (held,) = await the_world.running()
    await the_world.order("stop_and_hold", held[0])
    await the_world.report(finish=(result(held, "done", Code.DONE),))
    assert await the_world.state(held[0]) == "Done"


async def test_a_history_says_who_held_a_job(the_world: World) -> None:
    (job_id,) = await the_world.submitted()
    (swept, *_) = await the_world.swept(3)
    for each in (job_id, swept):
        await the_world.order("hold", each)
        detail = await the_world.ask(user(), ShowJob(query_id="q", job_id=each))
        assert detail.history[-1].source == f"user {user().owner}"


async def test_why_of_a_held_job_names_who_held_it_and_what_releases_it(the_world: World) -> None:
    (job_id,) = await the_world.submitted()
    selector = Selector(ids=((job_id, job_id),))
    control = Control(command_id=CommandId("h"), action="hold", selector=selector, reason="calibration first")
    await the_world.command(user(), control)
    answer = await the_world.ask(user(), WhyJob(query_id="q", job_id=job_id))
    assert answer.summary.startswith(f"Held by {user().owner} since ")
    assert answer.summary.endswith(": calibration first")
    assert answer.advice == f"`wms release {job_id}` lets it wait for a pilot again"


async def test_an_id_named_beside_a_range_is_not_called_nobodys(the_world: World) -> None:
    jobs = await the_world.submitted(4)
    selector = Selector(ids=((jobs[0], jobs[1]), (jobs[3], jobs[3])))
    (answer,) = await the_world.command(
        user(), Control(command_id=CommandId("k"), action="kill", selector=selector)
    )
    assert (answer.changed, answer.unchanged_total) == (3, 0)  # type: ignore[union-attr]


async def test_refusals_are_counted_by_state(the_world: World) -> None:
    alone, swept = await the_world.submitted(2), await the_world.swept(30)
    await the_world.order("kill", *alone, *swept)
    answer = await the_world.order("hold", *alone, *swept, 10**9)
    assert (answer.unchanged_total, answer.unchanged_by_state) == (33, {"Killed": 32})


@pytest.mark.parametrize("how", ["killed", "lost", "expired", "ended", "offered", "declined"])
async def test_a_reschedule_begins_to_count_anew_however_the_pilot_lets_go(
    the_world: World, how: str
) -> None:
    """Of one attempt all were used up; its user asks for another."""
    (job_id,) = await the_world.submitted(max_attempts=1)
    (held,) = await the_world.match()
    if how not in ("offered", "declined"):
        await the_world.report(accept=(held,), start=(held,))
    assert (await the_world.order("reschedule", job_id)).changed == 1
    match how:
        case "killed" | "lost":
            await the_world.report(finish=(result(held, how, Code.SIGNAL),))
        case "ended":
            await the_world.report(state="ended")
        case "declined":
            await the_world.report(accept=(held,))
        case _:
            await the_world.expire(job_id)
    assert await the_world.state(job_id) == "Waiting"
    assert (await the_world.job(job_id))["attempts"] == 0
    ((_, epoch),) = await the_world.match(pilot("p-2"))
    assert epoch == held[1] + 1


async def test_a_job_that_is_done_before_it_can_be_rescheduled_is_done(the_world: World) -> None:
    (held,) = await the_world.running()
    await the_world.order("reschedule", held[0])
    await the_world.report(finish=(result(held),))
    assert await the_world.state(held[0]) == "Done"
    assert (await the_world.order("reschedule", held[0])).changed == 0


async def test_a_failed_job_is_tried_again(the_world: World) -> None:
    (held,) = await the_world.running(max_attempts=1)
    await the_world.report(finish=(result(held, "failed", Code.EXIT_CODE, exit_code=3),))
    await the_world.order("reschedule", held[0])
    (again,) = await the_world.match(pilot("p-2"))
    await the_world.report(pilot("p-2"), accept=(again,), start=(again,), finish=(result(again),))
    assert await the_world.state(held[0]) == "Done"


async def test_a_kill_outlasts_a_reschedule(the_world: World) -> None:
    (held,) = await the_world.running()
    await the_world.order("kill", held[0])
    assert (await the_world.order("reschedule", held[0])).unchanged[0].why == f"job {held[0]} is being killed"
    await the_world.expire(held[0])
    assert await the_world.state(held[0]) == "Killed"


async def test_removed_is_for_ever(the_world: World) -> None:
    (job_id,) = await the_world.submitted()
    assert (await the_world.order("remove", job_id)).changed == 1
    for action in ("kill", "hold", "release", "reschedule", "remove"):
        assert (await the_world.order(action, job_id)).changed == 0
    assert await the_world.state(job_id) == "Deleted"


STRANGERS = {
    "another user": user("bob"),
    "another group": user("ann", group="other"),
    "another VO": user("ann", vo="atlas"),
    "an administrator of another VO": user("eve", "job_administrator", vo="atlas"),
    "who may only look": user("eve", "job_monitor"),
}


@pytest.mark.parametrize("who", STRANGERS)
async def test_another_ones_job_is_no_such_job(the_world: World, who: str) -> None:
    (job_id,) = await the_world.submitted()
    stranger = STRANGERS[who]
    for action in ("kill", "hold", "remove", "reschedule"):
        answer = await the_world.order(action, job_id, who=stranger)
        nothing = await the_world.order(action, 10**9, who=stranger)
        assert answer.changed == 0
        assert answer.unchanged[0].why == f"there is no job {job_id}"
        assert nothing.unchanged[0].why == f"there is no job {10**9}"
    assert await the_world.state(job_id) == "Waiting"
    shown = await the_world.ask(stranger, ShowJob(query_id="q", job_id=job_id))
    assert isinstance(shown, replies.Refused)
    assert isinstance(await the_world.ask(stranger, WhyJob(query_id="q", job_id=job_id)), replies.Refused)


async def test_everything_is_only_ones_own(the_world: World) -> None:
    await the_world.submitted(3)
    await the_world.submit({"array": 2}, who=user("bob"))
    (reply,) = await the_world.command(
        user("bob"),
        Control(command_id="k", action="kill", selector=Selector(everything=True)),  # type: ignore[arg-type]
    )
    assert isinstance(reply, replies.Controlled)
    assert reply.changed == 2
    assert {tuple(row) for row in await the_world.sql("select distinct owner, state from job")} == {
        ("ann", "Waiting")
    }
    assert [row["state"] for row in await the_world.sql("select state from block")] == ["Killed"]


async def test_who_has_the_right_may_kill_but_not_submit_for_others(the_world: World) -> None:
    (job_id,) = await the_world.submitted()
    answer = await the_world.order("kill", job_id, who=user("eve", "job_administrator"))
    assert answer.changed == 1
    assert (await the_world.job(job_id))["owner"] == "ann"


async def test_overlapping_ranges_mean_each_job_once(the_world: World) -> None:
    job_ids = await the_world.submitted(3) + await the_world.swept(4)
    first, last = job_ids[0], job_ids[-1]
    overlapping = (*[(first, last)] * 900, (first, first), (last, last + 5), (last, first))
    selector = Selector(ids=overlapping)
    counts = await the_world.ask(user(), CountJobs(query_id="q", client="c", selector=selector))
    assert counts.counts == {"Waiting": 7}
    page = await the_world.ask(user(), ListJobs(query_id="q", client="c", selector=selector, limit=100))
    assert [line.job_id for line in page.jobs] == job_ids
