"""Jobs of groups and arrays are counted wherever they are: in rows or in blocks."""

from tests.services.world import World, user
from wms.auth.policy import Scope
from wms.db import progress


async def test_jobs_of_an_array_are_counted_once_as_they_become_rows(the_world: World) -> None:
    (first, *_) = await the_world.swept(6)
    await the_world.match(slots=2)
    async with the_world.db.transaction() as tx:
        rows = await progress.counts(tx, Scope(reach="all"), 600.0)
        assert sum(row["jobs"] for row in rows) == 6
        (description,) = {row["description_id"] for row in rows}
        found = await progress.arrays(tx, [description])
    assert (found[description]["first"], found[description]["last"]) == (first, first + 5)


async def test_the_description_counts_for_arrays_without_a_group_alone(the_world: World) -> None:
    await the_world.submit({}, {"array": 2, "job_group": "night"}, who=user("ann"))
    async with the_world.db.transaction() as tx:
        rows = await progress.counts(tx, Scope(reach="all"), 600.0)
    assert {row["description_id"] for row in rows} == {0}
