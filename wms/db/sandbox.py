"""Sandboxes, the files that go with jobs or that they leave: which of them stored jobs use, and who sent which."""

from collections.abc import Collection

from wms.db.database import Transaction
from wms.db.sql import load
from wms.ids import Identity

SQL = load(__file__)


async def referenced(tx: Transaction) -> set[str]:
    """Return the SHA-256 digests of all sandboxes that stored jobs refer to, as input or as output."""
    return {row["digest"] for row in await tx.fetch(SQL["referenced"])}


async def claim(tx: Transaction, identity: Identity, digests: Collection[str]) -> None:
    """Store that this owner sent the whole archives of these SHA-256 digests, so that the owner's submissions may refer to them."""
    await tx.execute(SQL["claim"], list(digests), *identity)


async def unclaimed(tx: Transaction, identity: Identity, digests: Collection[str]) -> list[str]:
    """Return those of the digests whose archives this owner, in this group and VO, has not sent."""
    return [row["sha256"] for row in await tx.fetch(SQL["unclaimed"], list(digests), *identity)]


async def forget_claims(tx: Transaction, seconds: float, referenced: Collection[str]) -> None:
    """Delete the claims that are older than `seconds`, but for those on the archives to which stored jobs refer."""
    await tx.execute(SQL["forget_claims"], seconds, list(referenced))
