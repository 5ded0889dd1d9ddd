"""What users order of jobs that wait for others."""

import msgspec
import pytest

from tests.services.job_manager.test_dependencies import dependency_rows, described, end, shown, why
from tests.services.world import World, user
from wms.ids import CommandId
from wms.messages import replies
from wms.messages.commands import Submit


@pytest.mark.parametrize("action", ["kill", "remove"])
async def test_a_killed_or_removed_predecessor_is_told_and_the_user_may_let_the_job_go(
    the_world: World, action: str
) -> None:
    (first,) = await the_world.submitted()
    (after,) = await the_world.submitted(after=[first])
    await the_world.order(action, first)
    await the_world.settle()
    assert await shown(the_world, after) == ("Held", "DEPENDENCY_FAILED")
    assert (await the_world.order("release", after)).changed == 1
    assert await the_world.state(after) == "Waiting"
    assert await dependency_rows(the_world) == 0


@pytest.mark.parametrize("count", [1, 100])
async def test_a_user_who_holds_a_waiting_job_keeps_it_beyond_its_predecessors_end(
    the_world: World, count: int
) -> None:
    (held,) = await the_world.running()
    jobs = await (
        the_world.swept(count, after=[held[0]]) if count > 1 else the_world.submitted(after=[held[0]])
    )
    kept = jobs[: max(1, count // 2)]
    assert (await the_world.order("hold", *kept, reason="not yet")).changed == len(kept)
    assert await shown(the_world, kept[0]) == ("Held", "HELD_BY_USER")
    # Once released, it waits for its predecessor again.
    assert (await the_world.order("release", kept[0])).changed == 1
    assert await shown(the_world, kept[0]) == ("Held", "DEPENDENCY")
    await the_world.order("hold", kept[0])
    await end(the_world, held)
    assert {await shown(the_world, each) for each in kept} == {("Held", "HELD_BY_USER")}
    assert {(await shown(the_world, each))[0] for each in jobs[len(kept) :]} <= {"Waiting"}
    assert (await the_world.order("release", *kept)).changed == len(kept)
    assert {(await shown(the_world, each))[0] for each in jobs} == {"Waiting"}


@pytest.mark.parametrize("count", [1, 100])
async def test_a_release_does_not_let_a_job_overtake_its_predecessors(the_world: World, count: int) -> None:
    (first,) = await the_world.submitted()
    jobs = await (the_world.swept(count, after=[first]) if count > 1 else the_world.submitted(after=[first]))
    answer = await the_world.order("release", *jobs)
    assert (answer.changed, answer.unchanged_total) == (0, count)
    assert "waits for others" in answer.unchanged[0].why
    await the_world.order("kill", first)
    await the_world.settle()
    some = jobs[: max(1, count // 2)]
    assert (await the_world.order("release", *some)).changed == len(some)
    assert {(await shown(the_world, each))[0] for each in some} == {"Waiting"}
    assert {await shown(the_world, each) for each in jobs[len(some) :]} <= {("Held", "DEPENDENCY_FAILED")}


async def test_jobs_submitted_held_wait_for_both(the_world: World) -> None:
    (held,) = await the_world.running()
    raw = msgspec.Raw(msgspec.json.encode({"executable": "true", "after": [held[0]]}))
    (reply,) = await the_world.command(user(), Submit(command_id=CommandId("c"), jobs=(raw,), hold=True))
    assert isinstance(reply, replies.Submitted)
    job_id = reply.ids[0][0]
    assert await shown(the_world, job_id) == ("Held", "HELD_BY_USER")
    assert f"it waits for job {held[0]} (Running" in await why(the_world, job_id)
    await the_world.order("release", job_id)
    assert await shown(the_world, job_id) == ("Held", "DEPENDENCY")
    await end(the_world, held)
    assert await the_world.state(job_id) == "Waiting"


async def test_predecessors_are_edited_while_a_job_is_held(the_world: World) -> None:
    (running,) = await the_world.running()
    first = running[0]
    (second,) = await the_world.submitted()
    one, other, third = await the_world.submitted(3, after=[first])
    assert (await the_world.order("edit", one, after=[])).changed == 1
    assert (await the_world.order("edit", other, after=[second])).changed == 1
    late = await the_world.order("edit", third, after=[third])
    assert "submitted before it" in late.unchanged[0].why
    await the_world.settle()
    assert await the_world.state(one) == "Waiting"
    assert "it waits for" in await why(the_world, other)
    assert f"starts after job {second}" in await why(the_world, other)
    await end(the_world, running)
    assert [await the_world.state(each) for each in (other, third)] == ["Held", "Waiting"]
    waiting = await the_world.order("edit", third, after=[second])
    assert "hold it first" in waiting.unchanged[0].why
    assert (await described(the_world, other))["after"] == [second]


async def test_one_job_of_an_array_gets_other_predecessors(the_world: World) -> None:
    (running,) = await the_world.running()
    first = running[0]
    (second,) = await the_world.submitted()
    sweep = await the_world.swept(10, after=[first])
    assert (await the_world.order("edit", sweep[4], after=[second])).changed == 1
    await the_world.order("kill", second)
    await the_world.settle()
    assert await shown(the_world, sweep[4]) == ("Held", "DEPENDENCY_FAILED")
    assert await shown(the_world, sweep[5]) == ("Held", "DEPENDENCY")
    await end(the_world, running)
    assert await shown(the_world, sweep[4]) == ("Held", "DEPENDENCY_FAILED")
    assert (await shown(the_world, sweep[5]))[0] == "Waiting"
