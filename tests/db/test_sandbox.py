"""Which sandboxes somebody still refers to: all others may be collected."""

from pathlib import Path

from tests.services.world import World, result
from wms.db import sandbox
from wms.ids import AttemptId, Identity, JobId

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


ALICE, BOB = Identity("alice", "users", "lhcb"), Identity("bob", "users", "lhcb")
MIGRATION = Path(__file__).parents[2] / "migrations" / "0099_pre_sandbox_claim.sql"


async def test_an_archive_is_claimed_by_owner_group_and_vo(the_world: World) -> None:
    async with the_world.db.transaction() as tx:
        await sandbox.claim(tx, ALICE, [INPUT])
        await sandbox.claim(tx, ALICE, [INPUT])
        assert await sandbox.unclaimed(tx, ALICE, [INPUT, OUTPUT]) == [OUTPUT]
        assert await sandbox.unclaimed(tx, BOB, [INPUT]) == [INPUT]
        assert await sandbox.unclaimed(tx, ALICE._replace(group="others"), [INPUT]) == [INPUT]


async def test_a_claim_is_forgotten_with_the_archive(the_world: World) -> None:
    async with the_world.db.transaction() as tx:
        await sandbox.claim(tx, ALICE, [INPUT, OUTPUT])
        await sandbox.forget_claims(tx, 60.0, [])
        assert await sandbox.unclaimed(tx, ALICE, [INPUT, OUTPUT]) == []
    async with the_world.db.transaction() as tx:
        await sandbox.forget_claims(tx, 0.0, [INPUT])
        assert await sandbox.unclaimed(tx, ALICE, [INPUT, OUTPUT]) == [OUTPUT]


async def test_jobs_of_earlier_versions_claim_what_they_refer_to(the_world: World) -> None:
    others = [f"{n}" * 64 for n in (1, 2)]
    (job_id,) = await the_world.submitted(1, input_sandbox=[archive(INPUT)])
    await the_world.swept(2, input_sandbox=[archive(OUTPUT)])
    values = [f"{each}:5" for each in others]
    await the_world.submitted(1, input_parameters=["file"], parameters={"file": values})
    await the_world.sql("delete from sandbox_claim")
    _, found, rest = MIGRATION.read_text().partition("insert into sandbox_claim")
    await the_world.sql(found + rest)
    ((owner, group, vo),) = await the_world.sql(
        "select owner, owner_group, vo from job where job_id = $1", job_id
    )
    async with the_world.db.transaction() as tx:
        mine = Identity(owner, group, vo)
        assert await sandbox.unclaimed(tx, mine, [INPUT, OUTPUT, *others, "c" * 64]) == ["c" * 64]
