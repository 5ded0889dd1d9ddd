"""A matcher reads how long jobs take, and then what has changed."""

import pytest

from services.matcher import run_times
from services.matcher.run_times import RunTimes
from tests.services.world import World
from wms.db import run_time
from wms.ids import TaskQueueId
from wms.matching.run_time import RunTime


async def test_what_is_stored_is_read_and_read_again_when_it_changes(the_world: World) -> None:
    await the_world.submitted()
    (row,) = await the_world.sql("select tq_id from task_queue")
    tq_id, reading = TaskQueueId(row["tq_id"]), RunTimes(the_world.db)
    await reading.refresh()
    assert not reading.likely
    for mean in (2.0, 3.0):
        async with the_world.db.transaction() as tx:
            await run_time.write(tx, {tq_id: RunTime(mean, 1.0)})
        await reading.refresh()
        assert reading.likely == {tq_id: mean + 2.0}


async def test_no_more_queues_are_kept_than_the_most(
    the_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_times, "QUEUES_MOST", 3)
    for number in range(5):
        await the_world.submitted(tags=[f"tag{number}"])
    rows = await the_world.sql("select tq_id from task_queue")
    assert len(rows) == 5
    async with the_world.db.transaction() as tx:
        await run_time.write(tx, {TaskQueueId(row["tq_id"]): RunTime(1.0, 1.0) for row in rows})
    reading = RunTimes(the_world.db)
    await reading.refresh()
    assert len(reading.likely) == 3
