"""Revocations in the database."""

from wms.auth.revocations import Revocation
from wms.db import revocation
from wms.db.database import Transaction

ALICE = Revocation("subject", "alice")


async def test_each_change_is_counted_and_what_is_in_force_is_read(tx: Transaction) -> None:
    before = await revocation.revision(tx)
    await revocation.revoke(tx, ALICE, "oz", "left")
    await revocation.revoke(tx, Revocation("token", "t-1"), "oz", "", 60.0)
    assert set(await revocation.in_force(tx)) == {ALICE, Revocation("token", "t-1")}
    assert await revocation.lift(tx, ALICE)
    assert not await revocation.lift(tx, ALICE)
    assert await revocation.in_force(tx) == [Revocation("token", "t-1")]
    assert await revocation.revision(tx) >= before + 3


async def test_a_revocation_ends_by_itself_and_is_forgotten(tx: Transaction) -> None:
    await revocation.revoke(tx, ALICE, "oz", "")
    await revocation.revoke(tx, Revocation("pilot", "p-1"), "oz", "", 60.0)
    await tx.execute("update revocation set expires_at = now() - interval '1 s' where kind = 'pilot'")
    assert await revocation.in_force(tx) == [ALICE]
    assert await revocation.forget(tx) == 1
    (row,) = await revocation.listed(tx, 0, 10)
    assert (row["value"], row["revoked_by"], row["expires_at"]) == ("alice", "oz", None)


async def test_to_revoke_again_says_the_latest_word(tx: Transaction) -> None:
    await revocation.revoke(tx, ALICE, "oz", "left", 60.0)
    await revocation.revoke(tx, ALICE, "ada", "for good")
    (row,) = await revocation.listed(tx, 0, 10)
    assert (row["revoked_by"], row["reason"], row["expires_at"]) == ("ada", "for good", None)
