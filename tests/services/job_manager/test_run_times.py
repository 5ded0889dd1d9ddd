"""How long jobs of a queue take is learnt from those that are done and stored when it changes."""

import pytest

from services.job_manager.run_times import RunTimeLearning
from tests.services.world import World, pilot, result
from wms.job.reasons import Code
from wms.matching.run_time import RunTime


async def ended(world: World, seconds: float, outcome: str = "done", code: Code = Code.DONE) -> None:
    await world.submitted()
    (held,) = await world.match(pilot(), 1)
    await world.report(accept=(held,), start=(held,))
    await world.wait_hours()
    await world.report(finish=(result(held, outcome, code, slot_seconds=seconds),))


async def stored(world: World) -> list[RunTime]:
    return [
        RunTime(row["mean"], row["spread"]) for row in await world.sql("select mean, spread from run_time")
    ]


async def test_done_jobs_teach_how_long_the_others_take(the_world: World) -> None:
    await ended(the_world, 0.1, "failed", Code.EXIT_CODE)
    assert await stored(the_world) == [], "one that failed at once says nothing of the others"
    await ended(the_world, 2.0)
    assert await stored(the_world) == [RunTime(2.0, 1.0)]
    for _ in range(6):
        await ended(the_world, 2.0)
    (last,) = await stored(the_world)
    assert last.spread < 0.5
    the_world._reports._run_times = RunTimeLearning()
    await ended(the_world, 2.0)
    assert (await stored(the_world))[0].mean == pytest.approx(2.0), (
        "a new process goes on from what is stored"
    )


async def test_long_jobs_that_fail_do_not_pass_for_short_ones(the_world: World) -> None:
    await ended(the_world, 0.01)
    (before,) = await stored(the_world)
    await ended(the_world, 0.001, "failed", Code.EXIT_CODE)
    assert await stored(the_world) == [before], "one that failed at once says nothing of the others"
    await ended(the_world, 3_600.0, "failed", Code.EXIT_CODE)
    assert (await stored(the_world))[0].likely > 1_000
