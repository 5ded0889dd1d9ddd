"""What users change of jobs that are there: the description, the task queue, and what the history tells of it."""

from typing import Any

import msgspec
import pytest

from services.job_manager import job_orders as ordering
from services.job_manager.edit_orders import EditOrder
from tests.services.world import World, pilot, result, user
from wms.audit import audit
from wms.db import claim, limit
from wms.db.claim import JobClaim
from wms.ids import CommandId, PilotId, RequestId
from wms.job.reasons import Code
from wms.messages import replies
from wms.messages.commands import Control, Selector
from wms.messages.queries import ShowJob, WhyJob

SHA = "0f" * 32
ARCHIVE = {"sha256": SHA, "size": 10}


@pytest.fixture(autouse=True)
async def _audited(the_world: World) -> Any:
    """Whatever a test did, the auditor finds nothing."""
    yield
    report = await audit(the_world.url)
    assert report.ok, report.text(brief=True)


async def described(the_world: World, job_id: int) -> dict[str, Any]:
    detail = await the_world.ask(user(), ShowJob(query_id="q", job_id=job_id))
    found: dict[str, Any] = detail.description
    return found


async def refused(the_world: World, action: Any, selector: Selector, **changes: Any) -> replies.Refused:
    raw = {name: msgspec.Raw(msgspec.json.encode(each)) for name, each in changes.items()}
    order = Control(command_id=CommandId("c-refused"), action=action, selector=selector, changes=raw)
    (reply,) = await the_world.command(user(), order)
    assert isinstance(reply, replies.Refused), reply
    return reply


async def test_a_waiting_job_is_edited_and_waits_in_the_queue_of_what_it_asks_now(the_world: World) -> None:
    edited, other = await the_world.submitted(2, memory_mb=100)
    answer = await the_world.order(
        "edit", edited, reason="too small", memory_mb=4096, sites=["A"], priority=7
    )
    assert answer.changed == 1
    row, stayed = await the_world.job(edited), await the_world.job(other)
    assert row["tq_id"] != stayed["tq_id"]
    assert (row["state"], row["user_priority"], row["reason"]) == ("Waiting", 7.0, "QUEUED")
    assert (await described(the_world, edited))["memory_mb"] == 4096
    assert (await described(the_world, other))["memory_mb"] == 100
    assert await the_world.history(edited) == ["Received", "Waiting", "Rescheduled", "Waiting"]
    detail = await the_world.ask(user(), ShowJob(query_id="q", job_id=edited))
    move = detail.history[-2]
    assert (move.reason, move.source) == ("EDITED_BY_USER", "user ann")
    assert move.text == "too small; memory_mb 4096, sites A, priority 7"
    assert [job_id for job_id, _ in await the_world.match(memory_mb=200, slots=2)] == [other]
    assert [job_id for job_id, _ in await the_world.match(memory_mb=5000)] == [edited]


async def test_what_was_drawn_before_an_edit_is_not_claimed_after_it(the_world: World) -> None:
    (job_id,) = await the_world.submitted(memory_mb=100)
    before = (await the_world.job(job_id))["tq_id"]
    await the_world.order("edit", job_id, memory_mb=4096)
    after = (await the_world.job(job_id))["tq_id"]
    async with the_world.db.transaction() as tx:
        known = (await limit.advertising(tx)).generation
        claims = [
            JobClaim(job_id, PilotId("p-1"), RequestId("r"), "A", "ce", tq_id) for tq_id in (before, after)
        ]
        assert await claim.claim(tx, claims[:1], 30.0, known) == []
        (claimed,) = await claim.claim(tx, claims[1:], 30.0, known) or []
        await tx.execute("update job set state = 'Waiting', epoch = 0, event_seq = 4, attempts = 0")
        await tx.execute("delete from lease")
    assert claimed.job_id == job_id


async def test_a_matchers_stale_index_does_not_match_an_edited_job(the_world: World) -> None:
    (job_id,) = await the_world.submitted(memory_mb=100)
    await the_world._feed.reconcile()
    await the_world.order("edit", job_id, memory_mb=4096)
    assert await the_world.match(memory_mb=200) == []
    assert len(await the_world.match(memory_mb=5000)) == 1


async def test_a_held_job_is_edited_and_stays_held_by_whom_it_was(the_world: World) -> None:
    (job_id,) = await the_world.submitted()
    boss = user("boss", "operator")
    await the_world.order("hold", job_id, who=boss, reason="wrong memory")
    assert (await the_world.order("edit", job_id, memory_mb=300)).changed == 1
    row = await the_world.job(job_id)
    assert (row["state"], row["reason"]) == ("Held", "HELD_BY_USER")
    assert await the_world.match() == []
    why = await the_world.ask(user(), WhyJob(query_id="q", job_id=job_id))
    assert "Held by boss" in why.summary
    assert "wrong memory" in why.summary
    await the_world.order("release", job_id)
    assert len(await the_world.match(memory_mb=400)) == 1


async def test_a_failed_job_runs_again_with_more_memory(the_world: World) -> None:
    (held,) = await the_world.running(memory_mb=100, max_attempts=1, banned_sites=["B"])
    await the_world.report(finish=(result(held, "failed", Code.MEMORY_LIMIT),))
    job_id = held[0]
    answer = await the_world.order(
        "reschedule", job_id, memory_mb=4096, input_sandbox=[ARCHIVE], banned_sites=[], sites=["B"]
    )
    assert answer.changed == 1
    assert await the_world.match() == [], "it ran at A, and may run at B alone from now on"
    assert (await the_world.reasons(job_id))[-2:] == ["RESCHEDULED_BY_USER", "EDITED_BY_USER"]
    after = await described(the_world, job_id)
    assert (after["memory_mb"], after["input_sandbox"]) == (4096, [ARCHIVE])
    assert "banned_sites" not in after
    (again,) = await the_world.match(pilot("p-b", site="B"), site="B")
    assert (await the_world.job(job_id))["attempts"] == 1
    await the_world.report(pilot("p-b", site="B"), accept=(again,), start=(again,))
    await the_world.report(pilot("p-b", site="B"), finish=(result(again, "done", Code.DONE),))
    assert await the_world.state(job_id) == "Done"


@pytest.mark.parametrize("state", ["Running", "Failed", "Done", "Killed"])
async def test_an_edit_that_makes_no_sense_is_refused_with_what_does(the_world: World, state: str) -> None:
    remedies = {"Running": "wms hold --running", "Failed": "wms reschedule"}
    (held,) = await the_world.running(memory_mb=100)
    if state != "Running":
        outcome = {"Failed": "failed", "Done": "done", "Killed": "killed"}[state]
        await the_world.report(finish=(result(held, outcome, Code.SIGNAL),))
    answer = await the_world.order("edit", held[0], memory_mb=200)
    assert answer.changed == 0
    assert state in answer.unchanged[0].why
    assert remedies.get(state, "--retry-of") in answer.unchanged[0].why
    assert (await described(the_world, held[0]))["memory_mb"] == 100


async def test_a_running_job_is_not_rescheduled_with_changes(the_world: World) -> None:
    (held,) = await the_world.running()
    answer = await the_world.order("reschedule", held[0], memory_mb=200)
    assert "wms hold --running" in answer.unchanged[0].why
    assert (await the_world.job(held[0]))["stop_requested"] == ""


async def test_jobs_of_a_sweep_are_edited_and_keep_their_own_values(the_world: World) -> None:
    jobs = await the_world.swept(
        5, memory_mb=10, name="s{n}", arguments=["{v}"], parameters={"v": list("abcde")}
    )
    answer = await the_world.order("edit", *jobs[1:3], memory_mb=300)
    assert answer.changed == 2
    (block, *more) = await the_world.sql("select first, last from block order by first")
    assert [tuple(each) for each in (block, *more)] == [(jobs[0], jobs[0]), (jobs[3], jobs[4])]
    detail = await the_world.ask(user(), ShowJob(query_id="q", job_id=jobs[2]))
    assert (detail.job.name, detail.parameters, detail.array_index) == ("s2", {"v": "c"}, 2)
    assert detail.description["memory_mb"] == 300
    assert (await described(the_world, jobs[4]))["memory_mb"] == 10
    again = await the_world.order("edit", *jobs[1:3], memory_mb=400, priority=9)
    assert again.changed == 2, "what has a description of its own is edited, too"
    assert {each for each, _ in await the_world.match(memory_mb=200, slots=5)} == {jobs[0], *jobs[3:]}
    assert {each for each, _ in await the_world.match(slots=5)} == set(jobs[1:3])


async def test_jobs_of_a_held_sweep_are_edited_and_stay_held(the_world: World) -> None:
    jobs = await the_world.swept(4)
    await the_world.order("hold", *jobs, reason="later")
    assert (await the_world.order("edit", *jobs, memory_mb=300)).changed == 4
    why = await the_world.ask(user(), WhyJob(query_id="q", job_id=jobs[3]))
    assert "Held by ann" in why.summary
    assert "later" in why.summary
    assert (await the_world.order("release", *jobs)).changed == 4
    assert len(await the_world.match(slots=4)) == 4


async def test_a_sweep_that_is_too_large_to_edit_is_refused_whole(
    the_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ordering, "EDITED_LIMIT", 3)
    jobs = await the_world.swept(4, memory_mb=100)
    answer = await refused(the_world, "edit", Selector(ids=((jobs[0], jobs[-1]),)), memory_mb=300)
    assert answer.code == "TOO_MANY_TO_EDIT"
    assert "4 jobs" in answer.message
    assert await the_world.sql("select from job") == []


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({}, ""),
        ({"memory_mb": 0}, "memory_mb"),
        ({"memory_mb": "4G"}, "memory_mb"),
        ({"memroy_mb": 4}, "memroy_mb"),
        ({"arguments": ["x"]}, "arguments"),
        ({"array": 5}, "array"),
        ({"priority": 11}, "priority"),
        ({"sites": ["x" * 300]}, "sites[0]"),
        ({"requirements": "other.("}, "requirements"),
        ({"input_sandbox": [{"sha256": "x", "size": 1}]}, "input_sandbox[0]"),
    ],
)
async def test_changes_are_judged_as_descriptions_are(
    the_world: World, changes: dict[str, Any], place: str
) -> None:
    (job_id,) = await the_world.submitted()
    answer = await refused(the_world, "edit", Selector(ids=((job_id, job_id),)), **changes)
    assert answer.code == "DESCRIPTION_INVALID"
    assert any(place in each for each in answer.details), answer
    assert await the_world.history(job_id) == ["Received", "Waiting"]


async def test_changes_that_do_not_go_with_the_rest_leave_that_job_alone(the_world: World) -> None:
    (odd,) = await the_world.submitted(max_memory_mb=200)
    (fine,) = await the_world.submitted()
    answer = await the_world.order("edit", odd, fine, memory_mb=300)
    assert (answer.changed, answer.unchanged_total) == (1, 1)
    assert answer.unchanged[0].job_id == odd
    assert "max_memory_mb" in answer.unchanged[0].why


async def test_only_edit_and_reschedule_take_changes(the_world: World) -> None:
    (job_id,) = await the_world.submitted()
    answer = await refused(the_world, "hold", Selector(ids=((job_id, job_id),)), memory_mb=300)
    assert answer.code == "BAD_ORDER"


async def test_who_may_not_act_on_a_job_may_not_edit_it(the_world: World) -> None:
    (job_id,) = await the_world.submitted(memory_mb=100)
    answer = await the_world.order("edit", job_id, who=user("eve"), memory_mb=300)
    assert (answer.changed, answer.unchanged[0].why) == (0, f"there is no job {job_id}")
    boss = user("boss", "operator")
    assert (await the_world.order("edit", job_id, who=boss, memory_mb=300)).changed == 1
    (queue,) = await the_world.sql("select q.owner from task_queue q join job using (tq_id)")
    assert queue["owner"] == "ann"
    files = await the_world.order("edit", job_id, who=boss, input_sandbox=[ARCHIVE])
    assert files.changed == 0
    assert "only its owner may send it other files" in files.unchanged[0].why


async def test_a_bound_of_attempts_counts_those_that_were_made(the_world: World) -> None:
    (held,) = await the_world.running(max_attempts=2)
    await the_world.expire(held[0])
    answer = await the_world.order("edit", held[0], max_attempts=1)
    assert "it has had 1 already" in answer.unchanged[0].why
    (again,) = await the_world.match()
    await the_world.report(accept=(again,), start=(again,))
    await the_world.expire(held[0])
    assert (await the_world.job(held[0]))["reason"] == "TOO_MANY_ATTEMPTS"
    assert (await the_world.order("reschedule", held[0], max_attempts=5)).changed == 1


async def test_losses_of_a_held_job_count_anew_once_it_was_edited(the_world: World) -> None:
    (job_id,) = await the_world.submitted()
    for _ in range(10):
        (held,) = await the_world.match()
        await the_world.report(accept=(held,))
        await the_world.expire(job_id)
    assert (await the_world.job(job_id))["reason"] == "NEVER_STARTED"
    assert (await the_world.order("edit", job_id, memory_mb=300)).changed == 1
    row = await the_world.job(job_id)
    assert (row["state"], row["reason"], row["unstarted"]) == ("Held", "NEVER_STARTED", 0)


async def test_an_edit_that_comes_twice_is_done_once(the_world: World) -> None:
    (job_id,) = await the_world.submitted()
    for repeated in (False, True):
        answer = await the_world.order("edit", job_id, command_id="once", memory_mb=300)
        assert (answer.changed, answer.repeated) == (1, repeated)
    assert len(await the_world.history(job_id)) == 4


async def test_jobs_of_their_own_descriptions_are_edited_a_few_at_a_time(
    the_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each description is read and written anew: 2,000 long ones held the event loop for a second."""
    await the_world.submit({"arguments": ["{n}"], "array": ordering.EDITED_BATCH + 50})
    apply = EditOrder.apply
    at_once: list[int] = []

    async def counted(order: Any, tx: Any, job_batch: Any, moving: Any) -> Any:
        at_once.append(len(moving))
        return await apply(order, tx, job_batch, moving)

    monkeypatch.setattr(EditOrder, "apply", counted)
    order = Control(
        command_id=CommandId("c-all"),
        action="edit",
        selector=Selector(everything=True),
        changes={"memory_mb": msgspec.Raw(b"77")},
    )
    (answer,) = await the_world.command(user(), order)
    assert isinstance(answer, replies.Controlled)
    assert answer.changed == sum(at_once) == ordering.EDITED_BATCH + 50
    assert max(at_once) <= ordering.EDITED_BATCH
