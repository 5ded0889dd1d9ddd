"""New tokens for pilots that live."""

import msgspec

from tests.services.world import World, pilot
from wms.db import pilot as pilots


async def test_tokens_are_renewed_for_pilots_that_live_the_one_that_runs_first(the_world: World) -> None:
    for name in ("p-queued", "p-runs", "p-ended", "p-fresh"):
        await the_world.add_pilot(msgspec.structs.replace(pilot(), pilot_id=name))
    await the_world.sql("update pilot set token_until = now() + interval '5 s'")
    await the_world.sql("update pilot set state = 'Running' where pilot_id = 'p-runs'")
    await the_world.sql("update pilot set ended_at = now(), state = 'Done' where pilot_id = 'p-ended'")
    await the_world.sql("update pilot set token_until = now() + interval '1 hour' where pilot_id = 'p-fresh'")

    async def due() -> list[str]:
        async with the_world.db.transaction() as tx:
            found = await pilots.tokens_due(tx, within=10, pause=2, limit=10)
            await pilots.tokens_sent(tx, [each.pilot_id for each in found])
        return [each.pilot_id for each in found]

    assert await due() == ["p-runs", "p-queued"]
    assert await due() == []
    await the_world.sql("update pilot set renewed_at = now() - interval '3 s' where renewed_at is not null")
    # One that speaks with its new token is due no more.
    await the_world.report(msgspec.structs.replace(pilot(), pilot_id="p-runs", expires_at=4e9))
    assert await due() == ["p-queued"]
