"""Tokens of ended pilots that came through a gateway are revoked; those of pilots that may still work are not."""

from msgspec.structs import replace

from services.pilot_submitter.ended_pilots import revoke_ended
from tests.services.world import World, pilot
from wms.db import revocation


async def test_pilots_that_ended_a_while_ago_are_revoked_until_their_tokens_expire(the_world: World) -> None:
    for name in ("p-ended", "p-lives", "p-lost", "p-just", "p-kafka", "p-expired", "p-never-began"):
        await the_world.add_pilot(replace(pilot(), pilot_id=name))
    await the_world.sql("update pilot set link = 'gateway', token_until = now() + interval '1 hour'")
    await the_world.sql(
        "update pilot set ended_at = now() - interval '5 min', state = 'Done' where pilot_id <> 'p-lives'"
    )
    await the_world.sql("update pilot set cause = 'NODE_LOST', state = 'Failed' where pilot_id = 'p-lost'")
    await the_world.sql("update pilot set ended_at = now() where pilot_id = 'p-just'")
    await the_world.sql("update pilot set link = 'kafka' where pilot_id = 'p-kafka'")
    await the_world.sql("update pilot set ended_at = now() - interval '2 hours' where pilot_id = 'p-expired'")
    await the_world.sql("update pilot set token_until = null where pilot_id = 'p-never-began'")

    async def after() -> tuple[int, list[str]]:
        await revoke_ended(the_world.db, 3_600)
        async with the_world.db.transaction() as tx:
            revoked = [each.value for each in await revocation.in_force(tx) if each.kind == "pilot"]
            return await revocation.revision(tx), revoked

    number, revoked = await after()
    assert revoked == ["p-ended"]
    # Services read all revocations when the number changes: it does not for nothing.
    assert await after() == (number, ["p-ended"])
