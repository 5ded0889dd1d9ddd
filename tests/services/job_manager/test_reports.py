"""What agents report takes effect once, under a lease that is theirs, or not at all."""

import asyncio
from typing import Any

import pytest

from tests.services.world import World, pilot, result, user
from wms.audit import audit
from wms.db import job
from wms.ids import AttemptId, Epoch, JobId
from wms.job.job import HANDOUT_LIMIT
from wms.job.reasons import HOLDING, Code
from wms.messages import queries
from wms.messages.reports import HostTransfer, StagingReport, Usage, UsageOverTime
from wms.messages.site_inbox import Kill


@pytest.fixture(autouse=True)
async def _audited(the_world: World) -> Any:
    """Whatever a test did, the auditor finds nothing."""
    yield
    report = await audit(the_world.url)
    assert report.ok, report.text(brief=True)


async def test_a_job_runs_and_is_done(the_world: World) -> None:
    (held,) = await the_world.running()
    answer = await the_world.report(finish=(result(held, exit_code=0, stdout_tail="hello"),))
    assert answer.recorded == (held,)
    assert await the_world.state(held[0]) == "Done"
    (attempt,) = await the_world.attempts(held[0])
    assert (attempt["outcome"], attempt["exit_code"], attempt["stdout_tail"]) == ("done", 0, "hello")
    assert attempt["cpu_user_seconds"] == 1.0
    assert await the_world.history(held[0]) == ["Received", "Waiting", "Matched", "Running", "Done"]


async def test_what_a_job_used_over_time_is_kept_with_its_attempt(the_world: World) -> None:
    held, other = await the_world.running(2)
    points = ((0, 0, 512), (5, 4_900, 1_024))
    more = (*points, (10, 9_900, 768))
    said = [UsageOverTime(job_id=held.job_id, epoch=held.epoch, points=each) for each in (points, more)]
    await the_world.report(renew=(held,), usage=said[:1])
    assert await used(the_world, held.job_id) == points
    stranger = UsageOverTime(job_id=held.job_id, epoch=Epoch(held.epoch + 1), points=points[:1])
    await the_world.report(who=pilot("p-2"), usage=(said[0],))
    await the_world.report(usage=(stranger,))
    await the_world.report(finish=(result(held),), usage=said[1:])
    assert await used(the_world, held.job_id) == more
    assert await used(the_world, other.job_id) == ()


async def used(world: World, job_id: JobId) -> Any:
    answer = await world.ask(user(), queries.ShowJob(query_id="q", client="c", job_id=job_id))
    return answer.attempts[-1].usage_points


async def test_a_usual_life_leaves_no_row_of_history_but_its_attempt(the_world: World) -> None:
    held = await the_world.running(3)
    done, failed, killed = held
    await the_world.order("kill", killed[0])
    await the_world.report(
        finish=(
            result(done),
            result(failed, "failed", Code.EXIT_CODE, text="3"),
            result(killed, "killed", Code.KILLED_BY_USER),
        )
    )
    (said,) = await the_world.sql("select job_id, event, source from job_move")
    assert tuple(said) == (killed[0], "kill", "user ann"), "who killed it is nowhere else"
    begun = ["QUEUED", "OFFERED", "STARTED"]
    for (job_id, _), state, reason in (
        (done, "Done", "DONE"),
        (failed, "Failed", "EXIT_CODE"),
        (killed, "Killed", "KILLED_BY_USER"),
    ):
        assert await the_world.history(job_id) == ["Received", "Waiting", "Matched", "Running", state]
        assert await the_world.reasons(job_id) == ["ACCEPTED", *begun, reason]


async def test_an_end_that_is_not_its_payloads_alone_is_written_as_it_was(the_world: World) -> None:
    (held,) = await the_world.running()
    await the_world.order("kill", held[0])
    await the_world.report(finish=(result(held, "done", Code.DONE),))
    (move,) = await the_world.sql("select seq, before, event, state, reason, source from job_move")
    assert tuple(move) == (5, "Running", "kill", "Killed", "KILLED_BY_USER", "user ann")
    assert await the_world.history(held[0]) == ["Received", "Waiting", "Matched", "Running", "Killed"]


async def test_a_result_that_overtakes_the_start_is_taken(the_world: World) -> None:
    await the_world.submitted()
    (held,) = await the_world.match()
    await the_world.report(accept=(held,))
    await the_world.report(finish=(result(held),))
    assert await the_world.history(held[0]) == ["Received", "Waiting", "Matched", "Running", "Done"]


async def test_a_payload_may_not_start_before_its_lease_is_granted(the_world: World) -> None:
    await the_world.submitted()
    (held,) = await the_world.match()
    for parts in ({"start": (held,)}, {"renew": (held,)}, {"finish": (result(held),)}):
        answer = await the_world.report(**parts)
        assert answer.lost == (held,)
    assert await the_world.state(held[0]) == "Matched"


@pytest.mark.parametrize("part", ["accept", "start", "renew", "finish"])
async def test_a_late_report_of_an_old_epoch_is_lost_and_changes_nothing(the_world: World, part: str) -> None:
    (old,) = await the_world.running()
    await the_world.expire(old[0])
    (new,) = await the_world.match(pilot("p-2"))
    assert new == (old[0], old[1] + 1)
    await the_world.report(pilot("p-2"), accept=(new,), start=(new,))
    before = await the_world.job(old[0])
    said: dict[str, Any] = {part: (result(old) if part == "finish" else old,)}
    answer = await the_world.report(**said)
    assert answer.lost == (old,)
    assert answer.granted == answer.recorded == ()
    assert await the_world.job(old[0]) == before
    assert [each["outcome"] for each in await the_world.attempts(old[0])] == ["lost", None]


@pytest.mark.parametrize("part", ["renew", "finish"])
async def test_a_report_after_the_leases_end_is_lost_even_before_the_sweep(
    the_world: World, part: str
) -> None:
    (held,) = await the_world.running()
    await the_world.sql("update lease set expires_at = now() - interval '1 ms'")
    said: dict[str, Any] = {part: (result(held) if part == "finish" else held,)}
    answer = await the_world.report(**said)
    assert answer.lost == (held,)
    assert await the_world.state(held[0]) == "Running"
    await the_world.expire()
    assert await the_world.state(held[0]) == "Waiting"


async def test_a_report_sent_again_is_acknowledged_again_and_counts_once(the_world: World) -> None:
    await the_world.submitted()
    (held,) = await the_world.match()
    for parts in ({"accept": (held,)}, {"start": (held,)}, {"finish": (result(held),)}):
        report = the_world.made(**parts)
        first, second = await the_world.report(pilot(), report, **parts)
        again = await the_world.report(pilot(), **parts)
        assert first.lost == second.lost == again.lost == ()
        assert first.granted == second.granted == again.granted
        assert first.recorded == second.recorded == again.recorded
    assert (await the_world.job(held[0]))["attempts"] == 1
    (attempt,) = await the_world.attempts(held[0])
    assert attempt["cpu_user_seconds"] == 1.0


async def test_all_of_a_life_may_come_in_one_report(the_world: World) -> None:
    await the_world.submitted()
    (held,) = await the_world.match()
    answer = await the_world.report(
        accept=(held,), start=(held,), renew=(held,), finish=(result(held, "failed", Code.EXIT_CODE),)
    )
    assert answer.recorded == (held,)
    assert await the_world.state(held[0]) == "Failed"
    assert (await the_world.job(held[0]))["attempts"] == 1


async def test_renewal_moves_the_end_of_the_lease(the_world: World) -> None:
    (held,) = await the_world.running()
    await the_world.sql("update lease set expires_at = now() + interval '1 s'")
    answer = await the_world.report(renew=(held,))
    assert answer.granted == (held,)
    assert answer.lease_seconds == the_world.terms.lease_seconds
    (left,) = await the_world.sql("select extract(epoch from expires_at - now()) as seconds from lease")
    assert left["seconds"] > the_world.terms.lease_seconds - 60


async def test_a_declined_offer_goes_back_at_once(the_world: World) -> None:
    (job_id,) = await the_world.submitted(max_attempts=1)
    (held,) = await the_world.match()
    await the_world.report(decline=(held,))
    assert await the_world.state(job_id) == "Waiting"
    assert (await the_world.job(job_id))["attempts"] == 0
    answer = await the_world.report(accept=(held,))
    assert answer.lost == (held,)


async def test_what_was_accepted_cannot_be_declined(the_world: World) -> None:
    (held,) = await the_world.running()
    await the_world.report(decline=(held,))
    assert await the_world.state(held[0]) == "Running"


async def test_a_pilot_that_dies_costs_what_it_had_not_begun_no_attempt(the_world: World) -> None:
    held = await the_world.running(2, max_attempts=1)
    waiting = await the_world.submitted(3, max_attempts=1)
    taken = await the_world.match(slots=3)
    await the_world.report(accept=tuple(taken))
    await the_world.expire(*(job_id for job_id, _ in (*held, *taken)))
    assert [await the_world.state(job_id) for job_id, _ in held] == ["Failed", "Failed"]
    for job_id in waiting:
        row = await the_world.job(job_id)
        assert (row["state"], row["attempts"], row["unstarted"], row["epoch"]) == ("Waiting", 0, 1, 1)
        (attempt,) = await the_world.attempts(job_id)
        assert (attempt["outcome"], attempt["started_at"]) == ("lost", None)


async def test_what_an_ended_pilot_had_not_begun_costs_no_attempt(the_world: World) -> None:
    (job_id,) = await the_world.submitted(max_attempts=1)
    (held,) = await the_world.match()
    await the_world.report(accept=(held,))
    await the_world.report(state="ended", reason="told to end")
    row = await the_world.job(job_id)
    assert (row["state"], row["attempts"], row["unstarted"]) == ("Waiting", 0, 1)


async def test_what_its_agent_could_not_begin_costs_no_attempt(the_world: World) -> None:
    (job_id,) = await the_world.submitted(max_attempts=1)
    (held,) = await the_world.match()
    await the_world.report(accept=(held,))
    await the_world.report(finish=(result(held, "lost", Code.AGENT_ERROR, began=False),))
    row = await the_world.job(job_id)
    assert (row["state"], row["attempts"], row["unstarted"]) == ("Waiting", 0, 1)
    (held,) = await the_world.match()
    await the_world.report(accept=(held,))
    await the_world.report(finish=(result(held, "lost", Code.AGENT_ERROR),))
    assert (await the_world.job(job_id))["reason"] == "TOO_MANY_ATTEMPTS"


async def _hand_out(the_world: World, job_id: int, times: int) -> None:
    for _ in range(times):
        who = pilot(f"p-{(await the_world.job(job_id))['epoch'] + 1}")
        (held,) = await the_world.match(who)
        await the_world.report(who, accept=(held,))
        await the_world.expire(job_id)


@pytest.mark.parametrize("outcome", ["lost", "failed", "killed"])
async def test_what_never_began_used_nothing_whatever_its_agent_says(the_world: World, outcome: str) -> None:
    await the_world.submitted()
    (held,) = await the_world.match()
    await the_world.report(accept=(held,))
    usage = Usage(cpu_user_seconds=1_000.0, wall_seconds=1_000.0)
    await the_world.report(finish=(result(held, outcome, Code.AGENT_ERROR, began=False, usage=usage),))
    (attempt,) = await the_world.attempts(held[0])
    assert (attempt["outcome"], attempt["started_at"]) == (outcome, None)
    assert (attempt["cpu_user_seconds"], attempt["wall_seconds"]) == (0.0, 0.0)
    assert (await audit(the_world.url)).ok


async def test_who_is_lost_before_each_beginning_is_held_and_says_why(the_world: World) -> None:
    (job_id,) = await the_world.submitted(max_attempts=1)
    await _hand_out(the_world, job_id, HANDOUT_LIMIT)
    row = await the_world.job(job_id)
    assert (row["state"], row["reason"], row["attempts"]) == ("Held", "NEVER_STARTED", 0)
    assert (row["epoch"], row["site"], row["pilot_id"]) == (HANDOUT_LIMIT, None, None)
    (text,) = await the_world.sql("select text from job_event where reason = 'NEVER_STARTED'")
    assert text["text"].startswith(
        f"handed out {HANDOUT_LIMIT} times and never begun; the last: pilot p-10 at A/"
    )
    assert await the_world.match(pilot("p-99")) == []
    await the_world.order("release", job_id)
    row = await the_world.job(job_id)
    assert (row["state"], row["unstarted"]) == ("Waiting", 0)
    assert await the_world.match(pilot("p-99")) == [(job_id, HANDOUT_LIMIT + 1)]


async def test_one_beginning_forgets_the_times_without(the_world: World) -> None:
    (job_id,) = await the_world.submitted(max_attempts=2)
    await _hand_out(the_world, job_id, HANDOUT_LIMIT - 1)
    assert (await the_world.job(job_id))["unstarted"] == HANDOUT_LIMIT - 1
    (held,) = await the_world.match(pilot("p-98"))
    await the_world.report(pilot("p-98"), accept=(held,), start=(held,))
    await the_world.expire(job_id)
    row = await the_world.job(job_id)
    assert (row["state"], row["unstarted"], row["attempts"]) == ("Waiting", 0, 1)


async def test_what_its_agent_calls_lost_is_tried_again(the_world: World) -> None:
    (held,) = await the_world.running(max_attempts=2)
    answer = await the_world.report(finish=(result(held, "lost", Code.OUTPUT_FAILED),))
    assert answer.recorded == (held,)
    assert await the_world.state(held[0]) == "Waiting"
    again = await the_world.report(finish=(result(held, "lost", Code.OUTPUT_FAILED),))
    assert again.recorded == (held,)
    assert (await the_world.job(held[0]))["attempts"] == 1


async def test_what_an_ended_pilot_held_is_taken_back_at_once(the_world: World) -> None:
    held = await the_world.running(3)
    (offered,) = [*await the_world.submitted()]
    await the_world.match()
    answer = await the_world.report(finish=(result(held[0]),), state="ended", reason="idle")
    assert answer.recorded == (held[0],)
    assert [await the_world.state(job_id) for job_id, _ in held] == ["Done", "Waiting", "Waiting"]
    assert await the_world.state(offered) == "Waiting"
    assert (await the_world.job(offered))["attempts"] == 0
    (row,) = await the_world.sql("select state, reason, jobs_done from pilot")
    assert tuple(row) == ("Done", "idle", 1)


async def test_an_offer_that_its_pilot_left_behind_costs_no_attempt(the_world: World) -> None:
    (job_id,) = await the_world.submitted(max_attempts=1)
    ((_, epoch),) = await the_world.match()
    assert (await the_world.job(job_id))["attempts"] == 1
    await the_world.report(state="ended", reason="idle")
    assert await the_world.state(job_id) == "Waiting"
    assert (await the_world.job(job_id))["attempts"] == 0
    assert await the_world.match(pilot("p-2")) == [(job_id, epoch + 1)]


async def test_what_was_granted_and_not_begun_is_given_back_and_costs_no_attempt(the_world: World) -> None:
    (job_id,) = await the_world.submitted(max_attempts=1)
    (held,) = await the_world.match()
    await the_world.report(accept=(held,))
    assert (await the_world.job(job_id))["attempts"] == 1
    await the_world.report(decline=(held,))
    assert await the_world.state(job_id) == "Waiting"
    assert (await the_world.job(job_id))["attempts"] == 0


async def test_what_a_pilot_says_of_others_jobs_neither_waits_for_them_nor_locks_them(
    the_world: World,
) -> None:
    (held,) = await the_world.running()
    stranger = pilot("p-2")
    async with the_world.db.transaction() as tx, asyncio.timeout(20):
        await job.lock(tx, [held.job_id])
        answer = await the_world.report(stranger, renew=(held,), finish=(result(held),), decline=(held,))
    assert answer.lost == (held,)
    assert await the_world.state(held[0]) == "Running"


async def test_another_pilots_lease_is_not_its_own_to_report_on(the_world: World) -> None:
    (held,) = await the_world.running()
    mallory = await the_world.add_pilot(pilot("p-mallory"))
    for parts in ({"renew": (held,)}, {"finish": (result(held, "failed", Code.EXIT_CODE),)}):
        answer = await the_world.report(mallory, **parts)
        assert answer.lost == (held,)
    assert await the_world.state(held[0]) == "Running"


async def test_a_pilot_id_that_is_not_the_tokens_is_passed_over(the_world: World) -> None:
    (held,) = await the_world.running()
    from wms.bus.consumer import Delivery

    forged = the_world.made(pilot("p-1"), finish=(result(held),))
    for who in (pilot("p-mallory"), user("p-1"), None):
        async with the_world.db.transaction() as tx:
            await the_world._reports.handle(tx, [Delivery(who, forged)])
    assert the_world.told() == []
    assert await the_world.state(held[0]) == "Running"


async def test_a_report_of_a_job_that_never_was_is_lost(the_world: World) -> None:
    await the_world.add_pilot()
    never = [AttemptId(JobId(number), Epoch(1)) for number in (99, 98, 97)]
    answer = await the_world.report(accept=never[:1], renew=never[1:2], finish=[result(never[2])])
    assert set(answer.lost) == set(never)


async def test_kills_are_repeated_until_the_end_is_reported(the_world: World) -> None:
    (held,) = await the_world.running()
    await the_world.order("kill", held[0])
    assert [each.jobs for each in the_world.told() if isinstance(each, Kill)] == [(held,)]
    for _ in range(3):
        answer = await the_world.report(renew=(held,))
        assert answer.kill == answer.granted == (held,)
    answer = await the_world.report(finish=(result(held, "killed", Code.KILLED_BY_USER),))
    assert answer.recorded == (held,)
    assert await the_world.state(held[0]) == "Killed"


@pytest.mark.parametrize("code", sorted(HOLDING))
async def test_a_job_whose_file_cannot_come_is_held_and_says_why(the_world: World, code: Code) -> None:
    (job_id,) = await the_world.submitted(max_attempts=1)
    for attempt in (1, 2):
        (held,) = await the_world.match()
        await the_world.report(accept=(held,))
        text = "a: https://h/a: 404 Not Found"
        await the_world.report(finish=(result(held, "lost", code, began=False, text=text),))
        row = await the_world.job(job_id)
        assert (row["state"], row["reason"], row["attempts"], row["unstarted"]) == ("Held", code, 0, 1)
        said = await the_world.sql(f"select text from job_event where reason = '{code}' and event = 'hold'")
        assert [each["text"] for each in said] == [text] * attempt
        assert await the_world.match() == []
        await the_world.order("release", job_id)
    assert await the_world.state(job_id) == "Waiting"


async def test_progress_of_transfers_is_shown_and_what_was_measured_is_kept_once(the_world: World) -> None:
    (job_id,) = await the_world.submitted()
    (held,) = await the_world.match()
    await the_world.report(accept=(held,))
    said = StagingReport(
        job_id=held.job_id, epoch=held.epoch, part="stage_in", files=2, files_done=1, bytes_done=5
    )
    await the_world.report(renew=(held,), staging=(said,))
    shown = await the_world.ask(user(), queries.ShowJob(query_id="q", job_id=job_id))
    assert shown.lease.staging == said
    await the_world.report(start=(held,))
    shown = await the_world.ask(user(), queries.ShowJob(query_id="q", job_id=job_id))
    assert shown.lease.staging is None
    way = HostTransfer(part="stage_in", host="se1", files=2, size=10, seconds=2.0)
    for _ in range(2):
        await the_world.report(finish=(result(held, transfers=(way,)),))
    kept = await the_world.sql("select site, host, part, bytes, seconds from transfer")
    assert [tuple(each) for each in kept] == [("A", "se1", "stage_in", 10, 2.0)]


async def fails(world: World, code: Code = Code.EXIT_CODE, retries: int = 2) -> str:
    """Run the one waiting job until its program fails, report that twice, and return the job's state."""
    (held,) = await world.match()
    end = result(held, "failed", code, text="exit code 3", exit_code=3, retries=retries)
    await world.report(accept=(held,), start=(held,))
    for _ in range(2):
        answer = await world.report(finish=(end,))
        assert answer.recorded == (held,)
    return await world.state(held[0])


async def test_a_program_that_fails_is_started_again_as_often_as_was_asked(the_world: World) -> None:
    (job_id,) = await the_world.submitted(max_attempts=1, retries=2)
    assert [await fails(the_world) for _ in range(3)] == ["Waiting", "Waiting", "Failed"]
    attempts = await the_world.attempts(job_id)
    assert [(each["outcome"], each["exit_code"]) for each in attempts] == [("failed", 3)] * 3
    assert await the_world.history(job_id) == [
        *("Received", "Waiting"),
        *("Matched", "Running", "Rescheduled", "Waiting") * 2,
        *("Matched", "Running", "Failed"),
    ]
    await the_world.order("reschedule", job_id)
    assert [await fails(the_world) for _ in range(3)] == ["Waiting", "Waiting", "Failed"], "it begins anew"


async def test_a_pilot_starts_no_job_again_more_often_than_its_attempts_allow(the_world: World) -> None:
    await the_world.submitted(max_attempts=1, retries=1)
    assert [await fails(the_world, retries=1), await fails(the_world, retries=100)] == ["Waiting", "Failed"]


async def test_a_loss_between_failures_takes_no_retry(the_world: World) -> None:
    await the_world.submitted(max_attempts=2, retries=1)
    assert await fails(the_world, retries=1) == "Waiting"
    (held,) = await the_world.match()
    await the_world.report(accept=(held,), start=(held,))
    await the_world.report(finish=(result(held, "lost", Code.PILOT_STOPPED),))
    assert await the_world.state(held[0]) == "Waiting"
    assert await fails(the_world, retries=1) == "Failed"


async def test_who_kills_a_job_that_may_start_again_ends_it(the_world: World) -> None:
    (job_id,) = await the_world.submitted(retries=2)
    (held,) = await the_world.match()
    await the_world.report(accept=(held,), start=(held,))
    await the_world.order("kill", job_id)
    await the_world.report(finish=(result(held, "failed", Code.EXIT_CODE, exit_code=1, retries=2),))
    assert await the_world.state(job_id) == "Killed"
    told = await the_world.sql("select text from job_event where job_id = $1", job_id)
    assert not any("starts again" in (each["text"] or "") for each in told)
