"""Dependencies: which jobs wait for which others, and how far these have come."""

import pytest

from tests.services.world import World, result
from wms.auth.policy import Scope
from wms.db import dependency
from wms.db.dependency import Dependency
from wms.ids import JobId
from wms.job.reasons import Code
from wms.job.state import State
from wms.jobdesc.predecessors import Predecessors, Ranges


def ranges(*ids: int) -> Ranges:
    return tuple((n, n) for n in ids)


async def waiting(the_world: World, jobs: Ranges, after: Predecessors) -> Dependency:
    async with the_world.db.transaction() as tx:
        await dependency.insert(tx, [(jobs, after)])
        await dependency.insert(tx, [])
        return (await dependency.page(tx, 0, 100))[-1]


async def ended(the_world: World, *outcomes: str) -> list[JobId]:
    """Return jobs of which each ended like this; or runs on."""
    held = await the_world.running(len(outcomes))
    finish = tuple(
        result(each, outcome, Code.DONE if outcome == "done" else Code.EXIT_CODE)
        for each, outcome in zip(held, outcomes, strict=True)
        if outcome != "running"
    )
    await the_world.report(finish=finish)
    return [each.job_id for each in held]


async def test_what_is_written_is_read_as_it_was(the_world: World) -> None:
    after = Predecessors(((1, 5), (9, 9)), any_end=((3, 4),), outputs_of=((9, 9),))
    made = await waiting(the_world, ((20, 29),), after)
    assert (made.jobs, made.predecessors, made.pending, made.failed) == (
        ((20, 29),),
        after,
        ((1, 5), (9, 9)),
        None,
    )
    async with the_world.db.transaction() as tx:
        assert await dependency.of_jobs(tx, ranges(25)) == [made]
        assert await dependency.of_jobs(tx, ranges(30)) == []
        await dependency.advance(tx, made.dependency_id, ranges(9), 5)
        (found,) = await dependency.of_jobs(tx, ranges(29))
        assert (found.pending, found.failed) == (ranges(9), 5)
        assert await dependency.page(tx, made.dependency_id, 100) == []
        await dependency.delete(tx, made.dependency_id)
        assert await dependency.page(tx, 0, 100) == []


async def test_one_settles_a_dependency_at_a_time(the_world: World) -> None:
    made = await waiting(the_world, ranges(20), Predecessors(ranges(1)))
    async with the_world.db.transaction() as one, the_world.db.transaction() as other:
        assert await dependency.lock(one, made.dependency_id) == made
        assert await dependency.lock(other, made.dependency_id) is None
        assert await dependency.lock(other, 10**6) is None


@pytest.mark.parametrize(
    ("outcomes", "any_end", "left", "failed"),
    [
        (("done", "done", "done"), (), (), None),
        (("done", "running", "done"), (), (1, 2), None),
        (("done", "failed", "running"), (), (1, 2), 1),
        (("done", "failed", "running"), (1,), (2,), None),
    ],
)
async def test_what_is_left_begins_at_the_first_that_has_not_ended_as_it_must(
    the_world: World,
    outcomes: tuple[str, ...],
    any_end: tuple[int, ...],
    left: tuple[int, ...],
    failed: int | None,
) -> None:
    ids = await ended(the_world, *outcomes)
    async with the_world.db.transaction() as tx:
        (found,) = await dependency.progress(tx, [(ranges(*ids), ranges(*(ids[n] for n in any_end)))])
        assert await dependency.progress(tx, []) == []
    assert found.pending == ranges(*(ids[n] for n in left))
    assert found.failed == (None if failed is None else ids[failed])
    assert found.is_met == (not left)


async def test_predecessors_in_blocks_count_as_those_with_rows(the_world: World) -> None:
    ids = await the_world.swept(100)
    span = ((ids[0], ids[-1]),)
    async with the_world.db.transaction() as tx:
        (found,) = await dependency.progress(tx, [(span, ())])
        assert found.pending == span
    await the_world.order("kill", *ids[:50])
    async with the_world.db.transaction() as tx:
        (found,) = await dependency.progress(tx, [(span, span)])
        assert found.pending == ((ids[50], ids[-1]),)
        (first,) = await dependency.unmet(tx, span, (), 1)
        assert (first.job_id, first.last, first.state) == (ids[0], ids[49], State.KILLED)


async def test_jobs_that_are_let_go_wait_for_nobody(the_world: World) -> None:
    made = await waiting(the_world, ((20, 29),), Predecessors(ranges(1)))
    async with the_world.db.transaction() as tx:
        await dependency.let_go(tx, ((22, 24),))
        (found,) = await dependency.page(tx, 0, 100)
        assert (found.dependency_id, found.jobs) == (made.dependency_id, ((20, 21), (25, 29)))
        await dependency.let_go(tx, ((1, 100),))
        assert await dependency.page(tx, 0, 100) == []


async def test_dependencies_of_which_no_job_is_held_are_idle(the_world: World) -> None:
    (first,) = await the_world.submitted()
    (after,) = await the_world.submitted(after=[first])
    idle = await waiting(the_world, ranges(10**6), Predecessors(ranges(first)))
    async with the_world.db.transaction() as tx:
        found = await dependency.page(tx, 0, 100)
        assert await dependency.forget_idle(tx, [each.dependency_id for each in found]) == 1
        assert await dependency.forget_idle(tx, []) == 0
        assert [each.jobs for each in await dependency.page(tx, 0, 100)] == [ranges(after)]
        assert idle.dependency_id not in [each.dependency_id for each in await dependency.page(tx, 0, 100)]
        (code,) = (await dependency.hold_codes(tx, [first, after])).items()
        assert code[0] == after


async def test_only_jobs_in_reach_are_counted(the_world: World) -> None:
    rows, block = await the_world.submitted(3), await the_world.swept(10)
    asked = ((rows[0], rows[2]), (block[0], block[4]), (10**6, 10**7))
    async with the_world.db.transaction() as tx:
        assert await dependency.visible(tx, Scope(reach="all"), asked) == [3, 5, 0]
        assert await dependency.visible(tx, Scope(reach="vo", vo="cms"), asked) == [0, 0, 0]


async def test_states_and_outputs_are_of_the_jobs_that_there_are(the_world: World) -> None:
    one, two = await the_world.running(2)
    sha = "c" * 64
    await the_world.report(finish=(result(one, output_sha256=sha, output_bytes=7), result(two)))
    ids = [one.job_id, two.job_id]
    async with the_world.db.transaction() as tx:
        assert await dependency.states(tx, [*ids, 10**6]) == dict.fromkeys(ids, State.DONE)
        assert await dependency.states(tx, []) == {}
        (output,) = await dependency.outputs(tx, ranges(*ids))
        assert (output.sha256, output.size, output.directory) == (sha, 7, str(one.job_id))
