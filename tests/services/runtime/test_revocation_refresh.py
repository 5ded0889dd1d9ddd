"""A service's revocations follow those of the database."""

from tests.services.world import World
from wms.auth.revocations import Revocation, Revocations
from wms.db import revocation
from wms.runtime import revocation_refresh
from wms.runtime.revocation_refresh import RevocationRefresh

ALICE = Revocation("subject", "alice")


async def test_changes_are_read_at_the_next_look_and_nothing_is_read_without(the_world: World) -> None:
    held = Revocations()
    refresh = RevocationRefresh(the_world.db, held)
    async with the_world.db.transaction() as tx:
        await revocation.revoke(tx, ALICE, "oz", "")
    await refresh.look()
    assert len(held) == 1
    await the_world.sql("delete from revocation")
    await refresh.look()
    assert len(held) == 1
    async with the_world.db.transaction() as tx:
        await revocation.revoke(tx, Revocation("token", "t"), "oz", "")
        await revocation.lift(tx, Revocation("token", "t"))
    await refresh.look()
    assert len(held) == 0


async def test_what_ends_by_itself_is_found_in_time(the_world: World, monkeypatch: object) -> None:
    held = Revocations()
    refresh = RevocationRefresh(the_world.db, held)
    async with the_world.db.transaction() as tx:
        await revocation.revoke(tx, ALICE, "oz", "", 60.0)
    await refresh.look()
    await the_world.sql("update revocation set expires_at = now()")
    refresh._read_at -= revocation_refresh.ANEW_SECONDS + 1
    await refresh.look()
    assert len(held) == 0
