"""Which sandboxes somebody still refers to: all others may be collected."""

from tests.services.world import World, result
from wms.db import sandbox
from wms.ids import AttemptId, JobId

INPUT, OUTPUT = "a" * 64, "b" * 64


async def referenced(the_world: World) -> set[str]:
    async with the_world.db.transaction() as tx:
        return await sandbox.referenced(tx)


def archive(sha256: str) -> dict[str, object]:
    return {"sha256": sha256, "size": 10}


async def finished(the_world: World, held: AttemptId, sha256: str) -> None:
    await the_world.report(finish=(result(held, output_sha256=sha256, output_bytes=5),))


async def remove(the_world: World, *job_ids: JobId) -> None:
    await the_world.order("kill", *job_ids)
    await the_world.order("remove", *job_ids)


async def test_inputs_and_outputs_are_kept_until_their_job_is_removed(the_world: World) -> None:
    (held,) = await the_world.running(1, input_sandbox=[archive(INPUT)])
    await finished(the_world, held, OUTPUT)
    assert await referenced(the_world) == {INPUT, OUTPUT}
    await remove(the_world, held.job_id)
    assert await referenced(the_world) == set()


async def test_an_input_of_several_jobs_is_kept_for_the_last_of_them(the_world: World) -> None:
    first, second = await the_world.submitted(2, input_sandbox=[archive(INPUT)])
    await remove(the_world, first)
    assert await referenced(the_world) == {INPUT}
    await remove(the_world, second)
    assert await referenced(the_world) == set()


async def test_an_input_of_a_sweep_is_kept_while_any_of_its_jobs_is_there(the_world: World) -> None:
    ids = await the_world.swept(5, input_sandbox=[archive(INPUT)])
    await remove(the_world, *ids[:4])
    assert await referenced(the_world) == {INPUT}
    await remove(the_world, ids[4])
    assert await referenced(the_world) == set()
