"""Jobs of groups and arrays are counted wherever they are: in rows or in blocks; and however many there are, in steps."""

import pytest

from tests.services.world import World, user
from wms.auth.policy import Scope
from wms.db import progress
from wms.db.progress import CountedJobs
from wms.job.state import State

ALL = Scope(reach="all")


def total(counted: CountedJobs) -> int:
    return sum(each.jobs for each in counted.counts.values())


async def test_jobs_of_an_array_are_counted_once_as_they_become_rows(the_world: World) -> None:
    (first, *_) = await the_world.swept(6)
    await the_world.match(slots=2)
    async with the_world.db.transaction() as tx:
        counted = await progress.count(tx, ALL, 600.0)
        assert total(counted) == 6
        (description,) = {description for _, description, _ in counted.counts}
        found = await progress.arrays(tx, [description])
    assert (found[description]["first"], found[description]["last"]) == (first, first + 5)


async def test_the_description_counts_for_arrays_without_a_group_alone(the_world: World) -> None:
    await the_world.submit({}, {"array": 2, "job_group": "night"}, who=user("ann"))
    async with the_world.db.transaction() as tx:
        counted = await progress.count(tx, ALL, 600.0)
    assert {description for _, description, _ in counted.counts} == {0}


@pytest.mark.parametrize("owner", [None, "ann"])
async def test_a_count_in_parts_is_the_same_as_one_count(the_world: World, owner: str | None) -> None:
    scope = ALL if owner is None else Scope(reach="owner", owner=owner, group="physics", vo="lhcb")
    held, *rest = await the_world.submitted(5, job_group="g")
    await the_world.swept(3)
    await the_world.submit({}, {}, who=user("bob"))
    await the_world.order("hold", held)
    async with the_world.db.transaction() as tx:
        whole = await progress.count(tx, scope, 600.0)
        part = await progress.count(tx, scope, 600.0, seconds=0.0, step=2)
        parts = [part]
        while part.counted_from is not None:
            part = await progress.count(tx, scope, 600.0, part, seconds=0.0, step=2)
            parts.append(part)
    assert [total(each) for each in parts] == [
        3 + each for each in ((2, 4, 6, 7) if owner is None else (2, 4, 5))
    ]
    assert part == whole
    assert whole.counts["g", 0, State.HELD].first == held
    assert whole.counts["g", 0, State.WAITING].first == rest[0]


async def test_jobs_out_of_sight_are_looked_at_and_not_counted(the_world: World) -> None:
    await the_world.submitted(5)
    async with the_world.db.transaction() as tx:
        counted = await progress.count(tx, Scope(reach="vo", vo="other"), 600.0, seconds=0.0, step=2)
        assert counted.counts == {}
        assert counted.counted_from is not None
        assert await progress.count(tx, Scope(reach="vo", vo="other"), 600.0, step=2) == CountedJobs({})
