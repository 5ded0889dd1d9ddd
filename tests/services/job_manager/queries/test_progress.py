"""How far groups and sweeps are equals what their jobs say, for whoever may see them."""

from functools import partial

import pytest
from msgspec.structs import replace

from services.job_manager.queries.kept_counts import KeptCounts
from services.job_manager.queries.progress import count_progress, show_progress
from tests.services.world import World, pilot, result, user
from wms.auth.policy import Scope
from wms.auth.principal import Principal
from wms.db import progress
from wms.messages import replies
from wms.messages.queries import ShowProgress

ANN = user("ann")
OZ = user("oz", "operator", group="ops", vo="ops")


async def lines_of(world: World, who: Principal = ANN, limit: int = 100) -> tuple[replies.ProgressLine, ...]:
    """Return the lines of an answer from fresh counts."""
    query = ShowProgress(query_id="q", limit=limit)
    async with world.db.transaction() as tx:
        return (await show_progress(tx, who, query, KeptCounts(1))).lines


async def finish(world: World, count: int) -> None:
    held = await world.match(pilot(), count)
    await world.report(pilot(), accept=tuple(held), start=tuple(held))
    await world.report(pilot(), finish=tuple(result(each) for each in held))


async def test_groups_sweeps_and_single_jobs_have_a_line_each(the_world: World) -> None:
    await the_world.submit({"job_group": "night"}, {"job_group": "night", "array": 3}, who=user("ann"))
    await the_world.submit({"array": 4, "name": "sim-{n}"}, {}, {}, who=user("ann"))
    lines = {(line.job_group, line.name): line for line in await lines_of(the_world)}
    assert {key: sum(line.counts.values()) for key, line in lines.items()} == {
        ("night", ""): 4,
        ("", "sim-{n}"): 4,
        ("", ""): 2,
    }
    sweep = lines["", "sim-{n}"]
    assert sweep.last == sweep.first + 3
    assert lines["night", ""].last is None


async def test_jobs_that_ended_lately_are_counted_whether_in_blocks_or_not(the_world: World) -> None:
    await the_world.submit({"array": 10}, who=user("ann"))
    await finish(the_world, 4)
    (line,) = await lines_of(the_world)
    assert (line.counts["Done"], line.ended_recently) == (4, 4)
    assert sum(line.counts.values()) == 10
    await the_world.sql("update job set changed_at = now() - interval '1 h'")
    (line,) = await lines_of(the_world)
    assert (line.counts["Done"], line.ended_recently) == (4, 0)


async def test_what_ended_long_ago_is_left_out_and_what_lives_comes_first(the_world: World) -> None:
    await the_world.submit({"job_group": "old"}, who=user("ann"))
    await finish(the_world, 1)
    await the_world.submit({"job_group": "live"}, who=user("ann"))
    await the_world.submit({"job_group": "new"}, who=user("ann"))
    await the_world.sql("update job set state = 'Done' where job_group = 'new'")
    assert [line.job_group for line in await lines_of(the_world)] == ["live", "new", "old"]
    assert [line.job_group for line in await lines_of(the_world, limit=1)] == ["live"]
    await the_world.sql("update job set changed_at = now() - interval '8 d'")
    assert [line.job_group for line in await lines_of(the_world)] == ["live"]


async def test_nobody_sees_the_progress_of_others(the_world: World) -> None:
    await the_world.submit({"job_group": "night", "array": 3}, who=user("ann"))
    assert await lines_of(the_world, user("bob")) == ()
    assert await lines_of(the_world, replace(user("ann"), group="other")) == ()
    assert len(await lines_of(the_world, OZ)) == 1
    answer = await the_world.ask(ANN, ShowProgress(query_id="q"))
    assert answer.lines == await lines_of(the_world)


async def test_counts_of_very_many_jobs_go_on_from_query_to_query(
    the_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "count", partial(progress.count, seconds=0.0, step=2))
    everybody, counts = Scope(reach="all"), None
    first, *_ = await the_world.submitted(4)
    seen = []
    for _ in range(5):
        async with the_world.db.transaction() as tx:
            counts = await count_progress(tx, everybody, counts)
        counted = counts.shown
        seen.append((sum(each.jobs for each in counted.counts.values()), counted.counted_from))
        if len(seen) == 3:
            await the_world.submitted()
    assert seen[:3] == [(2, first + 2), (4, first), (4, None)]
    assert seen[3:] == [(4, None), (4, None)], "the whole count is shown until the next one is whole"
    async with the_world.db.transaction() as tx:
        counted = (await count_progress(tx, everybody, counts)).shown
    assert (sum(each.jobs for each in counted.counts.values()), counted.counted_from) == (5, None)
