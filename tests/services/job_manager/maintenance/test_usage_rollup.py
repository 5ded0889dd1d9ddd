"""Hours are summed up once they are over, whoever does it."""

import asyncio

from services.job_manager.maintenance.usage_rollup import UsageRollup
from tests.services.world import World


async def test_hours_are_closed_day_by_day_and_never_twice(the_world: World) -> None:
    await the_world.sql(
        "update usage_rollup set closed_until = date_trunc('hour', now(), 'UTC') - interval '50 h'"
    )
    rollup = UsageRollup(the_world.db)
    assert await rollup.look()
    (row,) = await the_world.sql("select now() - closed_until as left from usage_rollup")
    assert 25 < row["left"].total_seconds() / 3_600 < 28
    done = await asyncio.gather(*(UsageRollup(the_world.db).look() for _ in range(6)))
    assert sum(done) in {2, 3}
    (row,) = await the_world.sql("select now() - closed_until as left from usage_rollup")
    assert 0 < row["left"].total_seconds() / 3_600 < 1.5
    assert not await rollup.look()
