"""Jobs that are sent directly: held by one instance at a time."""

from pathlib import Path

from tests.services.pilot_submitter.direct import direct_job
from tests.services.pilot_submitter.elements import Site
from tests.services.world import World
from wms.db import direct_job as jobs


async def test_a_job_has_one_holder_until_that_says_nothing(the_world: World, tmp_path: Path) -> None:
    job_id = await direct_job(Site(the_world, tmp_path), "echo", "{n}")
    await the_world.sql(
        "insert into pilot (pilot_id, site, ce, vo, dispatcher, slots, resource) values ('p', 'A', 'first', 'lhcb', 'slurm', 1, '{}')"
    )
    await the_world.sql("update placement set pilot_id = 'p'")
    async with the_world.db.transaction() as tx:
        (one,) = await jobs.hold(tx, "s-1", 30.0, 10)
        assert (one.job_id, one.phase, one.is_sent, one.is_late) == (job_id, None, False, False)
        assert await jobs.hold(tx, "s-2", 30.0, 10) == []
        assert len(await jobs.hold(tx, "s-1", 30.0, 10)) == 1
        await tx.execute("update placement set taken_until = now() - interval '1 s'")
        assert len(await jobs.hold(tx, "s-2", 30.0, 10)) == 1
        assert (await jobs.descriptions(tx, [job_id]))[job_id].executable == "echo"
